"""What is a message at all: its size, and its text without what acts on a terminal, hides or misleads."""

from __future__ import annotations

import re
import unicodedata

from synapse_tui.errors import MessageError, MessageTooLarge
from synapse_tui.model import MAX_MESSAGE_BYTES

_CSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
"""ECMA-48 5.4; bracketed paste marks are among them."""
_SEQUENCES = re.compile(
    rf"{_CSI.pattern}"
    r"|((?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*)(\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
)
"""The text of a string that nothing ends is in the match too: what begins in it is not ended either, and must
not be looked for again from each of its characters."""
_NEWLINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_IDEOGRAPH = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_JOINING = "\u0600-\u1cff"
"""Scripts in which a joiner or a non-joiner changes how letters look: Arabic to those of India and Asia."""
_VOWELS = "\u11a7\ud7b0-\ud7c6"
_FINALS = "\u11ff\ud7cb-\ud7fb"
_EMPTY_BRAILLE = "\u2800"
"""It is drawn as a space."""
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u17b4\u17b5\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d159\U0001d173-\U0001d17a"  # of music
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # they turn the writing (UAX 9)
    # Fillers of old Hangul, but where they stand for a missing part of a syllable (Unicode 3.12).
    f"|\u115f(?![\u1161-{_VOWELS}]|\u1160[\u11a8-{_FINALS}])"
    f"|(?<![\u1100-\u115f\ua960-\ua97c])\u1160|(?<=\u115f)\u1160(?![\u11a8-{_FINALS}])"
)
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]"
)
"""Tags: those of a flag such as England's (UTS 51, ED-14a) are kept, others hide text."""
_DEPENDENT = re.compile("[\u200c\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]+")
"""Joiners, variation selectors and skin tones. Those that belong to no emoji and no script that needs them
go: no two programs draw them alike, and text can be hidden in them."""
_AFTER = tuple(
    (re.compile(f"[{kind}]"), re.compile(f"[{home}]"))
    for kind, home in (
        ("\u200d", f"{_PICTURE}\ufe0f{_JOINING}"),
        ("\u200c", _JOINING),
        ("\ufe0e\ufe0f", f"{_PICTURE}0-9#*"),
        ("\ufe00-\ufe0d\U000e0100-\U000e01ef", _IDEOGRAPH),
        ("\U0001f3fb-\U0001f3ff", f"{_PICTURE}\ufe0f"),
    )
)
"""After what each of them may stand."""
_BEFORE = {"\u200d": re.compile(f"[{_PICTURE}{_JOINING}]"), "\u200c": re.compile(f"[{_JOINING}]")}
"""Before what a joiner may stand."""
_MARKS = 8
"""Combining marks that one character may carry; more are only there to break the screen."""
_HEAPS = re.compile(rf"[^\w\x00-\x7f]{{{_MARKS + 1},}}")
"""Where there may be more: no mark is a letter or a digit. Looking at every character takes too long."""


def check_size(text: str) -> str:
    """Return the text if it is a message."""
    if _SURROGATES.search(text):
        raise MessageError("the message holds half a surrogate pair", "send whole characters")
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
    text = _SEQUENCES.sub(_unclosed, text)
    text = _CONTROLS.sub("", _NEWLINES.sub("\n", text))
    if text.isascii():
        return text
    text = _TAGS.sub(r"\1", _INVISIBLE.sub("", text.replace(_EMPTY_BRAILLE, " ")))
    text = _DEPENDENT.sub(_at_home, text)
    return _SURROGATES.sub("\ufffd", _HEAPS.sub(_few_marks, text))


def _unclosed(sequence: re.Match[str]) -> str:
    return "" if sequence[1] is None or sequence[2] is not None else _CSI.sub("", sequence[1])


def _at_home(run: re.Match[str]) -> str:
    """A run of characters that depend on others, without those that are stray.

    Each is held against the last one that stays, so that a run of any length is looked at once.
    """
    before = run.string[max(0, run.start() - 1) : run.start()]
    kept: list[str] = []
    for char in run[0] + run.string[run.end() : run.end() + 1]:
        last = kept[-1] if kept else before
        home = next((home for kind, home in _AFTER if kind.match(char)), None)
        if kept and last in _BEFORE and not _BEFORE[last].match(char):
            kept.pop()
        if home is not None and home.match(last):
            kept.append(char)
    if kept and kept[-1] in _BEFORE and run.end() == len(run.string):
        kept.pop()
    return "".join(kept)


def _few_marks(heap: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in heap[0]:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks <= _MARKS:
            kept.append(char)
    return "".join(kept)
