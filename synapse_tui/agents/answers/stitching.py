"""Puts many looks at a screen together to one long text, also where an agent paints its own scrolling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_ROWS = 5_000
"""Rows that are kept; the oldest go first."""
MIN_FOUND = 2
"""Different rows that must be found again for a move to be believed."""
MAX_CANDIDATES = 8
NEAR = 400
"""How many of the last rows are searched for those on the screen."""
JUMP = 6
"""Rows that must differ, without one being found again, for the text to have been moved out of sight."""
STICKY = 3
"""Rows at the top that may be held there while the text passes below them."""


class StitchedRows:
    """The text that passes over a screen, as far as it was seen.

    A row that leaves the screen because the terminal scrolls is told. Where an agent paints moved text in
    place, the move is found by looking for the rows that changed among those known.

    Attributes:
        rows: The text.
        truncated: Whether rows are known to be missing.
    """

    def __init__(self, screen: Sequence[str]) -> None:
        self.rows: list[str] = list(screen)
        self.truncated = False
        self._screen: list[str] = list(screen)
        self._top = 0
        self._scrolled = 0

    def state(self) -> dict[str, object]:
        """All of it as JSON."""
        return {
            "rows": self.rows,
            "truncated": self.truncated,
            "screen": self._screen,
            "top": self._top,
            "scrolled": self._scrolled,
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> StitchedRows:
        """The rows of which `state` was given."""
        stitched = cls(state["screen"])
        stitched.rows = list(state["rows"])
        stitched.truncated = bool(state["truncated"])
        stitched._top, stitched._scrolled = int(state["top"]), int(state["scrolled"])
        return stitched

    def scrolled(self, row: str) -> None:
        """The terminal moved a row over its upper edge."""
        self.rows[self._top : self._top + 1] = [row]
        self._top += 1
        self._scrolled += 1
        if self._top > MAX_ROWS:
            self._forget(self._top - MAX_ROWS)

    def look(self, screen: Sequence[str]) -> bool:
        """Take in what the screen shows now.

        Returns:
            Whether it differs from the last look.
        """
        new, old = list(screen), self._screen
        moved, self._scrolled = self._scrolled, 0
        if new == old and not moved:
            return False
        if not any(row.strip() for row in new):
            return True  # cleared, to be drawn anew
        self._screen = new
        head = 0 if moved else common(old, new)
        if not moved:
            self._follow(old, new, head)
        self._write(new, head, STICKY if not moved else 0)
        return True

    def _follow(self, old: Sequence[str], new: Sequence[str], head: int) -> None:
        """Find out where in the text the screen is now."""
        tail = common(old[:head:-1], new[:head:-1])
        middle = range(head, len(new) - tail)
        changed = [index for index in middle if len(new[index].strip()) > 1]
        candidates = self._candidates(new, changed)
        scores = {top: self._score(new, middle, top) for top in (self._top, *candidates)}
        best = max(scores, key=lambda top: (scores[top], -abs(top - self._top)))
        if best != self._top:
            self._top = best
        elif not candidates and len(changed) >= JUMP and sum(map(bool, old[head:])) >= JUMP:
            self._top = len(self.rows)
            self.truncated = True

    def _candidates(self, new: Sequence[str], changed: Sequence[int]) -> list[int]:
        """Where the screen may be, by the rows that are found again; the likeliest places first."""
        places: dict[str, list[int]] = {}
        for place in range(max(0, len(self.rows) - NEAR), len(self.rows)):
            places.setdefault(self.rows[place], []).append(place)
        found: dict[int, set[str]] = {}
        for index in changed:
            for place in places.get(new[index], ()):
                found.setdefault(place - index, set()).add(new[index])
        # Rows that are all alike tell nothing: each text counts once.
        likely = sorted(found, key=lambda top: (-len(found[top]), abs(top - self._top)))
        return [top for top in likely[:MAX_CANDIDATES] if top >= 0 and len(found[top]) >= MIN_FOUND]

    def _score(self, new: Sequence[str], middle: range, top: int) -> int:
        """How well what changed fits a place: rows that are as known, less those that are not."""
        pairs = zip(new[middle.start : middle.stop], self.rows[top + middle.start :], strict=False)
        return sum(1 if a == b else -1 for a, b in pairs if a and b)

    def _write(self, new: Sequence[str], head: int, sticky: int) -> None:
        """Put the screen's rows in their place; what was known below it is no more.

        Args:
            new: The screen's rows.
            head: So many of them are as they were.
            sticky: So many may be held there; none where the terminal has moved all rows over its edge.
        """
        top = self._top
        above = set(self.rows[max(0, top - NEAR) : top])
        kept = self.rows[top : top + len(new)]
        written = list(new)
        for index in range(min(len(kept), len(new))):
            held = index < sticky and new[index] != kept[index] and new[index].strip() and new[index] in above
            if index < head or held:
                written[index] = kept[index]
        self.rows[top:] = written

    def _forget(self, count: int) -> None:
        del self.rows[:count]
        self._top -= count
        self.truncated = True


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many rows the two begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
