"""Blanks that stand for the right half of a wide character, and no character of their own.

Some programs keep two cells for an emoji with a variation selector (U+FE0F), write the emoji, and write the
blank of its second cell right after it, without having moved the cursor: ratatui does, for terminals that
show such an emoji in one cell. A terminal that shows it in two puts that blank into the third, and what
follows on the row stands too far right, where half of it is overwritten. Nothing in the output tells these
programs from others, whose blank after such an emoji is one, so it is for the caller to know.
"""

from __future__ import annotations

import re

from .width import CLUSTER, MAX_CLUSTER, VS16, cluster_width

_SGR = "(?:\x1b\\[[\\d;:]*m)*"
_STRING = "\x1b[\\]PX^_][^\x07\x1b]*"
_HALF = re.compile(f"{_STRING}|({CLUSTER})({_SGR}) ")
_OPEN = re.compile(f"{CLUSTER}{_SGR}(?:\x1b(?:\\[[\\d;:]*)?)?\\Z")
"""What may go on as the one above does."""
_LONGEST = MAX_CLUSTER + 64


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
        kept = _HALF.sub(_without_blank, whole) if VS16 in whole else whole
        kept = kept[len(self._before) :]
        found = _OPEN.search(whole, max(0, len(whole) - _LONGEST))
        self._before = found.group() if found is not None else ""
        return kept


def _without_blank(match: re.Match[str]) -> str:
    cluster, renditions = match.groups()
    if cluster is None or VS16 not in cluster or cluster_width(cluster) < 2:
        return match.group()
    return f"{cluster}{renditions}"
