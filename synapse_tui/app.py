"""The Textual application around the panes: hears the host's events, calls its methods, does no I/O."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.widget import Widget

from .driver.events import OuterTerminalChanged, TerminalText
from .driver.link import TerminalLink
from .driver.synapse_driver import SynapseDriver
from .events import Event
from .keymap import Keymap
from .leader import Leader
from .mention import MentionInterceptor
from .model import DEMO_AGENTS, AgentSpec
from .screens.appearance import Appearance
from .screens.attention import Attention
from .screens.commands import Commands
from .screens.dialog import Dialog, describe
from .screens.events import EventReader
from .screens.key_gate import KeyGate
from .screens.main import MainScreen
from .screens.pane_messages import PaneMessages
from .screens.preferences import read_keymap
from .screens.receipts import Line
from .screens.session import RestoreOffer, SessionControls
from .screens.unasked import QuestionQueue
from .screens.view_state import restore_view
from .themes import variable_defaults
from .widgets.error_handling import ErrorGate, FaultTolerant
from .widgets.pane_keys import Interceptor
from .widgets.status_bar import Level
from .widgets.terminal_view import TerminalView

if TYPE_CHECKING:
    from .agents.session import AgentSession
    from .host import Host, Receipt
    from .settings.files import SettingsFiles

log = logging.getLogger(__name__)

TOAST_SECONDS = 5.0


class PaneView(FaultTolerant, TerminalView):
    """The terminal of an agent, which goes on when one of its handlers fails."""


class SynapseApp(FaultTolerant, PaneMessages, App[None], inherit_bindings=False):
    """Shows the agents of a host.

    Args:
        host: Whose agents are shown; the caller starts and stops it.
        specs: Agents to open at the start; with none the launcher asks, unless there are agents.
        defaults: Further ones that nobody asked for: a lost workspace takes their place.
        layout: How the panes are arranged at the start.
        driver_class: Textual driver of the terminal; None for Textual's own choice.
        leader: The leader key; None for the settings' one.
        sidebar: Whether the sidebar is open at the start; None for what the settings say.
        theme: Name of a theme; None for the one that suits the terminal.
        make_view: Makes the terminal widget of a session.
        trust: Trusts the files of `host.profiles.untrusted` and loads them; None when nobody can.
        read_again: Reads the project's files again; None when nobody can.
        settings_files: Gives the files of the settings; None when nobody may change them here.
        session: The session that outlives its terminals; None when the application ends with its terminal.
        view: What the person had arranged (`view_state`); None to begin with the layout.
        restore: A workspace that was lost and may be opened again, before `specs`; None for none.
    """

    CSS_PATH = "themes/app.tcss"
    TITLE = "synapse"
    takes_runs = True
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT: ClassVar[bool] = False
    ESCAPE_TO_MINIMIZE: ClassVar[bool] = False
    NOTIFICATION_TIMEOUT = TOAST_SECONDS

    @dataclass
    class HostEvent(Message):
        """Something happened in the host."""

        event: Event

    def __init__(  # noqa: PLR0913 - each has a default
        self,
        host: Host,
        *,
        specs: Sequence[AgentSpec] = (),
        defaults: Sequence[AgentSpec] = (),
        layout: str = "tabs",
        driver_class: type[Driver] | None = None,
        leader: str | None = None,
        sidebar: bool | None = None,
        theme: str | None = None,
        make_view: Callable[[AgentSession], Widget] | None = None,
        trust: Callable[[], None] | None = None,
        read_again: Callable[[], Awaitable[None]] | None = None,
        settings_files: Callable[[], SettingsFiles] | None = None,
        session: SessionControls | None = None,
        view: Mapping[str, object] | None = None,
        restore: RestoreOffer | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class, ansi_color=True)
        self.host = host
        self._specs = list(specs)
        self._defaults = list(defaults)
        self._trust = trust
        self._read_again = read_again
        self.settings_files = settings_files
        self.session = session
        self._view = view
        self._restore = restore
        self.errors = ErrorGate(monotonic)
        self.keymap = read_keymap(host.settings, leader)
        self.questions = QuestionQueue(self)
        self.gate = KeyGate(self, Leader(self.keymap))
        self.begun = False
        """Whether the agents that were there are shown and the first question is asked."""
        self.attention = Attention(
            mode=lambda: host.settings.text("tui.notifications"),
            bell=self.bell,
            notify=self.notify_outside,
            clock=monotonic,
            later=self.set_timer,
        )
        self.appearance = Appearance(self, lambda: host.settings.text("tui.theme"), theme)
        self.main = MainScreen(
            host,
            make_view=make_view or self._make_view,
            layout=layout,
            keymap=self.keymap,
            sidebar=host.settings.flag("tui.sidebar") if sidebar is None else sidebar,
        )
        self.commands = Commands(self, host, self.main)
        self._reader = EventReader(self, host, self.main)
        self._unsubscribe: Callable[[], None] = lambda: None

    def _make_view(self, session: AgentSession) -> PaneView:
        mentions: Interceptor = MentionInterceptor(
            addresses=self.host.addresses, sender=session.agent_id, clock=monotonic
        )
        return PaneView(session, interceptor=mentions)

    # Life

    def get_default_screen(self) -> MainScreen:
        """The main screen is the only one below the dialogs."""
        return self.main

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def on_mount(self) -> None:
        self._unsubscribe = self.host.events.subscribe(self._heard)
        if self._restore is None and not self.host.profiles.untrusted:  # else a question comes first
            self.main.expect([*self._specs, *self._defaults])
        self.call_after_refresh(self._begin)

    def _heard(self, event: Event) -> None:
        self.post_message(self.HostEvent(event))

    async def _begin(self) -> None:
        self.host.load_servers()
        await self._reader.show_all()
        if self._view is not None:
            restore_view(self.main, self._view)
        asks = bool(self.host.profiles.untrusted) and self._trust is not None
        unasked = self._restore is not None and not self._restore.ask
        if asks and not unasked:
            self.commands.ask_trust(self._open_first)
        else:
            self._open_first()  # agents that are opened again unasked do not wait for a person to come
        if asks and unasked:
            self.commands.ask_trust(lambda: None)
        self.begun = True

    def _open_first(self) -> None:
        if self.keymap.problem:
            self.notice(f"tui.keys: {self.keymap.problem}", "warning")
        problems = len(self.host.profiles.problems)
        if problems:
            shows = f"{self.keymap.way('problems')} shows why"
            self.notice(f"profile files could not be read: {problems}; {shows}", "warning")
        if self._restore is not None:
            self.commands.ask_restore(self._restore, self._specs, self._open_specs)
        else:
            self._open_specs()

    def restore_decided(self) -> None:
        """The lost workspace is open again, or was declined: agents are opened beside it from now on."""
        self._restore = None

    def _open_specs(self) -> None:
        if self._specs or self._defaults:
            self._open_all(self._specs, self._defaults)
        elif not self.host.agents:
            self.commands.launch()

    def _open_all(self, specs: Sequence[AgentSpec], defaults: Sequence[AgentSpec]) -> None:
        if tuple(defaults) == DEMO_AGENTS:
            self.main.tip_bar.begin()
        self.main.expect([*specs, *defaults])
        self.commands.run(self.gate.expecting(self.commands.open_all([*specs, *defaults])))

    def on_unmount(self) -> None:
        self._unsubscribe()

    def trust_project(self) -> None:
        if self._trust is not None:
            self._trust()

    async def read_project(self) -> bool:
        """Read the project's files again.

        Returns:
            Whether there are some that a person should be asked about.
        """
        if self._read_again is not None:
            await self._read_again()
        return bool(self.host.profiles.untrusted) and self._trust is not None

    # What the host tells

    async def on_synapse_app_host_event(self, message: HostEvent) -> None:
        try:
            await self._reader.read(message.event)
        except Exception as error:
            self.report(error)

    def follow(self, agent_id: str, receipts: Sequence[Receipt]) -> None:
        self._reader.follow(agent_id, receipts)

    def sent_from(self, agent_id: str) -> list[Line]:
        """How what was last sent from a pane stands, for each receiver."""
        return self._reader.sent_from(agent_id)

    # What the person asks for

    def use_keys(self, keymap: Keymap) -> None:
        self.keymap = keymap
        self.gate.show_leader(pending=False)
        self.gate.leader.use(keymap)
        self.main.show_keys(keymap)
        if keymap.problem:
            self.notice(f"tui.keys: {keymap.problem}", "warning")

    def on_main_screen_asked(self, message: MainScreen.Asked) -> None:
        if message.action_id != "leader":
            self.gate.show_leader(pending=False)
        self.perform(message.action_id, message.agent_id, message.task_id)

    def perform(self, action_id: str, agent_id: str = "", task_id: str = "") -> None:
        """Do an action; when it fails, the person is told and the application goes on."""
        try:
            self.commands.perform(action_id, agent_id, task_id)
        except Exception as error:
            self.report(error)

    async def on_event(self, event: events.Event) -> None:
        """Look at keys for the leader before anyone else does; keep keys for a dialog that opens."""
        if isinstance(event, TerminalText):
            if self.gate.hand_over(event):
                self.questions.typed(event)
            else:
                for key in event.singly():
                    await self.on_event(key)
            return
        looked_at = isinstance(event, events.Key | events.Paste | events.MouseDown) and not event.is_forwarded
        if not (looked_at and self.screen_stack):
            await super().on_event(event)
        elif not self.gate.takes(event):
            screen = self.screen
            await super().on_event(event)
            if isinstance(screen, Dialog) and not isinstance(event, events.MouseDown):
                screen.pace()

    async def on_dialog_opened(self) -> None:
        await self._catch_up(self.gate.for_dialog())

    async def on_main_screen_resumed(self) -> None:
        """A dialog is gone: what was typed after the key that closed it is for the agent."""
        await self.give_kept()
        self.questions.open_next()

    async def give_kept(self) -> None:
        with self.gate.giving():
            await self._catch_up(self.gate.for_main())

    async def _catch_up(self, kept: Sequence[events.Event]) -> None:
        for event in kept:
            await self.on_event(event)

    def toggle_leader(self) -> None:
        """The leader was clicked in the status bar: show what may follow, or hide it."""
        self.gate.show_leader(pending=not self.gate.leader.pending)

    def let_go(self) -> None:
        """Give the agent in focus what is held of a mention: something else takes the keys."""
        pane = self.main.active_pane
        if pane is not None and isinstance(pane.view, TerminalView):
            pane.view.give_back()

    # Notices and errors

    def notice(self, text: str, level: Level = "information", *, dialog_of: str = "") -> None:
        """Tell the person something: in the status bar, and as a toast when it is a warning or an error.

        Args:
            text: What the person should know.
            level: How bad it is.
            dialog_of: The agent whose dialog it is about; the notice goes away with it.
        """
        self.main.status_bar.show(text, level, dialog_of=dialog_of)
        if level != "information":
            self.notify(text, severity=level, timeout=TOAST_SECONDS, markup=False)

    def notice_error(self, error: Exception) -> None:
        self.notice(describe(error).replace("\n", "; "), "error")

    def report(self, error: Exception) -> None:
        """Log an error that nobody expected, and show it; before the first frame it ends the application."""
        if not self.main.is_mounted:
            super()._handle_exception(error)
        elif self.errors.passes(error):
            self.notice(f"unexpected {type(error).__name__}: {error}; the log has more", "error")

    def _handle_exception(self, error: Exception) -> None:
        self.report(error)

    def notify_outside(self, title: str, text: str) -> None:
        if isinstance(self._driver, SynapseDriver):
            self._driver.notify(title, text)

    # Terminal

    def terminal_resized(self) -> None:
        """The terminal has another size (SIGWINCH); called by whoever owns the signal."""
        driver = self._driver
        if isinstance(driver, SynapseDriver):
            driver.resized()

    def on_outer_terminal_changed(self, message: OuterTerminalChanged) -> None:
        self.appearance.terminal_told(message.outer)

    def attach(self, link: TerminalLink) -> None:
        """Show everything on a terminal; one that was attached is let go, still open.

        Args:
            link: The terminal.
        """
        self.end_selections()
        self.appearance.another_terminal(link.environ)
        if isinstance(self._driver, SynapseDriver):
            self._driver.attach(link)
        self.post_message(events.AppFocus())

    def open_agents(self, specs: Sequence[AgentSpec], defaults: Sequence[AgentSpec] = ()) -> None:
        """Open agents beside those that are there, and go to the first of them.

        While a lost workspace is offered they wait for the answer, as those of the start do.

        Args:
            specs: Agents that were asked for.
            defaults: Further ones that nobody asked for: a lost workspace takes their place.
        """
        if self._restore is not None:
            self._specs.extend(specs)
            self._defaults.extend(defaults)
            return
        self._open_all(specs, defaults)

    def release(self) -> TerminalLink | None:
        """Show nothing any more: agents that finish now have done so unseen.

        Returns:
            The terminal that was attached, still open.
        """
        self.let_go()
        self.end_selections()
        self.gate.show_leader(pending=False)
        self.post_message(events.AppBlur())
        return self._driver.release() if isinstance(self._driver, SynapseDriver) else None
