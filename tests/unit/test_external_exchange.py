"""A send to an external agent whose stream misbehaves: its own task counts, and a broken one is asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from synapse_tui.a2a.external.peer import Outgoing, TaskUpdate, Update
from synapse_tui.a2a.external.worker import Exchange
from synapse_tui.errors import PeerRefused
from synapse_tui.model import TaskState


class ScriptedPeer:
    """An agent whose stream says what a test wants; asked for, its task is completed."""

    streaming = True

    def __init__(self, *said: Update | Exception) -> None:
        self._said: Sequence[Update | Exception] = said
        self.asked = 0

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:
        for update in self._said:
            if isinstance(update, Exception):
                raise update
            yield update

    async def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        return
        yield  # a stream that ends at once

    async def get(self, task_id: str) -> TaskUpdate:
        self.asked += 1
        return TaskUpdate(task_id, "c", TaskState.COMPLETED)

    async def cancel(self, task_id: str) -> TaskUpdate:
        return TaskUpdate(task_id, "c", TaskState.CANCELED)

    async def close(self) -> None:
        pass


async def sent(peer: ScriptedPeer) -> list[Update]:
    return [update async for update in Exchange(peer).send(Outgoing("hello", "m"))]


OURS = TaskUpdate("t1", "c", TaskState.WORKING)


async def test_what_is_told_of_other_tasks_is_left_out() -> None:
    foreign = TaskUpdate("t2", "c", TaskState.COMPLETED)
    done = TaskUpdate("t1", "c", TaskState.COMPLETED)
    peer = ScriptedPeer(OURS, foreign, done)
    assert await sent(peer) == [OURS, done]
    assert not peer.asked


async def test_a_stream_that_breaks_once_the_task_is_known_is_replaced_by_asking() -> None:
    peer = ScriptedPeer(OURS, PeerRefused("Invalid JSON-RPC response", 0, ""))
    updates = await sent(peer)
    assert updates[0] == OURS
    assert isinstance(updates[-1], TaskUpdate)
    assert updates[-1].state is TaskState.COMPLETED
    assert peer.asked
