"""Desktop notifications that the terminal shows for us, in the words that it knows.

OSC 99 is kitty's ("Desktop notifications"), OSC 777 rxvt-unicode's, which others took over, and OSC 9
iTerm2's, which nearly all know that show notifications at all; the others drop what they do not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 200
"""Characters of a text: desktops cut longer ones."""
_TITLED = ("foot", "vte", "wezterm", "ghostty", "contour", "rxvt")
"""Terminals that know OSC 777, by the beginning of their names."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def notification(title: str, text: str, *, version: str, environ: Mapping[str, str], serial: int) -> str:
    """What is written to a terminal to show a notification; empty for one that would print it.

    Args:
        title: Who calls; not a number, or iTerm2's OSC 9 would be a progress report of ConEmu.
        text: What for.
        version: The terminal's name and version (XTVERSION); empty when it told none.
        environ: Environment of the terminal's user.
        serial: A number that no other notification has.
    """
    title, text = (_CONTROLS.sub(" ", each)[:LONGEST] for each in (title, text))
    term, name = environ.get("TERM", ""), _name(version, environ)
    if term in ("linux", "dumb", ""):
        return ""
    if name.startswith("kitty"):
        begin = f"\x1b]99;i=synapse-{serial}:d=0;{title}\x1b\\"
        return f"{begin}\x1b]99;i=synapse-{serial}:p=body;{text}\x1b\\"
    if name.startswith(_TITLED):
        return f"\x1b]777;notify;{title.replace(';', ',')};{text}\x07"
    plain = f"\x1b]9;{title}: {text}\x07"
    if name.startswith("tmux"):
        return f"\x1bPtmux;{plain.replace(chr(27), chr(27) * 2)}\x1b\\"  # tmux(1), allow-passthrough
    if term.startswith("screen"):
        return f"\x1bP{plain}\x1b\\"
    return plain


def _name(version: str, environ: Mapping[str, str]) -> str:
    """The terminal's name in small letters, as far as it is known."""
    known = version or environ.get("TERM_PROGRAM", "")
    if not known and "VTE_VERSION" in environ:
        return "vte"
    return (known or environ.get("TERM", "").removeprefix("xterm-")).lower()
