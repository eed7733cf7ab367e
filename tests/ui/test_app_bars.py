"""Tabs, titles and the status bar at every width: never too wide, never an error, nothing important lost."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from synapse_tui.core.events import TaskChanged
from synapse_tui.core.model import AgentState, DeliveryState, ExitStatus
from synapse_tui.ui.app import SynapseApp
from synapse_tui.widgets.bars import MIN_LABEL, MORE_LEFT, MORE_RIGHT, TabBar
from synapse_tui.widgets.fit import distinct, pad, shorten, width_of
from synapse_tui.widgets.text import last_words, one_line, printable, rewrapped
from synapse_tui.widgets.views import AgentView
from tests.ui.app_kit import LEADER, running, text_of, three_agents, until
from tests.ui.fakes import NOW, FakeHost

texts = st.text(st.characters(codec="utf-8"), max_size=60)
labels = st.text(st.sampled_from("abcXYZ-_.09日本語ａ"), min_size=1, max_size=20)
agents = st.builds(
    AgentView,
    agent_id=st.uuids().map(str),
    number=st.integers(1, 20),
    label=labels,
    agent_type=st.sampled_from(["claude", "codex", "unknown-type"]),
    state=st.sampled_from(AgentState),
    detail=texts.map(one_line),
    unseen=st.booleans(),
    rang=st.booleans(),
    title=texts.map(one_line),
    held=st.integers(0, 12),
    held_reason=texts.map(one_line),
    held_task=st.just("task"),
)


class StubApp:
    no_color = False
    animation_level = "none"


def bar(kind: Any, **values: object) -> Any:
    made = kind.__new__(type(f"Bare{kind.__name__}", (kind,), {"app": StubApp()}))
    kind.__init__(made)
    for name, value in values.items():
        made.set_reactive(getattr(kind, name), value)
    return made


@given(texts, st.integers(0, 80))
def test_shortened_text_fits(text, width):
    line = one_line(text)
    assert cell_len(shorten(line, width)) <= width
    assert cell_len(pad(line, width)) == width


@given(texts)
def test_one_line_has_no_controls(text):
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in one_line(text))
    assert not set("\u202a\u202e\u2066\u2069") & set(one_line(text) + printable(text))
    assert "\x1b" not in printable(text)


def test_words_that_the_agent_has_wrapped_are_whole_in_any_script():
    answer = "● 見ました\n\nメッセージが届きま\nした: **おは**\nよう hello\nworld"
    assert one_line(rewrapped(last_words(answer), 0)) == "メッセージが届きました: **おは** よう hello world"


@given(st.lists(agents, max_size=15), st.integers(10, 250), st.data())
def test_tabs_fit_and_the_active_one_is_there(views, width, data):
    active = data.draw(st.sampled_from(views)) if views else None
    left, right = bar(
        TabBar, agents=views, active=active.agent_id if active else "", project="project"
    ).pieces(width)

    assert width_of(left) + width_of(right) <= max(width, 30)
    if active is not None:
        assert any(piece.target == active.agent_id for piece in left)
    assert any(piece.target == "new" for piece in right)


@given(st.lists(agents, min_size=1, max_size=15), st.integers(30, 250), st.data())
def test_no_tab_lacks_a_name_for_which_columns_are_free(views, width, data):
    active = data.draw(st.sampled_from(views))
    tabs = bar(TabBar, agents=views, active=active.agent_id, project="project")
    left, right = tabs.pieces(width)

    free = width - width_of(left) - width_of(right)
    shortest = distinct(tuple(view.label for view in views), MIN_LABEL)
    targets = {piece.target for piece in left}
    named = {piece.target for piece in left if piece.text.strip() and piece.text == f" {piece.text.strip()} "}
    for view, name in zip(views, shortest, strict=True):
        if view.agent_id not in named and not {MORE_LEFT, MORE_RIGHT} & targets:
            assert free < cell_len(name) + 2


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (ExitStatus(code=0), "exited with status 0"),
        (ExitStatus(code=3), "exited with status 3"),
        (ExitStatus(signal=11), "killed by SIGSEGV"),
        (ExitStatus(signal=63), "killed by signal 63"),
    ],
)
def test_how_a_process_ended(status, text):
    assert status.words == text


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
        await until(lambda: "codex ║1" in text_of(app).splitlines()[0])
        assert "held" not in bottom(app)
        hold(host, CODEX, minutes=0.1)
        await until(lambda: "codex ║2" in text_of(app).splitlines()[0])


async def test_a_message_that_is_held_for_more_than_two_minutes_is_named_with_the_key():
    host = three_agents()
    async with running(host) as (app, pilot):
        hold(host, GEMINI, minutes=1.9)
        await until(lambda: "║1" in text_of(app).splitlines()[0])
        assert "held" not in bottom(app)
        app.main.now = lambda: NOW + timedelta(minutes=1)
        app.main.show_agents()
        await until(lambda: "║ alice: held 2:53, half-written draft" in bottom(app))
        assert bottom(app).rstrip().endswith("^] a")
        await pilot.press(LEADER, "a")
        await until(lambda: app.main.active == GEMINI)
        assert "║ alice: held 2:5" in bottom(app), "it is not at rest by being looked at"
        assert bottom(app).rstrip().endswith("F6")


async def test_the_bottom_bar_names_the_agent_to_which_its_key_goes():
    host = three_agents()
    async with running(host) as (app, pilot):
        hold(host, GEMINI, minutes=3)
        host.agents[CODEX].become(AgentState.READY, unseen=True)
        await until(lambda: "◆ codex: done" in bottom(app))
        await pilot.press(LEADER, "a")
        await until(lambda: app.main.active == CODEX)
        await until(lambda: "║ alice: held" in bottom(app))


@pytest.mark.parametrize("state", [AgentState.PROCESSING, AgentState.UNKNOWN, AgentState.STARTING])
async def test_an_agent_that_goes_on_is_not_done(state):
    host = three_agents()
    async with running(host) as (app, pilot):
        host.agents[CODEX].become(AgentState.READY, unseen=True)
        await until(lambda: "◆ codex: done" in bottom(app))
        host.agents[CODEX].become(state, unseen=True)
        await until(lambda: app.main.agents[1].state is state)
        await pilot.pause()
        assert "done" not in bottom(app), "its next turn has begun"
        assert not app.main.agents[1].needs_attention
        before = app.main.active
        await pilot.press(LEADER, "a")
        await pilot.pause()
        assert app.main.active == before, "no one waits for the person"


async def test_what_the_person_holds_does_not_call():
    host = three_agents()
    async with running(host) as (app, _pilot):
        hold(host, GEMINI, minutes=30, reason="held by you")
        await until(lambda: "║1" in text_of(app).splitlines()[0])
        assert "held" not in bottom(app)


@pytest.mark.parametrize("width", [112, 116, 120, 124])
async def test_a_title_drops_why_messages_wait_before_it_drops_that_the_agent_asks(width):
    host = three_agents()
    async with running(host, (width, 24), layout="columns") as (app, _pilot):
        host.agents[GEMINI].become(AgentState.WAITING, ASKS)
        hold(host, GEMINI, minutes=0.1, reason="permission dialog open")
        await until(lambda: "▲" in text_of(app).splitlines()[1])
        assert "▲ needs you" in text_of(app).splitlines()[1]


async def test_the_title_of_a_narrow_pane_keeps_the_word_of_held_messages():
    host = three_agents()
    async with running(host, (46, 24)) as (app, pilot):
        host.agents[CODEX].become(AgentState.READY)
        await pilot.press("f4")
        hold(host, CODEX, minutes=0.1)
        await until(lambda: "║ held" in text_of(app).splitlines()[1])


async def test_a_key_that_leads_on_says_where_to():
    async with running(three_agents()) as (app, pilot):
        assert "F6 sidebar" in bottom(app)
        await pilot.press("f6")
        await until(lambda: "F6 board" in bottom(app))
        await pilot.press("f6")
        await until(lambda: app.main.board_shown)
        await pilot.press("f6")
        await until(lambda: "F6 sidebar" in bottom(app))


async def test_messages_that_wait_for_different_things_are_not_said_to_wait_for_one():
    host = three_agents()
    async with running(host, size=(140, 30)) as (app, _pilot):
        for reason in ("from before the restart", "other messages go first"):
            host.message(CODEX, "look", delivery=DeliveryState.HELD, reason=reason)
        await until(lambda: found(app, CODEX).held == 2)
        assert found(app, CODEX).held_reason == "from before the restart"
        host.message(CODEX, "look", delivery=DeliveryState.HELD, reason="working")
        await until(lambda: found(app, CODEX).held == 3)
        assert found(app, CODEX).held_reason == "from before the restart, among other reasons"


def found(app: SynapseApp, agent_id: str) -> AgentView:
    agent: AgentView | None = app.main.find(agent_id)
    assert agent is not None
    return agent
