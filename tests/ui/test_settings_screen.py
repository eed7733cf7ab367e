"""The settings screen: what it shows, finds, writes, refuses, and what it says when things go wrong."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static, TextArea

from synapse_tui.app import SynapseApp
from synapse_tui.screens.settings import SettingEditor, SettingsScreen
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until
from tests.ui.settings_kit import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def open_screen(app: SynapseApp, pilot: Pilot[None]) -> SettingsScreen:
    await pilot.press(LEADER, ",")
    await until(lambda: isinstance(app.screen, SettingsScreen))
    screen = app.screen
    assert isinstance(screen, SettingsScreen)
    await until(lambda: screen._shown)
    return screen


async def open_editor(app: SynapseApp, pilot: Pilot[None], key: str) -> SettingEditor:
    if not isinstance(app.screen, SettingsScreen):
        await open_screen(app, pilot)
    screen = app.screen
    assert isinstance(screen, SettingsScreen)
    screen.query_one("#query", Input).value = key
    await until(lambda: (entry := screen._marked()) is not None and entry.key == key)
    await pilot.press("enter")
    await until(lambda: isinstance(app.screen, SettingEditor) and app.screen.ready)
    editor = app.screen
    assert isinstance(editor, SettingEditor)
    return editor


async def closed(app: SynapseApp, pilot: Pilot[None]) -> str:
    await until(lambda: isinstance(app.screen, SettingsScreen))
    await pilot.pause()
    return said(app)


def said(app: SynapseApp) -> str:
    return str(app.screen.query_one("#news", Static).render())


def error(editor: SettingEditor) -> str:
    return str(editor.query_one(".error", Static).render())


def row(app: SynapseApp, key: str) -> str:
    found = re.search(rf"[ •] {re.escape(key)}  .*(default|file|environment) .*", text_of(app))
    return found[0] if found else ""


async def test_each_setting_is_shown_with_value_and_origin(files: Files) -> None:
    files.environ["SYNAPSE_LOG_LEVEL"] = "ERROR"
    files.write(files.user, {"tui": {"theme": "nord", "layout": "grid"}})
    files.write(files.shared, {"tui": {"layout": "columns"}})
    files.write(files.local, {"tui": {"layout": "main"}})
    async with running(three_agents(), settings_files=files, size=(120, 60)) as (app, pilot):
        await open_screen(app, pilot)
        await pilot.pause()
        assert row(app, "tui.theme").split()[:5] == ["•", "tui.theme", "nord", "your", "file"]
        assert "main" in row(app, "tui.layout")
        assert "local file" in row(app, "tui.layout")
        assert row(app, "tui.leader").split()[:3] == ["tui.leader", "ctrl+]", "default"]
        await pilot.press(*"log_level")
        await until(lambda: "ERROR" in row(app, "env.SYNAPSE_LOG_LEVEL"))
        assert "environment" in row(app, "env.SYNAPSE_LOG_LEVEL")
        assert "$SYNAPSE_LOG_LEVEL" in text_of(app)


async def test_typing_finds_and_escape_takes_the_search_away_before_it_leaves(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        everything = len(screen._shown)
        await pilot.press(*"colours dark")
        await until(lambda: [entry.key for entry in screen._shown] == ["tui.theme"])
        await pilot.press("x")
        await until(lambda: "no matching settings" in text_of(app))
        await pilot.press("enter", "escape")
        await until(lambda: len(screen._shown) == everything)
        assert app.screen is screen
        await pilot.press("escape")
        await until(lambda: at_main(app))


async def test_a_choice_is_written_to_the_own_file_and_counts(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_editor(app, pilot, "tui.layout")
        await pilot.press("down", "down", "enter")
        assert await closed(app, pilot) == "tui.layout is grid in ~/.synapse/settings.json"
        assert files.read(files.user) == {"tui": {"layout": "grid"}}
        await until(lambda: "grid" in row(app, "tui.layout"))
        assert "changed elsewhere" not in said(app)


async def test_the_file_that_counts_now_is_marked_and_another_can_be_chosen(files: Files) -> None:
    files.write(files.shared, {"tui": {"layout": "grid"}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, "tui.layout")
        assert editor._layer == "project"
        await pilot.press("tab", "down", "enter")
        await closed(app, pilot)
        assert files.read(files.local) == {"tui": {"layout": "grid"}}


async def test_what_wins_over_the_written_file_is_told_before_and_afterwards(files: Files) -> None:
    files.environ["SYNAPSE_LOG_LEVEL"] = "ERROR"
    files.write(files.local, {"tui": {"layout": "main"}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_editor(app, pilot, "tui.layout")
        await pilot.press("tab", "up", "up")
        await until(lambda: ".synapse/settings.local.json overrides it: main" in text_of(app))
        await pilot.press("shift+tab", "up", "enter")
        assert (await closed(app, pilot)).endswith(".synapse/settings.local.json overrides it: main")
        await open_editor(app, pilot, "env.SYNAPSE_LOG_LEVEL")
        assert "$SYNAPSE_LOG_LEVEL in the environment overrides all files" in text_of(app)


async def test_a_value_that_cannot_be_is_told_while_it_is_typed_and_not_written(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, "a2a.retention_days")
        await pilot.press("ctrl+a", "ctrl+k", *"-3")
        await until(lambda: "must be from 0" in error(editor))
        await pilot.press("enter")
        assert app.screen is editor
        assert not files.user.exists()
        await pilot.press("backspace", "backspace", "7", "enter")
        await closed(app, pilot)
        assert files.read(files.user) == {"a2a": {"retention_days": 7}}


async def test_lists_and_tables_are_edited_as_lines(files: Files) -> None:
    files.write(files.user, {"tui": {"agents": ["claude"]}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, "tui.agents")
        assert editor.query_one(TextArea).text == "claude"
        editor.query_one(TextArea).text = "claude\n\n codex:tester@backend \n"
        await pilot.press("ctrl+s")
        await closed(app, pilot)
        editor = await open_editor(app, pilot, "tui.keys")
        editor.query_one(TextArea).text = "zoom = f11, leader Z\nzom = f12"
        await pilot.press("ctrl+s")
        await until(lambda: "names 'zom', which is not an action: did you mean 'zoom'?" in error(editor))
        editor.query_one(TextArea).text = "zoom f11"
        await pilot.press("ctrl+s")
        await until(lambda: "'zoom f11' must have the form NAME = VALUE" in error(editor))
        editor.query_one(TextArea).text = "zoom = f11, leader Z\nlayout ="
        await pilot.press("ctrl+s")
        await closed(app, pilot)
        assert files.read(files.user) == {
            "tui": {
                "agents": ["claude", "codex:tester@backend"],
                "keys": {"zoom": ["f11", "leader Z"], "layout": []},
            }
        }


async def test_secrets_are_never_shown_and_only_hashes_are_written(files: Files) -> None:
    secret = "correct-horse-battery-staple-0123456789"
    files.write(files.user, {"env": {"SYNAPSE_API_KEYS": f"ci={secret}"}})
    async with running(three_agents(), settings_files=files, size=(200, 60)) as (app, pilot):
        editor = await open_editor(app, pilot, "env.SYNAPSE_API_KEYS")
        await pilot.pause()
        assert "********" in text_of(app)
        for shown in (secret, "ci=", hashlib.sha256(secret.encode()).hexdigest()[:8]):
            assert shown not in text_of(app)
        assert [str(option.id) for option in editor.query_one("#layer", OptionList)._options] == ["user"]
        await pilot.press("enter")
        await until(lambda: "must not be empty" in error(editor))
        await pilot.press(*"new=0123456789abcdef0123456789abcdef")
        await pilot.pause()
        assert "0123456789abcdef" not in text_of(app)
        await pilot.press("enter")
        assert "sha256" not in await closed(app, pilot)
        written = json.dumps(files.read(files.user))
        assert "new=sha256:" in written
        assert "0123456789abcdef0123" not in written
        assert secret not in written


async def test_what_a_project_may_not_set_is_offered_for_the_own_file_only(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, "a2a.bind")
        assert editor._places == ["user"]
        await pilot.press("escape")
        editor = await open_editor(app, pilot, "a2a.flow")
        assert editor._places == ["user", "project", "local"]


async def test_a_broken_file_is_told_and_never_overwritten(files: Files) -> None:
    files.write(files.user, '{"tui": ')
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_screen(app, pilot)
        await until(lambda: "is not valid JSON" in text_of(app))
        editor = await open_editor(app, pilot, "tui.layout")
        await pilot.press("enter")
        await until(lambda: "is not valid JSON" in error(editor))
        assert files.user.read_text(encoding="utf-8") == '{"tui": '


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"tui": ', "unchanged: the file cannot be read"),
        ({"tui": {"theme": "no such", "layout": "main"}}, "unchanged: its new value is invalid"),
    ],
)
async def test_what_a_file_said_before_is_shown_as_long_as_it_holds(
    files: Files, content: object, why: str
) -> None:
    files.write(files.user, {"tui": {"theme": "nord", "layout": "main"}})
    files.held = files().load()
    files.write(files.user, content)
    async with running(three_agents(), settings_files=files, size=(120, 60)) as (app, pilot):
        await open_screen(app, pilot)
        await until(lambda: row(app, "tui.theme").split()[:5] == ["•", "tui.theme", "nord", "your", "file"])
        assert "your file" in row(app, "tui.layout")
        assert text_of(app).count("▲ ~/.synapse/settings.json") == 1, "a problem is told once"
        await pilot.press(*"tui.theme")
        await until(lambda: f"your file nord {why}" in text_of(app))


async def test_an_untrusted_file_of_the_project_is_told_and_stays_untrusted(files: Files) -> None:
    files.write(files.shared, {"tui": {"layout": "grid"}}, trusted=False)
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_screen(app, pilot)
        assert "default" in row(app, "tui.layout")
        await open_editor(app, pilot, "tui.layout")
        await pilot.press("tab", "down")
        await until(lambda: ".synapse/settings.json has no effect until you trust it" in text_of(app))
        await pilot.press("enter")
        assert "has no effect until you trust it" in await closed(app, pilot)
        assert files().load().text("tui.layout") == "tabs"


async def test_a_change_from_outside_is_shown_and_is_not_lost(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        files.write(files.user, {"tui": {"sidebar": True}})
        await until(lambda: "changed elsewhere just now: tui.sidebar" in said(app))
        assert "true" in row(app, "tui.sidebar")
        editor = await open_editor(app, pilot, "tui.layout")
        files.write(files.user, {"tui": {"sidebar": True, "layout": "main"}})
        await until(lambda: editor._entry.value == "main")
        await pilot.press("enter")
        await until(lambda: app.screen is screen)
        assert files.read(files.user) == {"tui": {"sidebar": True, "layout": "tabs"}}
