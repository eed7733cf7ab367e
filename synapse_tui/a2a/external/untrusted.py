"""Text of external agents made harmless: it acts on no terminal, turns no writing, and has an end."""

from __future__ import annotations

import re
import unicodedata

MAX_TEXT = 1_000_000
"""Characters that are kept of one text."""
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI, ECMA-48 5.4
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
)
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # C0 and C1 without tab and line feed
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidi (UAX 9), zero width
    "\U000e0000-\U000e007f]"  # tags, by which text is hidden
)
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_MARKS = 8
"""Combining marks that one character may carry; more are only there to break the screen."""
_HEAPS = re.compile(rf"[^\w\x00-\x7f]{{{_MARKS + 1},}}")
"""Where there may be more: no mark is a letter or a digit. Looking at every character takes too long."""


def clean_text(text: object, limit: int = MAX_TEXT) -> str:
    """A text with lines and tabs, but without anything that acts or hides; what is no text becomes empty.

    Args:
        text: What came from outside.
        limit: Characters that are kept.
    """
    if not isinstance(text, str):
        return ""
    short = text[: limit + 1]
    short = _NEWLINES.sub("\n", _SEQUENCES.sub("", short))
    short = _few_marks(_SURROGATES.sub("\ufffd", _INVISIBLE.sub("", short)))
    return short if len(text) <= limit else short[: limit - 1] + "…"


def clean_line(text: object, limit: int = 200) -> str:
    """The same as one line; runs of white space become one space."""
    if not isinstance(text, str):
        return ""
    line = " ".join(clean_text(text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _few_marks(text: str) -> str:
    """The text without the marks that a character has beyond any script's need."""
    return _HEAPS.sub(_few_marks_in, text)


def _few_marks_in(heap: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in heap[0]:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks <= _MARKS:
            kept.append(char)
    return "".join(kept)
