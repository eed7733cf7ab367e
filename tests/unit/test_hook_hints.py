"""What hooks tell of a state: earlier than the screen, for some seconds, and never that an agent is ready."""

from __future__ import annotations

import pytest

from synapse_tui.agents.state.hook_hints import ASKS, HOOKED, WORKS
from synapse_tui.hooks import HookKind
from tests.unit.agent_screens import CLAUDE_DIALOG, Screen, claude, osc

READY, WORKING, WAITING = "READY", "PROCESSING", "WAITING"


def ready() -> Screen:
    screen = Screen("claude")
    screen.show(*claude())
    screen.feed(osc("0;✳ x"))
    screen.wait(1)
    assert screen.state == READY
    return screen


def hook(screen: Screen, kind: HookKind, call: str = "") -> None:
    screen.detector.hooked(kind, call, screen.now)
    screen.detector.update(screen.terminal, screen.now)


def test_a_prompt_is_work_at_once() -> None:
    screen = ready()
    hook(screen, HookKind.PROMPT)
    assert (screen.state, screen.rule) == (WORKING, HOOKED)
    screen.feed(osc("0;⠂ x"))
    assert screen.state == WORKING
    assert screen.rule != HOOKED, "the screen says so itself now"
    screen.feed(osc("0;✳ x"))
    screen.wait(0.3)
    assert screen.state == READY, "and it alone decides from then on"


def test_a_prompt_whose_work_is_never_seen_is_forgotten() -> None:
    screen = ready()
    hook(screen, HookKind.PROMPT)
    screen.wait(WORKS - 0.1)
    assert screen.state == WORKING
    screen.wait(0.5)
    assert screen.state == READY


def test_tools_of_a_turn_keep_it_working_and_those_of_background_work_do_not() -> None:
    screen = ready()
    hook(screen, HookKind.PRE, "background")
    assert screen.state == READY
    hook(screen, HookKind.PROMPT)
    screen.wait(WORKS - 0.5)
    hook(screen, HookKind.PRE, "a")
    screen.wait(WORKS - 0.5)
    assert screen.state == WORKING


@pytest.mark.parametrize("kind", [HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END])
def test_the_end_of_a_turn_only_lets_the_screen_decide(kind: HookKind) -> None:
    screen = ready()
    hook(screen, HookKind.PROMPT)
    hook(screen, kind)
    screen.wait(0.3)
    assert screen.state == READY
    screen.feed(osc("0;⠂ x"))
    hook(screen, kind)
    screen.wait(30)
    assert screen.state == WORKING, "a hook alone never makes it ready"


def test_a_dialog_is_there_before_it_is_drawn_and_ends_with_the_screen() -> None:
    screen = ready()
    hook(screen, HookKind.ASKED, "a")
    assert (screen.state, screen.rule) == (WAITING, HOOKED)
    screen.feed(osc("0;⠂ x"))
    assert screen.state == WAITING
    screen.show(CLAUDE_DIALOG)
    assert screen.state == WAITING
    assert screen.rule != HOOKED
    screen.show(*claude())
    screen.feed(osc("0;✳ x"))
    screen.wait(0.5)
    assert screen.state == READY


def test_a_dialog_that_never_comes_holds_for_some_seconds_only() -> None:
    screen = ready()
    hook(screen, HookKind.ASKED)
    screen.wait(ASKS - 0.1)
    assert screen.state == WAITING
    screen.wait(0.5)
    assert screen.state == READY


def test_only_the_end_of_that_very_tool_takes_the_dialog_back() -> None:
    screen = ready()
    hook(screen, HookKind.ASKED, "a")
    hook(screen, HookKind.POST, "b")
    hook(screen, HookKind.POST)
    assert screen.state == WAITING
    hook(screen, HookKind.POST, "a")
    screen.wait(0.3)
    assert screen.state == READY


def test_a_prompt_or_the_end_of_a_turn_takes_no_dialog_back_and_an_interrupt_does() -> None:
    screen = ready()
    hook(screen, HookKind.ASKED, "a")
    for kind in (HookKind.PROMPT, HookKind.IDLE, HookKind.PRE, HookKind.START):
        hook(screen, kind)
        assert screen.state == WAITING
    hook(screen, HookKind.INTERRUPTED)
    screen.wait(0.3)
    assert screen.state == READY


def test_what_hooks_tell_makes_no_agent_ready_or_working_that_starts() -> None:
    screen = Screen("claude", age=0.0)
    screen.show(["Welcome"])
    for kind in (HookKind.START, HookKind.PROMPT, HookKind.IDLE):
        hook(screen, kind)
        assert screen.state == "STARTING"
    hook(screen, HookKind.ASKED)
    assert screen.state == WAITING
