"""The Textual application: handles the host's events and calls its methods; does no I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual import events, on
from textual.driver import Driver
from textual.geometry import Offset
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from synapse_tui.core.events import Event, SettingsChanged
from synapse_tui.core.model import DEMO_AGENTS, AgentSpec
from synapse_tui.messages.mention import MentionInterceptor
from synapse_tui.settings.keymap import Keymap
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.ui.screens.agents import AgentActions
from synapse_tui.ui.screens.answers import Answers
from synapse_tui.ui.screens.appearance import Appearance
from synapse_tui.ui.screens.application import ApplicationActions
from synapse_tui.ui.screens.attention import Attention, is_quiet
from synapse_tui.ui.screens.board import BoardActions
from synapse_tui.ui.screens.changes import ChangesActions
from synapse_tui.ui.screens.demo import Demo
from synapse_tui.ui.screens.dialog import Dialog
from synapse_tui.ui.screens.event_reader import EventReader
from synapse_tui.ui.screens.externals import ExternalActions
from synapse_tui.ui.screens.file_locks import LockActions
from synapse_tui.ui.screens.history import HistoryActions
from synapse_tui.ui.screens.keyboard import AppKeyboard
from synapse_tui.ui.screens.main import MainScreen, restore_view
from synapse_tui.ui.screens.messages import MessageActions
from synapse_tui.ui.screens.new_agent import NewAgentActions
from synapse_tui.ui.screens.panes import PaneActions
from synapse_tui.ui.screens.questions import QuestionQueue, RestoreOffer, RestoreQuestion
from synapse_tui.ui.screens.settings import SettingsActions
from synapse_tui.ui.screens.shell import TOAST_SECONDS, Guide, SessionControls, Shell
from synapse_tui.ui.screens.teams import TeamActions
from synapse_tui.ui.screens.tour import Tour
from synapse_tui.widgets.appearance import plainest
from synapse_tui.widgets.bars import SCROLL_KEY
from synapse_tui.widgets.conversation import ConversationLog, ConversationView
from synapse_tui.widgets.driver.input_events import OuterTerminalChanged, TerminalText, TerminalTooLarge
from synapse_tui.widgets.driver.link import TerminalLink
from synapse_tui.widgets.driver.synapse_driver import SynapseDriver
from synapse_tui.widgets.error_handling import FaultTolerant
from synapse_tui.widgets.key_hints import WhichKey
from synapse_tui.widgets.lock_panel import LockPanel
from synapse_tui.widgets.pane import Pane
from synapse_tui.widgets.pane_keys import Interceptor
from synapse_tui.widgets.segment_bar import SegmentBar
from synapse_tui.widgets.sidebar import Sidebar
from synapse_tui.widgets.terminal_view import TerminalView
from synapse_tui.widgets.text import plural
from synapse_tui.widgets.tour import TourKeys

from .themes import variable_defaults

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.host.host import Host
    from synapse_tui.settings import Settings
    from synapse_tui.settings.files import SettingsFiles

KEYS = frozenset({"tui.leader", "tui.keys"})
FILE_SAFETY = "env.SYNAPSE_FILE_SAFETY_ENABLED"
LOOKED_AT = events.Key | events.Paste | events.MouseDown | events.MouseUp  # input that `Keyboard` may queue
INPUT_SECONDS = 0.002  # of input in a row before everything else has its turn
_TABS = {"new": "new_agent", "previous": "previous_agent", "next": "next_agent"}
_PANES = {
    "close": "close_agent",
    "restart": "restart_agent",
    "why": "explain_state",
    "watch": "watch_agent",
    "last": "last_message",
}
_CONVERSATIONS = {"card": "external_card", "tasks": "external_tasks", "new": "new_external"}


def read_keymap(settings: Settings, profiles: Collection[str], leader: str | None = None) -> Keymap:
    """Read the key bindings from the settings; `leader` overrides the configured one."""
    table = settings.table("tui.keys")
    bindings = {name: [str(key) for key in keys] for name, keys in table.items() if isinstance(keys, list)}
    keymap = Keymap.of(leader or settings.text("tui.leader"), bindings)
    unknown = next((profile for profile in keymap.profiles if profile not in profiles), "")
    return replace(keymap, problem=f"no profile '{unknown}'") if unknown else keymap


class PaneView(FaultTolerant, TerminalView):
    pass


class SynapseApp(Shell):
    """Shows the agents of a host.

    Args:
        host: Started and stopped by the caller.
        specs: Agents to open at startup. Without any, the launcher opens unless agents are running.
        defaults: More agents to open, unless a lost workspace is restored.
        driver_class: None uses Textual's default driver.
        layout: Chosen by the user; empty for that of the settings, or the board if there are many agents.
        leader: Overrides the settings.
        sidebar: Overrides the settings.
        theme: a value of the setting `tui.theme`; None follows the setting and the terminal.
        make_view: Creates the terminal widget of a session.
        trust: Trusts and loads the files in `host.profiles.untrusted`; None disables it.
        read_again: Reloads the project's files; None disables it.
        settings_files: Returns the settings files; None makes the settings read-only.
        session: The session that outlives its terminals; None if the application ends with its terminal.
        view: A saved view (`view_state`), which takes precedence over `layout`.
        guide: What plays with `specs` once they are open: the tour, or the demo.
        restore: A lost workspace to offer before `specs` are opened.
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
        event: Event

    def __init__(  # noqa: PLR0913 - each has a default
        self,
        host: Host,
        *,
        specs: Sequence[AgentSpec] = (),
        defaults: Sequence[AgentSpec] = (),
        layout: str = "",
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
        guide: Guide = "",
    ) -> None:
        super().__init__(driver_class)
        self.host = host
        self.settings_files = settings_files
        self.session = session
        self._specs = list(specs)
        self._defaults = list(defaults)
        self._view = view
        self._restore = restore
        self.unanswered = restore  # the offer, until the person has answered it
        self.guide = guide
        self._gave_way = 0.0
        self._board_first = not layout and view is None and host.settings.is_default("tui.layout")
        self._unsubscribe: Callable[[], None] = lambda: None
        self.main = MainScreen(
            host,
            make_view=make_view or self._make_view,
            layout=layout or host.settings.text("tui.layout"),
            keymap=read_keymap(host.settings, host.profiles.profiles, leader),
            sidebar=host.settings.flag("tui.sidebar") if sidebar is None else sidebar,
        )
        self.attention = Attention(
            mode=self._notification_mode,
            bell=self.bell,
            notify=self.notify_outside,
            clock=monotonic,
            later=self.set_timer,
        )
        self.questions = QuestionQueue(self)
        self.keyboard = AppKeyboard(self, self.questions)
        self.appearance = Appearance(self, theme)
        self.messages = MessageActions(self, self.questions)
        self.agents = AgentActions(self)
        self.new_agents = NewAgentActions(self, self.keyboard)
        self.tour = Tour(self, self.messages, self.new_agents)
        self.answers = Answers(self, self.messages)
        self.panes = PaneActions(self)
        self.keyboard.guides = (self.panes, self.answers, self.tour)
        self.externals = ExternalActions(self, self.messages)
        self.locks = LockActions(self, self.questions)
        self.settings = SettingsActions(self, self.appearance)
        self.application = ApplicationActions(
            self,
            questions=self.questions,
            agents=self.agents,
            messages=self.messages,
            new_agents=self.new_agents,
            trust=trust,
            read_again=read_again,
        )
        for feature in (
            self.keyboard,
            self.appearance,
            self.messages,
            self.answers,
            self.agents,
            self.new_agents,
            self.tour,
            self.externals,
            self.locks,
            self.settings,
            self.application,
            BoardActions(self),
            HistoryActions(self, self.messages),
            ChangesActions(self),
            TeamActions(self, self.questions, self.new_agents),
            self.panes,
        ):
            self.add_actions(feature)
        self._reader = EventReader(
            self,
            appearance=self.appearance,
            attention=self.attention,
            messages=self.messages,
            answers=self.answers,
            locks=self.locks,
        )

    def _make_view(self, session: AgentSession) -> PaneView:
        mentions: Interceptor = MentionInterceptor(
            addresses=self.messages.addresses,
            sender=session.agent_id,
            clock=monotonic,
            types={name: profile.receives for name, profile in self.host.profiles.profiles.items()},
        )
        view = PaneView(session, interceptor=mentions)
        view.mention.find = self.main.find
        return view

    # Lifecycle

    def get_default_screen(self) -> MainScreen:
        return self.main

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def on_mount(self) -> None:
        self._unsubscribe = self.host.events.subscribe(self._received)
        self.screen_change_signal.subscribe(self, lambda _screen: self.check_notices())
        if isinstance(self._driver, SynapseDriver):
            self._show_shrunk(self._driver)
        if self._restore is None and not self.host.profiles.untrusted:  # otherwise a question comes first
            self.main.expect([*self._specs, *self._defaults])
        self.call_after_refresh(self._begin)

    def _received(self, event: Event) -> None:
        self.post_message(self.HostEvent(event))

    def on_unmount(self) -> None:
        self._unsubscribe()

    async def _begin(self) -> None:
        self.host.load_servers()
        await self._reader.show_all()
        if self._view is not None:
            restore_view(self.main, self._view)
            self.new_agents.show_not_started(self._view.get("not_started"))
        self._show_board_first(len(self.host.agents))
        restores_at_once = self._restore is not None and not self._restore.ask
        if restores_at_once:
            self._open_first()  # without waiting for an answer to the trust question
        if self.application.has_untrusted:
            self.application.ask_trust((lambda: None) if restores_at_once else self._open_first)
        elif not restores_at_once:
            self._open_first()
        if self.guide == "tour":
            self.tour.begin()
        elif self.guide == "demo":
            self.spawn(Demo(self).play())
        self.begun = True

    def _open_first(self) -> None:
        if self.keymap.problem:
            self.notice(f"tui.keys: {self.keymap.problem}", "warning")
        if broken := {problem.path for problem in self.host.profiles.problems}:
            shows = tr(f"{self.keymap.way('problems')} shows why")
            self.notice(f"profile files could not be read: {len(broken)}; {shows}", "warning")
        if self._restore is not None:
            self._ask_restore(self._restore)
        else:
            self._open_specs()

    def _ask_restore(self, offer: RestoreOffer) -> None:
        def decided() -> None:
            self._restore = None  # agents opened from now on are not part of the restore
            self.main.has_begun()

        def answered(wanted: bool | None) -> None:
            self.unanswered = None
            if wanted:
                opening = self.application.restore(offer, self._specs, decided)
                self.spawn(self.keyboard.expecting(opening))
            else:
                decided()
                offer.forget()
                self._open_specs()

        if offer.ask:
            history = self.host.settings.flag("env.SYNAPSE_HISTORY_ENABLED")
            self.questions.ask(lambda: RestoreQuestion(offer, history=history), answered)
        else:
            answered(True)

    @property
    def requested(self) -> tuple[list[AgentSpec], list[AgentSpec]]:
        """The agents to open at the start: those that were asked for, and the defaults."""
        return self._specs, self._defaults

    def _open_specs(self) -> None:
        self.main.has_begun()
        if self._specs or self._defaults:
            self._open_all(self._specs, self._defaults)
        elif not self.host.agents:
            self.new_agents.launch()

    def _open_all(self, specs: Sequence[AgentSpec], defaults: Sequence[AgentSpec]) -> None:
        if tuple(defaults) == DEMO_AGENTS and self.tour.wanted:
            self.tour.begin()
        self.main.expect([*specs, *defaults])
        self._show_board_first(len(self.host.agents) + len(specs) + len(defaults))
        self.new_agents.open_soon([*specs, *defaults])

    def _show_board_first(self, agents: int) -> None:
        """Show the board at the start if there are many agents and nothing else was chosen."""
        many = self.host.settings.number("tui.board")
        if self._board_first and agents:
            self._board_first = False
            if 0 < many <= agents:
                self.main.show_board()

    def arrange(self, layout: str) -> None:
        """Show the panes in a layout that the user has chosen."""
        self._board_first = False
        self.main.leave_board()
        self.main.deck.use(layout)

    def open_agents(self, specs: Sequence[AgentSpec], defaults: Sequence[AgentSpec] = ()) -> None:
        """Open agents alongside the running ones and focus the first of them.

        If a lost workspace is being offered, they are opened after the answer.
        """
        if self._restore is not None:
            self._specs.extend(specs)
            self._defaults.extend(defaults)
        else:
            self._open_all(specs, defaults)

    # Events of the host

    async def on_synapse_app_host_event(self, message: HostEvent) -> None:
        try:
            if isinstance(message.event, SettingsChanged):
                self._follow_settings(frozenset(message.event.keys))
                self._tell_of_restart(message.event.restart)
            else:
                await self._reader.read(message.event)
        except Exception as error:
            self.report(error)

    def _follow_settings(self, changed: frozenset[str]) -> None:
        settings = self.host.settings
        if changed & KEYS:
            self.use_keys(read_keymap(settings, self.host.profiles.profiles))
        if "tui.signs" in changed:
            self.appearance.follow_signs()
        if "tui.theme" in changed:
            self.appearance.follow_setting()
        if FILE_SAFETY in changed:
            self.main.follow_file_safety()
        self.main.status_bar.check()

    def _tell_of_restart(self, keys: Sequence[str]) -> None:
        """Say that these settings have no effect yet."""
        verb, names = "counts" if len(keys) == 1 else "count", ", ".join(keys)

        def values() -> list[object]:
            return [self.host.settings.values.get(key) for key in keys]

        def still() -> bool:
            return values() == wanted

        wanted = values()
        if keys and self.is_demo:
            self.notice(f"{names} cannot be changed while the demo runs", still=still)
        elif keys:
            self.notice(f"{names} {verb} here when this session is stopped and started again", still=still)

    def use_keys(self, keymap: Keymap) -> None:
        self.main.use_keys(keymap)
        self.keyboard.use(self.keymap)
        if keymap.problem:
            self.notice(f"tui.keys: {keymap.problem}", "warning")

    # Keys

    async def on_event(self, event: events.Event) -> None:
        await self._give_way(event)
        if isinstance(event, TerminalText):
            if self.keyboard.hand_over(event):
                self.questions.typed(event)
            else:
                for key in event.singly():
                    await self.on_event(key)
            return
        if isinstance(event, events.MouseMove) and not event.is_forwarded and self.keyboard.holds_move(event):
            return
        looked_at = isinstance(event, LOOKED_AT) and not event.is_forwarded
        if not looked_at:
            await super().on_event(event)
        elif not self.screen_stack:
            return  # input is dropped while the application ends
        elif not self.keyboard.takes(event):
            screen, clicked = self.screen, self.keyboard.clicked(event)
            await super().on_event(event)
            if isinstance(screen, Dialog):
                screen.pace(clicked)
            elif clicked is not None and screen is self.main:
                self.keyboard.follow_click(clicked, pressed=isinstance(event, events.MouseDown))

    async def _give_way(self, event: events.Event) -> None:
        """Let everything else have its turn while input comes faster than it is handled.

        Other events, such as a new size, are handled before the next frame is drawn.
        """
        now = monotonic()
        if isinstance(event, LOOKED_AT | TerminalText) and now - self._gave_way > INPUT_SECONDS:
            self._gave_way = now  # a turn that takes long is followed by the next key alone
            await asyncio.sleep(0)

    async def on_dialog_opened(self) -> None:
        await self.keyboard.give_dialog()

    async def on_main_screen_resumed(self) -> None:
        """After a dialog closes, send the agent the keys typed since."""
        await self.keyboard.give_main()
        self.questions.open_next()

    # The mouse

    def _clicked(self, action_id: str, *arguments: str) -> None:
        if action_id != "leader":
            self.keyboard.show_leader(pending=False)
        self.perform(action_id, *arguments)

    @on(SegmentBar.Pressed)
    def _bar_pressed(self, event: SegmentBar.Pressed) -> None:
        target = event.target
        if isinstance(event.bar, TourKeys):
            self.tour.press(target)
        elif target.startswith(SCROLL_KEY):
            self.main.press_scroll_key(target.removeprefix(SCROLL_KEY))
        elif event.bar is not self.main.tab_bar:
            if target != "notice":
                self._clicked(target)
        elif target in _TABS:
            self._clicked(_TABS[target])
        else:
            self.main.go_to(target)

    def on_which_key_chosen(self, event: WhichKey.Chosen) -> None:
        self._clicked(event.action_id)

    def on_pane_asked(self, event: Pane.Asked) -> None:
        about = event.task_id if event.command == "show" else event.agent_id
        self._clicked(_PANES.get(event.command, event.command), about)

    def on_sidebar_peer_chosen(self, event: Sidebar.PeerChosen) -> None:
        self._clicked("compose", event.address)

    def on_sidebar_external_chosen(self, event: Sidebar.ExternalChosen) -> None:
        self._clicked(event.command, event.alias)

    def on_sidebar_message_chosen(self, event: Sidebar.MessageChosen) -> None:
        self._clicked(event.command, event.task_id)

    def on_lock_panel_chosen(self, event: LockPanel.Chosen) -> None:
        self._clicked(event.command, event.file)

    # Panes

    def on_terminal_view_mentioned(self, message: TerminalView.Mentioned) -> None:
        pane, mention = self.pane_of(message.view), message.mention
        if pane is not None:
            send = self.messages.send_mention if mention.targets else self.messages.keep_mention
            send(pane.agent_id, mention.address, mention.text, mention.priority)

    def on_terminal_view_status_changed(self, message: TerminalView.StatusChanged) -> None:
        pane = self.pane_of(message.view)
        if pane is not None:
            pane.scrolled = message.status
            self.main.show_scroll_keys()

    def on_terminal_view_link_clicked(self, message: TerminalView.LinkClicked) -> None:
        """Copy a link instead of opening it, since the user may be on another machine."""
        self.copy_to_clipboard(message.link)
        self.notice(f"copied {message.link}")

    @on(TerminalView.Copied)
    @on(ConversationLog.Copied)
    def _copied(self, message: TerminalView.Copied | ConversationLog.Copied) -> None:
        self.notice(f"copied {plural(len(message.text), 'character')}")

    def on_conversation_view_sent(self, message: ConversationView.Sent) -> None:
        self.externals.send(message.view, message.text)

    def on_conversation_view_asked(self, message: ConversationView.Asked) -> None:
        self.perform(_CONVERSATIONS.get(message.command, "cancel_external"), message.alias)

    # The terminal

    @property
    def cursor_position(self) -> Offset:
        """Where the terminal shows what an input method composes."""
        focused = self.focused if self.screen_stack else None
        if isinstance(focused, Input):  # at the end of its text, Textual counts one cell too many
            return focused.cursor_screen_offset - (focused.cursor_at_end, 0)
        return self._cursor_position

    @cursor_position.setter
    def cursor_position(self, position: Offset) -> None:
        self._cursor_position = position

    def _notification_mode(self) -> str:
        settings = self.host.settings
        if is_quiet(settings.text("tui.quiet_hours"), datetime.now().astimezone().time()):
            return "off"
        mode = settings.text("tui.notifications")
        if mode != "auto":
            return mode
        return "desktop" if isinstance(self._driver, SynapseDriver) and self._driver.can_notify else "bell"

    def notify_outside(self, title: str, text: str) -> None:
        if isinstance(self._driver, SynapseDriver):
            self._driver.notify(title, text)

    def terminal_resized(self) -> None:
        """Handle a new terminal size (SIGWINCH); called by the owner of the signal."""
        if isinstance(self._driver, SynapseDriver):
            self._driver.resized()
            self._show_shrunk(self._driver)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if isinstance(self._driver, SynapseDriver):
            self._driver.drawn(screen._compositor.size)

    def _show_shrunk(self, driver: SynapseDriver) -> None:
        """Say whose size it is, if another terminal has room for more."""
        names = [name or tr("another terminal") for name in driver.shrunk_by]
        self.main.status_bar.shrunk_by = ", ".join(names)

    def on_outer_terminal_changed(self, message: OuterTerminalChanged) -> None:
        self.appearance.set_terminal(message.outer)

    def on_terminal_too_large(self, message: TerminalTooLarge) -> None:
        (columns, lines), (width, height) = message.claimed, message.used
        text = tr(f"the terminal claims {columns} columns and {lines} lines; {width} and {height} are used")
        self.call_after_refresh(self.notice, text, "warning")

    def attach(self, link: TerminalLink) -> None:
        """Show the application on a terminal, besides those that show it already."""
        self.end_selections()
        if isinstance(self._driver, SynapseDriver):
            self.appearance.another_terminal(plainest([each.environ for each in (*self._driver.links, link)]))
            self._driver.attach(link)
            self._show_shrunk(self._driver)
        self.post_message(events.AppFocus())

    @property
    def acting(self) -> TerminalLink | None:
        """The terminal at which was typed or clicked last."""
        return self._driver.acting if isinstance(self._driver, SynapseDriver) else None

    def release(self, link: TerminalLink | None = None) -> None:
        """Leave a terminal, still open; after the last, agents that finish are marked unseen."""
        driver = self._driver
        if (
            link is not None
            and isinstance(driver, SynapseDriver)
            and any(each is not link for each in driver.links)
        ):
            driver.release(link)
            self.end_selections()
            self.appearance.another_terminal(plainest([each.environ for each in driver.links]))
            self.appearance.set_terminal(driver.outer)
            self._show_shrunk(driver)
            return
        self.release_mention()
        self.end_selections()
        self.keyboard.show_leader(pending=False)
        self.main.status_bar.forget()  # whoever attaches next has not done what it says
        self.post_message(events.AppBlur())
        if isinstance(driver, SynapseDriver) and link is not None:
            driver.release(link)
        self.main.status_bar.shrunk_by = ""
