"""The sidebar: agents, messages, locks, and agents of other processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from synapse_tui.core.model import DeliveryState, Task
from synapse_tui.core.wording import since
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr
from synapse_tui.system.paths import tilde

from .agent_rows import counts, tall_row
from .board_model import BoardRow, doing
from .conversation import ConversationModel
from .error_handling import FaultTolerant
from .fit import Hint, Piece, line, shorten
from .key_hints import HINTS, SidebarKeys, keys_of, message_hints
from .lock_panel import LockPanel, Look
from .option_lists import Choices
from .segment_bar import Section, SegmentBar
from .states import delivery_mark, reason_words
from .text import answer_words, markdown_line, one_line
from .views import AgentView, party

if TYPE_CHECKING:
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.core.addresses import Address


@dataclass(frozen=True, slots=True)
class Listing:
    tasks: Sequence[Task] = ()  # most relevant last
    # by task id: position (from 1) and number of messages waiting for the same agent
    places: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))
    parked: AbstractSet[str] = frozenset()  # ids of those that wait until a person releases them


def in_order(tasks: Sequence[Task], sessions: Iterable[AgentSession]) -> Listing:
    """Sort messages: ended, in progress, then waiting in the order in which they will be typed."""
    unsent = (DeliveryState.QUEUED, DeliveryState.HELD, DeliveryState.TYPING, DeliveryState.SUBMITTING)
    waits = {task.id: task for task in tasks if not task.state.final and task.delivery in unsent}
    queue: list[Task] = []
    places: dict[str, tuple[int, int]] = {}
    parked: set[str] = set()
    for session in sessions:
        ids = [message.task.id for message in session.control.waiting()]
        parked.update(filter(session.outbox.is_parked, ids))
        waiting = [waits[task_id] for task_id in ids if task_id in waits]
        places |= {task.id: (at, len(waiting)) for at, task in enumerate(waiting, 1)}
        queue += waiting
    ended = [task for task in tasks if task.state.final]
    going = [task for task in tasks if not task.state.final and task.id not in places]
    return Listing((*ended, *going, *queue), MappingProxyType(places), parked)


_REPLY = "↳ "


def agent_row(agent: AgentView, width: int, now: float, *, active: bool, tall: bool) -> Content:
    """Render an agent: what it asks or does stands in a second line, if `tall` or if it calls."""
    what = doing(agent) or short_path(agent.cwd)
    watch = agent.watch if what != agent.watch else ""
    unread = tr(f"{agent.unread} unread") if agent.unread else ""
    row = BoardRow(
        agent, agent.mark, " · ".join(filter(None, (watch, unread, what))), max(0.0, now - agent.since)
    )
    first, second = tall_row(row, width - 1)
    edge = Piece("▌" if active else " ", "$accent")
    lines = [first, second] if tall or active or row.state.calls else [first]
    return Content("\n").join(line(width, [edge, *pieces]) for pieces in lines)


def message_row(
    task: Task, labels: Mapping[str, str], width: int, now: datetime, place: tuple[int, int] = (1, 1)
) -> Content:
    """Render a message in 2 to 4 lines: sender, target, state, age; text; reason; answer."""
    mark = delivery_mark(task)
    old = since((now - task.since).total_seconds())
    position, count = place
    tail = f"{mark.word} {old}" if count < 2 else f"{mark.word} #{position} {old}"
    room = width - 4 - cell_len(tail)
    sender, target = party(task.sender.sender_id, labels), party(task.target, labels)
    half = (room - 3) // 2
    sender = shorten(sender, max(4, half, room - 3 - cell_len(target)))
    target = shorten(target, max(4, room - cell_len(sender) - 3))
    gap = max(1, width - 3 - cell_len(sender) - 3 - cell_len(target) - cell_len(tail))
    unproved = "" if task.sender.verified else "?"
    parts: list[str | tuple[str, str]] = [
        (f" {mark.glyph} ", f"bold ${mark.colour}"),
        (sender + unproved, "bold $ink"),
        (" → ", "$faint"),
        (target, "bold $ink"),
        (" " * max(1, gap - len(unproved)), ""),
        (tail, f"${mark.colour}"),
        ("\n   " + shorten(one_line(task.text), width - 3), "$muted"),
    ]
    if reason := reason_words(task.reason, mark, labels):
        parts.append(("\n   " + shorten(reason, width - 3), f"${mark.colour}"))
    if (words := answer_words(task)) and words != task.reason:
        answer = markdown_line(words, "$ink", "$ink on $raised")
        shown = Content.assemble(("   " + _REPLY, "$ink"), *answer).truncate(width, ellipsis=True)
        return Content.assemble(*parts, ("\n", "$ink"), shown)
    return Content.assemble(*parts)


def peer_row(peer: Address, width: int) -> Content:
    name = shorten(peer.agent_id, width - 3)
    folder = (
        shorten(short_path(Path(peer.working_dir)), width - 5 - cell_len(name)) if peer.working_dir else ""
    )
    return Content.assemble("   ", (name, "$ink"), (f"  {folder}", "$faint"))


def external_row(conversation: ConversationModel, width: int) -> Content:
    mark = conversation.mark if conversation.entries else None
    alias = shorten(conversation.alias, width - 4)
    name = shorten(one_line(conversation.name), max(0, width - 6 - cell_len(alias)))
    return Content.assemble(
        (f" {mark.glyph} " if mark else "   ", f"bold ${mark.colour}" if mark else ""),
        (alias, "bold $ink"),
        (f"  {name}", "$faint"),
    )


def short_path(path: Path) -> str:
    return tilde(one_line(str(path)))


AGES_SECONDS = 1.0  # between updates of the times of agents and messages
AGENTS_SHARE = 0.5  # maximum share of the rows for agents
MAX_MESSAGES = 200
MessageCommand = Literal["show", "cancel", "hold", "send_now", "earlier", "later"]


ExternalCommand = Literal["open_external", "external_card", "remove_external"]


class CommandList(FaultTolerant, Choices):
    @dataclass
    class Commanded(Message):
        view: CommandList
        row: str
        command: str

        @property
        def control(self) -> CommandList:
            return self.view

    def action_command(self, command: str) -> None:
        option = self.highlighted_option
        if option is not None and option.id is not None:
            self.post_message(self.Commanded(self, option.id, command))


class MessageList(CommandList):
    """Messages, newest last; follows new ones until a person scrolls up or chooses one."""

    BINDINGS: ClassVar = [
        ("c,delete", "command('cancel')", "Cancel"),
        ("h", "command('hold')", "Hold or release"),
        ("shift+up", "command('earlier')", "Earlier"),
        ("shift+down", "command('later')", "Later"),
        ("s", "command('send_now')", "Send now"),
    ]
    _end = 0  # the row at which the last ones were shown

    @property
    def follows(self) -> bool:
        """Whether it shows the last ones, or did before it became lower or they became more."""
        return not self.has_focus and self.scroll_offset.y >= min(self._end, self.max_scroll_y) - 1

    def show_end(self) -> None:
        def shown() -> None:
            self._end = self.max_scroll_y  # by now a person may have scrolled up

        self._end = 0
        self.scroll_end(animate=False, on_complete=shown)

    def on_resize(self) -> None:
        if self.follows:
            self.show_end()


class ExternalList(CommandList):
    BINDINGS: ClassVar = [
        ("c", "command('external_card')", "Card"),
        ("x,delete", "command('remove_external')", "Remove"),
    ]


class Sidebar(FaultTolerant, Vertical):
    """Displays what it is given; posts the agent, message or peer that was chosen."""

    DEFAULT_CSS = """
    Sidebar {
        dock: right; width: 38; height: 1fr; background: $panel; color: $ink; display: none;
    }
    Sidebar OptionList { height: auto; scrollbar-size-vertical: 1; }
    Sidebar #agents { max-height: 50%; }
    Sidebar #messages { height: 1fr; }
    Sidebar #peers, Sidebar #externals { max-height: 6; }
    Sidebar.-no-peers #peers, Sidebar.-no-peers #peers-title { display: none; }
    Sidebar.-no-externals #externals, Sidebar.-no-externals #externals-title { display: none; }
    """
    BINDINGS: ClassVar = [("escape", "leave", "Back to the agent")]

    @dataclass
    class AgentChosen(Message):
        agent_id: str

    @dataclass
    class PeerChosen(Message):
        address: str

    @dataclass
    class ExternalChosen(Message):
        alias: str
        command: ExternalCommand

    @dataclass
    class MessageChosen(Message):
        task_id: str
        command: MessageCommand

    class Left(Message):
        pass

    agents: var[Sequence[AgentView]] = var(())
    active: var[str] = var("")
    listing: var[Listing] = var(Listing())
    peers: var[Sequence[Address]] = var(())
    externals: var[Sequence[ConversationModel]] = var(())
    covered: var[bool] = var(False, init=False)  # whether a dialog has the keys

    def __init__(
        self,
        *,
        clock: Callable[[], float] = monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id, classes="-no-peers -no-externals")
        self.names: Mapping[str, str] = {}  # of all agents, also of those that were closed
        self.clock = clock
        self.now = now
        self.locks = LockPanel(lambda: self.now())  # noqa: PLW0108 - the clock may be replaced

    def compose(self) -> ComposeResult:
        yield Section(tr("Agents"), id="agents-title")
        yield Choices(id="agents", markup=False, compact=True)
        yield Section(tr("Messages"), id="messages-title")
        yield MessageList(id="messages", markup=False, compact=True)
        yield self.locks
        yield Section(tr("External"), id="externals-title")
        yield ExternalList(id="externals", markup=False, compact=True)
        yield Section(tr("Elsewhere"), id="peers-title")
        yield Choices(id="peers", markup=False, compact=True)
        yield SidebarKeys()
        yield SidebarKeys()

    def keys_here(self) -> Place:
        return PLACES["sidebar"]

    def on_mount(self) -> None:
        self.set_interval(AGES_SECONDS, self._tick)
        self.watch(self.query_one(MessageList), "scroll_y", self._age_messages, init=False)
        for view in self.query(OptionList):  # also where the chosen row is gone, which posts no message
            self.watch(view, "highlighted", self._show_keys, init=False)

    def on_resize(self) -> None:
        self._fill_all()

    def watch_agents(self) -> None:
        self.locks.call_agents({agent.agent_id: agent.label for agent in self.agents})
        if self._shown():
            self._fill("agents", self._agent_rows())
            found = Counter(agent.mark for agent in self.agents)
            states = {state: found[state] for state in sorted(found, key=lambda state: state.rank)}
            self.query_one("#agents-title", Section).counted = counts(states, words=False)

    def _agent_rows(self) -> list[Option]:
        """Return rows by urgency, those of two lines if they leave the larger part to the messages."""
        now = self.clock()
        tall = 2 * len(self.agents) <= self.size.height * AGENTS_SHARE
        agents = sorted(self.agents, key=lambda each: (each.mark.rank, each.since, each.number))
        return [
            Option(
                agent_row(agent, self._width, now, active=agent.agent_id == self.active, tall=tall),
                id=agent.agent_id,
            )
            for agent in agents
        ]

    def watch_active(self) -> None:
        self.watch_agents()

    def watch_listing(self) -> None:
        if not self._shown():
            return
        now, places, tasks = self.now(), self.listing.places, self.listing.tasks
        rows = [
            Option(message_row(task, self.names, self._width, now, places.get(task.id, (1, 1))), id=task.id)
            for task in tasks[-MAX_MESSAGES:]
        ]
        if not rows:
            key = keys_of(self.app).way("compose")
            rows = [Option(tr(f"  to write one, type @name and\n  a message, or press {key}"), disabled=True)]
        self._fill("messages", rows)
        waiting = sum(not task.state.final for task in tasks)
        self.query_one("#messages-title", Section).count = tr(f"{waiting} open") if waiting else ""
        self._show_keys()

    def _tick(self) -> None:
        self.watch_agents()
        self._age_messages()

    def _age_messages(self) -> None:
        """Update the ages of the messages in view: the list may be long."""
        if not self._shown():
            return
        view, line = self.query_one(MessageList), 0
        now, top = self.now(), int(view.scroll_offset.y)
        tasks = {task.id: task for task in self.listing.tasks}
        for index, option in enumerate(view.options):
            height = str(option.prompt).count("\n") + 1
            if line >= top + view.size.height:
                break
            line += height
            task = tasks.get(option.id or "")
            if task is None or line <= top:
                continue
            place = self.listing.places.get(task.id, (1, 1))
            row = message_row(task, self.names, self._width, now, place)
            if row != option.prompt:
                view.replace_option_prompt_at_index(index, row)

    def watch_peers(self) -> None:
        self.set_class(not self.peers, "-no-peers")
        if self._shown():
            rows = [Option(peer_row(peer, self._width), id=peer.agent_id) for peer in self.peers]
            self._fill("peers", rows)

    def watch_externals(self) -> None:
        self.set_class(not self.externals, "-no-externals")
        if self._shown():
            rows = [
                Option(external_row(external, self._width), id=external.alias) for external in self.externals
            ]
            self._fill("externals", rows)

    def _shown(self) -> bool:
        return self.is_mounted and self.display and self._width > 0

    @property
    def _width(self) -> int:
        return self.content_size.width - 1

    def _fill_all(self) -> None:
        self.watch_agents()
        self.watch_listing()
        self.watch_peers()
        self.watch_externals()

    def _fill(self, list_id: str, rows: list[Option]) -> None:
        """Update the rows of a list, and scroll to new messages if it follows them.

        Existing rows are updated in place, so that highlight and scroll position stay.
        """
        view = self.query_one(f"#{list_id}", OptionList)
        offset = view.scroll_offset.y
        following = view if isinstance(view, MessageList) and view.follows else None
        before, after = [option.id for option in view.options], [row.id for row in rows]
        marked = view.highlighted_option.id if view.highlighted_option else None
        if before != after[: len(before)] or None in after:
            view.clear_options()
            before = []
        for index, row in enumerate(rows[: len(before)]):
            if view.get_option_at_index(index).prompt != row.prompt:
                view.replace_option_prompt_at_index(index, row.prompt)
        view.add_options(rows[len(before) :])
        if not before and marked in after and view.has_focus:
            view.highlighted = after.index(marked)
        elif following is not None and after != before:
            following.highlighted = None
            following.show_end()
        elif not before:
            view.scroll_to(y=offset, animate=False)

    def enter(self) -> None:
        target = "#messages" if self.listing.tasks else "#agents"
        # Immediately, so that the next keys do not reach an agent.
        self.screen.set_focus(self.query_one(target, OptionList), scroll_visible=False)
        self.call_after_refresh(self._mark_first)

    def _mark_first(self) -> None:
        if self.is_attached and self.display and self._width <= 0:
            # It was just shown and has no size yet, so its lists are empty.
            self.call_after_refresh(self._mark_first)
            return
        self._fill_all()
        view = self.screen.focused
        if not isinstance(view, OptionList) or view not in self.query(OptionList):
            return
        if view.id == "messages":
            # Highlight the last message unless an unfinished one is highlighted already.
            marked = view.highlighted_option.id if view.highlighted_option else None
            if marked not in {task.id for task in self.listing.tasks if not task.state.final}:
                view.highlighted = view.option_count - 1 if view.option_count else None
            self.call_after_refresh(view.scroll_to_highlight)  # rows just added have no position yet
        elif view.highlighted is None and view.option_count:
            view.highlighted = 0

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _show_keys(self) -> None:
        """Show the keys for what is chosen: a row of the list in focus, or nothing."""
        view = next((each for each in self.query(OptionList) if each.has_focus), None)
        for keys, shown in zip(self.query(SidebarKeys), self._hints(view), strict=True):
            keys.section = str(view.id) if view is not None else ""
            keys.shown = shown

    def watch_covered(self) -> None:
        self._show_keys()

    def _hints(self, view: OptionList | None) -> tuple[Sequence[Hint], Sequence[Hint]]:
        if self.covered:
            return (), ()
        if view is None:
            return [Hint(keys_of(self.app).way("sidebar"), "choose", "enter")], ()
        option = view.highlighted_option
        if option is None or option.id is None:
            return (), ()
        if view.id != "messages":
            return HINTS[str(view.id)], ()
        task = next((each for each in self.listing.tasks if each.id == option.id), None)
        if task is None:
            return (), ()
        place, parked = self.listing.places.get(task.id, (1, 1)), task.id in self.listing.parked
        return message_hints(task, place, parked=parked)

    def show_locks(self, look: Look | None) -> None:
        entered = self.locks.has_focus_within
        self.locks.follow(look)
        if look is None and entered:
            self.enter()

    @on(SegmentBar.Pressed)
    def _hint_pressed(self, event: SegmentBar.Pressed) -> None:
        event.stop()
        if isinstance(event.bar, SidebarKeys):
            section = event.bar.section
            if section:
                named = self.locks if section == self.locks.list_id else self.query_one(f"#{section}")
                # Deferred so that the list is the sender: messages sent by the sidebar would stop at it.
                named.call_later(named.run_action, event.target)
            else:
                self.enter()

    def action_leave(self) -> None:
        self.post_message(self.Left())

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = event.option.id or ""
        messages: dict[str | None, Message] = {
            "agents": self.AgentChosen(row),
            "peers": self.PeerChosen(row),
            "externals": self.ExternalChosen(row, "open_external"),
            "messages": self.MessageChosen(row, "show"),
        }
        self.post_message(messages[event.option_list.id])

    @on(CommandList.Commanded)
    def _commanded(self, event: CommandList.Commanded) -> None:
        event.stop()
        chosen = self.ExternalChosen if isinstance(event.view, ExternalList) else self.MessageChosen
        self.post_message(chosen(event.row, event.command))  # type: ignore[arg-type]

    def on_key(self, event: events.Key) -> None:
        lists = [view for view in self.query(OptionList) if view.display and _can_choose(view)]
        focused = next((i for i, view in enumerate(lists) if view.has_focus), None)
        if focused is None or event.key not in ("tab", "shift+tab"):
            return
        event.stop()
        event.prevent_default()
        target = lists[(focused + (1 if event.key == "tab" else -1)) % len(lists)]
        if target.highlighted is None:
            target.highlighted = 0
        self.screen.set_focus(target)


def _can_choose(view: OptionList) -> bool:
    return any(not option.disabled for option in view.options)
