"""How fast an agent takes the keys of its user that were held back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from synapse_tui.agents.process.keyboard import presses_enter

from .composing import IDLE
from .enter import FRAME
from .gate import dialog_open
from .view import AgentView

FETCHES = 2.0
"""Seconds in which an agent at rest has emptied its composer after Enter, if that does so at all."""
BUSY = 8.0
"""Seconds in which one has that does something else before."""
TAKES = 3.0
"""Seconds in which an agent has read and shown what it was sent, also when it has much else to draw."""


class Pace:
    """Tells when an agent has taken what it was sent: it is at rest, and an Enter has emptied its composer.

    Agents that read several keys at once may act on Enter before, or after, they have taken in the text.

    Args:
        view: The agent's terminal.
    """

    def __init__(self, view: AgentView) -> None:
        self._view = view
        self._entered = False
        self._tasks: set[asyncio.Task[None]] = set()

    def sent(self, data: bytes) -> None:
        """Bytes of the user's are sent to the agent now."""
        self._entered = presses_enter(data) and not dialog_open(self._view)

    def taken(self, follow: Callable[[], None]) -> None:
        """Call back once the agent has taken what it was sent, or the time for that is over."""
        task = asyncio.get_running_loop().create_task(self._wait(follow), name="pace")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(self, follow: Callable[[], None]) -> None:
        begun = self._view.now()
        # Text that the agent has not shown yet may come into the composer even now.
        await self._view.settled(FRAME, TAKES)
        while self._stands() and (passed := self._view.now() - begun) < BUSY:
            if passed < FETCHES:
                await self._view.changed(FETCHES - passed)
            elif await self._at_rest():
                break
        follow()

    async def _at_rest(self) -> bool:
        return not self._view.unread and await self._view.settled(IDLE, 2 * IDLE)

    def _stands(self) -> bool:
        reading = self._view.reading()
        return self._entered and self._view.alive and reading.visible and bool(reading.draft)
