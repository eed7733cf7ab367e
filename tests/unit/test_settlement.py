"""What becomes of a message that was typed, where the agent was faster than the look at its screen."""

from __future__ import annotations

import pytest

from synapse_tui.agents.answers import AnswerCollector
from synapse_tui.agents.delivery.deliverer import Admission, Settlement, Unsent
from synapse_tui.agents.delivery.typist import Typed, TypingResult, Typist
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import (
    AgentState,
    DeliveryState,
    MessageRequest,
    Reply,
    Sender,
    StateReport,
    Task,
    TaskState,
)
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.service import TaskService
from synapse_tui.messages.tasks import TaskStore
from tests.unit.delivery_fakes import FakeAgent, make_profile

PEER = Sender("synapse-claude-8100", "claude", "http://127.0.0.1:8100", verified=True)
AGENT = "synapse-fake-1"


class Rig:
    """What settles the messages of one agent, without the loop that types them."""

    def __init__(self) -> None:
        self.agent = FakeAgent()
        profile, keyboard = make_profile(), self.agent.keyboard
        self.tasks = TaskStore(AGENT, "ctx", EventBus())
        self.outbox = Outbox(self.tasks)
        self.turns = TurnTracker(self.tasks, self.agent.now)
        self.service = TaskService(self.tasks, self.outbox, AGENT, running=lambda: self.turns.running)
        typist = Typist(self.agent, keyboard, profile)
        admission = Admission(
            self.agent, keyboard, profile, tasks=self.tasks, outbox=self.outbox, turns=self.turns
        )
        self.settlement = Settlement(
            self.agent,
            keyboard,
            typist,
            admission,
            tasks=self.tasks,
            outbox=self.outbox,
            turns=self.turns,
        )

    def entered(self, text: str) -> Task:
        """A message on which Enter was pressed."""
        task = self.tasks.create(MessageRequest(text, PEER, response_expected=True))
        self.outbox.put(task)
        self.outbox.note_entered(task.id, entered=True)
        self.turns.prepare(AnswerCollector(text, lambda: [""]))
        return self.tasks.change(task.id, delivery=DeliveryState.SUBMITTING)


@pytest.mark.parametrize("outcome", Typed)
def test_one_that_was_answered_before_it_was_proved_was_submitted(outcome: Typed) -> None:
    rig = Rig()
    task = rig.entered("what is the time?")
    rig.service.reply(task.id, Reply("late"))
    result = TypingResult(outcome, "cannot be seen", entered=outcome is not Typed.REMOVED)
    rig.settlement.settle(Unsent(task.id, task.text, entered=True), result)
    assert rig.turns.running == task.id, "its turn goes on, and what waits comes after it"
    assert (rig.settlement.standing, rig.settlement.covered, len(rig.outbox)) == (None, None, 0)
    now = rig.tasks.get(task.id)
    assert (now.state, now.answer, now.replied) == (TaskState.COMPLETED, "late", True)
    rig.turns.on_report(StateReport(AgentState.PROCESSING, "fake", "", rig.agent.time))
    rig.turns.end(TaskState.COMPLETED)
    assert rig.tasks.get(task.id) == now, "the turn's text is no second answer"


@pytest.mark.parametrize(
    ("outcome", "entered", "delivery"),
    [
        (Typed.SUBMITTED, True, DeliveryState.SUBMITTED),
        (Typed.UNCERTAIN, True, DeliveryState.HELD),
        (Typed.REMOVED, True, DeliveryState.HELD),
        (Typed.REMOVED, False, DeliveryState.HELD),
        (Typed.LEFT, False, DeliveryState.HELD),
        (Typed.BLOCKED, True, DeliveryState.HELD),
        (Typed.EXITED, True, DeliveryState.HELD),
    ],
)
def test_one_that_nobody_has_answered(outcome: Typed, entered: bool, delivery: DeliveryState) -> None:
    rig = Rig()
    task = rig.entered("what is the time?")
    rig.settlement.settle(Unsent(task.id, task.text, entered), TypingResult(outcome, "why", entered))
    now = rig.tasks.get(task.id)
    assert now.delivery is delivery
    assert (task.id in rig.outbox) == (outcome is not Typed.SUBMITTED)
    uncertain = entered and outcome in (Typed.UNCERTAIN, Typed.REMOVED, Typed.EXITED)
    assert now.reason.startswith("uncertain") == uncertain
