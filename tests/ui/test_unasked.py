"""Dialogs that nobody asked for take no key that was meant for an agent, and no letter as consent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from textual.pilot import Pilot

from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState
from synapse_tui.hooks.install import Consent
from synapse_tui.messages.reasons import Reason
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.palette import Palette
from synapse_tui.ui.screens.questions import HookQuestion, NotStarted, RestoreOffer, RestoreQuestion
from tests.ui.app_kit import StoppedClock, at_main, at_rest, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost, FakeSession

CLAUDE, GEMINI = "synapse-claude-8100", "synapse-gemini-8111"


def asking() -> FakeHost:
    host = three_agents()
    host.safety.enabled = True
    host.safety.asks = {GEMINI}
    return host


async def test_keys_typed_as_a_question_opens_go_to_the_agent_in_order():
    host, clock = asking(), StoppedClock()
    async with running(host, clock=clock) as (app, pilot):
        agent = host.agents[CLAUDE]
        host.add(AgentSpec("gemini"))
        await until(lambda: "Let Gemini lock files?" in text_of(app))
        await pilot.press(*"yes, my dear", "enter", *"n")
        await until(lambda: bytes(agent.typed) == b"yes, my dear\rn")
        assert at_main(app)
        assert not host.safety.answers
        clock.go_on()
        await until(lambda: isinstance(app.screen, HookQuestion))
        assert not host.safety.answers
        at_rest(app)
        await pilot.press("tab", "y")
        await until(lambda: host.safety.answers == [(GEMINI, Consent.YES)])
        assert bytes(agent.typed) == b"yes, my dear\rn"


async def test_no_question_opens_while_somebody_types():
    host, clock = asking(), StoppedClock()
    async with running(host, clock=clock) as (app, pilot):
        await pilot.press("a")
        host.add(AgentSpec("gemini"))
        await until(lambda: app.main.find(GEMINI))
        await pilot.press(*"bc")
        assert at_main(app)
        assert bytes(host.agents[CLAUDE].typed) == b"abc"
        clock.go_on()
        await until(lambda: "Let Gemini lock files?" in text_of(app))


@pytest.mark.parametrize("key", ["a", "space"])
async def test_nothing_but_a_move_of_the_focus_is_taken_after_a_long_quiet(key):
    host = asking()
    async with running(host) as (app, pilot):
        host.add(AgentSpec("gemini"))
        await until(lambda: "Let Gemini lock files?" in text_of(app))
        at_rest(app)
        await pilot.press(key)
        await until(lambda: host.agents[CLAUDE].typed)
        assert not host.safety.answers


@pytest.mark.parametrize("key", ["y", "n", "enter"])
async def test_an_answer_without_the_focus_goes_nowhere_and_tab_is_named(key):
    host = asking()
    async with running(host) as (app, pilot):
        host.add(AgentSpec("gemini"))
        await until(lambda: "Let Gemini lock files?" in text_of(app))
        at_rest(app)
        await pilot.press(key)
        await until(lambda: "press Tab first" in text_of(app))
        assert not host.safety.answers
        assert not host.agents[CLAUDE].typed
        await pilot.press("tab", "y")
        await until(lambda: host.safety.answers == [(GEMINI, Consent.YES)])
        assert not host.agents[CLAUDE].typed


async def test_a_key_that_could_answer_an_agent_below_goes_nowhere_and_that_is_said():
    host = asking()
    async with running(host) as (app, pilot):
        host.agents[CLAUDE].become(AgentState.WAITING)
        await until(lambda: [each.state for each in app.main.agents][:1] == [AgentState.WAITING])
        host.add(AgentSpec("gemini"))
        await until(lambda: "Let Gemini lock files?" in text_of(app))
        at_rest(app)
        await pilot.press("1")
        await until(lambda: "Tab moves into this question" in text_of(app))
        assert not host.safety.answers
        assert not host.agents[CLAUDE].typed
        await pilot.press("tab", "n")
        await until(lambda: host.safety.answers == [(GEMINI, Consent.LATER)])


async def test_a_question_waits_until_the_persons_own_dialog_is_closed():
    host = asking()
    async with running(host) as (app, pilot):
        app.perform("palette")
        await until(lambda: isinstance(app.screen, Palette))
        host.add(AgentSpec("gemini"))
        await until(lambda: app.main.find(GEMINI))
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, HookQuestion))


def offering(host: FakeHost, *others: str) -> RestoreOffer:
    async def open_them(_sizes: object) -> list[NotStarted]:
        for profile in ("claude", *others):
            host.add(AgentSpec(profile))
        return []

    async def waiting() -> int:
        return 0

    saved_at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    return RestoreOffer(["claude  /work"], saved_at, True, {}, open_them, lambda: None, waiting, list)


async def restored(app: SynapseApp, pilot: Pilot[None]) -> FakeSession:
    """The agent, once the person has answered the question and its pane is there."""
    await until(lambda: isinstance(app.screen, RestoreQuestion))
    assert not app.host.agents
    at_rest(app)
    await pilot.press("tab", "enter")
    await until(lambda: app.main.active_pane is not None and at_main(app))
    await pilot.pause()
    session = app.host.agents[CLAUDE]
    assert isinstance(session, FakeSession)
    return session


async def test_what_is_typed_at_the_start_is_given_to_the_agent_once_it_is_ready():
    host = FakeHost()
    clock = StoppedClock()
    async with running(host, restore=offering(host), clock=clock) as (app, pilot):
        await pilot.press(*"@dummy-8248 to original", "enter")
        assert "a question is waiting" in text_of(app)
        clock.go_on()
        claude = await restored(app, pilot)
        await pilot.press(*"more")
        await pilot.pause(0.3)
        assert not claude.typed, "it has not set up its terminal"
        claude.become(AgentState.READY)
        await until(lambda: bytes(claude.typed) == b"@dummy-8248 to original\rmore")


async def test_a_dialog_of_the_agent_takes_what_is_typed_now_and_nothing_from_before():
    host = FakeHost()
    clock = StoppedClock()
    async with running(host, restore=offering(host), clock=clock) as (app, pilot):
        await pilot.press(*"early")
        clock.go_on()
        claude = await restored(app, pilot)
        claude.become(AgentState.WAITING)
        await pilot.press("1")
        await until(lambda: bytes(claude.typed) == b"1")
        claude.become(AgentState.READY)
        await until(lambda: bytes(claude.typed) == b"1early")


async def test_keys_from_before_are_dropped_with_a_word_when_the_agent_does_not_get_ready():
    host = FakeHost()
    clock = StoppedClock()
    async with running(host, restore=offering(host), clock=clock) as (app, pilot):
        await pilot.press(*"early")
        clock.go_on()
        claude = await restored(app, pilot)
        rested = app.questions.clock
        app.questions.clock = lambda: rested() + 61
        await until(lambda: "5 keys dropped: typed before" in text_of(app))
        await pilot.press("x")
        await until(lambda: bytes(claude.typed) == b"x")


async def test_a_word_that_begins_with_a_letter_of_the_question_is_for_the_agent():
    host = asking()
    async with running(host, clock=StoppedClock()) as (app, pilot):
        host.add(AgentSpec("gemini"))
        await until(lambda: "Let Gemini lock files?" in text_of(app))
        at_rest(app)
        await pilot.press(*"yes")
        await until(lambda: bytes(host.agents[CLAUDE].typed) == b"yes")
        assert not host.safety.answers


async def test_a_message_typed_at_the_start_is_sent_as_one():
    host = FakeHost()
    clock = StoppedClock()
    async with running(host, restore=offering(host, "codex"), clock=clock) as (app, pilot):
        await pilot.press(*"early", "enter", *"@codex hello", "enter")
        clock.go_on()
        claude = await restored(app, pilot)
        claude.composer = True
        claude.become(AgentState.READY)
        await until(lambda: any(call[0] == "send" for call in host.calls))
        assert [call[2] for call in host.calls if call[0] == "send"] == ["hello"]
        assert bytes(claude.typed) == b"early\r"


@pytest.mark.parametrize("early", [True, False], ids=["before the application opens", "while it is open"])
async def test_messages_to_a_program_without_a_profile_are_allowed_once(early: bool):
    host = three_agents()

    async def send() -> None:
        (receipt,) = await host.send("claude", "run the tests", sender=GEMINI)
        host.change(receipt.task_id, delivery=DeliveryState.HELD, reason=f"{Reason.NO_PROFILE}: no profile")

    if early:
        await send()
    async with running(host) as (app, pilot):
        if not early:
            await send()
        await until(lambda: "Type messages into claude?" in text_of(app))
        at_rest(app)
        await pilot.press("tab", "y")
        await until(lambda: host.agents[CLAUDE].control.allowed)
        await until(lambda: at_main(app))
        await send()
        await pilot.pause()
        assert at_main(app), "asked once"


@pytest.mark.parametrize("end", ["allowed elsewhere", "canceled", "agent closed"])
async def test_a_question_that_is_no_longer_needed_closes(end: str):
    host = three_agents()
    async with running(host) as (app, pilot):
        for _ in range(2):
            (receipt,) = await host.send("claude", "run the tests", sender=GEMINI)
            host.change(
                receipt.task_id, delivery=DeliveryState.HELD, reason=f"{Reason.NO_PROFILE}: no profile"
            )
            await until(lambda: "Type messages into claude?" in text_of(app))
            if end == "agent closed":
                await host.close(CLAUDE)
                await until(lambda: at_main(app))
                break
            delivery = DeliveryState.QUEUED if end == "allowed elsewhere" else DeliveryState.CANCELED
            host.change(receipt.task_id, delivery=delivery, reason="")
            await until(lambda: at_main(app))
        assert not host.agents.get(CLAUDE) or not host.agents[CLAUDE].control.allowed
        await pilot.pause()
