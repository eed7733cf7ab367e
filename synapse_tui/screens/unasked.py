"""Dialogs that nobody asked for: they open while nobody types, and a person goes into them to answer.

Whoever types looks at the composer, not at what is about to open over it. So such a dialog waits until the
keyboard has been quiet, steps aside for keys that were not meant for it, which go to the pane in focus as
they would have without it, and comes back when it is quiet again. Letters and Enter count only once the
person has moved the focus into it, by Tab, an arrow key or a click. Its own letters and Enter before that
go nowhere, with a hint, since a stray `y` in a draft is wrong too; what goes on like text takes them along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import events

from synapse_tui.driver.events import TerminalKeyRelease
from synapse_tui.model import AgentState

from .dialog import Dialog, Result

if TYPE_CHECKING:
    from synapse_tui.app import SynapseApp

# How long nobody has typed before the dialog opens, and how long it is there before it takes a key
QUIET_SECONDS = 1.0
# Who gets input: the screen that is open, the main one below it, or nobody
Taken = Literal["screen", "main", "nobody"]
_ENTERING = frozenset({"tab", "shift+tab", "up", "down", "left", "right"})


class Unasked(Dialog[Result]):
    """A dialog that nobody asked for; opened by a `QuestionQueue`."""

    AUTO_FOCUS = ""
    ENTRY: ClassVar[str] = "Button"  # what has the focus once the person is in the dialog
    KEYS: ClassVar[str] = ""  # the subtitle from then on

    entered: bool = False  # whether the person has moved the focus into it, or leaves it

    @property
    def own_keys(self) -> frozenset[str]:
        return frozenset(key for key in self._bindings.key_to_bindings if len(key) == 1) | {"enter"}

    def enter(self) -> None:
        """The person is in the dialog: it takes letters and Enter from now on."""
        self.entered = True
        self.show_error("")
        if self.KEYS:
            self._subtitle(self.KEYS)
        if self.focused is None:
            self.query(self.ENTRY).first().focus()


class QuestionQueue:
    """Opens dialogs that nobody asked for, one after the other, while nobody types."""

    def __init__(self, app: SynapseApp) -> None:
        self._app = app
        self.clock: Callable[[], float] = monotonic
        self._queue: deque[tuple[Callable[[], Unasked[Any]], Callable[[Any], object]]] = deque()
        self._shown: Unasked[Any] | None = None
        self._shown_at = self._typed_at = float("-inf")
        self._hinted: list[events.Event] = []
        self._hinted_at = float("-inf")
        self._timed = False

    @property
    def pending(self) -> bool:
        return bool(self._queue)

    def ask(self, make: Callable[[], Unasked[Result]], answered: Callable[[Result | None], object]) -> None:
        self._queue.append((make, answered))
        self.open_next()

    def typed(self, event: events.Event) -> None:
        if not isinstance(event, events.MouseEvent | TerminalKeyRelease):
            self._typed_at = self.clock()

    def open_next(self) -> None:
        """Open the next question if nobody types and no dialog is open; else look again later."""
        if not self._queue or self._shown is not None or self._app.screen is not self._app.main:
            return
        left = self._typed_at + QUIET_SECONDS - self.clock()
        self._app.main.show_question_waits(waits=left > 0)
        if left > 0:
            if not self._timed:
                self._timed = True
                self._app.set_timer(left, self._look_again)
            return
        make, answered = self._queue[0]
        self._shown = dialog = make()
        self._shown_at = self.clock()
        self._app.let_go()

        def done(result: Any) -> None:  # noqa: ANN401 - each dialog has its own
            self._shown = None
            self._queue.popleft()
            answered(result)

        self._app.push_screen(dialog, done)

    def _look_again(self) -> None:
        self._timed = False
        self.open_next()

    def takes(self, event: events.Event, dialog: Unasked[Any]) -> Taken:
        """Decide about input while an unasked dialog is open; it steps aside for what is not for it."""
        if dialog.entered or isinstance(event, TerminalKeyRelease):
            return "screen"
        if isinstance(event, events.MouseDown):
            dialog.enter()
            return "screen"
        armed = self.clock() - max(self._typed_at, self._shown_at) >= QUIET_SECONDS
        key = event.key if isinstance(event, events.Key) else ""
        if armed and key == "escape":
            dialog.entered = True  # it may be given the key again, once it takes keys
            return "screen"
        if armed and key in _ENTERING:
            dialog.enter()
            return "nobody"
        if armed and key in dialog.own_keys:
            dialog.show_error("press Tab first: then its letters and Enter count")
            if self.clock() - self._hinted_at >= QUIET_SECONDS:
                self._hinted.clear()
            self._hinted.append(event)
            self._hinted_at = self.clock()
            return "nobody"
        if armed and self._agent_asks():
            dialog.show_error("Tab moves into this question; the agent below asks something too.")
            return "nobody"
        self._shown = None
        self._app.pop_screen()
        return "main"

    def taken_along(self) -> list[events.Event]:
        """Letters that were taken for an answer just before what shows that they begin a text."""
        hinted, self._hinted = self._hinted, []
        if self.clock() - self._hinted_at >= QUIET_SECONDS:
            return []
        return [event for event in hinted if isinstance(event, events.Key) and event.is_printable]

    def _agent_asks(self) -> bool:
        agent = self._app.main.find(self._app.main.active)
        return agent is not None and agent.state is AgentState.WAITING
