"""The message composer: to whom, with what priority, any number of lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Input, OptionList, TextArea
from textual.widgets.option_list import Option

from synapse_tui.errors import InvalidValue
from synapse_tui.model import DEFAULT_PRIORITY, INTERRUPT_PRIORITY
from synapse_tui.widgets.option_lists import Choices

from .dialog import Form, label
from .priority import PriorityBar
from .recipients import Recipient, matching

SHOWN = 6
"""How many receivers are offered at once."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that is being written.

    Attributes:
        to: Address of the receiver; empty while there is none.
        text: The text.
        priority: The priority.
    """

    to: str = ""
    text: str = ""
    priority: int = DEFAULT_PRIORITY


Send = Callable[[Draft], Awaitable[str]]


class MessageText(TextArea):
    """Several lines; Enter sends, Shift+Enter, Alt+Enter and Ctrl+J begin a new line."""

    class Submitted(Message):
        """The message is to be sent."""

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
    """A receiver; the arrows choose from the list below, Tab and Enter take the choice."""

    class Moved(Message):
        """Another receiver of the list is to be marked."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Taken(Message):
        """The marked receiver is the one."""

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
    """Leaves with what became of the message when it was taken.

    Args:
        recipients: Who can be written to.
        send: Sends a message and returns a few words about the result.
        draft: What to begin with; without a receiver it is asked for first.
        keep: Gets the message when the person leaves without sending it.
    """

    VERB: ClassVar[str] = "Send"
    TITLE_TEXT: ClassVar[str] = "Message"
    SUBTITLE: ClassVar[str] = "Enter sends · Shift+Enter new line · Tab next field · Esc keeps it"
    AUTO_FOCUS: ClassVar[str | None] = ""
    """Which field comes first depends on what is given; a look at the receiver would open their list."""

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
        """Receiver with completion, priority, text."""
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
        """Begin with the text when the receiver is known."""
        self.query_one("#recipients", OptionList).can_focus = False
        self._offer(self._to)
        text = self.query_one("#text", TextArea)
        text.move_cursor(text.document.end)
        (text if self._to else self.query_one("#to")).focus()

    @on(Input.Changed, "#to")
    def _address_changed(self, event: Input.Changed) -> None:
        self._offer(event.value)

    def _offer(self, typed: str) -> None:
        """Show the receivers that a text means; all of them for an empty one."""
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
            self.show_error("write to whom it goes: a name, an id, or all")
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
        if address in places:  # another one may be wanted: all of them are offered, with this one marked
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
        """Keep what was written, and leave."""
        self._keep(self._draft())
        super().action_leave()

    @on(MessageText.Submitted)
    def submit(self) -> None:
        """Send the message."""
        draft = self._draft()
        if not draft.to:
            self.show_error("write to whom it goes: a name, an id, or all")
            self.query_one("#to").focus()
            return
        if not draft.text and draft.priority != INTERRUPT_PRIORITY:
            self.show_error(
                InvalidValue("the message is empty", "only an interrupt (priority 5) needs no text")
            )
            return
        self.attempt(lambda: self._send(draft))
