"""Where panes are: a tree of splits, and the trees of the layouts that have a name. Pure functions.

A node is the id of a pane, or a split: parts side by side (a row) or above each other (a column). Between the
parts of a row is a rule of one cell; in a column the title of the lower pane is the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Literal, TypeAlias, get_args

from synapse_tui.system.dataclass import dataclass

Layout = Literal["tabs", "columns", "grid", "main"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
SHOW_ALL: tuple[Layout, ...] = ("columns", "grid", "main")  # show every agent for which there is room
Axis = Literal["row", "column"]
Direction = Literal["left", "right", "up", "down"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

LEAST_WIDTH = 20  # minimum cells of a pane
LEAST_HEIGHT = 5  # minimum rows of a pane, including its title
GAP = 1  # cells between the parts of a row
# In layouts by name panes are larger: narrower ones break the frames that agents draw.
MIN_WIDTH = 36
MIN_HEIGHT = 8
MAIN_SHARE = 0.6  # share of the width for the main pane, if the others remain usable beside it


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of cells, relative to the top left of the deck."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Split:
    """Parts in a row or in a column; a part is never a split of the same axis.

    Attributes:
        weights: The parts' shares of the room, in any unit.
    """

    axis: Axis
    parts: tuple[Node, ...]
    weights: tuple[float, ...]


Node: TypeAlias = "str | Split"
Path: TypeAlias = tuple[int, ...]  # of a split: the indices of the parts that lead to it


@dataclass(frozen=True, slots=True)
class Divider:
    """What separates two parts of a split, and can be moved.

    Attributes:
        index: Of the part before it.
        tile: The cells of the rule; for a column, the titles of the panes below.
    """

    path: Path
    index: int
    axis: Axis
    tile: Tile


def axis_of(direction: Direction) -> Axis:
    return "row" if direction in ("left", "right") else "column"


def panes(node: Node) -> list[str]:
    return [node] if isinstance(node, str) else [pane for part in node.parts for pane in panes(part)]


def join(axis: Axis, parts: Sequence[tuple[Node, float]]) -> Node:
    """Return a split of at least one part; parts that are splits of the same axis become a part of it."""
    if len(parts) == 1:
        return parts[0][0]
    flat: list[tuple[Node, float]] = []
    for part, weight in parts:
        if isinstance(part, Split) and part.axis == axis:
            scale = weight / sum(part.weights)
            flat += [(inner, own * scale) for inner, own in zip(part.parts, part.weights, strict=True)]
        else:
            flat.append((part, weight))
    return Split(axis, tuple(part for part, _ in flat), tuple(weight for _, weight in flat))


def least(node: Node) -> tuple[int, int]:
    """Return the minimum width and height."""
    if isinstance(node, str):
        return LEAST_WIDTH, LEAST_HEIGHT
    widths, heights = zip(*map(least, node.parts), strict=True)
    if node.axis == "row":
        return sum(widths) + GAP * (len(widths) - 1), max(heights)
    return max(widths), sum(heights)


# Cells


def tiles(node: Node, width: int, height: int) -> dict[str, Tile]:
    """Return where the panes are. Where a tree does not fit (`fit`), panes are smaller than the minimum."""
    return {part: tile for _, part, tile in _walk(node, Tile(0, 0, width, height)) if isinstance(part, str)}


def rules(node: Node, width: int, height: int) -> list[Divider]:
    found = []
    for path, part, whole in _walk(node, Tile(0, 0, width, height)):
        if isinstance(part, str):
            continue
        for index, tile in enumerate(_divide(part, whole)[1:]):
            if part.axis == "row":
                line = Tile(tile.x - GAP, whole.y, GAP, whole.height)
            else:
                line = Tile(whole.x, tile.y, whole.width, 1)
            found.append(Divider(path, index, part.axis, line))
    return found


def _walk(node: Node, tile: Tile, path: Path = ()) -> Iterator[tuple[Path, Node, Tile]]:
    yield path, node, tile
    if isinstance(node, Split):
        for index, (part, inner) in enumerate(zip(node.parts, _divide(node, tile), strict=True)):
            yield from _walk(part, inner, (*path, index))


def _divide(split: Split, tile: Tile) -> list[Tile]:
    found, x, y = [], tile.x, tile.y
    for size in _sizes(split, tile.width if split.axis == "row" else tile.height):
        if split.axis == "row":
            found.append(Tile(x, y, size, tile.height))
            x += size + GAP
        else:
            found.append(Tile(x, y, tile.width, size))
            y += size
    return found


def _sizes(split: Split, cells: int) -> list[int]:
    """Divide cells by weight, but at least the minimum for each part; the sum is exact."""
    row = split.axis == "row"
    room = cells - GAP * (len(split.parts) - 1) if row else cells
    mins = [least(part)[0 if row else 1] for part in split.parts]
    if sum(mins) > room:
        mins = [0] * len(mins)
    fixed: set[int] = set()
    while True:
        free = [index for index in range(len(mins)) if index not in fixed]
        left = room - sum(mins[index] for index in fixed)
        total = sum(split.weights[index] for index in free)
        ideal = {index: left * split.weights[index] / total for index in free}
        small = {index for index in free if ideal[index] < mins[index] - 1e-9}
        if not small:
            break
        fixed |= small
    sizes = [mins[index] if index in fixed else int(ideal[index]) for index in range(len(mins))]
    by_rest = sorted(free, key=lambda each: (int(ideal[each]) - ideal[each], -each))
    for index in by_rest[: room - sum(sizes)]:
        sizes[index] += 1
    return sizes


def fit(node: Node, width: int, height: int, focused: str) -> Node:
    """Leave out what has no room: of each split the last parts, but never the focused pane."""
    if isinstance(node, str):
        return node
    parts = [
        (fit(part, width, height, focused), weight)
        for part, weight in zip(node.parts, node.weights, strict=True)
    ]
    while len(parts) > 1 and not _fits(join(node.axis, parts), width, height):
        del parts[max(index for index, (part, _) in enumerate(parts) if focused not in panes(part))]
    return join(node.axis, parts)


def _fits(node: Node, width: int, height: int) -> bool:
    wide, high = least(node)
    return wide <= width and high <= height


def neighbour(placed: Mapping[str, Tile], pane: str, direction: Direction) -> str | None:
    """Return the pane at a side of another one: of several, the one that shares most of the edge."""
    own = placed[pane]
    found: list[tuple[int, str]] = []
    for other, tile in placed.items():
        if direction in ("left", "right"):
            meets = (
                tile.x + tile.width + GAP == own.x
                if direction == "left"
                else own.x + own.width + GAP == tile.x
            )
            shared = min(own.y + own.height, tile.y + tile.height) - max(own.y, tile.y)
        else:
            meets = tile.y + tile.height == own.y if direction == "up" else own.y + own.height == tile.y
            shared = min(own.x + own.width, tile.x + tile.width) - max(own.x, tile.x)
        if meets and shared > 0:
            found.append((shared, other))
    return max(found, key=lambda each: each[0])[1] if found else None


# Changes


def replace(node: Node, by: Mapping[str, str]) -> Node:
    if isinstance(node, str):
        return by.get(node, node)
    return Split(node.axis, tuple(replace(part, by) for part in node.parts), node.weights)


def swap(node: Node, one: str, other: str) -> Node:
    return replace(node, {one: other, other: one})


def only(node: Node, ids: set[str]) -> Node | None:
    """Return the tree without the panes of other ids; their room goes to the parts beside them."""
    if isinstance(node, str):
        return node if node in ids else None
    kept = [(only(part, ids), weight) for part, weight in zip(node.parts, node.weights, strict=True)]
    parts = [(part, weight) for part, weight in kept if part is not None]
    return join(node.axis, parts) if parts else None


def split(node: Node, pane: str, axis: Axis, new: str) -> Node:
    """Divide a pane: a new one takes its right or lower half."""
    if isinstance(node, str):
        return join(axis, [(node, 1.0), (new, 1.0)]) if node == pane else node
    return join(
        node.axis,
        [
            (split(part, pane, axis, new), weight)
            for part, weight in zip(node.parts, node.weights, strict=True)
        ],
    )


def even(node: Node) -> Node:
    """Give the parts of each split the same size."""
    if isinstance(node, str):
        return node
    return Split(node.axis, tuple(map(even, node.parts)), (1.0,) * len(node.parts))


def rule_beside(node: Node, width: int, height: int, pane: str, axis: Axis) -> Divider | None:
    """Return the rule that the keys move: the one after the pane, or the one before the last pane."""
    found = [
        (path, part.parts)
        for path, part, _ in _walk(node, Tile(0, 0, width, height))
        if isinstance(part, Split) and part.axis == axis and pane in panes(part)
    ]
    if not found:
        return None
    path, parts = found[-1]  # the innermost
    at = next(index for index, part in enumerate(parts) if pane in panes(part))
    index = min(at, len(parts) - 2)
    return next(rule for rule in rules(node, width, height) if (rule.path, rule.index) == (path, index))


def move(node: Node, width: int, height: int, rule: Divider, cells: int) -> Node:
    """Move a rule right or down as far as the two parts beside it allow; the others stay."""
    return _move(node, Tile(0, 0, width, height), rule.path, rule.index, cells)


def _move(node: Node, tile: Tile, path: Path, index: int, cells: int) -> Node:
    if isinstance(node, str):
        return node
    if path:
        inner = _divide(node, tile)[path[0]]
        parts = list(node.parts)
        parts[path[0]] = _move(parts[path[0]], inner, path[1:], index, cells)
        return Split(node.axis, tuple(parts), node.weights)
    row = node.axis == "row"
    sizes = _sizes(node, tile.width if row else tile.height)
    before, after = (sizes[each] - least(node.parts[each])[0 if row else 1] for each in (index, index + 1))
    cells = max(-max(0, before), min(max(0, after), cells))
    sizes[index] += cells
    sizes[index + 1] -= cells
    return Split(node.axis, node.parts, tuple(map(float, sizes)))


# Layouts by name


def preset(
    layout: Layout, ids: Sequence[str], width: int, height: int, *, focused: str, main: str = ""
) -> Node:
    """Return the tree of a layout: as many panes as have room, and always the focused one.

    `main` is the large pane of that layout; the first one if it is not there.
    """
    if layout == "columns":
        room = max(1, (width + GAP) // (MIN_WIDTH + GAP))
        return _evenly("row", _window(ids, room, focused))
    if layout == "grid":
        return _grid(ids, width, height, focused)
    if layout == "main":
        return _main(ids, width, height, focused, main if main in ids else ids[0])
    return focused


def _evenly(axis: Axis, parts: Sequence[Node]) -> Node:
    return join(axis, [(part, 1.0) for part in parts])


def _main(ids: Sequence[str], width: int, height: int, focused: str, main: str) -> Node:
    room = width - GAP
    left = min(round(room * MAIN_SHARE), room - MIN_WIDTH)
    stack = _window([each for each in ids if each != main], max(1, height // MIN_HEIGHT), focused)
    if left < MIN_WIDTH or not stack:
        return focused
    return join("row", [(main, left), (_evenly("column", stack), room - left)])


def _grid(ids: Sequence[str], width: int, height: int, focused: str) -> Node:
    most_columns = max(1, (width + GAP) // (MIN_WIDTH + GAP))
    most_rows = max(1, height // MIN_HEIGHT)
    shown = _window(ids, most_columns * most_rows, focused)

    def usefulness(columns: int) -> float:
        rows = ceil(len(shown) / columns)
        wide, high = (width - GAP * (columns - 1)) / columns, height / rows
        return min(wide / 80, 1.0) * min(high / 24, 1.0)

    possible = (c for c in range(1, min(most_columns, len(shown)) + 1) if ceil(len(shown) / c) <= most_rows)
    columns = max(possible, key=usefulness)
    rows = [shown[first : first + columns] for first in range(0, len(shown), columns)]
    return _evenly("column", [_evenly("row", row) for row in rows])


def _window(ids: Sequence[str], room: int, focused: str) -> Sequence[str]:
    place = ids.index(focused) if focused in ids else 0
    start = min(place // room * room, max(0, len(ids) - room))
    return ids[start : start + room]


# JSON


def to_json(node: Node) -> object:
    if isinstance(node, str):
        return node
    return {
        "axis": node.axis,
        "parts": [to_json(part) for part in node.parts],
        "weights": list(node.weights),
    }


def from_json(value: object) -> Node | None:
    """Read a saved tree; None if it is not one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return None
    axis, parts, weights = value.get("axis"), value.get("parts"), value.get("weights")
    if axis not in ("row", "column") or not isinstance(parts, list) or not isinstance(weights, list):
        return None
    nodes = [from_json(part) for part in parts]
    known = [node for node in nodes if node is not None]
    numbers = [
        float(weight) for weight in weights if isinstance(weight, int | float) and 0 < weight < float("inf")
    ]
    if not len(known) == len(parts) == len(numbers) == len(weights) or not known:
        return None
    return join("row" if axis == "row" else "column", list(zip(known, numbers, strict=True)))
