"""The frame of every dialog: a title, a body, buttons, and a place for what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Input, Label, Static, TextArea
from textual.widgets.button import ButtonVariant

from synapse_tui.errors import SynapseError
from synapse_tui.widgets.error_handling import FaultTolerant, Reporter

log = logging.getLogger(__name__)
Result = TypeVar("Result")

BUSY = "one moment…"
PATIENCE = 2.0
"""Seconds after which a dialog takes keys again whatever became of the last one."""
ROUNDS = 2
"""How often what a key sets off goes up to the application: the key itself, then what its action tells."""


class Dialog(FaultTolerant, ModalScreen[Result]):
    """A box in the middle of the screen; Esc leaves it without a result.

    Subclasses give `body`, `buttons` and what a button means by `on_button_pressed`.
    """

    BINDINGS: ClassVar = [Binding("escape", "leave", "Cancel", show=False)]
    AUTO_FOCUS: ClassVar[str | None] = "Input, TextArea, SelectionList, OptionList, Button"
    TITLE_TEXT: ClassVar[str] = ""
    BOX_CLASSES: ClassVar[str] = ""
    SUBTITLE: ClassVar[str] = "Esc cancels"

    class Opened(Message):
        """The dialog takes keys now."""

    busy: bool = False
    ready: bool = False
    """Whether it takes keys; what is typed before is kept for it."""
    _patience: Timer | None = None

    def compose(self) -> ComposeResult:
        """The box."""
        with Vertical(classes=f"dialog {self.BOX_CLASSES}".strip()) as box:
            box.border_title = Content(f" {self.title_text()} ")
            box.border_subtitle = Content(f" {self.SUBTITLE} ") if self.SUBTITLE else None
            yield from self.body()
            yield Static("", classes="error", markup=False)
            with Horizontal(classes="buttons"):
                yield from self.buttons()

    def on_mount(self) -> None:
        """Cursors stand still: a blinking one would repaint the panes behind the dialog."""
        for field in (*self.query(Input), *self.query(TextArea)):
            field.cursor_blink = False

    def on_screen_resume(self) -> None:
        """Take keys once the first field has the focus."""
        self.call_after_refresh(self._become_ready)

    def _become_ready(self) -> None:
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        if not self.ready:
            self.ready = True
            self.post_message(self.Opened())

    def pace(self) -> None:
        """Take no further key until all that follows from the last one is done, such as a move of the focus.

        Textual hands a key to whoever has the focus when it arrives, and moves the focus some messages
        later; what is typed fast would land in the field before.
        """
        if not self.is_current:
            return
        self.ready = False
        if self._patience is not None:
            self._patience.stop()
        self._patience = self.set_timer(PATIENCE, self._become_ready)
        self._follow(ROUNDS)

    def _follow(self, rounds: int) -> None:
        """Go the way of a key, from the widget that has it up to the application, as often as asked.

        A binding acts when the key has come up to the application; what the widget tells then goes up once
        more, and only there the focus moves or the dialog begins to work.
        """
        start = self.focused or self
        # Twice at the start: what the key's handler posts comes after the first time.
        self._hop([start, *start.ancestors_with_self], rounds)

    def _hop(self, way: Sequence[MessagePump], rounds: int) -> None:
        for place, pump in enumerate(way):
            if pump.call_later(self._hop, way[place + 1 :], rounds):
                return
        if rounds > 1 and self.is_current:
            self._follow(rounds - 1)
        elif not self.busy:  # else `_attempt` decides who gets the next key: this dialog or what lies below
            self._become_ready()

    def title_text(self) -> str:
        """The title in the frame."""
        return self.TITLE_TEXT

    def body(self) -> ComposeResult:
        """What stands in the box."""
        raise NotImplementedError

    def buttons(self) -> ComposeResult:
        """The buttons, the usual one first."""
        yield Button("Close", id="cancel", compact=True)

    def action_leave(self) -> None:
        """Leave without a result."""
        self.dismiss(None)

    def show_error(self, error: Exception | str) -> None:
        """Say what went wrong; an empty text takes it away."""
        label = self.query_one(".error", Static)
        text = describe(error) if isinstance(error, Exception) else error
        label.update(Content(text))
        label.set_class(bool(text), "-shown")

    def attempt(self, work: Callable[[], Awaitable[Result]]) -> None:
        """Do something slow; leave with its result, or show why it failed and stay.

        What is typed meanwhile waits for a moment: it is for whoever has the keys afterwards.
        It goes on when the person leaves before: an agent that is half open would belong to nobody.
        """
        if not self.busy:
            self.busy = True
            self.show_error("")
            self._subtitle(BUSY)
            self.app.run_worker(self._attempt(work), exit_on_error=False, group="attempts")

    async def _attempt(self, work: Callable[[], Awaitable[Result]]) -> None:
        try:
            result = await work()
        except SynapseError as error:
            self._failed(error)
        except Exception as error:
            log.exception("dialog failed")
            self._failed(error)
        else:
            if self.is_current:
                self.dismiss(result)
        finally:
            self.busy = False

    def _failed(self, error: Exception) -> None:
        if self.is_current:
            self._subtitle(self.SUBTITLE)
            self.show_error(error)
            self._become_ready()
        elif isinstance(self.app, Reporter):
            self.app.notice_error(error)

    def _subtitle(self, text: str) -> None:
        self.query_one(".dialog").border_subtitle = Content(f" {text} ") if text else None


class Form(Dialog[Result]):
    """A dialog with fields: Enter in one, or the button with the verb, does what it is for.

    Subclasses give `body`, `submit` and the verb.
    """

    VERB: ClassVar[str] = ""
    """What it does, as its button says; in small letters that button's id."""
    VARIANT: ClassVar[ButtonVariant] = "primary"

    def buttons(self) -> ComposeResult:
        """The one that does it, and cancel."""
        yield Button(self.VERB, id=self.VERB.lower(), variant=self.VARIANT, compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def submit(self) -> None:
        """Do it."""
        raise NotImplementedError

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.submit()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == self.VERB.lower():
            self.submit()
        else:
            self.action_leave()


def describe(error: Exception) -> str:
    """An error for a person: what happened on one line, what to do on the next."""
    if isinstance(error, SynapseError):
        return f"{error.message}\n{error.hint}" if error.hint else error.message
    return f"unexpected: {error!r}"


def label(text: str, classes: str = "label") -> Label:
    """A line of plain text; agents' names may stand in it, so it is never read as markup."""
    return Label(Content(text), classes=classes, markup=False)
