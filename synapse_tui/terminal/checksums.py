"""DECRQCRA: the checksum of an area of the screen, as xterm works it out (screen.c, `xtermCheckRect`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .levels import since_level
from .rectangles import Rectangles
from .style import ATTRIBUTES, BLINK, BOLD, REVERSE, UNDERLINE

POSITIVE, NO_ATTRIBUTES, NO_TRIM, ONLY_DRAWN, WHOLE_CODES = 1, 2, 4, 8, 16
"""What XTCHECKSUM changes (xterm ctlseqs); 0 is what DEC's terminals do."""

_WEIGHTS = ((UNDERLINE, 0x10), (REVERSE, 0x20), (BLINK, 0x40), (BOLD, 0x80))
_BLANK = 0x20


@dataclass(slots=True)
class _Sum:
    """Adds up rows.

    Attributes:
        flags: What XTCHECKSUM chose.
        drawn: Sum of the cells that were written to.
        blanks: How many others there are. A row does not keep which of its blanks were written: those at its
            end count as never written, the others as written.
        first: No cell was counted yet: the first one counts always.
    """

    flags: int
    drawn: int = 0
    blanks: int = 0
    first: bool = True

    def add(self, cells: Sequence[str], styles: Sequence[int]) -> None:
        """A row: its cells, and their packed styles."""
        if any(styles):
            end = _end(cells, styles)
            weights = self._weights(styles[:end])
        else:
            end, weights = _end(cells, ()), 0
        text = "".join(cells[:end])
        plain = text.isascii() and len(text) == end
        self.drawn += weights + (sum(text.encode()) if plain else sum(map(self._code, cells[:end])))
        if self.first and not end and not self.flags & NO_TRIM:
            self.drawn += _BLANK
            end = 1
        self.blanks += len(cells) - end
        self.first = False

    def _code(self, cell: str) -> int:
        """A cell's character; the right half of a wide one counts as a blank."""
        if len(cell) != 1:
            return self._cluster(cell)
        return ord(cell) if self.flags & WHOLE_CODES else ord(cell) & 0xFF

    def _cluster(self, cell: str) -> int:
        code = ord(cell[0]) if cell else _BLANK
        marks = sum(map(ord, cell[1:])) if self.flags & NO_TRIM and not self.flags & WHOLE_CODES else 0
        return marks + (code if self.flags & WHOLE_CODES else code & 0xFF)

    def _weights(self, styles: Sequence[int]) -> int:
        """What the attributes of some cells add."""
        if self.flags & NO_ATTRIBUTES:
            return 0
        known = {style: sum(part for mask, part in _WEIGHTS if style & mask) for style in set(styles)}
        return sum(map(known.__getitem__, styles))

    @property
    def result(self) -> int:
        """16 bits."""
        value = self.drawn
        if self.flags & NO_TRIM and not self.flags & ONLY_DRAWN:
            value += _BLANK * self.blanks
        return (value if self.flags & POSITIVE else -value) & 0xFFFF


class Checksums(Rectangles):
    """Areas, summed up."""

    @since_level(4)
    def select_checksum(self, flags: int = 0) -> None:
        """XTCHECKSUM: how DECRQCRA works out its sum."""
        self.checksum_flags = flags & 0x3F

    @since_level(4)
    def report_checksum(self, request: int = 0, _page: int = 0, *parameters: int) -> None:
        """DECRQCRA: `DCS request ! ~ hhhh ST`, hexadecimal.

        Args:
            request: A number that the answer repeats.
            parameters: Top, left, bottom and right of the area, from 1.
        """
        area, total = self._area(parameters), _Sum(self.checksum_flags)
        if area is not None:
            columns = slice(area.left, area.right + 1)
            for row in self.rows[area.top : area.bottom + 1]:
                total.add(row.expand(self.columns)[columns], row.styles[columns])
        self.reply(f"\x1bP{request}!~{total.result:04X}\x1b\\")


def _end(cells: Sequence[str], styles: Sequence[int]) -> int:
    """Where the blanks begin that a row ends in; a blank with attributes is none."""
    end = len(cells)
    while end and cells[end - 1] == " " and not (styles and styles[end - 1] & ATTRIBUTES):
        end -= 1
    return end
