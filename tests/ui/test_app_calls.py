"""What calls for a person in the bars: by name, with what it asks for, and with the key that leads there."""

from datetime import timedelta

import pytest

from synapse_tui.events import TaskChanged
from synapse_tui.model import AgentState, DeliveryState
from tests.ui.app_kit import LEADER, running, text_of, three_agents, until
from tests.ui.fakes import NOW, FakeHost

CLAUDE, CODEX, GEMINI = "synapse-claude-8100", "synapse-codex-8120", "synapse-gemini-8110"
ASKS = "permission: Bash command · rm -rf build · Do you want to proceed?"
SIZES = [(80, 24), (120, 40), (200, 60)]


def bottom(app: object) -> str:
    return text_of(app).splitlines()[-1]  # type: ignore[arg-type]


def hold(host: FakeHost, agent_id: str, *, minutes: float, reason: str = "half-written draft") -> None:
    task = host.message(agent_id, "hello", delivery=DeliveryState.HELD, reason=reason, minutes=minutes)
    host.events.publish(TaskChanged(task))


@pytest.mark.parametrize("size", SIZES)
async def test_the_bottom_bar_names_who_asks_for_what_and_the_key(size):
    host = three_agents()
    async with running(host, size) as (app, pilot):
        host.agents[GEMINI].become(AgentState.WAITING, ASKS)
        await until(lambda: "▲ alice: rm -rf build " in bottom(app))
        assert bottom(app).rstrip().endswith("^] a")
        await pilot.press(LEADER, "a")
        await until(lambda: app.main.active == GEMINI)
        assert "alice: rm" not in bottom(app), "its dialog is on the screen"


@pytest.mark.parametrize("size", SIZES)
async def test_a_tab_counts_the_messages_that_are_held(size):
    host = three_agents()
    async with running(host, size) as (app, _pilot):
        host.agents[CODEX].become(AgentState.READY)
        hold(host, CODEX, minutes=0.1)
        await until(lambda: "codex ● ║1" in text_of(app).splitlines()[0])
        assert "held" not in bottom(app)
        hold(host, CODEX, minutes=0.1)
        await until(lambda: "codex ● ║2" in text_of(app).splitlines()[0])


async def test_a_message_that_is_held_for_more_than_two_minutes_is_named_with_the_key():
    host = three_agents()
    async with running(host) as (app, pilot):
        hold(host, GEMINI, minutes=1.9)
        await until(lambda: "║1" in text_of(app).splitlines()[0])
        assert "held" not in bottom(app)
        app.main.now = lambda: NOW + timedelta(minutes=1)
        app.main.show_agents()
        await until(lambda: "║ alice: held 2m, half-written draft" in bottom(app))
        assert bottom(app).rstrip().endswith("^] a")
        await pilot.press(LEADER, "a")
        await until(lambda: app.main.active == GEMINI)
        assert "║ alice: held 2m" in bottom(app), "it is not at rest by being looked at"
        assert bottom(app).rstrip().endswith("F6")


async def test_what_the_person_holds_does_not_call():
    host = three_agents()
    async with running(host) as (app, _pilot):
        hold(host, GEMINI, minutes=30, reason="held by you")
        await until(lambda: "║1" in text_of(app).splitlines()[0])
        assert "held" not in bottom(app)
