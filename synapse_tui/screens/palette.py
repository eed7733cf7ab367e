"""The command palette: actions, layouts, agents to go to and to write to, found by a part of their name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.fuzzy import Matcher
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.key_names import key_label
from synapse_tui.keymap import leader_label
from synapse_tui.model import THEMES, DeliveryState
from synapse_tui.widgets.deck import LAYOUTS
from synapse_tui.widgets.option_lists import Choices, SearchInput
from synapse_tui.widgets.text import one_line, printable, shorten
from synapse_tui.widgets.views import delivery_mark

from .dialog import Dialog

if TYPE_CHECKING:
    from .commands import Commands

_LAYOUT_NAMES = {
    "tabs": "one pane at a time",
    "columns": "all side by side",
    "grid": "in rows and columns",
    "main": "one large pane and a stack beside it",
}
_THEME_NOTES = {
    "auto": "Dark or light, as the terminal is.",
    "high-contrast": "White and bright colours on black.",
    "high-contrast-light": "Black and dark colours on white.",
    "16": "The terminal's own sixteen colours.",
}
WAITING = (DeliveryState.QUEUED, DeliveryState.HELD)
MAX_WAITING = 20
"""How many waiting messages are offered."""
MESSAGE_CELLS = 40
"""How much of a message's text is shown."""
WORD_WEIGHT = 0.5
"""What a match in the further words counts against one in the title."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One line of the palette.

    Attributes:
        title: What it does.
        keys: Keys that do the same; empty for none.
        help: A sentence about it.
        words: What else finds it.
        command: Does it.
    """

    title: str
    keys: str
    help: str
    words: str
    command: Callable[[], object]


def offers(commands: Commands) -> Iterator[Offer]:
    """Everything that can be chosen at present."""
    keymap = commands.app.keymap
    leader = key_label(keymap.leader)
    for action in keymap.actions:
        if action.palette:
            keys = [key_label(key) for key in action.keys[:1]]
            keys += [f"{leader} {leader_label(action)}"] if action.leader else []
            perform = partial(commands.perform, action.id)
            yield Offer(action.title, "  ".join(keys), action.help, action.words, perform)
    for agent in commands.main.agents:
        go = partial(commands.main.go_to, agent.agent_id)
        keys_of = f"{leader} {agent.number}" if agent.number <= 9 else ""
        yield Offer(f"Go to {agent.label}", keys_of, agent.state_text, f"switch focus {agent.agent_id}", go)
    for recipient in commands.recipients():
        write = partial(commands.perform, "compose", recipient.address)
        yield Offer(f"Message to {recipient.address}", "", recipient.note, "send tell write", write)
    yield from _files(commands)
    yield from _externals(commands)
    yield from _waiting(commands)
    for theme in THEMES:
        keep = partial(commands.keep_theme, theme)
        yield Offer(f"Colours: {theme}", "", _THEME_NOTES.get(theme, ""), "theme colors appearance", keep)
    for layout in LAYOUTS:
        take = partial(commands.set_layout, layout)
        yield Offer(f"Layout: {layout}", "", _LAYOUT_NAMES[layout], "arrange tile split panes", take)


def _files(commands: Commands) -> Iterator[Offer]:
    """What can be done with files that agents write."""
    for title, action, about in (
        ("Locks", "locks", "Files that agents write now: who, since when, for how long still."),
        ("Recent file changes", "recent_changes", "Who changed which file, when, and which lines."),
    ):
        perform = partial(commands.perform, action)
        yield Offer(title, "", about, "files lock locked safety modified history release", perform)


def _externals(commands: Commands) -> Iterator[Offer]:
    """What can be done with external agents."""
    for agent in commands.host.externals.agents:
        about = one_line(f"{agent.name}, {agent.protocol}, {agent.url}")
        for title, action in (
            (f"Open @{agent.alias}", "open_external"),
            (f"Card of @{agent.alias}", "external_card"),
            (f"New conversation with @{agent.alias}", "new_external"),
            (f"Remove @{agent.alias}", "remove_external"),
        ):
            perform = partial(commands.perform, action, agent.alias)
            yield Offer(title, "", about, "external a2a talk conversation", perform)


def _waiting(commands: Commands) -> Iterator[Offer]:
    """What can be done with messages that wait."""
    listing = commands.main.sidebar.listing
    tasks = [task for task in listing.tasks if task.delivery in WAITING and not task.state.final]
    for agent in commands.main.agents:
        if any(task.target == agent.agent_id and task.delivery is DeliveryState.HELD for task in tasks):
            release = partial(commands.perform, "release_held", agent.agent_id)
            help_text = (
                "Those you held, and those from before a restart; not what may have been sent already."
            )
            yield Offer(f"Release messages to {agent.label}", "", help_text, "outbox held hold", release)
    for task in tasks[:MAX_WAITING]:
        show = partial(commands.perform, "show", "", task.id)
        text = shorten(" ".join(printable(task.text).split()), MESSAGE_CELLS)
        title = f"Waiting for {commands.label(task.target)}: {text}"
        place, mark = listing.places.get(task.id), delivery_mark(task)
        stands = f"{mark.word} #{place[0]}" if place is not None else mark.word
        about = f"{one_line(task.reason) or mark.word}. Enter: cancel, hold, release, send now."
        yield Offer(title, stands, about, "outbox cancel hold release retry", show)


def search(every: Sequence[Offer], query: str) -> list[tuple[Offer, Content]]:
    """The offers that match, the best first, with what matched made visible.

    Args:
        every: All offers.
        query: What was typed; the empty text matches all, in their own order.
    """
    if not query.strip():
        return [(offer, Content(offer.title)) for offer in every]
    matcher = Matcher(query)
    found = []
    for offer in every:
        in_title = matcher.match(offer.title)
        in_words = max((matcher.match(word) for word in offer.words.split()), default=0.0) * WORD_WEIGHT
        if in_title or in_words:
            shown = _highlight(matcher, offer.title) if in_title else Content(offer.title)
            found.append((max(in_title, in_words), offer, shown))
    found.sort(key=lambda item: -item[0])
    return [(offer, shown) for _score, offer, shown in found]


def _highlight(matcher: Matcher, title: str) -> Content:
    content = Content(title)
    for start, end, _style in matcher.highlight(title).spans:
        content = content.stylize("bold underline", start, end)
    return content


class Palette(Dialog[Offer]):
    """Leaves with the chosen offer.

    Args:
        every: What can be chosen.
    """

    TITLE_TEXT: ClassVar[str] = "Commands"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter does it · Esc leaves"
    AUTO_FOCUS = "#query"

    def __init__(self, every: Sequence[Offer]) -> None:
        super().__init__()
        self._every = every
        self._found: list[Offer] = []

    def body(self) -> ComposeResult:
        """The search, what was found, and a sentence about the marked one."""
        yield SearchInput(id="query", placeholder="a part of what you want", compact=True)
        results = Choices(id="results", markup=False, compact=True)
        results.can_focus = False
        yield results
        yield Static("", id="about", classes="faint", markup=False)

    def buttons(self) -> ComposeResult:
        """None: a click on a row is enough."""
        yield from ()

    def on_mount(self) -> None:
        """Show all."""
        self.call_after_refresh(self._find, "")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    def _find(self, query: str) -> None:
        found = search(self._every, query)
        self._found = [offer for offer, _shown in found]
        view = self.query_one("#results", OptionList)
        width = view.size.width - 2
        view.clear_options()
        view.add_options(
            [Option(_row(offer, shown, width), id=str(i)) for i, (offer, shown) in enumerate(found)]
        )
        if found:
            view.highlighted = 0
        else:
            self.query_one("#about", Static).update("nothing is called that")

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.query_one("#about", Static).update(Content(self._found[event.option_index].help))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._found[event.option_index])

    @on(Input.Submitted)
    def _submitted(self) -> None:
        view = self.query_one("#results", OptionList)
        if view.highlighted is not None and self._found:
            self.dismiss(self._found[view.highlighted])


def _row(offer: Offer, shown: Content, width: int) -> Content:
    """Title at the left, keys at the right."""
    if cell_len(offer.title) + cell_len(offer.keys) + 3 > width:
        return Content.assemble(" ", (shorten(offer.title, width - 2), "$ink"))
    gap = width - cell_len(offer.title) - cell_len(offer.keys) - 2
    return Content.assemble(" ", shown, " " * gap, (offer.keys, "$ink-muted"), " ")
