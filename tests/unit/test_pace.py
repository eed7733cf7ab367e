"""How fast an agent takes its user's keys."""

import asyncio

import pytest

from synapse_tui.agents.delivery.typist import BUSY, FETCHES, TAKES, Pace
from tests.unit.delivery_fakes import FakeAgent


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


async def taken(agent: FakeAgent, *sent: bytes) -> float:
    """Seconds until the agent has taken these keys."""
    pace, followed = Pace(agent), asyncio.Event()
    for data in sent:
        pace.sent(data)
    begun = agent.now()
    pace.taken(followed.set)
    await followed.wait()
    return agent.now() - begun


async def test_an_agent_at_rest_has_taken_text_at_once(agent):
    agent.draft = "text"
    assert await taken(agent, b"t") == 0


async def test_an_agent_that_does_something_is_waited_for(agent):
    agent.busy_until = agent.now() + 60
    assert await taken(agent, b"t") == pytest.approx(TAKES)


async def test_an_enter_is_taken_when_the_composer_is_empty(agent):
    agent.draft = "a prompt"
    agent.after(0.5, lambda: setattr(agent, "draft", ""))
    assert await taken(agent, b"\r") == pytest.approx(0.5)


async def test_an_enter_without_effect_is_not_waited_for_long(agent):
    agent.draft = "a prompt"
    assert await taken(agent, b"\r") == pytest.approx(FETCHES)


async def test_an_enter_that_a_busy_agent_takes_late_is_waited_for(agent):
    agent.draft, agent.never_rests = "a prompt", True
    agent.after(5, lambda: setattr(agent, "draft", ""))
    assert await taken(agent, b"\r") == pytest.approx(5)


async def test_an_agent_that_never_takes_enter_is_not_waited_for_for_ever(agent):
    agent.draft, agent.never_rests = "a prompt", True
    assert await taken(agent, b"\r") == pytest.approx(BUSY, abs=1)


async def test_text_that_is_shown_only_after_enter_is_waited_for_too(agent):
    agent.busy_until = agent.now() + 0.3
    agent.after(0.2, lambda: setattr(agent, "draft", "a prompt"))
    agent.after(0.9, lambda: setattr(agent, "draft", ""))
    assert await taken(agent, b"\r") == pytest.approx(0.9)


async def test_enter_in_a_dialog_empties_no_composer(agent):
    agent.draft = "a prompt"
    agent.open_dialog()
    assert await taken(agent, b"\r") == 0


async def test_what_follows_enter_is_no_enter(agent):
    agent.draft = "a prompt"
    assert await taken(agent, b"\r", b"x") == 0
