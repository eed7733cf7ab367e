"""The text of a screen, read again and again: rows that did not change are not read anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from synapse_tui.terminal.damage import DamageTracker

if TYPE_CHECKING:
    from synapse_tui.terminal import Terminal


class Change(NamedTuple):
    """What happened to a screen since it was read before.

    Attributes:
        text: Whether a row has another text.
        any: Whether anything changed: text, styles or the cursor.
    """

    text: bool
    any: bool


class ScreenText:
    """Reads one screen; another terminal is read from the beginning."""

    def __init__(self) -> None:
        self.rows: Sequence[str] = ()
        """The rows up to the last one with text, as wide as the screen."""
        self._terminal: Terminal | None = None
        self._tracker: DamageTracker | None = None
        self._all: list[str] = []
        self._stripped: list[str] = []
        self._from: dict[int, str] = {}

    @classmethod
    def of(cls, terminal: Terminal) -> ScreenText:
        """The text of a screen as it is now."""
        text = cls()
        text.take(terminal)
        return text

    def take(self, terminal: Terminal) -> Change:
        """Read what changed."""
        if self._tracker is None or terminal is not self._terminal:
            self._terminal = terminal
            self._tracker = DamageTracker(terminal.screen, scrolls=False)
            self._all = []
        damage = self._tracker.take()
        text = self._read(terminal, damage.rows)
        if text:
            last = len(self._all)
            while last and not self._stripped[last - 1]:
                last -= 1
            self.rows = self._all[:last]
            self._from.clear()
        return Change(text, bool(damage))

    def _read(self, terminal: Terminal, rows: frozenset[int]) -> bool:
        screen = terminal.screen
        changed = len(self._all) != screen.lines
        if changed:
            self._all, self._stripped = [""] * screen.lines, [""] * screen.lines
            rows = frozenset(range(screen.lines))
        for y in rows:
            text = screen.rows[y].content(screen.columns)
            if text != self._all[y]:
                self._all[y], self._stripped[y] = text, text.rstrip()
                changed = True
        return changed

    def tail(self, count: int, first: int = 0) -> str:
        """The last rows, without the blanks at their ends, joined by line feeds.

        Args:
            count: How many rows at most.
            first: No row above this one.
        """
        start = max(first, len(self.rows) - count)
        text = self._from.get(start)
        if text is None:
            text = self._from[start] = "\n".join(self._stripped[start : len(self.rows)])
        return text
