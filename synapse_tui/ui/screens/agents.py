"""Actions on the agents of this session: focus, close, restart, rename, interrupt, watch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rich.cells import chop_cells
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Label, Static
from textual.widgets.button import ButtonVariant

from synapse_tui.agents.delivery.gate import Explanation
from synapse_tui.agents.state import Passage
from synapse_tui.agents.watch import (
    CONTINUE_OR_REPLY,
    DEFAULT_EVERY,
    DEFAULT_TIMES,
    WatchOrder,
    WatchReport,
    nudges_text,
    seconds_text,
)
from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.model import AgentState, StateReport, Task
from synapse_tui.core.wording import duration, moment
from synapse_tui.messages.recovery import kept_text
from synapse_tui.system.language import name_list, tr
from synapse_tui.widgets.fit import pad, shorten
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.states import State, state_mark
from synapse_tui.widgets.text import one_line, plural, printable
from synapse_tui.widgets.views import AgentView, calling, in_words, sender_name

from .composer import MessageText
from .dialog import Confirm, Dialog, Form, Report, ReportText, label
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.agents.watcher import Watcher

    from .main import MainScreen

CONFIRM_SECONDS = 3.0  # how long a second press confirms
SHOWN = 20  # past states listed
_NAME_CELLS = 11
_LEAST_CELLS = 20
_LINES = 3
Part = tuple[str, str]
Number = TypeVar("Number", int, float)


class AgentActions:
    """Actions on the agents of this session; the id defaults to the active agent."""

    def __init__(self, app: Shell) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main
        self.clock: Callable[[], float] = monotonic
        self._interrupt_all_until = 0.0
        self._to_interrupt: list[str] = []  # ids of the agents that the first press was about

    def _find(self, agent_id: str) -> tuple[AgentSession, AgentView] | None:
        agent = self._main.find(agent_id or self._main.active)
        session = self._host.agents.get(agent.agent_id) if agent is not None else None
        return (session, agent) if session is not None and agent is not None else None

    def _say_ended(self, agent: AgentView) -> None:
        def still() -> bool:
            now = self._main.find(agent.agent_id)
            return now is not None and now.exit is not None

        self._app.notice(f"{agent.label} has ended", "warning", still=still)

    def action_next_agent(self) -> None:
        self._main.step(1)

    def action_previous_agent(self) -> None:
        self._main.step(-1)

    def action_go_to_agent(self, number: str) -> None:
        found = next((agent for agent in self._main.agents if str(agent.number) == number), None)
        if found is not None:
            self._main.go_to(found.agent_id)
        else:
            self._app.notice(f"no agent {number}", "warning")

    def action_next_waiting(self) -> None:
        others = calling(self._main.agents, self._main.active)
        here, view = self._main.find(self._main.active), self._app.active_view
        if others:
            self._main.go_to(others[0].agent_id)
        elif here is not None and here.needs_attention and view is not None and not view.has_focus:
            self._main.go_to(here.agent_id)  # the keyboard was in the sidebar
        else:
            words = self._nothing_next()
            self._app.notice(words, still=lambda: self._nothing_next() == words)

    def _nothing_next(self) -> str:
        """Say that no agent but the one in use needs the user; empty if one does."""
        if calling(self._main.agents, self._main.active):
            return ""
        here = self._main.find(self._main.active)
        needed = here is not None and here.needs_attention
        return tr("no other agent needs you") if needed else tr("no agent needs you")

    def waiting_text(self, *agent_ids: str, host_ends: bool = False) -> str:
        """Describe what happens to the agents' undelivered messages if they end; empty if there are none."""
        found = (self._host.agents.get(agent_id) for agent_id in agent_ids)
        counts = [len(session.control.every()) for session in found if session is not None]
        kept = kept_text(sum(counts), sum(map(bool, counts)), host_ends=host_ends)
        return tr(f"{kept}.") if kept else ""

    def drafts_text(self, *agent_ids: str) -> str:
        """Say at which agents something is typed that ends with them; empty if at none."""
        found = (self._host.agents.get(agent_id) for agent_id in agent_ids)
        typed = [each.agent_id for each in found if each and each.exit is None and each.reading().draft]
        names = name_list(self._app.label(each) for each in typed)
        return tr(f"What is typed at {names} is lost.") if names else ""

    def action_close_agent(self, agent_id: str = "") -> None:
        """Close an agent, asking first if it runs or has undelivered messages."""
        found = self._find(agent_id)
        if found is None:
            return
        session, agent = found

        def close() -> None:
            self._app.spawn(self._host.close(agent.agent_id))

        def text() -> str:
            now = self._main.find(agent.agent_id)
            if now is None:
                return ""
            if now.exit is None:
                about = _closing(session, now, self._app.keymap.way("reopen_agent"))
            else:
                about = tr(f"{now.label}: {now.state_text}")
            ends = (self.drafts_text(agent.agent_id), self.waiting_text(agent.agent_id))
            return "\n".join(filter(None, (about, *ends)))

        if agent.exit is None or self.waiting_text(agent.agent_id):
            question = Confirm(tr(f"Close {agent.label}?"), text, tr("Close it"))
            self._app.ask(question, lambda yes: close() if yes else None)
        else:
            close()

    def action_reopen_agent(self) -> None:
        async def reopen() -> None:
            columns, lines = self._main.deck.terminal_size()
            session = await self._host.reopen(columns=columns, lines=lines)
            self._main.go_to(session.agent_id)

        self._app.spawn(reopen())

    def action_restart_agent(self, agent_id: str = "") -> None:
        found = self._find(agent_id)
        if found is None:
            return
        _session, agent = found

        def restart() -> None:
            self._app.spawn(self._host.restart(agent.agent_id))

        def text() -> str:
            now = self._main.find(agent.agent_id)
            if now is None:
                return ""
            if now.exit is not None:
                return tr(f"{now.label}: {now.state_text}")
            about = tr(f"{now.label}: {now.state_text}\nRestarting ends it; it may lose its conversation.")
            return "\n".join(filter(None, (about, self.drafts_text(agent.agent_id))))

        if agent.exit is None:
            question = Confirm(tr(f"Restart {agent.label}?"), text, tr("Restart it"))
            self._app.ask(question, lambda yes: restart() if yes else None)
        else:
            restart()

    def action_rename_agent(self, agent_id: str = "") -> None:
        if found := self._find(agent_id):
            session, agent = found
            rename = Rename(agent.label, session.name, lambda name: self._host.rename(agent.agent_id, name))
            self._app.ask(rename)

    def action_explain_state(self, agent_id: str = "") -> None:
        if found := self._find(agent_id):
            session, agent = found
            text = explanation(
                session,
                lambda: self._main.find(agent.agent_id),
                self._main.sidebar.clock,
                self._app.today,
                self._app.labels,
            )
            self._app.ask(StateView(agent.agent_id, tr(f"{agent.label}: why this state"), text))

    def action_continue_agent(self, agent_id: str = "") -> None:
        if found := self._find(agent_id):
            session, agent = found
            if not session.go_on():
                self._app.notice(f"{agent.label} is not suspended")

    def action_reset_terminal(self, agent_id: str = "") -> None:
        if found := self._find(agent_id):
            session, agent = found
            session.reset_terminal()
            self._app.notice(f"{agent.label}: terminal reset")

    def action_watch_agent(self, agent_id: str = "") -> None:
        found = self._find(agent_id)
        if found is None:
            return
        session, agent = found
        if session.watcher.on:
            self._app.ask(WatchView(agent.agent_id, agent.label, session.watcher), self._app.notice)
        elif agent.exit is not None:
            self._say_ended(agent)
        else:
            self._app.ask(WatchForm(agent.label, session.watcher), self._app.notice)

    def action_interrupt(self, agent_id: str = "") -> None:
        found = self._find(agent_id)
        if found is None:
            return
        _session, agent = found
        if agent.exit is not None:
            self._say_ended(agent)
            return

        def interrupt(text: str) -> Awaitable[None]:
            return self._host.interrupt(agent.agent_id, text)

        self._app.ask(InterruptDialog(self._main, agent, interrupt))

    def action_interrupt_all(self) -> None:
        busy = self._busy()
        count, asking = len(busy), sum(agent.asks for agent in busy)
        now, names = self.clock(), [agent.agent_id for agent in busy]
        if not count:
            self._app.notice("no agent is working", "warning", still=lambda: not self._busy())
        elif now < self._interrupt_all_until and names == self._to_interrupt:
            self._interrupt_all_until = 0.0
            self._app.spawn(self._interrupt(count))
        else:
            self._interrupt_all_until, self._to_interrupt = now + CONFIRM_SECONDS, names
            key = self._app.keymap.way("interrupt_all")
            asked = tr(f"press {key} again to interrupt {plural(count, 'agent')}")
            denied = tr(f"; {plural(asking, 'open question')} will be denied") if asking else ""
            self._app.notice(
                f"{asked}{denied}",
                "warning",
                still=lambda: self._main.is_current and names == [agent.agent_id for agent in self._busy()],
            )

    def _busy(self) -> list[AgentView]:
        return [agent for agent in self._main.agents if agent.interruptible]

    async def _interrupt(self, count: int) -> None:
        doing = tr(f"interrupting {plural(count, 'agent')}")
        self._app.notice(doing, "warning")
        await self._host.interrupt_all()
        if self._main.status_bar.notice == doing:  # else another says which of them goes on
            self._app.notice(f"interrupted {plural(count, 'agent')}")


def _closing(session: AgentSession, agent: AgentView, reopens: str) -> str:
    """Say what closing a running agent ends, and what of it can be had back."""
    works = agent.state in (AgentState.PROCESSING, AgentState.WAITING)
    lost = tr("Closing ends it; unfinished work is lost. ") if works else tr("Closing ends it. ")
    if session.profile.resume:
        back = tr(f"{reopens} opens it again, with its conversation.")
    else:
        back = tr(f"{reopens} opens it again, without its conversation.")
    return f"{tr(f'{agent.label}: {agent.state_text}')}\n{lost}{back}"


class StateView(Report):
    """Shows why an agent is in its state, as it changes."""

    def __init__(self, agent_id: str, title: str, content: Callable[[int], Content]) -> None:
        super().__init__(title, content)
        self.agent_id = agent_id

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1.0, self.show_news)

    def show_news(self) -> None:
        self.query_one(ReportText).show()


def explanation(
    session: AgentSession,
    view: Callable[[], AgentView | None],
    clock: Callable[[], float],
    today: Callable[[], datetime],
    labels: Callable[[], Mapping[str, str]],
) -> Callable[[int], Content]:
    """Return a renderer of what the agent's title shows and why, and of its past states, newest first."""

    def make(width: int) -> Content:
        found, now = session.explain(), today()
        suspended = session.report.state is AgentState.SUSPENDED
        alive = tr(f"is stopped, pid {session.pid}") if suspended else tr(f"runs, pid {session.pid}")
        process = tr(session.exit.words) if session.exit else alive
        about = [
            ("process", process),
            *([("watch", _watch(session.watcher.report))] if session.watcher.report is not None else []),
            *([("opened by", name_list(session.opened_by))] if session.opened_by else []),
            ("folder", short_path(session.cwd)),
            ("address", f"@{session.agent_id}  {session.endpoint}"),
        ]
        agent = view()
        shown = (agent.mark, clock() - agent.since) if agent is not None else None
        parts = [*_state(found, shown, now, width), *_messages(found, labels(), width)]
        parts += [_row(name, value, width) for name, value in about]
        return Content.assemble(*parts, *_timeline(found, now, width)).rstrip()

    return make


def _detail(report: StateReport) -> str:
    detail = one_line(report.detail)
    return tr(detail) if report.state is AgentState.EXITED else in_words(detail)


def _watch(report: WatchReport) -> str:
    last = report.steps[-1].text if report.steps else ""
    return f"{report.count}  {tr(printable(report.waits_for or last))}".rstrip()


def _state(found: Explanation, shown: tuple[State, float] | None, now: datetime, width: int) -> list[Part]:
    report = found.report
    own = state_mark(report.state)
    since = tr(f"  for {duration(found.seconds)}, since {moment(found.since, now)}\n")
    first, its_own = (f"{own.glyph} {own.word}", f"bold ${own.colour}"), []
    if shown is not None and shown[0].word != own.word:  # something else outranks it in the title
        its_own = [_row("state", f"{own.glyph} {own.word}{since.rstrip()}", width)]
        mark, seconds = shown
        first = (f"{mark.glyph} {mark.word}", f"bold ${mark.colour}")
        began = now - timedelta(seconds=seconds)
        since = tr(f"  for {duration(seconds)}, since {moment(began, now)}\n")
    return [
        first,
        (since, "$muted"),
        *its_own,
        _row("rule", tr(report.rule), width),
        _row("matched", tr(one_line(report.matched) or "nothing on the screen"), width),
        _row("detail", _detail(report) or tr("none"), width),
    ]


def _messages(found: Explanation, labels: Mapping[str, str], width: int) -> list[Part]:
    parts = [_row("task", _task(found.task, labels), width)] if found.task is not None else []
    waiting = f"{len(found.waiting)}: {tr(one_line(found.held_by))}" if found.waiting else tr("no message")
    parts.append(_row("waiting", waiting, width))
    if found.next is not None:
        parts.append(_row("next", _task(found.next.task, labels), width))
    if found.unread:
        parts.append(_row("inbox", plural(found.unread, "unread message"), width))
    return parts


def _task(task: Task, labels: Mapping[str, str]) -> str:
    return tr(f"{task.short_id} from {sender_name(task.sender, labels)}: {one_line(task.text[:500])}")


def _timeline(found: Explanation, now: datetime, width: int) -> list[Part]:
    parts: list[Part] = [(tr("\nTimeline\n"), "bold $accent")]
    for passage, seconds in found.past[-SHOWN:][::-1]:
        parts += _passage(passage, seconds, now, width)
    return parts


def _passage(passage: Passage, seconds: float, now: datetime, width: int) -> list[Part]:
    style = state_mark(passage.state)
    report = passage.report
    when = f"  {moment(passage.at, now)} {duration(seconds):>7}  "
    reason = tr(one_line(report.matched)) if report.matched != report.rule else ""
    why = f"{tr(report.rule)}: {reason}" if reason else tr(report.rule)
    room = max(_LEAST_CELLS, width - len(when) - 13)
    return [
        (when, "$faint"),
        (f"{style.glyph} {pad(style.word, 11)}", f"${style.colour}"),
        (f"{shorten(why, room)}\n", "$muted"),
    ]


def _row(name: str, value: str, width: int) -> Part:
    room = max(_LEAST_CELLS, width - _NAME_CELLS - 2)
    lines = chop_cells(value, room) or [""]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], shorten("".join(lines[_LINES - 1 :]), room)]
    names = [tr(name), *[""] * (len(lines) - 1)]
    return "".join(
        f"  {pad(each, _NAME_CELLS)}{line}\n" for each, line in zip(names, lines, strict=True)
    ), "$ink"


class Rename(Form[str]):
    """Renames an agent; an empty text removes the name."""

    VERB: ClassVar[str] = "Rename"
    SUBTITLE: ClassVar[str] = "Enter renames · Esc cancels"

    def __init__(self, agent: str, name: str, rename: Callable[[str], None]) -> None:
        super().__init__(tr(f"Rename {agent}"))
        self._name_before = name
        self._rename = rename

    def body(self) -> ComposeResult:
        yield label(tr("Name, for @name messages; empty for none"))
        yield Input(self._name_before, id="name", compact=True)

    def submit(self) -> None:
        name = self.value("name").removeprefix("@")

        async def work() -> str:
            self._rename(name)
            return name

        self.attempt(work)


class InterruptDialog(Form[bool]):
    VERB: ClassVar[str] = "Interrupt"
    VARIANT: ClassVar[ButtonVariant] = "error"
    BOX_CLASSES: ClassVar[str] = "-danger"

    def __init__(
        self, main: MainScreen, agent: AgentView, interrupt: Callable[[str], Awaitable[None]]
    ) -> None:
        super().__init__(tr(f"Interrupt {agent.label}"))
        self._main = main
        self._agent = agent
        self._interrupt = interrupt

    def subtitle(self) -> str:
        if not self._now.interruptible:
            sends = tr("Enter sends · Ctrl+J new line · Esc cancels")
            return sends if self._agent.receives else tr("Esc cancels")
        if self._agent.receives:
            return tr("Enter interrupts · Ctrl+J new line · Esc cancels")
        return tr("Enter interrupts · Esc cancels")

    def body(self) -> ComposeResult:
        yield label("", "text")
        if self._agent.receives:
            yield label("", name="message-label")
            yield MessageText(id="text", compact=True, show_line_numbers=False, tab_behavior="focus")

    def on_mount(self) -> None:
        """Follow the agent's state, since it may ask for permission while the user types."""
        self.watch(self._main, "agents", self._show_state)

    @property
    def _now(self) -> AgentView:
        return self._main.find(self._agent.agent_id) or self._agent

    def _show_state(self) -> None:
        agent = self._now
        effect = tr("This stops the turn; the agent keeps running.")
        if not agent.interruptible:
            effect = tr("It does nothing that could be stopped.")
        elif agent.asks:
            effect = tr(f"It asks a question: interrupting denies it. {effect}")
        self.query_one("Label.text", Label).update(Content(tr(f"Now: {agent.state_text}\n{effect}")))
        stops = agent.interruptible
        button = self.query_one("#interrupt", Button)
        button.label = tr("Interrupt") if stops else tr("Send")
        button.display = stops or self._agent.receives
        if self._agent.receives:
            what = tr("Message afterwards (optional)") if stops else tr("Message")
            self.query_one("#message-label", Label).update(Content(what))
        if not self.busy:
            self._subtitle(self.subtitle())

    @on(MessageText.Submitted)
    def submit(self) -> None:
        text = self.query_one(MessageText).text.strip() if self._agent.receives else ""

        async def work() -> bool:
            if not (text or self._now.interruptible):
                way = tr("write one, or Esc") if self._agent.receives else tr("Esc closes this")
                raise InvalidValue("there is no message and nothing to stop", way)
            await self._interrupt(text)
            return True

        self.attempt(work)


class WatchForm(Form[str]):
    """Starts a watch; closes with a summary of it."""

    VERB: ClassVar[str] = "Watch"
    SUBTITLE: ClassVar[str] = "Tab next field · Enter starts · Esc cancels"

    def __init__(self, agent: str, watcher: Watcher) -> None:
        super().__init__(tr(f"Watch {agent}"))
        self._agent = agent
        self._watcher = watcher

    def body(self) -> ComposeResult:
        yield label(tr("Keeps the agent working until it says that its task is done."), "faint")
        with Horizontal(classes="row"):
            with Vertical():
                yield label(tr("Nudge after idle seconds"))
                yield Input(f"{DEFAULT_EVERY:g}", id="every", max_length=8, compact=True)
            with Vertical(classes="-last"):
                yield label(tr("Maximum number of nudges"))
                yield Input(str(DEFAULT_TIMES), id="times", max_length=3, compact=True)
        yield label(tr("Text of a nudge"))
        yield Input(id="nudge", placeholder=CONTINUE_OR_REPLY, compact=True)
        yield label(tr("Also done when an answer matches this regular expression"))
        yield Input(id="until", placeholder=tr("none"), compact=True)

    def submit(self) -> None:
        async def work() -> str:
            order = WatchOrder(
                every=_number(self.value("every"), float),
                nudge=self.value("nudge"),
                times=_number(self.value("times"), int),
                until=self.value("until"),
            )
            self._watcher.begin(order)
            rest = seconds_text(order.every)
            most = nudges_text(order.times)
            return tr(f"{self._agent} is watched: a nudge after {rest} idle, at most {most}")

        self.attempt(work)


class WatchView(Dialog[str]):
    """Shows a watch; closes with a sentence if the user ended it."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "s stops the watch · ↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [("s", "stop"), ("q,enter", "leave")]

    def __init__(self, agent_id: str, agent: str, watcher: Watcher) -> None:
        super().__init__(tr(f"Watch over {agent}"))
        self.agent_id = agent_id
        self._agent = agent
        self._watcher = watcher

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static(self._text(), id="watch", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Stop watching (s)"), id="stop", compact=True)
        yield from super().buttons()

    def on_mount(self) -> None:
        self.set_interval(1.0, self.show_news)

    def show_news(self) -> None:
        self.query_one("#watch", Static).update(self._text())
        self.query_one("#stop", Button).display = self._watcher.on
        self._subtitle(self.SUBTITLE if self._watcher.on else Report.SUBTITLE)

    def action_stop(self) -> None:
        if self._watcher.on:
            self._watcher.stop("stopped by you")
            self.dismiss(tr(f"{self._agent} is no longer watched"))

    def pressed(self, button: str) -> None:
        if button == "stop":
            self.action_stop()
        else:
            self.dismiss(None)

    def _text(self) -> Content:
        report = self._watcher.report
        return watch_text(report) if report is not None else Content("")


def watch_text(report: WatchReport) -> Content:
    head = tr(f"watched {report.count}") if report.on else f"{tr(report.state.value)} {report.count}"
    helped = tr(f", {report.helped} helped") if report.helped else ""
    parts: list[tuple[str, str]] = [
        (f"{head}{helped}", "bold $accent"),
        (f"  {tr(printable(report.waits_for))}\n" if report.waits_for else "\n", "$ink"),
        (tr(f"task {report.task_id[:8]}"), "$muted"),
        (tr(f" · until '{printable(report.order.until)}'") if report.order.until else "", "$muted"),
        ("\n\n", ""),
    ]
    for step in report.steps:
        parts += [
            (f"{step.at.astimezone():%H:%M:%S}  ", "$faint"),
            (f"{tr(printable(step.text))}\n", "$ink"),
        ]
    return Content.assemble(*parts).rstrip()


def _number(text: str, kind: type[Number]) -> Number:
    try:
        return kind(text)
    except ValueError:
        whole = tr("a whole number") if kind is int else tr("a number")
        raise InvalidValue(f"'{text}' is not {whole}", f"enter {whole}") from None
