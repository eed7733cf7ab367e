"""Where panes stand: pure arithmetic from a layout, a count and a size to rectangles of cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal, get_args

Layout = Literal["tabs", "columns", "grid", "main"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

MIN_WIDTH = 36
"""Least width of a tile, in cells: below it agents cannot draw their frames."""
MIN_HEIGHT = 8
"""Least height of a tile, in rows, its title included."""
GAP = 1
"""Cells between two tiles side by side; the titles part those on top of one another."""
MAIN_SHARE = 0.6
"""Part of the width that the main pane takes, where the others can be used beside it."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of cells, from the top left of the deck."""

    x: int
    y: int
    width: int
    height: int


def as_layout(name: str) -> Layout:
    """The layout of that name, or tabs."""
    return name if name in LAYOUTS else "tabs"


def next_layout(layout: Layout) -> Layout:
    """The layout after this one, from the last to the first."""
    return LAYOUTS[(LAYOUTS.index(layout) + 1) % len(LAYOUTS)]


def arrange(
    layout: Layout, count: int, width: int, height: int, *, focused: int = 0, main: int = 0
) -> Mapping[int, Tile]:
    """Place panes; those that would be too small to use are left out, never the one in focus.

    Args:
        layout: How.
        count: Number of panes.
        width: Cells of the deck.
        height: Rows of the deck.
        focused: Index of the pane that must be shown.
        main: Index of the large pane of the layout `main`.

    Returns:
        The tiles of the panes that are shown, by index. Together they cover the deck but for the gaps.
    """
    if count <= 0 or width <= 0 or height <= 0:
        return {}
    whole = Tile(0, 0, width, height)
    if layout == "tabs" or count == 1:
        return {focused: whole}
    if layout == "columns":
        shown = _window(range(count), max(1, (width + GAP) // (MIN_WIDTH + GAP)), focused)
        return dict(zip(shown, _row(whole, len(shown)), strict=True))
    if layout == "grid":
        return _grid(whole, count, focused)
    return _main(whole, count, focused, main)


def _main(whole: Tile, count: int, focused: int, main: int) -> Mapping[int, Tile]:
    room = max(1, whole.height // MIN_HEIGHT)
    stack = _window((index for index in range(count) if index != main), room, focused)
    room_beside = whole.width - GAP
    left = min(round(room_beside * MAIN_SHARE), room_beside - MIN_WIDTH)
    right = room_beside - left
    if left < MIN_WIDTH:
        return {focused: whole}
    placed = {main: Tile(whole.x, whole.y, left, whole.height)}
    side = Tile(whole.x + left + GAP, whole.y, right, whole.height)
    return placed | dict(zip(stack, _column(side, len(stack)), strict=True))


def _grid(whole: Tile, count: int, focused: int) -> Mapping[int, Tile]:
    most_columns = max(1, (whole.width + GAP) // (MIN_WIDTH + GAP))
    most_rows = max(1, whole.height // MIN_HEIGHT)
    shown = _window(range(count), most_columns * most_rows, focused)
    columns = max(
        (c for c in range(1, min(most_columns, len(shown)) + 1) if ceil(len(shown) / c) <= most_rows),
        key=lambda c: _usefulness(whole, c, ceil(len(shown) / c)),
    )
    tiles: list[Tile] = []
    rows = ceil(len(shown) / columns)
    for number, band in enumerate(_column(whole, rows)):
        tiles += _row(band, min(columns, len(shown) - number * columns))
    return dict(zip(shown, tiles, strict=True))


def _usefulness(whole: Tile, columns: int, rows: int) -> float:
    """How well agents can work in tiles of that size; more than 80 by 24 is no better."""
    width = (whole.width - GAP * (columns - 1)) / columns
    height = whole.height / rows
    return min(width / 80, 1.0) * min(height / 24, 1.0)


def _window(indices: Iterable[int], room: int, focused: int) -> list[int]:
    """The page of `room` indices that has the focused one; the first page when it is not among them."""
    every = list(indices)
    place = every.index(focused) if focused in every else 0
    start = min(place // room * room, max(0, len(every) - room))
    return every[start : start + room]


def _row(tile: Tile, count: int) -> list[Tile]:
    edges = [tile.x + round(number * (tile.width + GAP) / count) for number in range(count + 1)]
    return [Tile(a, tile.y, b - a - GAP, tile.height) for a, b in itertools.pairwise(edges)]


def _column(tile: Tile, count: int) -> list[Tile]:
    edges = [tile.y + round(number * tile.height / count) for number in range(count + 1)]
    return [Tile(tile.x, a, tile.width, b - a) for a, b in itertools.pairwise(edges)]
