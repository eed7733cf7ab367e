"""Whether the next message may be typed now, by the screen, the user, and what the agent works on."""

from __future__ import annotations

from synapse_tui.agents.process.keyboard import Keyboard
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskBook
from synapse_tui.model import INTERRUPT_PRIORITY, AgentState, Task

from .gate import DRAFT, Hold, why_held
from .leftovers import Leftovers
from .view import AgentView

LEFT_OVER = "another message is left in the composer"
WORKING = "working"
RETRY = 1.0
"""Seconds between two attempts, and between two looks whether the history can be written again."""
RETRY_IN_TURN = 5.0
"""Seconds between two attempts in the midst of a turn: each is to be seen in the composer for a moment."""
HANDED_ON = 4
"""Priority from which a message is given to an agent in the midst of a turn, when it takes one there."""


class Admission:
    """Decides for one agent, again at every change.

    Args:
        view: Its terminal.
        keyboard: The user's keys.
        profile: What is known of it.
        book: Its tasks.
        outbox: What waits.
        turns: The turn that runs.
        left: What stands in the composer unsent.
    """

    def __init__(
        self,
        view: AgentView,
        keyboard: Keyboard,
        profile: Profile,
        *,
        book: TaskBook,
        outbox: Outbox,
        turns: TurnTracker,
        left: Leftovers,
    ) -> None:
        self._view = view
        self._keyboard = keyboard
        self._profile = profile
        self._book = book
        self._outbox = outbox
        self._turns = turns
        self._left = left
        self._retry_at = self._retry_in_turn_at = float("-inf")
        self._prompted_at = float("-inf")

    def prompted(self) -> None:
        """The user has pressed Enter: a turn may begin, now or once another one is over."""
        self._prompted_at = self._view.now()

    def look(self) -> None:
        """Look at the agent, which has changed."""
        report = self._view.report
        if report.state is AgentState.PROCESSING and report.since > self._prompted_at:
            self._prompted_at = float("-inf")

    def try_later(self) -> None:
        """Something went wrong: nothing is typed for a moment."""
        self._retry_at = self._view.now() + RETRY

    def try_later_in_turn(self, seconds: float = RETRY_IN_TURN) -> None:
        """No moment was found for a message in the turn that runs: none is typed into it for a while."""
        self._retry_in_turn_at = self._view.now() + seconds

    def into_turn(self, task: Task | None) -> bool:
        """Whether a message would be typed now into an agent that works."""
        return (
            task is not None
            and task.priority >= HANDED_ON
            and self._profile.working_input != "hold"
            and self._profile.composer is not None
            and self._view.report.state is AgentState.PROCESSING
        )

    def why_not(self, task: Task | None) -> Hold | None:
        """Why a message is not typed now.

        Args:
            task: The message; None when none waits but those that are held.

        Returns:
            None when it may be typed.
        """
        works = self.into_turn(task)
        hold = why_held(self._view, self._keyboard, self._profile, works=works)
        if hold is not None:
            return Hold(LEFT_OVER) if hold.reason == DRAFT and self._left.ours else hold
        if problem := self._book.journal.problem:
            # Without a note that survives, a crash after Enter would have the message typed twice.
            return Hold(problem, RETRY)
        if not self._turns.takes(into_turn=works):
            return Hold(WORKING)
        if not works and (left := self._begins_in()) > 0:
            return Hold(WORKING, left)
        urgent = task is not None and task.priority >= INTERRUPT_PRIORITY
        if self._outbox.barrier and not urgent:
            return Hold(self._outbox.barrier)
        retry_at = max(self._retry_at, self._retry_in_turn_at) if works else self._retry_at
        left = retry_at - self._view.now()
        return Hold("tries again", left) if left > 0 else None

    def _begins_in(self) -> float:
        """Seconds in which the turn of the user's last prompt may still begin; 0 when it did."""
        begin = self._profile.submit.begin
        if not begin or self._prompted_at == float("-inf"):
            return 0.0
        return max(self._view.report.since, self._prompted_at) + begin - self._view.now()
