"""The history: tasks of this project or of all, with incremental search and filters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Button, Input, Static

from synapse_tui.core.errors import InvalidValue, SynapseError
from synapse_tui.core.model import INTERRUPT_PRIORITY, Task, TaskState
from synapse_tui.core.wording import moment, since
from synapse_tui.messages.export import FORMATS
from synapse_tui.messages.records import Page, Record, Story, TaskQuery
from synapse_tui.messages.search import terms_of
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.widgets.fit import pad
from synapse_tui.widgets.history_list import HistoryList
from synapse_tui.widgets.option_lists import SearchInput
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.states import delivery_mark, reason_words
from synapse_tui.widgets.text import one_line, plural, printable
from synapse_tui.widgets.views import named, party, proof

from .composer import Draft
from .dialog import BUTTON_KEY, Dialog, FittedText, Form, Pick, label, no_text
from .messages import MessageActions, said, timeline_text
from .shell import Shell

WIDE = 110  # width from which a task is shown beside the list
TYPING = 0.06  # delay before searching for the typed text
# seconds after a change at which to look for new tasks; the latest may not be written yet
NEWS = (0.4, 3.0)
OFF = tr("history is off (env.SYNAPSE_HISTORY_ENABLED): tasks are dropped once they ended and were reported")
MOST = 40_000  # maximum characters shown of a task; copy and export are complete
ANY = ""
STATES: Mapping[str, tuple[str, tuple[TaskState, ...]]] = {
    ANY: (tr("any state"), ()),
    "open": (tr("unfinished"), (TaskState.SUBMITTED, TaskState.WORKING, TaskState.INPUT_REQUIRED)),
    "completed": (tr("done"), (TaskState.COMPLETED,)),
    "failed": (tr("failed"), (TaskState.FAILED, TaskState.REJECTED)),
    "canceled": (tr("canceled"), (TaskState.CANCELED,)),
}
SPANS: Mapping[str, tuple[str, timedelta | None]] = {
    ANY: (tr("any time"), None),
    "hour": (tr("the last hour"), timedelta(hours=1)),
    "day": (tr("the last day"), timedelta(days=1)),
    "week": (tr("the last 7 days"), timedelta(days=7)),
    "month": (tr("the last 30 days"), timedelta(days=30)),
}
BUTTONS: Mapping[str, str] = {
    "again": tr("Again (r)"),
    "copy-answer": tr("Copy answer (c)"),
    "copy-message": tr("Copy message (m)"),
    "export": tr("Export (e)"),
}


class HistoryActions:
    def __init__(self, app: Shell, messages: MessageActions) -> None:
        self._app = app
        self._messages = messages
        self.project = app.host.project
        self.reader = app.host.history.reader
        self.labels = app.labels

    def now(self) -> datetime:
        return self._app.today()

    @property
    def kept(self) -> bool:
        return self._app.host.settings.flag("env.SYNAPSE_HISTORY_ENABLED")

    def agent_types(self) -> dict[str, str]:
        return {agent.agent_type: tr(f"every {agent.agent_type}") for agent in self._app.main.agents}

    def newest(self, record: Record) -> Record:
        """Return a record as its task is now: what is read lags behind what happens meanwhile."""
        task = self._app.host.task(record.task.id)
        return record if task is None or task.updated_at <= record.task.updated_at else record.of(task)

    def action_history(self) -> None:
        self._app.ask(HistoryView(self))

    def send_again(self, task: Task) -> None:
        """Open the composer with an old message, addressed to its agent if that still exists."""
        everyone = self._messages.recipients()
        to = next((each.address for each in everyone if each.agent_id == task.target), "")
        priority = min(task.priority, INTERRUPT_PRIORITY - 1)
        draft = Draft((to,) if to else (), task.text.strip(), priority)
        self._messages.compose(draft, self._notice)

    def export(self, wanted: TaskQuery) -> None:
        async def write(form: str, path: Path) -> str:
            count = await self.reader.export(wanted, form, path)
            return tr(f"exported {plural(count, 'task')}: {short_path(path)}")

        self._app.ask(HistoryExport(self.project, self.now(), write), self._notice)

    def _notice(self, text: str) -> None:
        self._app.notice(text)
        if isinstance(self._app.screen, HistoryView):
            self._app.screen.show_notice(text)


class HistoryView(Dialog[None]):
    BOX_CLASSES: ClassVar[str] = "-full"
    TITLE_TEXT: ClassVar[str] = "History"
    SUBTITLE: ClassVar[str] = "type to search · ↑↓ choose · Tab next field · Enter opens · Esc closes"
    AUTO_FOCUS = "#query"
    BINDINGS: ClassVar = [
        ("slash", "search"),
        ("p", "project"),
        ("g", "pick('agent')"),
        ("s", "pick('state')"),
        ("t", "pick('span')"),
        ("r", "again"),
        ("c", "copy('answer')"),
        ("m", "copy('message')"),
        ("e", "export"),
        ("q", "leave"),
    ]

    def __init__(self, actions: HistoryActions) -> None:
        super().__init__()
        self._actions = actions
        self.filters = Filters()
        self._after = ""
        self._left = 0
        self._is_loading = self._gets_more = False
        self._notice = ""
        self._story: Story | None = None
        self._news: list[Timer] = []
        self._reading = False  # on a narrow screen, whether a task is shown instead of the list

    def keys_here(self) -> Place:
        return PLACES["history"]

    # Layout

    def body(self) -> ComposeResult:
        with Horizontal(id="search"):
            yield SearchInput(id="query", placeholder=tr("words in messages and answers"), compact=True)
            yield Static("", id="count", markup=False)
        with Horizontal(id="filters"):
            for name in ("project", "agent", "state", "span"):
                yield Button("", id=f"by-{name}", compact=True)
        with Horizontal(id="panes"):
            yield HistoryList(now=self._actions.now, id="results")
            with VerticalScroll(id="task", classes="body"):
                yield FittedText(id="story")

    def buttons(self) -> ComposeResult:
        for name, text in BUTTONS.items():
            yield Button(text, id=name, compact=True)
        yield Button(tr("Close"), id="close", compact=True)

    def on_mount(self) -> None:
        self._label()
        self._renew()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-beside")
        self._draw()

    @property
    def list(self) -> HistoryList:
        return self.query_one(HistoryList)

    # Reading the history

    def choose(self, filters: Filters) -> None:
        if filters != self.filters:
            self.filters = filters
            self._label()
            self._renew()

    def _renew(self, after: float = 0.0) -> None:
        self._run(partial(self._read_first, after), "history")

    def _run(self, work: Callable[[], Awaitable[None]], group: str) -> None:
        self.run_latest(partial(self._guard, work), group)

    async def _guard(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except SynapseError as error:
            self._is_loading = self._gets_more = False
            self.show_error(error)
            self._show_count()

    async def _read_first(self, after: float) -> None:
        self._is_loading = True
        self._show_count()
        if after:
            await asyncio.sleep(after)
        page = await self._page()
        self._is_loading = False
        self.show_error("")
        self._after, self._left = page.cursor, page.left
        listed = self.list
        listed.note = self._nothing()
        listed.describe(
            self._actions.labels(), terms_of(self.filters.query), projects=self.filters.everywhere
        )
        listed.show_all(page.items)
        self._show_count()

    async def _page(self, after: str = "") -> Page[Record]:
        wanted = self.filters.wanted(str(self._actions.project), self._actions.now(), after=after)
        page = await self._actions.reader.page(wanted)
        return replace(page, items=[self._actions.newest(record) for record in page.items])

    @on(HistoryList.NearEnd)
    def _near_end(self) -> None:
        if self._after and not self._gets_more and not self._is_loading:
            self._gets_more = True
            self._run(partial(self._read_more, self.filters), "history")

    async def _read_more(self, filters: Filters) -> None:
        page = await self._page(self._after)
        self._gets_more = False
        if filters == self.filters:
            self._after = page.cursor
            self.list.append(page.items)
            self._show_count()

    def show_news(self, task: Task) -> None:
        """Show a new or changed task without moving the selection."""
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
        fresh = [item for item in page.items if newest is None or item.task.created_at >= newest]
        if len(fresh) == len(page.items) and rows and page.cursor:
            self._renew()  # there may be more new tasks than one page holds
            return
        self.list.insert(fresh)
        self._show_count()

    # The task

    @on(HistoryList.Marked)
    def _marked(self, event: HistoryList.Marked) -> None:
        self.show_notice("")
        self._show(event.record)

    def _show(self, record: Record | None) -> None:
        if record is None or self._story is None or self._story.record.task.id != record.task.id:
            self._story = None
        self._draw()
        if record is not None:
            self._run(partial(self._read_story, record.task.id), "history-story")

    async def _read_story(self, task_id: str) -> None:
        await asyncio.sleep(TYPING)
        story = await self._actions.reader.story(task_id)
        marked = self.list.marked
        if marked is not None and marked.task.id == task_id:
            self._story = story
            self._draw()

    def _draw(self) -> None:
        record = self.list.marked
        self.set_class(self._reading, "-reading")
        self._show_keys()
        if self.has_class("-beside") or self._reading:
            self.query_one("#story", FittedText).fit(
                no_text
                if record is None
                else partial(
                    story_text, record, self._story, self._actions.now(), record.names(self._actions.labels())
                )
            )

    @on(HistoryList.Opened)
    @on(Input.Submitted)
    def _opened(self) -> None:
        if self.list.marked is not None:
            self._reading = True
            self._draw()
            self.query_one("#task").focus()
            self.query_one("#task", VerticalScroll).scroll_home(animate=False)

    def action_leave(self) -> None:
        """Close the task that is shown in place of the list; otherwise close the history."""
        if self._reading:
            self._reading = False
            self._draw()
            self.list.focus()
        else:
            self.dismiss(None)

    # Filters

    @on(Input.Changed, "#query")
    def _typed(self, event: Input.Changed) -> None:
        if event.value != self.filters.query:
            self.filters = replace(self.filters, query=event.value)
            self._renew(TYPING)

    def action_search(self) -> None:
        self._reading = False
        self._draw()
        self.query_one("#query").focus()

    def action_project(self) -> None:
        self.choose(replace(self.filters, everywhere=not self.filters.everywhere))

    def action_pick(self, name: str) -> None:
        labels = self._actions.labels()
        rows = [row for row in reversed(self.list.rows) if row.task.target]
        seen = {row.task.target: named(row.task.target, row.names(labels)) for row in rows}
        title, options = {
            "agent": (
                tr("Receiver"),
                {
                    ANY: tr("any receiver"),
                    **self._actions.agent_types(),
                    **seen,
                    **{each: named(each, labels) for each in labels},
                },
            ),
            "state": (tr("State"), {key: word for key, (word, _) in STATES.items()}),
            "span": (tr("Created in"), {key: word for key, (word, _) in SPANS.items()}),
        }[name]

        def picked(key: str | None) -> None:
            if key is not None:
                self.choose(self.filters.with_choice(name, key))

        self.app.push_screen(Pick(title, options, getattr(self.filters, name)), picked)

    # Actions

    def action_again(self) -> None:
        if self.list.marked is not None:
            self._actions.send_again(self.list.marked.task)

    def action_copy(self, what: str) -> None:
        record = self.list.marked
        text = copied(record.task, what) if record is not None else ""
        if text:
            self.app.copy_to_clipboard(text)
            self.show_notice(tr(f"copied {plural(len(text), 'character')}"))
        else:
            self.show_notice(tr("no answer to copy") if what == "answer" else tr("no message to copy"))

    def action_export(self) -> None:
        self._actions.export(self.filters.wanted(str(self._actions.project), self._actions.now()))

    def show_notice(self, text: str) -> None:
        self._notice = one_line(text)
        self._show_count()

    def reword(self, before: str, after: str) -> None:
        if self._notice and self._notice == one_line(before):
            self.show_notice(after)

    def pressed(self, button: str) -> None:
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
        choices[button]()

    # Texts

    def _label(self) -> None:
        chosen = self.filters.labels(one_line(self._actions.project.name), self._actions.labels())
        keys = {"project": "p", "agent": "g", "state": "s", "span": "t"}
        filters = {f"by-{name}": f"{text} ({keys[name]})" for name, text in chosen.items()}
        labels = {**filters, **BUTTONS}
        for name, text in labels.items():
            button = self.query_one(f"#{name}", Button)
            # Of the same width, so that nothing moves from under a click that takes the focus.
            bare = pad(BUTTON_KEY.sub(r"\1", text), cell_len(text))
            button.label = Content(text if self._keys_act else bare)
            button.refresh(layout=True)

    def _show_keys(self) -> None:
        if self._reading:
            keys = tr("↑↓ scroll · Esc back to the list")
        elif self.query_one("#task").has_focus:
            keys = tr("/ search · ↑↓ scroll · Tab next field · Esc closes")
        elif self._keys_act:
            keys = tr("/ search · ↑↓ choose · Tab next field · Enter opens · Esc closes")
        else:
            keys = self.SUBTITLE
        self._subtitle(keys)

    @property
    def _keys_act(self) -> bool:
        """Whether letters are keys, and not words that are searched for."""
        return self.focused is None or self.focused.id != "query"

    def on_descendant_focus(self) -> None:
        """Name only the keys that do something where the focus is."""
        self._label()
        self._show_keys()
        if not self._is_loading:
            self.list.note = self._nothing()
            self.list.refresh()

    def _nothing(self) -> str:
        if self.filters.narrow:
            more = tr("; p searches all projects") if self._keys_act else tr("; Tab p searches all projects")
            return tr("nothing found") + ("" if self.filters.everywhere else more)
        return tr("no messages yet") if self._actions.kept else OFF

    def _show_count(self) -> None:
        rows: Sequence[Record] = self.list.rows
        count = f"{len(rows)}+" if self._after else str(len(rows))
        words = [self._notice] if self._notice else []
        if self._is_loading:
            words.append(tr("searching…"))
        elif self._left:
            words.append(tr(f"{self._left} not indexed yet"))
        if not self._actions.kept and rows and not self._notice:
            words.append(tr("history is off"))
        words.append(plural(len(rows), "task") if count == str(len(rows)) else tr(f"{count} tasks"))
        self.query_one("#count", Static).update(Content(" · ".join(words)))


Write = Callable[[str, Path], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Filters:
    """Selects the tasks to show.

    Attributes:
        query: Words that must occur in the message or the answer.
        everywhere: Whether to include all projects.
        agent: Id or type; empty for any.
        state: A key of STATES.
        span: A key of SPANS.
    """

    query: str = ""
    everywhere: bool = False
    agent: str = ANY
    state: str = ANY
    span: str = ANY

    @property
    def narrow(self) -> bool:
        return bool(self.query.strip() or self.agent or self.state or self.span)

    def wanted(self, project: str, now: datetime, *, after: str = "") -> TaskQuery:
        span = SPANS[self.span][1]
        return TaskQuery(
            agent=self.agent,
            states=tuple(state.value for state in STATES[self.state][1]),
            project="" if self.everywhere else project,
            since=now - span if span else None,
            query=self.query,
            cursor=after,
        )

    def with_choice(self, name: str, key: str) -> Filters:
        chosen = {"agent": self.agent, "state": self.state, "span": self.span} | {name: key}
        return Filters(self.query, self.everywhere, **chosen)

    def labels(self, project: str, names: Mapping[str, str]) -> dict[str, str]:
        return {
            "project": tr("all projects") if self.everywhere else project,
            "agent": f"→ {party(self.agent, names)}" if self.agent else tr("any receiver"),
            "state": STATES[self.state][0],
            "span": SPANS[self.span][0],
        }


def story_text(
    record: Record, story: Story | None, now: datetime, labels: Mapping[str, str], width: int
) -> Content:
    task, mark, names = record.task, delivery_mark(record.task), {**labels, **record.names(labels)}
    parts: list[tuple[str, str]] = [
        (f"{mark.glyph} {mark.word}", f"bold ${mark.colour}"),
        (f"  {reason_words(task.reason, mark, names)}".rstrip(), f"${mark.colour}"),
        ("\n", ""),
    ]
    facts = _facts(record, now, labels)
    widest = max(cell_len(name) for name, _value in facts) + 2
    for name, value in facts:
        parts += [(pad(name, widest), "$faint"), (f"{value}\n", "$muted")]
    parts.append(("\n", ""))
    parts += _short(said(task))
    text = Content.assemble(*parts)
    if story is not None:
        text = Content.assemble(text, timeline_text(story.steps, now, width, names, watched=task.watched))
    if task.metadata:
        words = json.dumps(dict(task.metadata), ensure_ascii=False, indent=2, default=str)
        text = Content.assemble(text, (tr("\n\nMetadata\n"), "bold $accent"), (printable(words), "$muted"))
    return text


def copied(task: Task, what: str) -> str:
    """Return the text to copy; `what` is `message` or `answer`."""
    return task.text if what == "message" else task.answer


def _seconds_between(begin: datetime, end: datetime) -> float:
    """Return the seconds between two times as they are shown, without their fractions."""
    return (end.replace(microsecond=0) - begin.replace(microsecond=0)).total_seconds()


def _facts(record: Record, now: datetime, labels: Mapping[str, str]) -> list[tuple[str, str]]:
    task = record.task
    facts = [
        (tr("task"), task.id),
        (tr("from"), f"{named(task.sender.sender_id, labels)}{proof(task.sender)}"),
        (tr("to"), named(task.target, labels)),
        (tr("project"), short_path(Path(record.project))),
        (tr("created"), moment(task.created_at, now)),
    ]
    if record.submitted_at is not None:
        waited = _seconds_between(task.created_at, record.submitted_at)
        facts.append((tr("submitted"), tr(f"{moment(record.submitted_at, now)}  after {since(waited)}")))
    if record.finished_at is not None:
        took = _seconds_between(record.submitted_at or task.created_at, record.finished_at)
        facts.append((tr("ended"), tr(f"{moment(record.finished_at, now)}  after {since(took)}")))
    facts.append((tr("priority"), str(task.priority)))
    if task.follows:
        facts.append((tr("continues"), tr(f"task {task.follows[:8]}")))
    return facts


def _short(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    left, shown = MOST, []
    for text, style in parts:
        shown.append((text[:left], style))
        if len(text) > left:
            shown.append((tr(f"\n… {len(text) - left} more characters"), "$faint"))
        left = max(0, left - len(text))
    return shown


class HistoryExport(Form[str]):
    """Exports the history; closes with a summary of what was written."""

    VERB: ClassVar[str] = "Export"
    TITLE_TEXT: ClassVar[str] = "Export the listed tasks"
    SUBTITLE: ClassVar[str] = "Enter exports · Esc cancels"
    AUTO_FOCUS = "#path"

    def __init__(self, folder: Path, now: datetime, write: Write) -> None:
        super().__init__()
        self._folder = folder
        self._name = f"history-{now.astimezone():%Y-%m-%d}.md"
        self._write = write

    def body(self) -> ComposeResult:
        yield label(tr(f"New file, in {short_path(self._folder)} unless you give a folder"), "label -first")
        yield Input(self._name, id="path", select_on_focus=False, compact=True)
        yield label(tr("Its ending selects the format: .md, .json, .jsonl or .csv"))

    def submit(self) -> None:
        try:
            form, path = self._chosen()
        except InvalidValue as error:
            self.show_error(error)
        else:
            self.attempt(lambda: self._write(form, path))

    def _chosen(self) -> tuple[str, Path]:
        name = self.query_one("#path", Input).value.strip()
        form = Path(name).suffix.removeprefix(".").lower()
        if form not in FORMATS:
            raise InvalidValue(f"'{name}' has no known ending", f"use .{', .'.join(FORMATS)}")
        return form, self._folder / Path(name).expanduser()
