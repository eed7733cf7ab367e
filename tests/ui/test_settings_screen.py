"""The settings screen: what it shows, finds, writes, refuses, and what it says when things go wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static, TextArea

from synapse_tui.settings.files import survey
from synapse_tui.settings.schema import AREAS, SCHEMA
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.settings import SettingsHints, SettingsScreen, about
from synapse_tui.widgets import bars
from tests.ui.app_kit import LEADER, at_main, running, text_of, three_agents, until
from tests.ui.settings_kit import Files

pytestmark = pytest.mark.usefixtures("same_everywhere")


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


async def open_editor(app: SynapseApp, pilot: Pilot[None], key: str) -> SettingsScreen:
    screen = app.screen if isinstance(app.screen, SettingsScreen) else await open_screen(app, pilot)
    assert isinstance(screen, SettingsScreen)
    await pilot.press("slash")
    await until(lambda: screen.query_one("#query").has_focus)
    screen.query_one("#query", Input).value = key
    await until(lambda: (entry := screen._marked()) is not None and entry.key == key)
    await pilot.press("enter")
    await until(lambda: screen.editing and screen.ready)
    return screen


async def closed(app: SynapseApp, _pilot: Pilot[None]) -> str:
    screen = app.screen
    assert isinstance(screen, SettingsScreen)
    await until(lambda: not screen.editing and not screen.busy)
    return said(app)


def said(app: SynapseApp) -> str:
    return str(app.screen.query_one("#news", Static).render()).strip()


def error(editor: SettingsScreen) -> str:
    return str(editor.query_one(".error", Static).render())


def obstacle(app: SynapseApp) -> str:
    return str(app.screen.query_one("#obstacle", Static).render())


def row(app: SynapseApp, key: str) -> str:
    """The sentence of a setting, as it is shown, with what stands beneath it."""
    screen = app.screen
    assert isinstance(screen, SettingsScreen)
    option = screen.query_one("#results", OptionList).get_option(key)
    return " ".join(str(option.prompt).split())


async def test_each_setting_is_a_sentence_in_an_area(files: Files) -> None:
    files.environ["SYNAPSE_LOG_LEVEL"] = "ERROR"
    files.write(files.user, {"tui": {"theme": "nord", "layout": "grid"}})
    files.write(files.local, {"tui": {"layout": "main"}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        assert row(app, "tui.theme") == "▌ Colours are nord ▾ • tui.theme your file"
        assert row(app, "tui.board") == "Show the board first with 3 agents or more"
        await pilot.press("down", "down")
        assert row(app, "tui.layout").endswith("main ▾ • tui.layout local file")
        assert row(app, "tui.theme") == "Colours are nord ▾ •"
        seen: set[str] = set()
        for _area in AREAS:
            seen |= {entry.key for entry in screen._shown}
            await pilot.press("tab")
        assert seen >= set(SCHEMA)
        assert len(screen._shown) == len(seen), "the last area shows all of them"
        assert row(app, "a2a.allowed_hosts") == "▌ a2a.allowed_hosts none default", "its key once"
        await pilot.press("tab", "shift+tab", "shift+tab")
        assert "Log messages of ERROR" in row(app, "env.SYNAPSE_LOG_LEVEL")
        assert "environment" in row(app, "env.SYNAPSE_LOG_LEVEL")
        assert "$SYNAPSE_LOG_LEVEL" in text_of(app)


@pytest.mark.parametrize("key", ["a2a.allowed_hosts", "env.SYNAPSE_API_KEYS", "tui.keys"])
def test_the_default_has_a_row_of_its_own(key: str, files: Files) -> None:
    now = survey(files())
    entry = now.find(key)
    assert entry is not None
    assert any(row.startswith("default none") for row in about(entry, now).plain.splitlines())


@pytest.mark.parametrize("key", ["tui.quiet_hours", "a2a.allowed_hosts"])
async def test_an_empty_field_says_so(key: str, files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, key)
        field = editor._field
        assert isinstance(field, Input | TextArea)
        assert (str(field.placeholder), editor._typed()) == ("empty", "")


async def test_slash_finds_and_escape_shows_all_before_it_leaves(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        everything = len(screen._shown)
        await pilot.press("slash", *"colours dark")
        await until(lambda: [entry.key for entry in screen._shown] == ["tui.theme"])
        await pilot.press("x")
        await until(lambda: "no matching settings" in text_of(app))
        await pilot.press("enter", "escape")
        await until(lambda: len(screen._shown) == everything)
        assert app.screen is screen
        await pilot.press("escape")
        await until(lambda: at_main(app))


async def test_a_theme_that_was_chosen_for_now_is_what_its_setting_says(files: Files) -> None:
    files.write(files.user, {"tui": {"theme": "nord"}})
    async with running(three_agents(), settings_files=files, theme=None) as (app, pilot):
        app.appearance.choose("light")
        await open_screen(app, pilot)
        assert row(app, "tui.theme") == "▌ Colours are light ▾ • tui.theme for now"
        await until(lambda: "for now light · your file nord" in text_of(app))
        await pilot.press("enter", "home", "enter")
        assert "for now" not in row(app, "tui.theme")


async def test_the_settings_of_the_demo_end_with_it(files: Files) -> None:
    async with running(three_agents(), settings_files=files, guide="tour") as (app, pilot):
        app.perform("keep_theme", "dark")
        await until(lambda: app.main.status_bar.notice == "colours: dark, until the demo ends")
        app.perform("settings")
        await until(lambda: "Settings of the demo, which end with it" in text_of(app))
        await pilot.press("enter", "end", "enter")
        await until(lambda: said(app).endswith("in the settings of the demo"))
        await pilot.press("/", *"tui.language", "enter")
        await until(lambda: "has no effect in the demo" in text_of(app))


async def test_a_theme_is_tried_while_the_mark_moves(files: Files) -> None:
    async with running(three_agents(), settings_files=files, theme=None) as (app, pilot):
        await open_screen(app, pilot)
        before = app.theme
        await pilot.press("enter", "down", "down")
        await until(lambda: app.theme.startswith("iris-light"))
        await pilot.press("escape")
        await until(lambda: app.theme == before)
        assert not files.user.exists()
        await pilot.press("enter", "down", "down", "enter")
        assert await closed(app, pilot) == "tui.theme is light in ~/.synapse/settings.json"
        assert app.theme.startswith("iris-light")
        await pilot.press("enter", "down")
        await until(lambda: "contrast" in app.theme)
        await pilot.press("escape", "escape")
        await until(lambda: at_main(app))
        assert app.theme.startswith("iris-light")


async def test_settings_are_changed_with_the_mouse(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        await pilot.click("#areas", offset=(4, AREAS.index("Files")))
        await until(lambda: screen._shown[0].setting.area == "Files")
        await pilot.click("#results", offset=(4, 0))
        await until(lambda: screen.editing and screen.ready)
        await pilot.click("#choices", offset=(4, 0))
        await until(lambda: files.read(files.user) == {"env": {"SYNAPSE_FILE_SAFETY_ENABLED": "true"}})
        await until(lambda: not screen.editing)
        hints = screen.query_one(SettingsHints)
        x = "".join(piece.text for piece in hints.lines()[0]).index("Esc")
        await pilot.click(SettingsHints, offset=(x, 0))
        await until(lambda: at_main(app))


async def test_a_value_is_unset(files: Files) -> None:
    files.write(files.user, {"tui": {"theme": "nord"}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_screen(app, pilot)
        assert "Del unset" in text_of(app)
        await pilot.press("down")
        await until(lambda: "Del unset" not in text_of(app), "it is not set")
        await pilot.press("up")
        await until(lambda: "Del unset" in text_of(app))
        await pilot.press("delete")
        await until(lambda: said(app) == "tui.theme was removed from ~/.synapse/settings.json")
        assert files.read(files.user) == {}
        await until(lambda: "Del unset" not in text_of(app))


async def test_a_choice_is_written_to_the_own_file_and_counts(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_editor(app, pilot, "tui.layout")
        await pilot.press("down", "down", "enter")
        assert await closed(app, pilot) == "tui.layout is grid in ~/.synapse/settings.json"
        assert files.read(files.user) == {"tui": {"layout": "grid"}}
        await until(lambda: "grid" in row(app, "tui.layout"), lambda: row(app, "tui.layout"))
        assert "changed elsewhere" not in said(app)


async def test_what_was_written_is_said_until_the_next_editor_opens_or_for_some_seconds(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_editor(app, pilot, "tui.layout")
        await pilot.press("down", "down", "enter")
        assert "tui.layout is grid" in await closed(app, pilot)
        await pilot.press("enter")
        await until(lambda: screen.editing)
        assert not said(app)
        monkeypatch.setattr(bars, "NOTICE_SECONDS", 0.05)
        await pilot.press("up", "enter")
        await closed(app, pilot)
        assert "columns" in row(app, "tui.layout")
        await until(lambda: not screen.query_one("#news").display)


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
        await until(lambda: ".synapse/settings.local.json overrides it: main" in obstacle(app))
        await pilot.press("shift+tab", "up", "enter")
        assert (await closed(app, pilot)).endswith(".synapse/settings.local.json overrides it: main")
        await open_editor(app, pilot, "env.SYNAPSE_LOG_LEVEL")
        assert "$SYNAPSE_LOG_LEVEL in the environment overrides all files" in obstacle(app)


async def test_a_value_that_cannot_be_is_told_while_it_is_typed_and_not_written(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, "a2a.retention_days")
        await pilot.press("ctrl+a", "ctrl+k", *"-3")
        await until(lambda: "must be from 0" in error(editor))
        await pilot.press("enter")
        assert editor.editing
        assert not files.user.exists()
        await pilot.press("backspace", "backspace", "7", "enter")
        await closed(app, pilot)
        assert files.read(files.user) == {"a2a": {"retention_days": 7}}


@pytest.mark.usefixtures("japanese")
async def test_what_is_wrong_is_said_in_the_language_of_the_person(files: Files) -> None:
    files.environ["SYNAPSE_LOG_LEVEL"] = "ERROR"
    files.write(files.user, {"tui": {"layuot": "grid", "leader": "cmd+k", "scrollback": "many"}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        assert str(screen.query_one("#problems", Static).render()).splitlines() == [
            "▲ ~/.synapse/settings.json: 知られていない設定「tui.layuot」",
            (
                "▲ ~/.synapse/settings.json: 設定「tui.leader」は使えない値です: 「cmd+k」: cmd を送る"
                "ターミナルはありません。ctrl、alt、shift を使ってください"
            ),
            "▲ ~/.synapse/settings.json: 設定「tui.scrollback」は整数でなければなりません",
        ]
        await open_editor(app, pilot, "env.SYNAPSE_LOG_LEVEL")
        assert obstacle(app) == "▲ 環境変数 $SYNAPSE_LOG_LEVEL がどのファイルよりも優先します"
        await pilot.press("escape")
        editor = await open_editor(app, pilot, "a2a.retention_days")
        await pilot.press("ctrl+a", "ctrl+k", *"-3")
        await until(lambda: error(editor).startswith("値は 0 から "), error(editor))


async def test_lists_and_tables_are_edited_as_lines(files: Files) -> None:
    files.write(files.user, {"tui": {"agents": ["claude"]}})
    async with running(three_agents(), settings_files=files) as (app, pilot):
        editor = await open_editor(app, pilot, "tui.agents")
        assert editor.query_one("#lines", TextArea).text == "claude"
        editor.query_one("#lines", TextArea).text = "claude\n\n codex:tester@backend \n"
        await pilot.press("ctrl+s")
        await closed(app, pilot)
        editor = await open_editor(app, pilot, "tui.keys")
        editor.query_one("#lines", TextArea).text = "zoom = f11, leader Z\nzom = f12"
        await pilot.press("ctrl+s")
        await until(lambda: "names 'zom', which is not an action: did you mean 'zoom'?" in error(editor))
        editor.query_one("#lines", TextArea).text = "zoom f11"
        await pilot.press("ctrl+s")
        await until(lambda: "'zoom f11' must have the form NAME = VALUE" in error(editor))
        editor.query_one("#lines", TextArea).text = "zoom = f11, leader Z\nlayout ="
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
        await pilot.press("escape", "escape")
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
        await until(lambda: row(app, "tui.theme") == "▌ Colours are nord ▾ • tui.theme your file")
        assert "main" in row(app, "tui.layout")
        assert text_of(app).count("▲ ~/.synapse/settings.json") == 1, "a problem is told once"
        await until(lambda: f"your file nord {why}" in str(app.screen.query_one("#about", Static).render()))


async def test_an_untrusted_file_of_the_project_is_told_and_stays_untrusted(files: Files) -> None:
    files.write(files.shared, {"tui": {"layout": "grid"}}, trusted=False)
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_screen(app, pilot)
        assert "tabs" in row(app, "tui.layout")
        await open_editor(app, pilot, "tui.layout")
        await pilot.press("tab", "down")
        await until(lambda: ".synapse/settings.json has no effect until you trust it" in obstacle(app))
        await pilot.press("enter")
        assert "has no effect until you trust it" in await closed(app, pilot)
        assert files().load().text("tui.layout") == "tabs"


async def test_a_change_from_outside_is_shown_and_is_not_lost(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        screen = await open_screen(app, pilot)
        files.write(files.user, {"tui": {"sidebar": True}})
        await until(lambda: "changed elsewhere just now: tui.sidebar" in said(app))
        assert "open" in row(app, "tui.sidebar")
        editor = await open_editor(app, pilot, "tui.layout")
        files.write(files.user, {"tui": {"sidebar": True, "layout": "main"}})
        await until(lambda: editor._entry is not None and editor._entry.value == "main")
        await pilot.press("enter")
        await until(lambda: not screen.editing and not screen.busy)
        assert files.read(files.user) == {"tui": {"sidebar": True, "layout": "tabs"}}


async def test_of_the_files_to_keep_a_setting_in_the_end_is_shown(files: Files) -> None:
    async with running(three_agents(), settings_files=files) as (app, pilot):
        await open_screen(app, pilot)
        await until(lambda: "settings.local.json" in text_of(app))
        for name in ("/settings.json", "settings.local.json"):
            assert name in text_of(app)
        kept = [row.rstrip() for row in text_of(app).splitlines() if "/settings." in row]
        assert not [row for row in kept if row.endswith("…")]
