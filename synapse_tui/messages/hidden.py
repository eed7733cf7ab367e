"""Removes characters beyond ASCII that hide or reverse text, or that break the screen.

`text.py` imports it with the first such text, since its patterns are slow to compile.
"""

from __future__ import annotations

import re
import unicodedata

_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_IDEOGRAPH = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_JOINING = "\u0600-\u1cff"
"""Scripts in which joiners and non-joiners change the shape of letters: Arabic, and those of India and Asia.
"""
_VOWELS = "\u11a7\ud7b0-\ud7c6"
_FINALS = "\u11ff\ud7cb-\ud7fb"
_EMPTY_BRAILLE = "\u2800"
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u17b4\u17b5\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d159\U0001d173-\U0001d17a"  # musical
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # bidirectional controls (UAX 9)
    # Fillers of old Hangul, except in place of a missing part of a syllable (Unicode 3.12).
    f"|\u115f(?![\u1161-{_VOWELS}]|\u1160[\u11a8-{_FINALS}])"
    f"|(?<![\u1100-\u115f\ua960-\ua97c])\u1160|(?<=\u115f)\u1160(?![\u11a8-{_FINALS}])"
)
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]"
)
"""Tags: those of a flag such as England's (UTS 51, ED-14a) stay, others hide text."""
_DEPENDENT = re.compile("[\u200c\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]+")
"""Joiners, variation selectors and skin tones. Stray ones, without an emoji or a script that needs them, are
removed: programs draw them differently, and they can hide text."""
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
_BEFORE = {"\u200d": re.compile(f"[{_PICTURE}{_JOINING}]"), "\u200c": re.compile(f"[{_JOINING}]")}
_MARKS = 8
"""Combining marks that one character may carry; more are only there to break the screen."""
_HEAPS = re.compile(rf"[^\w\x00-\x7f]{{{_MARKS + 1},}}")
"""Finds candidates for more marks (no mark is a letter or a digit), since checking every character is slow.
"""


def visible(text: str) -> str:
    text = _TAGS.sub(r"\1", _INVISIBLE.sub("", text.replace(_EMPTY_BRAILLE, " ")))
    text = _DEPENDENT.sub(_without_strays, text)
    return _HEAPS.sub(_few_marks, text)


def _without_strays(run: re.Match[str]) -> str:
    """Remove stray characters from a run of dependent ones.

    Each is compared with the last one that stays, so that runs of any length take one pass.
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
