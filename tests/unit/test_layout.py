"""The tree of splits: cells, minimum sizes, moves of a rule, and what is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.widgets.layout import (
    GAP,
    LEAST_HEIGHT,
    LEAST_WIDTH,
    Axis,
    Node,
    Split,
    Tile,
    even,
    fit,
    from_json,
    join,
    least,
    move,
    neighbour,
    only,
    panes,
    rule_beside,
    rules,
    split,
    swap,
    tiles,
    to_json,
)

IDS = "abcdefgh"
axes: st.SearchStrategy[Axis] = st.sampled_from(["row", "column"])


@st.composite
def trees(draw: st.DrawFn) -> Node:
    node: Node = IDS[0]
    for new in IDS[1 : draw(st.integers(1, len(IDS)))]:
        node = split(node, draw(st.sampled_from(panes(node))), draw(axes), new)
    return node


@st.composite
def placed(draw: st.DrawFn) -> tuple[Node, int, int]:
    node = draw(trees())
    wide, high = least(node)
    return node, draw(st.integers(wide, wide + 150)), draw(st.integers(high, high + 60))


def cells_of(node: Node, width: int, height: int) -> list[tuple[int, int]]:
    gaps = [rule.tile for rule in rules(node, width, height) if rule.axis == "row"]
    every = [*tiles(node, width, height).values(), *gaps]
    return [(x, y) for t in every for x in range(t.x, t.x + t.width) for y in range(t.y, t.y + t.height)]


@given(placed())
def test_panes_and_rules_partition_the_cells(given_tree):
    node, width, height = given_tree
    cells = cells_of(node, width, height)
    assert len(cells) == len(set(cells)) == width * height


def at_least_the_minimum(node: Node, width: int, height: int) -> bool:
    found = tiles(node, width, height).values()
    return all(tile.width >= LEAST_WIDTH and tile.height >= LEAST_HEIGHT for tile in found)


@given(placed(), st.data(), st.integers(-200, 200))
def test_a_moved_rule_keeps_the_sum_the_minimum_and_all_else(given_tree, data, cells):
    node, width, height = given_tree
    assert at_least_the_minimum(node, width, height)
    every = rules(node, width, height)
    if not every:
        return
    rule = data.draw(st.sampled_from(every))
    after = move(node, width, height, rule, cells)
    assert panes(after) == panes(node)
    assert at_least_the_minimum(after, width, height)
    assert len(set(cells_of(after, width, height))) == width * height
    still = [each for each in every if each.path[: len(rule.path)] != rule.path]
    assert all(each in rules(after, width, height) for each in still)
    moved = next(r for r in rules(after, width, height) if (r.path, r.index) == (rule.path, rule.index))
    shift = moved.tile.x - rule.tile.x if rule.axis == "row" else moved.tile.y - rule.tile.y
    assert abs(shift) <= abs(cells)
    assert shift * cells >= 0
    if shift == cells:
        back = move(after, width, height, moved, -cells)
        assert tiles(back, width, height) == tiles(node, width, height)


@given(trees(), st.integers(1, 300), st.integers(1, 100), st.data())
def test_what_has_no_room_is_left_out_but_the_focused_pane(node, width, height, data):
    focused = data.draw(st.sampled_from(panes(node)))
    shown = fit(node, width, height, focused)
    assert focused in panes(shown)
    assert set(panes(shown)) <= set(panes(node))
    wide, high = least(shown)
    assert isinstance(shown, str) or (wide <= width and high <= height)
    if least(node) <= (width, height) and least(node)[1] <= height:
        assert shown == node


@given(trees(), st.data())
def test_trees_stay_normal(node, data):
    kept = data.draw(st.sets(st.sampled_from(panes(node)), min_size=1))
    smaller = only(node, kept)
    assert smaller is not None
    assert panes(smaller) == [each for each in panes(node) if each in kept]
    one, other = data.draw(st.sampled_from(panes(node))), data.draw(st.sampled_from(panes(node)))
    assert swap(swap(node, one, other), one, other) == node
    for each in (node, smaller, even(node)):
        assert normal(each)
        assert from_json(to_json(each)) == each


def normal(node: Node) -> bool:
    return isinstance(node, str) or (
        len(node.parts) == len(node.weights) > 1
        and all(
            normal(part) and not (isinstance(part, Split) and part.axis == node.axis) for part in node.parts
        )
    )


def test_a_row_stays_one_row_and_the_new_pane_takes_half():
    row = split(split("a", "a", "row", "b"), "b", "row", "c")
    assert tiles(row, 121, 40) == {
        "a": Tile(0, 0, 59, 40),
        "b": Tile(60, 0, 30, 40),
        "c": Tile(91, 0, 30, 40),
    }
    assert tiles(even(row), 122, 40) == {
        name: Tile(x, 0, 40, 40) for name, x in zip("abc", (0, 41, 82), strict=True)
    }
    assert only(row, {"a", "c"}) == join("row", [("a", 1.0), ("c", 0.5)])


def test_neighbours_and_the_rules_the_keys_move():
    node = split(split("a", "a", "row", "b"), "b", "column", "c")  # a | b over c
    where = tiles(node, 121, 40)
    assert neighbour(where, "a", "right") in ("b", "c")
    assert (neighbour(where, "b", "left"), neighbour(where, "c", "up")) == ("a", "b")
    assert (neighbour(where, "a", "up"), neighbour(where, "a", "left"), neighbour(where, "c", "down")) == (
        None,
        None,
        None,
    )
    beside = rule_beside(node, 121, 40, "c", "row")
    assert beside is not None
    assert beside.tile == Tile(60, 0, GAP, 40)
    assert rule_beside("a", 121, 40, "a", "row") is None
    assert rule_beside(node, 121, 40, "a", "column") is None
    above = rule_beside(node, 121, 40, "c", "column")
    assert above is not None
    assert above.tile == Tile(61, 20, 60, 1)


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        {},
        {"axis": "row"},
        {"axis": "x", "parts": ["a"], "weights": [1]},
        {"axis": "row", "parts": ["a", None], "weights": [1, 1]},
        {"axis": "row", "parts": ["a", "b"], "weights": [1, 0]},
        {"axis": "row", "parts": ["a", "b"], "weights": [1]},
        {"axis": "row", "parts": [], "weights": []},
    ],
)
def test_what_is_no_tree_is_refused(value):
    assert from_json(value) is None
