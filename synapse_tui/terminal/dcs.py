"""Device control strings that ask for something: DECRQSS and XTGETTCAP (xterm ctlseqs)."""

from __future__ import annotations

import binascii

from .osc import SystemCommands
from .reports import VERSION
from .sgr import unparse
from .style import PROTECTED

_CAPABILITIES = {
    "TN": "xterm-256color",
    "name": "xterm-256color",
    "Co": "256",
    "colors": "256",
    "RGB": "8/8/8",
    "Tc": "",
    "Su": "",
    "Ss": "\x1b[%p1%d q",
    "Se": "\x1b[2 q",
    "Ms": "\x1b]52;%p1%s;%p2%s\x1b\\",
    "Smulx": "\x1b[4:%p1%dm",
    "Setulc": "\x1b[58:2:%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:%p1%{255}%&%d%;m",
    "Sync": "\x1b[?2026%?%p1%{1}%-%tl%eh%;",
    "XT": "",
    "xterm-version": VERSION,
}
"""terminfo capabilities (and tmux's extensions to them) that a child may ask for."""


class DeviceControl(SystemCommands):
    """DCS."""

    def device_control(self, payload: str) -> None:
        """Do what a DCS string says; sixels, user keys and the like are read over.

        Args:
            payload: Parameters, intermediates, final and data.
        """
        if payload.startswith("$q"):
            self._report_setting(payload[2:])
        elif payload.startswith("+q"):
            for name in payload[2:].split(";")[:64]:
                self._report_capability(name)

    def _report_setting(self, name: str) -> None:
        """DECRQSS: answered with 1 and the setting, or 0 (xterm's sense of the numbers)."""
        setting = self._setting(name)
        self.reply("\x1bP0$r\x1b\\" if setting is None else f"\x1bP1$r{setting}{name}\x1b\\")

    def _setting(self, name: str) -> str | None:
        if name == '"p':
            return f"{60 + self.level};{0 if self.eight_bit_replies else 1}"
        simple = {
            "m": unparse(self.style),
            "r": f"{self.top + 1};{self.bottom + 1}",
            "s": f"{self.left + 1};{self.right + 1}",
            " q": str(self.cursor_shape or 2),
            '"q': "1" if self.style & PROTECTED and not self.iso_protection else "0",
            "t": str(self.lines),
            "$|": str(self.columns),
            "*|": str(self.lines),
            "$}": "0",
            "$~": "0",
            "*x": str(self.attribute_extent),
        }
        return simple.get(name)

    def _report_capability(self, encoded: str) -> None:
        try:
            name = binascii.unhexlify(encoded).decode("ascii")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            name = ""
        value = _CAPABILITIES.get(name)
        if value is None:
            self.reply(f"\x1bP0+r{encoded[:128] if encoded.isalnum() and encoded.isascii() else ''}\x1b\\")
        elif value:
            self.reply(f"\x1bP1+r{encoded}={value.encode().hex().upper()}\x1b\\")
        else:
            self.reply(f"\x1bP1+r{encoded}\x1b\\")
