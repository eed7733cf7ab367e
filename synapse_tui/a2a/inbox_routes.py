"""The routes of an agent's inbox: messages of priority 1 that are read and not typed (setting `a2a.info`).

An agent that proves itself by its signature reads its own inbox only. A request without a signature is the
person's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from synapse_tui.agents.delivery.outbox_control import WaitingMessage
from synapse_tui.messages.outbox import wants_answer
from synapse_tui.model import USER, Task

from .problems import HttpProblem
from .request_state import Agent, VerifiedId
from .wire import sender_json, sound, task_json

MAX_MESSAGES = 100
MAX_CHARACTERS = 2_000_000
"""How much text one answer brings at most; one message always comes."""

inbox_router = APIRouter()


class ReadBody(BaseModel):
    """Body of `POST /inbox/read`: what was read; without `tasks` all that lies there."""

    model_config = ConfigDict(extra="forbid")

    tasks: Annotated[list[str], Field(max_length=1000)] | None = None


def _reader(agent: Agent, verified_id: VerifiedId) -> str:
    """Who reads.

    Raises:
        HttpProblem: Another agent.
    """
    if verified_id not in ("", USER.sender_id, agent.agent_id):
        raise HttpProblem(
            403,
            "not_your_inbox",
            f"the inbox of {agent.agent_id} is not that of {verified_id}",
            "agents read their own inbox: synapse inbox",
        )
    return verified_id or USER.sender_id


Reader = Annotated[str, Depends(_reader)]
Skip = Annotated[int, Query(ge=0, description="How many of the first messages are left out")]


@inbox_router.get("/inbox")
async def read_inbox(agent: Agent, _reader: Reader, skip: Skip = 0) -> dict[str, Any]:
    """What lies unread, oldest first, as far as it fits into one answer."""
    unread = agent.control.unread()
    return {
        "messages": [_message_json(message.task) for message in _fitting(unread[skip:])],
        "unread": len(unread),
    }


@inbox_router.post("/inbox/read")
async def mark_read(agent: Agent, _reader: Reader, body: ReadBody | None = None) -> dict[str, Any]:
    """End the tasks of messages that were read, but where an answer is waited for; others are left alone."""
    wanted = body.tasks if body is not None else None
    unread = [message.task for message in agent.control.unread()]
    named = frozenset(wanted or ())
    meant = [task for task in unread if wanted is None or task.id in named]
    tasks = [agent.control.read(task.id) for task in meant]
    return {"tasks": [task_json(await agent.control.saved(task)) for task in tasks]}


def _fitting(messages: Sequence[WaitingMessage]) -> Sequence[WaitingMessage]:
    """As many of the first messages as one answer brings."""
    length, count = 0, 0
    for message in messages[:MAX_MESSAGES]:
        length += len(message.task.text)
        if count and length > MAX_CHARACTERS:
            break
        count += 1
    return messages[:count]


def _message_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "sender": sender_json(task.sender),
        "text": sound(task.text),
        "answer_wanted": wants_answer(task),
        "created_at": task.created_at.isoformat(),
    }
