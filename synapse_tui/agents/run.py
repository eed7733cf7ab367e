"""One process of an agent, from its start to its end, with what works for it: keys, turns and delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.streams import Progress, TaskStreams
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.model import AgentState, ExitStatus, StateReport, Task
from synapse_tui.pty import ReadScheduler
from synapse_tui.terminal import TerminalEvent

from .console import AgentConsole, ConsoleListener, Launch
from .delivery.deliverer import Delivery
from .delivery.gate import dialog_for_keys, dialog_open
from .delivery.typist import Pace
from .keyboard import DialogGuard, Keyboard, is_shortcut, presses_enter, presses_stop
from .profiles.profile import Profile
from .state import Timeline
from .transcript import AnswerReader
from .turns import Keeper, TurnTracker
from .watcher import Post, Watcher


@dataclass(frozen=True, slots=True)
class Work:
    """What an agent works on, through all its processes."""

    tasks: TaskStore
    outbox: Outbox
    watcher: Watcher
    keeper: Keeper
    streams: TaskStreams
    reader: AnswerReader
    timeline: Timeline
    compose: Callable[[Task], str]


@dataclass(frozen=True, slots=True)
class RunListener:
    """Who hears of a process; all are called in the loop."""

    output: Callable[[bytes], None]  # bytes arrived and stand on the screen now
    event: Callable[[TerminalEvent], None]
    state: Callable[[StateReport, StateReport], None]
    exited: Callable[[ExitStatus], None]
    keys_kept: Callable[[], None]


class AgentRun:
    """Starts the process, or goes on with the one that was handed over, and begins to deliver."""

    def __init__(
        self, profile: Profile, launch: Launch, *, work: Work, listener: RunListener, scheduler: ReadScheduler
    ) -> None:
        self._work = work
        self._listener = listener
        self._begun = False
        self.turns = TurnTracker(
            work.tasks,
            asyncio.get_running_loop().time,
            keeper=work.keeper,
            reader=work.reader,
            queues=profile.working_input == "queue",
        )
        self.console = console = AgentConsole(
            profile,
            launch,
            listener=ConsoleListener(
                self._on_output, self._on_event, self._on_state, self._on_scrolled, self._on_exited
            ),
            scheduler=scheduler,
            timeline=work.timeline,
        )
        self._pace = Pace(console)
        later = asyncio.get_running_loop().call_later
        self._progress = Progress(work.streams, lambda: self.turns.running, self.turns.writing, later)
        self.keyboard = Keyboard(
            console.write,
            console.now,
            guard=DialogGuard(
                console.now,
                lambda: dialog_for_keys(console),
                opens_menu=self._opens_menu,
                read=console.look_for_key,
                kept=listener.keys_kept,
            ),
            sending=self._sending,
            taken=self._pace.taken,
            unread=lambda: console.unread,
            followed=console.wake,  # an agent at rest shows nothing that would
        )
        work.watcher.attach(Post(console, self.keyboard, self.turns, console.collector))
        self.delivery = Delivery(
            console,
            self.keyboard,
            profile,
            tasks=work.tasks,
            outbox=work.outbox,
            turns=self.turns,
            compose=work.compose,
            collector=console.collector,
        )
        self._begun = True
        self.keyboard.look()  # one that was handed over may show a dialog
        self.delivery.start()

    def press(self, data: bytes) -> None:
        """Take the human's keys, pastes and mouse events, already encoded for the agent."""
        if not self.console.alive:
            return
        self.keyboard.press(data)
        self.console.wake()

    def _sending(self, data: bytes) -> None:
        """The human's bytes go to the agent now."""
        self._pace.sent(data)
        if presses_enter(data) and not dialog_open(self.console):
            # The user's own prompt may be put back by an interrupt, and ends a message's answer.
            draft = self.console.reading().draft
            self.delivery.on_enter(draft)
            self.turns.on_prompt(draft)
        if presses_stop(data):
            self.turns.on_user_stop()

    def _opens_menu(self, data: bytes) -> bool:
        reading = self.console.reading()
        if presses_enter(data):
            return (reading.draft.encode() + data).lstrip().startswith(b"/")
        return self.console.report.state is AgentState.READY and reading.empty and is_shortcut(data)

    async def rest(self) -> None:
        """Deliver no more, once what is being typed was submitted and every answer was told."""
        await self.delivery.rest()
        self._progress.stop()
        await self._work.reader.settle()

    async def end(self) -> None:
        """End the process; what stood in its composer stands there no more."""
        self._progress.stop()
        await self.delivery.stop()
        await self.console.stop()
        await self._work.reader.settle()
        self.delivery.abandon()

    # -- what comes from the process ---

    def _on_output(self, data: bytes) -> None:
        self._listener.output(data)
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
        if self._begun:
            if report.state is AgentState.PROCESSING and previous.state is not AgentState.PROCESSING:
                self.keyboard.guard.expect_no_menu()
            self.keyboard.look()
        self.turns.on_report(report)
        self._listener.state(report, previous)

    def _on_event(self, event: TerminalEvent) -> None:
        self.turns.on_signal(event)
        self._listener.event(event)

    def _on_exited(self, status: ExitStatus) -> None:
        self.delivery.explain()
        self._listener.exited(status)
