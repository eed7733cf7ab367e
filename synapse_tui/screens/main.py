"""The main screen: tabs, panes, sidebar, status bar; it tells what the person asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widget import Widget

from synapse_tui.keymap import Keymap
from synapse_tui.widgets.deck import Deck, TooSmall, as_layout, is_too_small
from synapse_tui.widgets.error_handling import FaultTolerant
from synapse_tui.widgets.lock_panel import LockPanel, Look
from synapse_tui.widgets.pane import Delivery, Pane
from synapse_tui.widgets.segment_bar import SegmentBar
from synapse_tui.widgets.sidebar import Sidebar, in_order
from synapse_tui.widgets.status_bar import StatusBar, TipBar
from synapse_tui.widgets.tab_bar import TabBar
from synapse_tui.widgets.terminal_view import SETTLE_TIME, TerminalView
from synapse_tui.widgets.text import one_line, plural
from synapse_tui.widgets.views import AgentView, expected_view, progress, view_agents
from synapse_tui.widgets.which_key import WhichKey

from .hidden_sizes import resize_hidden
from .news_pace import NewsPace
from .pane_focus import PaneFocus
from .talk_panes import TalkPanes

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.host import Host
    from synapse_tui.model import AgentSpec

SIDEBAR_BESIDE = 120
"""Width of the terminal from which the sidebar stands beside the panes; below it lies over them."""
COMPOSER_ROWS = 2
"""Rows of a composer above and below its cursor that a sidebar over the panes leaves free."""
SIDEBAR_ROWS = 8
"""Least rows of such a sidebar."""
SIDEBAR_LOOK = 0.25
"""Seconds between two looks whether a composer has come under it."""
SIDEBAR_SHORT = 14
"""Rows below which it does without its keys and shows fewer agents, so that messages can be seen."""

SETTLE_SECONDS = 2 * SETTLE_TIME
"""Time after a change of the deck in which no view that was shown gives its session another size."""

QUESTION_WAITS = "a question waits: pause for a second to see it"

HELD_LOOK = 5.0
"""Seconds between two looks at how long messages are held."""

TITLE_SECONDS = 0.25
"""Least time between two looks at the agents' titles."""
ViewFactory = Callable[["AgentSession"], Widget]


class MainScreen(FaultTolerant, PaneFocus, inherit_bindings=False):
    """Keeps the widgets in step with the host's agents and tasks.

    Args:
        host: Whose agents are shown.
        make_view: Makes the terminal widget of a session.
        layout: How the panes are arranged at the start.
        keymap: The keys that hold.
        sidebar: Whether the sidebar is open at the start.
    """

    AUTO_FOCUS: ClassVar[str | None] = ""
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Asked(Message):
        """The person asked by the mouse for an action, or for something about a pane or a message."""

        action_id: str
        agent_id: str = ""
        task_id: str = ""

    class Resumed(Message):
        """Keys can be taken again: no dialog is open any more, or the agent in focus has its pane."""

    agents: var[list[AgentView]] = var(list, init=False)
    """Pictures of the agents, in the order of the tabs."""

    def __init__(
        self, host: Host, *, make_view: ViewFactory, layout: str, keymap: Keymap, sidebar: bool
    ) -> None:
        super().__init__()
        self._host = host
        self._make_view = make_view
        self._rang: frozenset[str] = frozenset()
        self._settling: Timer | None = None
        self._holding: Timer | None = None
        self._making_way: Timer | None = None
        self._line = -1
        """Row of the cursor when the sidebar over the panes was last looked at."""
        self._placed_for = -1
        """Row of the cursor that the sidebar was last placed for."""
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._showing: Timer | None = None
        self._news = NewsPace(self.set_timer, self._show_now)
        self._reasons: Sequence[str] = ()
        self._expected: Sequence[AgentSpec] = ()
        self._there: set[str] = set()
        """Agents that were there before those that are expected."""
        self._question_waits = False
        self._seen_ends: set[str] = set()
        """Agents that have ended and were looked at since."""
        self.tab_bar = TabBar()
        self.deck = Deck()
        self.deck.set_reactive(Deck.arrangement, as_layout(layout))
        self.talks = TalkPanes(host, self.deck)
        self.sidebar = Sidebar()
        self.sidebar.locks.look = self._look_at_locks
        self.which_key = WhichKey()
        self.tip_bar = TipBar()
        self.status_bar = StatusBar()
        self.show_keys(keymap)
        self.set_class(sidebar, "-sidebar")

    def compose(self) -> ComposeResult:
        """The bars, the panes between them, and what may lie over them."""
        yield self.tab_bar
        with Horizontal(id="middle"):
            yield self.deck
            yield self.sidebar
        yield self.tip_bar
        yield self.status_bar
        yield self.which_key
        yield TooSmall()

    def on_mount(self) -> None:
        """Name the project."""
        self.tab_bar.project = one_line(self._host.project.name)
        self.show_reasons(())

    def on_screen_resume(self) -> None:
        """Tell it: keys may wait."""
        self.settle()
        self.post_message(self.Resumed())

    def show_reasons(self, reasons: Sequence[str]) -> None:
        """Keep in the empty deck why no agent could be opened."""
        self._reasons = reasons
        if self._question_waits:
            self.deck.empty = "\n\n".join((*reasons, QUESTION_WAITS))
        elif self._expected:
            names = (f"○ {one_line(spec.name or spec.profile)} starting" for spec in self._expected)
            self.deck.empty = "\n".join((plural(len(self._expected), "agent"), "", *names))
        elif reasons:
            self.deck.empty = "\n\n".join((*reasons, self._empty_hint))
        else:
            self.deck.empty = f"no agents here yet: {self._empty_hint}"

    def show_question_waits(self, *, waits: bool) -> None:
        """Say in the empty deck that a question opens once nobody types."""
        if waits != self._question_waits:
            self._question_waits = waits
            self.show_reasons(self._reasons)

    def show_keys(self, keymap: Keymap) -> None:
        """Show which keys hold."""
        self.status_bar.keymap = keymap
        self.tip_bar.keymap = keymap
        self.which_key.keymap = keymap
        self._empty_hint = f"{keymap.way('new_agent')} opens one"
        if self.is_mounted and not self.agents:
            self.show_reasons(())

    # What the host tells

    async def add_agent(self, session: AgentSession) -> None:
        """Add a pane for an agent and go to it when none is in focus."""
        if self.deck.pane(session.agent_id) is None:
            pane = Pane(session.agent_id, self._make_view(session))
            await self.deck.mount(pane, before=next(iter(self.talks.panes), None))
        self.show_agents()
        if not self.active:
            self.go_to(session.agent_id)
        self.deck.update_shown()
        self.settle()
        self.post_message(self.Resumed())

    async def show_talk(self, alias: str) -> None:
        """Open the tab of an external agent, or show in it what is new."""
        is_new = self.deck.pane(alias) is None
        await self.talks.add(alias)
        self.show_agents()
        if is_new:
            self.deck.update_shown()

    async def remove_agent(self, agent_id: str) -> None:
        """Take an agent's pane away; the one beside it gets the focus."""
        ids = [agent.agent_id for agent in self.agents]
        place = ids.index(agent_id) if agent_id in ids else 0
        pane = self.deck.pane(agent_id)
        if pane is not None:
            await pane.remove()
        self.show_agents()
        if self.active == agent_id:
            self.active = ""
            if self.agents:
                self.go_to(self.agents[min(place, len(self.agents) - 1)].agent_id)
        self.deck.update_shown()

    def show_agents(self) -> None:
        """Take new pictures of all agents and pass them on."""
        sessions = list(self._host.agents.values())
        ended = {session.agent_id for session in sessions if session.exit is not None}
        looked_at = {self.active} if self.app.app_focus else set()
        self._seen_ends = (self._seen_ends & ended) | (looked_at & ended)
        unproved = {each for each in self._host.agents if self._host.safety.unproved(each)}
        hosted = view_agents(
            sessions, rang=self._rang, seen_ends=self._seen_ends, unproved=unproved, now=self.now()
        )
        self.agents = [*hosted, *self.talks.views(len(hosted) + 1)]
        self.tab_bar.agents = self.agents
        self._show_expected()
        self.sidebar.agents = hosted
        for agent in self.agents:
            pane = self.deck.pane(agent.agent_id)
            if pane is not None:
                pane.agent = agent
        self.settle()  # an agent that has ended has another widget for the keys
        self.status_bar.active = self.active
        self.status_bar.agents = self.agents
        self._hold_timer(held=any(agent.held for agent in hosted))

    def expect(self, specs: Sequence[AgentSpec]) -> None:
        """Show at once, as starting, what is being opened and is not there yet."""
        self._expected = specs
        self._there = set(self._host.agents)
        self._show_expected()

    def _show_expected(self) -> None:
        left = list(self._expected)
        for agent_id, session in self._host.agents.items():
            same = [spec for spec in left if (spec.profile, spec.name) == (session.agent_type, session.name)]
            if agent_id not in self._there and same:
                left.remove(same[0])
        first = len(self.agents) + 1
        self.tab_bar.expected = [expected_view(spec, number) for number, spec in enumerate(left, first)]
        self.status_bar.progress = progress(self.agents, len(left))
        if not self.deck.panes:
            self.show_reasons(self._reasons)

    def _hold_timer(self, *, held: bool) -> None:
        """Look again while messages are held: nothing else happens when one is held for long."""
        if held and self._holding is None:
            self._holding = self.set_interval(HELD_LOOK, self.show_agents)
        elif not held and self._holding is not None:
            self._holding.stop()
            self._holding = None

    def show_agents_soon(self) -> None:
        """The same within a moment, for what changes often: agents turn spinners in their titles."""
        if self._showing is None:
            self._showing = self.set_timer(TITLE_SECONDS, self._show_agents_now)

    def _show_agents_now(self) -> None:
        self._showing = None
        self.show_agents()

    def show_tasks(self) -> None:
        """Pass the messages on."""
        tasks = self._host.tasks
        self.sidebar.listing = in_order(tasks, self._host.agents.values())
        self.tip_bar.wrote = self.tip_bar.wrote or bool(tasks)

    def show_news(self) -> None:
        """Show messages and agents at once, or in a moment when that was done just now."""
        self._news.show()

    def _show_now(self) -> None:
        self.show_tasks()
        self.show_agents()

    def show_peers(self) -> None:
        """Pass the agents of other processes on, and the external ones."""
        others = [each for each in self._host.addresses() if each.agent_id not in self._host.agents]
        self.sidebar.peers = [address for address in others if not address.external]
        self.sidebar.externals = [self.talks.picture(each.agent_id) for each in others if each.external]

    def show_delivery(self, agent_id: str, delivery: Delivery) -> None:
        """Show in a pane's title what became of a message sent from there."""
        pane = self.deck.pane(agent_id)
        if pane is not None:
            pane.delivery = delivery

    def ring(self, agent_id: str) -> None:
        """Mark an agent whose bell rang, unless it is looked at."""
        if agent_id != self.active or not self.app.app_focus:
            self._rang |= {agent_id}
            self.show_agents()

    # Focus

    def find(self, agent_id: str) -> AgentView | None:
        """Picture of an agent, or None."""
        return next((agent for agent in self.agents if agent.agent_id == agent_id), None)

    @property
    def active_pane(self) -> Pane | None:
        """Pane of the agent in focus, or None."""
        return self.deck.pane(self.active)

    def may_become_active(self, agent_id: str) -> bool:
        """Whether an agent is still there, here or elsewhere."""
        return agent_id in self._host.agents or self._host.externals.has(agent_id)

    @property
    def expects_pane(self) -> bool:
        """Whether the agent in focus is there and its pane not yet."""
        return self.active in self._host.agents and self.active_pane is None

    def go_to(self, agent_id: str) -> None:
        """Give the keys to an agent."""
        self.active = agent_id
        pane = self.deck.pane(agent_id)
        if pane is not None:
            pane.take_focus()

    def _clear_tooltip(self) -> None:
        """With every key: Textual looks for a tooltip, and reports that none is there, at some cost."""
        if self._tooltip_widget is not None:
            super()._clear_tooltip()

    def step(self, by: int) -> None:
        """Go so many agents on; past the end begins anew."""
        if self.agents:
            ids = [agent.agent_id for agent in self.agents]
            place = ids.index(self.active) if self.active in ids else -by
            self.go_to(ids[(place + by) % len(ids)])

    def watch_active(self, active: str) -> None:
        """Mark tab and pane; the view itself tells its session who is looked at."""
        self._rang -= {active}
        self.talks.seen(active)
        self.deck.active = active
        self.tab_bar.active = active
        self.sidebar.active = active
        self.show_agents()
        self.call_after_refresh(self._show_sidebar_again)

    def on_descendant_focus(self) -> None:
        """The view has told its session by now that it is looked at."""
        self.show_agents()

    # Sidebar and size

    def _show_sidebar(self) -> None:
        """Show the sidebar; over the panes it takes the rows above the composer in focus, or those below."""
        self.add_class("-sidebar")
        styles = self.sidebar.styles
        styles.height = styles.margin = None
        self.sidebar.remove_class("-short")
        self._placed_for = line = self._cursor_line()
        if line < 0:
            return
        if self._making_way is None:
            self._making_way = self.set_interval(SIDEBAR_LOOK, self._make_way)
        height = self.query_one("#middle").region.height
        above, below = line - COMPOSER_ROWS, height - line - 1 - COMPOSER_ROWS
        rows = max(SIDEBAR_ROWS, above, below)
        self.sidebar.set_class(rows < SIDEBAR_SHORT, "-short")
        styles.height = rows
        if below > above:
            styles.margin = (height - rows, 0, 0, 0)

    def _cursor_line(self) -> int:
        """Row of the cursor of the pane in focus; -1 without one, or where the sidebar stands beside."""
        pane = self.active_pane
        if not self.has_class("-overlay") or pane is None or not isinstance(pane.view, TerminalView):
            return -1
        middle = self.query_one("#middle").region
        if not (middle.height and pane.view.region.height):
            return -1  # not laid out yet: it is told when the panes are (`on_deck_rearranged`)
        return pane.view.region.y - middle.y + pane.view.session.terminal.cursor.y

    def _make_way(self) -> None:
        """Place the sidebar anew when the cursor of the pane that is typed into has come to rest under it."""
        if not self.has_class("-sidebar"):
            if self._making_way is not None:
                self._making_way.stop()
                self._making_way = None
            return
        if self.sidebar.has_focus_within:
            return
        before, self._line = self._line, self._cursor_line()
        if self._line < 0 or not before == self._line != self._placed_for:
            return
        row = self.query_one("#middle").region.y + self._line
        if self.sidebar.region.y <= row < self.sidebar.region.bottom:
            self._show_sidebar()

    def _show_sidebar_again(self) -> None:
        if self.has_class("-sidebar"):
            self._show_sidebar()

    def toggle_sidebar(self) -> None:
        """Show the sidebar, then go to it, then hide it."""
        if not self.has_class("-sidebar"):
            self._show_sidebar()
            self.sidebar.enter()
        elif not self.sidebar.has_focus_within:
            self.sidebar.enter()
        else:
            self.remove_class("-sidebar")
            self.back_to_pane()

    @property
    def _look_at_locks(self) -> Look | None:
        return self._host.safety.locks if self._host.safety.enabled else None

    def follow_file_safety(self) -> None:
        """Files are locked from now on, or no more."""
        self.sidebar.show_locks(self._look_at_locks)

    def enter_locks(self) -> None:
        """Show the sidebar and go to the locks in it."""
        self._show_sidebar()
        self.sidebar.locks.enter()

    def on_sidebar_left(self) -> None:
        """Back to the pane; a sidebar that lies over the panes goes away."""
        if self.has_class("-overlay"):
            self.remove_class("-sidebar")
        self.back_to_pane()

    def on_resize(self, event: events.Resize) -> None:
        """Decide what fits."""
        self.set_class(event.size.width < SIDEBAR_BESIDE, "-overlay")
        if self.has_class("-sidebar"):
            self.call_after_refresh(self._show_sidebar_again)
        was_small = self.has_class("-too-small")
        self.set_class(is_too_small(event.size.width, event.size.height), "-too-small")
        if was_small and not self.has_class("-too-small"):
            self.call_after_refresh(self.back_to_pane)

    def on_deck_rearranged(self) -> None:
        """Give panes that are not shown the size that they will have, once the views have settled."""
        self.call_after_refresh(self._show_sidebar_again)
        if self._settling is None:
            self._settling = self.set_timer(SETTLE_SECONDS, self._resize_hidden)
        else:
            self._settling.reset()

    def _resize_hidden(self) -> None:
        self._settling = None
        if not self.has_class("-too-small"):
            resize_hidden(self.deck, self._host.agents)

    # What the person asks for

    @on(SegmentBar.Pressed)
    def _bar_pressed(self, event: SegmentBar.Pressed) -> None:
        event.stop()
        if event.bar is self.tab_bar:
            self._tab_pressed(event)
        elif event.target != "notice":
            self.post_message(self.Asked(event.target))

    def _tab_pressed(self, event: SegmentBar.Pressed) -> None:
        action = {"new": "new_agent", "previous": "previous_agent", "next": "next_agent"}.get(event.target)
        if action is not None:
            self.post_message(self.Asked(action))
        elif event.button == 2:
            self.post_message(self.Asked("close_agent", event.target))
        else:
            self.go_to(event.target)

    def on_which_key_chosen(self, event: WhichKey.Chosen) -> None:
        """An entry of the leader's panel was clicked."""
        self.post_message(self.Asked(event.action_id))

    def on_pane_asked(self, event: Pane.Asked) -> None:
        """Something was clicked in a pane's frame."""
        names = {"close": "close_agent", "restart": "restart_agent", "why": "explain_state"}
        names |= {"watch": "watch_agent", "last": "last_message"}
        self.post_message(self.Asked(names.get(event.command, event.command), event.agent_id, event.task_id))

    def on_sidebar_agent_chosen(self, event: Sidebar.AgentChosen) -> None:
        """Go to the agent."""
        self.go_to(event.agent_id)
        if self.has_class("-overlay"):
            self.remove_class("-sidebar")

    def on_sidebar_peer_chosen(self, event: Sidebar.PeerChosen) -> None:
        """Write to the peer."""
        self.post_message(self.Asked("compose", event.address))

    def on_sidebar_external_chosen(self, event: Sidebar.ExternalChosen) -> None:
        """Open its tab, show its card, or ask whether to remove it."""
        self.post_message(self.Asked(event.command, event.alias))

    def on_lock_panel_chosen(self, event: LockPanel.Chosen) -> None:
        """Show the file, or ask whether to release it."""
        self.post_message(self.Asked(event.command, task_id=event.file))

    def on_sidebar_message_chosen(self, event: Sidebar.MessageChosen) -> None:
        """Show, cancel or send now."""
        self.post_message(self.Asked(event.command, task_id=event.task_id))
