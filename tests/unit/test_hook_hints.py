"""What hooks tell of a state: earlier than the screen, for some seconds, and never that an agent is ready."""

from __future__ import annotations

import pytest

from synapse_tui.agents.state import ASKS, HOOKED, WORKS
from synapse_tui.hooks import HookKind
from tests.unit.agent_screens import CLAUDE_DIALOG, Screen, claude, osc

READY, WORKING, WAITING = "READY", "PROCESSING", "WAITING"
PROMPT, PRE, POST, ASKED = HookKind.PROMPT, HookKind.PRE, HookKind.POST, HookKind.ASKED
ENDS = [HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END]


class Agent:
    """Claude Code, ready, whose hooks and screen the test works."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def hook(self, kind: HookKind, call: str = "") -> None:
        self.screen.detector.hooked(kind, call, self.screen.now)
        self.screen.detector.update(self.screen.terminal, self.screen.now)

    def works(self) -> None:
        self.screen.feed(osc("0;⠂ x"))

    def rests(self) -> None:
        self.screen.show(*claude())
        self.screen.feed(osc("0;✳ x"))

    def after(self, seconds: float) -> str:
        self.screen.wait(seconds)
        return self.screen.state

    @property
    def state(self) -> str:
        return self.screen.state

    @property
    def by_hook(self) -> bool:
        return self.screen.rule == HOOKED


@pytest.fixture
def agent() -> Agent:
    agent = Agent(Screen("claude"))
    agent.rests()
    assert agent.after(1) == READY
    return agent


def test_a_prompt_is_work_until_the_screen_decides(agent: Agent) -> None:
    agent.hook(PROMPT)
    assert (agent.state, agent.by_hook) == (WORKING, True)
    agent.works()
    assert (agent.state, agent.by_hook) == (WORKING, False)
    agent.rests()
    assert agent.after(0.3) == READY


@pytest.mark.parametrize(("kind", "state", "seconds"), [(PROMPT, WORKING, WORKS), (ASKED, WAITING, ASKS)])
def test_what_the_screen_never_shows_is_forgotten(
    agent: Agent, kind: HookKind, state: str, seconds: float
) -> None:
    agent.hook(kind)
    assert agent.after(seconds - 0.1) == state
    assert agent.after(0.5) == READY


def test_tools_of_a_turn_keep_it_working_and_those_of_background_work_do_not(agent: Agent) -> None:
    agent.hook(PRE, "background")
    assert agent.state == READY
    agent.hook(PROMPT)
    agent.screen.wait(WORKS - 0.5)
    agent.hook(PRE, "a")
    assert agent.after(WORKS - 0.5) == WORKING


@pytest.mark.parametrize("kind", ENDS)
def test_the_end_of_a_turn_only_lets_the_screen_decide(agent: Agent, kind: HookKind) -> None:
    agent.hook(PROMPT)
    agent.hook(kind)
    assert agent.after(0.3) == READY
    agent.works()
    agent.hook(kind)
    assert agent.after(30) == WORKING, "a hook alone never makes it ready"


def test_a_dialog_is_there_before_it_is_drawn_and_ends_with_the_screen(agent: Agent) -> None:
    agent.hook(ASKED, "a")
    assert (agent.state, agent.by_hook) == (WAITING, True)
    agent.works()
    assert agent.state == WAITING
    agent.screen.show(CLAUDE_DIALOG)
    assert (agent.state, agent.by_hook) == (WAITING, False)
    agent.rests()
    assert agent.after(0.5) == READY


@pytest.mark.parametrize(
    ("kind", "call"),
    [(POST, "b"), (POST, ""), (PROMPT, ""), (HookKind.IDLE, ""), (PRE, "a"), (HookKind.START, "")],
)
def test_what_takes_no_announced_dialog_back(agent: Agent, kind: HookKind, call: str) -> None:
    agent.hook(ASKED, "a")
    agent.hook(kind, call)
    assert agent.after(0.3) == WAITING


@pytest.mark.parametrize(
    ("kind", "call"),
    [(POST, "a"), (HookKind.FAILED, "a"), (HookKind.INTERRUPTED, ""), (HookKind.END, "")],
)
def test_the_end_of_that_very_tool_or_of_the_turn_takes_the_dialog_back(
    agent: Agent, kind: HookKind, call: str
) -> None:
    agent.hook(ASKED, "a")
    agent.hook(kind, call)
    assert agent.after(0.3) == READY


def test_what_hooks_tell_makes_no_agent_ready_or_working_that_starts() -> None:
    agent = Agent(Screen("claude", age=0.0))
    agent.screen.show(["Welcome"])
    for kind in (HookKind.START, PROMPT, HookKind.IDLE):
        agent.hook(kind)
        assert agent.state == "STARTING"
    agent.hook(ASKED)
    assert agent.state == WAITING
