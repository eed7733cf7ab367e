"""The deck: all panes in one of four layouts, or a single zoomed pane."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import ClassVar, Literal, get_args

from rich.segment import Segment
from rich.text import Text
from textual.app import RenderResult
from textual.containers import Container
from textual.content import Content
from textual.geometry import Region, Size
from textual.layout import ArrangeResult, WidgetPlacement
from textual.layout import Layout as TextualLayout
from textual.message import Message
from textual.reactive import reactive, var
from textual.strip import Strip
from textual.widget import Widget

from synapse_tui.dataclass import dataclass

from .error_handling import FaultTolerant
from .pane import Pane
from .text import one_line

Layout = Literal["tabs", "columns", "grid", "main"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

MIN_WIDTH = 36  # minimum width of a tile in cells; narrower ones break the frames that agents draw
MIN_HEIGHT = 8  # minimum height of a tile in rows, including its title
GAP = 1  # cells between tiles side by side; titles separate those above each other
MAIN_SHARE = 0.6  # share of the width for the main pane, if the others remain usable beside it


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of cells, relative to the top left of the deck."""

    x: int
    y: int
    width: int
    height: int


def as_layout(name: str) -> Layout:
    return name if name in LAYOUTS else "tabs"


def next_layout(layout: Layout) -> Layout:
    return LAYOUTS[(LAYOUTS.index(layout) + 1) % len(LAYOUTS)]


def arrange(
    layout: Layout, count: int, width: int, height: int, *, focused: int = 0, main: int = 0
) -> Mapping[int, Tile]:
    """Place panes by index; those that would be too small are omitted, except the focused one."""
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
    width = (whole.width - GAP * (columns - 1)) / columns
    height = whole.height / rows
    return min(width / 80, 1.0) * min(height / 24, 1.0)


def _window(indices: Iterable[int], room: int, focused: int) -> list[int]:
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


TITLE_ROWS = 1
EMPTY_WIDTH = 76  # wrapping width of the text in an empty deck


class _Tiling(TextualLayout):
    name = "tiling"

    def arrange(
        self,
        parent: Widget,
        children: list[Widget],
        size: Size,
        greedy: bool = True,  # noqa: ARG002
    ) -> ArrangeResult:
        parent.pre_layout(self)
        if not isinstance(parent, Deck):
            return []
        tiles = parent.tiles(size)
        return [
            WidgetPlacement(Region(t.x, t.y, t.width, t.height), Region().offset, child.styles.margin, child)
            for child in children
            if (t := tiles.get(child)) is not None
        ]


class Deck(FaultTolerant, Container):
    """Holds a pane per agent; layout, zoom and focus decide which are visible."""

    DEFAULT_CSS = """
    Deck { width: 1fr; height: 1fr; background: $pane-ground; color: $line; overflow: hidden; }
    Deck > .deck--empty { background: $pane-ground; color: $ink; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"deck--empty"}

    class Rearranged(Message):
        """Visible panes may have changed size, and hidden ones should follow."""

    arrangement: var[Layout] = var("tabs")
    zoomed: var[bool] = var(False)
    active: var[str] = var("")
    empty: reactive[str] = reactive("")  # text shown if there are no panes; may have several lines
    main: var[str] = var("")  # agent id of the large pane in the `main` layout; empty for the first

    def __init__(self) -> None:
        super().__init__()
        self._tiling = _Tiling()

    @property
    def layout(self) -> TextualLayout:
        """The layout, which styles cannot name because it is not one of Textual's."""
        return self._tiling

    @property
    def panes(self) -> Sequence[Pane]:
        return [child for child in self.children if isinstance(child, Pane)]

    def pane(self, agent_id: str) -> Pane | None:
        return next((pane for pane in self.panes if pane.agent_id == agent_id), None)

    def tiles(self, size: Size) -> dict[Widget, Tile]:
        panes = [pane for pane in self.panes if pane.display or pane.is_attached]
        ids = [pane.agent_id for pane in panes]
        layout: Layout = "tabs" if self.zoomed else self.arrangement
        focused = ids.index(self.active) if self.active in ids else 0
        main = ids.index(self.main) if self.main in ids else 0
        placed = arrange(layout, len(panes), size.width, size.height, focused=focused, main=main)
        return {panes[index]: tile for index, tile in placed.items()}

    def terminal_size(self) -> tuple[int, int]:
        return self.terminal_sizes(1)[0]

    def terminal_sizes(self, more: int) -> list[tuple[int, int]]:
        """Return the sizes (columns, lines) of `more` additional terminals, once all are open."""
        size, before = self.size, len(self.panes)
        layout: Layout = "tabs" if self.zoomed else self.arrangement
        last = before + more - 1
        tiles = arrange(layout, before + more, size.width, size.height, focused=last)
        known = tiles.get(last)
        if known is None:
            return [(80, 24)] * more
        found = (tiles.get(index, known) for index in range(before, before + more))
        return [(max(tile.width, 2), max(tile.height - TITLE_ROWS, 2)) for tile in found]

    def update_shown(self) -> None:
        shown = self.tiles(self.size)
        for pane in self.panes:
            visible = pane in shown
            if pane.display is not visible:
                pane.display = visible
            pane.zoomed = self.zoomed
            # On the pane, since only that makes Textual invalidate the deck's cached arrangement.
            pane.refresh(layout=True)
        self.refresh()
        self.post_message(self.Rearranged())

    def watch_arrangement(self) -> None:
        self.update_shown()

    def watch_zoomed(self) -> None:
        self.update_shown()

    def watch_active(self, _before: str, active: str) -> None:
        for pane in self.panes:
            pane.in_focus = pane.agent_id == active
        self.update_shown()

    def watch_main(self) -> None:
        self.update_shown()

    def on_resize(self) -> None:
        self.update_shown()

    def _empty_lines(self, width: int) -> list[str]:
        room = max(1, min(width - 4, EMPTY_WIDTH))
        return [
            part.plain.rstrip()
            for line in self.empty.split("\n")
            for part in Text(one_line(line)).wrap(self.app.console, room)
        ] or [""]

    def render(self) -> RenderResult:
        return ""

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        style = self.rich_style
        if not self.panes:
            lines = self._empty_lines(width)
            row = y - (self.size.height - len(lines)) // 2
            text = Text(lines[row] if 0 <= row < len(lines) else "", end="")
            text.align("center", width)
            return Strip([Segment(text.plain, self.get_component_rich_style("deck--empty"))], width)
        bars = {
            tile.x + tile.width
            for tile in self.tiles(self.size).values()
            if tile.y <= y < tile.y + tile.height and tile.x + tile.width < width
        }
        return Strip([Segment("│" if x in bars else " ", style) for x in range(width)], width).simplify()


LEAST_WIDTH = 40
LEAST_HEIGHT = 10


class TooSmall(Widget, can_focus=False):
    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center;
               background: $pane-ground; color: $pane-ink; }
    """

    def render(self) -> Content:
        size = self.app.size
        needs = f"needs {LEAST_WIDTH}×{LEAST_HEIGHT}"
        text = f"{size.width}×{size.height} is too small\n{needs}\nthe agents keep running"
        return Content(text)


def is_too_small(width: int, height: int) -> bool:
    return width < LEAST_WIDTH or height < LEAST_HEIGHT
