"""One agent: its process, terminal, state and messages."""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from uuid import uuid4

from synapse_tui.core.errors import AgentExited, TakesNoMessages
from synapse_tui.core.events import (
    AgentBell,
    AgentProcessExited,
    AgentStateChanged,
    AgentTitleChanged,
    ClipboardRequested,
    Event,
    EventBus,
    Notice,
)
from synapse_tui.core.model import (
    INFO_PRIORITY,
    INTERRUPT_PRIORITY,
    USER,
    AgentSpec,
    AgentState,
    ExitStatus,
    MessageRequest,
    Sender,
    StateReport,
    Task,
)
from synapse_tui.hooks import HookKind
from synapse_tui.messages.follow_ups import FollowUps
from synapse_tui.messages.outbox import Outbox, OutboxControl
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.rows import entry_values
from synapse_tui.messages.service import TaskService
from synapse_tui.messages.task_stream import AnswerProgress
from synapse_tui.messages.tasks import Journal, TaskStore
from synapse_tui.messages.text import check_size
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.pty import Guardian, Handle, ReadScheduler
from synapse_tui.terminal import Bell, ClipboardSet, Notification, Terminal, TerminalEvent, TitleChanged
from synapse_tui.terminal.dump import dump, dump_restored
from synapse_tui.terminal.style import Rgb
from synapse_tui.workspace import AgentHandover, SavedAgent

from .adoption import AdoptedSession, signals_to_json, task_to_json
from .composer import ComposerExplanation, ComposerReading, explain_composer
from .console import AgentConsole, ConsoleListener, Launch, Past
from .delivery.answering import AnswerOutcome
from .delivery.briefing import Briefing
from .delivery.deliverer import Delivery
from .delivery.gate import Explanation, dialog_for_keys, dialog_open, explain, why_held
from .delivery.interrupt import InterruptOutcome, interrupted_by
from .delivery.typed_text import MessageStyle, typed_text
from .delivery.typist import Pace
from .dialogs import AgentDialog
from .environment import with_profile
from .keyboard import DialogGuard, Keyboard, is_shortcut, presses_enter, presses_stop
from .profiles.profile import Profile
from .profiles.programs import start_words
from .raw_log import RawLog
from .state import Timeline
from .transcript import AnswerReader, UsageReader
from .turns import TurnTracker
from .watcher import WatchedProcess, Watcher

log = logging.getLogger(__name__)


def bus_event(agent_id: str, event: TerminalEvent) -> Event | None:
    """Convert a terminal event to a bus event; None if only the detector needs it."""
    match event:
        case TitleChanged(title):
            return AgentTitleChanged(agent_id, title)
        case Bell():
            return AgentBell(agent_id)
        case Notification(title, body):
            return AgentBell(agent_id, " ".join(part for part in (title, body) if part))
        case ClipboardSet(text=text):
            return ClipboardRequested(agent_id, text)
        case _:
            return None


AT_ONCE = 4  # events of one kind published immediately per second
SECONDS = 1.0


@dataclass(slots=True)
class _Second:
    count: int = 0
    last: Event | None = None  # published at the end of the second


class EventLimit:
    """Rate-limits the events of one agent's terminal.

    A flood of events would delay keys in the application's queue. Beyond the limit, only the last event of
    each kind is published, at the end of the second.
    """

    def __init__(
        self, publish: Callable[[Event], None], later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._publish = publish
        self._later = later
        self._seconds: dict[type[Event], _Second] = {}

    def publish(self, event: Event) -> None:
        kind = type(event)
        second = self._seconds.get(kind)
        if second is None:
            second = self._seconds[kind] = _Second()
            self._later(SECONDS, lambda: self._over(kind))
        if second.count < AT_ONCE:
            second.count += 1
            self._publish(event)
        elif not (isinstance(event, AgentBell) and second.last is not None and not event.text):
            second.last = event  # a bell without text does not replace a notification

    def _over(self, kind: type[Event]) -> None:
        last = self._seconds.pop(kind).last
        if last is not None:
            self.publish(last)


RECENT_CHARACTERS = 4000
DRAWS = 3.0  # seconds in which a program draws its first screen or redraws after a resize
# must fit beside the key hints on 80 columns
KEYS_KEPT = "Pause, then answer: text is kept for your draft"


class AgentSession:
    """One agent from opening to closing, across restarts.

    A restart recreates the process and everything that depends on it: console, keyboard, turns and delivery.
    """

    console: AgentConsole
    keyboard: Keyboard
    turns: TurnTracker
    delivery: Delivery
    _pace: Pace
    _progress: AnswerProgress
    _reader: AnswerReader
    _usage: UsageReader

    def __init__(  # noqa: PLR0913 - what one agent is made of
        self,
        profile: Profile,
        *,
        agent_id: str,
        port: int,
        cwd: Path,
        spec: AgentSpec,
        environ: Mapping[str, str],
        events: EventBus,
        scheduler: ReadScheduler,
        guardian: Guardian | None = None,
        logs: Path | None = None,
        scrollback: int = 5000,
        before: Past | None = None,
        adopted: AdoptedSession | None = None,
        hook_args: tuple[str, ...] = (),
        style: MessageStyle | None = None,
        journal: Journal | None = None,
        make_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.profile = profile
        self.agent_id = agent_id
        self.agent_type = profile.name
        self.name = spec.name
        self.port = port
        self.endpoint = environ.get("SYNAPSE_ENDPOINT", f"http://127.0.0.1:{port}")
        self.cwd = cwd
        self.context_id = adopted.context_id if adopted is not None else make_id()
        self.tasks = TaskStore(agent_id, self.context_id, events, journal=journal, new_id=make_id)
        self._style = style or MessageStyle()
        self.outbox = Outbox(self.tasks)
        self.control = OutboxControl(
            self.tasks, self.outbox, cancel=self.cancel, wake=self._wake, allow=self._allow
        )
        self.briefing = Briefing(
            self.tasks,
            self.outbox,
            accept=self._take,
            wake=self._wake,
            wanted=wants_briefing(profile, spec),
            told_as=spec.told_as,
            began=spec.began,
        )
        self.watcher = Watcher(
            agent_id,
            profile,
            tasks=self.tasks,
            outbox=self.outbox,
            events=events,
            accept=self._take,
            cancel=self.cancel,
            wake=self._wake,
        )
        self._follow_ups = FollowUps(self.tasks, self.outbox, self.watcher, self._works_on)
        self.service = TaskService(
            self.tasks,
            self.outbox,
            agent_id,
            running=self._running,
            newest=lambda: self.turns.newest if self._launched else "",
            goes_on=lambda task_id: bool(self._follow_ups.waiting(task_id)),
            answered=self._answered,
        )
        self.timeline = Timeline(adopted.timeline if adopted is not None else ())
        self.exit: ExitStatus | None = None
        self.unseen = False
        # whether a person has allowed messages, if the profile asks
        self.allowed = spec.allowed
        # when the process was started or resized, on the clock of the states
        self._sized = float("-inf")
        self.damage_listener: Callable[[], None] | None = None
        self.spec = spec
        self.environ = dict(environ)
        self.hook_args = adopted.hook_args if adopted is not None else hook_args
        self._events = events
        self._terminal_events = EventLimit(
            events.publish, lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call)
        )
        self._scheduler = scheduler
        self._guardian = guardian
        self._scrollback = scrollback
        self._before = before
        self._adopted = adopted
        self._log = RawLog(logs / f"{agent_id}.log") if logs is not None else None
        self._size = (80, 24)
        self._focused = False
        self._launched = False
        self._submitted = ""  # last text that was given to the agent

    @property
    def terminal(self) -> Terminal:
        return self.console.terminal

    @property
    def report(self) -> StateReport:
        return self.console.report

    @property
    def told_as(self) -> str:
        """Agent id under which its conversation got its instructions; empty if it has none yet."""
        return self.briefing.told_as

    @property
    def began(self) -> float:
        return self.briefing.began

    @property
    def start_command(self) -> str:
        """The command that opens it again under the same id."""
        return shlex.join(("synapse", "start", *start_words(self.present_spec, self.port)))

    @property
    def present_spec(self) -> AgentSpec:
        """What it was started with, under the name that it has now."""
        return replace(self.spec, profile=self.agent_type, name=self.name, cwd=self.cwd)

    @property
    def opened_by(self) -> tuple[str, ...]:
        return self.spec.opened_by

    @property
    def pid(self) -> int:
        """Process id; after the end, that of the last process."""
        return self.console.process.pid

    # -- lifecycle ---

    def start(self, columns: int, lines: int) -> None:
        self._size = (columns, lines)
        self._launch()
        if self._adopted is not None:
            self._adopt(self._adopted)
        elif self.spec.prompt:
            request = MessageRequest(check_size(self.spec.prompt), USER)
            self.outbox.put(self.tasks.create(request), prompt=True)

    async def hand_over(self) -> AgentHandover:
        """Release the process to a newer version of the host, after the message that is being typed."""
        await self.delivery.rest()
        self._progress.stop()
        await self._reader.settle()
        await self._usage.settle()
        if self._log is not None:
            await self._log.close()
        handle, terminal = self.console.hand_over(), self.terminal
        process = handle or Handle(self.pid, "", -1)
        return AgentHandover(
            agent_id=self.agent_id,
            profile=self.agent_type,
            name=self.name,
            cwd=str(self.cwd),
            spec={
                "args": list(self.spec.args),
                "told_as": self.told_as,
                "began": self.began,
                "command": list(self.spec.command),
                "allowed": self.allowed,
                "role": self.spec.role,
                "opened_by": list(self.spec.opened_by),
            },
            pid=process.pid,
            start=process.start,
            fd=process.fd,
            pending=process.pending,
            columns=terminal.columns,
            lines=terminal.lines,
            terminal=dump(terminal),
            restored=dump_restored(terminal),
            signals=signals_to_json(self.console.signals),
            tasks=tuple(task_to_json(task) for task in self.tasks),
            outbox=tuple(entry_values(self.outbox.entry(task.id)) for task in self.outbox),
            context_id=self.context_id,
            port=self.port,
            environ=dict(self.environ),
            exit=asdict(self.exit) if self.exit is not None else {},
            extra={
                "unseen": self.unseen,
                "turn": self.turns.state(),
                "timeline": [passage.to_json() for passage in self.timeline.passages],
                "watch": self.watcher.state(),
                "delivery": self.delivery.state(),
                "hook_args": list(self.hook_args),
            },
        )

    def _adopt(self, adopted: AdoptedSession) -> None:
        for task in adopted.tasks:
            self.tasks.adopt(task)
        self.outbox.adopt(adopted.outbox)
        self.unseen = adopted.unseen
        if adopted.turn:
            self.turns.resume(adopted.turn, self.console.collector)
        self.watcher.resume(adopted.watch)
        self.delivery.resume(adopted.delivery)

    def _launch(self) -> None:
        # A restart starts fresh, including when there was no conversation to resume and the agent exited for
        # that.
        first = not self._launched
        resume = self.profile.resume if first and self.spec.resume else ()
        launch = Launch(
            argv=(self.profile.command, *self.profile.args, *self.hook_args, *resume, *self.spec.args),
            cwd=self.cwd,
            environ=self.environ,
            columns=self._size[0],
            lines=self._size[1],
            scrollback=self._scrollback,
            before=self._before if first else None,
            adopted=self._adopted.process if first and self._adopted is not None else None,
            guardian=self._guardian,
        )
        loop = asyncio.get_running_loop()
        self._reader = AnswerReader(self.profile.transcript, cwd=self.cwd, environ=self.environ)
        self._usage = UsageReader(
            self.profile.transcript, cwd=self.cwd, environ=self.environ, database=self.profile.usage_database
        )
        turns = TurnTracker(
            self.tasks,
            loop.time,
            turn_tasks=self._follow_ups,
            reader=self._reader,
            queues=self.profile.working_input == "queue",
        )
        self.turns = turns
        self.console = AgentConsole(
            self.profile,
            launch,
            listener=ConsoleListener(
                self._on_output,
                self._on_event,
                self._on_state,
                self._on_scrolled,
                turns.drawn_anew,
                self._on_exited,
            ),
            scheduler=self._scheduler,
            timeline=self.timeline,
        )
        if self.allowed:
            self.console.allow()
        self._progress = AnswerProgress(
            self.tasks.changes, lambda: turns.running, turns.writing, loop.call_later
        )
        self._pace = Pace(self.console)
        self.keyboard = self._make_keyboard(self.console)
        self.watcher.attach(WatchedProcess(self.console, self.keyboard, turns, self.console.collector))
        self.delivery = Delivery(
            self.console,
            self.keyboard,
            self.profile,
            tasks=self.tasks,
            outbox=self.outbox,
            turns=turns,
            compose=self._compose,
            collector=self.console.collector,
        )
        self._launched = True
        self.keyboard.look()  # an adopted agent may show a dialog
        self.delivery.start()
        if self._log is not None:
            self._log.started(*self._size)
        self.exit = None
        self._sized = self.console.now()
        if self._focused:
            self.console.focus(True)

    def _make_keyboard(self, console: AgentConsole) -> Keyboard:
        guard = DialogGuard(
            console.now,
            lambda: dialog_for_keys(console),
            opens_menu=self._opens_menu,
            read=console.look_for_key,
            kept=lambda: self._events.publish(Notice(KEYS_KEPT, agent_id=self.agent_id, dialog=True)),
        )
        return Keyboard(
            console.write,
            console.now,
            guard=guard,
            sending=self._sending,
            taken=self._pace.taken,
            offer=console.offer,
            becomes_signal=console.process.makes_signal,
            followed=console.wake,  # an idle agent draws nothing that would wake it
        )

    async def _end(self) -> None:
        self.turns.on_ending()
        self._progress.stop()
        await self.delivery.stop()
        await self._pace.stop()
        await self.console.stop()
        await self._reader.settle()
        await self._usage.settle()
        self.delivery.abandon()
        if self.left:
            text = (
                f"{self.agent_id}: what it started still runs and could not be ended: {', '.join(self.left)}"
            )
            log.warning(text)
            self._events.publish(Notice(text, "warning", self.agent_id))

    async def stop(self) -> None:
        if self._launched:
            await self._end()
        self._follow_ups.exited(Reason.AGENT_EXITED)
        self.tasks.changes.close()
        if self._log is not None:
            await self._log.close()

    async def follow(self, profile: Profile) -> None:
        """Apply a changed profile to the running process, after the message that is being typed.

        What a process gets at its start (command, environment, hooks, transcript) changes at the next one.
        """
        delivery = self.delivery
        async with delivery.busy:
            if delivery is not self.delivery or not self.console.alive:
                return
            self._use(profile)
            delivery.follow(profile)
            self.turns.queueing = profile.working_input == "queue"
            self.console.follow(profile)
        self.console.wake()

    def _use(self, profile: Profile) -> None:
        self.environ = with_profile(self.environ, self.profile, profile)
        self.profile = profile
        self.watcher.profile = profile
        self.briefing.wanted = wants_briefing(profile, self.spec)

    async def restart(self, profile: Profile | None = None) -> None:
        """Restart the agent; it keeps its id, queue and tasks."""
        await self._end()
        if profile is not None and profile != self.profile:
            self._use(profile)
        self._follow_ups.exited("agent restarted")
        self._launch()
        self.unseen = False
        if self.damage_listener is not None:
            self.damage_listener()
        self._events.publish(AgentStateChanged(self.agent_id, self.report, self.report))

    @property
    def left(self) -> Sequence[str]:
        """Describe processes that its last process started and that outlived it."""
        return self.console.process.left if self._launched else ()

    # -- user input ---

    def user_input(self, data: bytes) -> None:
        if self._launched and self.console.alive:
            self.keyboard.press(data)
            self.console.wake()

    def _sending(self, data: bytes) -> None:
        self._pace.sent(data)
        self.turns.on_keys()
        if presses_enter(data) and not dialog_open(self.console):
            # The user's own prompt may be restored by an interrupt, and ends a message's answer.
            draft = self.console.reading().draft
            self._submitted = draft or self._submitted
            self.delivery.on_enter(draft)
            self.turns.on_prompt(draft)
        if presses_stop(data):
            self.turns.on_user_stop(dialog=dialog_open(self.console))

    def _opens_menu(self, data: bytes) -> bool:
        reading = self.console.reading()
        if presses_enter(data):
            return (reading.draft.encode() + data).lstrip().startswith(b"/")
        return self.report.state is AgentState.READY and reading.empty and is_shortcut(data)

    def resize(self, columns: int, lines: int) -> None:
        terminal = self.console.terminal
        if (columns, lines) == self._size == (terminal.columns, terminal.lines):
            return
        self._size = (columns, lines)
        self._sized = self.console.now()
        if self._log is not None:
            self._log.resized(columns, lines)
        self.turns.on_resize()
        self.console.resize(columns, lines)

    def go_on(self) -> bool:
        """Continue the process; return False if it is not suspended."""
        return self._launched and self.console.go_on()

    def reset_terminal(self) -> None:
        """Reset the modes of the terminal that a program has left on when it died; the text stays."""
        if self._launched:
            self.console.reset_terminal()
            if self.damage_listener is not None:
                self.damage_listener()

    def set_colors(
        self, foreground: Rgb | None, background: Rgb | None, cursor: Rgb | None, *, dark: bool | None
    ) -> None:
        """Set the colours reported to the program, those of the outer terminal; None keeps one."""
        self.console.set_colors(foreground, background, cursor, dark)

    def seen(self) -> None:
        """Note that the user looks at it."""
        self.unseen = False

    def focus(self, focused: bool) -> None:
        if focused:
            self.seen()
        if focused != self._focused:
            self._focused = focused
            self.console.focus(focused)

    def charge(self, seconds: float) -> None:
        if self._launched:
            self.console.charge(seconds)

    def hooked(self, kind: HookKind, call: str = "") -> None:
        if self._launched and self.exit is None and "hooks" not in self.profile.ignores:
            self.turns.on_hook(kind)
            self.console.hooked(kind, call)

    def reading(self) -> ComposerReading:
        return self.console.reading()

    def recent_text(self) -> str:
        return self.console.screen_text().rstrip()[-RECENT_CHARACTERS:]

    def explain_composer(self) -> ComposerExplanation:
        return explain_composer(self.terminal, self.profile, self.console.detector.composer)

    def explain(self) -> Explanation:
        now = self._running()
        running = self.tasks.get(now) if now in self.tasks else None
        return explain(self.report, self.timeline, self.control, running, now=self.console.now())

    @property
    def tokens(self) -> int | None:
        """Tokens used in this conversation, as the agent states them after a turn; None if unknown."""
        return self._usage.tokens if self._launched else None

    @property
    def resting(self) -> bool:
        """Whether its composer is empty, no turn is running, and the user has not just typed."""
        if not self._launched or self.exit is not None or not self.reading().visible:
            return False
        return why_held(self.console, self.keyboard, self.profile) is None

    @property
    def dialog(self) -> AgentDialog | None:
        """The dialog on the screen; None also while it is redrawn."""
        return self.console.dialog if self._launched and self.exit is None else None

    async def answer_dialog(self, serial: int, fingerprint: str, option: str) -> AnswerOutcome:
        """Type a person's answer to the dialog that the person saw; see `Host.answer_dialog`."""
        return await self._live().answer(serial, fingerprint, option)

    # -- messages ---

    def accept(self, request: MessageRequest) -> Task:
        """Queue a message; it is typed as soon as that is safe."""
        task = self._take(request)
        return self.tasks.get(task.follows or task.id)

    def _take(self, request: MessageRequest) -> Task:
        delivery = self._live()
        self._check_receives()
        inbox = self._style.info_to_inbox and request.priority == INFO_PRIORITY
        self.console.look_for_stop()
        task = self.control.put(request, inbox=inbox)
        delivery.update_reasons()
        self.console.wake()
        return self.tasks.get(task.id)

    def _check_receives(self) -> None:
        if not self.profile.receives:
            raise TakesNoMessages(self.name or self.agent_id)

    async def cancel(self, task_id: str) -> Task:
        """Cancel a message and its follow-ups, interrupting the turn that works on it."""
        return await self._follow_ups.cancel(self.tasks.get(task_id), self.delivery.cancel)

    async def interrupt(self, text: str = "", sender: Sender = USER) -> InterruptOutcome:
        delivery = self._live()
        if text:
            check_size(text)
            self._check_receives()
        outcome = await delivery.interrupt(interrupted_by(sender))
        if text and outcome.alive:
            task = self.accept(MessageRequest(text, sender, INTERRUPT_PRIORITY))
            delivery.already_interrupted(task.id)
        return outcome

    def _live(self) -> Delivery:
        if self.exit is not None or not self._launched:
            raise AgentExited(f"{self.agent_id} has ended", "restart it in its pane, then try again")
        return self.delivery

    def _allow(self) -> bool:
        """Allow messages; True if they were not allowed before."""
        first = not self.allowed
        self.allowed = True
        if self._launched:
            self.console.allow()
        return first

    def _wake(self) -> None:
        if self._launched:
            self.console.wake()

    def _compose(self, task: Task) -> str:
        prompt = self.outbox.entry(task.id).prompt
        shown = self._follow_ups.as_typed(task)
        self._submitted = typed_text(shown, self.profile, plain=self._style.plain, prompt=prompt)
        return self._submitted

    def _running(self) -> str:
        return (self.turns.running if self._launched else "") or self.watcher.task_id

    def _works_on(self, task_id: str) -> bool:
        return self._launched and self.turns.works_on(task_id)

    def _answered(self, task_id: str) -> None:
        if self._launched:
            self.turns.answered(task_id)

    # -- console callbacks ---

    def _on_output(self, data: bytes) -> None:
        if self._log is not None and data:
            self._log.write(data)
        if self.damage_listener is not None:
            self.damage_listener()
        self.keyboard.shown()
        if not self.console.modes.synchronized:
            self.turns.on_output()
            self._progress.output()

    def _on_scrolled(self, row: str) -> None:
        if self.turns.collecting:
            self.turns.on_scrolled(row)
        else:
            self.console.report_scrolled(False)

    def _on_state(self, report: StateReport, previous: StateReport) -> None:
        if self._launched:
            if report.state is AgentState.PROCESSING and previous.state is not AgentState.PROCESSING:
                self.keyboard.guard.expect_no_menu()
            self.keyboard.look()
        self.turns.on_report(report)
        if report.state is AgentState.READY and previous.state in (AgentState.PROCESSING, AgentState.WAITING):
            self._usage.look(self._submitted)
        rested = report.state in (AgentState.READY, AgentState.WAITING) and report.state is not previous.state
        turn = self.turns.running
        ready = report.state is AgentState.READY
        briefed = ready and self.briefing.carries(turn)
        drawn = ready and not turn and self._drew(previous, report.since)
        begun = previous.state is not AgentState.STARTING
        stopped = ready and self._launched and self.delivery.interrupted(previous.since)
        if rested and begun and not (self._focused or briefed or drawn or stopped):
            self.unseen = True
        self._events.publish(AgentStateChanged(self.agent_id, report, previous))

    def _drew(self, report: StateReport, until: float) -> bool:
        rules = [rule for rule in self.profile.states if rule.name == report.rule]
        by_output = any(rule.active is not None for rule in rules)
        return by_output and report.since - self._sized < DRAWS and until - report.since < DRAWS

    def _on_exited(self, status: ExitStatus) -> None:
        self.delivery.update_reasons()
        self.exit = status
        self._follow_ups.exited(Reason.AGENT_EXITED)
        self._events.publish(AgentProcessExited(self.agent_id, status))
        if self.damage_listener is not None:
            self.damage_listener()

    def _on_event(self, event: TerminalEvent) -> None:
        self.turns.on_signal(event, rests=isinstance(event, TitleChanged) and self._rests_by(event.title))
        if (published := bus_event(self.agent_id, event)) is not None:
            self._terminal_events.publish(published)

    def _rests_by(self, title: str) -> bool:
        """Whether a title alone says that the agent is ready."""
        rules = (rule for rule in self.profile.states if rule.title is not None and rule.title.search(title))
        rule = next(rules, None)
        return rule is not None and rule.state is AgentState.READY and not rule.screen


def wants_briefing(profile: Profile, spec: AgentSpec) -> bool:
    return profile.receives and (profile.instructions or bool(spec.role))


def saved_agent(session: AgentSession, order: int = 0) -> SavedAgent:
    """Return what `resumed_spec` needs to open an agent again, at a place among others."""
    return SavedAgent(
        profile=session.agent_type,
        agent_id=session.agent_id,
        port=session.port,
        cwd=str(session.cwd),
        name=session.name,
        args=session.spec.args,
        order=order,
        told_as=session.told_as,
        began=session.began,
        command=session.spec.command,
        allowed=session.allowed,
        role=session.spec.role,
        opened_by=session.spec.opened_by,
    )


def resumed_spec(saved: SavedAgent, profile: Profile) -> AgentSpec:
    own = saved.args[: len(profile.resume)] == profile.resume
    return AgentSpec(
        profile.name,
        name=saved.name,
        cwd=Path(saved.cwd),
        args=saved.args,
        restore=True,
        resume=bool(profile.resume) and not own,
        last_port=saved.port,
        told_as=saved.told_as if profile.resume else "",
        began=saved.began if profile.resume else 0.0,
        command=saved.command,
        allowed=saved.allowed,
        role=saved.role,
        opened_by=saved.opened_by,
    )
