"""A list of tasks of any length that draws only the visible rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

from synapse_tui.core.model import Task
from synapse_tui.core.wording import moment
from synapse_tui.messages.records import Record
from synapse_tui.messages.search import folded
from synapse_tui.system.dataclass import dataclass

from .error_handling import FaultTolerant
from .fit import Piece, shorten
from .states import delivery_mark
from .text import one_line
from .views import party

AROUND = 200  # characters examined before and after a match
HEAD = 2000  # characters of a text searched after Unicode normalization (NFKC)
BEFORE = 0.3  # maximum share of the line before the match

Run = tuple[str, bool]  # text, and whether it matches the search


def stands_in(text: str, terms: Sequence[str]) -> bool:
    plain = text.casefold()
    return any(term in plain or term in folded(text[:HEAD]) for term in terms)


def excerpt(text: str, terms: Sequence[str], width: int) -> list[Run]:
    line = one_line(_around(text, terms))
    hits = list(_hits(line, terms))
    start = 0
    if hits and cell_len(line[: hits[0][1]]) > width - 2:
        room, start = int(width * BEFORE), hits[0][0]
        while start > 0 and cell_len(line[start - 1 : hits[0][0]]) < room:
            start -= 1
    lead = "…" if start else ""
    shown = shorten(lead + line[start:], width)
    return list(_runs(shown, [(a - start + len(lead), b - start + len(lead)) for a, b in hits]))


def _around(text: str, terms: Sequence[str]) -> str:
    if len(text) <= HEAD:
        return text
    plain = text.casefold()
    found = min((at for term in terms if (at := plain.find(term)) >= 0), default=-1)
    if found < HEAD // 2:
        return text[:HEAD]
    return "…" + text[max(0, found - AROUND) : found + 2 * AROUND]


def _hits(line: str, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    plain: list[str] = []
    places: list[int] = []
    for at, char in enumerate(line):
        for each in folded(char):
            plain.append(each)
            places.append(at)
    whole, end = "".join(plain), 0
    found = [(at, at + len(term)) for term in terms for at in _all(whole, term)]
    for first, last in sorted(found, key=lambda hit: (hit[0], -hit[1])):
        if first >= end:
            yield places[first], places[last - 1] + 1
            end = last


def _all(whole: str, term: str) -> Iterator[int]:
    at = whole.find(term)
    while at >= 0:
        yield at
        at = whole.find(term, at + len(term))


def _runs(line: str, hits: Sequence[tuple[int, int]]) -> Iterator[Run]:
    done = 0
    for first, last in hits:
        if line[done:first]:
            yield line[done:first], False
        if line[first:last]:
            yield line[first:last], True
        done = max(done, last)
    if line[done:]:
        yield line[done:], False


REPLY = "↳ "
_LEAST = 6  # minimum cells of a name


ROW = 2  # lines per task
AHEAD = 20  # rows before the end at which more are requested


class HistoryList(FaultTolerant, ScrollView, can_focus=True):
    """Lists tasks, newest first; one of them is marked."""

    DEFAULT_CSS = """
    HistoryList {
        height: 1fr; width: 1fr; background: $panel; color: $ink;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; overflow-y: auto;
        & > .history--marked { background: $raised; color: $ink; }
        &:focus > .history--marked { background: $select; color: $ink; }
        & > .history--note { color: $faint; }
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
        record: Record | None

    @dataclass
    class Opened(Message):
        record: Record

    class NearEnd(Message):
        """The view is close to the end of the list."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self.now = now
        self.rows: list[Record] = []
        self.note = ""  # shown if the list is empty
        self._marked = 0
        self._labels: Mapping[str, str] = {}
        self._terms: Sequence[str] = ()
        self._projects = False
        self._drawn: dict[tuple[int, bool], tuple[Strip, Strip]] = {}
        self._looks: dict[tuple[str, bool], RichStyle] = {}

    @property
    def marked(self) -> Record | None:
        return self.rows[self._marked] if self.rows else None

    def describe(self, labels: Mapping[str, str], terms: Sequence[str], *, projects: bool) -> None:
        self._labels, self._terms, self._projects = labels, terms, projects
        self._redraw()

    # Content

    def show_all(self, rows: Sequence[Record]) -> None:
        self.rows = list(rows)
        self._marked = 0
        self._measure()
        self.scroll_to(y=0, animate=False)
        self.post_message(self.Marked(self.marked))

    def append(self, rows: Sequence[Record]) -> None:
        known = {row.task.id for row in self.rows}
        self.rows += [row for row in rows if row.task.id not in known]
        self._measure()

    def insert(self, rows: Sequence[Record]) -> None:
        """Insert newer tasks at the top; the marked task and, unless at the top, the view do not change."""
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
        for at, row in enumerate(self.rows):
            if row.task.id == task.id:
                self.rows[at] = row.of(task)
                self._redraw()
                return True
        return False

    def _measure(self) -> None:
        self._drawn.clear()
        self.virtual_size = Size(self.scrollable_content_region.width, ROW * len(self.rows))
        self.refresh()

    def _redraw(self) -> None:
        self._drawn.clear()
        self.refresh()

    # Marking

    def mark(self, place: int) -> None:
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
        self.mark(self._marked - 1)

    def action_cursor_down(self) -> None:
        self.mark(self._marked + 1)

    def action_page_up(self) -> None:
        self.mark(self._marked - self._page)

    def action_page_down(self) -> None:
        self.mark(self._marked + self._page)

    @property
    def _page(self) -> int:
        return max(1, self.size.height // ROW - 1)

    def action_edge(self, place: int) -> None:
        self.mark(place if place >= 0 else len(self.rows) - 1)

    def action_open(self) -> None:
        if self.marked is not None:
            self.post_message(self.Opened(self.marked))

    def on_click(self, event: events.Click) -> None:
        place = (event.y + self.scroll_offset.y) // ROW
        if event.button == 1 and 0 <= place < len(self.rows):
            event.stop()
            self.mark(place)
            if event.chain == 2:
                self.action_open()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._ask_for_more(int(new_value + self.size.height) // ROW)

    # Rendering

    def on_resize(self) -> None:
        self._measure()
        self._ask_for_more(int(self.scroll_offset.y + self.size.height) // ROW)

    def watch_has_focus(self, _has_focus: bool) -> None:
        self._looks.clear()
        self._redraw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()
        self._drawn.clear()

    def render_line(self, y: int) -> Strip:
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
        head, text = self._head(record, width), self._text(record, width)
        return self._strip(head, width, marked=marked), self._strip(text, width, marked=marked)

    def _head(self, record: Record, width: int) -> list[Piece]:
        task = record.task
        mark = delivery_mark(task)
        since = record.finished_at or record.submitted_at or task.created_at  # when it came to be so
        tail = f"{mark.word}  {moment(since, self.now())} "
        project = f"  {one_line(Path(record.project).name)}" if self._projects else ""
        room = max(2 * _LEAST, width - 7 - cell_len(tail))
        labels = record.names(self._labels)
        sender = shorten(party(task.sender.sender_id, labels), max(_LEAST, room // 2 - 1))
        sender += "" if task.sender.verified else "?"
        target = shorten(party(task.target, labels), max(_LEAST, room - cell_len(sender) - 1))
        project = shorten(project, max(0, room - cell_len(sender) - cell_len(target)))
        gap = width - 6 - cell_len(sender) - cell_len(target) - cell_len(project) - cell_len(tail)
        return [
            Piece(f" {mark.glyph} ", f"bold ${mark.colour}"),
            Piece(sender, "bold $ink"),
            Piece(" → ", "$faint"),
            Piece(target, "bold $ink"),
            Piece(project, "$faint"),
            Piece(" " * max(1, gap)),
            Piece(f"{mark.word}  ", f"${mark.colour}"),
            Piece(tail.removeprefix(f"{mark.word}  "), "$muted"),
        ]

    def _text(self, record: Record, width: int) -> list[Piece]:
        task, room = record.task, width - 4
        text, lead = task.text, ""
        if self._terms and not stands_in(text, self._terms) and stands_in(task.answer, self._terms):
            text, lead = task.answer, REPLY
        runs = excerpt(text, self._terms, room - cell_len(lead))
        return [
            Piece(f"   {lead}", "$faint"),
            *(Piece(run, "bold underline $accent" if hit else "$muted") for run, hit in runs),
        ]

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
