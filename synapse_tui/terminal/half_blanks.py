"""Blanks that stand for the right half of a wide character, and no character of their own.

Some programs keep two cells for an emoji with a variation selector (U+FE0F), write the emoji, and write the
blank of its second cell right after it, without having moved the cursor: ratatui does, for terminals that
show such an emoji in one cell. A terminal that shows it in two puts that blank into the third, and what
follows on the row stands too far right, where half of it is overwritten. Nothing in the output tells these
programs from others, whose blank after such an emoji is one, so it is for the caller to know.
"""

from __future__ import annotations

import re

from .width import CLUSTER, EXTENDERS, MAX_CLUSTER, VS16, ZWJ, cluster_width

_SGR = "(?:\x1b\\[[\\d;:]*m)*"
_STRING = "\x1b[\\]PX^_][^\x07\x1b]*"
_HALF = re.compile(f"({VS16}(?:[{EXTENDERS}]|(?<={ZWJ})[^\x00-\x7f])*)({_SGR}) |{_STRING}")
_OPEN = re.compile(f"{CLUSTER}{_SGR}(?:\x1b(?:\\[[\\d;:]*)?)?\\Z")
"""What may go on as the one above does."""
_LONGEST = MAX_CLUSTER + 64
_KEYCAPS = frozenset("0123456789#*")


class HalfBlanks:
    """Takes such blanks out of the output of one program."""

    def __init__(self) -> None:
        self._before = ""

    def taken_out(self, text: str) -> str:
        """Output without the blanks of second cells.

        Args:
            text: The next piece of the output, cut anywhere.
        """
        whole = self._before + text
        kept = _HALF.sub(_without_blank, whole)[len(self._before) :] if VS16 in whole else text
        self._before = _open_end(whole)
        return kept


def _open_end(text: str) -> str:
    """The end of a piece of output to which a blank that comes next may belong."""
    end = text[-_LONGEST:]
    if end.isascii() and end[-1:] not in _KEYCAPS:
        return ""
    found = _OPEN.search(end)
    return found.group() if found is not None else ""


def _without_blank(match: re.Match[str]) -> str:
    selected, renditions = match.groups()
    if selected is None:
        return match.group()
    base = match.string[max(0, match.start() - 1) : match.start()]
    return f"{selected}{renditions}" if base and cluster_width(base + VS16) == 2 else match.group()
