"""Teams in the application: opening one, after consent where it comes with the project, and saving one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.widgets import Input

from synapse_tui.system.language import tr
from synapse_tui.system.paths import tilde

from .dialog import Form, Pick, label
from .new_agent import NewAgentActions
from .questions import QuestionQueue, TrustQuestion
from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.teams.files import Team, Teams


class TeamActions:
    def __init__(self, app: Shell, questions: QuestionQueue, new_agents: NewAgentActions) -> None:
        self._app = app
        self._host = app.host
        self._questions = questions
        self._new_agents = new_agents

    def _teams(self) -> Teams:
        from synapse_tui.agents.teams.files import Teams  # noqa: PLC0415 - YAML is slow to import

        return Teams(self._host.project, self._host.paths)

    def action_open_team(self, name: str = "") -> None:
        """Open a team, or ask which one."""
        self._app.spawn(self._open(name) if name else self._choose())

    async def _choose(self) -> None:
        names = await asyncio.to_thread(lambda: self._teams().names())
        self._app.ask(
            Pick(tr("Open a team"), dict(zip(names, names, strict=True)), ""), self.action_open_team
        )

    async def _open(self, name: str) -> None:
        team = await asyncio.to_thread(lambda: self._teams().find(name))
        if not team.untrusted:
            self._start(team)
            return

        def answered(trusted: bool | None) -> None:
            if trusted:
                self._app.spawn(self._trust(team))

        self._questions.ask(lambda: TrustQuestion(team.untrusted), answered)

    async def _trust(self, team: Team) -> None:
        await asyncio.to_thread(lambda: self._teams().trust(team))
        self._start(team)

    def _start(self, team: Team) -> None:
        self._new_agents.open_soon(team.agents, team.layout)

    def action_save_team(self) -> None:
        async def save(name: str) -> tuple[str, list[str]]:
            specs = [agent.present_spec for agent in self._host.agents.values() if agent.exit is None]
            layout = str(self._app.main.deck.state().get("layout", ""))

            def write() -> tuple[str, list[str]]:
                from synapse_tui.agents.teams.files import nameable, team_text  # noqa: PLC0415 - YAML is slow to import

                teams = self._teams()
                wanted = nameable(specs)
                text = team_text(wanted, layout, self._host.project, os.environ)
                path = tilde(str(teams.save(name, text)))
                teams.trust(teams.find(name))
                return path, [spec.name or spec.profile for spec in specs if spec not in wanted]

            return await asyncio.to_thread(write)

        def saved(result: tuple[str, list[str]]) -> None:
            path, others = result
            if others:
                names = ", ".join(others)
                self._app.notice(f"saved as {path} without {names}: a team names profiles only", "warning")
            elif self._app.is_demo:
                self._app.notice(f"saved as {path}, until the demo ends")
            else:
                self._app.notice(f"saved as {path}")

        self._app.ask(SaveTeam(save), saved)


class SaveTeam(Form[tuple[str, list[str]]]):
    """Asks for the name of a team; closes with the path of its file and the agents that it cannot name."""

    VERB: ClassVar[str] = "Save"
    TITLE_TEXT: ClassVar[str] = "Save these agents as a team"
    SUBTITLE: ClassVar[str] = "Enter saves · Esc cancels"

    def __init__(self, save: Callable[[str], Awaitable[tuple[str, list[str]]]]) -> None:
        super().__init__()
        self._save = save

    def body(self) -> ComposeResult:
        yield label(tr("Name; its file is .synapse/teams/NAME.yaml"))
        yield Input(id="name", compact=True)

    def submit(self) -> None:
        name = self.value("name")
        self.attempt(lambda: self._save(name))
