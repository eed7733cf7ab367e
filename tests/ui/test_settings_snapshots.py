"""How the settings look: pictures of the list and of the editors."""

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from synapse_tui.ui.screens.settings import SettingsScreen
from tests.ui.app_kit import LEADER, make_app, until
from tests.ui.fakes import FakeHost
from tests.ui.looks import USUAL, dialog_looks, every_look
from tests.ui.scenes import populate
from tests.ui.settings_kit import Files

EDITED = ("tui.layout", "env.SYNAPSE_API_KEYS", "env.SYNAPSE_LOG_LEVEL")

pytestmark = pytest.mark.usefixtures("same_everywhere")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path, {"SYNAPSE_LOG_LEVEL": "ERROR"})
    keys = {"zoom": "f11, leader Z"}
    made.write(
        made.user, {"tui": {"theme": "nord", "keys": keys}, "env": {"SYNAPSE_API_KEYS": "ci=secret-key"}}
    )
    made.write(made.shared, {"tui": {"layout": "grid", "agents": ["claude", "codex:tester@backend"]}})
    made.write(made.local, {"tui": {"layout": "columns"}})
    return made


def compare(
    snap_compare: Any, files: Files, size: tuple[int, int], keys: str = "", *, query: str = "", **options: Any
) -> None:
    host = FakeHost()
    app = make_app(host, settings_files=files, **options)
    populate(host)

    async def run(pilot: Pilot[None]) -> None:
        await until(lambda: app.begun and len(app.main.deck.panes) == len(host.agents))
        await pilot.pause()
        await pilot.press(LEADER, ",")
        await until(lambda: isinstance(app.screen, SettingsScreen) and app.screen._shown)
        screen = app.screen
        assert isinstance(screen, SettingsScreen)
        if query:
            await pilot.press("slash")
            screen.query_one("#query", Input).value = query
            await until(lambda: query in screen.query_one("#query", Input).value and screen.ready)
        await pilot.press(*keys.split())
        await until(lambda: screen.editing == ("enter" in keys.split()))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)


@every_look
@pytest.mark.parametrize("keys", ["", "enter", "shift+tab"], ids=["area", "themes", "all_by_name"])
def test_scene(snap_compare, files, keys, size, theme):
    compare(snap_compare, files, size, keys, theme=theme)


@pytest.mark.parametrize("keys", ["", "enter"], ids=["area", "themes"])
def test_plain(snap_compare, files, keys, plain_theme):
    compare(snap_compare, files, USUAL, keys, theme=plain_theme)


@dialog_looks
def test_problems(snap_compare, files, size, theme):
    files.write(files.user, '{"tui": {"layuot": "grid", "leader": "cmd+k", "scrollback": "many"}}')
    compare(snap_compare, files, size, theme=theme)


@dialog_looks
@pytest.mark.parametrize("key", EDITED)
def test_editor(snap_compare, files, key, size, theme):
    compare(snap_compare, files, size, "enter", query=key, theme=theme)


@pytest.mark.parametrize("name", ["high-contrast-light", "nord"])
def test_chosen_colours(snap_compare, files, name):
    host = FakeHost(**{"tui.theme": name})
    app = make_app(host, settings_files=files, theme=None)
    populate(host)

    async def run(pilot: Pilot[None]) -> None:
        await until(lambda: app.begun and len(app.main.deck.panes) == len(host.agents))
        await pilot.press("f6")
        await pilot.pause()

    assert snap_compare(app, terminal_size=USUAL, run_before=run)
