"""Teams in the application: opened, after consent where one comes with the project, and saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from synapse_tui.agents.teams.files import Teams
from synapse_tui.core.errors import PortsExhausted
from synapse_tui.core.model import AgentSpec
from synapse_tui.system.paths import UserPaths
from synapse_tui.ui.app import SynapseApp
from synapse_tui.ui.screens.dialog import Pick
from synapse_tui.ui.screens.questions import TrustQuestion
from synapse_tui.ui.screens.teams import SaveTeam
from tests.ui.app_kit import notices, running, text_of, until
from tests.ui.fakes import FakeHost

TEAM = """\
layout: columns
agents:
  - {kind: claude, name: ann, role: You write.}
  - {kind: codex, args: [--fast]}
"""


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    host = FakeHost()
    host.project = host.folder = tmp_path / "project"
    host.paths = UserPaths(tmp_path / "home")
    host.paths.home.mkdir()
    (host.project / ".synapse" / "teams").mkdir(parents=True)
    (host.project / ".synapse" / "teams" / "mine.yaml").write_text(TEAM)
    host.add(AgentSpec("gemini", name="here", role="You look."))
    return host


@asynccontextmanager
async def asked(host: FakeHost) -> AsyncIterator[tuple[SynapseApp, Pilot[None]]]:
    """An application that asks for consent to the team of the project."""
    async with running(host) as (app, pilot):
        app.perform("open_team")
        await until(lambda: isinstance(app.screen, Pick))
        for name in ("mine", "pair", "review", "swarm"):
            assert name in text_of(app)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, TrustQuestion))
        assert "You write." in text_of(app)
        assert "[--fast]" in text_of(app)
        assert len(host.agents) == 1
        yield app, pilot


async def test_a_team_of_the_project_opens_once_its_content_is_trusted(host: FakeHost) -> None:
    async with asked(host) as (app, _pilot):
        app.screen.dismiss(True)
        await until(lambda: len(host.agents) == 3)
        assert host.opened[-2:] == [
            AgentSpec("claude", "ann", host.project, role="You write."),
            AgentSpec("codex", cwd=host.project, args=("--fast",)),
        ]
        assert app.main.deck.arrangement == "columns"
        assert not Teams(host.project, host.paths).find("mine").untrusted
        app.perform("open_team", "mine")
        await until(lambda: len(host.agents) == 5)


async def test_a_team_of_which_no_agent_starts_leaves_the_layout_alone(host: FakeHost) -> None:
    async with asked(host) as (app, _pilot):
        before = app.main.deck.arrangement
        assert before != "columns"
        host.fail["open"] = PortsExhausted("no port is free in 8100-8109", "close an agent")
        app.screen.dismiss(True)
        await until(lambda: "ann, codex did not start: no port is free" in notices(app))
        assert app.main.deck.arrangement == before
        assert notices(app).count("did not start") == 1
        assert "layout" not in notices(app)


async def test_without_consent_nothing_opens(host: FakeHost) -> None:
    async with asked(host) as (app, pilot):
        app.screen.dismiss(False)
        await until(lambda: app.screen is app.main)
        await pilot.pause()
        assert len(host.agents) == 1
        assert Teams(host.project, host.paths).find("mine").untrusted


async def test_what_is_wrong_with_its_file_is_said(host: FakeHost) -> None:
    (host.project / ".synapse" / "teams" / "mine.yaml").write_text(TEAM.replace("codex", ""))
    async with running(host) as (app, _pilot):
        app.perform("open_team", "mine")
        await until(lambda: "mine.yaml:4: an agent needs a 'kind'" in notices(app))
        assert len(host.agents) == 1


async def test_the_agents_that_run_are_saved_and_nothing_is_overwritten(host: FakeHost) -> None:
    host.add(AgentSpec("codex", name="left-out", command=("./bot",)))
    async with running(host) as (app, pilot):
        for name, said in (("mine", "exists already"), ("../x", "no name of a team"), ("new", "")):
            app.perform("save_team")
            await until(lambda: isinstance(app.screen, SaveTeam))
            app.screen.query_one(Input).value = name
            await pilot.press("enter")
            if said:
                await until(lambda said=said: said in text_of(app))  # type: ignore[misc]
                await pilot.press("escape")
            await until(lambda: app.screen is app.main)
        team = Teams(host.project, host.paths).find("new")
        assert team.agents == (AgentSpec("gemini", "here", host.project, role="You look."),)
        assert not team.untrusted
        assert (host.project / ".synapse" / "teams" / "mine.yaml").read_text() == TEAM
        assert "saved as" in notices(app)
        assert "without left-out: a team names profiles only" in notices(app)


async def test_the_demo_says_that_a_team_ends_with_it(host: FakeHost) -> None:
    async with running(host, guide="demo") as (app, pilot):
        app.perform("save_team")
        await until(lambda: isinstance(app.screen, SaveTeam))
        await pilot.press(*"new", "enter")
        await until(lambda: app.main.status_bar.notice.endswith("teams/new.yaml, until the demo ends"))
