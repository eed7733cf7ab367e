"""The history: the tasks of this project or of all, found as one types, filtered, shown whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Button, Input, Static

from synapse_tui.errors import SynapseError
from synapse_tui.messages.records import Page, Record, Story, Wanted
from synapse_tui.messages.search import terms_of
from synapse_tui.model import Task
from synapse_tui.widgets.history_list import HistoryList
from synapse_tui.widgets.option_lists import SearchInput
from synapse_tui.widgets.text import one_line, plural

from .dialog import Dialog
from .history_detail import copied, story_text
from .history_filters import ANY, SPANS, STATES, Filters
from .pick import Pick

WIDE = 110
"""Width from which a task is shown beside the list."""
TYPING = 0.06
"""Seconds without a key after which what was typed is searched for."""
NEWS = (0.4, 3.0)
"""Seconds after a change in which new tasks are looked for: the last ones may not be written at once."""
OFF = "history is off (env.SYNAPSE_HISTORY_ENABLED): tasks go once they ended and their senders were told"


class Reader(Protocol):
    """Reads the history (`host.history_reader`)."""

    async def page(self, wanted: Wanted) -> Page:
        """The tasks that are wanted."""

    async def story(self, task_id: str) -> Story:
        """A task with its steps."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the view stands on.

    Attributes:
        reader: Reads the history.
        project: Folder of this project.
        labels: What agents are called, by id.
        agents: Agents that can be chosen, id or type to what it is called.
        kept: Whether ended tasks are kept.
        now: The time now, aware.
        again: Lets the person send a task again.
        export: Lets the person write the tasks that are shown to a file.
    """

    reader: Reader
    project: Path
    labels: Mapping[str, str]
    agents: Mapping[str, str]
    kept: bool
    now: Callable[[], datetime]
    again: Callable[[Task], None]
    export: Callable[[Wanted], None]


class HistoryView(Dialog[None]):
    """Shows the history until it is left.

    Args:
        around: What it stands on.
    """

    BOX_CLASSES: ClassVar[str] = "-full"
    TITLE_TEXT: ClassVar[str] = "History"
    SUBTITLE: ClassVar[str] = (
        "type to search · ↑↓ choose · Tab next field · Enter shows it whole · Esc leaves"
    )
    AUTO_FOCUS = "#query"
    BINDINGS: ClassVar = [
        Binding("slash", "search", show=False),
        Binding("p", "project", show=False),
        Binding("g", "pick('agent')", show=False),
        Binding("s", "pick('state')", show=False),
        Binding("t", "pick('span')", show=False),
        Binding("r", "again", show=False),
        Binding("c", "copy('answer')", show=False),
        Binding("m", "copy('message')", show=False),
        Binding("e", "export", show=False),
        Binding("q", "leave", show=False),
    ]

    def __init__(self, around: Surroundings) -> None:
        super().__init__()
        self._around = around
        self.filters = Filters()
        self._after = ""
        self._left = 0
        self._is_loading = self._gets_more = False
        self._said = ""
        self._story: Story | None = None
        self._news: list[Timer] = []
        self._reading = False
        """Whether a narrow screen shows a task in place of the list."""

    # What is on it

    def body(self) -> ComposeResult:
        """Search, filters, the list and a task beside it."""
        with Horizontal(id="search"):
            yield SearchInput(id="query", placeholder="words in messages and answers", compact=True)
            yield Static("", id="count", markup=False)
        with Horizontal(id="filters"):
            for name in ("project", "agent", "state", "span"):
                yield Button("", id=f"by-{name}", compact=True)
        with Horizontal(id="panes"):
            yield HistoryList(now=self._around.now, id="results")
            with VerticalScroll(id="task", classes="body"):
                yield Static("", id="story", markup=False)

    def buttons(self) -> ComposeResult:
        """What can be done with the marked task, and with all."""
        yield Button("Again (r)", id="again", compact=True)
        yield Button("Copy answer (c)", id="copy-answer", compact=True)
        yield Button("Message (m)", id="copy-message", compact=True)
        yield Button("Export (e)", id="export", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        """Show the newest."""
        self._label()
        self._renew()

    def on_resize(self, event: events.Resize) -> None:
        """Decide whether a task fits beside the list."""
        self.set_class(event.size.width >= WIDE, "-beside")
        self._draw()

    @property
    def list(self) -> HistoryList:
        """The list."""
        return self.query_one(HistoryList)

    # Reading

    def choose(self, filters: Filters) -> None:
        """Show other tasks."""
        if filters != self.filters:
            self.filters = filters
            self._label()
            self._renew()

    def _renew(self, after: float = 0.0) -> None:
        self._run(partial(self._read_first, after), "history")

    def _run(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        # A coroutine made here would never run where the next worker of the group comes first.
        guard: Any = partial(self._guard, work)
        self.run_worker(guard, exclusive=True, exit_on_error=False, group=group)

    async def _guard(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except SynapseError as error:
            self._is_loading = self._gets_more = False
            self.show_error(error)
            self._tell()

    async def _read_first(self, after: float) -> None:
        self._is_loading = True
        self._tell()
        if after:
            await asyncio.sleep(after)
        page = await self._page()
        self._is_loading = False
        self.show_error("")
        self._after, self._left = page.after, page.left
        listed = self.list
        listed.note = self._nothing()
        listed.describe(self._around.labels, terms_of(self.filters.query), projects=self.filters.everywhere)
        listed.show_all(page.records)
        self._tell()

    async def _page(self, after: str = "") -> Page:
        around = self._around
        return await around.reader.page(self.filters.wanted(str(around.project), around.now(), after=after))

    @on(HistoryList.NearEnd)
    def _near_end(self) -> None:
        if self._after and not self._gets_more and not self._is_loading:
            self._gets_more = True
            self._run(partial(self._read_more, self.filters), "history")

    async def _read_more(self, filters: Filters) -> None:
        page = await self._page(self._after)
        self._gets_more = False
        if filters == self.filters:
            self._after = page.after
            self.list.append(page.records)
            self._tell()

    def show_news(self, task: Task) -> None:
        """A task has changed, or is new: show it, and stay where the person is."""
        if self.list.change(task):
            shown = self.list.marked
            if shown is not None and shown.task.id == task.id:
                self._show(shown)
        elif not self._news:
            self._news = [self.set_timer(seconds, self._look_for_news) for seconds in NEWS]

    def _look_for_news(self) -> None:
        self._news = self._news[1:]
        if not self._is_loading:
            self._run(partial(self._read_news, self.filters), "history-news")

    async def _read_news(self, filters: Filters) -> None:
        page = await self._page()
        if filters != self.filters or self._is_loading:
            return
        rows = self.list.rows
        newest = rows[0].task.created_at if rows else None
        fresh = [each for each in page.records if newest is None or each.task.created_at >= newest]
        if len(fresh) == len(page.records) and rows and page.after:
            self._renew()  # more came than one page holds
            return
        self.list.insert(fresh)
        self._tell()

    # The task

    @on(HistoryList.Marked)
    def _marked(self, event: HistoryList.Marked) -> None:
        self._said = ""
        self._show(event.record)

    def _show(self, record: Record | None) -> None:
        if record is None or self._story is None or self._story.record.task.id != record.task.id:
            self._story = None
        self._draw()
        if record is not None:
            self._run(partial(self._read_story, record.task.id), "history-story")

    async def _read_story(self, task_id: str) -> None:
        await asyncio.sleep(TYPING)
        story = await self._around.reader.story(task_id)
        marked = self.list.marked
        if marked is not None and marked.task.id == task_id:
            self._story = story
            self._draw()

    def _draw(self) -> None:
        """Draw the marked task, where it is seen."""
        record = self.list.marked
        self.set_class(self._reading, "-reading")
        if self.has_class("-beside") or self._reading:
            text = Content("") if record is None else story_text(record, self._story, self._around.now())
            self.query_one("#story", Static).update(text)

    @on(HistoryList.Opened)
    @on(Input.Submitted)
    def _opened(self) -> None:
        if self.list.marked is not None:
            self._reading = True
            self._draw()
            self.query_one("#task").focus()
            self.query_one("#task", VerticalScroll).scroll_home(animate=False)

    def action_leave(self) -> None:
        """Back to the list, where a task is read; else leave."""
        if self._reading:
            self._reading = False
            self._draw()
            self.list.focus()
        else:
            self.dismiss(None)

    # Choosing

    @on(Input.Changed, "#query")
    def _typed(self, event: Input.Changed) -> None:
        if event.value != self.filters.query:
            self.filters = replace(self.filters, query=event.value)
            self._renew(TYPING)

    def action_search(self) -> None:
        """Go to the search."""
        self._reading = False
        self._draw()
        self.query_one("#query").focus()

    def action_project(self) -> None:
        """This project, or all."""
        self.choose(replace(self.filters, everywhere=not self.filters.everywhere))

    def action_pick(self, name: str) -> None:
        """Ask for an agent, a state, or a time."""
        seen = {row.task.target: one_line(row.task.target) for row in self.list.rows if row.task.target}
        title, options = {
            "agent": ("Agent", {ANY: "any agent", **self._around.agents, **seen, **self._around.labels}),
            "state": ("State", {key: word for key, (word, _) in STATES.items()}),
            "span": ("Made in", {key: word for key, (word, _) in SPANS.items()}),
        }[name]

        def picked(key: str | None) -> None:
            if key is not None:
                self.choose(self.filters.with_choice(name, key))

        self.app.push_screen(Pick(title, options, getattr(self.filters, name)), picked)

    # Doing

    def action_again(self) -> None:
        """Send the marked task again, to whom the person likes."""
        if self.list.marked is not None:
            self._around.again(self.list.marked.task)

    def action_copy(self, what: str) -> None:
        """Copy the message or the answer."""
        record = self.list.marked
        text = copied(record.task, what) if record is not None else ""
        if text:
            self.app.copy_to_clipboard(text)
        self._said = f"copied {plural(len(text), 'character')}" if text else f"there is no {what} to copy"
        self._tell()

    def action_export(self) -> None:
        """Write what is shown to a file."""
        self._around.export(self.filters.wanted(str(self._around.project), self._around.now()))

    def tell(self, text: str) -> None:
        """Tell what was done; until another task is marked."""
        self._said = one_line(text)
        self._tell()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        choices: dict[str, Callable[[], object]] = {
            "by-project": self.action_project,
            "by-agent": lambda: self.action_pick("agent"),
            "by-state": lambda: self.action_pick("state"),
            "by-span": lambda: self.action_pick("span"),
            "again": self.action_again,
            "copy-answer": lambda: self.action_copy("answer"),
            "copy-message": lambda: self.action_copy("message"),
            "export": self.action_export,
            "close": lambda: self.dismiss(None),
        }
        choices[event.button.id or "close"]()

    # Words

    def _label(self) -> None:
        chosen = self.filters.labels(one_line(self._around.project.name))
        keys = {"project": "p", "agent": "g", "state": "s", "span": "t"}
        for name, text in chosen.items():
            button = self.query_one(f"#by-{name}", Button)
            button.label = Content(f"{text} ({keys[name]})")
            button.refresh(layout=True)  # its width is that of its words

    def _nothing(self) -> str:
        if self.filters.narrow:
            return "nothing is found" + ("" if self.filters.everywhere else "; p looks in all projects")
        return "no message was sent yet" if self._around.kept else OFF

    def _tell(self) -> None:
        rows: Sequence[Record] = self.list.rows
        count = f"{len(rows)}+" if self._after else str(len(rows))
        words = [self._said] if self._said else []
        if self._is_loading:
            words.append("looking…")
        elif self._left:
            words.append(f"{self._left} not indexed yet")
        if not self._around.kept and rows and not self._said:
            words.append("history is off")
        words.append(plural(len(rows), "task") if count == str(len(rows)) else f"{count} tasks")
        self.query_one("#count", Static).update(Content(" · ".join(words)))
