"""The watch over an agent in the application: asked for, shown, ended."""

from __future__ import annotations

from synapse_tui.agents.watch import WatchOrder, WatchState
from synapse_tui.core.model import AgentState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.agents import WatchForm, WatchView
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost, FakeWatcher

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def watched(host: FakeHost, agent_id: str = CLAUDE, **order: float) -> FakeWatcher:
    watcher = host.agents[agent_id].watcher
    watcher.begin(WatchOrder(**order))  # type: ignore[arg-type]
    return watcher


def title(app: SynapseApp) -> str:
    return text_of(app).splitlines()[1]


async def test_a_watch_is_asked_for_by_keys():
    host = three_agents()
    async with running(host) as (app, pilot):
        await pilot.press(LEADER, "W")
        await until(lambda: isinstance(app.screen, WatchForm) and app.screen.ready)
        await pilot.press("ctrl+u", *"90", "tab", "ctrl+u", *"3", "tab", *"go on", "tab", *"DONE", "enter")
        await until(lambda: host.agents[CLAUDE].watcher.on)
        order = host.agents[CLAUDE].watcher.watch.order
        assert (order.every, order.times, order.nudge, order.until) == (90.0, 3, "go on", "DONE")
        await until(lambda: "watched 0/3" in title(app))
        assert "claude is watched" in app.main.status_bar.notice


async def test_the_mark_follows_the_watch(monkeypatch):
    rung: list[bool] = []
    monkeypatch.setattr("synapse_tui.ui.app.SynapseApp.bell", lambda _app: rung.append(True))
    host = three_agents()
    async with running(host, sidebar=True, size=(140, 40)) as (app, pilot):
        watcher = watched(host)
        await until(lambda: text_of(app).count("watched 0/5") == 2)
        watcher.watch.sent = 2
        watcher.tell()
        await until(lambda: text_of(app).count("watched 2/5") == 2)
        host.clock = lambda: 50.0
        watcher.end(WatchState.GAVE_UP, "gave up: 2 nudges brought nothing")
        await until(lambda: text_of(app).count("gave up 2/5") == 2)
        agent = app.main.find(CLAUDE)
        assert agent is not None
        assert agent.needs_attention, "the person is led to it"
        assert agent.since == 50.0, "since then, not since the agent rests"
        assert not rung, "it is looked at"
        app.perform("explain_state", CLAUDE)
        await until(
            lambda: "▲ needs you  for 25s" in text_of(app) and "state      ○ starting" in text_of(app)
        )
        await pilot.press("escape")
        codex = watched(host, CODEX)
        codex.end(WatchState.GAVE_UP, "gave up: it, too")
        await until(lambda: rung)
        assert "▲ codex: gave up 0/5" in text_of(app), "with the sign that it has everywhere"
        app.perform("quit")
        await until(lambda: "2 of them need you." in text_of(app))
        await pilot.press("escape")
        host.clock = lambda: 60.0
        host.agents[CLAUDE].become(AgentState.PROCESSING)
        await until(lambda: "gave up 2/5" not in text_of(app))


async def test_a_watch_is_looked_at_and_ended():
    host = three_agents()
    async with running(host) as (app, pilot):
        watcher = watched(host, every=45.0)
        await pilot.press(LEADER, "W")
        await until(lambda: isinstance(app.screen, WatchView) and app.screen.ready)
        assert "watched: after 45 s of rest it gets a nudge" in text_of(app)
        watcher.watch.note("needs you: permission: rm")
        watcher.tell()
        await until(lambda: "needs you: permission: rm" in text_of(app))
        assert "s stops the watch" in text_of(app)
        watcher.end(WatchState.GAVE_UP, "gave up: it was not done after 1 nudge")
        await until(lambda: "gave up: it was" in text_of(app) and "s stops the watch" not in text_of(app))
        await pilot.press("escape")
        watcher = watched(host, every=45.0)
        await pilot.press(LEADER, "W")
        await until(lambda: isinstance(app.screen, WatchView) and app.screen.ready)
        await pilot.press("s")
        await until(lambda: at_main(app))
        assert not watcher.on
        assert "no longer watched" in app.main.status_bar.notice
        assert "watched" not in title(app)
