"""What becomes of a message once it was typed, or could not be."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

from synapse_tui.agents.composer.proof import Proof
from synapse_tui.agents.process.keyboard import Keyboard
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.recovery import UNCERTAIN
from synapse_tui.messages.tasks import TaskBook
from synapse_tui.model import AgentState, DeliveryState

from .admission import Admission
from .after_dialog import Standing
from .gate import EXITED
from .leftovers import Leftovers
from .typist import Typed, TypingResult, Typist
from .view import AgentView

ATTEMPTS = 3
"""How often a message is typed that the agent did not take, before a person must look."""
REMEMBERED = 8
"""How many submitted texts are remembered, for an agent that puts one back."""


class Settlement:
    """Settles the messages to one agent.

    Args:
        view: The agent's terminal.
        keyboard: The user's keys.
        book: Where tasks change.
        outbox: What waits.
        turns: Told when a message was submitted.
        left: What stays in the composer.
        admission: Told when something went wrong.
        typist: Who typed it.

    Attributes:
        submitted: Texts that were submitted of late: an interrupt may put one back.
        entered_at: When Enter was pressed last.
    """

    def __init__(
        self,
        view: AgentView,
        keyboard: Keyboard,
        *,
        book: TaskBook,
        outbox: Outbox,
        turns: TurnTracker,
        left: Leftovers,
        admission: Admission,
        typist: Typist,
    ) -> None:
        self._view = view
        self._keyboard = keyboard
        self._book = book
        self._outbox = outbox
        self._turns = turns
        self._left = left
        self._admission = admission
        self._typist = typist
        self._failures: Counter[str] = Counter()
        self.submitted: deque[Proof] = deque(maxlen=REMEMBERED)
        self.entered_at = 0.0

    def note_submitted(self, text: str) -> None:
        """A text was submitted, by a message or by the user: an interrupt may put it back."""
        self.submitted.append(self._typist.proof(text))

    def settle(self, message: Standing, result: TypingResult) -> None:
        """A message was typed with some result."""
        if message.task_id not in self._outbox:
            self.went(message)  # the agent has answered it already, which proves more than the screen
            return
        if not result.entered:
            self._outbox.note_entered(message.task_id, entered=False)
        match result.outcome:
            case Typed.SUBMITTED:
                self.went(message)
            case Typed.BLOCKED | Typed.UNREAD:
                self._left.covered = replace(message, unread=result.outcome is Typed.UNREAD)
                self._book.change(message.task_id, delivery=DeliveryState.HELD, reason=result.reason)
            case Typed.REMOVED if not result.entered:
                self._failed(message.task_id, result.reason)
            case Typed.EXITED if not result.entered:
                self._book.change(message.task_id, delivery=DeliveryState.HELD, reason=EXITED)
            case Typed.LEFT:
                self._leave(message, result.reason)
            case _:
                self._outbox.park(message.task_id, f"{UNCERTAIN}: {result.reason}")

    def went(self, message: Standing) -> None:
        """A message was submitted: a turn begins."""
        self._outbox.take(message.task_id)
        self._failures.pop(message.task_id, None)
        self.note_submitted(message.text)
        if (turn := self._turns.current) is not None:
            self.note_submitted(f"{turn.text}\n{message.text}")  # both may be put back together
        task = self._book.get(message.task_id)
        self._turns.begin(task, message.text, self._view.report, self.entered_at)

    def _leave(self, message: Standing, reason: str) -> None:
        """A message stays in the composer for a person, whose earlier keys must not send it."""
        self._left.standing = message if self._typist.stands(message.text) else None
        if self._left.standing is not None:
            self._keyboard.drop_enters()
        self._outbox.park(message.task_id, f"{reason}; the text is left in the composer")

    def _failed(self, task_id: str, reason: str) -> None:
        self._book.change(task_id, delivery=DeliveryState.HELD, reason=reason)
        if self._typist.gave_up or self._keyboard.quiet_in(self._view.now()) or self._book.journal.problem:
            return  # it gave way to another or to the user, or could not be noted; that is no failure
        if self._view.report.state is AgentState.PROCESSING:
            self._admission.try_later_in_turn()
            return
        self._failures[task_id] += 1
        self._admission.try_later()
        if self._failures[task_id] >= ATTEMPTS:
            del self._failures[task_id]
            self._outbox.park(task_id, reason)
