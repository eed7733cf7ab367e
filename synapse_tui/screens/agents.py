"""Why an agent is in its state: the rule that decided, what it matched, what waits, and the states before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from rich.cells import chop_cells
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static
from textual.widgets.button import ButtonVariant

from synapse_tui.agents.delivery.outbox_control import Explanation
from synapse_tui.agents.state import Passage
from synapse_tui.agents.watch import (
    CONTINUE_OR_REPLY,
    DEFAULT_EVERY,
    DEFAULT_TIMES,
    WatchOrder,
    WatchReport,
    seconds_text,
)
from synapse_tui.durations import duration, moment
from synapse_tui.errors import InvalidValue
from synapse_tui.model import Task
from synapse_tui.widgets.text import one_line, pad, plural, printable, shorten
from synapse_tui.widgets.views import state_mark

from .composer import MessageText
from .dialog import Dialog, Form, label

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.agents.watcher import Watcher
    from synapse_tui.widgets.views import AgentView

    from .main import MainScreen

SHOWN = 20
_NAME_CELLS = 9
_LEAST_CELLS = 20
_LINES = 3
Part = tuple[str, str]


def explanation(session: AgentSession, now: datetime) -> Callable[[int], Content]:
    """The present state of an agent with its reason, and its last states, the newest first."""
    found = session.explain()
    process = session.exit.words if session.exit else f"runs, pid {session.pid}"
    about = [
        ("process", process),
        ("folder", str(session.cwd)),
        ("address", f"@{session.agent_id}  {session.endpoint}"),
    ]

    def make(width: int) -> Content:
        parts = [*_state(found, now, width), *_messages(found, width)]
        parts += [_row(name, value, width) for name, value in about]
        return Content.assemble(*parts, *_timeline(found, now, width)).rstrip()

    return make


def _state(found: Explanation, now: datetime, width: int) -> list[Part]:
    report = found.report
    mark = state_mark(report.state)
    since = f"  for {duration(found.seconds)}, since {moment(found.since, now)}\n"
    return [
        (f"{mark.glyph} {report.state}", f"bold ${mark.colour}"),
        (since, "$ink-muted"),
        _row("rule", report.rule, width),
        _row("matched", one_line(report.matched) or "nothing on the screen", width),
        _row("detail", one_line(report.detail) or "none", width),
    ]


def _messages(found: Explanation, width: int) -> list[Part]:
    parts = [_row("task", _task(found.task), width)] if found.task is not None else []
    waiting = f"{len(found.waiting)}: {one_line(found.held_by)}" if found.waiting else "no message"
    parts.append(_row("waiting", waiting, width))
    if found.next is not None:
        parts.append(_row("next", _task(found.next.task), width))
    if found.unread:
        parts.append(_row("inbox", f"{plural(found.unread, 'message')} unread", width))
    return parts


def _task(task: Task) -> str:
    return f"{task.short_id} from {task.sender.sender_id}: {one_line(task.text[:500])}"


def _timeline(found: Explanation, now: datetime, width: int) -> list[Part]:
    parts: list[Part] = [("\nTimeline\n", "bold $hot")]
    for passage, seconds in found.past[-SHOWN:][::-1]:
        parts += _passage(passage, seconds, now, width)
    return parts


def _passage(passage: Passage, seconds: float, now: datetime, width: int) -> list[Part]:
    style = state_mark(passage.state)
    report = passage.report
    when = f"  {moment(passage.at, now)} {duration(seconds):>7}  "
    reason = one_line(report.matched)
    why = f"{report.rule}: {reason}" if reason and reason != report.rule else report.rule
    room = max(_LEAST_CELLS, width - len(when) - 13)
    return [
        (when, "$ink-faint"),
        (f"{style.glyph} {pad(passage.state, 11)}", f"${style.colour}"),
        (f"{shorten(why, room)}\n", "$ink-muted"),
    ]


def _row(name: str, value: str, width: int) -> Part:
    """A name and what it is; what is too long goes on below."""
    room = max(_LEAST_CELLS, width - _NAME_CELLS - 2)
    lines = chop_cells(value, room) or [""]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], shorten("".join(lines[_LINES - 1 :]), room)]
    names = [name, *[""] * (len(lines) - 1)]
    return "".join(
        f"  {pad(each, _NAME_CELLS)}{line}\n" for each, line in zip(names, lines, strict=True)
    ), "$ink"


class Rename(Form[str]):
    """Leaves when the name was taken; an empty name takes the old one away."""

    VERB: ClassVar[str] = "Rename"
    SUBTITLE: ClassVar[str] = "Enter renames · Esc cancels"

    def __init__(self, agent: str, name: str, rename: Callable[[str], None]) -> None:
        super().__init__()
        self._agent = agent
        self._name_before = name
        self._rename = rename

    def title_text(self) -> str:
        return f"Rename {self._agent}"

    def body(self) -> ComposeResult:
        yield label("Name, by which @name addresses it; empty for none")
        yield Input(self._name_before, id="name", compact=True)

    def submit(self) -> None:
        name = self.query_one(Input).value.strip().removeprefix("@")

        async def work() -> str:
            self._rename(name)
            return name

        self.attempt(work)


class InterruptDialog(Form[bool]):
    """Leaves with True when the interrupt was sent."""

    VERB: ClassVar[str] = "Interrupt"
    VARIANT: ClassVar[ButtonVariant] = "error"
    BOX_CLASSES: ClassVar[str] = "-danger"
    SUBTITLE: ClassVar[str] = "Enter interrupts · Shift+Enter new line · Esc cancels"

    def __init__(
        self, main: MainScreen, agent: AgentView, interrupt: Callable[[str], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._main = main
        self._agent = agent
        self._interrupt = interrupt

    def title_text(self) -> str:
        return f"Interrupt {self._agent.label}"

    def body(self) -> ComposeResult:
        yield label("", "text")
        yield label("Then tell it (optional)")
        yield MessageText(id="text", compact=True, show_line_numbers=False, tab_behavior="focus")

    def on_mount(self) -> None:
        """Follow what the agent does: it may ask for a permission while the person writes."""
        self.watch(self._main, "agents", self._show_state)

    def _show_state(self) -> None:
        agent = self._main.find(self._agent.agent_id) or self._agent
        effect = "The turn is stopped; the agent lives on."
        if agent.asks:
            effect = f"It asks for something: interrupting denies it. {effect}"
        self.query_one("Label.text", Label).update(Content(f"Now: {agent.state_text}\n{effect}"))

    @on(MessageText.Submitted)
    def submit(self) -> None:
        text = self.query_one(MessageText).text.strip()

        async def work() -> bool:
            await self._interrupt(text)
            return True

        self.attempt(work)


SECOND = 1.0


class WatchForm(Form[str]):
    """Leaves with a sentence when the watch has begun."""

    VERB: ClassVar[str] = "Watch"
    SUBTITLE: ClassVar[str] = "Tab next field · Enter begins · Esc cancels"

    def __init__(self, agent: str, watcher: Watcher) -> None:
        super().__init__()
        self._agent = agent
        self._watcher = watcher

    def title_text(self) -> str:
        return f"Watch {self._agent}"

    def body(self) -> ComposeResult:
        yield label("Keeps its task going until the agent says that it is done.", "faint")
        with Horizontal(classes="row"):
            with Vertical():
                yield label("Nudge after seconds of rest")
                yield Input(f"{DEFAULT_EVERY:g}", id="every", max_length=8, compact=True)
            with Vertical(classes="-last"):
                yield label("At most so many times")
                yield Input(str(DEFAULT_TIMES), id="times", max_length=3, compact=True)
        yield label("What it is told")
        yield Input(id="nudge", placeholder=CONTINUE_OR_REPLY, compact=True)
        yield label("Done also when its answer matches (a regular expression)")
        yield Input(id="until", placeholder="none", compact=True)

    def submit(self) -> None:

        async def work() -> str:
            order = self._order()
            self._watcher.begin(order)
            rest = seconds_text(order.every)
            return f"{self._agent} is watched: nudged after {rest} of rest, at most {order.times} times"

        self.attempt(work)

    def _order(self) -> WatchOrder:
        return WatchOrder(
            every=_number(self._value("every"), "seconds of rest"),
            nudge=self._value("nudge"),
            times=int(_number(self._value("times"), "number of times")),
            until=self._value("until"),
        )

    def _value(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()


class WatchView(Dialog[str]):
    """Shows a watch; leaves with a sentence when it was ended."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "s stops the watch · ↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [Binding("s", "stop", show=False), Binding("q,enter", "leave", show=False)]

    def __init__(self, agent_id: str, agent: str, watcher: Watcher) -> None:
        super().__init__()
        self.agent_id = agent_id
        self._agent = agent
        self._watcher = watcher

    def title_text(self) -> str:
        return f"Watch over {self._agent}"

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static(self._text(), id="watch", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button("Stop watching (s)", id="stop", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.set_interval(SECOND, self.show_news)

    def show_news(self) -> None:
        self.query_one("#watch", Static).update(self._text())
        self.query_one("#stop", Button).display = self._watcher.on

    def action_stop(self) -> None:
        if self._watcher.on:
            self._watcher.stop("stopped by you")
            self.dismiss(f"{self._agent} is no longer watched")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "stop":
            self.action_stop()
        else:
            self.dismiss(None)

    def _text(self) -> Content:
        report = self._watcher.report
        return watch_text(report) if report is not None else Content("")


def watch_text(report: WatchReport) -> Content:
    head = f"watched {report.count}" if report.on else f"{report.state.value} {report.count}"
    helped = f", {report.helped} helped" if report.helped else ""
    parts: list[tuple[str, str]] = [
        (f"{head}{helped}", "bold $hot"),
        (f"  {printable(report.waits_for)}\n" if report.waits_for else "\n", "$ink"),
        (f"task {report.task_id[:8]}", "$ink-muted"),
        (f" · until '{printable(report.order.until)}'" if report.order.until else "", "$ink-muted"),
        ("\n\n", ""),
    ]
    for step in report.steps:
        parts += [
            (f"{step.at.astimezone():%H:%M:%S}  ", "$ink-faint"),
            (f"{printable(step.text)}\n", "$ink"),
        ]
    return Content.assemble(*parts).rstrip()


def _number(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidValue(f"'{text}' is no {what}", "give a number") from None
    if what == "number of times" and not number.is_integer():
        raise InvalidValue(f"'{text}' is no {what}", "give a whole number")
    return number
