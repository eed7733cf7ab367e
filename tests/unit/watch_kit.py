"""A watcher over a scripted agent in a time of its own: the test says what the agent does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from synapse_tui.agents.answers import AnswerCollector
from synapse_tui.agents.turns import SETTLED_SIGNAL, TurnTracker
from synapse_tui.agents.watch import WatchOrder, WatchReport
from synapse_tui.agents.watcher import WatchedProcess, Watcher
from synapse_tui.core.events import Event, EventBus, Notice
from synapse_tui.core.model import USER, AgentState, MessageRequest, Sender, Task
from synapse_tui.messages.follow_ups import FollowUps
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskStore
from tests.unit.delivery_fakes import FakeAgent, make_profile

AGENT = "synapse-fake-8100"
CODEX = Sender("synapse-codex-8120", "codex", "http://127.0.0.1:8120", verified=True)
EVERY = 30.0
T0 = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class WatchRig:
    """One agent, its tasks and the watcher over it."""

    def __init__(self, **profile: Any) -> None:
        self.view = FakeAgent()
        self.events: list[Event] = []
        bus = EventBus()
        bus.subscribe(self.events.append)
        self.tasks = TaskStore(AGENT, "ctx", bus, clock=self.time)
        self.outbox = Outbox(self.tasks)
        self.profile = make_profile(**profile)
        self.watcher = Watcher(
            AGENT,
            self.profile,
            tasks=self.tasks,
            outbox=self.outbox,
            events=bus,
            accept=self.accept,
            cancel=self.cancel,
            wake=lambda: None,
            time=self.time,
        )
        self.rows = ["", ""]
        self.follow_ups = FollowUps(
            self.tasks,
            self.outbox,
            self.watcher,
            lambda task_id: self.turns.works_on(task_id),  # noqa: PLW0108 - the tracker is made below
        )
        self.turns = TurnTracker(self.tasks, self.view.now, turn_tasks=self.follow_ups)
        self.watcher.attach(WatchedProcess(self.view, self.view.keyboard, self.turns, self.collector))

    def time(self) -> datetime:
        return T0 + timedelta(seconds=self.view.time)

    def collector(self, text: str) -> AnswerCollector:
        return AnswerCollector(text, lambda: self.rows)

    def accept(self, request: MessageRequest) -> Task:
        task = self.tasks.create(request)
        self.outbox.put(task)
        return task

    async def cancel(self, task_id: str) -> Task:
        return self.outbox.cancel(task_id)

    # what a test does

    def send(self, text: str = "a long job", sender: Sender = USER) -> Task:
        return self.accept(MessageRequest(text, sender))

    def begin(self, **order: Any) -> WatchReport:
        return self.watcher.begin(WatchOrder(**({"every": EVERY} | order)))

    def take(self, task_id: str) -> None:
        """Let a waiting message be submitted, and the agent begin to work."""
        task = self.tasks.get(task_id)
        collector = self.collector(task.text)
        collector.begin()
        self.turns.prepare(collector)
        self.outbox.take(task_id)
        self.turns.begin(task, task.text, self.view.report, self.view.time)
        self.become(AgentState.PROCESSING)

    def become(self, state: AgentState, detail: str = "") -> None:
        self.view.set_state(state, detail)
        self.turns.on_report(self.view.report)

    def answer(self, text: str, after: float = 20.0) -> None:
        """Let the turn end with a text, after so many seconds of work."""
        self.view.time += after
        turn = self.turns.current
        assert turn is not None
        self.rows = [f"> {turn.text}", text]
        self.turns.on_output()
        self.become(AgentState.READY)
        self.view.time += SETTLED_SIGNAL
        self.turns.check(self.view.report)

    async def rest(self, seconds: float = EVERY) -> None:
        """Let nothing happen for some seconds, as the watchdog sees it."""
        await self.step()
        self.view.time += seconds
        await self.step()

    async def step(self) -> float | None:
        """Do all that is due now."""
        while (wait := await self.watcher.step()) == 0:
            pass
        return wait

    async def nudge(self, answer: str = "some more", worked: float = 20.0) -> None:
        """Let a nudge be due and taken, and the agent answer it."""
        await self.rest()
        assert self.waiting, self.report
        self.take(self.waiting[-1].id)
        await self.step()
        self.answer(answer, worked)
        await self.step()

    # what it sees

    @property
    def report(self) -> WatchReport:
        report = self.watcher.report
        assert report is not None
        return report

    @property
    def waiting(self) -> list[Task]:
        return list(self.outbox)

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def said(self) -> list[str]:
        return [step.text for step in self.report.steps]

    def handed_over(self) -> dict[str, Any]:
        """The watch as the next version of the host reads it."""
        state: dict[str, Any] = json.loads(json.dumps(self.watcher.state()))
        return state
