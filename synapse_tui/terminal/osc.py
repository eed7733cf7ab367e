"""Operating system commands (xterm ctlseqs "Operating System Commands", and those of other terminals)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from .colors import DYNAMIC, SPECIAL, color_spec, parse_color
from .events import (
    ClipboardSet,
    ColorsChanged,
    Notification,
    PointerShape,
    ProgramStatus,
    ProgressChanged,
    PromptMark,
    WorkingDirectory,
)
from .reports import Reports
from .style import LINK_SHIFT, NO_LINK

TITLE_LENGTH = 1024
TEXT_LENGTH = 4096
URI_LENGTH = 2083
NOTICES_KEPT = 8
_FIELDS = 32
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SELECTION = re.compile(r"[cpqs0-7]*\Z")


def clean(text: str, length: int) -> str:
    """Text from a child without controls and at most `length` characters long."""
    return _CONTROLS.sub("", text[:length])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1


def _fields(parts: list[str]) -> dict[str, str]:
    """`key=value` parts; a part without `=` is skipped."""
    pairs = (part.partition("=") for part in parts[:_FIELDS])
    return {clean(key, 64): clean(value, TEXT_LENGTH) for key, mark, value in pairs if mark}


def _decoded(text: str, length: int) -> str:
    """Text from base64; empty if it is none."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.decode("utf-8", "replace")[:length]


class SystemCommands(Reports):
    """OSC."""

    def system_command(self, payload: str, terminator: str = "\x1b\\") -> None:
        """Do what an OSC string says.

        Args:
            payload: Number, `;`, and the rest.
            terminator: What ended the string; answers end likewise.
        """
        code, _, rest = payload.partition(";")
        command = _COMMANDS.get(code)
        number = _number(code)
        if command is not None:
            command(self, rest, terminator)
        elif number in DYNAMIC:
            self._dynamic(number, rest, terminator)
        elif number - 100 in DYNAMIC:
            self._reset_dynamic(number - 100)

    # Titles

    def set_title(self, param: str) -> None:
        """OSC 2."""
        self.change_title(clean(param, TITLE_LENGTH))

    def set_icon_name(self, param: str) -> None:
        """OSC 1."""
        self.icon_name = clean(param, TITLE_LENGTH)

    def both_titles(self, rest: str, _end: str) -> None:
        """OSC 0."""
        self.set_icon_name(rest)
        self.set_title(rest)

    def title_command(self, rest: str, _end: str) -> None:
        """OSC 2."""
        self.set_title(rest)

    def icon_command(self, rest: str, _end: str) -> None:
        """OSC 1."""
        self.set_icon_name(rest)

    # Colours

    def palette_command(self, rest: str, end: str) -> None:
        """OSC 4: pairs of an index and a colour or `?`."""
        self._indexed(4, range(SPECIAL.stop), rest, end)

    def special_command(self, rest: str, end: str) -> None:
        """OSC 5: likewise for the special colours, counted from 0."""
        self._indexed(5, SPECIAL, rest, end)

    def _indexed(self, code: int, indices: range, rest: str, end: str) -> None:
        parts = rest.split(";")[: 2 * SPECIAL.stop]
        changed = False
        for name, spec in zip(parts[::2], parts[1::2], strict=False):
            number = _number(name)
            if not 0 <= number < len(indices):
                continue
            index = indices[number]
            if spec == "?":
                self.reply(f"\x1b]{code};{number};{color_spec(self.colors.indexed(index))}{end}")
            elif (color := parse_color(spec)) is not None:
                self.colors.palette[index] = color
                changed = True
        if changed:
            self._colors_changed()

    def reset_palette(self, rest: str, _end: str) -> None:
        """OSC 104: some indexed colours, or all of them and the special ones."""
        self._reset_indexed(range(SPECIAL.stop), rest or ";".join(map(str, range(SPECIAL.stop))))

    def reset_special(self, rest: str, _end: str) -> None:
        """OSC 105: some special colours, or all."""
        self._reset_indexed(SPECIAL, rest or ";".join(map(str, range(len(SPECIAL)))))

    def _reset_indexed(self, indices: range, names: str) -> None:
        for name in names.split(";")[: SPECIAL.stop]:
            number = _number(name)
            if 0 <= number < len(indices):
                self.colors.palette.pop(indices[number], None)
        self._colors_changed()

    def _dynamic(self, number: int, rest: str, end: str) -> None:
        """OSC 10 to 19: each further part is for the next number."""
        changed = False
        for current, spec in zip(range(number, DYNAMIC.stop), rest.split(";"), strict=False):
            if spec == "?":
                self.reply(f"\x1b]{current};{color_spec(self.colors.dynamic(current))}{end}")
            elif (color := parse_color(spec)) is not None:
                self.colors.own[current] = color
                changed = True
        if changed:
            self._colors_changed()

    def _reset_dynamic(self, number: int) -> None:
        self.colors.own.pop(number, None)
        self._colors_changed()

    def _colors_changed(self) -> None:
        self.touch_all()
        self.tell(ColorsChanged())

    # Links, clipboard, folders

    def link_command(self, rest: str, _end: str) -> None:
        """OSC 8: parameters, `;`, URI; an empty URI ends the link."""
        parameters, _, uri = rest.partition(";")
        number = 0
        if uri and len(uri) <= URI_LENGTH:
            group = _fields(parameters.split(":")).get("id", "")
            number = self.table.link(clean(uri, URI_LENGTH), group)
        self.style = self.style & NO_LINK | number << LINK_SHIFT

    def clipboard_command(self, rest: str, _end: str) -> None:
        """OSC 52; a child may write, never read."""
        selection, _, data = rest.partition(";")
        if data == "?" or not _SELECTION.match(selection):
            return
        self.tell(ClipboardSet(selection or "c", _decoded(data, len(data))))

    def folder_command(self, rest: str, _end: str) -> None:
        """OSC 7."""
        self.tell(WorkingDirectory(clean(rest, TEXT_LENGTH)))

    def pointer_command(self, rest: str, _end: str) -> None:
        """OSC 22."""
        self.tell(PointerShape(clean(rest, 64)))

    # Notices

    def notice_command(self, rest: str, _end: str) -> None:
        """OSC 9: a progress report of ConEmu (`4;state;value`), or a notification of iTerm2."""
        parts = rest.split(";")
        if parts[0] == "4":
            state = _number(parts[1]) if len(parts) > 1 else 0
            value = _number(parts[2]) if len(parts) > 2 else 0
            if 0 <= state <= 4:
                self.tell(ProgressChanged(state, max(0, min(value, 100))))
        elif not (len(parts) > 1 and _number(parts[0]) >= 0):
            self.tell(Notification("", clean(rest, TEXT_LENGTH)))

    def kitty_notice(self, rest: str, end: str) -> None:
        """OSC 99: metadata, `;`, payload; title and body may come in several pieces (`d=0`) under one id."""
        metadata, _, payload = rest.partition(";")
        fields = _fields(metadata.split(":"))
        kind, name = fields.get("p", "title"), fields.get("i", "0")
        if kind == "?":
            self.reply(f"\x1b]99;i={name}:p=?;p=title,body{end}")
        elif kind in ("title", "body"):
            text = _decoded(payload, TEXT_LENGTH) if fields.get("e") == "1" else payload
            self._notice_piece(name, kind == "body", clean(text, TEXT_LENGTH), more=fields.get("d") == "0")

    def _notice_piece(self, name: str, body: bool, text: str, *, more: bool) -> None:
        pieces = self.notices.pop(name, ["", ""])
        pieces[body] = (pieces[body] + text)[:TEXT_LENGTH]
        if more:
            self.notices[name] = pieces
            if len(self.notices) > NOTICES_KEPT:
                del self.notices[next(iter(self.notices))]
        else:
            self.tell(Notification(*pieces))

    def urxvt_notice(self, rest: str, _end: str) -> None:
        """OSC 777: `notify;title;body`."""
        kind, _, text = rest.partition(";")
        if kind == "notify":
            title, _, body = text.partition(";")
            self.tell(Notification(clean(title, TEXT_LENGTH), clean(body, TEXT_LENGTH)))

    def iterm_command(self, rest: str, _end: str) -> None:
        """OSC 1337: of iTerm2's commands the folder only."""
        key, mark, value = rest.partition("=")
        if mark and key == "CurrentDir":
            self.tell(WorkingDirectory("file://" + clean(value, TEXT_LENGTH)))

    def prompt_mark(self, rest: str, _end: str) -> None:
        """OSC 133."""
        kind, *parts = rest.split(";")
        fields = _fields(parts)
        if kind == "D" and parts and "=" not in parts[0]:
            fields["status"] = clean(parts[0], 16)
        if kind:
            self.tell(PromptMark(clean(kind, 1), fields))

    def program_status(self, rest: str, end: str) -> None:
        """OSC 7501, the Program Status Protocol: `state=...` and more between `:`; `?` asks for support."""
        if rest == "?":
            self.reply(f"\x1b]7501;?{end}")
            return
        fields = _fields(rest.split(":"))
        state = fields.pop("state", "")
        for key in ("title", "msg"):
            if key in fields:
                fields[key] = clean(_decoded(fields[key], TEXT_LENGTH), TEXT_LENGTH)
        if state:
            self.tell(ProgramStatus(state, fields))


_COMMANDS: Mapping[str, Callable[[SystemCommands, str, str], None]] = MappingProxyType(
    {
        "0": SystemCommands.both_titles,
        "": SystemCommands.both_titles,
        "1": SystemCommands.icon_command,
        "2": SystemCommands.title_command,
        "4": SystemCommands.palette_command,
        "5": SystemCommands.special_command,
        "7": SystemCommands.folder_command,
        "8": SystemCommands.link_command,
        "9": SystemCommands.notice_command,
        "22": SystemCommands.pointer_command,
        "52": SystemCommands.clipboard_command,
        "99": SystemCommands.kitty_notice,
        "104": SystemCommands.reset_palette,
        "105": SystemCommands.reset_special,
        "133": SystemCommands.prompt_mark,
        "777": SystemCommands.urxvt_notice,
        "1337": SystemCommands.iterm_command,
        "7501": SystemCommands.program_status,
    }
)
