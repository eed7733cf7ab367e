"""The message composer: receivers, text, how it is sent, and what became of the last messages."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.model import DEFAULT_PRIORITY, INTERRUPT_PRIORITY, AgentState
from synapse_tui.core.wording import since
from synapse_tui.settings.actions import PLACES, Place
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_regular
from synapse_tui.system.language import tr
from synapse_tui.widgets.fit import Hint, Piece, distinct, line, pad, shorten, width_of
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.segment_bar import HintBar, SegmentBar
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.states import delivery_mark, reason_words
from synapse_tui.widgets.text import one_line, plural
from synapse_tui.widgets.views import AgentView

from .dialog import Form, Pick

if TYPE_CHECKING:
    from datetime import datetime

    from synapse_tui.core.addresses import Address
    from synapse_tui.core.model import Task

ALL = "all"
NO_RECIPIENT = tr("enter a receiver: a name, an id, or all")


@dataclass(frozen=True, slots=True)
class Recipient:
    """A possible receiver of a message.

    Attributes:
        address: The shortest unique address, without `@`.
        agent_id: Empty for all agents.
        note: State, or the folder or endpoint of an agent elsewhere.
        agent: None for agents elsewhere.
        draft: Whether the user has written something in its own composer.
        ahead: How many messages that wait there go before one, by the priority of this.
    """

    address: str
    agent_id: str
    agent_type: str
    note: str
    agent: AgentView | None = None
    draft: bool = False
    ahead: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def outlook(self, priority: int) -> str:
        """Say what will happen to a message; empty if nothing is known of the receiver."""
        if self.agent is None or self.agent.exit is not None:
            return self.note
        state = self.agent.state
        if priority == INTERRUPT_PRIORITY and self.agent.interruptible:
            return (
                tr("is interrupted, which denies what it asks") if self.agent.asks else tr("is interrupted")
            )
        if self.agent.asks:
            return tr("holds it until you have answered it")
        if self.draft:
            return tr("holds it while you write there")
        if state is AgentState.STARTING:
            return tr("takes it when it is ready")
        ahead = self.ahead.get(priority, 0)
        if ahead and state in (AgentState.PROCESSING, AgentState.READY):
            return tr(f"takes it after {plural(ahead, 'message')}")
        if state is AgentState.PROCESSING:
            soon = priority > DEFAULT_PRIORITY
            return tr("takes it in this turn if it can") if soon else tr("takes it after this turn")
        if state is AgentState.ERROR:
            return tr("takes it when its composer is empty")
        return tr("is ready to take it") if state is AgentState.READY else tr(f"holds it: {self.note}")

    def row(self) -> Content:
        mark = self.agent.mark if self.agent is not None else None
        glyph = (f" {mark.glyph} ", f"bold ${mark.colour}") if mark else ("   ", "")
        return Content.assemble(
            " " * (LABEL - 2),
            glyph,
            (f"{pad(self.address, NAME, 'middle')} ", "bold $ink"),
            (pad(self.kind, KIND), "$faint"),
            (self.note, "$muted"),
        )

    @property
    def kind(self) -> str:
        """Its type, unless the address says it."""
        return "" if self.address.startswith(self.agent_type) else self.agent_type


def recipients(
    addresses: Sequence[Address],
    agents: Mapping[str, AgentView],
    drafts: Collection[str] = (),
    ahead: Mapping[str, Mapping[int, int]] = MappingProxyType({}),
) -> list[Recipient]:
    """List the receivers: agents here, `all` if there are several, then agents elsewhere."""
    addresses = [address for address in addresses if address.receives]
    here = [address for address in addresses if address.agent_id in agents]
    elsewhere = [address for address in addresses if address.agent_id not in agents]
    types = Counter(address.agent_type for address in addresses if address.local)
    found = [_local(address, agents[address.agent_id], types, drafts, ahead) for address in here]
    everyone = sum(address.local and address.live for address in addresses)
    if everyone > 1:
        found.append(Recipient(ALL, "", "", tr(f"{everyone} agents here")))
    for address in elsewhere:
        if address.external:
            note = tr(f"external · {shorten(address.endpoint, 60)}")
            found.append(Recipient(address.agent_id, address.agent_id, address.agent_type, note))
            continue
        folder = short_path(Path(address.working_dir)) if address.working_dir else tr("another process")
        found.append(Recipient(address.agent_id, address.agent_id, address.agent_type, folder))
    return found


def _local(
    address: Address,
    agent: AgentView,
    types: Counter[str],
    drafts: Collection[str],
    ahead: Mapping[str, Mapping[int, int]],
) -> Recipient:
    if address.name:
        short = address.name
    elif types[address.agent_type] == 1:
        short = address.agent_type
    else:
        short = f"{address.agent_type}-{address.port}"
    return Recipient(
        one_line(short),
        address.agent_id,
        address.agent_type,
        agent.state_text,
        agent,
        draft=address.agent_id in drafts,
        ahead=ahead.get(address.agent_id, {}),
    )


def matching(found: Sequence[Recipient], typed: str) -> list[Recipient]:
    word = typed.strip().removeprefix("@").removeprefix("＠").lower()
    if not word:
        return list(found)
    hits = [
        r for r in found if word in r.address.lower() or word in r.agent_id.lower() or word in r.agent_type
    ]
    return sorted(hits, key=lambda r: not r.address.lower().startswith(word))


WAYS = {
    1: (tr("info only"), tr("after all others; it may wait unread in an inbox")),
    2: (tr("when free"), tr("after all that is sent now or next")),
    3: (tr("now or next"), tr("at once if it is free, else after this turn")),
    4: (tr("soon"), tr("before others; during a turn where the agent takes it")),
    5: (tr("interrupt"), tr("stops the turn first, and denies what it asks")),
}
"""Name and meaning of each priority."""
USUAL_WAYS = (3, 2, 5)
MORE = "more"  # the target that shows the other ways
AGE_SECONDS = 1.0  # between two drawings of the last messages, which have an age
LEAST_WIDTH = 40  # cells of a line before the layout is known
LABEL = 6  # cells of the words in front of the fields


class WayBar(SegmentBar, can_focus=True):
    """How the message is sent: the priorities in words."""

    DEFAULT_CSS = "WayBar { background: $panel; }"
    FOCUS_ON_CLICK: ClassVar[bool] = False  # what is typed next is for the text

    value: var[int] = var(DEFAULT_PRIORITY)
    all_shown: var[bool] = var(False)
    write: Callable[[str], None]  # takes what is typed here but means nothing here

    class Changed(Message):
        pass

    class Submitted(Message):
        pass

    def watch_value(self) -> None:
        self.refresh()
        self.post_message(self.Changed())

    def watch_has_focus(self, _has_focus: bool) -> None:
        self.refresh()

    def watch_all_shown(self) -> None:
        self.refresh()

    @property
    def ways(self) -> Sequence[int]:
        return tuple(WAYS) if self.all_shown or self.value not in USUAL_WAYS else USUAL_WAYS

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        ways = [piece for number in self.ways for piece in self._way(number)]
        if len(self.ways) < len(WAYS):
            ways.append(Piece(tr("more"), "$faint", MORE, tr("Show all ways to send")))
        if width_of(ways) + LABEL > width:
            ways = self._way(self.value)
        return [Piece(pad(tr("How"), LABEL), "$faint"), *ways], []

    def _way(self, number: int) -> list[Piece]:
        chosen = number == self.value
        name, meaning = WAYS[number]
        style = "$muted"
        if chosen:
            style = "bold $fail" if number == INTERRUPT_PRIORITY else "bold $accent"
            style += " reverse" if self.has_focus else ""
        return [Piece(f"{'●' if chosen else '○'} {name}", style, str(number), meaning), Piece("  ")]

    def on_key(self, event: events.Key) -> None:
        steps = {"left": -1, "up": -1, "right": 1, "down": 1}
        left = self.screen.focused is not self  # the key came right behind one that was for the text
        if event.is_printable and event.character and (left or event.character not in " 12345"):
            # Called at once, and not by a message, so that what is typed stays in order.
            self.write(event.character)
        elif event.key == "enter":
            self.post_message(self.Submitted())
        elif event.character is not None and event.character in "12345":
            self.value = int(event.character)
        elif event.key in steps:
            self._step(steps[event.key])
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self.write(event.text)

    def _step(self, by: int) -> None:
        """Choose the next way; a step past the last of the usual ones shows the others."""
        at = self.ways.index(self.value) + by
        if at == len(self.ways):
            self.all_shown = True
        else:
            self.value = self.ways[max(at, 0)]

    def on_click(self, event: events.Click) -> None:
        event.stop()
        event.prevent_default()
        if self.pressed == MORE:
            self.all_shown = True
        elif self.pressed:
            self.value = int(self.pressed)


class Chips(SegmentBar):
    """The chosen receivers; a click on a sign `×` removes one."""

    DEFAULT_CSS = "Chips { background: $panel; width: auto; max-width: 75%; }"

    names: var[tuple[str, ...]] = var(())
    kinds: Mapping[str, str] = MappingProxyType({})  # of those whose name does not say it

    def watch_names(self) -> None:
        self.styles.width = width_of(self.pieces(0)[0])
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        row = [Piece(pad(tr("To"), LABEL), "$faint"), *self._chips(NAME, kinds=True)]
        if width and width_of(row) > width:
            room = max(CHIP, width // max(1, len(self.names)) - 5)
            row[1:] = self._chips(room, kinds=False)
        return row, []

    def _chips(self, room: int, *, kinds: bool) -> Iterator[Piece]:
        for name, shown in zip(self.names, distinct(self.names, room), strict=True):
            kind = self.kinds.get(name, "") if kinds else ""
            yield Piece(f" {shown} ", "bold $ink on $raised")
            yield Piece(f"{kind} " if kind else "", "$faint on $raised")
            yield Piece("× ", "$faint on $raised", name, tr("Remove"))
            yield Piece(" ")


SHOWN = 6  # maximum visible receivers or files
CHIP, NAME, KIND = 4, 20, 10  # least and most cells of a receiver's name; cells of its type
MOST_FILES = 200  # names of files that are offered
_FILE = re.compile(r"(?:^|\s)@([^\s@]*)$")


@dataclass(frozen=True, slots=True)
class Draft:
    to: tuple[str, ...] = ()
    text: str = ""
    priority: int = DEFAULT_PRIORITY


Send = Callable[[Draft], Awaitable[str]]


class Source(Protocol):
    """What the composer shows."""

    @property
    def folder(self) -> Path:
        """Where files are completed."""

    @property
    def templates(self) -> Path:
        """A folder of texts to begin with, `NAME.md`."""

    def recipients(self) -> Sequence[Recipient]: ...

    def refusal(self, address: str) -> str:
        """Say why a message to an address cannot be sent now; empty if nothing is known against it."""

    def last_lines(self, width: int) -> Content:
        """Describe what the user has sent last, and what became of it."""


def files_in(folder: Path, begun: str) -> list[str]:
    """List the files and folders whose path begins so, without hidden ones unless asked for."""
    above, _, start = begun.rpartition("/")
    try:
        with os.scandir(folder / above if above else folder) as entries:
            names = [entry.name + "/" * entry.is_dir() for entry in entries]
    except OSError:
        return []
    wanted = [
        name
        for name in sorted(names, key=str.casefold)
        if name.casefold().startswith(start.casefold()) and (start or not name.startswith("."))
    ]
    return [f"{above}/{name}" if above else name for name in wanted[:MOST_FILES]]


class MessageText(TextArea):
    """A multi-line input: Enter sends; Shift+Enter, Alt+Enter and Ctrl+J insert a newline."""

    completing: bool = False  # whether files are offered: some keys are for that list

    class Submitted(Message):
        pass

    @dataclass
    class Completing(Message):
        key: str

    async def _on_key(self, event: events.Key) -> None:
        if self.completing and event.key in ("enter", "tab", "up", "down", "escape"):
            event.stop()
            event.prevent_default()
            self.post_message(self.Completing(event.key))
        elif event.key in ("enter", "ctrl+enter"):
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted())
        elif event.key in ("shift+enter", "alt+enter", "ctrl+j", "newline"):
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)


class AddressInput(Input):
    """A receiver to add: arrows move in the suggestions, Tab and Enter accept one, a comma one of several.

    With nothing marked or typed, Tab and Enter go on to the text.
    """

    class Moved(Message):
        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    @dataclass
    class Taken(Message):
        last: bool  # whether no more are to come

    class Removed(Message):
        pass

    async def _on_key(self, event: events.Key) -> None:
        moves = {"up": -1, "down": 1}
        if event.key in moves:
            self.post_message(self.Moved(moves[event.key]))
        elif event.key in ("tab", "enter"):
            self.post_message(self.Taken(last=True))
        elif event.character in (",", ";", " ", "、"):
            self.post_message(self.Taken(last=False))
        elif event.key == "backspace" and not self.value:
            self.post_message(self.Removed())
        else:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()


class ComposerHints(HintBar):
    DEFAULT_CSS = "ComposerHints.keys { background: $panel; margin-top: 1; }"


class Composer(Form[str]):
    """Sends a message; closes with a summary of its receipts."""

    VERB: ClassVar[str] = "send"
    TITLE_TEXT: ClassVar[str] = "Message"
    SUBTITLE: ClassVar[str] = ""
    DIMS_BELOW: ClassVar[bool] = True
    BINDINGS: ClassVar = [("ctrl+t", "template")]
    # `on_mount` chooses the field; focusing the receivers opens the list of suggestions
    AUTO_FOCUS: ClassVar[str | None] = ""

    def keys_here(self) -> Place:
        return PLACES["compose"]

    def __init__(
        self,
        source: Source,
        send: Send,
        *,
        draft: Draft,
        keeps: Callable[[Draft], bool],
        keep: Callable[[Draft], None],
    ) -> None:
        super().__init__()
        self._begin = draft
        self._keeps = keeps
        self._keep = keep
        self._source = source
        self._send = send
        self._recipients = source.recipients()
        self._refused_receiver = False  # whether a message to one of the receivers would be refused

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            with Horizontal(classes="head"):
                yield Static(Content(tr(self.TITLE_TEXT)), classes="title")
                yield Static(Content(tr("as you")), id="author")
            yield from self.body()
            yield Static("", classes="error", markup=False)
            yield ComposerHints(classes="keys")

    def body(self) -> ComposeResult:
        with Horizontal(id="receivers"):
            yield Chips(id="chips")
            yield AddressInput(id="to", compact=True)
        yield Choices(id="recipients", compact=True)
        yield Static("", id="outlook", classes="beneath", markup=False)
        yield MessageText(
            self._begin.text,
            id="text",
            compact=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder=tr("Message"),
        )
        yield Choices(id="files", compact=True)
        way = WayBar(id="way")
        way.set_reactive(WayBar.value, self._begin.priority)
        way.write = self._insert
        yield way
        yield Static("", id="meaning", classes="beneath", markup=False)
        yield Static("", id="last", markup=False)

    def on_mount(self) -> None:
        for name in ("#recipients", "#files"):
            self.query_one(name, OptionList).can_focus = False
        self.query_one("#files").display = False
        text = self.query_one("#text", TextArea)
        text.move_cursor(text.document.end)
        self._set_receivers(self._begin.to)
        self._offer()
        self._show_last()
        self.set_interval(AGE_SECONDS, self.show_news)
        (text if self._begin.to else self.query_one("#to")).focus()

    def show_news(self) -> None:
        """Show anew what may have changed meanwhile: the state of receivers, and of the last messages."""
        self._recipients = self._source.recipients()
        self._show_outlook()
        self._show_last()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_last)

    def _show_last(self) -> None:
        last, way = self.query_one("#last", Static), self.query_one(WayBar)
        width = last.content_size.width or way.content_size.width  # it may not have been shown yet
        text = self._source.last_lines(width or LEAST_WIDTH)
        last.update(text)
        last.display = bool(text)

    # Receivers

    def _subtitle(self, text: str) -> None:
        """Show the keys, or in their place what is going on."""
        send = tr(f"send to {len(self._to)}") if len(self._to) > 1 else tr("send")
        field = self.query_one("#to", Input)
        enter = Hint("Enter", send, "submit")
        if field.has_focus:
            adds = field.value or self.query_one("#recipients", OptionList).highlighted is not None
            enter = Hint("Enter", tr("add") if adds else tr("next field"), "take")
        leave = tr("keep as draft") if self._keeps(self._draft()) else tr("close")
        message = self.query_one(MessageText)
        keys: tuple[Hint, ...] = (
            *((enter,) if field.has_focus or not self._refused_receiver else ()),
            Hint("Esc", leave, "leave"),
            *(() if field.has_focus else (Hint("@", "file", "file"),)),
            Hint("^T", "template", "template"),
            *((Hint("Ctrl+J", "new line", "new_line"),) if message.has_focus else ()),
            Hint("Tab", "next field", "app.focus_next"),
        )
        if message.completing and message.has_focus:
            keys = tuple(
                Hint(key, word, f"complete('{name}')")
                for key, word, name in (
                    ("Enter", tr("insert"), "enter"),
                    ("↑↓", tr("choose"), "down"),
                    ("Esc", tr("close the list"), "escape"),
                )
            )
        self.query_one(ComposerHints).shown = (Hint("", text),) if text else keys

    @on(ComposerHints.Pressed)
    async def _hint_clicked(self, event: ComposerHints.Pressed) -> None:
        event.stop()
        await self.run_action(event.target)

    def action_submit(self) -> None:
        self.submit()

    def action_take(self) -> None:
        self._take_marked(last=True)

    def action_file(self) -> None:
        """Begin the name of a file, which stands apart from the word before it."""
        text = self.query_one(MessageText)
        row, column = text.cursor_location
        before = text.document.get_line(row)[:column]
        self._insert(" @" if before[-1:].strip() else "@")

    def action_complete(self, key: str) -> None:
        self.query_one(MessageText).post_message(MessageText.Completing(key))

    def action_new_line(self) -> None:
        self._insert("\n")

    def _insert(self, text: str) -> None:
        field = self.query_one(MessageText)
        self.set_focus(field)  # at once: the next keys are for it
        field.insert(text)

    @property
    def _to(self) -> tuple[str, ...]:
        return self.query_one(Chips).names

    def _set_receivers(self, names: Sequence[str]) -> None:
        chips = self.query_one(Chips)
        chips.kinds = {recipient.address: recipient.kind for recipient in self._recipients}
        if chips.names != tuple(names):
            self.show_error("")  # it may have been about a receiver
        chips.names = tuple(names)
        field = self.query_one("#to", Input)
        field.placeholder = tr("+ add") if names else tr("name, id or all")
        self._subtitle("")
        self._show_outlook()

    @on(WayBar.Changed)
    def _show_outlook(self) -> None:
        priority = self.query_one(WayBar).value
        known = {recipient.address: recipient for recipient in self._recipients}
        said: list[tuple[str, str]] = []
        self._refused_receiver = False
        for name in self._to:
            if refusal := self._source.refusal(name):
                self._refused_receiver = True
                said.append((refusal, "$fail"))
            elif name in known and (outlook := known[name].outlook(priority)):
                said.append((f"{name} {outlook}", ""))
        self.query_one("#outlook", Static).update(Content("; ").join(Content.styled(*each) for each in said))
        self.query_one("#meaning", Static).update(Content(WAYS[priority][1]))
        self._show_keys()

    @on(Input.Changed, "#to")
    def _offer(self) -> None:
        field, view = self.query_one("#to", Input), self.query_one("#recipients", OptionList)
        rows = [each for each in matching(self._recipients, field.value) if each.address not in self._to]
        view.clear_options()
        view.add_options([Option(recipient.row(), id=recipient.address) for recipient in rows])
        view.styles.height = min(SHOWN, len(rows))
        view.display = bool(rows) and (field.has_focus or not self._to)
        view.highlighted = 0 if rows and (field.value or not self._to) else None
        self._show_keys()

    @on(TextArea.Changed, "#text")
    @on(events.DescendantFocus)
    def _show_keys(self) -> None:
        if not self.busy:
            self._subtitle("")

    @on(AddressInput.Moved)
    def _moved(self, event: AddressInput.Moved) -> None:
        _move(self.query_one("#recipients", OptionList), event.by)
        self._show_keys()

    @on(AddressInput.Taken)
    def _taken(self, event: AddressInput.Taken) -> None:
        self._take_marked(last=event.last)

    def _take_marked(self, *, last: bool) -> None:
        """Add the marked receiver, else what was typed."""
        option = self.query_one("#recipients", OptionList).highlighted_option
        marked = option.id if option is not None else None
        self._take(marked or self.query_one("#to", Input).value, last=last)

    @on(AddressInput.Removed)
    def _removed(self) -> None:
        self._set_receivers(self._to[:-1])
        self._offer()

    @on(SegmentBar.Pressed, "#chips")
    def _chip_pressed(self, event: SegmentBar.Pressed) -> None:
        self._set_receivers([name for name in self._to if name != event.target])
        self.query_one("#to").focus()
        self._offer()

    @on(OptionList.OptionSelected, "#recipients")
    def _recipient_clicked(self, event: OptionList.OptionSelected) -> None:
        self._take(event.option.id or "")

    def _take(self, address: str, *, last: bool = True) -> None:
        """Add a receiver; `all` stands alone."""
        name = address.strip().removeprefix("@").removeprefix("＠")
        name = next(
            (recipient.address for recipient in self._recipients if name and name == recipient.agent_id), name
        )
        if name and name not in self._to:
            others = [each for each in self._to if ALL not in (each, name)]
            self._set_receivers([*others, name])
        elif not self._to:
            self.show_error(NO_RECIPIENT)
            return
        self.query_one("#to", Input).value = ""
        if last:
            self.query_one("#text").focus()
        self._offer()

    @on(events.DescendantFocus, "#to")
    def _address_focused(self) -> None:
        self._offer()

    @on(events.DescendantBlur, "#to")
    def _address_left(self) -> None:
        self.query_one("#recipients").display = False
        self._show_keys()

    # Files and templates

    @on(TextArea.Changed, "#text")
    @on(TextArea.SelectionChanged, "#text")
    def _look_for_file(self) -> None:
        begun = self._file_begun()
        if begun is None:
            self._offer_files([])
        else:
            self._complete(begun)

    def _file_begun(self) -> str | None:
        text = self.query_one(MessageText)
        row, column = text.cursor_location
        found = _FILE.search(text.document.get_line(row)[:column])
        return found[1] if found else None

    @work(exclusive=True, exit_on_error=False, group="files")
    async def _complete(self, begun: str) -> None:
        found = await asyncio.to_thread(files_in, self._source.folder, begun)
        if self._file_begun() == begun:
            self._offer_files(found)

    def _offer_files(self, found: Sequence[str]) -> None:
        view = self.query_one("#files", OptionList)
        view.clear_options()
        view.add_options([Option(Content(f" {name}"), id=name) for name in found])
        view.styles.height = min(SHOWN, len(found))
        view.display = self.query_one(MessageText).completing = bool(found)
        view.highlighted = 0 if found else None
        self._show_keys()

    @on(MessageText.Completing)
    def _completing(self, event: MessageText.Completing) -> None:
        view = self.query_one("#files", OptionList)
        if event.key in ("up", "down"):
            _move(view, 1 if event.key == "down" else -1)
        elif event.key != "escape" and view.highlighted_option is not None:
            self._take_file(view.highlighted_option.id or "")
        else:
            self._offer_files([])

    @on(OptionList.OptionSelected, "#files")
    def _file_clicked(self, event: OptionList.OptionSelected) -> None:
        self.query_one("#text").focus()
        self._take_file(event.option.id or "")

    def _take_file(self, name: str) -> None:
        """Replace `@…` by the path; in front of a folder `@` stays, so that its files are offered next."""
        begun = self._file_begun()
        if begun is None:
            return
        text = self.query_one(MessageText)
        row, column = text.cursor_location
        new = f"@{name}" if name.endswith("/") else f"{name} "
        text.replace(new, (row, column - len(begun) - 1), (row, column), maintain_selection_offset=False)

    async def action_template(self) -> None:
        names = await asyncio.to_thread(self._template_names)
        if not names:
            self.show_error(f"no templates yet: put texts into {short_path(self._source.templates)}, NAME.md")
            return
        self.show_error("")  # there may have been none before
        self.app.push_screen(
            Pick(tr("Template"), {name: name for name in names}, names[0]), self._insert_template
        )

    def _template_names(self) -> list[str]:
        return sorted(path.stem for path in self._source.templates.glob("*.md"))

    def _insert_template(self, name: str | None) -> None:
        if name is None:
            return
        try:
            text = read_regular(self._source.templates / f"{name}.md").decode()
        except (OSError, UnicodeError) as error:
            self.show_error(f"{name}.md cannot be read: {error}")
        else:
            self.query_one(MessageText).insert(text.strip())

    # Sending

    def _draft(self) -> Draft:
        return Draft(self._to, self.query_one("#text", TextArea).text.strip(), self.query_one(WayBar).value)

    def action_leave(self) -> None:
        self._keep(self._draft())
        super().action_leave()

    @on(WayBar.Submitted)
    @on(MessageText.Submitted)
    def submit(self) -> None:
        typed = self.query_one("#to", Input).value
        if typed.strip():
            self._take(typed)
        draft = self._draft()
        if not draft.to:
            self.show_error(NO_RECIPIENT)
            self.query_one("#to").focus()
            return
        if not draft.text and draft.priority != INTERRUPT_PRIORITY:
            self.show_error(InvalidValue("the message is empty", "give a text"))
            return
        self.attempt(lambda: self._send(draft))


def _move(view: OptionList, by: int) -> None:
    if view.option_count:
        before = (-1 if by > 0 else 0) if view.highlighted is None else view.highlighted
        view.highlighted = (before + by) % view.option_count


def last_lines(sent: Sequence[tuple[Task, str, bool]], width: int, now: datetime) -> Content:
    """Draw messages, a line each, newest first: `✓ bob  which tests?   done 2:10`.

    With each come the name of its receiver, and whether that is open.
    """
    rows = []
    for number, (task, receiver, is_open) in enumerate(sent):
        mark = delivery_mark(task)
        status = tr("answered") if task.answered else mark.word
        if not (task.state.final or is_open):
            status = tr(f"{status} (not open)")
        elif not task.state.final and (why := reason_words(task.reason, mark, {})):
            status = why if why.startswith(status) else f"{status}: {why}"
        name = shorten(one_line(receiver), NAME, "middle")
        status = f"  {shorten(status, width // 3)} {since((now - task.since).total_seconds())}"
        head = Piece(pad("" if number else tr("Last"), LABEL), "$faint")
        left = [head, Piece(f"{mark.glyph} ", f"${mark.colour}"), Piece(f"{name}  ", "$ink")]
        left.append(Piece(one_line(task.text), "$muted", cut="end"))
        rows.append(line(width, left, [Piece(status, f"${mark.colour}")]))
    return Content("\n").join(rows)
