"""What is a message at all: its size, and its text without what only a terminal would take in."""

from __future__ import annotations

import re

from synapse_tui.errors import MessageError, MessageTooLarge
from synapse_tui.model import MAX_MESSAGE_BYTES

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI, ECMA-48 5.4; bracketed paste marks are among them
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
)
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_STRAY = re.compile(
    f"\u200d(?![{_PICTURE}\u0600-\u1cff])|(?<![{_PICTURE}\ufe0f\u0600-\u1cff])\u200d"
    f"|(?<![{_PICTURE}0-9#*])[\ufe0e\ufe0f]"
    f"|(?<![{_PICTURE}\ufe0f])[\U0001f3fb-\U0001f3ff]"
)
"""Joiners, variation selectors and skin tones that belong to no emoji: no two programs draw them alike."""


def check_size(text: str) -> str:
    """Return the text if it is a message.

    Raises:
        MessageTooLarge: It is over the limit.
        MessageError: Nothing is left of it without white space and control characters.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(
            f"the message has {size:,} bytes; the limit is {MAX_MESSAGE_BYTES:,}",
            "put it in a file and send the path",
        )
    if not clean(text):
        raise MessageError("the message is empty", "give a text")
    return text


def clean(text: str) -> str:
    """A text without terminal sequences, controls and lone surrogates; line ends are LF; stripped."""
    text = _SEQUENCES.sub("", text)
    text = _NEWLINES.sub("\n", text)
    text, count = _STRAY.subn("", _CONTROLS.sub("", text))
    while count:  # what stood between two strays may be one now
        text, count = _STRAY.subn("", text)
    return _SURROGATES.sub("\ufffd", text).strip()
