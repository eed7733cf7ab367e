"""The pane of one agent: displays its terminal and handles keys, pastes and the mouse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import events
from textual.app import ComposeResult
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from synapse_tui.core.model import AgentState, StateReport
from synapse_tui.messages.mention import Mention, MentionView
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.terminal import Line, Terminal
from synapse_tui.terminal.input import KeyEvent, MouseEvent, MouseKind, encode_mouse
from synapse_tui.terminal.render import clean_link
from synapse_tui.widgets.driver.input_events import (
    TerminalKey,
    TerminalKeyRelease,
    TerminalText,
    textual_name,
)

from .answer_card import CARD_WIDTH, AnswerCard, AnswerView, SentLine
from .fit import Hint
from .mention_overlay import MentionOverlay
from .painting import DEFAULT_SHAPE, HIDDEN, PaneOutput, Placement, RowPainter
from .pane_keys import Interceptor, PaneKeys, key_event
from .scroll_mode import ScrollMode, Selection, Unit
from .segment_bar import PaneOverlay
from .strips import Highlight, Pens, Span, color_code, highlights_of
from .text import one_line
from .viewport import Point, Viewport, wide_end

if TYPE_CHECKING:
    from synapse_tui.agents.composer import ComposerReading

SETTLE_TIME = 0.08  # seconds without a size change before the terminal is resized
SYNC_TIMEOUT = 0.15  # maximum seconds that a child may delay a frame with synchronized output (mode 2026)
WHEEL_LINES = 3
EDGE_INTERVAL = 0.05  # seconds between lines while a selection is dragged beyond the edge
_UNITS = {2: Unit.WORD, 3: Unit.LINE}


class ViewedSession(Protocol):
    """The part of an agent's session that a pane uses."""

    damage_listener: Callable[[], None] | None

    @property
    def terminal(self) -> Terminal:
        """The agent's terminal; a different object after a restart."""

    @property
    def report(self) -> StateReport: ...

    def user_input(self, data: bytes) -> None: ...

    def resize(self, columns: int, lines: int) -> None: ...

    def focus(self, focused: bool) -> None:
        """Notify the session that the pane has gained or lost the focus."""

    def charge(self, seconds: float) -> None:
        """Account for the CPU time spent on painting."""

    def reading(self) -> ComposerReading: ...


class PaneMouse:
    def __init__(self, view: TerminalView) -> None:
        self._view = view
        self._held = 0  # button reported to the child as pressed
        self._last: tuple[int, int] | None = None
        self._swallow = False  # the press only focused the pane: drop events until the release
        self._chain = 0
        self._pressed: tuple[int, int, float] | None = None
        self._edge = 0
        self._edge_timer: Timer | None = None
        self._drag_at = Point(0, 0)
        self.dragging = False  # whether a selection is in progress

    def focusing(self, already: bool) -> None:
        """Record a press, and whether the pane was focused before."""
        self._swallow = not already

    def press(self, event: events.MouseDown) -> None:
        x, y = self._cell(event)
        if event.ctrl and event.button == 1 and (link := self._view.link_at(x, y)):
            self._view.post_message(self._view.LinkClicked(self._view, link))
        elif self._child_wants(event) and not self._swallow:
            self._held = event.button
            self._view.capture_mouse()
            self._report(event, "press", event.button)
        elif event.button == 1:
            self._begin(event, x, y)
        elif event.button == 2 and not self._child_wants(event) and (copied := self._view.app.clipboard):
            self._view.paste(copied)  # also into a pane that it has only now focused, as in tmux

    def move(self, event: events.MouseMove) -> None:
        if self.dragging:
            self._drag(event)
        elif self._held or (self._view.has_focus and self._child_wants(event) and not self._swallow):
            cell = self._cell(event)
            if cell != self._last:
                self._report(event, "move", self._held)

    def release(self, event: events.MouseUp) -> None:
        if self.dragging:
            self._end()
        elif self._held:
            button, self._held = self._held, 0
            self._view.release_mouse()
            self._report(event, "release", button)
        self._swallow = False

    def wheel(self, event: events.MouseEvent, kind: MouseKind) -> None:
        modes = self._view.session.terminal.modes
        away = self._view.viewport.offset or self._view.scroll_mode is not None
        if not event.shift and not away and (modes.mouse or modes.alternate_screen):
            self._report(event, kind, 0)
        elif kind in ("wheel_up", "wheel_down"):
            self._view.scroll_lines(WHEEL_LINES if kind == "wheel_up" else -WHEEL_LINES)

    def cancel(self) -> None:
        self._stop_edge()
        self.dragging = False
        self._held = 0

    def _child_wants(self, event: events.MouseEvent) -> bool:
        view = self._view
        live = view.scroll_mode is None and not view.viewport.offset
        return bool(view.session.terminal.modes.mouse) and not event.shift and live

    def _report(self, event: events.MouseEvent, kind: MouseKind, button: int) -> None:
        x, y = self._last = self._cell(event)
        report = MouseEvent(x, y, button, kind, shift=event.shift, alt=event.meta, ctrl=event.ctrl)
        self._view.measure_cells()
        terminal = self._view.session.terminal
        data = encode_mouse(report, terminal.modes, cell_size=terminal.cell_pixels)
        if data:
            self._view.session.user_input(data)

    def _cell(self, event: events.MouseEvent) -> tuple[int, int]:
        terminal = self._view.session.terminal
        return min(max(event.x, 0), terminal.columns - 1), min(max(event.y, 0), terminal.lines - 1)

    # Selection

    def _begin(self, event: events.MouseDown, x: int, y: int) -> None:
        view = self._view
        before = self._pressed
        self._pressed = (x, y, event.time)
        near = before is not None and before[:2] == (x, y)
        quick = before is not None and event.time - before[2] <= self._view.app.CLICK_CHAIN_TIME_THRESHOLD
        self._chain = self._chain % 3 + 1 if near and quick else 1
        point = Point(view.viewport.top + y, x)
        self.dragging = True
        view.capture_mouse()
        if view.scroll_mode is not None:
            view.scroll_mode.point_at(point)
        view.selection = Selection(view.viewport, point, _UNITS.get(self._chain, Unit.CELL))
        view.update_view()

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


class TerminalView(Widget, can_focus=True):
    """Displays the terminal of one agent and forwards input to it; has no border and no padding."""

    DEFAULT_CSS = """
    TerminalView {
        width: 1fr; height: 1fr; overflow: hidden; background: $pane-ground; color: $pane-ink;
        & > .terminal--match { color: $accent; background: $select; }
        & > .terminal--current-match { color: $accent-ink; background: $accent; }
        & > .terminal--selection { color: $ink; background: $select; }
        & > .terminal--pointer { color: $ground; background: $ink; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "terminal--match",
        "terminal--current-match",
        "terminal--selection",
        "terminal--pointer",
    }
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class _FromView(Message):
        view: TerminalView

        @property
        def control(self) -> TerminalView:
            return self.view

    @dataclass
    class StatusChanged(_FromView):
        status: str
        scrolled: int

    @dataclass
    class LinkClicked(_FromView):
        """A hyperlink was clicked with Ctrl held; the handler decides what to do with it."""

        link: str

    @dataclass
    class Copied(_FromView):
        text: str

    @dataclass
    class Mentioned(_FromView):
        mention: Mention

    status: var[str] = var("")  # scroll and search state for the pane's title; empty on the live screen
    scrolled: var[int] = var(0)  # lines scrolled back

    def __init__(
        self,
        session: ViewedSession,
        *,
        interceptor: Interceptor | None = None,
        reserved: Callable[[str], bool] = lambda _key: False,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - Textual's word
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.set_reactive(Widget.auto_links, False)
        self.session = session
        self.reserved = reserved  # whether Textual's key name belongs to the application
        self.viewport = Viewport(session.terminal)
        self.selection: Selection | None = None
        self.scroll_mode: ScrollMode | None = None
        self.mention = MentionOverlay()
        self.answer = AnswerCard()
        self.sent = SentLine()
        self.awaited = False  # whether the next output is probably the echo of a key
        self._mouse = PaneMouse(self)
        self._keys = PaneKeys(self, interceptor)
        self._output: PaneOutput | None = None
        self._painter = RowPainter(self, self._line, self._spans, self._pens)
        # column and row of the block drawn instead of the cursor in an unfocused pane
        self._block: tuple[int, int] | None = None
        self._wanted_size: tuple[int, int] | None = None
        self._settling: Timer | None = None
        self._synchronized_since: float | None = None

    def compose(self) -> ComposeResult:
        yield self.sent
        yield self.answer
        yield self.mention

    def keys_here(self) -> Place | None:
        return PLACES["scroll"] if self.scroll_mode is not None else None

    def on_mount(self) -> None:
        self._output = PaneOutput.of(self.app)
        self.session.damage_listener = self.request_frame
        self.watch(self.screen, "stack_updates", self._screens_changed, init=False)
        self.watch(self.app, "app_focus", self._app_focus_changed, init=False)

    def on_unmount(self) -> None:
        if self.session.damage_listener == self.request_frame:
            self.session.damage_listener = None
        if self._output is not None:
            self._output.clock.forget(self)
            self._output.take_cursor_back(self)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.forget_colors()
        self.refresh()

    # Size

    def on_resize(self) -> None:
        self._redraw()
        self.measure_cells()
        self._offer_size()
        self._place_mention_again()
        self._place_answer()

    def on_show(self) -> None:
        self._redraw()
        self._offer_size()

    def measure_cells(self) -> None:
        """Copy the outer terminal's cell size in pixels, which can change at any time."""
        pixels = self._output.cell_pixels if self._output is not None else None
        if pixels is not None:
            self.session.terminal.cell_pixels = pixels

    def _offer_size(self) -> None:
        """Resize the terminal now and debounce further changes by SETTLE_TIME; does nothing while hidden."""
        if not self.size:
            return
        self._wanted_size = (self.size.width, self.size.height)
        if self._settling is not None:
            self._settling.reset()
            return
        self._resize_terminal()
        self._settling = self.set_timer(SETTLE_TIME, self._settled)

    def _settled(self) -> None:
        self._settling = None
        self._resize_terminal()

    def _resize_terminal(self) -> None:
        terminal = self.session.terminal
        if self._wanted_size is not None and self._wanted_size != (terminal.columns, terminal.lines):
            self.viewport.resize(*self._wanted_size, self.session.resize)
            self._lines_rewrapped()

    # Frames

    def request_frame(self) -> None:
        if self._output is not None:
            self._output.clock.request(self, at_once=self.awaited)
            self.awaited = False

    def held_until(self, now: float) -> float:
        """Return the time until which the child delays its frame (mode 2026), at most SYNC_TIMEOUT."""
        if not self.session.terminal.modes.synchronized:
            self._synchronized_since = None
            return now
        if self._synchronized_since is None:
            self._synchronized_since = now
        return self._synchronized_since + SYNC_TIMEOUT

    def paint_frame(self) -> str:
        output = self._output
        if output is None or not self.is_attached:
            return ""
        output.begin()
        self._synchronized_since = None
        if self.session.terminal.modes.synchronized:
            # It has timed out: the rest of this frame is shown as it arrives.
            self.session.terminal.end_synchronized()
        rows = set(self._absorb())
        self._painter.inverted = self.viewport.terminal.modes.reverse_video
        rows |= self._drop_changed_selection()
        rows |= self._move_cursor_block()
        self._painter.drop(rows)
        self._update_status()
        self._place_answer()
        placement = output.placement(self)
        if placement is None or output.dropping:
            return ""
        terminal = self.session.terminal
        if self._settling is None and tuple(self.size) != (terminal.columns, terminal.lines):
            self._offer_size()  # the session may have been resized by others
        moved = self._follow_cursor(output, placement)
        if output.may_paint(placement):
            return self._scroll(rows, placement) + self._painter.draw(rows, placement) + moved
        self._painter.refresh(rows)
        return moved

    def charge(self, seconds: float) -> None:
        self.session.charge(seconds)

    def _scroll(self, rows: set[int], placement: Placement) -> str:
        scroll = self.viewport.scroll
        overlaid = self.selection is not None or self.scroll_mode is not None
        if scroll is None or overlaid or not self._has_outer_cursor:
            return ""
        moved = self._painter.scroll(scroll, placement)
        if moved:
            rows -= set(range(scroll.top, scroll.bottom + 1))
            rows |= (
                scroll.rows
            )  # rows that did not scroll with the region but were moved by it on the terminal
        return moved

    def _absorb(self) -> Iterable[int]:
        if self.session.terminal is not self.viewport.terminal:
            self.viewport = Viewport(self.session.terminal)
            self.scroll_mode = None
            self._drop_selection()
            self.measure_cells()
            self._resize_terminal()
            return range(self.size.height)
        if self.viewport.resized():
            self._lines_rewrapped()
        return self.viewport.absorb()

    def _lines_rewrapped(self) -> None:
        self._drop_selection()
        if self.scroll_mode is not None:
            self.scroll_mode.rewrapped()
        self._place_mention_again()

    def _drop_selection(self) -> None:
        self.selection = None
        self._mouse.cancel()

    def _drop_changed_selection(self) -> set[int]:
        if self.selection is None or self._mouse.dragging or not self.selection.changed():
            return set()
        self.selection = None
        return set(range(self.size.height))

    # Drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        if not self.is_attached:  # removed, without colors by now, and still in the layout
            return [Strip.blank(crop.width)] * crop.height
        return self._painter.strips(crop)

    def render_line(self, y: int) -> Strip:
        return self._painter.strip(y)

    def update_view(self) -> None:
        self._painter.drop(range(self.size.height))
        self._move_cursor_block()
        self._update_status()
        self._place_answer()
        output = self._output
        placement = output.placement(self) if output is not None else None
        if output is None or placement is None or not output.may_paint(placement):
            self.refresh()
            return
        rows = range(placement.region.height)
        output.paint(self._painter.draw(rows, placement) + self._follow_cursor(output, placement))

    def show_mention(self, view: MentionView | None) -> None:
        if view is None and self.mention.drawn is None:
            return
        self.mention.show(view, self.size, self._mention_anchor())
        self._place_answer()
        self.request_frame()

    def show_answer(self, view: AnswerView | None, keys: Sequence[Hint] = (), age: float = 0.0) -> None:
        self.answer.show(view, keys, age)
        self._place_answer()

    def show_sent(self, message: str = "", status: str = "") -> None:
        """Show a message that was written here and waits for its answer; an empty one hides it."""
        if message or self.sent.message:
            self.sent.show(message, status)
            self._place_answer()

    def _place_answer(self) -> None:
        if self.answer.view is not None:
            self._place_card()
        if self.sent.message or self.sent.display:
            self.sent.place(self._blank_row_over_composer(), self.size.width)

    def _place_card(self) -> None:
        room = self._room_over_composer()
        self.answer.place(Size(self.size.width, room))
        if self.answer.folded:
            return
        terminal = self.session.terminal
        self.answer.over(
            [terminal.line(y).text for y in range(terminal.lines)],
            (tuple(self.size), terminal.columns, terminal.lines),
            self.session.reading().rows,
            writes=self.session.report.state in (AgentState.PROCESSING, AgentState.WAITING),
        )

    def _blank_row_over_composer(self) -> int | None:
        """Return the row over the composer's frame; None if the agent has drawn something there."""
        if self.answer.display or not self._room_over_composer():
            return None
        reading, rows = self.session.reading(), self.session.terminal.display
        row = (reading.box.outer if reading.box is not None else self.session.terminal.cursor.y) - 1
        if reading.box is None and 0 <= row < len(rows) and not rows[row].strip("─ "):
            row -= bool(rows[row].strip())
        return row if reading.visible and 0 <= row < len(rows) and not rows[row].strip() else None

    def _room_over_composer(self) -> int:
        """Return the rows for a card; 0 while it would cover a dialog, a mention or earlier output.

        The frame of the composer is covered only where the card is as wide: part of a line is no frame.
        """
        if self.scroll_mode is not None or self.viewport.offset or self.mention.drawn is not None:
            return 0
        reading = self.session.reading()
        if reading.dialog is not None or self.session.report.state is AgentState.WAITING:
            return 0
        row, box = self.session.terminal.cursor.y, reading.box
        if box is not None:
            row = box.first if self.size.width <= CARD_WIDTH else box.outer
        return min(row, self.size.height)

    def _place_mention_again(self) -> None:
        self.mention.place_again(self.size, self._mention_anchor())

    def _mention_anchor(self) -> Offset:
        cursor = self.session.terminal.cursor
        width, height = self.size
        return Offset(min(cursor.x, max(0, width - 1)), min(cursor.y, max(0, height - 1)))

    def _line(self, row: int) -> Line | None:
        return self.viewport.shown(row)

    def _pens(self) -> Pens:
        system, no_color = self.app.console.color_system, self.app.no_color
        defaults = color_code(self.styles.color), color_code(self.styles.background)
        return Pens(system, no_color=no_color, highlights=highlights_of(self), defaults=defaults)

    def _spans(self, row: int) -> list[Span]:
        """Return the highlights of a row; where they overlap, the first wins."""
        spans: list[Span] = []
        number = self.viewport.top + row
        mode = self.scroll_mode
        if mode is not None:
            if mode.pointer.line == number:
                spans.append(self._cell_span(number, mode.pointer.column, Highlight.POINTER))
            spans += self._selected_span(mode.selection, number)
            if mode.search is not None:
                spans += [
                    (start, end, Highlight.CURRENT if current else Highlight.MATCH)
                    for start, end, current in mode.search.columns(number)
                ]
        elif self._block is not None and self._block[1] == row:
            spans.append(self._cell_span(number, self._block[0], Highlight.CURSOR))
        return spans + self._selected_span(self.selection, number)

    def _selected_span(self, selection: Selection | None, number: int) -> list[Span]:
        columns = selection.columns(number, self.viewport.terminal.columns) if selection is not None else None
        return [(*columns, Highlight.SELECTED)] if columns is not None else []

    def _cell_span(self, number: int, column: int, highlight: Highlight) -> Span:
        line = self.viewport.line(number)
        return (column, wide_end(line, column) if line is not None else column + 1, highlight)

    def _redraw(self) -> None:
        self._painter.clear()
        self.refresh()

    def _update_status(self) -> None:
        self.scrolled = self.viewport.offset
        if self.scroll_mode is not None:
            self.status = self.scroll_mode.status
        elif self.viewport.offset:
            self.status = tr(f"scroll {self.viewport.offset}/{len(self.viewport.terminal.scrollback)}")
        else:
            self.status = ""

    def watch_status(self, status: str) -> None:
        self.post_message(self.StatusChanged(self, status, self.scrolled))

    # Cursor and focus

    @property
    def _has_outer_cursor(self) -> bool:
        """Whether the pane owns the outer cursor: it is focused and no other screen is above."""
        return self.has_focus and self.is_attached and self.app.screen is self.screen

    def _move_cursor_block(self) -> set[int]:
        cursor = self.viewport.terminal.cursor
        row = cursor.y + self.viewport.offset
        shown = cursor.visible and row < self.viewport.height and not self._has_outer_cursor
        before, self._block = self._block, (cursor.x, row) if shown else None
        return (
            set()
            if self._block == before
            else {cell[1] for cell in (before, self._block) if cell is not None}
        )

    def _follow_cursor(self, output: PaneOutput, placement: Placement) -> str:
        """Place the outer cursor on the child's; return the escape sequence that moves it.

        This is done even for a hidden cursor, since input methods open their window there.
        """
        if not self._has_outer_cursor:
            return ""
        region = placement.region
        x, y, visible, shape = self._cursor_wanted()
        visible = visible and 0 <= y < region.height and x < region.width
        place = Offset(region.x + min(x, region.width - 1), region.y + min(max(y, 0), region.height - 1))
        moved = place != self.app.cursor_position
        self.app.cursor_position = place
        output.ask_keys(self.session.terminal.modes.kitty_flags)
        output.lend_cursor(self, shape if visible else HIDDEN)
        return f"\x1b[{place.y + 1};{place.x + 1}H" if moved else ""

    def _cursor_wanted(self) -> tuple[int, int, bool, int]:
        typing = self.mention.cursor
        if typing is not None:
            return typing.x, typing.y, True, DEFAULT_SHAPE
        if self.scroll_mode is not None:
            point = self.scroll_mode.pointer
            return point.column, self.viewport.row(point.line), False, DEFAULT_SHAPE
        terminal = self.viewport.terminal
        cursor = terminal.cursor
        return cursor.x, cursor.y + self.viewport.offset, cursor.visible, int(terminal.screen.cursor_shape)

    def _screens_changed(self) -> None:
        if self._output is not None and not self._has_outer_cursor:
            self._output.take_cursor_back(self)
        self.request_frame()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.session.focus(has_focus)
        if self._output is not None and not has_focus:
            self._output.take_cursor_back(self)
            self._output.ask_keys(0)
        self.update_view()
        if not has_focus and self.app.app_focus:
            self._keys.give_back()

    def _app_focus_changed(self, app_focus: bool) -> None:
        if app_focus and self.screen.focused is not self:
            self._keys.give_back()

    def give_back(self) -> None:
        self._keys.give_back()

    @property
    def mentioning(self) -> bool:
        """Whether a message to another agent is being typed here."""
        return self._keys.mentioning

    def on_pane_overlay_pressed(self, event: PaneOverlay.Pressed) -> None:
        if event.overlay is self.mention:
            event.stop()
            if event.target.isdecimal():
                self._keys.choose(int(event.target))
            elif self._keys.mentioning:
                self.press(event.target)

    # Keys and pastes

    def press(self, key: str) -> None:
        """Press a key by its name, as a click on its hint does."""
        self._keys.press(key_event(events.Key(key, key if len(key) == 1 else None)), b"")

    def on_key(self, event: events.Key) -> None:
        if self.reserved(event.key):
            return
        event.stop()
        event.prevent_default()
        if isinstance(event, TerminalKey):
            self._keys.press(event.event, event.raw)
        else:
            self._keys.press(key_event(event), b"")

    def on_terminal_text(self, event: TerminalText) -> None:
        event.stop()
        if not self._keys.run(event.text):
            for key in event.singly():
                self._keys.press(key.event, key.raw)

    def hand_over(self, text: str, *, but: str) -> bool:
        """Queue text typed at once behind pending events; False if its keys are to be handled one by one."""
        if self.scroll_mode is not None:
            return False  # each of them may search, or draw the pane
        names = {textual_name(KeyEvent.of_text(each)) for each in set(text)}
        if but in names or any(map(self.reserved, names)):
            return False
        self.post_message(TerminalText(text))
        return True

    def on_terminal_key_release(self, event: TerminalKeyRelease) -> None:
        event.stop()
        self._keys.press(event.event, event.raw)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._keys.paste(event.text)

    def paste(self, text: str) -> None:
        """Paste as the user would; without bracketed paste one line, since a line end would send it."""
        self.leave_scroll_mode()
        self._keys.paste(text if self.session.terminal.modes.bracketed_paste else one_line(text))

    def focus_on_click(self) -> bool:
        """Focus the pane on a click, and keep that click from the agent."""
        self._mouse.focusing(self.has_focus)
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        self._keys.give_back()
        self._mouse.press(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        event.stop()
        self._mouse.move(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()
        self._mouse.release(event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._mouse.wheel(event, "wheel_up")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._mouse.wheel(event, "wheel_down")

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self._mouse.wheel(event, "wheel_left")

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self._mouse.wheel(event, "wheel_right")

    def link_at(self, x: int, y: int) -> str | None:
        line = self.viewport.shown(y)
        return clean_link(line.cell(x).style.link) if line is not None else None

    # Scrolling

    def scroll_lines(self, lines: int) -> None:
        """Scroll back by some lines; negative numbers scroll forward."""
        if self.scroll_mode is not None:
            self.scroll_mode.scroll(lines)
        elif not self.viewport.scroll_to(self.viewport.offset + lines):
            return
        self.update_view()

    def return_to_live(self) -> None:
        """Return to the live screen and clear the selection, as typing does."""
        if self.viewport.offset or self.selection is not None:
            self.viewport.scroll_to(0)
            self.selection = None
            self.update_view()

    def end_selection(self) -> None:
        self._mouse.stop_dragging()
        if self.scroll_mode is not None:
            self.scroll_mode.selection = None
        self.selection = None
        self.update_view()

    def enter_scroll_mode(self) -> None:
        if self.scroll_mode is None:
            self._keys.give_back()
            self.selection = None
            cursor = self.viewport.terminal.cursor
            row = min(cursor.y + self.viewport.offset, self.viewport.height - 1)
            self.scroll_mode = ScrollMode(self.viewport, Point(self.viewport.top + row, cursor.x))
            self.update_view()
            self.watch_status(self.status)  # its text is the same as after the wheel

    def toggle_scroll_mode(self) -> None:
        if self.scroll_mode is None:
            self.enter_scroll_mode()
        else:
            self.leave_scroll_mode()

    def leave_scroll_mode(self) -> None:
        if self.scroll_mode is not None or self.viewport.offset:
            self.scroll_mode = None
            self.viewport.scroll_to(0)
            self.update_view()

    def copy(self, text: str) -> None:
        if text:
            self.app.copy_to_clipboard(text)
            self.post_message(self.Copied(self, text))
