"""Stopping turns."""

import re

import pytest

from synapse_tui.agents.composer import Proof
from synapse_tui.agents.delivery.interrupt import Interrupter
from synapse_tui.agents.keyboard import APART
from synapse_tui.agents.profiles.profile import Interrupt
from synapse_tui.core.model import AgentState
from tests.unit.delivery_fakes import FakeAgent, make_profile

ESC = b"\x1b"


@pytest.fixture
def agent() -> FakeAgent:
    return FakeAgent()


def stops_by(agent: FakeAgent, *keys: bytes, delay: float = 0.1) -> None:
    """Let the agent's turn stop when these keys have arrived."""
    pressed: list[bytes] = []

    def press(key: bytes) -> None:
        pressed.append(key)
        if agent.asks:
            agent.denied += 1
            agent.close_dialog()
        elif tuple(pressed[-len(keys) :]) == keys:
            agent.after(delay, lambda: agent.set_state(AgentState.READY))

    for key in set(keys):
        agent.keys[key] = lambda key=key: press(key)  # type: ignore[misc]


def interrupter(agent: FakeAgent, **fields: object) -> Interrupter:
    return Interrupter(agent, agent.keyboard, make_profile(interrupt=Interrupt(**fields)))  # type: ignore[arg-type]


async def test_one_escape_stops_the_turn(agent):
    agent.set_state(AgentState.PROCESSING)
    stops_by(agent, ESC)
    outcome = await interrupter(agent).run()
    assert (outcome.stopped, outcome.alive, outcome.reason) == (True, True, "")
    assert outcome.seconds < 2
    assert agent.received == [ESC]


async def test_the_second_key_waits_until_the_first_was_read(agent):
    agent.set_state(AgentState.PROCESSING)
    stops_by(agent, ESC, ESC)
    agent.reads_at = agent.now() + 1.0
    begun = agent.now()
    assert (await interrupter(agent, keys=(ESC, ESC), gap=0.25).run()).stopped
    assert agent.received == [ESC, ESC]
    assert agent.now() - begun == pytest.approx(1.0 + 0.25 + 0.1, abs=0.05)


async def test_an_agent_that_does_not_read_is_given_the_second_key_all_the_same(agent):
    agent.set_state(AgentState.PROCESSING)
    agent.reads_at = agent.now() + 1000
    outcome = await interrupter(agent, keys=(ESC, ESC), timeout=2.0, again=False).run()
    assert not outcome.stopped
    assert agent.received == [ESC, ESC]


async def test_a_key_of_the_user_is_no_part_of_the_escape(agent):
    agent.set_state(AgentState.PROCESSING)
    stops_by(agent, ESC)
    agent.keyboard.press(b"x")
    agent.after(0.1, lambda: agent.keyboard.press(b"y"))
    agent.after(APART + 0.05, lambda: agent.keyboard.press(b"z"))
    begun = agent.now()
    assert (await interrupter(agent).run()).stopped
    assert agent.now() - begun == pytest.approx(2 * APART)
    while agent.keyboard.holding:
        await agent.changed(1)
    assert agent.received == [b"x", ESC, b"y", b"z"]


async def test_keys_that_waited_before_an_interrupt_wait_on(agent):
    agent.set_state(AgentState.PROCESSING)
    stops_by(agent, ESC)
    agent.keyboard.hold()
    agent.keyboard.press(b"x")
    assert (await interrupter(agent).run()).stopped
    assert agent.received == [ESC]
    assert agent.keyboard.holding


async def test_a_turn_that_ends_by_itself_is_not_interrupted(agent):
    agent.set_state(AgentState.PROCESSING)
    agent.keyboard.press(b"x")
    agent.after(0.1, lambda: agent.set_state(AgentState.READY))
    assert (await interrupter(agent).run()).stopped
    assert agent.received == [b"x"]


async def test_no_second_key_when_the_first_has_stopped_it(agent):
    agent.set_state(AgentState.PROCESSING)
    stops_by(agent, ESC)
    assert (await interrupter(agent, keys=(ESC, ESC), gap=0.25).run()).stopped
    assert agent.received == [ESC]


@pytest.mark.parametrize("fields", [{"keys": (b"\x03",)}, {"keys": (), "signal": 2}])
@pytest.mark.parametrize("state", [AgentState.UNKNOWN, AgentState.STARTING])
async def test_no_deadly_interrupt_unless_it_works(agent, fields, state):
    agent.set_state(state)
    outcome = await interrupter(agent, **fields).run()
    assert not outcome.stopped
    assert outcome.reason
    assert agent.received == []
    assert agent.signals == []


async def test_a_signal_where_the_profile_says_so(agent):
    agent.set_state(AgentState.PROCESSING)
    agent.after(0.2, lambda: agent.set_state(AgentState.READY))
    assert (await interrupter(agent, keys=(), signal=2).run()).stopped
    assert agent.signals == [2]


async def test_a_dialog_is_denied_never_approved(agent):
    agent.open_dialog()
    outcome = await interrupter(agent).run()
    assert outcome.stopped
    assert (agent.denied, agent.approved) == (1, False)
    assert b"\r" not in agent.received


async def test_a_turn_that_goes_on_after_the_dialog_is_stopped_too(agent):
    agent.open_dialog()

    def deny() -> None:
        agent.keys.clear()
        agent.asks = False
        agent.set_state(AgentState.PROCESSING)
        stops_by(agent, ESC)

    agent.keys[ESC] = deny
    assert (await interrupter(agent).run()).stopped
    assert agent.received == [ESC, ESC]


@pytest.mark.parametrize(
    "fields",
    [{}, {"stopped": frozenset({AgentState.READY, AgentState.WAITING})}, {"screen": re.compile("")}],
)
async def test_the_second_key_that_denies_is_no_part_of_the_first(agent, fields):
    agent.open_dialog()
    times: list[float] = []
    agent.keys[ESC] = lambda: times.append(agent.now())

    def confirm() -> None:
        times.append(agent.now())
        agent.close_dialog()

    agent.keys[b"\r"] = confirm
    profile = make_profile(interrupt=Interrupt(gap=0.25, **fields), deny=(ESC, b"\r"))
    assert (await Interrupter(agent, agent.keyboard, profile).run()).stopped
    assert agent.received == [ESC, b"\r"]
    assert times[1] - times[0] == pytest.approx(0.25, abs=0.05)


async def test_a_dialog_that_stays_is_told(agent):
    agent.open_dialog()
    agent.keys[ESC] = lambda: None
    outcome = await interrupter(agent).run()
    assert not outcome.stopped
    assert "dialog" in outcome.reason


async def test_a_turn_that_does_not_stop_is_told(agent):
    agent.set_state(AgentState.PROCESSING)
    agent.keys[ESC] = lambda: None
    outcome = await interrupter(agent).run()
    assert (outcome.stopped, outcome.alive) == (False, True)
    assert agent.received == [ESC, ESC]


async def test_a_draft_of_the_user_stays(agent):
    agent.set_state(AgentState.PROCESSING)
    agent.draft = "half a line of mine"
    stops_by(agent, ESC)
    assert (await interrupter(agent, gap=0.2).run([Proof("the message that ran")])).stopped
    assert agent.draft == "half a line of mine"
    assert agent.received == [ESC]


async def test_an_idle_agent_gets_no_key(agent):
    outcome = await interrupter(agent, keys=(b"\x03",)).run()
    assert outcome.stopped
    assert agent.received == []
