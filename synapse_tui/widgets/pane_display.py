"""The half of a pane that shows: the child's output and cursor, and what lies over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

from textual.app import ComposeResult
from textual.geometry import Offset, Region
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from synapse_tui.mention import ComposerView, MentionView
from synapse_tui.terminal import Line, Terminal

from .colors import Pens
from .cursor_follower import CursorFollower
from .mention_overlay import MentionOverlay
from .resizer import Resizer
from .row_painter import RowPainter
from .row_spans import RowSpans
from .scroll_mode import ScrollMode
from .selection import Selection
from .stage import PaneStage, Placement
from .strips import Span
from .theme_colors import highlights_of
from .viewport import Viewport

SYNC_TIMEOUT = 0.15
"""Seconds that a child may keep back a frame by synchronized output (mode 2026)."""


class ViewedSession(Protocol):
    """What a pane needs of an agent's session."""

    damage_listener: Callable[[], None] | None

    @property
    def terminal(self) -> Terminal:
        """Its screen; another object after a restart."""

    def user_input(self, data: bytes) -> None:
        """Take encoded keys, pastes and mouse events."""

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""

    def focus(self, focused: bool) -> None:
        """Tell that a person looks at it, or no longer does."""

    def charge(self, seconds: float) -> None:
        """Count the time that painting its screen took."""

    def reading(self) -> ComposerView:
        """The composer on its screen."""


class PaneDisplay(Widget):
    """Shows the terminal of one agent. It has neither border nor padding.

    Args:
        session: The agent.
        name: As for every widget; so on.
    """

    ALLOW_SELECT: ClassVar[bool] = False

    status: var[str] = var("")
    """A few words about scrolling and searching for the pane's bar; empty on the live screen."""
    scrolled: var[int] = var(0)
    """Lines that the view is scrolled back."""

    def __init__(
        self,
        session: ViewedSession,
        *,
        name: str | None,
        id: str | None,  # noqa: A002 - Textual's word
        classes: str | None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.set_reactive(Widget.auto_links, False)
        self.session = session
        self.viewport = Viewport(session.terminal)
        self.selection: Selection | None = None
        self.scroll_mode: ScrollMode | None = None
        self.mention = MentionOverlay()
        self.awaited = False
        """Whether the next output is probably the echo of a key."""
        self._stage: PaneStage | None = None
        self._painter = RowPainter(self, self._line, self._spans, self._pens)
        self._cursor = CursorFollower(self)
        self._resizer = Resizer(self)
        self._synchronized_since: float | None = None

    def compose(self) -> ComposeResult:
        """The overlay for mentions, hidden at first."""
        yield self.mention

    def on_mount(self) -> None:
        """Begin to listen to the session."""
        self._stage = PaneStage.of(self.app)
        self.session.damage_listener = self.request_frame
        self.watch(self.screen, "stack_updates", self._screens_changed, init=False)

    def on_unmount(self) -> None:
        """Stop listening; the outer cursor goes back."""
        if self.session.damage_listener == self.request_frame:
            self.session.damage_listener = None
        if self._stage is not None:
            self._stage.clock.forget(self)
            self._stage.cursor.take_back(self)

    def notify_style_update(self) -> None:
        """Take over the colours of the theme."""
        super().notify_style_update()
        self._painter.forget_colors()
        self.refresh()

    def on_resize(self) -> None:
        """Give the terminal the size of the pane, once it has settled."""
        self._redraw()
        self.measure_cells()
        self._resizer.offer(self.size.width, self.size.height)
        self._place_mention_again()

    def measure_cells(self) -> None:
        """Let the terminal reckon with the outer one's cells in pixels; their size can change at any time."""
        pixels = self._stage.cell_pixels if self._stage is not None else None
        if pixels is not None:
            self.session.terminal.cell_pixels = pixels

    def on_show(self) -> None:
        """Draw what has come while the pane was hidden."""
        self._redraw()
        self._resizer.offer(self.size.width, self.size.height)

    # Frames

    def request_frame(self) -> None:
        """Ask for a frame: there was output."""
        if self._stage is not None:
            self._stage.clock.request(self, at_once=self.awaited)
            self.awaited = False

    def held_until(self, now: float) -> float:
        """Return until when the child wants its frame kept back (mode 2026), at most 150 ms from its start.

        Args:
            now: The loop's clock.
        """
        if not self.session.terminal.modes.synchronized:
            self._synchronized_since = None
            return now
        if self._synchronized_since is None:
            self._synchronized_since = now
        return self._synchronized_since + SYNC_TIMEOUT

    def paint_frame(self) -> str:
        """Take the terminal's damage and return what draws it, or have Textual draw it and return nothing."""
        stage = self._stage
        if stage is None or not self.is_attached:
            return ""
        stage.begin()
        self._synchronized_since = None
        if self.session.terminal.modes.synchronized:
            # It has had its time: what else comes of this frame is shown as it comes.
            self.session.terminal.end_synchronized()
        rows = set(self._absorb())
        self._painter.inverted = self.viewport.terminal.modes.reverse_video
        rows |= self._drop_changed_selection()
        rows |= self._cursor.move_block()
        self._painter.drop(rows)
        self._update_status()
        placement = stage.placement(self)
        if placement is None or stage.dropping:
            return ""
        self._resizer.check(self.size.width, self.size.height)
        moved = self._cursor.follow(stage, placement)
        if stage.may_paint(placement):
            return self._scroll(rows, placement) + self._painter.draw(rows, placement) + moved
        self._painter.refresh(rows)
        return moved

    def charge(self, seconds: float) -> None:
        """Let the agent answer for the time that a frame took."""
        self.session.charge(seconds)

    def _scroll(self, rows: set[int], placement: Placement) -> str:
        """Move rows on the outer terminal where that can be done; they need not be drawn then."""
        scroll = self.viewport.scroll
        overlaid = self.selection is not None or self.scroll_mode is not None
        if scroll is None or overlaid or not self._cursor.has_outer_cursor:
            return ""
        moved = self._painter.scroll(scroll, placement)
        if moved:
            rows -= set(range(scroll.top, scroll.bottom + 1))
            rows |= scroll.rows  # also those that stay in their place, which moved with the others
        return moved

    def _absorb(self) -> Iterable[int]:
        if self.session.terminal is not self.viewport.terminal:
            self.viewport = Viewport(self.session.terminal)
            self.lines_moved()
            self.measure_cells()
            self._resizer.repeat()
            return range(self.size.height)
        if self.viewport.resized():
            self.lines_moved()
            self._place_mention_again()
        return self.viewport.absorb()

    def lines_moved(self) -> None:
        """The lines were wrapped anew or are others: no place in them holds any more."""
        self.selection = self.scroll_mode = None

    def _drop_changed_selection(self) -> set[int]:
        if self.selection is None or self.selecting or not self.selection.changed():
            return set()
        self.selection = None
        return set(range(self.size.height))

    @property
    def selecting(self) -> bool:
        """Whether a selection is being made, and stays although its text changes."""
        return False

    # Drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the cached strips of some rows.

        Args:
            crop: The part of the widget that is wanted.
        """
        return self._painter.strips(crop)

    def render_line(self, y: int) -> Strip:
        """Return the strip of one row."""
        return self._painter.strip(y)

    def update_view(self) -> None:
        """Draw the pane anew after scrolling, selecting or searching."""
        self._painter.drop(range(self.size.height))
        self._cursor.move_block()
        self._update_status()
        stage = self._stage
        placement = stage.placement(self) if stage is not None else None
        if stage is None or placement is None or not stage.may_paint(placement):
            self.refresh()
            return
        rows = range(placement.region.height)
        stage.paint(self._painter.draw(rows, placement) + self._cursor.follow(stage, placement))

    def show_mention(self, view: MentionView | None) -> None:
        """Show what is held of a mention at the child's cursor, or hide it.

        Args:
            view: What to show; None to hide.
        """
        if view is None and self.mention.picture is None:
            return
        self.mention.show(view, self.size, self._mention_anchor())
        self.request_frame()

    def _place_mention_again(self) -> None:
        """The pane or the terminal has another size: the overlay may be out of it."""
        self.mention.place_again(self.size, self._mention_anchor())

    def _mention_anchor(self) -> Offset:
        cursor = self.session.terminal.cursor
        width, height = self.size
        return Offset(min(cursor.x, max(0, width - 1)), min(cursor.y, max(0, height - 1)))

    def _line(self, row: int) -> Line | None:
        return self.viewport.shown(row)

    def _pens(self) -> Pens:
        system, no_color = self.app.console.color_system, self.app.no_color
        return Pens(system, no_color=no_color, highlights=highlights_of(self))

    def _spans(self, row: int) -> list[Span]:
        return RowSpans(self.viewport, self.selection, self.scroll_mode, self._cursor.block).of(row)

    def _redraw(self) -> None:
        self._painter.clear()
        self.refresh()

    def _update_status(self) -> None:
        self.scrolled = self.viewport.offset
        if self.scroll_mode is not None:
            self.status = self.scroll_mode.status
        elif self.viewport.offset:
            self.status = f"scroll {self.viewport.offset}/{len(self.viewport.terminal.scrollback)}"
        else:
            self.status = ""

    # Focus

    def _screens_changed(self) -> None:
        """Another screen lies over the pane's, or none does any more."""
        if self._stage is not None and not self._cursor.has_outer_cursor:
            self._stage.cursor.take_back(self)
        self.request_frame()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Tell the agent; the outer cursor comes or goes."""
        super().watch_has_focus(has_focus)
        self.session.focus(has_focus)
        if self._stage is not None and not has_focus:
            self._stage.cursor.take_back(self)
            self._stage.ask_keys(0)
        self.update_view()
