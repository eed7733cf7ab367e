"""Where panes stand: the arithmetic."""

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.widgets.deck import (
    GAP,
    MIN_HEIGHT,
    MIN_WIDTH,
    Layout,
    Tile,
    arrange,
)

layouts = st.sampled_from(get_args(Layout))


@settings(deadline=None)
@given(layouts, st.integers(1, 12), st.integers(1, 300), st.integers(1, 100), st.data())
def test_tiles_cover_the_deck_without_overlap(layout, count, width, height, data):
    focused = data.draw(st.integers(0, count - 1))
    main = data.draw(st.integers(0, count - 1))

    tiles = arrange(layout, count, width, height, focused=focused, main=main)

    assert focused in tiles, "the pane in focus is always shown"
    assert all(tile.width > 0 and tile.height > 0 for tile in tiles.values())
    assert max(tile.y + tile.height for tile in tiles.values()) == height
    for y in range(height):
        in_row = [tile for tile in tiles.values() if 0 <= y - tile.y < tile.height]
        row = sorted((tile.x, tile.x + tile.width) for tile in in_row)
        assert (row[0][0], row[-1][1]) == (0, width)
        assert all(0 <= start - end <= GAP for (_, end), (start, _) in pairwise(row))


@given(layouts, st.integers(2, 12), st.integers(MIN_WIDTH, 300), st.integers(MIN_HEIGHT, 100), st.data())
def test_no_tile_is_too_small_to_use(layout, count, width, height, data):
    tiles = arrange(layout, count, width, height, focused=data.draw(st.integers(0, count - 1)))

    assert all(tile.width >= MIN_WIDTH and tile.height >= MIN_HEIGHT for tile in tiles.values())


@pytest.mark.parametrize(
    ("layout", "count", "size", "expected"),
    [
        ("tabs", 3, (80, 21), {1: Tile(0, 0, 80, 21)}),
        ("columns", 2, (81, 21), {0: Tile(0, 0, 40, 21), 1: Tile(41, 0, 40, 21)}),
        (
            "grid",
            4,
            (201, 60),
            {
                0: Tile(0, 0, 100, 30),
                1: Tile(101, 0, 100, 30),
                2: Tile(0, 30, 100, 30),
                3: Tile(101, 30, 100, 30),
            },
        ),
        ("main", 2, (80, 22), {0: Tile(0, 0, 43, 22), 1: Tile(44, 0, 36, 22)}),
        ("main", 3, (80, 22), {0: Tile(0, 0, 43, 22), 1: Tile(44, 0, 36, 11), 2: Tile(44, 11, 36, 11)}),
        ("main", 2, (72, 22), {1: Tile(0, 0, 72, 22)}),
        ("main", 3, (121, 40), {0: Tile(0, 0, 72, 40), 1: Tile(73, 0, 48, 20), 2: Tile(73, 20, 48, 20)}),
    ],
)
def test_layouts(layout, count, size, expected):
    assert arrange(layout, count, *size, focused=1) == expected
