"""What the settings say about the application: at the start, and while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.core.events import SettingsChanged
from synapse_tui.core.model import AgentState
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.composer import Composer
from synapse_tui.widgets.terminal_view import TerminalView
from tests.ui.app_kit import LEADER, notices, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost
from tests.ui.settings_kit import Files

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def host_with(**settings: object) -> FakeHost:
    host = three_agents()
    host.settings._values |= settings
    return host


def change(host: FakeHost, **settings: object) -> None:
    host.settings._values |= settings
    host.events.publish(SettingsChanged(tuple(settings)))


@pytest.mark.parametrize(
    ("guide", "said"),
    [
        ("", "tui.language counts here when this session is stopped and started again"),
        ("tour", "tui.language cannot be changed while the demo runs"),
    ],
)
async def test_a_setting_that_needs_a_restart_says_so(guide: str, said: str) -> None:
    host = three_agents()
    async with running(host, guide=guide) as (app, _pilot):
        host.events.publish(SettingsChanged(("tui.language", "tui.layout"), ("tui.language",)))
        await until(lambda: app.main.status_bar.notice == said)
        change(host, **{"tui.language": "en"})
        await until(lambda: not app.main.status_bar.notice, "it is as at the start")


async def test_keys_of_the_settings_hold_and_are_shown() -> None:
    host = host_with(**{"tui.keys": {"layout": ["f11", "leader L"], "zoom": []}, "tui.leader": "ctrl+g"})
    async with running(host, size=(160, 60)) as (app, pilot):
        assert "F11 layout" in text_of(app)
        assert "F5" not in text_of(app)
        await pilot.press("f11")
        assert app.main.deck.arrangement == "columns"
        await pilot.press("f5")
        assert app.main.deck.arrangement == "columns", "it is for the agent now"
        await pilot.press("ctrl+g")
        assert "L    next layout" in text_of(app)
        assert "zoom" not in text_of(app)
        await pilot.press("L")
        assert str(app.main.deck.arrangement) == "grid"
        await pilot.press("f1")
        await until(lambda: "F11 ^G L" in text_of(app))
        await pilot.press("escape", "f10", *"next layout")
        await until(lambda: "F11  ^G L" in text_of(app))


OF_CODEX = {
    "codex.compose": ["leader m"],
    "codex.previous_agent": ["leader shift+tab"],
    "help": ["f1", "f11"],
}


async def test_one_kind_of_agent_can_have_its_keys_back() -> None:
    host = host_with(**{"tui.keys": OF_CODEX})
    async with running(host, size=(160, 60)) as (app, pilot):
        codex = next(each for each in host.agents.values() if each.agent_type == "codex")
        app.main.go_to(codex.agent_id)
        await until(lambda: "F2" not in text_of(app).splitlines()[-1])
        await pilot.press("f2", "f3")
        assert bytes(codex.typed) == b"\x1bOQ\x1bOR"
        assert app.main.active == codex.agent_id
        await pilot.press("f1")
        await until(
            lambda: "^] m" in text_of(app) and "F2 " not in text_of(app).split("Write a message")[0][-20:]
        )
        await pilot.press("escape", LEADER, "m")
        await until(lambda: isinstance(app.screen, Composer))
        await pilot.press("escape", "f4")
        await until(lambda: app.main.active != codex.agent_id)
        assert "F2 " in text_of(app).splitlines()[-1]
        await pilot.press("f2")
        await until(lambda: isinstance(app.screen, Composer))
        assert bytes(codex.typed) == b"\x1bOQ\x1bOR"


async def test_on_the_board_no_agent_has_its_keys() -> None:
    host = host_with(**{"tui.keys": OF_CODEX})
    async with running(host, size=(160, 60)) as (app, pilot):
        codex = next(each for each in host.agents.values() if each.agent_type == "codex")
        app.main.go_to(codex.agent_id)
        await pilot.press(LEADER, "b", "f2")
        await until(lambda: isinstance(app.screen, Composer))
        assert not codex.typed


async def test_the_next_key_is_for_the_agent_that_the_key_before_went_to() -> None:
    host = host_with(**{"tui.keys": OF_CODEX})
    async with running(host, size=(160, 60)) as (app, pilot):
        kinds = [each.agent_type for each in host.agents.values()]
        assert kinds == ["claude", "codex", "gemini"]
        claude, codex, _gemini = host.agents.values()
        app.main.go_to(claude.agent_id)
        await pilot.press("f4", "f2", "f4", "f2")  # without a pause
        assert bytes(codex.typed) == b"\x1bOQ"
        await until(lambda: isinstance(app.screen, Composer))


async def test_changed_keys_hold_at_once() -> None:
    host = three_agents()
    async with running(host, size=(160, 90)) as (app, pilot):
        await pilot.press(LEADER)
        change(host, **{"tui.leader": "ctrl+g", "tui.keys": {"zoom": ["f12"]}})
        await until(lambda: "^G menu" in text_of(app))
        assert not app.main.which_key.display, "what the old leader began is over"
        assert "F12 zoom" in text_of(app)
        await pilot.press(LEADER, "z")
        assert bytes(host.agents[CLAUDE].typed) == b"\x1dz", "the old leader is for the agent now"
        await pilot.press("ctrl+g", "s")
        assert app.main.has_class("-sidebar")


@pytest.mark.usefixtures("same_everywhere")
async def test_changed_colours_are_shown_at_once_and_open_panes_keep_their_places() -> None:
    host = three_agents()
    async with running(host, theme=None) as (app, pilot):
        change(host, **{"tui.theme": "nord"})
        await until(lambda: app.theme == "synapse-nord-own")
        change(host, **{"tui.layout": "grid", "tui.sidebar": True})
        change(host, **{"tui.theme": "auto"})
        await until(lambda: app.theme != "synapse-nord-own")
        await pilot.pause()
        assert app.main.deck.arrangement == "tabs"
        assert not app.main.has_class("-sidebar")


async def choose(app: SynapseApp, theme: str) -> None:
    app.perform("keep_theme", theme)
    await until(lambda: f"colours: {theme}" in notices(app))


@pytest.mark.usefixtures("same_everywhere")
async def test_colours_of_the_palette_are_kept(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with running(three_agents(), theme=None, settings_files=files) as (app, pilot):
        await pilot.press("f10", *"colours: drac", "enter")
        await until(lambda: "saved in ~/.synapse/settings.json" in notices(app))
        assert app.theme == "synapse-dracula-own"
        assert files.read(files.user) == {"tui": {"theme": "dracula"}}
        files.write(files.local, {"tui": {"theme": "nord"}})
        await choose(app, "light")
        assert ".synapse/settings.local.json overrides it: nord" in notices(app)
        files.write(files.user, "{")
        await pilot.pause()
        app.perform("keep_theme", "dark")
        await until(lambda: "is not valid JSON" in notices(app))
        assert app.theme == "iris-dark-own", "for this session"


@pytest.mark.usefixtures("same_everywhere")
async def test_a_light_theme_is_light_in_the_panes_of_a_dark_terminal() -> None:
    async with running(three_agents(), theme=None) as (app, pilot):
        view = app.main.deck.panes[0].view
        assert isinstance(view, TerminalView)
        session = view.session
        dark = session.terminal.colors.background
        assert "48;2" not in view._painter.strip(0).pieces[-1].pen.sgr
        app.perform("keep_theme", "light")
        await until(lambda: app.theme == "iris-light-panes")
        await pilot.pause()
        assert view._painter.strip(0).pieces[-1].pen.sgr.endswith("38;2;30;26;44;48;2;255;255;255m")
        assert view.styles.background.rgb == (255, 255, 255)
        assert session.terminal.colors.background == (255, 255, 255), "the answer to OSC 11"
        assert session.terminal.colors.foreground == (30, 26, 44)
        app.perform("keep_theme", "dark")
        await until(lambda: app.theme == "iris-dark-own")
        await pilot.pause()
        assert "48;2" not in view._painter.strip(0).pieces[-1].pen.sgr
        assert session.terminal.colors.background == dark


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    shown: list[tuple[str, str]] = []
    monkeypatch.setattr(SynapseApp, "notify_outside", lambda _app, title, text: shown.append((title, text)))
    monkeypatch.setattr("synapse_tui.ui.screens.event_reader.FINISHED_SECONDS", 0.01)
    return shown


async def test_an_agent_that_finishes_unseen_is_told_on_the_desktop(told: list[tuple[str, str]]) -> None:
    host = host_with(**{"tui.notifications": "desktop"})
    async with running(host) as (_app, pilot):
        for agent_id in (CLAUDE, CODEX):
            host.agents[agent_id].become(AgentState.PROCESSING)
            host.agents[agent_id].become(AgentState.READY, unseen=agent_id == CODEX)
        await until(lambda: told)
        await pilot.pause()
        assert told == [("synapse: codex", "has finished")]


async def test_an_agent_that_goes_on_at_once_has_not_finished(told: list[tuple[str, str]]) -> None:
    host = host_with(**{"tui.notifications": "desktop"})
    async with running(host) as (_app, pilot):
        codex = host.agents[CODEX]
        codex.become(AgentState.PROCESSING)
        codex.become(AgentState.READY, unseen=True)
        codex.become(AgentState.PROCESSING)
        await pilot.pause(0.05)
        codex.become(AgentState.WAITING, "permission: [b]Bash[/b]\x1b]0;x\x07")
        await until(lambda: told)
        assert told == [("synapse: codex", "permission: [b]Bash[/b] ]0;x")]


async def test_off_means_off(told: list[tuple[str, str]]) -> None:
    host = host_with(**{"tui.notifications": "off"})
    async with running(host) as (app, pilot):
        app.app_focus = False
        host.agents[CODEX].become(AgentState.WAITING, "permission: Bash")
        await pilot.pause(0.05)
        assert not told
        change(host, **{"tui.notifications": "both"})
        host.agents[CLAUDE].become(AgentState.WAITING, "permission: Bash")
        await until(lambda: told)
