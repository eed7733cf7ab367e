"""When a message may be typed."""

import pytest

from synapse_tui.agents.delivery.gate import why_held
from synapse_tui.agents.keyboard import QUIET_BLIND
from synapse_tui.model import AgentState
from tests.unit.delivery_fakes import FakeAgent, make_profile


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


def reason(agent: FakeAgent, **profile: object) -> str:
    hold = why_held(agent, agent.keyboard, make_profile(**profile))
    return hold.reason if hold is not None else ""


def test_ready_quiet_and_empty_is_open(agent):
    assert reason(agent) == ""


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (AgentState.STARTING, "starting"),
        (AgentState.PROCESSING, "working"),
        (AgentState.WAITING, "permission dialog open"),
        (AgentState.UNKNOWN, "state unknown"),
        (AgentState.EXITED, "agent exited"),
    ],
)
def test_every_other_state_holds(agent, state, words):
    agent.set_state(state)
    assert reason(agent) == words


def test_a_dialog_on_the_screen_holds_whatever_the_state(agent):
    agent.dialog = True
    assert reason(agent) == "permission dialog open"


def test_a_composer_that_is_not_there_holds(agent):
    agent.visible = False
    assert reason(agent) == "composer not visible"


def test_a_draft_holds(agent):
    agent.draft = "half a line"
    assert reason(agent) == "you have a draft"


def test_a_blank_is_a_draft_too(agent):
    agent.draft = " "
    assert reason(agent) == "you have a draft"


def test_typing_holds_for_a_moment(agent):
    agent.keyboard.press(b"a")
    hold = why_held(agent, agent.keyboard, make_profile())
    assert hold is not None
    assert hold.reason == "typing"
    assert hold.seconds == pytest.approx(QUIET_BLIND)
    agent.time += QUIET_BLIND
    assert reason(agent) == ""


def test_keys_that_are_held_back_hold(agent):
    agent.keyboard.hold()
    assert reason(agent) == "typing"


def test_after_an_error_the_composer_decides(agent):
    agent.set_state(AgentState.ERROR)
    assert reason(agent) == ""
    agent.visible = False
    assert reason(agent) == "agent shows an error"


def test_without_a_known_composer_keys_are_counted(agent):
    agent.keyboard.press(b"half a line")
    agent.time += 60
    assert reason(agent, composer=None) == "you have a draft"
    agent.keyboard.press(b"\r")
    agent.time += 60
    assert reason(agent, composer=None) == ""


def test_an_ended_agent_holds(agent):
    agent.alive = False
    assert reason(agent) == "agent exited"
