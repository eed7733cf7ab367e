"""The tasks of the history as a list of any length: only what is seen is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

from synapse_tui.messages.records import Record
from synapse_tui.model import Task

from .history_row import Look, history_row
from .segment_bar import Piece
from .sturdy import Sturdy

ROW = 2
"""Lines of a task."""
AHEAD = 20
"""How many tasks before its end the list asks for more."""


class HistoryList(Sturdy, ScrollView, can_focus=True):
    """Shows tasks, the newest first; one of them is marked.

    Args:
        now: The time now, aware.
    """

    DEFAULT_CSS = """
    HistoryList {
        height: 1fr; width: 1fr; background: $dialog; color: $ink;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; overflow-y: auto;
        & > .history--marked { background: $raised; color: $ink; }
        &:focus > .history--marked { background: $focus; color: $focus-ink; }
        & > .history--note { color: $ink-faint; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"history--marked", "history--note"}
    ALLOW_SELECT: ClassVar[bool] = False
    BINDINGS: ClassVar = [
        ("up", "cursor_up"),
        ("down", "cursor_down"),
        ("pageup", "page_up"),
        ("pagedown", "page_down"),
        ("home", "edge(0)"),
        ("end", "edge(-1)"),
        ("enter", "open"),
    ]

    @dataclass
    class Marked(Message):
        """Another task is marked; None when there is none."""

        record: Record | None

    @dataclass
    class Opened(Message):
        """The marked task is to be shown whole."""

        record: Record

    class NearEnd(Message):
        """The end of the list comes near."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self.now = now
        self.rows: list[Record] = []
        self.note = ""
        """What is told where there is no task."""
        self._marked = 0
        self._labels: Mapping[str, str] = {}
        self._terms: Sequence[str] = ()
        self._projects = False
        self._drawn: dict[tuple[int, bool], tuple[Strip, Strip]] = {}
        self._looks: dict[tuple[str, bool], RichStyle] = {}

    @property
    def marked(self) -> Record | None:
        """The marked task."""
        return self.rows[self._marked] if self.rows else None

    def describe(self, labels: Mapping[str, str], terms: Sequence[str], *, projects: bool) -> None:
        """Take what agents are called, what was searched for, and whether projects are told."""
        self._labels, self._terms, self._projects = labels, terms, projects
        self._draw_anew()

    # What is listed

    def show_all(self, rows: Sequence[Record]) -> None:
        """List other tasks, from the first one on."""
        self.rows = list(rows)
        self._marked = 0
        self._measure()
        self.scroll_to(y=0, animate=False)
        self.post_message(self.Marked(self.marked))

    def append(self, rows: Sequence[Record]) -> None:
        """List older tasks below."""
        known = {row.task.id for row in self.rows}
        self.rows += [row for row in rows if row.task.id not in known]
        self._measure()

    def insert(self, rows: Sequence[Record]) -> None:
        """List newer tasks above; what is marked stays so, and stays where it is unless that is the top."""
        known = {row.task.id for row in self.rows}
        fresh = [row for row in rows if row.task.id not in known]
        if not fresh:
            return
        was_empty, top = not self.rows, self.scroll_offset.y
        self.rows[:0] = fresh
        self._marked = 0 if was_empty else self._marked + len(fresh)
        self._measure()
        if top:
            self.scroll_to(y=top + ROW * len(fresh), animate=False)
        if was_empty:
            self.post_message(self.Marked(self.marked))

    def change(self, task: Task) -> bool:
        """Show a newer snapshot of a task; whether it is listed."""
        for at, row in enumerate(self.rows):
            if row.task.id == task.id:
                ended = task.updated_at if task.state.final else None
                self.rows[at] = replace(row, task=task, finished_at=ended)
                self._draw_anew()
                return True
        return False

    def _measure(self) -> None:
        self._drawn.clear()
        self.virtual_size = Size(self.scrollable_content_region.width, ROW * len(self.rows))
        self.refresh()

    def _draw_anew(self) -> None:
        self._drawn.clear()
        self.refresh()

    # What is marked

    def mark(self, place: int) -> None:
        """Mark a task by its place, and bring it into view."""
        if not self.rows:
            return
        place = min(max(place, 0), len(self.rows) - 1)
        if place != self._marked:
            self._marked = place
            self.post_message(self.Marked(self.marked))
        top, height = self.scroll_offset.y, self.size.height
        if ROW * place < top:
            self.scroll_to(y=ROW * place, animate=False)
        elif ROW * (place + 1) > top + height:
            self.scroll_to(y=ROW * (place + 1) - height, animate=False)
        self._ask_for_more(place)
        self.refresh()

    def _ask_for_more(self, place: int) -> None:
        if place >= len(self.rows) - AHEAD:
            self.post_message(self.NearEnd())

    def action_cursor_up(self) -> None:
        """Mark the task above."""
        self.mark(self._marked - 1)

    def action_cursor_down(self) -> None:
        """Mark the task below."""
        self.mark(self._marked + 1)

    def action_page_up(self) -> None:
        """Mark the task a page further up."""
        self.mark(self._marked - self._page)

    def action_page_down(self) -> None:
        """Mark the task a page further down."""
        self.mark(self._marked + self._page)

    @property
    def _page(self) -> int:
        return max(1, self.size.height // ROW - 1)

    def action_edge(self, place: int) -> None:
        """Mark the first task, or the last that is known here."""
        self.mark(place if place >= 0 else len(self.rows) - 1)

    def action_open(self) -> None:
        """Ask for the marked task."""
        if self.marked is not None:
            self.post_message(self.Opened(self.marked))

    def on_click(self, event: events.Click) -> None:
        """A click marks, a second one on the same task opens it."""
        place = (event.y + self.scroll_offset.y) // ROW
        if event.button == 1 and 0 <= place < len(self.rows):
            event.stop()
            self.mark(place)
            if event.chain == 2:
                self.action_open()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The wheel and the bar come near the end too."""
        super().watch_scroll_y(old_value, new_value)
        self._ask_for_more(int(new_value + self.size.height) // ROW)

    # How it looks

    def on_resize(self) -> None:
        """Rows depend on the width."""
        self._measure()
        self._ask_for_more(int(self.scroll_offset.y + self.size.height) // ROW)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The marked row has another colour."""
        self._looks.clear()
        self._draw_anew()

    def notify_style_update(self) -> None:
        """The theme may have other colours."""
        super().notify_style_update()
        self._looks.clear()
        self._drawn.clear()

    def render_line(self, y: int) -> Strip:
        """One line of the view."""
        width = self.scrollable_content_region.width
        place, part = divmod(y + self.scroll_offset.y, ROW)
        if not self.rows:
            text = self.note if y == 1 else ""
            style = self.get_component_rich_style("history--note")
            return Strip([Segment(f"   {text}", style)]).adjust_cell_length(width, style)
        if place >= len(self.rows):
            return Strip.blank(width, self._look("", marked=False))
        key = place, place == self._marked
        if key not in self._drawn:
            self._drawn[key] = self._draw(self.rows[place], width, marked=key[1])
        return self._drawn[key][part]

    def _draw(self, record: Record, width: int, *, marked: bool) -> tuple[Strip, Strip]:
        look = Look(width, self.now(), self._labels, self._terms, self._projects)
        head, text = history_row(record, look)
        return self._strip(head, width, marked=marked), self._strip(text, width, marked=marked)

    def _strip(self, pieces: Sequence[Piece], width: int, *, marked: bool) -> Strip:
        segments = [Segment(piece.text, self._look(piece.style, marked=marked)) for piece in pieces]
        return Strip(segments).adjust_cell_length(width, self._look("", marked=marked))

    def _look(self, style: str, *, marked: bool) -> RichStyle:
        found = self._looks.get((style, marked))
        if found is None:
            base = self.get_visual_style("history--marked") if marked else self.visual_style
            whole = base + self._get_style(style) if style else base
            if marked and self.app.no_color:
                whole += Style(reverse=True)
            found = self._looks[style, marked] = whole.rich_style
        return found
