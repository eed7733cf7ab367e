"""What is a message at all: its size, and its text without what acts on a terminal, hides or misleads."""

from __future__ import annotations

import re
import unicodedata

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
_IDEOGRAPH = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_JOINING = "\u0600-\u1cff"
"""Scripts in which a joiner or a non-joiner changes how letters look: Arabic to those of India and Asia."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u200b\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # no width
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # they turn the writing (UAX 9)
)
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]"
)
"""Tags: those of a flag such as England's (UTS 51, ED-14a) are kept, others hide text."""
_STRAY = re.compile(
    f"\u200d(?![{_PICTURE}{_JOINING}])|(?<![{_PICTURE}\ufe0f{_JOINING}])\u200d"
    f"|\u200c(?![{_JOINING}])|(?<![{_JOINING}])\u200c"
    f"|(?<![{_PICTURE}0-9#*])[\ufe0e\ufe0f]"
    f"|(?<![{_IDEOGRAPH}])[\ufe00-\ufe0d\U000e0100-\U000e01ef]"
    f"|(?<![{_PICTURE}\ufe0f])[\U0001f3fb-\U0001f3ff]"
)
"""Joiners, variation selectors and skin tones that belong to no emoji and no script that needs them: no two
programs draw them alike, and text can be hidden in them."""
_MARKS = 8
"""Combining marks that one character may carry; more are only there to break the screen."""
_HEAPS = re.compile(rf"[^\w\x00-\x7f]{{{_MARKS + 1},}}")
"""Where there may be more: no mark is a letter or a digit. Looking at every character takes too long."""


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
    """A text of anybody made harmless, without white space around it."""
    return harmless(text).strip()


def harmless(text: str) -> str:
    """A text without terminal sequences, controls and what turns or hides writing; line ends are LF.

    What emoji and scripts are made of stays: joiners, variation selectors, the tags of flags.
    """
    text = _SEQUENCES.sub("", text)
    text = _CONTROLS.sub("", _NEWLINES.sub("\n", text))
    if text.isascii():
        return text
    text = _TAGS.sub(r"\1", _INVISIBLE.sub("", text))
    count = 1
    while count:  # what stood between two strays may be one now
        text, count = _STRAY.subn("", text)
    return _SURROGATES.sub("\ufffd", _HEAPS.sub(_few_marks, text))


def _few_marks(heap: re.Match[str]) -> str:
    """A run of characters without the marks that one has beyond any script's need."""
    kept: list[str] = []
    marks = 0
    for char in heap[0]:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks <= _MARKS:
            kept.append(char)
    return "".join(kept)
