"""Pastes and focus changes to bytes."""

from __future__ import annotations

import re
from typing import Final

from .modes import Modes

PASTE_START: Final = b"\x1b[200~"
PASTE_END: Final = b"\x1b[201~"

_END_MARKS = re.compile("\x1b\\[20[01]~|\x9b20[01]~")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def encode_paste(text: str, modes: Modes) -> bytes:
    """The bytes a child is sent for a pasted text.

    Control characters but tab and line ends are taken out, so that no text can end the paste and go on as
    keys (xterm does so by default, `allowPasteControls`). A line end becomes CR, as terminals send it.

    Args:
        text: The text, with any of the line ends LF, CR LF, CR.
        modes: The child's modes; with ?2004 the text is put between `CSI 200 ~` and `CSI 201 ~`.
    """
    clean = _CONTROLS.sub("", _END_MARKS.sub("", text))
    data = clean.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "replace")
    return PASTE_START + data + PASTE_END if modes.bracketed_paste else data


def encode_focus(focused: bool, modes: Modes) -> bytes:
    """The bytes a child is sent when its pane gains or loses the focus; empty unless it asked (?1004)."""
    if not modes.focus_events:
        return b""
    return b"\x1b[I" if focused else b"\x1b[O"
