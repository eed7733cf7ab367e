"""The deck: the panes of a layout, a tree of splits, or a single zoomed pane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import events
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

from synapse_tui.settings.schema import words_for
from synapse_tui.system.language import tr

from . import layout as trees
from .error_handling import FaultTolerant
from .layout import LAYOUTS, Axis, Direction, Divider, Layout, Node, Tile
from .pane import Pane
from .segment_bar import SegmentBar
from .text import one_line

CUSTOM = "custom"  # the layout that the user has made without giving it a name
STEP: Mapping[Axis, int] = {"row": 4, "column": 2}  # cells by which a key moves a rule
TITLE_ROWS = 1
EMPTY_WIDTH = 76  # wrapping width of the text in an empty deck


def as_layout(name: str) -> Layout:
    return next((layout for layout in LAYOUTS if layout == name), "tabs")


def layout_name(layout: str) -> str:
    """Return what a layout is called; those of the user have their own names."""
    return tr(CUSTOM) if layout == CUSTOM else words_for("tui.layout", layout)


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
    Deck > .deck--held { background: $pane-ground; color: $accent; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"deck--empty", "deck--held"}

    class Rearranged(Message):
        """Visible panes may have changed size, and hidden ones should follow."""

    arrangement: var[str] = var("tabs")  # one of `LAYOUTS` or of `layouts`
    zoomed: var[bool] = var(False)
    active: var[str] = var("")
    empty: reactive[str] = reactive("")  # text shown if there are no panes; may have several lines
    main: var[str] = var("")  # agent id of the large pane in the `main` layout; empty for the first
    dragged: var[Divider | None] = var(None)
    covered: var[bool] = var(False)  # whether keys are for something else than the panes

    def __init__(self) -> None:
        super().__init__()
        self._tiling = _Tiling()
        self.layouts: dict[str, Node] = {}  # those that the user has made, by name
        self._home = ""  # the pane in whose place an active agent that is not in the layout is shown

    @property
    def layout(self) -> TextualLayout:
        """The layout, which styles cannot name because it is not one of Textual's."""
        return self._tiling

    @property
    def panes(self) -> Sequence[Pane]:
        return [child for child in self.children if isinstance(child, Pane)]

    def pane(self, agent_id: str) -> Pane | None:
        return next((pane for pane in self.panes if pane.agent_id == agent_id), None)

    # The layout

    def shown(self, size: Size, more: Iterable[str] = ()) -> Node | None:
        """Return what is shown; None if there are no panes. `more` are panes to come, the last one active."""
        ids = [pane.agent_id for pane in self.panes if pane.display or pane.is_attached]
        ids += more
        if not ids or size.width <= 0 or size.height <= 0:
            return None
        active = ids[-1] if more else self.active if self.active in ids else ids[0]
        if self.zoomed:
            return active
        made = self.layouts.get(self.arrangement)
        if made is None:
            node = trees.preset(
                as_layout(self.arrangement), ids, size.width, size.height, focused=active, main=self.main
            )
        else:
            node = trees.only(made, set(ids)) or active
            shown = trees.panes(node)
            if active not in shown:
                node = trees.replace(node, {self._home if self._home in shown else shown[0]: active})
        return trees.fit(node, size.width, size.height, active)

    def tiles(self, size: Size) -> dict[Widget, Tile]:
        node = self.shown(size)
        placed = trees.tiles(node, size.width, size.height) if node is not None else {}
        return {pane: placed[pane.agent_id] for pane in self.panes if pane.agent_id in placed}

    @property
    def alone(self) -> bool:
        """Whether no more than one pane is in view."""
        return len(self.tiles(self.size)) < 2

    def next_layout(self) -> str:
        names = [*LAYOUTS, *self.layouts]
        place = names.index(self.arrangement) if self.arrangement in names else -1
        return names[(place + 1) % len(names)]

    def use(self, name: str) -> None:
        """Show a layout by its name; an unknown one is `tabs`."""
        self.zoomed = False
        self.arrangement = name if name in self.layouts else as_layout(name)

    def change(self, node: Node) -> None:
        """Show a tree: in the layout of the user's that is shown, or else as `custom`."""
        self.zoomed = False
        name = self.arrangement if self.arrangement in self.layouts else CUSTOM
        self.layouts[name] = node
        self._remember()
        self.arrangement = name
        self.update_shown()

    def _remember(self) -> None:
        made = self.layouts.get(self.arrangement)
        if made is not None and self.active in trees.panes(made):
            self._home = self.active

    def save_as(self, name: str) -> None:
        """Give the layout that is shown a name; one made from a layout of ours stays as it is now."""
        node = self.shown(self.size)
        if node is None:
            return
        self.layouts.pop(CUSTOM if self.arrangement not in self.layouts else self.arrangement, None)
        self.layouts[name] = node
        self.use(name)
        self._remember()

    def forget(self, name: str) -> None:
        """Delete a layout of the user's; if it is shown, `tabs` takes its place."""
        self.layouts.pop(name, None)
        if self.arrangement == name:
            self.use(LAYOUTS[0])

    def split(self, axis: Axis, new: str) -> bool:
        """Give a pane the right or lower half of the active one; return whether there was room."""
        self.zoomed = False
        node = self.shown(self.size)
        if node is None or not self.has_room(axis):
            return False
        self.change(trees.split(self._without(node, new), self.active, axis, new))
        return True

    def _without(self, node: Node, pane: str) -> Node:
        return trees.only(node, {*trees.panes(node)} - {pane}) or node

    def has_room(self, axis: Axis) -> bool:
        """Whether the active pane can be divided; if need be, the panes beside it become smaller."""
        node = self.shown(self.size)
        if node is None or self.active not in trees.panes(node):
            return False
        wide, high = trees.least(trees.split(node, self.active, axis, ""))
        return wide <= self.size.width and high <= self.size.height

    def out_of_view(self) -> list[str]:
        """Return the panes that are not shown, beginning with the one after the active pane."""
        node = self.shown(self.size)
        shown = trees.panes(node) if node is not None else []
        ids = [pane.agent_id for pane in self.panes]
        start = ids.index(self.active) + 1 if self.active in ids else 0
        return [each for each in (*ids[start:], *ids[:start]) if each not in shown]

    def hide(self) -> str:
        """Take the active pane out of the layout; return the next one; empty if it is the only one."""
        node = self.shown(self.size)
        shown = trees.panes(node) if node is not None else []
        if node is None or len(shown) < 2 or self.active not in shown:
            return ""
        place = shown.index(self.active)
        node = self._without(node, self.active)
        self.change(node)
        return trees.panes(node)[max(0, place - 1)]

    def neighbour(self, direction: Direction) -> str | None:
        node = self.shown(self.size)
        placed = trees.tiles(node, *self.size) if node is not None else {}
        return trees.neighbour(placed, self.active, direction) if self.active in placed else None

    def swap(self, direction: Direction) -> bool:
        node, other = self.shown(self.size), self.neighbour(direction)
        if node is None or other is None:
            return False
        self.change(trees.swap(node, self.active, other))
        return True

    def resize_active(self, direction: Direction) -> bool:
        """Move a rule of the active pane one step; return whether it moved."""
        node, axis = self.shown(self.size), trees.axis_of(direction)
        rule = trees.rule_beside(node, *self.size, self.active, axis) if node is not None else None
        if rule is None:
            return False
        step = STEP[axis] if direction in ("right", "down") else -STEP[axis]
        return self._move(rule, step)

    def _move(self, rule: Divider, cells: int) -> bool:
        before = self.shown(self.size)
        if before is None:
            return False
        after = trees.move(before, *self.size, rule, cells)
        if trees.tiles(after, *self.size) == trees.tiles(before, *self.size):
            return False
        self.change(after)
        return True

    def equalize(self) -> None:
        node = self.shown(self.size)
        if node is not None:
            self.change(trees.even(node))

    def state(self) -> dict[str, object]:
        """Return what `restore` needs, as JSON."""
        layouts = {name: trees.to_json(node) for name, node in self.layouts.items()}
        state = {"layout": self.arrangement, "layouts": layouts, "home": self._home}
        return {**state, "zoomed": self.zoomed, "main": self.main}

    def restore(self, state: Mapping[str, object]) -> None:
        saved = state.get("layouts")
        for name, value in (saved if isinstance(saved, Mapping) else {}).items():
            node = trees.from_json(value)
            if node is not None and len(set(trees.panes(node))) == len(trees.panes(node)):
                self.layouts[str(name)] = node
        self._home = str(state.get("home", ""))
        self.main = str(state.get("main", ""))
        self.use(str(state.get("layout", self.arrangement)))

    # Sizes

    def terminal_size(self) -> tuple[int, int]:
        return self.terminal_sizes(1)[0]

    def terminal_sizes(self, more: int) -> list[tuple[int, int]]:
        """Return the sizes (columns, lines) of `more` additional terminals, once all are open."""
        coming = [f"\n{number}" for number in range(more)]
        node = self.shown(self.size, coming)
        if node is None:
            return [(80, 24)] * more
        placed = trees.tiles(node, *self.size)
        found = (placed.get(each, placed[coming[-1]]) for each in coming)
        return [(max(tile.width, 2), max(tile.height - TITLE_ROWS, 2)) for tile in found]

    def update_shown(self) -> None:
        shown = self.tiles(self.size)
        for pane in self.panes:
            visible = pane in shown
            if pane.display is not visible:
                pane.display = visible
            pane.zoomed = self.zoomed
            pane.in_focus = pane.agent_id == self.active
            pane.covered = self.covered
            # On the pane, since only that makes Textual invalidate the deck's cached arrangement.
            pane.refresh(layout=True)
        self.refresh()
        self.post_message(self.Rearranged())

    def watch_covered(self) -> None:
        for pane in self.panes:
            pane.covered = self.covered

    def watch_arrangement(self) -> None:
        self.update_shown()

    def watch_zoomed(self) -> None:
        self.update_shown()

    def watch_active(self) -> None:
        self._remember()
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
        if not self.panes:
            lines = self._empty_lines(width)
            row = y - (self.size.height - len(lines)) // 2
            text = Text(lines[row] if 0 <= row < len(lines) else "", end="")
            text.align("center", width)
            return Strip([Segment(text.plain, self.get_component_rich_style("deck--empty"))], width)
        style = self.rich_style
        parts = []
        end = 0
        for rule in self._bars(y):
            held = rule == self.dragged
            parts.append(Segment(" " * (rule.tile.x - end), style))
            parts.append(Segment("│", self.get_component_rich_style("deck--held") if held else style))
            end = rule.tile.x + 1
        return Strip([*parts, Segment(" " * (width - end), style)], width)

    # The mouse

    def _bars(self, y: int) -> list[Divider]:
        """Return the rules between columns that cross a row, from the left."""
        rules = (each for each in self._rules() if each.axis == "row")
        crossing = (each for each in rules if each.tile.y <= y < each.tile.y + each.tile.height)
        return sorted(crossing, key=lambda rule: rule.tile.x)

    def _rules(self) -> list[Divider]:
        node = self.shown(self.size)
        return trees.rules(node, *self.size) if node is not None else []

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to move a rule; the titles of lower panes are rules, but where they have buttons."""
        x, y = event.screen_x - self.content_region.x, event.screen_y - self.content_region.y
        rule = next((rule for rule in self._rules() if Region(*_box(rule.tile)).contains(x, y)), None)
        if rule is None or event.button != 1 or self._button_at(event):
            return
        event.stop()
        self.dragged = rule
        self.capture_mouse()

    def _button_at(self, event: events.MouseEvent) -> bool:
        widget, region = self.screen.get_widget_at(event.screen_x, event.screen_y)
        return isinstance(widget, SegmentBar) and bool(widget.target_at(event.screen_x - region.x))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        rule = self.dragged
        if rule is None:
            return
        event.stop()
        x, y = event.screen_x - self.content_region.x, event.screen_y - self.content_region.y
        if self._move(rule, x - rule.tile.x if rule.axis == "row" else y - rule.tile.y):
            place = rule.path, rule.index
            self.dragged = next((each for each in self._rules() if (each.path, each.index) == place), None)

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        if self.dragged is not None:
            self.dragged = None
            self.release_mouse()

    def on_click(self, event: events.Click) -> None:
        """Pass on the click that ends with the mouse captured: it is the pane's."""
        widget = self.screen.get_widget_at(event.screen_x, event.screen_y)[0]
        pane = next((each for each in widget.ancestors_with_self if isinstance(each, Pane)), None)
        if pane is not None:
            pane.on_click(event)

    def watch_dragged(self) -> None:
        self.refresh()


def _box(tile: Tile) -> tuple[int, int, int, int]:
    return tile.x, tile.y, tile.width, tile.height


LEAST_WIDTH = 40
LEAST_HEIGHT = 10


class TooSmall(Widget, can_focus=False):
    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center;
               background: $pane-ground; color: $pane-ink; }
    """

    shrunk_by: reactive[str] = reactive("")  # the terminal whose size the others follow

    def render(self) -> Content:
        size = self.app.size
        needs = tr(f"needs {LEAST_WIDTH}×{LEAST_HEIGHT}")
        text = tr(f"{size.width}×{size.height} is too small\n{needs}\nthe agents keep running")
        return Content(f"{text}\n" + tr(f"the size of {self.shrunk_by}") if self.shrunk_by else text)


def is_too_small(width: int, height: int) -> bool:
    return width < LEAST_WIDTH or height < LEAST_HEIGHT
