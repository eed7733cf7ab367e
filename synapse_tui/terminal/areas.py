"""Rectangular areas (VT420, xterm ctlseqs): copy, fill, erase, change of attributes, checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from synapse_tui.system.dataclass import dataclass

from .cells import narrowed
from .grid import Grid, since_level
from .style import (
    ATTRIBUTES,
    BG,
    BLINK,
    BOLD,
    FG,
    HIDDEN,
    REVERSE,
    UNDERLINE,
    UNDERLINE_COLOR,
    UNDERLINE_SHIFT,
    erased,
    unparse,
)

_SINGLE_UNDERLINE = 1 << UNDERLINE_SHIFT
_SET = {1: BOLD, 4: _SINGLE_UNDERLINE, 5: BLINK, 7: REVERSE, 8: HIDDEN}
_CLEAR = {22: BOLD, 24: UNDERLINE, 25: BLINK, 27: REVERSE, 28: HIDDEN}
_ALL = BOLD | UNDERLINE | BLINK | REVERSE | HIDDEN


class Area(NamedTuple):
    """Cells from (left, top) to (right, bottom), inclusive, counted from 0."""

    top: int
    left: int
    bottom: int
    right: int


def _shared(one: int, other: int) -> int:
    common = one & other & (ATTRIBUTES & ~UNDERLINE)
    for field in (UNDERLINE, FG, BG, UNDERLINE_COLOR):
        if one & field == other & field:
            common |= one & field
    return common


def _whole(cells: list[str], torn: bool) -> list[str]:
    """Return cells without half a wide character at either end; `torn` if the last one's half is cut off."""
    if torn:
        cells[-1] = narrowed(cells[-1])
    if cells[0] == "":
        cells[0] = " "
    return cells


POSITIVE, NO_ATTRIBUTES, NO_TRIM, ONLY_DRAWN, WHOLE_CODES = 1, 2, 4, 8, 16
"""Flags of XTCHECKSUM (xterm ctlseqs); 0 is what DEC's terminals do."""

_WEIGHTS = ((UNDERLINE, 0x10), (REVERSE, 0x20), (BLINK, 0x40), (BOLD, 0x80))
_BLANK = 0x20


@dataclass(slots=True)
class _Sum:
    flags: int
    drawn: int = 0  # Sum of the cells that were written to
    # Number of blanks. Rows do not record which blanks were written: trailing ones count as never written,
    # others as written
    blanks: int = 0
    first: bool = True  # The first cell always counts

    def add(self, cells: Sequence[str], styles: Sequence[int]) -> None:
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
        """The right half of a wide character counts as a blank."""
        if len(cell) != 1:
            code = ord(cell[0]) if cell else _BLANK
            marks = sum(map(ord, cell[1:])) if self.flags & NO_TRIM and not self.flags & WHOLE_CODES else 0
            return marks + (code if self.flags & WHOLE_CODES else code & 0xFF)
        return ord(cell) if self.flags & WHOLE_CODES else ord(cell) & 0xFF

    def _weights(self, styles: Sequence[int]) -> int:
        if self.flags & NO_ATTRIBUTES:
            return 0
        known = {style: sum(part for mask, part in _WEIGHTS if style & mask) for style in set(styles)}
        return sum(map(known.__getitem__, styles))

    @property
    def result(self) -> int:
        value = self.drawn
        if self.flags & NO_TRIM and not self.flags & ONLY_DRAWN:
            value += _BLANK * self.blanks
        return (value if self.flags & POSITIVE else -value) & 0xFFFF


class Areas(Grid):
    @since_level(4)
    def copy_area(self, *parameters: int) -> None:
        """DECCRA: top, left, bottom, right, page, then top, left and page of the target."""
        area = self._area(parameters)
        target = self._area((*parameters[5:7], 0, 0))
        if area is None or target is None:
            return
        height = min(area.bottom - area.top, target.bottom - target.top) + 1
        width = min(area.right - area.left, target.right - target.left) + 1
        end = area.left + width
        blocks = []
        for row in self.rows[area.top : area.top + height]:
            cells = row.expand(self.columns)
            torn = end < self.columns and cells[end] == ""
            blocks.append((_whole(cells[area.left : end], torn), row.styles[area.left : end], row.wide))
        for row, (cells, styles, wide) in zip(self.rows[target.top :], blocks, strict=False):
            row.split(target.left, target.left + width, self.columns)
            row.put(target.left, cells, styles, self.columns)
            row.wide = row.wide or wide
            row.stamp = self.tick

    @since_level(4)
    def fill_area(self, char: int = 0, *parameters: int) -> None:
        """DECFRA: a character of Latin-1 and the area."""
        area = self._area(parameters)
        if area is None or not (0x20 <= char <= 0x7E or 0xA0 <= char <= 0xFF):
            return
        text = chr(char) * (area.right - area.left + 1)
        for row in self.rows[area.top : area.bottom + 1]:
            row.write(area.left, text, self.style, self.columns)
            row.stamp = self.tick

    @since_level(4)
    def erase_area(self, *parameters: int) -> None:
        """DECERA."""
        area = self._area(parameters)
        if area is not None:
            for row in self.rows[area.top : area.bottom + 1]:
                row.erase(area.left, area.right + 1, erased(self.style), self.columns)
                row.stamp = self.tick

    @since_level(4)
    def selective_erase_area(self, *parameters: int) -> None:
        """DECSERA: erase cells not protected by DECSCA; ISO's SPA does not protect (xterm)."""
        area = self._area(parameters)
        if area is not None:
            for y in range(area.top, area.bottom + 1):
                self.erase_cells(y, area.left, area.right + 1, not self.iso_protection)

    @since_level(4)
    def change_attributes(self, *parameters: int) -> None:
        """DECCARA: the area, then SGR parameters 0, 1, 4, 5, 7, 8, or 22 to 28."""
        keep, add = -1, 0
        for parameter in parameters[4:] or (0,):
            if parameter == 0:
                keep, add = keep & ~_ALL, 0
            elif parameter in _SET:
                add |= _SET[parameter]
            elif parameter in _CLEAR:
                keep, add = keep & ~_CLEAR[parameter], add & ~_CLEAR[parameter]
        for y, left, end in self._stretches(parameters):
            self._restyle(y, left, end, lambda style: style & keep | add)

    @since_level(4)
    def reverse_attributes(self, *parameters: int) -> None:
        """DECRARA: the area, then SGR parameters of the attributes to reverse; 0 means all."""
        toggled = 0
        for parameter in parameters[4:] or (0,):
            toggled |= _ALL & ~UNDERLINE | _SINGLE_UNDERLINE if parameter == 0 else _SET.get(parameter, 0)
        for y, left, end in self._stretches(parameters):
            self._restyle(y, left, end, lambda style: style ^ toggled)

    @since_level(4)
    def select_attribute_extent(self, how: int = 0) -> None:
        """DECSACE: DECCARA and DECRARA affect a rectangle (2), or all cells from the first to the last."""
        if how <= 2:
            self.attribute_extent = how

    def report_area_rendition(self, *parameters: int) -> None:
        """XTREPORTSGR: the rendition common to all cells of the area, as `CSI ... m`."""
        area, common = self._area(parameters), None
        if area is not None:
            for row in self.rows[area.top : area.bottom + 1]:
                row.expand(self.columns)
                for style in set(row.styles[area.left : area.right + 1]):
                    common = style if common is None else _shared(common, style)
        self.reply(f"\x1b[{unparse(common or 0)}m")

    def _area(self, parameters: tuple[int, ...]) -> Area | None:
        """Return the area of four parameters from 1, clipped to screen or margins; None if it is empty."""
        top, left, bottom, right = (*parameters[:4], 0, 0, 0, 0)[:4]
        first_row, first_column, last_row, last_column = 0, 0, self.lines - 1, self.columns - 1
        if self.modes.origin:
            first_row, first_column, last_row, last_column = self.top, self.left, self.bottom, self.right
        area = Area(
            first_row + (top or 1) - 1,
            first_column + (left or 1) - 1,
            min(first_row + bottom - 1 if bottom else last_row, last_row),
            min(first_column + right - 1 if right else last_column, last_column),
        )
        return area if area.top <= area.bottom and area.left <= area.right else None

    def _stretches(self, parameters: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
        area = self._area(parameters)
        if area is None:
            return
        for y in range(area.top, area.bottom + 1):
            whole = self.attribute_extent != 2
            left = area.left if y == area.top or not whole else 0
            end = area.right + 1 if y == area.bottom or not whole else self.columns
            yield y, left, end

    def _restyle(self, y: int, left: int, end: int, change: Callable[[int], int]) -> None:
        row = self.rows[y]
        cells = row.expand(self.columns)
        # A wide character belongs to the area of its first cell.
        left += cells[left] == ""
        end += end < self.columns and cells[end] == ""
        styles = row.styles[left:end]
        changed = {style: change(style) for style in set(styles)}
        row.styles[left:end] = map(changed.__getitem__, styles)
        row.stamp = self.tick

    @since_level(4)
    def select_checksum(self, flags: int = 0) -> None:
        self.checksum_flags = flags & 0x3F

    @since_level(4)
    def report_checksum(self, request: int = 0, _page: int = 0, *parameters: int) -> None:
        """DECRQCRA: `DCS request ! ~ hhhh ST`, hexadecimal."""
        area, total = self._area(parameters), _Sum(self.checksum_flags)
        if area is not None:
            columns = slice(area.left, area.right + 1)
            for row in self.rows[area.top : area.bottom + 1]:
                total.add(row.expand(self.columns)[columns], row.styles[columns])
        self.reply(f"\x1bP{request}!~{total.result:04X}\x1b\\")


def _end(cells: Sequence[str], styles: Sequence[int]) -> int:
    end = len(cells)
    while end and cells[end - 1] == " " and not (styles and styles[end - 1] & ATTRIBUTES):
        end -= 1
    return end
