"""Dialogs by themselves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from textual.widgets import Button, Input

from synapse_tui.core.errors import SynapseError
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState
from synapse_tui.settings.actions import ACTIONS
from synapse_tui.system.trust import UntrustedFile
from synapse_tui.ui.screens.composer import recipients
from synapse_tui.ui.screens.dialog import Dialog, DialogHints
from synapse_tui.ui.screens.questions import TrustQuestion
from synapse_tui.widgets.option_lists import Choices, Menu, SearchInput
from synapse_tui.widgets.views import AgentView
from tests.ui.app_kit import LEADER, at_main, at_rest, running, text_of, three_agents, until
from tests.ui.fakes import FakeHost

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def untrusted(tmp_path: Path, content: str = "command: evil\n") -> UntrustedFile:
    return UntrustedFile(tmp_path / "evil.yaml", "0" * 64, content, changed=True)


@pytest.mark.parametrize("width", [44, 60, 66, 80])
async def test_the_hints_of_a_dialog_are_whole_and_keep_the_way_out(width):
    async with running(three_agents(), (width, 24)) as (app, pilot):
        await pilot.press(LEADER, "n")
        await pilot.pause()
        shown = text_of(app).splitlines()[-24:]
        (row,) = (each for each in shown if "Esc" in each and "profile or command" in each)
        hints = row.strip(" ▌│█▔▁").split(" · ")
        assert {hint.strip() for hint in hints} <= {
            "↑↓ profile or command",
            "Tab next field",
            "Enter opens",
            "Esc cancels",
        }
        assert hints[-1].strip() == "Esc cancels"


@pytest.mark.parametrize(
    "action",
    ["new_agent", "rename_agent", "interrupt", "name_layout", "watch_agent", "history", "add_external"],
)
async def test_the_hints_of_a_dialog_are_those_of_the_field_in_focus(action):
    async with running(three_agents()) as (app, pilot):
        app.perform(action)
        await until(lambda: isinstance(app.screen, Dialog) and app.screen.ready)
        screen: Dialog[object] = app.screen  # type: ignore[assignment]
        fields = []
        while screen.focused not in fields:
            fields.append(screen.focused)
            hints = [hint for row in screen.query(DialogHints) for hint in row.hints]
            verbs = [hint.removeprefix("Enter ") for hint in hints if hint.startswith("Enter ")]
            if isinstance(screen.focused, Button):
                assert (verbs == ["presses it"]) is (screen.focused.id != screen.default_button)
                assert not [hint for hint in hints if hint.startswith(("↑↓", "Space", "Ctrl+J"))]
            else:
                assert verbs != ["presses it"]
            if isinstance(screen.focused, Input) and not isinstance(screen.focused, SearchInput):
                assert not [hint for hint in hints if hint.startswith("↑↓")]
            assert hints[-1].startswith("Esc ")
            await pilot.press("tab")
            await pilot.pause()
        assert any(isinstance(field, Button) for field in fields)
        assert not all(isinstance(field, Button) for field in fields)


async def test_letters_choose_the_row_of_a_list_that_begins_with_them():
    async with running(three_agents()) as (app, pilot):
        await pilot.press(LEADER, "n")
        rows = app.screen.query_one("#profile", Menu)
        names = [str(option.id) for option in rows.options]
        for name in names:
            await pilot.press(*name[:3])
            await until(lambda: rows.highlighted_option is not None)
            assert rows.highlighted_option is not None
            assert (rows.highlighted_option.id or "")[:3] == name[:3]
            rows.highlighted = 0
            await pilot.press("x", "x", "x")  # begins with no row: the choice stays
            assert rows.highlighted == 0
            rows._typed_at = float("-inf")


async def test_trust_is_asked_before_agents_open():
    host = FakeHost()
    host.profiles.untrusted.append(untrusted(Path("/project"), "command: [bold]evil\x1b[2J"))
    trusted = []
    async with running(host, specs=[AgentSpec("claude")], trust=lambda: trusted.append(1)) as (app, pilot):
        assert isinstance(app.screen, TrustQuestion)
        await until(lambda: "command: [bold]evil" in text_of(app))
        assert "changed since" in text_of(app)
        assert not host.agents
        at_rest(app)
        await pilot.press("tab", "tab", "enter")
        await until(lambda: host.agents)
        assert trusted == [1]


@pytest.mark.parametrize("keys", [["escape"], ["enter"], ["tab", "tab", "tab", "enter"]])
async def test_trust_is_never_given_by_a_stray_key(tmp_path, keys):
    host = FakeHost()
    host.profiles.untrusted.append(untrusted(tmp_path))
    trusted = []
    async with running(host, specs=[AgentSpec("claude")], trust=lambda: trusted.append(1)) as (app, pilot):
        at_rest(app)
        await pilot.press(*keys)
        await until(lambda: host.agents or isinstance(app.screen, TrustQuestion))
        at_rest(app)
        await pilot.press("escape")
        await until(lambda: host.agents)
        assert not trusted


async def test_files_that_have_changed_are_asked_about_before_instructions_are_sent_again(tmp_path):
    host = three_agents()
    trusted = []

    async def read_again() -> None:
        host.profiles.untrusted[:] = [] if trusted else [untrusted(tmp_path, "Speak Japanese.")]

    async with running(host, trust=lambda: trusted.append(1), read_again=read_again) as (app, pilot):
        app.perform("send_instructions", "synapse-codex-8120")
        await until(lambda: isinstance(app.screen, TrustQuestion))
        await until(lambda: "Speak Japanese." in text_of(app))
        assert ("instruct", "synapse-codex-8120") not in host.calls
        at_rest(app)
        await pilot.press("tab", "tab", "enter")
        await until(lambda: ("instruct", "synapse-codex-8120") in host.calls)
        assert trusted == [1]
        app.perform("send_instructions", "synapse-claude-8100")
        await until(lambda: ("instruct", "synapse-claude-8100") in host.calls)
        assert at_main(app)
        app.perform("read_project")
        await until(lambda: "the project's files are reloaded" in text_of(app))


def test_recipients_are_offered_by_their_shortest_address():
    host = three_agents()
    host.add(AgentSpec("codex"))
    host.add_peer("synapse-claude-8105")
    views = {
        agent_id: AgentView(agent_id, number, agent_id, session.agent_type)
        for number, (agent_id, session) in enumerate(host.agents.items(), 1)
    }

    found = recipients(host.addresses(), views)

    assert [r.address for r in found] == [
        "claude",
        "codex-8120",
        "alice",
        "codex-8121",
        "all",
        "synapse-claude-8105",
    ]


async def test_every_action_can_be_done_in_the_smallest_terminal():
    host = three_agents()
    async with running(host, size=(40, 10)) as (app, pilot):
        for action in ACTIONS:
            app.perform(action.id, *([action.leader[0]] if action.takes_key else []))
            await until(lambda: all(worker.group != "commands" for worker in app.workers), action.id)
            text_of(app)
            await pilot.press("escape")
            await until(lambda: at_main(app), action.id)


async def test_a_dialog_that_was_left_lets_its_work_go_on():
    host = three_agents()
    gate = asyncio.Event()
    opened = host.open

    async def slow(spec, **size):
        await gate.wait()
        return await opened(spec, **size)

    host.open = slow
    async with running(host) as (app, pilot):
        app.perform("new_agent")
        await until(lambda: not at_main(app))
        await pilot.press("enter")
        await until(lambda: "one moment" in text_of(app))
        await pilot.press("escape")
        gate.set()
        await until(lambda: len(app.main.deck.panes) == 4)
        host.fail["open"] = SynapseError("too late")
        gate.clear()
        app.perform("new_agent")
        await until(lambda: not at_main(app))
        await pilot.press("enter", "escape")
        gate.set()
        await until(lambda: app.main.status_bar.notice == "too late")


async def test_every_dialog_fits_a_small_terminal():
    host = three_agents()
    task = host.message(CODEX, "word " * 400, delivery=DeliveryState.HELD, reason="you are typing " * 10)
    async with running(host, size=(80, 24)) as (app, pilot):
        for action in (
            "new_agent",
            "compose",
            "interrupt",
            "help",
            "palette",
            "rename_agent",
            "explain_state",
            "quit",
        ):
            app.perform(action)
            await until(lambda: not at_main(app))
            await pilot.pause()
            box = app.screen.query_one(".dialog")
            assert app.screen.region.contains_region(box.region), action
            for button in app.screen.query("Button"):
                assert box.region.contains_region(button.region), action
            await pilot.press("escape")
            await until(lambda: at_main(app))
        app.perform("show", task.id)
        await until(lambda: not at_main(app))
        await pilot.pause()
        for button in app.screen.query("Button"):
            assert app.screen.region.contains_region(button.region)


def test_the_application_imports_nothing_heavy():
    code = (
        "import sys, synapse_tui.ui.app; "
        "heavy = {'fastapi', 'uvicorn', 'httpx', 'sqlmodel', 'sqlalchemy', 'pydantic'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("no_color", [True, False])
async def test_the_marked_row_is_reversed_where_there_are_no_colours(no_color, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    async with running(three_agents()) as (app, pilot):
        await pilot.press(LEADER, "p")
        await until(
            lambda: app.screen.query(Choices) and app.screen.query_one(Choices).highlighted is not None
        )
        await pilot.pause()
        view = app.screen.query_one(Choices)
        marked = view.highlighted
        reversed_rows = [
            y
            for y in range(view.size.height)
            if any(s.style and s.style.reverse for s in view.render_line(y))
        ]
        assert reversed_rows == ([marked] if no_color else [])


async def test_why_this_state_goes_with_the_state():
    host = three_agents()
    now = [20.0]
    host.clock = lambda: now[0]
    host.agents[CLAUDE].become(AgentState.PROCESSING)
    async with running(host) as (app, _pilot):
        app.perform("explain_state", CLAUDE)
        await until(lambda: "◐ working  for 0.0s" in text_of(app))
        host.agents[CLAUDE].become(AgentState.READY)
        await until(lambda: "● ready  for 0.0s" in text_of(app))
        now[0] += 42
        await until(lambda: "● ready  for 42s" in text_of(app))
