"""Tells the readers of a task what its agent has written so far, while the turn goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .feed import TaskFeed

LOOK = 0.2
"""Seconds between two looks at what the agent writes."""
MANY = 150
"""Rows that are read on the loop; more are read in a thread."""
SHARE = 10
"""How many times longer than that took the next look is put off at the least."""
REPLACED = 1.0
"""Seconds between two texts of which the later does not go on with the earlier."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What the agent has written so far in the turn that runs.

    Attributes:
        task_id: The task that the turn works on.
        position: Which artifact of the task that will be, from 1.
        turn: Tells one turn from another.
        read: Gives its answer, as far as it can be seen; may be called in any thread.
        rows: Out of how many rows.
    """

    task_id: str
    position: int
    turn: str
    read: Callable[[], str]
    rows: int = 0


class Timer(Protocol):
    """Something that is due later."""

    def cancel(self) -> None:
        """Let it not happen."""


class Progress:
    """Looks at the answer of the running turn now and then, only while somebody reads its task.

    Told is what two looks found alike, up to the row that may still grow: so neither a spinner nor a half
    painted screen is part of it. The text of the artifact replaces it where it does not go on with it.

    Args:
        feed: Who reads.
        running: Id of the task of the running turn; empty for none.
        look: Reads what was written so far; None for nothing that can be told.
        later: Calls something after so many seconds.
        now: Monotonic seconds.
    """

    def __init__(
        self,
        feed: TaskFeed,
        running: Callable[[], str],
        look: Callable[[], Writing | None],
        later: Callable[[float, Callable[[], None]], Timer],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._feed = feed
        self._running = running
        self._look = look
        self._later = later
        self._now = now
        self._timer: Timer | None = None
        self._reading: asyncio.Task[None] | None = None
        self._turn = ""
        self._seen: list[str] = []
        """Lines of the last look."""
        self._told = ""
        self._told_at = float("-inf")

    def output(self) -> None:
        """The agent has put something out."""
        idle = self._timer is None and self._reading is None
        if idle and self._feed.wanted(self._running()):
            self._timer = self._later(LOOK, self._due)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _due(self) -> None:
        self._timer = None
        if not self._feed.wanted(self._running()) or (writing := self._look()) is None:
            return
        if writing.rows > MANY:
            self._reading = asyncio.get_running_loop().create_task(self._read(writing), name="read-progress")
        else:
            self._told_by(writing, writing.read())

    async def _read(self, writing: Writing) -> None:
        """Read a long answer beside the loop."""
        begun = self._now()
        text = await asyncio.to_thread(writing.read)
        self._reading = None
        now = self._look()
        if now is not None and (now.turn, now.position) == (writing.turn, writing.position):
            self._told_by(writing, text, SHARE * (self._now() - begun))

    def _told_by(self, writing: Writing, text: str, pause: float = 0.0) -> None:
        if self._tell(writing, text):
            self._timer = self._later(max(LOOK, pause), self._due)

    def _tell(self, writing: Writing, text: str) -> bool:
        """Tell what stands.

        Returns:
            Whether another look may find more without another output.
        """
        if writing.turn != self._turn:
            self._turn, self._seen, self._told = writing.turn, [], ""
        lines = text.split("\n")
        same = 0
        for old, new in zip(self._seen, lines, strict=False):
            if old != new:
                break
            same += 1
        settled, self._seen = self._seen == lines, lines
        stands = "\n".join(lines[: min(same, len(lines) - 1)])
        if self._tells_more(stands):
            self._told, self._told_at = stands, self._now()
            self._feed.written(writing.task_id, stands, writing.position)
        return not settled

    def _tells_more(self, text: str) -> bool:
        if self._told.startswith(text):
            return False
        return text.startswith(self._told) or self._now() - self._told_at >= REPLACED
