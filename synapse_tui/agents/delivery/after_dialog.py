"""What becomes of a message that was typed and that a dialog then covered, or that was not read at once."""

from __future__ import annotations

from dataclasses import dataclass

from synapse_tui.model import AgentState

from .gate import EXITED, STEADY, dialog_open, dialog_words
from .typist import Commit, Typed, TypingResult, Typist
from .view import AgentView

COMPOSER_BACK = 1.5
"""Seconds after a dialog in which the composer must be back; the user's keys wait so long."""


@dataclass(slots=True)
class Standing:
    """A message that stands, or may stand, unsent in the composer.

    Attributes:
        task_id: Its task.
        text: What was typed.
        entered: Whether Enter was pressed on it.
        unread: Whether the agent had not read all of it when it was given up for the moment.
    """

    task_id: str
    text: str
    entered: bool
    unread: bool = False


class AfterDialog:
    """Looks again when the dialog is gone; the user's keys are held back meanwhile.

    Args:
        view: The agent's terminal.
        typist: Who typed the message.
    """

    def __init__(self, view: AgentView, typist: Typist) -> None:
        self._view = view
        self._typist = typist

    async def look(self, message: Standing, commit: Commit) -> TypingResult:
        """Submit the message where it still stands, or find out that it does not."""
        await self._taken_in(message)
        deadline = self._view.now() + COMPOSER_BACK
        while self._view.alive and not dialog_open(self._view):
            ready = self._view.report.state is AgentState.READY
            if ready and self._typist.stands(message.text):
                return await self._typist.submit(message.text, commit)
            if ready and self._view.empty_for() >= STEADY:
                return self._vanished(message)
            if (left := deadline - self._view.now()) <= 0:
                return await self.take_back(message)
            await self._view.changed(min(left, STEADY) if self._view.reading().empty else left)
        if not self._view.alive:
            return TypingResult(Typed.EXITED, EXITED, message.entered)
        return TypingResult(Typed.BLOCKED, dialog_words(self._view), message.entered)

    async def take_back(self, message: Standing) -> TypingResult:
        """Take the text out of the composer, so that the user has it back."""
        await self._taken_in(message)
        if not self._typist.stands(message.text):
            return self._vanished(message)
        if await self._typist.clear(message.text):
            return TypingResult(Typed.REMOVED, "taken back", entered=False)
        return TypingResult(Typed.LEFT, "agent did not take Enter", message.entered)

    async def _taken_in(self, message: Standing) -> None:
        """What was read a moment ago may not be shown yet, and is not to be taken for lost."""
        if message.unread:
            await self._typist.taken_in()
            message.unread = False

    def _vanished(self, message: Standing) -> TypingResult:
        """It is not in the composer: sent if Enter was pressed on it, else swallowed by the dialog."""
        outcome = Typed.SUBMITTED if message.entered else Typed.REMOVED
        return TypingResult(outcome, "" if message.entered else "a dialog swallowed it", message.entered)
