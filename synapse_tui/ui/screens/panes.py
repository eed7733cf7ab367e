"""Actions on panes: layouts, splits, sizes, focus by direction, and the keys that arrange panes."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.widgets import Input

from synapse_tui.core.errors import ConfigError
from synapse_tui.settings.actions import ARRANGING
from synapse_tui.system.language import tr
from synapse_tui.widgets.deck import CUSTOM, layout_name
from synapse_tui.widgets.layout import (
    DIRECTIONS,
    LAYOUTS,
    LEAST_HEIGHT,
    LEAST_WIDTH,
    SHOW_ALL,
    Axis,
    Direction,
    axis_of,
)
from synapse_tui.widgets.terminal_view import TerminalView

from .dialog import Form, label
from .shell import Shell

MAX_NAME = 32
NO_ROOM = {
    "row": tr(f"no room beside it: a pane needs {LEAST_WIDTH} columns"),
    "column": tr(f"no room below it: a pane needs {LEAST_HEIGHT} rows"),
}


class PaneActions:
    def __init__(self, app: Shell) -> None:
        self._app = app
        self._main = app.main
        self._deck = app.main.deck
        self._repeats = False  # whether the arrows that resized after the leader still do without it

    def action_focus_agent(self, agent_id: str) -> None:
        self._main.go_to(agent_id)

    def action_sidebar(self) -> None:
        self._main.toggle_sidebar()

    def action_focus_pane(self, key: str) -> None:
        """Focus the pane at a side; where there is none, the next or the previous agent."""
        self._at_panes(self._focus_pane, _direction(key))

    def _focus_pane(self, direction: Direction) -> None:
        beside = self._deck.neighbour(direction)
        if beside is not None:
            self._main.go_to(beside)
        elif axis_of(direction) == "row":
            self._main.step(1 if direction == "right" else -1)

    def _at_panes(self, do: Callable[..., object], *arguments: object) -> None:
        """Do something to the panes; on the board once it is left and they have their places again."""
        if self._main.board_shown:
            self._main.leave_board()
            self._app.call_after_refresh(do, *arguments)
        else:
            do(*arguments)

    # Layouts

    def action_layout(self) -> None:
        self.action_set_layout(self._deck.next_layout())

    def action_set_layout(self, layout: str) -> None:
        self._main.leave_board()
        self._deck.use(layout)
        name, count = layout_name(self._deck.arrangement), len(self._deck.panes)
        shown = len(self._deck.tiles(self._deck.size))
        if self._deck.arrangement in SHOW_ALL and 0 < shown < count:
            self._app.notice(
                f"layout: {name}, room for {shown} of {count} agents",
                still=lambda: len(self._deck.tiles(self._deck.size)) == shown,
            )
        else:
            arrangement = self._deck.arrangement
            self._app.notice(f"layout: {name}", still=lambda: self._deck.arrangement == arrangement)

    def action_name_layout(self) -> None:
        def name(text: str) -> None:
            self._deck.save_as(text)
            called = layout_name(text)
            self._app.notice(
                f"layout: {called}, until the demo ends"
                if self._app.is_demo
                else f"layout: {called}, saved with this session"
            )

        now = self._deck.arrangement
        before = now if now in self._deck.layouts and now != CUSTOM else ""
        self._at_panes(self._app.ask, NameLayout(before, name, demo=self._app.is_demo))

    def action_delete_layout(self, layout: str) -> None:
        self._deck.forget(layout)
        self._app.notice(f"the layout {layout_name(layout)} is deleted")

    def action_zoom(self, agent_id: str = "") -> None:
        self._main.go_to(agent_id or self._main.active)
        if self._deck.alone and not self._deck.zoomed:
            self._tell_alone()
        else:
            self._deck.zoomed = not self._deck.zoomed

    def action_main_pane(self, agent_id: str = "") -> None:
        self._main.go_to(agent_id or self._main.active)
        self._deck.main = self._main.active
        self._deck.use("main")

    # Splits

    def action_split_right(self) -> None:
        self._at_panes(self._split, "row")

    def action_split_below(self) -> None:
        self._at_panes(self._split, "column")

    def _split(self, axis: Axis) -> None:
        self._deck.zoomed = False
        others = self._deck.out_of_view()
        if not self._deck.has_room(axis):
            self._app.notice(NO_ROOM[axis], "warning")
        elif others:
            self.action_show_beside(axis, others[0])
        else:
            self._app.perform("new_agent", axis)

    def action_show_beside(self, axis: Axis, agent_id: str) -> None:
        """Show an agent in a half of the active pane, and focus it."""
        self._deck.split(axis, agent_id)
        self._main.go_to(agent_id)

    def action_hide_pane(self) -> None:
        self._at_panes(self._hide_pane)

    def _hide_pane(self) -> None:
        other = self._deck.hide()
        if other:
            hidden = self._main.active
            self._main.go_to(other)
            self._app.notice(
                f"{self._app.label(hidden)} goes on, out of view",
                still=lambda: hidden in self._deck.out_of_view(),
            )
        else:
            self._tell_alone()

    def _tell_alone(self) -> None:
        self._app.notice("it is the only pane in view", "warning", still=lambda: self._deck.alone)

    def action_swap_pane(self, key: str) -> None:
        self._at_panes(self._swap_pane, _direction(key))

    def _swap_pane(self, direction: Direction) -> None:
        if not self._deck.swap(direction):
            self._app.notice(f"no pane {_SIDES[direction]}")

    def action_resize_pane(self, key: str) -> None:
        self._repeats = True
        self._at_panes(self._resize_pane, _direction(key))

    def _resize_pane(self, direction: Direction) -> None:
        if not self._deck.resize_active(direction):
            self._app.notice(
                "no rule to move there" if self._deck.neighbour(direction) is None else "at its minimum"
            )

    def action_equalize(self) -> None:
        self._at_panes(self._equalize)

    def _equalize(self) -> None:
        if self._deck.alone:
            self._tell_alone()
        else:
            self._deck.equalize()

    # Arranging: keys that need no leader

    def action_arrange(self) -> None:
        self._main.leave_board()
        self._main.status_bar.arranging = not self._main.status_bar.arranging

    def takes(self, event: events.Key) -> bool:
        name = event.character if event.character and event.character.isprintable() else event.key
        if not self._main.status_bar.arranging:
            resizes = self._app.keymap.find("resize_pane").leader
            self._repeats = self._repeats and name in resizes
            if self._repeats:
                self._app.perform("resize_pane", name)
            return self._repeats
        action = self._app.keymap.by_leader_key(name)
        if name in ("escape", "enter"):
            self._main.status_bar.arranging = False
        elif name in DIRECTIONS:
            self._app.perform("resize_pane", name)
        elif action is not None and action.id in ARRANGING:
            self._app.perform(action.id, *((name,) if action.takes_key else ()))
        return True

    @property
    def each_key(self) -> bool:
        return self._main.status_bar.arranging

    # Scrolling

    def action_scroll(self, agent_id: str = "") -> None:
        agent_id = agent_id or self._main.active
        pane = self._deck.pane(agent_id)
        if pane is not None:
            self._main.go_to(agent_id)
            if isinstance(pane.view, TerminalView):
                pane.view.call_later(pane.view.toggle_scroll_mode)  # behind the keys that were typed before

    def action_live(self, agent_id: str) -> None:
        pane = self._deck.pane(agent_id)
        if pane is not None and isinstance(pane.view, TerminalView):
            pane.view.leave_scroll_mode()


_SIDES = {"left": tr("to the left"), "right": tr("to the right"), "up": tr("above"), "down": tr("below")}


def _direction(key: str) -> Direction:
    """Return the direction of an arrow key with any modifiers."""
    name = key.rpartition("+")[2]
    return next(direction for direction in DIRECTIONS if direction == name)


class NameLayout(Form[str]):
    """Asks for the name under which a layout is saved; the name of another one replaces that."""

    VERB = "Save"
    SUBTITLE = "Enter saves · Esc cancels"
    TITLE_TEXT = "Name this layout"

    def __init__(self, before: str, save: Callable[[str], None], *, demo: bool = False) -> None:
        super().__init__()
        self._about = (
            tr("Name; it is then one of the layouts, until the demo ends")
            if demo
            else tr("Name; it is then one of the layouts, and saved with this session")
        )
        self._before = before
        self._save = save

    def body(self) -> ComposeResult:
        yield label(self._about)
        yield Input(self._before, id="name", compact=True)

    def submit(self) -> None:
        name = self.value("name")
        if not name or len(name) > MAX_NAME or not name.isprintable():
            self.show_error(ConfigError("this is not a name", f"enter 1 to {MAX_NAME} characters"))
        elif name in LAYOUTS:
            self.show_error(ConfigError(f"'{name}' is a layout of ours", "enter another name"))
        else:
            self._save(name)
            self.dismiss(name)
