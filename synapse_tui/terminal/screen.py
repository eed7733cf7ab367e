"""The screen: pyte's, with all the families of functions put together, and pyte's ways of reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyte.screens

from .dcs import DeviceControl
from .events import Bell
from .line import Line
from .style import LINK_SHIFT


class BufferView(Mapping[int, Line]):
    """`screen.buffer` as pyte has it: rows by number, cells by column."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __getitem__(self, y: int) -> Line:
        screen = self._screen
        return Line(screen.rows[y], screen.table, screen.columns)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._screen.lines))

    def __len__(self) -> int:
        return self._screen.lines


class CursorProxy(pyte.screens.Cursor):
    """`screen.cursor` as pyte has it; what is set here moves the screen's cursor."""

    __slots__ = ("_screen",)

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    @property
    def x(self) -> int:
        """Column; `columns` while a wrap is pending."""
        return min(self._screen.x, self._screen.columns)

    @x.setter
    def x(self, value: int) -> None:
        self._screen.x = value

    @property
    def y(self) -> int:
        """Row."""
        return self._screen.y

    @y.setter
    def y(self, value: int) -> None:
        self._screen.y = value

    @property
    def hidden(self) -> bool:
        """Whether the cursor is hidden (DECTCEM)."""
        return not self._screen.modes.cursor_visible

    @hidden.setter
    def hidden(self, value: bool) -> None:
        self._screen.modes.cursor_visible = not value

    @property
    def attrs(self) -> pyte.screens.Char:  # type: ignore[override]  # only SGR sets it
        """The rendition of what is written next."""
        return self._screen.char(" ", self._screen.style)


class Screen(DeviceControl):
    """A screen that pyte's own stream, or ours, can drive.

    Args:
        columns: Width in cells.
        lines: Height in rows.
        scrollback: Lines to keep that left the main screen at its top.
    """

    def __init__(self, columns: int, lines: int, scrollback: int = 0) -> None:
        self._dirty: set[int] = set()
        self._dirty_tick = 0
        super().__init__(columns, lines, scrollback)
        self.cursor = CursorProxy(self)
        self.buffer = BufferView(self)  # type: ignore[assignment]  # reads like pyte's dictionaries

    @property
    def display(self) -> list[str]:
        """One string a row, `columns` cells wide."""
        return [row.content(self.columns) for row in self.rows]

    @property
    def dirty(self) -> set[int]:  # type: ignore[override]  # the set itself is kept
        """Rows to be drawn again; whoever draws them clears the set."""
        if self.all_changed > self._dirty_tick:
            self._dirty.update(range(self.lines))
        else:
            self._dirty.update(y for y, row in enumerate(self.rows) if row.stamp > self._dirty_tick)
        self._dirty_tick = self.tick
        self.tick += 1
        return self._dirty

    def bell(self, *_args: object) -> None:
        """BEL."""
        self.tell(Bell())

    def select_graphic_rendition(self, *attrs: int) -> None:
        """SGR, with the parameters as numbers."""
        keep, add = self.sgr.change(";".join(map(str, attrs)))
        self.style = self.style & keep | add

    def char(self, text: str, style: int) -> pyte.screens.Char:
        """A cell as pyte has it."""
        return Line.char(text, self.table.style(style & ((1 << LINK_SHIFT) - 1)))

    def write_process_input(self, data: str) -> None:
        """Take what the child is to be answered; pyte's hook for subclasses."""

    def debug(self, *args: object, **kwargs: object) -> None:
        """Unknown sequences come here from pyte's own stream."""
