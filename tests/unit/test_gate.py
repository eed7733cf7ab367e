"""When a message may be typed."""

from __future__ import annotations

import asyncio

import pytest

from synapse_tui.agents import console
from synapse_tui.agents.console import TerminalActivity
from synapse_tui.agents.delivery.deliverer import Admission, Busy
from synapse_tui.agents.delivery.gate import Hold, why_held
from synapse_tui.agents.delivery.typist import BUSY, FETCHES, TAKES, Pace
from synapse_tui.agents.keyboard import QUIET_BLIND
from synapse_tui.agents.profiles.profile import Submit
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import AgentState
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.tasks import TaskStore
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
    agent.asks = True
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
    assert hold.reason == "you are typing"
    assert hold.seconds == pytest.approx(QUIET_BLIND)
    agent.time += QUIET_BLIND
    assert reason(agent) == ""


@pytest.mark.parametrize("key", [b"\x1b", b"\x1b[D", b"\r"])
def test_a_key_that_is_no_text_holds_for_a_moment_and_is_not_called_typing(agent, key):
    agent.keyboard.press(key)
    hold = why_held(agent, agent.keyboard, make_profile())
    assert hold is not None
    assert hold.reason == "a key was just pressed"
    agent.time += QUIET_BLIND
    assert reason(agent) == ""


def test_keys_that_are_held_back_hold(agent):
    agent.keyboard.hold()
    assert reason(agent) == "something else is typed first"
    agent.keyboard.press(b"x")
    assert reason(agent) == "you are typing"


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


# -- When the next message is typed after the user's own prompt, for agents that drop one that  ---


BEGIN = 3.0


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
    assert gate.why_not(None) == Hold(Reason.WORKING, BEGIN - 1)
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
    assert gate.why_not(None) == Hold(Reason.WORKING, BEGIN)
    agent.set_state(AgentState.PROCESSING)
    gate.look()
    agent.set_state(AgentState.READY)
    assert gate.why_not(None) is None


def test_other_agents_take_a_message_at_once(agent: FakeAgent) -> None:
    gate = admission(agent, begin=0)
    gate.prompted()
    assert gate.why_not(None) is None


# -- How fast an agent takes its user's keys ---


async def taken(agent: FakeAgent, *sent: bytes) -> float:
    """Seconds until the agent has taken these keys."""
    pace, followed = Pace(agent), asyncio.Event()
    for data in sent:
        pace.sent(data)
    begun = agent.now()
    pace.taken(followed.set)
    await followed.wait()
    return agent.now() - begun


async def test_nothing_follows_once_an_agent_was_stopped(agent):
    pace, followed = Pace(agent), asyncio.Event()
    agent.busy_until = agent.now() + 60
    pace.taken(followed.set)
    await asyncio.sleep(0)
    await pace.stop()
    assert not followed.is_set()
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "pace"] == []


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


# -- For how long a program has done nothing ---


class Machine:
    """A program and a clock, on a machine on which looking may take long.

    Attributes:
        now: The time.
        used: Nanoseconds of processor time that the program has used.
        runs: Whether it runs.
        looks_take: Seconds from the beginning of a look to the reading of the processor time.
    """

    def __init__(self) -> None:
        self.now = 10.0
        self.used = 0
        self.runs = False
        self.looks_take = 0.0

    def clock(self) -> float:
        return self.now

    def state(self, _pid: int) -> bytes:
        return b"R" if self.runs else b"S"

    def processor_time(self, _pid: int) -> int:
        self.now += self.looks_take
        return self.used


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(console, "_state", machine.state)
    monkeypatch.setattr(console, "_processor_time", machine.processor_time)
    monkeypatch.setattr(console, "readers_of", lambda _leader: (1,))
    return machine


@pytest.fixture
async def activity(machine: Machine) -> TerminalActivity:
    activity = TerminalActivity(1, machine.clock)
    await activity.refresh()
    return activity


async def test_a_rest_is_counted_from_the_first_look_that_saw_it(machine, activity):
    assert activity.rested() == 0
    machine.now += 0.03
    assert activity.rested() == pytest.approx(0.03)
    machine.used += 1
    assert activity.rested() == 0
    machine.now += 0.02
    assert activity.rested() == pytest.approx(0.02)


async def test_a_program_that_runs_does_not_rest(machine, activity):
    activity.rested()
    machine.now += 0.03
    machine.runs = True
    assert activity.rested() == 0


async def test_a_little_processor_time_may_count_as_nothing(machine, activity):
    activity.rested()
    machine.now += 0.03
    machine.used += 500_000
    assert activity.rested(0.001) == pytest.approx(0.03)
    assert activity.rested() == 0


async def test_what_a_program_does_during_a_look_is_no_rest_before_it(machine, activity):
    machine.looks_take = 0.035  # the program ran just before its time was read
    activity.rested()
    machine.looks_take = 0.0
    machine.now += 0.01
    assert activity.rested() == pytest.approx(0.01)


async def test_a_look_that_takes_long_does_not_add_to_the_rest(machine, activity):
    activity.rested()
    machine.now += 0.02
    machine.looks_take = 0.05
    assert activity.rested() == pytest.approx(0.02)


async def test_what_messages_wait_for_is_looked_at_again_when_keys_were_sent():
    woken: list[bool] = []
    busy = Busy(lambda: woken.append(True))
    async with busy:
        assert not woken
    assert woken
