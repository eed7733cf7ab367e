"""The demo: a scripted person and four scripted agents, with real processes, messages, locks and dialogs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState
from synapse_tui.system.language import tr
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.tour import Runs, TourPage

from .shell import Shell
from .tour import key_press

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession

TEAM = ("mia", "leo", "ada", "tom")
PLAYERS = tuple(
    AgentSpec("dummy", name, args=("--name", name, "--part", name, "--word-delay", "45")) for name in TEAM
)
LOOK_SECONDS = 0.1
KEY_SECONDS = 0.07
READ_SECONDS = 3.5  # how long a caption can be read after what it is about has happened
MOST_SECONDS = 30.0  # how long a scene waits for what it shows; the demo goes on without it


class Demo:
    """Plays the scenes one after another; the person may type at any time."""

    def __init__(self, app: Shell) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main

    async def play(self) -> None:
        quits = tr(f"To quit: {self._app.keymap.way('quit')}")
        await self._until(lambda: not self._opening())
        missing = [name for name in TEAM if self._session(name) is None]
        if missing and not self._opening():
            about = tr(f"No agent was opened for {', '.join(missing)}.")
            self._caption(tr("The demo cannot begin"), [(about, "bold $ink")], quits)
            return
        await self._until(lambda: all(self._is(name, AgentState.READY) for name in TEAM))
        for scene in (self._team, self._message, self._locks, self._draft, self._dialog, self._overview):
            await scene()
        self._caption(tr("That was all"), [(tr("They are real processes: write to them."), "")], quits)

    # Scenes

    async def _team(self) -> None:
        about = tr("Each agent runs unmodified in its own pane. These four are scripts; yours think.")
        self._caption(tr("Four agents work on one project"), [(about, "")])
        await self._read()

    async def _message(self) -> None:
        about: Runs = [(tr("Type to the agent in focus as in a bare terminal: it gets to work, "), "")]
        self._caption(tr("They write to one another"), [*about, (tr("and asks another one."), "bold $ink")])
        await self._type("mia", tr("add totals to the cart"), enter=True)
        await self._until(lambda: self._done("mia", "leo"))
        await self._read()

    async def _locks(self) -> None:
        if not self._done("mia", "leo"):
            return
        title, locked = tr("One writer for each file"), (tr("mia has locked src/cart.py, to write it: "), "")
        self._caption(title, [locked, (tr("leo will want it too."), "bold $ink")])
        await self._type("ada", tr("@leo test the totals"), enter=True)
        await self._type("ada", tr("mention the new"))  # meanwhile, so that the next scene can begin
        if await self._until(lambda: self._done("ada", "leo")):
            self._caption(title, [locked, (tr("leo is refused."), "bold $ink")])
            await self._read()

    async def _draft(self) -> None:
        about: Runs = [
            (tr("leo wrote to ada. It is held, "), ""),
            (tr("because a draft is in her composer."), "bold $ink"),
        ]
        if not await self._until(lambda: self._delivery("leo", "ada") is DeliveryState.HELD):
            return
        self._caption(tr("Your draft is safe"), about)
        await self._read()
        self._caption(
            tr("Your draft is safe"), [(tr("The draft goes first, and the message right after it."), "")]
        )
        await self._type("ada", tr(" totals"), enter=True)
        await self._until(lambda: self._done("leo", "ada"))
        await self._read()

    async def _dialog(self) -> None:
        title, rule = tr("Only you give permission"), (tr("No message answers a dialog."), "bold $ink")
        self._caption(title, [(tr("tom is to clean up. "), ""), rule])
        await self._type("mia", tr("@tom clean up"), enter=True)
        if not await self._until(lambda: self._is("tom", AgentState.WAITING)):
            return
        self._caption(title, [(tr("tom wants to delete a folder. "), ""), rule])
        await self._read()
        for _ in TEAM:
            if self._is_active("tom"):
                break
            self._app.perform("next_waiting")
        await self._read()
        answers = self._is_active("tom") and self._is("tom", AgentState.WAITING)
        if answers:
            self._press("3")
        await self._until(lambda: self._is("tom", AgentState.READY))
        said = tr("The demo answered for you: denied.") if answers else tr("The dialog is closed.")
        self._caption(title, [(said, "bold $ink")])
        await self._read()

    async def _overview(self) -> None:
        self._caption(
            tr("All of it at a glance"), [(tr("Who works, who needs you, what became of each message."), "")]
        )
        self._app.perform("board")
        await self._read()
        await self._read()
        self._app.perform("board")

    # What scenes are made of

    def _caption(self, title: str, about: Runs, why: str = "") -> None:
        self._main.tour_panel.page = TourPage(title, [about], why)

    async def _read(self) -> None:
        await asyncio.sleep(READ_SECONDS)

    async def _until(self, condition: Callable[[], bool]) -> bool:
        """Wait for what a scene shows; False if it does not come, as when the person does something else."""
        clock = asyncio.get_running_loop().time
        end = clock() + MOST_SECONDS
        while not condition() and clock() < end:  # noqa: ASYNC110 - no event reports all of it
            await asyncio.sleep(LOOK_SECONDS)
        return condition()

    async def _type(self, name: str, text: str, *, enter: bool = False) -> None:
        session = self._session(name)
        if session is None:
            return
        self._main.go_to(session.agent_id)
        keys: Sequence[str] = [*text, "enter"] if enter else list(text)
        for key in keys:
            await asyncio.sleep(KEY_SECONDS)
            if self._main.active != session.agent_id:
                return
            self._press(key)

    def _press(self, key: str) -> None:
        view = self._app.active_view
        if isinstance(view, TerminalView):
            view.post_message(key_press(key))

    def _opening(self) -> bool:
        return bool(self._main.tab_bar.expected)

    def _session(self, name: str) -> AgentSession | None:
        return next((agent for agent in self._host.agents.values() if agent.name == name), None)

    def _is(self, name: str, state: AgentState) -> bool:
        session = self._session(name)
        return session is not None and session.report.state is state

    def _is_active(self, name: str) -> bool:
        session = self._session(name)
        return session is not None and session.agent_id == self._main.active

    def _delivery(self, sender: str, receiver: str) -> DeliveryState | None:
        """How far the last message between two agents has come."""
        names = {agent.agent_id: agent.name for agent in self._host.agents.values()}
        return next(
            (
                task.delivery
                for task in reversed(self._host.tasks)
                if (names.get(task.sender.sender_id), names.get(task.target)) == (sender, receiver)
            ),
            None,
        )

    def _done(self, sender: str, receiver: str) -> bool:
        return self._delivery(sender, receiver) is DeliveryState.DONE
