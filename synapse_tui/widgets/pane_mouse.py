"""The mouse over a pane: for the child that asked for it, else for scrolling and selecting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.timer import Timer

from synapse_tui.terminal.input import MouseEvent, MouseKind, encode_mouse

from .line_text import Point
from .selection import Selection, Unit

if TYPE_CHECKING:
    from .terminal_view import TerminalView

WHEEL_LINES = 3
EDGE_INTERVAL = 0.05
"""Seconds between two lines while a selection is dragged beyond the edge."""
_UNITS = {2: Unit.WORD, 3: Unit.LINE}


class PaneMouse:
    """Follows the mouse for one pane.

    Args:
        view: The pane.
    """

    def __init__(self, view: TerminalView) -> None:
        self._view = view
        self._held = 0
        """Button that the child was told is held."""
        self._last: tuple[int, int] | None = None
        self._swallow = False
        """The press gave the focus: what follows up to the release is not for the child."""
        self._chain = 0
        self._pressed: tuple[int, int, float] | None = None
        self._edge = 0
        self._edge_timer: Timer | None = None
        self._drag_at = Point(0, 0)
        self.dragging = False
        """Whether a selection is being made."""

    def focusing(self, already: bool) -> None:
        """Take note of a press that may have given the pane the focus."""
        self._swallow = not already

    def press(self, event: events.MouseDown) -> None:
        """A button was pressed."""
        x, y = self._cell(event)
        if event.ctrl and event.button == 1 and (link := self._view.link_at(x, y)):
            self._view.post_message(self._view.LinkClicked(self._view, link))
        elif self._child_wants(event) and not self._swallow:
            self._held = event.button
            self._view.capture_mouse()
            self._tell(event, "press", event.button)
        elif event.button == 1:
            self._begin(event, x, y)

    def move(self, event: events.MouseMove) -> None:
        """The pointer moved."""
        if self.dragging:
            self._drag(event)
        elif self._held or (self._view.has_focus and self._child_wants(event) and not self._swallow):
            cell = self._cell(event)
            if cell != self._last:
                self._tell(event, "move", self._held)

    def release(self, event: events.MouseUp) -> None:
        """A button was released."""
        if self.dragging:
            self._end()
        elif self._held:
            button, self._held = self._held, 0
            self._view.release_mouse()
            self._tell(event, "release", button)
        self._swallow = False

    def wheel(self, event: events.MouseEvent, kind: MouseKind) -> None:
        """The wheel was turned."""
        modes = self._view.session.terminal.modes
        away = self._view.viewport.offset or self._view.scroll_mode is not None
        if not event.shift and not away and (modes.mouse or modes.alternate_screen):
            self._tell(event, kind, 0)
        elif kind in ("wheel_up", "wheel_down"):
            self._view.scroll_lines(WHEEL_LINES if kind == "wheel_up" else -WHEEL_LINES)

    def cancel(self) -> None:
        """Forget what is held: the pane lost the mouse or the lines it selected in."""
        self._stop_edge()
        self.dragging = False
        self._held = 0

    def _child_wants(self, event: events.MouseEvent) -> bool:
        view = self._view
        live = view.scroll_mode is None and not view.viewport.offset
        return bool(view.session.terminal.modes.mouse) and not event.shift and live

    def _tell(self, event: events.MouseEvent, kind: MouseKind, button: int) -> None:
        x, y = self._last = self._cell(event)
        report = MouseEvent(x, y, button, kind, shift=event.shift, alt=event.meta, ctrl=event.ctrl)
        self._view.measure_cells()
        terminal = self._view.session.terminal
        data = encode_mouse(report, terminal.modes, cell_size=terminal.cell_pixels)
        if data:
            self._view.session.user_input(data)

    def _cell(self, event: events.MouseEvent) -> tuple[int, int]:
        """Return column and row of the child's screen, those nearest to a place outside."""
        terminal = self._view.session.terminal
        return min(max(event.x, 0), terminal.columns - 1), min(max(event.y, 0), terminal.lines - 1)

    # Selecting

    def _begin(self, event: events.MouseDown, x: int, y: int) -> None:
        view = self._view
        self._count_clicks(event, x, y)
        point = Point(view.viewport.top + y, x)
        self.dragging = True
        view.capture_mouse()
        if view.scroll_mode is not None:
            view.scroll_mode.point_at(point)
        view.selection = Selection(view.viewport, point, _UNITS.get(self._chain, Unit.CELL))
        view.update_view()

    def _count_clicks(self, event: events.MouseDown, x: int, y: int) -> None:
        """Count the presses at one place in quick succession: one, two, three, and one again."""
        before = self._pressed
        self._pressed = (x, y, event.time)
        near = before is not None and before[:2] == (x, y)
        quick = before is not None and event.time - before[2] <= self._view.app.CLICK_CHAIN_TIME_THRESHOLD
        self._chain = self._chain % 3 + 1 if near and quick else 1

    def _drag(self, event: events.MouseMove) -> None:
        height = self._view.viewport.height
        self._edge = 1 if event.y < 0 else -1 if event.y >= height else 0
        x, y = self._cell(event)
        self._drag_at = Point(y, x)
        if self._edge and self._edge_timer is None:
            self._edge_timer = self._view.set_interval(EDGE_INTERVAL, self._scroll_at_edge)
        elif not self._edge:
            self._stop_edge()
        self._extend()

    def _scroll_at_edge(self) -> None:
        viewport = self._view.viewport
        viewport.scroll_to(viewport.offset + self._edge)
        self._extend()

    def _extend(self) -> None:
        view = self._view
        if view.selection is not None:
            view.selection.extend(Point(view.viewport.top + self._drag_at.line, self._drag_at.column))
            view.update_view()

    def stop_dragging(self) -> None:
        """End the drag, wherever the pointer is."""
        if self.dragging:
            self._stop_edge()
            self.dragging = False
            self._view.release_mouse()

    def _end(self) -> None:
        view = self._view
        self.stop_dragging()
        if view.selection:
            view.copy(view.selection.text)
        else:
            view.selection = None

    def _stop_edge(self) -> None:
        self._edge = 0
        if self._edge_timer is not None:
            self._edge_timer.stop()
            self._edge_timer = None
