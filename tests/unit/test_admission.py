"""When the next message is typed after the user's own prompt, for agents that drop one that comes early."""

from __future__ import annotations

import pytest

from synapse_tui.agents.delivery.deliverer import WORKING, Admission
from synapse_tui.agents.delivery.gate import Hold
from synapse_tui.agents.profiles.profile import Submit
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.events import EventBus
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.model import AgentState
from tests.unit.delivery_fakes import FakeAgent, make_profile

BEGIN = 3.0


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


def admission(agent: FakeAgent, begin: float = BEGIN) -> Admission:
    profile, keyboard = make_profile(submit=Submit(begin=begin)), agent.keyboard
    book = TaskStore("synapse-fake-1", "ctx", EventBus())
    outbox = Outbox(book)
    turns = TurnTracker(book, agent.now)
    return Admission(agent, keyboard, profile, tasks=book, outbox=outbox, turns=turns)


def test_a_message_waits_until_the_turn_of_the_users_prompt_has_begun(agent: FakeAgent) -> None:
    gate = admission(agent)
    assert gate.why_not(None) is None
    gate.prompted()
    agent.time += 1
    assert gate.why_not(None) == Hold(WORKING, BEGIN - 1)
    agent.set_state(AgentState.PROCESSING)
    gate.look()
    agent.time += 0.2
    agent.set_state(AgentState.READY)
    assert gate.why_not(None) is None


def test_a_prompt_that_begins_no_turn_holds_no_message_for_long(agent: FakeAgent) -> None:
    gate = admission(agent)
    gate.prompted()
    agent.time += BEGIN
    assert gate.why_not(None) is None


def test_a_prompt_in_the_agents_own_queue_begins_its_turn_after_the_one_that_runs(agent: FakeAgent) -> None:
    agent.set_state(AgentState.PROCESSING)
    gate = admission(agent)
    agent.time += 1
    gate.prompted()
    gate.look()
    agent.time += 2 * BEGIN
    agent.set_state(AgentState.READY)
    assert gate.why_not(None) == Hold(WORKING, BEGIN)
    agent.set_state(AgentState.PROCESSING)
    gate.look()
    agent.set_state(AgentState.READY)
    assert gate.why_not(None) is None


def test_other_agents_take_a_message_at_once(agent: FakeAgent) -> None:
    gate = admission(agent, begin=0)
    gate.prompted()
    assert gate.why_not(None) is None
