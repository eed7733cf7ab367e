"""Agents that start: their tabs at once, how many are ready, tabs that can be told apart."""

import asyncio

import pytest

from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.widgets.fit import distinct
from synapse_tui.widgets.views import still_title
from tests.ui.app_kit import make_app, running, text_of, until
from tests.ui.fakes import FakeHost

TEN = tuple(f"dummy-{port}" for port in range(8190, 8200))


class SlowHost(FakeHost):
    """A host that opens an agent only when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Semaphore(0)

    async def open(self, spec, *, columns, lines, environ=None):
        await self.gate.acquire()
        return await super().open(spec, columns=columns, lines=lines, environ=environ)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_tabs_are_there_at_once_and_the_bottom_counts_those_that_are_ready(size):
    host = SlowHost()
    app = make_app(host, specs=[AgentSpec("dummy") for _ in range(10)])
    async with app.run_test(size=size) as pilot:
        await until(lambda: text_of(app).splitlines()[0].count("○") == 10)
        assert "10 agents, 0 ready" in text_of(app).splitlines()[-1]
        assert text_of(app).count("○ dummy starting") == 10
        for _ in range(4):
            host.gate.release()
        await until(lambda: len(app.main.deck.panes) == 4)
        for session in host.agents.values():
            session.become(AgentState.READY)
        await until(lambda: "10 agents, 4 ready" in text_of(app).splitlines()[-1])
        tabs = text_of(app).splitlines()[0]
        assert (tabs.count("●"), tabs.count("○")) == (4, 6)
        for _ in range(6):
            host.gate.release()
        await until(lambda: len(app.main.deck.panes) == 10)
        for session in host.agents.values():
            session.become(AgentState.READY)
        await until(lambda: "ready" not in text_of(app).splitlines()[-1])
        await pilot.pause()


async def test_nothing_is_said_of_agents_before_it_is_known_which_are_opened():
    app = make_app(FakeHost())
    gate, empty = asyncio.Event(), []
    show_all = app._reader.show_all

    async def slow() -> None:
        await gate.wait()
        empty.append(app.main.deck.empty)
        await show_all()

    app._reader.show_all = slow
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "no agents" not in text_of(app)
        gate.set()
        await until(lambda: app.begun)
        assert empty == [""]
        assert "no agents here yet" in app.main.deck.empty


@pytest.mark.parametrize("width", [7, 8, 9])
def test_names_stay_different_when_they_are_cut(width):
    names = distinct(TEN, width)
    assert len(set(names)) == 10
    assert all(len(name) <= width for name in names)
    assert all(name.endswith(full[-2:]) for name, full in zip(names, TEN, strict=True))


@pytest.mark.parametrize(
    ("title", "rest"),
    [
        ("✳ Ready · dummy-8192", ""),
        ("⠂ Working · dummy-8192", ""),
        ("✳ Claude Code", ""),
        ("✳ fix the tokenizer", "fix the tokenizer"),
        ("⠐ review - Claude Code", "review"),
    ],
)
def test_a_window_title_says_only_what_does_not_stand_beside_it(title, rest):
    assert still_title(title, ("dummy-8192", "Claude Code")) == rest


async def test_the_name_stands_once_in_the_title_of_a_pane():
    host = FakeHost()
    session = host.add(AgentSpec("dummy"))
    host.add(AgentSpec("dummy"))
    async with running(host) as (app, _pilot):
        session.feed("\x1b]0;✳ Ready · dummy-8190\x07")
        session.become(AgentState.READY)
        await until(lambda: "● ready" in text_of(app).splitlines()[1])
        assert text_of(app).splitlines()[1].count("dummy-8190") == 1
        assert "Ready" not in text_of(app).splitlines()[1]


async def test_the_title_of_a_pane_does_not_go_on_with_a_name_that_was_changed():
    host = FakeHost()
    session = host.add(AgentSpec("dummy", "alice"))
    async with running(host) as (app, _pilot):
        session.feed("\x1b]0;✳ Ready · alice\x07")
        session.become(AgentState.READY)
        host.rename(session.agent_id, "carol")
        await until(lambda: "carol" in text_of(app).splitlines()[1])
        assert "alice" not in text_of(app).splitlines()[1]
