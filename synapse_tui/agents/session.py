"""One agent: its process and terminal, its state, and the messages to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from synapse_tui.errors import AgentExited, MessageError
from synapse_tui.events import AgentProcessExited, AgentStateChanged, EventBus
from synapse_tui.model import (
    INTERRUPT_PRIORITY,
    USER,
    AgentSpec,
    AgentState,
    ExitStatus,
    MessageRequest,
    Sender,
    StateReport,
    Task,
    check_priority,
)
from synapse_tui.pty import Guardian, ReadScheduler
from synapse_tui.terminal import Terminal, TerminalEvent
from synapse_tui.workspace import AgentHandover

from .adoption import AdoptedSession, describe
from .briefing import Briefing
from .composer import ComposerReading
from .console import AgentConsole, ConsoleListener, Launch
from .delivery import Delivery
from .detector import StateDetector
from .gate import dialog_open
from .interrupt import InterruptOutcome
from .keyboard import Keyboard, presses_enter, presses_stop
from .outbox import Outbox
from .outbox_control import OutboxControl
from .profile import Profile
from .raw_log import RawLog
from .sanitize import check_size, typed_text
from .seeding import Past
from .task_desk import TaskDesk
from .tasks import Journal, TaskBook
from .told import bus_event
from .turns import TurnTracker

RECENT_CHARACTERS = 4000
_SEEN = (AgentState.READY, AgentState.WAITING)


class AgentSession:
    """One agent from its opening to its closing, through any number of restarts.

    Args:
        profile: What is known of its kind.
        agent_id: `synapse-{type}-{port}`.
        port: Port that it is served on.
        cwd: Its working folder.
        spec: What was asked for: name, arguments, first prompt.
        environ: Environment of the process, complete.
        events: Told of everything that happens to the agent.
        scheduler: Shares the parse budget among the agents.
        guardian: Ends the process when this one is killed; None for no guard.
        logs: Folder of the log of its output; None for no log.
        scrollback: Lines that the terminal keeps.
        before: What its terminal showed before the host ended, for the first process; None for nothing.
        adopted: What it goes on with in place of a first process of its own; None for nothing.
        plain_messages: Whether messages are typed as `A2A: text` in place of `[A2A:<task8>:<sender>] text`.
        journal: Where tasks and outbox are made durable; None for nowhere.
        make_id: Makes UUIDs.
    """

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
        plain_messages: bool = False,
        journal: Journal | None = None,
        make_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self.profile = profile
        self.agent_id = agent_id
        self.agent_type = profile.name
        self.name = spec.name
        self.port = port
        self.endpoint = f"http://127.0.0.1:{port}"
        self.cwd = cwd
        self.context_id = adopted.context_id if adopted is not None else make_id()
        self.tasks = TaskBook(agent_id, self.context_id, events, journal=journal, new_id=make_id)
        self.outbox = Outbox(self.tasks)
        self.control = OutboxControl(self.tasks, self.outbox, cancel=self.cancel, wake=self._wake)
        self.desk = TaskDesk(self.tasks, self.outbox, agent_id, running=self._running)
        self.briefing = Briefing(
            self.tasks, self.outbox, accept=self.accept, wake=self._wake, told_as=spec.told_as
        )
        self.exit: ExitStatus | None = None
        self.unseen = False
        self.damage_listener: Callable[[], None] | None = None
        self.taps: list[Callable[[bytes], None]] = []
        """Called with all that the agent puts out, once it stands on the screen."""
        self.spec = spec
        self.environ = dict(environ)
        self._events = events
        self._scheduler = scheduler
        self._guardian = guardian
        self._scrollback = scrollback
        self._before = before
        self._adopted = adopted
        self._plain = plain_messages
        self._log = RawLog(logs / f"{agent_id}.log") if logs is not None else None
        if self._log is not None:
            self.taps.append(self._log.write)
        self._size = (80, 24)
        self._focused = False
        self._console: AgentConsole | None = None
        self._delivery: Delivery | None = None
        self._keyboard: Keyboard | None = None
        self._turns: TurnTracker | None = None

    @property
    def console(self) -> AgentConsole:
        """The process with its terminal; another object after a restart."""
        assert self._console is not None, "start() comes first"
        return self._console

    @property
    def terminal(self) -> Terminal:
        """Its screen; another object after a restart."""
        return self.console.terminal

    @property
    def detector(self) -> StateDetector:
        """Decides its state; another object after a restart."""
        return self.console.detector

    @property
    def report(self) -> StateReport:
        """Its state and why it was decided."""
        return self.console.report

    @property
    def told_as(self) -> str:
        """Agent id under which its conversation got its instructions; empty for not yet."""
        return self.briefing.told_as

    @property
    def pid(self) -> int:
        """Process id; that of the last process after its end."""
        return self.console.process.pid

    # -- life ---

    def start(self, columns: int, lines: int) -> None:
        """Start the process, or go on with the one that was handed over.

        Args:
            columns: Width of its terminal in cells.
            lines: Height of its terminal in cells.

        Raises:
            SpawnError: It cannot be started.
            HandoverError: It is not there any more.
        """
        self._size = (columns, lines)
        self._launch()
        if self._adopted is not None:
            self._adopted.give(self, self._turns)
        elif self.spec.prompt:
            request = MessageRequest(check_size(self.spec.prompt), USER)
            self.outbox.put(self.tasks.create(request), prompt=True)

    async def hand_over(self) -> AgentHandover:
        """Leave the process to a newer version of the host; the message that is being typed goes first."""
        if self._delivery is not None:
            await self._delivery.rest()
        if self._log is not None:
            await self._log.close()
        return describe(self, self.console, self._turns)

    def _launch(self) -> None:
        columns, lines = self._size
        # A restart begins anew: also when there was no conversation to resume and the agent ended over it.
        first = self._console is None
        resume = self.profile.resume if first and self.spec.resume else ()
        self._console = console = AgentConsole(
            self.profile,
            Launch(
                argv=(self.profile.command, *self.profile.args, *resume, *self.spec.args),
                cwd=self.cwd,
                environ=self.environ,
                columns=columns,
                lines=lines,
                scrollback=self._scrollback,
                before=self._before if first else None,
                adopted=self._adopted.process if first and self._adopted is not None else None,
                guardian=self._guardian,
            ),
            listener=ConsoleListener(
                self._on_output, self._on_event, self._on_state, self._on_scrolled, self._on_exited
            ),
            scheduler=self._scheduler,
        )
        if self._log is not None:
            self._log.started(columns, lines)
        self.exit = None
        self._keyboard = Keyboard(console.write, console.now)
        self._turns = TurnTracker(self.tasks, console.now)
        self._delivery = Delivery(
            console,
            self._keyboard,
            self.profile,
            book=self.tasks,
            outbox=self.outbox,
            turns=self._turns,
            compose=self._compose,
            collector=console.collector,
        )
        self._delivery.start()
        if self._focused:
            console.focus(True)

    async def stop(self) -> None:
        """End the process and everything that works for the session."""
        await self._end()
        if self._log is not None:
            await self._log.close()

    async def restart(self) -> None:
        """Start the agent anew; it keeps its id, its queue and its tasks.

        Raises:
            SpawnError: It cannot be started.
        """
        await self._end()
        self._launch()
        self.unseen = False
        if self.damage_listener is not None:
            self.damage_listener()
        self._events.publish(AgentStateChanged(self.agent_id, self.report, self.report))

    async def _end(self) -> None:
        if self._delivery is not None:
            await self._delivery.stop()
        if self._console is not None:
            await self._console.stop()
        if self._delivery is not None:
            self._delivery.abandon()

    # -- the person at the keyboard ---

    def user_input(self, data: bytes) -> None:
        """Take the human's keys, pastes and mouse events, already encoded for the agent."""
        if self._keyboard is None or self._turns is None or self._delivery is None or not self.console.alive:
            return
        asked = dialog_open(self.console)
        if not asked and presses_enter(data) and (draft := self.console.reading().draft):
            # The user's own prompt may be put back by an interrupt, and ends a message's answer.
            self._delivery.note_submitted(draft)
            self._turns.on_prompt(draft)
        if presses_stop(data):
            self._turns.on_user_stop()
        self._keyboard.press(data, past=asked)
        self.console.wake()

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size, in cells."""
        if (columns, lines) == self._size:
            return
        self._size = (columns, lines)
        if self._log is not None:
            self._log.resized(columns, lines)
        self.console.resize(columns, lines)

    def focus(self, focused: bool) -> None:
        """Tell that the human looks at this agent, or no longer does."""
        if focused:
            self.unseen = False
        if focused != self._focused:
            self._focused = focused
            self.console.focus(focused)

    def reading(self) -> ComposerReading:
        """The composer on the screen."""
        return self.console.reading()

    def recent_text(self) -> str:
        """What its screen shows at present, at most some 4,000 characters."""
        return self.console.tail().rstrip()[-RECENT_CHARACTERS:]

    # -- messages ---

    def accept(self, request: MessageRequest) -> Task:
        """Take a message: it is typed as soon as that is safe.

        Raises:
            MessageError: It cannot be taken.
            InvalidValue: Its priority is none.
            AgentExited: The agent has ended.
        """
        delivery = self._live()
        if not self.profile.receives:
            raise MessageError(f"{self.agent_id} takes no messages: it would run them", "send it to an agent")
        check_priority(request.priority)
        check_size(request.text)
        self.outbox.check_room(request.text)
        task = self.tasks.create(request)
        self.outbox.put(task)
        delivery.explain()
        self.console.wake()
        return self.tasks.get(task.id)

    def task(self, task_id: str) -> Task:
        """The task of that id or unique prefix of at least 8 characters.

        Raises:
            TaskNotFound: There is none.
        """
        return self.tasks.get(task_id)

    def list_tasks(self) -> list[Task]:
        """The tasks that are still known, oldest first."""
        return list(self.tasks)

    async def cancel(self, task_id: str) -> Task:
        """Take a message back; the turn that works on it is interrupted.

        Raises:
            TaskNotFound: There is none of that id.
        """
        if self._delivery is None:
            return self.tasks.get(task_id)
        return await self._delivery.cancel(task_id)

    async def interrupt(self, text: str = "", sender: Sender = USER) -> InterruptOutcome:
        """Stop the turn with the agent's own interrupt, then deliver the text if there is one.

        Raises:
            MessageError: The text cannot be taken.
            AgentExited: The agent has ended.
        """
        delivery = self._live()
        if text:
            check_size(text)
        outcome = await delivery.interrupt(f"interrupted by {sender.sender_id}")
        if text and outcome.alive:
            task = self.accept(MessageRequest(text, sender, INTERRUPT_PRIORITY))
            delivery.already_interrupted(task.id)
        return outcome

    def _live(self) -> Delivery:
        if self.exit is not None or self._delivery is None:
            raise AgentExited(f"{self.agent_id} has ended", "restart it in its pane, then try again")
        return self._delivery

    def _wake(self) -> None:
        if self._console is not None:
            self._console.wake()

    def _running(self) -> str:
        return self._turns.running if self._turns is not None else ""

    def _briefed(self, report: StateReport) -> bool:
        """Whether it is ready after it got its instructions: nobody need look at what it said to them."""
        task_id = self._turns.running if self._turns is not None else ""
        ready = report.state is AgentState.READY
        return ready and task_id in self.tasks and self.tasks.get(task_id).instructs

    def _compose(self, task: Task) -> str:
        return typed_text(task, self.profile, plain=self._plain, prompt=self.outbox.entry(task.id).prompt)

    # -- what comes from the agent ---

    def _on_output(self, data: bytes) -> None:
        for tap in tuple(self.taps):
            tap(data)
        if self._keyboard is not None:
            self._keyboard.shown()
        if self._turns is not None and not self.console.modes.synchronized:
            self._turns.on_output()
        if self.damage_listener is not None:
            self.damage_listener()

    def _on_scrolled(self, row: str) -> None:
        if self._turns is not None and self._turns.collecting:
            self._turns.on_scrolled(row)
        else:
            self.console.report_scrolled(False)

    def _on_state(self, report: StateReport, previous: StateReport) -> None:
        news = report.state in _SEEN and report.state is not previous.state and not self._briefed(report)
        if not self._focused and news:
            self.unseen = self.unseen or previous.state is not AgentState.STARTING
        if self._turns is not None:
            self._turns.on_report(report)
        self._events.publish(AgentStateChanged(self.agent_id, report, previous))

    def _on_exited(self, status: ExitStatus) -> None:
        self.exit = status
        if self._delivery is not None:
            self._delivery.explain()
        self._events.publish(AgentProcessExited(self.agent_id, status))
        if self.damage_listener is not None:
            self.damage_listener()

    def _on_event(self, event: TerminalEvent) -> None:
        if self._turns is not None:
            self._turns.on_signal(event)
        if (published := bus_event(self.agent_id, event)) is not None:
            self._events.publish(published)
