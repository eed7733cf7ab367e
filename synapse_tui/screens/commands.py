"""What the actions do: one method `do_<id>` for each action of the table, and for what is clicked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from shutil import which
from time import monotonic
from typing import TYPE_CHECKING

from textual.content import Content

from synapse_tui.errors import SynapseError
from synapse_tui.messages.recovery import kept_text
from synapse_tui.model import AgentSpec, AgentState
from synapse_tui.widgets.deck import Layout, as_layout, next_layout
from synapse_tui.widgets.text import plural

from .confirm import Confirm
from .dialog import describe
from .explain import explanation
from .externals import ExternalCommands
from .help import help_text
from .history_commands import HistoryCommands
from .interrupt import InterruptDialog
from .launcher import Find, Launcher
from .locks import LockCommands
from .new_agent import NewAgent
from .palette import Palette, offers
from .quit import Leave, Quit
from .rename import Rename
from .report import Report
from .restore import RestoreQuestion
from .session import RestoreOffer
from .settings_commands import SettingsCommands
from .trust import TrustQuestion
from .watch import WatchForm, WatchView

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp
    from synapse_tui.host import Host

    from .main import MainScreen

CONFIRM_SECONDS = 3.0
"""How long a second press confirms."""


class Commands(LockCommands, HistoryCommands, SettingsCommands, ExternalCommands):
    """Does what a person asks for; slow things run as workers, errors become notices.

    Args:
        app: Shows dialogs and notices.
        host: Does the work.
        main: The main screen.
    """

    def __init__(self, app: SynapseApp, host: Host, main: MainScreen) -> None:
        super().__init__(app, host, main)
        self.clock: Callable[[], float] = monotonic
        self.find: Find = which
        """Finds a command on PATH."""
        self._interrupt_all_until = 0.0

    def perform(self, action_id: str, agent_id: str = "", task_id: str = "") -> None:
        """Do an action.

        Args:
            action_id: Its id.
            agent_id: Agent it is about; empty for the one in focus.
            task_id: Message it is about.
        """
        about = agent_id or self.main.active
        name = self.for_external(action_id, about)
        handler: Callable[[str, str], None] = getattr(self, f"do_{name}")
        handler(about, task_id)

    # Agents

    def do_next_agent(self, _agent_id: str, _task_id: str) -> None:
        """Go to the next agent."""
        self.main.step(1)

    def do_previous_agent(self, _agent_id: str, _task_id: str) -> None:
        """Go to the agent before."""
        self.main.step(-1)

    def do_go_to_agent(self, number: str, _task_id: str) -> None:
        """Go to an agent by its number, given as text."""
        place = int(number) - 1 if number.isdigit() else -1
        if 0 <= place < len(self.main.agents):
            self.main.go_to(self.main.agents[place].agent_id)
        else:
            self.app.notice(f"there is no agent {number}", "warning")

    def do_next_waiting(self, _agent_id: str, _task_id: str) -> None:
        """Go to the next agent that needs a person."""
        agents = self.main.agents
        start = next((i for i, agent in enumerate(agents) if agent.agent_id == self.main.active), 0)
        for agent in (*agents[start + 1 :], *agents[:start]):
            if agent.needs_attention:
                self.main.go_to(agent.agent_id)
                return
        self.app.notice("no other agent needs you")

    def do_new_agent(self, _agent_id: str, _task_id: str) -> None:
        """Ask what to open."""
        profiles = list(self.host.profiles.profiles.values())
        self._ask(NewAgent(profiles, self.host.folder, self._open, find=self.find), self._opened)

    async def _open(self, spec: AgentSpec) -> str:
        columns, lines = self.main.deck.terminal_size()
        session = await self.host.open(spec, columns=columns, lines=lines)
        return session.agent_id

    def _opened(self, agent_id: str) -> None:
        self.main.go_to(agent_id)

    async def open_all(self, specs: list[AgentSpec]) -> None:
        """Open agents one after the other; one that cannot be opened is told and the others still open."""
        reasons = []
        self.main.expect(specs)
        try:
            for number, spec in enumerate(specs, 1):
                await self._drawn()
                try:
                    await self._open(spec)
                except SynapseError as error:
                    reasons.append(describe(error))
                    self.app.notice_error(error)
                    self.main.expect(specs[number:])
            await self._drawn()
        finally:
            self.main.expect(())
        self.main.show_reasons(reasons)

    async def _drawn(self) -> None:
        """Let what has changed be drawn: opening an agent keeps the event loop for a while."""
        drawn = asyncio.Event()
        if self.app.call_after_refresh(drawn.set):
            await drawn.wait()

    def do_close_agent(self, agent_id: str, _task_id: str) -> None:
        """Close an agent; ask while it works or waits, or messages wait for it."""
        agent = self.main.find(agent_id)
        if agent is None:
            return
        text = ""
        if agent.state in (AgentState.PROCESSING, AgentState.WAITING) and agent.exit is None:
            text = f"{agent.label}: {agent.state_text}\nClosing ends it; what it has not finished is lost."
        if kept := kept_text(self._waiting(agent_id)):
            text = f"{text}\n{kept}.".strip()
        if text:
            self._ask(
                Confirm(f"Close {agent.label}?", text, "Close it"),
                lambda yes: self._close(agent_id) if yes else None,
            )
        else:
            self._close(agent_id)

    def _waiting(self, *agent_ids: str) -> int:
        """How many messages wait for some agents, to be typed or to be read."""
        found = (self.host.agents.get(agent_id) for agent_id in agent_ids)
        return sum(len(session.control.every()) for session in found if session is not None)

    def _close(self, agent_id: str) -> None:
        self.run(self.host.close(agent_id))

    def do_restart_agent(self, agent_id: str, _task_id: str) -> None:
        """Start an agent anew; ask while it lives."""
        agent = self.main.find(agent_id)
        if agent is None:
            return
        if agent.exit is None:
            text = f"{agent.label}: {agent.state_text}\nRestarting ends it; it may lose its conversation."
            question = Confirm(f"Restart {agent.label}?", text, "Restart it")
            self._ask(question, lambda yes: self.run(self.host.restart(agent_id)) if yes else None)
        else:
            self.run(self.host.restart(agent_id))

    def do_rename_agent(self, agent_id: str, _task_id: str) -> None:
        """Ask for another name."""
        session = self.host.agents.get(agent_id)
        agent = self.main.find(agent_id)
        if session is not None and agent is not None:
            self._ask(Rename(agent.label, session.name, lambda name: self.host.rename(agent_id, name)))

    def do_explain_state(self, agent_id: str, _task_id: str) -> None:
        """Show why an agent is in its state."""
        session = self.host.agents.get(agent_id)
        agent = self.main.find(agent_id)
        if session is not None and agent is not None:
            self._ask(Report(f"{agent.label}: why {agent.mark().word}", explanation(session, self.today())))

    def do_watch_agent(self, agent_id: str, _task_id: str) -> None:
        """Ask how an agent is to be watched, or show the watch that is on."""
        session = self.host.agents.get(agent_id)
        agent = self.main.find(agent_id)
        if session is None or agent is None:
            return
        if session.watcher.on:
            self._ask(WatchView(agent_id, agent.label, session.watcher), self.app.notice)
        elif agent.exit is not None:
            self.app.notice(f"{agent.label} has ended", "warning")
        else:
            self._ask(WatchForm(agent.label, session.watcher), self.app.notice)

    def do_send_instructions(self, agent_id: str, _task_id: str) -> None:
        """Tell an agent anew how it reaches the others; asks first about files that are not trusted."""
        agent = self.main.find(agent_id)
        if agent is not None:
            self.run(self._read_project(lambda: self.run(self._send_instructions(agent_id, agent.label))))

    async def _send_instructions(self, agent_id: str, label: str) -> None:
        task = await self.host.instructions.send(agent_id)
        reason = f": {task.reason}" if task.reason else ""
        self.app.notice(f"{label}: instructions {task.delivery.value}{reason}")

    # Interrupts

    def do_interrupt(self, agent_id: str, _task_id: str) -> None:
        """Ask for an optional text, then interrupt."""
        agent = self.main.find(agent_id)
        if agent is None:
            return
        if agent.exit is not None:
            self.app.notice(f"{agent.label} has ended", "warning")
            return
        self._ask(InterruptDialog(self.main, agent, lambda text: self.host.interrupt(agent_id, text)))

    def do_interrupt_all(self, _agent_id: str, _task_id: str) -> None:
        """Interrupt all agents at the second press."""
        running = [agent for agent in self.main.agents if agent.exit is None and not agent.external]
        count, asking = len(running), sum(agent.asks for agent in running)
        now = self.clock()
        if not count:
            self.app.notice("no agent is running", "warning")
        elif now < self._interrupt_all_until:
            self._interrupt_all_until = 0.0
            self.run(self.host.interrupt_all())
            self.app.notice(f"interrupting {plural(count, 'agent')}", "warning")
        else:
            self._interrupt_all_until = now + CONFIRM_SECONDS
            key = self.app.keymap.way("interrupt_all")
            denied = (
                f"; what {asking} of them {'ask' if asking > 1 else 'asks'} for is denied" if asking else ""
            )
            self.app.notice(f"press {key} again to interrupt {plural(count, 'agent')}{denied}", "warning")

    # View

    def do_sidebar(self, _agent_id: str, _task_id: str) -> None:
        """Show the sidebar, go to it, hide it."""
        self.main.toggle_sidebar()

    def do_layout(self, _agent_id: str, _task_id: str) -> None:
        """Take the next layout."""
        self.set_layout(next_layout(self.main.deck.arrangement))

    def set_layout(self, layout: Layout) -> None:
        """Take a layout."""
        self.main.deck.zoomed = False
        self.main.deck.arrangement = layout
        self.app.notice(f"layout: {layout}")

    def do_zoom(self, agent_id: str, _task_id: str) -> None:
        """Give the window to one agent, or back to all."""
        self.main.go_to(agent_id)
        self.main.deck.zoomed = not self.main.deck.zoomed

    def do_main_pane(self, agent_id: str, _task_id: str) -> None:
        """Make an agent's pane the large one."""
        self.main.deck.main = agent_id
        self.main.deck.zoomed = False
        self.main.deck.arrangement = "main"

    def do_scroll(self, agent_id: str, _task_id: str) -> None:
        """Enter or leave the scroll mode of an agent's view."""
        pane = self.main.deck.pane(agent_id)
        if pane is not None:
            self.main.go_to(agent_id)
            self.app.toggle_scroll(pane.view)

    def do_live(self, agent_id: str, _task_id: str) -> None:
        """Return to the live screen."""
        pane = self.main.deck.pane(agent_id)
        if pane is not None:
            self.app.leave_scroll(pane.view)

    def do_dismiss_tip(self, _agent_id: str, _task_id: str) -> None:
        """Hide the line that says what to try."""
        self.main.tip_bar.end()

    def do_theme(self, _agent_id: str, _task_id: str) -> None:
        """Take the next colours."""
        self.app.notice(f"colours: {self.app.appearance.next_theme()}")

    # Application

    def do_leader(self, _agent_id: str, _task_id: str) -> None:
        """The leader was clicked: show what may follow, or hide it."""
        self.app.toggle_leader()

    def do_help(self, _agent_id: str, _task_id: str) -> None:
        """Show all keys."""
        self._ask(Report("Help", partial(help_text, self.app.keymap), action="help"))

    def do_palette(self, _agent_id: str, _task_id: str) -> None:
        """Open the palette."""
        self._ask(Palette(list(offers(self))), lambda offer: offer.command())

    def do_problems(self, _agent_id: str, _task_id: str) -> None:
        """Show what is wrong with profile files."""
        problems = self.host.profiles.problems
        if not problems:
            self.app.notice("all profiles are in order")
            return
        text = "\n\n".join(describe(problem) for problem in problems)
        self._ask(Report("Profile problems", Content(text)))

    def do_read_project(self, _agent_id: str, _task_id: str) -> None:
        """Read the project's files again, and ask about those that are not trusted."""
        self.run(self._read_project(lambda: self.app.notice("the project's files are read")))

    async def _read_project(self, then: Callable[[], None]) -> None:
        if await self.app.read_project():
            self.ask_trust(then)
        else:
            then()

    def do_detach(self, _agent_id: str, _task_id: str) -> None:
        """Give the terminal back; everything goes on."""
        if self.app.session is None:
            self.app.notice("this runs in the foreground: it ends with its terminal", "warning")
        else:
            self.app.session.detach()

    def do_quit(self, _agent_id: str, _task_id: str) -> None:
        """Ask, then stop all agents and leave, or leave them running."""
        live = [agent for agent in self.main.agents if agent.exit is None and not agent.external]
        kept = kept_text(self._waiting(*self.host.agents))
        if not live and not kept:
            self.app.exit()
            return
        working = sum(agent.state in (AgentState.PROCESSING, AgentState.WAITING) for agent in live)
        names = ", ".join(agent.label for agent in live)
        text = f"This stops {plural(len(live), 'agent')}: {names}." if live else "No agent runs any more."
        text += (
            f"\n{working} of them {'is' if working == 1 else 'are'} in the middle of something."
            if working
            else ""
        )
        text += f"\n{kept}." if kept else ""
        yes = f"Stop {plural(len(live), 'agent')} and quit" if live else "Quit"
        if self.app.session is None:
            self._ask(Confirm("Quit synapse-tui?", text, yes), lambda sure: self.app.exit() if sure else None)
        else:
            self._ask(Quit(text, yes), self._leave)

    def _leave(self, how: Leave) -> None:
        if how == "stop":
            self.app.exit()
        elif self.app.session is not None:
            self.app.session.detach()

    # Questions at the start

    def ask_trust(self, then: Callable[[], None]) -> None:
        """Ask about untrusted files of the project, then go on."""

        def answered(trusted: bool | None) -> None:
            if trusted:
                self.app.trust_project()
            then()

        self.app.questions.ask(lambda: TrustQuestion(self.host.profiles.untrusted), answered)

    def ask_restore(
        self, offer: RestoreOffer, beside: list[AgentSpec], otherwise: Callable[[], None]
    ) -> None:
        """Open a lost workspace again, after asking where that is wanted; otherwise begin anew.

        Args:
            offer: The workspace.
            beside: Agents that were asked for and are opened as well; more may be added meanwhile.
            otherwise: Begins anew.
        """

        def answered(wanted: bool | None) -> None:
            if wanted:
                self.run(self.app.gate.expecting(self._restore(offer, beside)))
            else:
                self.app.restore_decided()
                offer.forget()
                otherwise()

        if offer.ask:
            self.app.questions.ask(lambda: RestoreQuestion(offer), answered)
        else:
            answered(True)

    async def _restore(self, offer: RestoreOffer, beside: list[AgentSpec]) -> None:
        deck = self.main.deck
        deck.arrangement = as_layout(str(offer.view.get("layout", deck.arrangement)))
        try:
            reasons = await offer.open(deck.terminal_sizes(len(offer.agents)))
        finally:
            self.app.restore_decided()
        for reason in reasons:
            self.app.notice(reason, "error")
        self.main.show_reasons(reasons)
        if missing := offer.missing(beside):
            await self.open_all(missing)

    def launch(self) -> None:
        """Ask which agents to open."""
        profiles = self.host.profiles
        launcher = Launcher(list(profiles.profiles.values()), problems=len(profiles.problems), find=self.find)
        self.app.gate.drop()
        self._ask(launcher, lambda specs: self.run(self.app.gate.expecting(self.open_all(specs))))
