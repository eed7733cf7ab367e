"""A task of the dialect as a stream of events: `GET /tasks/{id}/subscribe`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

from synapse_tui.messages.streams import Chunk
from synapse_tui.model import Task

from .agent import HostedAgent
from .wire import task_json
from .wire_parts import part_json


async def task_events(agent: HostedAgent, task: Task) -> AsyncGenerator[dict[str, str], None]:
    """The task as it is, then what happens to it until it has ended.

    Args:
        agent: Whose task it is.
        task: The task.

    Yields:
        Events `task`, the task, and `artifact`, some of what the agent writes.

    Raises:
        SlowReader: The reader is too far behind.
    """
    if task.state.final:
        yield _event("task", task_json(task))
        return
    async with agent.streams.subscribe(task.id) as events:
        yield _event("task", task_json(events.task))
        async for event in events:
            if isinstance(event, Chunk):
                yield _event("artifact", _chunk_json(event))
            else:
                yield _event("task", task_json(event.task))


def _chunk_json(chunk: Chunk) -> dict[str, object]:
    return {
        "task_id": chunk.task_id,
        "artifact_id": chunk.artifact_id,
        "parts": [part_json(part) for part in chunk.parts],
        "append": chunk.append,
        "last": chunk.last,
    }


def _event(name: str, told: object) -> dict[str, str]:
    return {"event": name, "data": json.dumps(told, ensure_ascii=False)}
