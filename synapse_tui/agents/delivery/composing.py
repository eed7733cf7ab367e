"""A text of ours in an agent's composer: whether it stands there, and how it is taken out again."""

from __future__ import annotations

from collections.abc import Callable

from synapse_tui.agents.composer.proof import Proof
from synapse_tui.agents.composer.reading import ComposerReading
from synapse_tui.agents.process.keyboard import Keyboard
from synapse_tui.agents.profiles.profile import Profile

from .gate import STEADY, dialog_open
from .view import AgentView

PATIENCE = 1.5
"""Seconds that a user who types while a message is being typed waits before the message gives way."""
IDLE = 0.3
"""Seconds for which an agent must have done nothing to have nothing more to show."""
READS = 0.05
"""Seconds between two looks whether it has read what it was sent."""
TAKES_IN = 10.0
"""Seconds that it has for all that."""
CLEAR_PAUSE = 0.3
MAX_CLEARS = 20
"""How often the clear key is pressed, so many seconds apart, without an effect that can be read."""
MOST_ROWS = 500
"""How often it is pressed where it clears a row each time."""
CLEARED = 1.0
"""Seconds in which the composer must be empty after a clear key."""


class Composing:
    """Looks at one agent's composer, and waits for it.

    Args:
        view: The agent's terminal.
        keyboard: The user's keys.
        profile: What its composer is, and its clear keys.
    """

    def __init__(self, view: AgentView, keyboard: Keyboard, profile: Profile) -> None:
        self._view = view
        self._keyboard = keyboard
        self._profile = profile
        self._proof: Proof | None = None

    def stands(self, text: str) -> bool:
        """Whether a text stands in the composer, by the output parsed up to now."""
        proof = self.proof(text)
        if self._profile.composer is None:
            return proof.on(self._view.tail())
        reading = self._view.reading()
        return reading.visible and not reading.dialog and proof.stands(reading.draft)

    @property
    def empty(self) -> bool:
        """Whether nothing has stood in it for a moment."""
        return self._view.empty_for() >= STEADY

    @property
    def user_waits_too_long(self) -> bool:
        """Whether a user typed so long ago that a message must give way."""
        since = self._keyboard.waiting_since
        return since is not None and self._view.now() - since >= PATIENCE

    async def clear(self, text: str) -> bool:
        """Take a text out of the composer again.

        Returns:
            Whether it is gone: the composer is empty, or holds something else.
        """
        if not self.stands(text):
            return True
        self._press_clear()
        deadline = self._view.now() + CLEARED
        # One press clears one line in some agents: as long as it does something, it is pressed again.
        return await self.lasts(lambda: not self.stands(text), deadline) and await self._clear_rest()

    async def wipe(self, text: str) -> bool:
        """Leave the composer as empty as it was, when it holds a text of ours and nothing before it.

        Returns:
            Whether it is empty.
        """
        if not self.stands(text) and not await self.taken_in():
            return False
        proof = self.proof(text)
        if not self.stands(text) and not proof.begun(self._view.reading().draft, self._view.tail()):
            return self.empty
        without_effect = 0
        for _ in range(MOST_ROWS):
            if dialog_open(self._view) or without_effect >= MAX_CLEARS:
                return False
            before = self._view.reading()
            self._press_clear()
            await self._redrawn(before)
            if await self.lasts(lambda: self._view.reading().empty, self._view.now()):
                return True
            without_effect = without_effect + 1 if self._view.reading().draft == before.draft else 0
        return False

    async def _redrawn(self, before: ComposerReading) -> None:
        """Wait a moment for what a clear key did."""
        deadline = self._view.now() + CLEAR_PAUSE
        while not (reading := self._view.reading()).visible or reading.draft == before.draft:
            if not await self.change(deadline):
                return

    async def taken_in(self) -> bool:
        """Wait until the agent has taken in all that it was sent: what it will show of it is shown then.

        Returns:
            Whether it has; False when the time was over first.
        """
        deadline = self._view.now() + TAKES_IN
        while self._view.alive and (self._view.unread or not await self._view.settled(IDLE, 2 * IDLE)):
            if self._view.now() >= deadline:
                return False
            await self._view.changed(READS)
        return True

    async def lasts(
        self, condition: Callable[[], bool], deadline: float, now: Callable[[], bool] = lambda: False
    ) -> bool:
        """Wait until something holds for a moment: a composer that is being redrawn shows anything.

        Args:
            condition: What must hold.
            deadline: When it must have begun to hold.
            now: When this holds too, there is no need to wait on.
        """
        since: float | None = None
        while self._view.alive:
            if not condition():
                since = None
                if not await self.change(deadline):
                    return False
                continue
            since = self._view.now() if since is None else since
            if now() or self._view.now() - since >= STEADY:
                return True
            await self._view.changed(since + STEADY - self._view.now())
        return False

    async def change(self, deadline: float) -> bool:
        """Wait for the next change, or until a user has waited too long; False when the time is over."""
        left = deadline - self._view.now()
        if left <= 0:
            return False
        since = self._keyboard.waiting_since
        if since is not None:
            left = min(left, max(0.05, since + PATIENCE - self._view.now()))
        await self._view.changed(left)
        return True

    def _press_clear(self) -> None:
        for key in self._profile.clear:
            self._view.write(key)

    def proof(self, text: str) -> Proof:
        """What tells whether a text stands in this agent's composer."""
        if self._proof is None or self._proof.text != text:
            pastes = self._profile.composer.pastes if self._profile.composer is not None else ()
            self._proof = Proof(text, pastes)
        return self._proof

    async def _clear_rest(self) -> bool:
        for _ in range(MOST_ROWS):
            before = self._view.reading()
            if self._profile.composer is None or not before.visible or not before.draft:
                return True
            self._press_clear()
            deadline = self._view.now() + CLEARED
            while self._view.reading().draft == before.draft:
                if not await self.change(deadline):
                    return False
        return False
