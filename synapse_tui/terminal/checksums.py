"""DECRQCRA: the checksum of an area of the screen, as xterm works it out (screen.c, `xtermCheckRect`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag

from .levels import since_level
from .rectangles import Rectangles
from .style import ATTRIBUTES, BLINK, BOLD, REVERSE, UNDERLINE

_WEIGHTS = ((UNDERLINE, 0x10), (REVERSE, 0x20), (BLINK, 0x40), (BOLD, 0x80))
_BLANK = 0x20


class ChecksumFlags(IntFlag):
    """What XTCHECKSUM changes (xterm ctlseqs); 0 is what DEC's terminals do."""

    POSITIVE = 1
    NO_ATTRIBUTES = 2
    NO_TRIM = 4
    ONLY_DRAWN = 8
    WHOLE_CODES = 16


@dataclass(slots=True)
class _Sum:
    """Adds up cells: all of them, and without the blanks that a row ends in."""

    flags: ChecksumFlags
    total: int = 0
    trimmed: int = 0
    first: bool = True

    def add(self, codes: tuple[int, ...], style: int, drawn: bool) -> None:
        """One cell.

        Args:
            codes: Its code points; none for the right half of a wide character.
            style: Its packed style.
            drawn: Whether something was written there.
        """
        flags = self.flags
        code = codes[0] if codes else _BLANK
        if not flags & ChecksumFlags.WHOLE_CODES:
            code &= 0xFF
        if not flags & ChecksumFlags.NO_ATTRIBUTES:
            code += sum(weight for mask, weight in _WEIGHTS if style & mask)
        if self.first or drawn or code != _BLANK or style & ATTRIBUTES:
            self.trimmed += code
        if drawn:
            self.total += code + sum(codes[1:])
        elif not flags & ChecksumFlags.ONLY_DRAWN:
            self.total += code
        self.first = bool(flags & ChecksumFlags.NO_TRIM)

    def add_plain(self, text: str) -> None:
        """A row of ASCII without attributes, as `add` would one by one."""
        written = text.rstrip(" ")
        self.trimmed += sum(written.encode()) + (_BLANK if self.first and not written else 0)
        blanks = 0 if self.flags & ChecksumFlags.ONLY_DRAWN else len(text) - len(written)
        self.total += sum(written.encode()) + _BLANK * blanks
        self.first = bool(self.flags & ChecksumFlags.NO_TRIM)

    @property
    def result(self) -> int:
        """16 bits."""
        value = self.total if self.flags & ChecksumFlags.NO_TRIM else self.trimmed
        return (value if self.flags & ChecksumFlags.POSITIVE else -value) & 0xFFFF


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
        area, total = self._area(parameters), _Sum(ChecksumFlags(self.checksum_flags))
        if area is not None:
            for row in self.rows[area.top : area.bottom + 1]:
                cells = row.expand(self.columns)[area.left : area.right + 1]
                styles = row.styles[area.left : area.right + 1]
                text = "".join(cells)
                if text.isascii() and len(text) == len(cells) and not any(styles):
                    total.add_plain(text)
                else:
                    for cell in _codes(cells, styles):
                        total.add(*cell)
        self.reply(f"\x1bP{request}!~{total.result:04X}\x1b\\")


def _codes(cells: list[str], styles: list[int]) -> Iterator[tuple[tuple[int, ...], int, bool]]:
    """Code points, style, and whether the cell was written to: blanks at the end of a row were not."""
    last = max((x for x, cell in enumerate(cells) if cell != " "), default=-1)
    for x, (cell, style) in enumerate(zip(cells, styles, strict=True)):
        yield tuple(map(ord, cell)), style, x <= last
