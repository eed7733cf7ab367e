"""One message to an external agent and all that comes of it, whether the agent streams or must be asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

from synapse_tui.errors import PeerError, PeerRefused, PeerUnreachable

from .peer import NotOffered, Peer
from .updates import Chunk, Outgoing, Snapshot, StatusUpdate, Update, at_rest

IDLE = 60.0
"""Seconds of silence in a stream after which the task is asked for."""
FIRST_PAUSE = 0.3
LONGEST_PAUSE = 8.0
GROWTH = 1.5
PATIENCE = 120.0
"""Seconds for which an agent that does not answer is asked again about a task that it has taken."""
BROKEN_STREAMS = 5
"""Streams that tell nothing new; afterwards the agent is asked."""

Sleep = Callable[[float], Awaitable[None]]


class Exchange:
    """Speaks with an agent until a task is at rest: it has ended, or waits for an answer.

    Args:
        peer: The agent.
        idle: Seconds of silence in a stream after which the task is asked for.
        sleep: Waits so many seconds.
    """

    def __init__(self, peer: Peer, *, idle: float = IDLE, sleep: Sleep = asyncio.sleep) -> None:
        self._peer = peer
        self._idle = idle
        self._sleep = sleep
        self._streams = peer.streaming

    async def send(self, outgoing: Outgoing) -> AsyncGenerator[Update, None]:
        """Send a message and tell all that comes of it.

        The message is sent once; only where the agent does not stream after all, and so has not taken it, it
        is sent again without, under the same id.

        Raises:
            PeerUnreachable: The agent cannot be reached, or not any more.
            PeerRefused: It did not take the message, or does not know its task.
        """
        task_id = ""
        async with contextlib.aclosing(self._taken(outgoing)) as updates:
            async for update in updates:
                yield update
                task_id = task_of(update) or task_id
                if at_rest(update):
                    return
        if not task_id:
            raise PeerRefused("the agent answered nothing", 0, "ask it before you send the message again")
        async with contextlib.aclosing(self.follow(task_id)) as rest:
            async for update in rest:
                yield update

    async def _taken(self, outgoing: Outgoing) -> AsyncGenerator[Update, None]:
        """What the agent tells as long as the connection lasts on which it was sent the message."""
        told = False
        # An answer to a question goes without a stream, and the task is listened to afterwards: some servers
        # refuse such a stream when they have taken the message already, since it begins without the task.
        streams = self._streams and not outgoing.task_id
        try:
            said = self._peer.send(outgoing, stream=streams)
            async with contextlib.aclosing(self._listen(said, patient=True)) as updates:
                async for update in updates:
                    told = True
                    yield update
        except NotOffered:
            if told or not streams:
                raise
            self._streams = False
            async with contextlib.aclosing(self._peer.send(outgoing, stream=False)) as updates:
                async for update in updates:
                    yield update
        except PeerError:
            if not told:
                raise  # nobody knows whether it arrived; once a task is known, it is asked for

    async def follow(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Tell what happens to a task that the agent has taken, until it is at rest.

        Raises:
            PeerUnreachable: The agent cannot be reached any more.
            PeerRefused: It does not know the task any more.
        """
        streams = BROKEN_STREAMS if self._streams else 0
        while streams and self._streams:
            streams -= 1
            async with contextlib.aclosing(self._subscribed(task_id)) as updates:
                async for update in updates:
                    yield update
                    if at_rest(update):
                        return
            seen = await self._look(task_id)
            if seen is not None:
                yield seen
                if seen.at_rest:
                    return
        async with contextlib.aclosing(self._asked(task_id)) as updates:
            async for update in updates:
                yield update

    async def _look(self, task_id: str) -> Snapshot | None:
        """The task as it is; None when the agent cannot be reached at this moment."""
        try:
            return await self._peer.get(task_id)
        except PeerUnreachable:
            return None

    async def _asked(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Ask for a task again and again until it is at rest."""
        pause, waited = FIRST_PAUSE, 0.0
        while True:
            try:
                update = await self._peer.get(task_id)
            except PeerUnreachable:
                if waited >= PATIENCE:
                    raise
                waited += pause
            else:
                waited = 0.0
                yield update
                if update.at_rest:
                    return
            await self._sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    async def _subscribed(self, task_id: str) -> AsyncGenerator[Update, None]:
        """What a stream tells, as long as it does."""
        try:
            said = self._peer.subscribe(task_id)
            async with contextlib.aclosing(self._listen(said, task_id)) as updates:
                async for update in updates:
                    yield update
        except NotOffered:
            self._streams = False
        except PeerError:
            return  # the task may have ended, or the connection: it is asked for

    async def _listen(
        self, updates: AsyncGenerator[Update, None], task_id: str = "", *, patient: bool = False
    ) -> AsyncGenerator[Update, None]:
        """Updates of one task until they end, or until there were none for a while.

        Args:
            updates: The stream; what it tells of other tasks than its first is left out.
            task_id: The task; empty for the one that the stream names first.
            patient: Whether to wait as long as it takes before a task is known: then it cannot be asked for.
        """
        known = not patient
        iterator = aiter(updates)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._idle if known else None):
                        update = await anext(iterator)
                except (StopAsyncIteration, TimeoutError):
                    return
                known = known or bool(task_of(update))
                task_id = task_id or task_of(update)
                if task_of(update) in ("", task_id):
                    yield update
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()


def task_of(update: Update) -> str:
    """The agent's id of the task that an update is about; empty for none."""
    return update.task_id if isinstance(update, StatusUpdate | Chunk) else ""
