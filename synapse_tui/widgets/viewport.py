"""Which rows of a terminal a pane shows, and which of them changed.

Lines are counted from the first one that ever scrolled off the screen (line 0), so that a line keeps its
number while new output pushes it upwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from synapse_tui.terminal import Line, Scroll, Terminal


class Viewport:
    """A window of some height onto the scrollback and the screen of a terminal.

    Args:
        terminal: The terminal; nobody else takes its damage.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.offset = 0
        """Lines that the view is scrolled back; 0 shows the live screen."""
        self.scroll: Scroll | None = None
        """How rows of the live screen moved as a whole by the last damage; None when they did not."""
        self._total = terminal.scrolled_total
        self._size = (terminal.columns, terminal.lines)

    @property
    def height(self) -> int:
        """Rows of the view: as many as the screen has."""
        return self.terminal.lines

    @property
    def first(self) -> int:
        """Number of the oldest line that still exists."""
        return self._total - len(self.terminal.scrollback)

    @property
    def last(self) -> int:
        """Number of the last line of the screen."""
        return self._total + self.terminal.lines - 1

    @property
    def top(self) -> int:
        """Number of the line in the view's first row."""
        return self._total - self.offset

    def row(self, number: int) -> int:
        """Return the row of the view that shows a line; outside of the view when it shows it not."""
        return number - self.top

    def line(self, number: int) -> Line | None:
        """Return a line by its number; None when it does not exist any more or not yet."""
        index = number - self._total
        if 0 <= index < self.terminal.lines:
            return self.terminal.line(index)
        if index < 0 and number >= self.first:
            return self.terminal.scrollback[number - self.first]
        return None

    def shown(self, row: int) -> Line | None:
        """Return the line in a row of the view."""
        return self.line(self.top + row)

    def numbers(self) -> range:
        """Return the numbers of all lines that exist, oldest first."""
        return range(self.first, self.last + 1)

    def scroll_to(self, offset: int) -> bool:
        """Scroll the view back by `offset` lines from the live screen, as far as there are lines.

        Returns:
            Whether the view moved.
        """
        offset = max(0, min(offset, len(self.terminal.scrollback)))
        moved = offset != self.offset
        self.offset = offset
        return moved

    def scroll_into_view(self, number: int) -> bool:
        """Scroll no further than needed to show a line.

        Returns:
            Whether the view moved.
        """
        row = self.row(number)
        if row < 0:
            return self.scroll_to(self.offset - row)
        return self.scroll_to(self.offset - max(0, row - self.height + 1))

    def resized(self) -> bool:
        """Return whether the terminal has another size than before; the view shows the live screen then."""
        size = (self.terminal.columns, self.terminal.lines)
        if size == self._size:
            return False
        self._size = size
        self.offset = 0
        self._total = self.terminal.scrolled_total
        return True

    def absorb(self) -> Iterable[int]:
        """Take the terminal's damage; a view that is scrolled back stays on its lines.

        Returns:
            The rows of the view that must be drawn again.
        """
        damage = self.terminal.take_damage()
        pushed = self.terminal.scrolled_total - self._total
        self._total += pushed
        self.scroll = None if self.offset else damage.scroll
        if not self.offset:
            return range(self.height) if damage.full else damage.rows
        before = self.offset
        self.scroll_to(before + pushed)
        if self.offset - before != pushed:
            return range(self.height)
        if damage.full or pushed:
            return range(before, self.height)
        return [row + before for row in damage.rows if row + before < self.height]
