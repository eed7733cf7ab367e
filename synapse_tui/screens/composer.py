"""The message composer: receiver, priority and a multi-line text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, OptionList, TextArea
from textual.widgets.option_list import Option

from synapse_tui.dataclass import dataclass
from synapse_tui.errors import InvalidValue
from synapse_tui.model import DEFAULT_PRIORITY, INTERRUPT_PRIORITY
from synapse_tui.widgets.fit import Piece, pad, shorten
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.segment_bar import SegmentBar
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.states import Mark
from synapse_tui.widgets.text import one_line
from synapse_tui.widgets.views import AgentView

from .dialog import Form, label

if TYPE_CHECKING:
    from synapse_tui.addresses import Address

ALL = "all"
NO_RECIPIENT = "enter a receiver: a name, an id, or all"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A possible receiver of a message.

    Attributes:
        address: The shortest unique address, without `@`.
        agent_id: Empty for all agents.
        note: State, or the folder or endpoint of an agent elsewhere.
        mark: None for agents elsewhere.
    """

    address: str
    agent_id: str
    agent_type: str
    note: str
    mark: Mark | None = None

    def row(self) -> Content:
        glyph = (f" {self.mark.glyph} ", f"bold ${self.mark.colour}") if self.mark else ("   ", "")
        return Content.assemble(
            glyph,
            (
                pad(self.address, 24) + " ",
                "bold $ink",
            ),
            (shorten(self.note, 40), "$muted"),
        )


def recipients(addresses: Sequence[Address], agents: Mapping[str, AgentView]) -> list[Recipient]:
    """List the receivers: agents here, `all` if there are several, then agents elsewhere."""
    here = [address for address in addresses if address.agent_id in agents]
    elsewhere = [address for address in addresses if address.agent_id not in agents]
    types = Counter(address.agent_type for address in addresses if address.local)
    found = [_local(address, agents[address.agent_id], types) for address in here]
    if len(here) > 1:
        found.append(Recipient(ALL, "", "", f"all {len(here)} agents here"))
    for address in elsewhere:
        if address.external:
            note = f"external · {shorten(address.endpoint, 60)}"
            found.append(Recipient(address.agent_id, address.agent_id, address.agent_type, note))
            continue
        folder = short_path(Path(address.working_dir)) if address.working_dir else "another process"
        found.append(Recipient(address.agent_id, address.agent_id, address.agent_type, folder))
    return found


def _local(address: Address, agent: AgentView, types: Counter[str]) -> Recipient:
    if address.name:
        short = address.name
    elif types[address.agent_type] == 1:
        short = address.agent_type
    else:
        short = f"{address.agent_type}-{address.port}"
    return Recipient(one_line(short), address.agent_id, address.agent_type, agent.state_text, agent.mark)


def matching(found: Sequence[Recipient], typed: str) -> list[Recipient]:
    word = typed.strip().removeprefix("@").removeprefix("＠").lower()
    if not word:
        return list(found)
    hits = [
        r for r in found if word in r.address.lower() or word in r.agent_id.lower() or word in r.agent_type
    ]
    return sorted(hits, key=lambda r: not r.address.lower().startswith(word))


MEANINGS = {
    1: "information",
    2: "low",
    3: "normal",
    4: "soon: may steer a running turn",
    5: "interrupts the running turn",
}


class PriorityBar(SegmentBar, can_focus=True):
    DEFAULT_CSS = "PriorityBar { background: $panel; margin: 1 0; }"

    value: var[int] = var(DEFAULT_PRIORITY)

    def watch_value(self) -> None:
        self.refresh()

    def watch_has_focus(self, _has_focus: bool) -> None:
        self.refresh()

    def pieces(self, _width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        row = [Piece("Priority ", "$muted")]
        for number, meaning in MEANINGS.items():
            chosen = number == self.value
            text = f"[{number}]" if chosen else f" {number} "
            row.append(Piece(text, self._number_style(number, chosen=chosen), str(number), meaning))
        style = "$fail" if self.value == INTERRUPT_PRIORITY else "$muted"
        return [*row, Piece(f" {MEANINGS[self.value]}", style)], []

    def _number_style(self, number: int, *, chosen: bool) -> str:
        if not chosen:
            return "$ink on $raised"
        colour = "$fail" if number == INTERRUPT_PRIORITY else "$accent"
        return f"bold $accent-ink on {colour}" + (" underline" if self.has_focus else "")

    def on_key(self, event: events.Key) -> None:
        steps = {"left": -1, "down": -1, "right": 1, "up": 1}
        if event.character is not None and event.character in "12345":
            self.value = int(event.character)
        elif event.key in steps:
            self.value = min(INTERRUPT_PRIORITY, max(1, self.value + steps[event.key]))
        else:
            return
        event.stop()
        event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        event.prevent_default()
        piece = self.target_at(event.x)
        if piece is not None:
            self.value = int(piece.target)


SHOWN = 6  # maximum visible receivers


@dataclass(frozen=True, slots=True)
class Draft:
    to: str = ""
    text: str = ""
    priority: int = DEFAULT_PRIORITY


Send = Callable[[Draft], Awaitable[str]]


class MessageText(TextArea):
    """A multi-line input: Enter sends; Shift+Enter, Alt+Enter and Ctrl+J insert a newline."""

    class Submitted(Message):
        pass

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("enter", "ctrl+enter"):
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
    """The receiver: the arrows move in the list of suggestions, Tab and Enter accept one."""

    class Moved(Message):
        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Taken(Message):
        pass

    async def _on_key(self, event: events.Key) -> None:
        moves = {"up": -1, "down": 1}
        if event.key in moves:
            event.stop()
            event.prevent_default()
            self.post_message(self.Moved(moves[event.key]))
        elif event.key in ("tab", "enter"):
            event.stop()
            event.prevent_default()
            self.post_message(self.Taken())
        else:
            await super()._on_key(event)


class Composer(Form[str]):
    """Sends a message; closes with a summary of its receipts."""

    VERB: ClassVar[str] = "Send"
    TITLE_TEXT: ClassVar[str] = "Message"
    SUBTITLE: ClassVar[str] = "Enter sends · Shift+Enter new line · Tab next field · Esc keeps the draft"
    # `on_mount` chooses the field; focusing the receiver opens the list of suggestions
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(
        self,
        recipients: Sequence[Recipient],
        send: Send,
        *,
        draft: Draft,
        keep: Callable[[Draft], None],
    ) -> None:
        super().__init__()
        self._begin = draft
        self._keep = keep
        self._recipients = recipients
        self._send = send
        self._to = draft.to

    def body(self) -> ComposeResult:
        yield label("To", "label -first")
        yield AddressInput(self._to, id="to", placeholder="name, id or all", compact=True)
        yield Choices(id="recipients", compact=True)
        priority = PriorityBar(id="priority")
        priority.set_reactive(PriorityBar.value, self._begin.priority)
        yield priority
        yield MessageText(
            self._begin.text,
            id="text",
            compact=True,
            show_line_numbers=False,
            tab_behavior="focus",
            placeholder="Message",
        )

    def on_mount(self) -> None:
        self.query_one("#recipients", OptionList).can_focus = False
        self._offer(self._to)
        text = self.query_one("#text", TextArea)
        text.move_cursor(text.document.end)
        (text if self._to else self.query_one("#to")).focus()

    @on(Input.Changed, "#to")
    def _address_changed(self, event: Input.Changed) -> None:
        self._offer(event.value)

    def _offer(self, typed: str) -> None:
        view = self.query_one("#recipients", OptionList)
        typing = self.query_one("#to", Input).has_focus or not self._to
        rows = matching(self._recipients, typed)
        view.clear_options()
        view.add_options([Option(recipient.row(), id=recipient.address) for recipient in rows])
        view.styles.height = min(SHOWN, len(rows))
        view.display = bool(rows) and typing
        if rows:
            view.highlighted = 0

    @on(AddressInput.Moved)
    def _moved(self, event: AddressInput.Moved) -> None:
        view = self.query_one("#recipients", OptionList)
        if view.option_count:
            view.highlighted = ((view.highlighted or 0) + event.by) % view.option_count

    @on(AddressInput.Taken)
    def _taken(self) -> None:
        option = self.query_one("#recipients", OptionList).highlighted_option
        self._take(option.id if option is not None and option.id else self.query_one("#to", Input).value)

    @on(OptionList.OptionSelected, "#recipients")
    def _recipient_clicked(self, event: OptionList.OptionSelected) -> None:
        self._take(event.option.id or "")

    def _take(self, address: str) -> None:
        if not address.strip():
            self.show_error(NO_RECIPIENT)
            return
        self._to = address
        self.query_one("#to", Input).value = address
        self.query_one("#recipients").display = False
        self.query_one("#text").focus()

    @on(events.DescendantFocus, "#to")
    def _address_focused(self) -> None:
        self._to = ""
        address = self.query_one("#to", Input).value
        places = {each.address: place for place, each in enumerate(self._recipients)}
        if address in places:  # the user may want to change it: list all, with this one highlighted
            self._offer("")
            self.query_one("#recipients", OptionList).highlighted = places[address]
        else:
            self._offer(address)

    @on(events.DescendantFocus, "#text")
    def _text_focused(self) -> None:
        self.query_one("#recipients").display = False

    def _draft(self) -> Draft:
        address = self.query_one("#to", Input).value.strip().removeprefix("@").removeprefix("＠")
        return Draft(
            address, self.query_one("#text", TextArea).text.strip(), self.query_one(PriorityBar).value
        )

    def action_leave(self) -> None:
        self._keep(self._draft())
        super().action_leave()

    @on(MessageText.Submitted)
    def submit(self) -> None:
        draft = self._draft()
        if not draft.to:
            self.show_error(NO_RECIPIENT)
            self.query_one("#to").focus()
            return
        if not draft.text and draft.priority != INTERRUPT_PRIORITY:
            self.show_error(
                InvalidValue("the message is empty", "only an interrupt (priority 5) may be empty")
            )
            return
        self.attempt(lambda: self._send(draft))
