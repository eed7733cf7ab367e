"""What is done to an agent only while its programs rest: looking at its whole screen, giving it a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from synapse_tui.agents.state.quiescence import Activity
from synapse_tui.pty import PtyProcess
from synapse_tui.pty.process import StoppedTerminal

from .view import Seen

LOOK_AGAIN = 0.005
"""Seconds between two looks at an agent that is to come to rest."""
READ_AGAIN = 0.0005
"""Seconds between two looks whether a key was read: as long it may not draw."""


class AtRest:
    """Waits for an agent to come to rest, and gives it keys then.

    Args:
        process: The agent.
        clock: Monotonic seconds.
        take_in: Takes in what the agent has put out.
        drawing: Whether the agent is in the middle of a frame, as far as it was taken in.
    """

    def __init__(
        self,
        process: PtyProcess,
        clock: Callable[[], float],
        *,
        take_in: Callable[[], Awaitable[None]],
        drawing: Callable[[], bool],
    ) -> None:
        self._process = process
        self._clock = clock
        self._take_in = take_in
        self._drawing = drawing
        self._activity = Activity(process.pid, clock)

    async def settled(self, rest: float, limit: float, allowed: float = 0.0) -> bool:
        """`AgentView.settled`: what was begun before is then on the screen.

        Where the system does not tell what programs do, the time passes.
        """
        await self._activity.refresh()
        deadline = self._clock() + limit
        while True:
            await self._take_in()
            rested = self._activity.rested(allowed)
            if rested and rested >= rest and not self._drawing():
                await self._take_in()
                return True
            if self._clock() >= deadline:
                return False
            await asyncio.sleep(min(max(rest - rested, 0.001), LOOK_AGAIN))

    async def press(self, key: bytes, look: Callable[[], Seen], limit: float) -> Seen | None:
        """`AgentView.press`, with the agent's output stopped meanwhile where that can be done."""
        with self._process.stopped() as terminal:
            await self._take_in()
            seen = look()
            if terminal is None:
                self._process.write(key)
                return seen
            if self._process.pending or terminal.unread or not self._activity.rested():
                return None
            self._process.write(key)
            read = await self._reads(terminal, self._clock() + limit)
            return seen if read or not terminal.take_back(key) else None

    async def _reads(self, terminal: StoppedTerminal, deadline: float) -> bool:
        """Wait until the agent has read what it was sent; False when it did something else."""
        worked = False
        while terminal.unread:
            rested = self._activity.rested()
            # Woken, and asleep again without having read: it draws something, and cannot.
            if (worked and rested) or self._clock() >= deadline:
                return False
            worked = worked or not rested
            await asyncio.sleep(READ_AGAIN)
        return True
