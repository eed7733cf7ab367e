"""The main screen: tabs, panes, sidebar and status bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from synapse_tui.core.model import AgentState, Task, TaskState
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.settings.keymap import Keymap
from synapse_tui.system.language import tr
from synapse_tui.widgets.bars import StatusBar, TabBar
from synapse_tui.widgets.board import Board
from synapse_tui.widgets.conversation import ConversationModel, ConversationPane, ConversationView
from synapse_tui.widgets.deck import TITLE_ROWS, Deck, TooSmall, is_too_small
from synapse_tui.widgets.error_handling import FaultTolerant
from synapse_tui.widgets.key_hints import WhichKey
from synapse_tui.widgets.lock_panel import Look
from synapse_tui.widgets.painting import WholeCompositor
from synapse_tui.widgets.pane import LastMessage, Pane
from synapse_tui.widgets.sidebar import Sidebar, in_order
from synapse_tui.widgets.terminal_view import SETTLE_TIME, TerminalView
from synapse_tui.widgets.text import one_line, plural
from synapse_tui.widgets.tour import TourPanel
from synapse_tui.widgets.views import AgentView, Numbers, expected_view, progress, view_agents

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.core.model import AgentSpec
    from synapse_tui.host.host import Host

SIDEBAR_NARROW = 104  # terminal width below which the sidebar is narrower
SIDEBAR_WHOLE = 76  # terminal width below which it takes the place of the panes
SETTLE_SECONDS = 2 * SETTLE_TIME  # after a change of the deck, until all views have resized their sessions
HELD_SECONDS = 5.0  # how often to check how long messages have been held
CLOCK_SECONDS = 1.0  # how often the times in the titles of visible panes are updated
TITLE_SECONDS = 0.25  # minimum interval between updates for titles
REFRESH_SECONDS = 0.1  # minimum interval between updates for messages
QUESTION_WAITS = tr("a question is waiting: pause typing for a second to see it")
ViewFactory = Callable[["AgentSession"], Widget]


class MainScreen(FaultTolerant, Screen[None], inherit_bindings=False):
    """Keeps the widgets in sync with the host's agents and tasks.

    The focus is either in the pane of the active agent or outside all panes.
    """

    AUTO_FOCUS: ClassVar[str | None] = ""
    ALLOW_SELECT: ClassVar[bool] = False

    class Resumed(Message):
        """Keys can be delivered: no dialog is open, or the active agent has its pane."""

    agents: var[list[AgentView]] = var(list, init=False)  # in tab order
    active: var[str] = var("", init=False)  # receives the keys; unchanged while something else is focused
    # whether a dialog has the keys, or what may follow the leader, or the arranging of panes
    covered: var[bool] = var(False, init=False)

    def __init__(
        self, host: Host, *, make_view: ViewFactory, layout: str, keymap: Keymap, sidebar: bool
    ) -> None:
        super().__init__()
        self._compositor = WholeCompositor()
        self._host = host
        self._make_view = make_view
        self._rang: frozenset[str] = frozenset()
        self._settling: Timer | None = None
        self._holding: Timer | None = None
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._showing: Timer | None = None
        self._below = False  # whether a dialog is open
        self.show_news = Throttle(self.set_timer, self._show_now)
        self._reasons: Sequence[str] = ()
        self._expected: Sequence[AgentSpec] = ()
        self.not_started: Sequence[AgentView] = ()  # agents that failed, each with a row on the board
        self._there: set[str] = set()  # agents that existed before the expected ones
        self._question_waits = False
        self.begins = True  # until the questions are answered on which it depends what is opened first
        self.answers: Mapping[str, int] = {}  # cards over the composers, by agent id
        self.names: dict[str, str] = {}  # of all agents, also of those that were closed
        self.numbers = Numbers()
        self._seen_ends: set[str] = set()  # exited agents that the user has looked at since
        self.tab_bar = TabBar()
        self.deck = Deck()
        self.deck.set_reactive(Deck.arrangement, layout)
        self.conversations = ConversationTabs(host, self.deck)
        self.sidebar = Sidebar()
        self.conversations.clock = lambda: self.sidebar.clock()  # noqa: PLW0108 - the clock may be replaced
        self.sidebar.names = self.names
        self.sidebar.locks.look = self._look_at_locks
        self.board = Board()
        self.which_key = WhichKey()
        self.tour_panel = TourPanel()
        self.status_bar = StatusBar()
        self.use_keys(keymap)
        self.set_class(sidebar, "-sidebar")

    def compose(self) -> ComposeResult:
        yield self.tab_bar
        with Horizontal(id="middle"):
            yield self.deck
            yield self.sidebar
        yield self.board
        yield self.tour_panel
        yield self.status_bar
        yield self.which_key
        yield TooSmall()

    def on_mount(self) -> None:
        self.tab_bar.project = one_line(self._host.project.name)
        self.set_interval(CLOCK_SECONDS, self._tell_time)
        self.show_reasons(())
        for name in ("notice", "shrunk_by"):
            self.watch(self.status_bar, name, self._show_notice_on_board)
        self.watch(self.status_bar, "shrunk_by", self._show_shrunk_by)
        self.watch(self.status_bar, "arranging", self._show_covered)

    def _show_notice_on_board(self) -> None:
        # most of the row is left to the hints
        notice = self.status_bar.notice_pieces(self.size.width * 2 // 5)
        self.board.show_notice([*notice, *self.status_bar.shrunk_pieces()])

    def _show_shrunk_by(self, name: str) -> None:
        self.query_one(TooSmall).shrunk_by = name

    def keys_here(self) -> Place | None:
        return PLACES["arrange"] if self.status_bar.arranging else None

    def on_screen_suspend(self) -> None:
        self._below = True
        self._show_covered()

    def on_screen_resume(self) -> None:
        self._below = False
        self._show_covered()
        self.settle()
        self.show_agents()  # what was covered is looked at again
        self.post_message(self.Resumed())

    def _show_covered(self) -> None:
        menu = self.which_key.has_class("-pending")
        self.status_bar.leading = menu and not self.which_key.card  # else Esc lets that go, too
        self.status_bar.covered = menu or self._below
        self.covered = self.status_bar.covered or self.status_bar.arranging
        self.sidebar.covered = self.deck.covered = self.covered
        self.board.cover(self.covered)

    def show_reasons(self, reasons: Sequence[str]) -> None:
        self._reasons = reasons
        if self._question_waits:
            self.deck.empty = "\n\n".join((*reasons, QUESTION_WAITS))
        elif self._expected:
            names = (tr(f"○ {one_line(spec.name or spec.profile)} starting") for spec in self._expected)
            self.deck.empty = "\n".join((plural(len(self._expected), "agent"), "", *names))
        elif reasons:
            self.deck.empty = "\n\n".join((*reasons, self._empty_hint))
        elif self.begins:
            self.deck.empty = ""
        else:
            self.deck.empty = self.no_agent()
        self.board.empty = self.deck.empty

    def no_agent(self) -> str:
        """Say that no agent is open, and the keys that open one."""
        opens = self.keymap.way("new_agent")
        if self._host.can_reopen:
            return tr(
                f"no agent is open: {opens} opens one, {self.keymap.way('reopen_agent')} the last one again"
            )
        if self.names:
            return tr(f"no agent is open: {opens} opens one")
        return tr(f"no agents here yet: {self._empty_hint}")

    def has_begun(self) -> None:
        self.begins = False
        self.show_reasons(self._reasons)

    def show_question_waits(self, *, waits: bool) -> None:
        if waits != self._question_waits:
            self._question_waits = waits
            self.show_reasons(self._reasons)

    @property
    def keymap(self) -> Keymap:
        """The keys in effect: an agent in focus may have some back."""
        session = self._host.agents.get(self.active)
        taken = session is None or self.board_shown or self.sidebar.has_focus_within
        return self._keymap.within("" if taken or session is None else session.agent_type)

    def use_keys(self, keymap: Keymap) -> None:
        self._keymap = keymap
        self._show_keys()
        self._empty_hint = tr(f"open one with {keymap.way('new_agent')}")
        if self.is_mounted and not self.agents:
            self.show_reasons(())

    def _show_keys(self) -> None:
        self.status_bar.keymap = self.which_key.keymap = self.keymap
        self.status_bar.beside = self.sidebar.has_focus_within

    def show_menu(self, shown: bool) -> None:
        """Show or hide what may follow the leader."""
        self.which_key.card = self.active in self.answers and not self.board_shown
        if shown != self.which_key.has_class("-pending"):
            self.which_key.set_class(shown, "-pending")
            self._show_covered()

    # Updates from the host

    async def add_agent(self, session: AgentSession) -> None:
        if self.deck.pane(session.agent_id) is None:
            pane = Pane(session.agent_id, self._make_view(session))
            self.numbers.follow([*self.numbers.given, session.agent_id])
            await self.deck.mount(pane, before=self._pane_after(session.agent_id))
        self._show_now()
        if self.active in ("", session.agent_id):  # who asked for it may have gone there before it had a pane
            self._activate(session.agent_id)
        self.deck.update_shown()
        self.settle()
        self.post_message(self.Resumed())

    def renumber(self, saved: object) -> None:
        """Give the agents the numbers that they had; what is no number of one is left out."""
        known = saved.items() if isinstance(saved, Mapping) else ()
        self.numbers = Numbers({str(each): number for each, number in known if type(number) is int})
        self.show_agents()
        self.deck.sort_children(key=lambda pane: self.numbers.given.get(getattr(pane, "agent_id", ""), 0))
        self.deck.update_shown()

    def _pane_after(self, agent_id: str) -> Pane | None:
        numbers = self.numbers.given
        after = (pane for pane in self.deck.panes if numbers.get(pane.agent_id, 0) > numbers[agent_id])
        return next(after, None)

    async def show_conversation(self, alias: str) -> None:
        is_new = self.deck.pane(alias) is None
        await self.conversations.add(alias)
        self.show_agents()
        if is_new:
            self.deck.update_shown()

    async def remove_agent(self, agent_id: str) -> None:
        ids = [agent.agent_id for agent in self.agents]
        place = ids.index(agent_id) if agent_id in ids else 0
        pane = self.deck.pane(agent_id)
        if pane is not None:
            await pane.remove()
        self._show_now()
        if self.active == agent_id:
            self.active = ""
            if self.agents:
                self._activate(self.agents[min(place, len(self.agents) - 1)].agent_id)
        self.deck.update_shown()

    def show_agents(self) -> None:
        sessions = list(self._host.agents.values())
        ended = {session.agent_id for session in sessions if session.exit is not None}
        looked_at = {self.active} if self.app.app_focus and not self.board_shown else set()
        self._seen_ends = (self._seen_ends & ended) | (looked_at & ended)
        for session in sessions:
            if session.unseen and self.in_view(session.agent_id):
                session.seen()
        unproved = {each for each in self._host.agents if self._host.safety.unproved(each)}
        aliases = [pane.agent_id for pane in self.conversations.panes]
        self.numbers.follow([*self._host.agents, *aliases])
        numbers = self.numbers.given
        hosted = view_agents(
            sessions,
            numbers=numbers,
            rang=self._rang,
            seen_ends=self._seen_ends,
            unproved=unproved,
            answers={answer: self._answers_out_of_view(answer) for answer in self.answers},
            now=self.now(),
            clock=self.sidebar.clock(),
        )
        hosted.sort(key=lambda each: each.number)
        self.agents = sorted([*hosted, *self.conversations.views(numbers)], key=lambda each: each.number)
        self.names.update((each.agent_id, each.label) for each in self.agents)
        self.tab_bar.agents = self.agents
        self._show_expected()
        self.sidebar.agents = hosted
        views = {agent.agent_id: agent for agent in self.agents}
        for pane in self.deck.panes:
            if pane.agent_id in views:
                pane.agent = views[pane.agent_id]
        self._tell_time()
        self.settle()  # the pane of an exited agent focuses another widget
        self._show_keys()
        self.status_bar.active = self.active
        self.status_bar.agents = self.agents
        self._hold_timer(held=any(agent.held for agent in hosted))
        self.board.look()

    def in_view(self, agent_id: str) -> bool:
        """Whether the user looks at the agent's pane, with or without the focus."""
        if not self.app.app_focus or self.app.screen is not self or self.board_shown:
            return False
        # a new pane is not hidden yet, so it is not asked
        return self.deck.pane(agent_id) in self.deck.tiles(self.deck.size)

    def _answers_out_of_view(self, agent_id: str) -> int:
        pane = self.deck.pane(agent_id)
        in_view = pane is not None and pane.display and not self.board_shown
        return 0 if in_view else self.answers.get(agent_id, 0)

    def _tell_time(self) -> None:
        now = self.sidebar.clock()
        for pane in self.deck.panes:
            if pane.display:
                pane.tell_time(now)

    def expect(self, specs: Sequence[AgentSpec]) -> None:
        self._expected = specs
        self._there = set(self._host.agents)
        self._show_expected()

    def _show_expected(self) -> None:
        left = list(self._expected)
        for agent_id, session in self._host.agents.items():
            same = [spec for spec in left if (spec.profile, spec.name) == (session.agent_type, session.name)]
            if agent_id not in self._there and same:
                left.remove(same[0])
        numbers = self.numbers.free(len(left))
        self.tab_bar.expected = [expected_view(spec, each) for spec, each in zip(left, numbers, strict=True)]
        self.status_bar.progress = progress(self.agents, len(left))
        if not self.deck.panes:
            self.show_reasons(self._reasons)

    def _hold_timer(self, *, held: bool) -> None:
        """Refresh periodically while messages are held, since no event reports a long hold."""
        if held and self._holding is None:
            self._holding = self.set_interval(HELD_SECONDS, self.show_agents)
        elif not held and self._holding is not None:
            self._holding.stop()
            self._holding = None

    def show_agents_soon(self) -> None:
        if self._showing is None:
            self._showing = self.set_timer(TITLE_SECONDS, self._show_agents_now)

    def _show_agents_now(self) -> None:
        self._showing = None
        self.show_agents()

    def show_tasks(self) -> None:
        tasks = self._host.tasks
        self.sidebar.listing = in_order(tasks, self._host.agents.values())

    def _show_now(self) -> None:
        self.show_tasks()
        self.show_agents()

    def show_peers(self) -> None:
        others = [each for each in self._host.addresses() if each.agent_id not in self._host.agents]
        self.sidebar.peers = [address for address in others if not address.external]
        self.sidebar.externals = [
            self.conversations.picture(each.agent_id) for each in others if each.external
        ]

    def show_delivery(self, agent_id: str, delivery: LastMessage | None) -> None:
        pane = self.deck.pane(agent_id)
        if pane is not None:
            pane.delivery = delivery

    def ring(self, agent_id: str) -> None:
        if agent_id != self.active or not self.app.app_focus:
            self._rang |= {agent_id}
            self.show_agents()

    # Focus

    def settle(self) -> None:
        """Focus the active agent unless the sidebar has the focus; safe to call at any time.

        Hiding or removing a widget, or a late event, must never send the keys to another agent.
        """
        if not self.app.app_focus or self.has_class("-too-small"):
            return
        if self.focused is None or _pane_of(self.focused) is not None:
            pane = self.active_pane
            if self.board_shown:
                super().set_focus(self.board)
            elif pane is None:
                super().set_focus(None)
            elif self.focused is not pane.target:
                pane.take_focus()

    def set_focus(
        self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False
    ) -> None:
        """Focus a widget; if it is in a pane, that pane's agent becomes active immediately."""
        pane = _pane_of(widget)
        if pane is not None:
            if from_app_focus:  # Textual remembers an older focus
                pane = self.active_pane or pane
            elif self.may_become_active(pane.agent_id):
                self.active = pane.agent_id
            widget = self.board if self.board_shown else pane.target
        super().set_focus(widget, scroll_visible, from_app_focus)

    def _reset_focus(self, widget: Widget, avoiding: list[Widget] | None = None) -> None:
        if self.focused is not widget:
            return
        if self.board_shown:
            super().set_focus(self.board)
            return
        pane = self.active_pane
        too_small = self.has_class("-too-small")
        if pane is None or too_small or pane.target in (avoiding or ()) or not pane.is_attached:
            super().set_focus(None)
        else:
            pane.take_focus()

    @property
    def board_shown(self) -> bool:
        return self.has_class("-board")

    def show_board(self) -> None:
        self.add_class("-board")
        self.remove_class("-sidebar")
        super().set_focus(self.board)
        self.board.display = True
        self.board.begin(self.active)

    def leave_board(self) -> None:
        if self.board_shown:
            self.remove_class("-board")
            self.board.end()
            self.board.display = False
            super().set_focus(None)
            self.back_to_pane()
            self.show_agents()
            self.post_message(self.Resumed())

    def back_to_pane(self) -> None:
        pane = self.active_pane
        if pane is not None:
            pane.take_focus()

    def did_not_start(self, row_id: str) -> bool:
        return any(each.agent_id == row_id for each in self.not_started)

    def find(self, agent_id: str) -> AgentView | None:
        return next((agent for agent in self.agents if agent.agent_id == agent_id), None)

    @property
    def active_pane(self) -> Pane | None:
        return self.deck.pane(self.active)

    def may_become_active(self, agent_id: str) -> bool:
        return agent_id in self._host.agents or self._host.externals.has(agent_id)

    @property
    def expects_pane(self) -> bool:
        return self.active in self._host.agents and self.active_pane is None

    def go_to(self, agent_id: str) -> None:
        self.leave_board()
        self._activate(agent_id)

    def _activate(self, agent_id: str) -> None:
        self.active = agent_id
        pane = self.deck.pane(agent_id)
        if pane is not None:
            pane.take_focus()

    def _clear_tooltip(self) -> None:
        """Skip the work if there is no tooltip: Textual calls this for every key."""
        if self._tooltip_widget is not None:
            super()._clear_tooltip()

    def step(self, by: int) -> None:
        if self.agents:
            ids = [agent.agent_id for agent in self.agents]
            place = ids.index(self.active) if self.active in ids else -by
            self.go_to(ids[(place + by) % len(ids)])

    def watch_active(self, active: str) -> None:
        self._rang -= {active}
        self.conversations.seen(active)
        self.deck.active = active
        self.tab_bar.active = active
        self.sidebar.active = active
        self.show_scroll_keys()
        self.show_agents()

    def show_scroll_keys(self) -> None:
        pane = self.deck.pane(self.active)
        mode = pane.view.scroll_mode if pane is not None and isinstance(pane.view, TerminalView) else None
        self.status_bar.scrolling = mode.hints if mode is not None else ()

    def press_scroll_key(self, key: str) -> None:
        pane = self.deck.pane(self.active)
        if pane is not None and isinstance(pane.view, TerminalView) and pane.view.scroll_mode is not None:
            pane.view.press(key)

    def on_descendant_focus(self) -> None:
        self.show_agents()

    # Sidebar and size

    def toggle_sidebar(self) -> None:
        """Show the sidebar, then the board, then neither."""
        if self.board_shown:
            self.leave_board()
        elif not self.has_class("-sidebar"):
            self.add_class("-sidebar")
            self.sidebar.enter()
        elif not self.sidebar.has_focus_within:
            self.sidebar.enter()
        else:
            self.show_board()

    @property
    def _look_at_locks(self) -> Look | None:
        return self._host.safety.locks if self._host.safety.enabled else None

    def follow_file_safety(self) -> None:
        self.sidebar.show_locks(self._look_at_locks)

    def enter_locks(self) -> None:
        self.add_class("-sidebar")
        self.sidebar.locks.enter()

    def on_sidebar_left(self) -> None:
        if self.has_class("-whole"):
            self.remove_class("-sidebar")
        self.back_to_pane()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < SIDEBAR_NARROW, "-narrow")
        self.set_class(event.size.width < SIDEBAR_WHOLE, "-whole")
        self.tour_panel.fit(event.size.height)
        was_small = self.has_class("-too-small")
        self.set_class(is_too_small(event.size.width, event.size.height), "-too-small")
        if was_small and not self.has_class("-too-small"):
            self.call_after_refresh(self.back_to_pane)

    def on_deck_rearranged(self) -> None:
        self.status_bar.alone, self.status_bar.zoomed = self.deck.alone, self.deck.zoomed
        self.status_bar.check()
        if self.answers or any(agent.unseen for agent in self.agents):
            self.show_agents_soon()
        if self._settling is None:
            self._settling = self.set_timer(SETTLE_SECONDS, self._resize_hidden)
        else:
            self._settling.reset()

    def _resize_hidden(self) -> None:
        """Resize the sessions of hidden panes: in the tabs layout, each will fill the deck when shown."""
        self._settling = None
        width, height = self.deck.size
        lines = height - TITLE_ROWS
        if self.has_class("-too-small") or self.deck.arrangement != "tabs" or width < 2 or lines < 2:
            return
        for pane in self.deck.panes:
            session = self._host.agents.get(pane.agent_id)
            if session is None or session.exit is not None or pane.display:
                continue
            if (session.terminal.columns, session.terminal.lines) != (width, lines):
                session.resize(width, lines)

    def on_sidebar_agent_chosen(self, event: Sidebar.AgentChosen) -> None:
        self.go_to(event.agent_id)
        if self.has_class("-whole"):
            self.remove_class("-sidebar")


def view_state(main: MainScreen) -> dict[str, object]:
    return {
        **main.deck.state(),
        "active": main.active,
        "numbers": main.numbers.given,
        "sidebar": main.has_class("-sidebar"),
        "board": main.board_shown,
    }


def restore_view(main: MainScreen, state: Mapping[str, Any]) -> None:
    main.deck.restore(state)
    main.renumber(state.get("numbers"))
    known = {agent.agent_id for agent in main.agents}
    active = str(state.get("active", ""))
    main.set_class(bool(state.get("sidebar")), "-sidebar")
    if active in known:
        main.go_to(active)
    main.deck.zoomed = bool(state.get("zoomed")) and active in known
    if state.get("board"):
        main.show_board()


def _pane_of(widget: Widget | None) -> Pane | None:
    if widget is None:
        return None
    return next((node for node in widget.ancestors_with_self if isinstance(node, Pane)), None)


class ConversationTabs:
    """Keeps the tabs of external agents in sync with their conversations."""

    def __init__(self, host: Host, deck: Deck) -> None:
        self._host = host
        self._deck = deck
        self._unseen: set[str] = set()  # agents that have answered since the user last looked
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.clock: Callable[[], float] = time.monotonic

    @property
    def panes(self) -> list[ConversationPane]:
        return [pane for pane in self._deck.panes if isinstance(pane, ConversationPane)]

    def _now(self) -> datetime:
        return self.now()

    def wanted(self, alias: str) -> bool:
        conversation = self._host.externals.conversation(alias)
        return conversation is not None and conversation.opened and self._host.externals.has(alias)

    async def add(self, alias: str) -> None:
        if self._deck.pane(alias) is None:
            await self._deck.mount(ConversationPane(alias, ConversationView(alias, now=self._now)))
        self.show(alias)

    def show(self, alias: str) -> None:
        pane = self._deck.pane(alias)
        if isinstance(pane, ConversationPane):
            pane.talk.model = self.picture(alias)

    def answered(self, task: Task, *, looked_at: bool) -> bool:
        """Record that an external task has stopped; return whether to notify the user."""
        rests = task.state.at_rest
        if rests and not looked_at and task.state is not TaskState.CANCELED:
            self._unseen.add(task.target)
            return task.state is TaskState.INPUT_REQUIRED
        return False

    def seen(self, alias: str) -> None:
        self._unseen.discard(alias)

    def views(self, numbers: Mapping[str, int]) -> list[AgentView]:
        return [self._view(pane.agent_id, numbers[pane.agent_id]) for pane in self.panes]

    def picture(self, alias: str) -> ConversationModel:
        externals = self._host.externals
        agents = self._host.agents.values()
        labels = {each.agent_id: one_line(each.name or each.agent_type) for each in agents}
        conversation = externals.conversation(alias)
        known = externals.has(alias)
        agent = externals.get(alias) if known else None
        return ConversationModel(
            alias,
            name=agent.name if agent is not None else alias,
            protocol=agent.protocol if agent is not None else "",
            entries=conversation.entries if conversation is not None else (),
            tasks=conversation.tasks if conversation is not None else (),
            labels=labels,
            known=known,
        )

    def _view(self, alias: str, number: int) -> AgentView:
        picture = self.picture(alias)
        state, detail = picture.state
        last = max((task.updated_at for task in picture.tasks), default=None)
        return AgentView(
            agent_id=alias,
            number=number,
            label=alias,
            agent_type="external",
            state=state,
            detail=detail,
            since=self.clock() - (self.now() - last).total_seconds() if last is not None else 0.0,
            unseen=alias in self._unseen and state is AgentState.READY,
            title=f"{picture.name} · {picture.protocol}",
            external=True,
        )


class Throttle:
    """Redraws immediately, or after a short delay if it has just done so.

    A burst of messages causes hundreds of changes a second. Redrawing for each would delay the keys, which
    wait in the same queue.
    """

    def __init__(
        self, set_timer: Callable[[float, Callable[[], None]], object], draw: Callable[[], None]
    ) -> None:
        self._set_timer = set_timer
        self._draw = draw
        self._resting = False
        self._more = False

    def __call__(self) -> None:
        self._more = self._resting
        if not self._resting:
            self._resting = True
            self._set_timer(REFRESH_SECONDS, self._rested)
            self._draw()

    def _rested(self) -> None:
        self._resting = False
        if self._more:
            self()
