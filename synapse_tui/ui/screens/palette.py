"""The command palette: a search over actions, layouts, agents and waiting messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.fuzzy import Matcher
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.core.model import THEMES, DeliveryState
from synapse_tui.settings.keymap import Keymap, key_label, leader_label
from synapse_tui.settings.schema import words_for
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import english, tr
from synapse_tui.widgets.deck import layout_name
from synapse_tui.widgets.fit import shorten
from synapse_tui.widgets.layout import LAYOUTS
from synapse_tui.widgets.option_lists import Choices, SearchInput
from synapse_tui.widgets.states import delivery_mark
from synapse_tui.widgets.text import one_line, printable
from synapse_tui.widgets.views import WAITING

from .composer import Recipient
from .dialog import Dialog
from .shell import Shell

_LAYOUT_NAMES = {
    "tabs": tr("one pane at a time"),
    "columns": tr("all side by side"),
    "grid": tr("in rows and columns"),
    "main": tr("one large pane and a stack beside it"),
}
_THEME_NOTES = {
    "auto": tr("Dark or light, like the terminal."),
    "high-contrast": tr("White and bright colours on black."),
    "high-contrast-light": tr("Black and dark colours on white."),
    "16": tr("The terminal's own sixteen colours."),
}
_FILES = (
    (tr("Locks"), "locks", tr("Locked files: by whom, since when, and for how much longer.")),
    (tr("Recent file changes"), "recent_changes", tr("Who changed which lines of which file, and when.")),
)
_EXTERNAL = (
    (tr("Open @{}"), "open_external"),
    (tr("Card of @{}"), "external_card"),
    (tr("New conversation with @{}"), "new_external"),
    (tr("Remove @{}"), "remove_external"),
)
MAX_WAITING = 20  # maximum waiting messages offered
MESSAGE_CELLS = 40  # maximum length of a message's text
WORD_WEIGHT = 0.5  # weight of a match in the additional words, relative to the title


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One line of the palette.

    Attributes:
        action: Id of the action and its arguments.
        help: One sentence.
        words: Additional search words.
        english: The title in English, which also finds it in another language.
        keys: Shown at the right: equivalent keys, or a state.
    """

    title: str
    action: tuple[str, ...]
    help: str = ""
    words: str = ""
    keys: str = ""
    english: str = ""


def offers(app: Shell, recipients: Sequence[Recipient]) -> Iterator[PaletteEntry]:
    yield from _actions(app.keymap)
    leader = key_label(app.keymap.leader)
    for agent in app.main.agents:
        key = f"{leader} {agent.number}" if agent.number <= 9 else ""
        action = ("focus_agent", agent.agent_id)
        words = f"switch focus {agent.agent_id}"
        title = f"Go to {agent.label}"
        yield PaletteEntry(tr(f"Go to {agent.label}"), action, agent.state_text, words, key, title)
    for recipient in recipients:
        title, words = f"Message to {recipient.address}", "send tell write"
        yield PaletteEntry(
            tr(f"Message to {recipient.address}"),
            ("compose", recipient.address),
            recipient.note,
            words,
            english=title,
        )
    for title, name, about in _FILES:
        words = "files lock locked safety modified history release"
        yield PaletteEntry(title, (name,), about, words, english=english(title))
    yield from _externals(app)
    yield from _waiting(app)
    for theme in THEMES:
        about = _THEME_NOTES.get(theme, "")
        title = tr(f"Colours: {words_for('tui.theme', theme)}")
        yield PaletteEntry(title, ("keep_theme", theme), about, f"{theme} theme colors appearance")
    for layout in (*LAYOUTS, *app.main.deck.layouts):
        about = _LAYOUT_NAMES.get(layout, tr("as you made it"))
        title = tr(f"Layout: {one_line(layout_name(layout))}")
        yield PaletteEntry(title, ("set_layout", layout), about, f"{layout} arrange tile split panes")
    for layout in app.main.deck.layouts:
        title, words = f"Delete the layout {one_line(layout)}", "arrange remove forget panes"
        yield PaletteEntry(
            tr(f"Delete the layout {one_line(layout_name(layout))}"),
            ("delete_layout", layout),
            words=words,
            english=title,
        )


def _actions(keymap: Keymap) -> Iterator[PaletteEntry]:
    leader = key_label(keymap.leader)
    for action in keymap.actions:
        if action.palette:
            keys = [key_label(key) for key in action.keys[:1]]
            keys += [f"{leader} {leader_label(action)}"] if action.leader else []
            shown = "  ".join(keys)
            title, about = tr(action.title), tr(action.help)
            yield PaletteEntry(title, (action.id,), about, action.words, shown, action.title)


def _externals(app: Shell) -> Iterator[PaletteEntry]:
    for agent in app.host.externals.agents:
        about = one_line(f"{agent.name}, {agent.protocol}, {agent.url}")
        for title, name in _EXTERNAL:
            words = "external a2a talk conversation"
            found = english(title).format(agent.alias)
            yield PaletteEntry(title.format(agent.alias), (name, agent.alias), about, words, english=found)


def _waiting(app: Shell) -> Iterator[PaletteEntry]:
    listing = app.main.sidebar.listing
    tasks = [task for task in listing.tasks if task.delivery in WAITING and not task.state.final]
    held = {task.target for task in tasks if task.delivery is DeliveryState.HELD}
    for agent in app.main.agents:
        if agent.agent_id in held:
            title = f"Release messages to {agent.label}"
            about = tr("Those you held, and those from before a restart; not those that may have been sent.")
            action, words = ("release_held", agent.agent_id), "outbox held hold"
            yield PaletteEntry(tr(f"Release messages to {agent.label}"), action, about, words, english=title)
    for task in tasks[:MAX_WAITING]:
        text = shorten(" ".join(printable(task.text).split()), MESSAGE_CELLS)
        title = f"Waiting for {app.label(task.target)}: {text}"
        place, mark = listing.places.get(task.id), delivery_mark(task)
        state = f"{mark.word} #{place[0]}" if place is not None else mark.word
        about = tr(f"{tr(one_line(task.reason)) or mark.word}. Enter: cancel, hold, release, send now.")
        words = "outbox cancel hold release retry"
        yield PaletteEntry(
            tr(f"Waiting for {app.label(task.target)}: {text}"),
            ("show", task.id),
            about,
            words,
            state,
            title,
        )


def search(every: Sequence[PaletteEntry], query: str) -> list[tuple[PaletteEntry, Content]]:
    """Return the matching offers, best first, with the matches highlighted."""
    if not query.strip():
        return [(offer, Content(offer.title)) for offer in every]
    matcher = Matcher(query)
    found = []
    for offer in every:
        in_title = matcher.match(offer.title)
        words = (*offer.words.split(), offer.english)
        in_words = max(matcher.match(word) for word in words) * WORD_WEIGHT
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


class Palette(Dialog[PaletteEntry]):
    TITLE_TEXT: ClassVar[str] = "Commands"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter runs it · Esc closes"
    AUTO_FOCUS = "#query"

    def __init__(self, every: Sequence[PaletteEntry]) -> None:
        super().__init__()
        self._every = every
        self._found: list[PaletteEntry] = []

    def body(self) -> ComposeResult:
        yield SearchInput(id="query", placeholder=tr("search commands"), compact=True)
        results = Choices(id="results", markup=False, compact=True)
        results.can_focus = False
        yield results
        yield Static("", id="about", classes="faint", markup=False)

    def buttons(self) -> ComposeResult:
        yield from ()

    def on_mount(self) -> None:
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
            self.query_one("#about", Static).update(tr("no matches"))

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


def _row(offer: PaletteEntry, shown: Content, width: int) -> Content:
    if cell_len(offer.title) + cell_len(offer.keys) + 3 > width:
        return Content.assemble(" ", (shorten(offer.title, width - 2), "$ink"))
    gap = width - cell_len(offer.title) - cell_len(offer.keys) - 2
    return Content.assemble(" ", shown, " " * gap, (offer.keys, "$muted"), " ")
