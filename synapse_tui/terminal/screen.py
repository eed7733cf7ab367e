"""The screen: pyte's, with all the families of functions put together, and pyte's ways of reading it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyte.screens

from .charsets import code_of, pyte_map
from .damage_tracker import DamageTracker
from .dcs import DeviceControl
from .events import Bell
from .line import Line, packed_style
from .row import Row
from .state import SavedCursor
from .style import LINK_SHIFT, REVERSE
from .width import cluster_width

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


class BufferLine(Line):
    """A row of `screen.buffer`: its cells can be set."""

    __slots__ = ("_screen",)

    def __init__(self, row: Row, screen: Screen) -> None:
        super().__init__(row, screen.table, screen.columns)
        self._screen = screen

    def __getitem__(self, x: int) -> pyte.screens.Char:
        """The cell in column `x`; reversed on a reversed screen (DECSCNM)."""
        char = super().__getitem__(x)
        return char._replace(reverse=not char.reverse) if self._screen.modes.reverse_video else char

    def __setitem__(self, x: int, char: pyte.screens.Char) -> None:
        """Put a character; a wide one takes the next cell too, for which pyte has an empty one.

        Raises:
            IndexError: There is no such column.
            ValueError: A colour is unknown.
        """
        if not 0 <= x < len(self):
            raise IndexError(f"column {x} is not on the screen, which has {len(self)}")
        row, screen, style = self._row, self._screen, packed_style(char)
        if self._screen.modes.reverse_video:
            style ^= REVERSE
        if not char.data and x and row.cell(x)[0] == "":
            return
        text = CONTROLS.sub("", char.data) or " "
        cells = [text, ""][: cluster_width(text)]
        if x + len(cells) > len(self):
            cells = [" "]
        row.split(x, x + len(cells), len(self))
        row.put(x, cells, [style] * len(cells), len(self))
        row.wide = row.wide or len("".join(cells)) != len(cells) or "" in cells
        row.stamp = screen.tick


class BufferView(Mapping[int, BufferLine]):
    """`screen.buffer` as pyte has it: rows by number, cells by column."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __getitem__(self, y: int) -> BufferLine:
        return BufferLine(self._screen.rows[y], self._screen)

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
    def attrs(self) -> pyte.screens.Char:
        """The rendition of what is written next."""
        return self._screen.char(" ", self._screen.style)

    @attrs.setter
    def attrs(self, char: pyte.screens.Char) -> None:
        self._screen.style = packed_style(char)


class Screen(DeviceControl):
    """A screen that pyte's own stream, or ours, can drive.

    Args:
        columns: Width in cells.
        lines: Height in rows.
        scrollback: Lines to keep that left the main screen at its top.
    """

    def __init__(self, columns: int, lines: int, scrollback: int = 0) -> None:
        self._dirty: set[int] = set()
        self.savepoints: list[tuple[SavedCursor, bool]] = []  # type: ignore[assignment]  # pyte's have its own
        """What `save_cursor` saved, with whether autowrap was on."""
        self._changes = DamageTracker(self, scrolls=False)
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
        self._dirty.update(self._changes.take().rows)
        return self._dirty

    @property
    def default_char(self) -> pyte.screens.Char:
        """An empty cell; reversed on a reversed screen (DECSCNM)."""
        return pyte.screens.Char(" ", reverse=self.modes.reverse_video)

    @property
    def charset(self) -> int:
        """Which of G0 to G3 is in use."""
        return self.shift

    @charset.setter
    def charset(self, number: int) -> None:
        self.lock_shift(number)

    @property
    def g0_charset(self) -> str:
        """G0 as pyte has it: the character for each of the 256 codes."""
        return pyte_map(self.charsets[0])

    @g0_charset.setter
    def g0_charset(self, mapping: str) -> None:
        self.define_charset(code_of(mapping), "(")

    @property
    def g1_charset(self) -> str:
        """G1, likewise."""
        return pyte_map(self.charsets[1])

    @g1_charset.setter
    def g1_charset(self, mapping: str) -> None:
        self.define_charset(code_of(mapping), ")")

    def save_cursor(self) -> None:
        """Put the cursor on pyte's stack; what a child sends (DECSC) has one place, as in every terminal."""
        here = SavedCursor(self.x, self.y, self.style, tuple(self.charsets), self.shift, self.modes.origin)
        self.savepoints.append((here, self.modes.autowrap))

    def restore_cursor(self) -> None:
        """Take the cursor from the top of pyte's stack; home when it is empty."""
        if not self.savepoints:
            self.set_origin(False)
            self.cursor_position()
            return
        saved, autowrap = self.savepoints.pop()
        self.style, self.charsets, self.shift = saved.style, list(saved.charsets), saved.shift
        self.select_charset()
        for number, on in ((6, saved.origin), (7, autowrap)):
            if on:
                self.switch_mode(number, True, private=True)
        self.x = min(saved.x, self.columns - 1)
        self.y = max(self.top, min(saved.y, self.bottom))

    def draw(self, data: str) -> None:
        """Write text at the cursor; control characters in it are left out. Our stream hands over none."""
        text = CONTROLS.sub("", data)
        if text:
            super().draw(text)

    def bell(self, *_args: object) -> None:
        """BEL."""
        self.tell(Bell())

    def select_graphic_rendition(self, *attrs: int) -> None:
        """SGR, with the parameters as numbers."""
        self.render(";".join(map(str, attrs)))

    def render(self, parameters: str) -> None:
        """SGR, with the parameters as they are sent."""
        keep, add = self.sgr.change(parameters)
        self.style = self.style & keep | add

    def char(self, text: str, style: int) -> pyte.screens.Char:
        """A cell as pyte has it."""
        return Line.char(text, self.table.style(style & ((1 << LINK_SHIFT) - 1)))

    def write_process_input(self, data: str) -> None:
        """Take what the child is to be answered; pyte's hook for subclasses."""

    def debug(self, *args: object, **kwargs: object) -> None:
        """Unknown sequences come here from pyte's own stream."""
