"""The routes of an agent's outbox: what waits to be typed, and what may be done with it.

An agent that proves itself by its signature may act on the messages that it sent, and only so far as others
do not suffer: the order is the person's. A request without a signature is the person's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import JSONResponse

from synapse_tui.agents.delivery.outbox_control import OutboxControl, WaitingMessage
from synapse_tui.errors import InvalidValue
from synapse_tui.model import USER, Task

from .agent import HostedAgent
from .problems import HttpProblem
from .wire import sender_json, task_json

Action = Literal["cancel", "hold", "release", "retry", "now", "move"]
BEGINNING = 500
"""Characters of each text that the list tells."""
EVERY = "all"
"""In place of an id: all of the caller's messages that the action is for."""
_OF_THE_PERSON = frozenset({"now", "move"})

outbox_router = APIRouter()


def _control(request: Request) -> OutboxControl:
    agent: HostedAgent = request.state.agent
    return agent.control


def _sender_id(request: Request) -> str:
    sender_id: str = request.state.sender_id
    return "" if sender_id == USER.sender_id else sender_id


Control = Annotated[OutboxControl, Depends(_control)]
AgentSender = Annotated[str, Depends(_sender_id)]
Place = Annotated[int, Query(ge=1, description="Position to move to, from 1")]


@outbox_router.get("/outbox")
async def read_outbox(control: Control) -> Response:
    """What waits, in the order in which it will be typed; then what is to be read."""
    return JSONResponse({"messages": [message_json(message) for message in control.every()]})


@outbox_router.post("/outbox/{task_id}/{action}")
async def act(
    task_id: str, action: Action, control: Control, sender_id: AgentSender, place: Place | None = None
) -> dict[str, Any]:
    """Do something with one waiting message, or with all."""
    if action == "move" and (place is None or task_id == EVERY):
        raise InvalidValue("move needs one message and its place", "POST /outbox/{id}/move?place=1")
    chosen = _chosen(control, task_id, action, sender_id)
    tasks = [await _ACTIONS[action](control, message.task.id, place or 1) for message in chosen]
    # What was answered must still hold after a crash: a canceled message does not come back.
    return {"tasks": [task_json(await control.saved(task)) for task in tasks]}


def _chosen(control: OutboxControl, task_id: str, action: Action, sender_id: str) -> Sequence[WaitingMessage]:
    """The messages that are meant.

    Raises:
        TaskNotFound: None of that id waits.
        HttpProblem: The caller may not do that.
    """
    if sender_id and action in _OF_THE_PERSON:
        raise HttpProblem(
            403, "order_is_the_persons", f"agents may not {action} messages", "send with another priority"
        )
    if task_id == EVERY:
        mine = [each for each in control.waiting() if not sender_id or _is_from(each, sender_id)]
        return [each for each in mine if _fits(each, action)]
    found = control.find(task_id)
    if sender_id and not _is_from(found, sender_id):
        raise HttpProblem(
            403,
            "not_your_message",
            f"message {found.task.short_id} was sent by {found.task.sender.sender_id}",
            "agents act on their own messages only",
        )
    return [found]


def _is_from(message: WaitingMessage, sender_id: str) -> bool:
    return message.task.sender.sender_id == sender_id


def _fits(message: WaitingMessage, action: Action) -> bool:
    """Whether an action for all is meant for a message: what is uncertain is looked at one by one."""
    if action in ("release", "retry", "now"):
        return message.entry.parked and not message.uncertain
    return action == "cancel" or not message.entry.parked


async def _hold(control: OutboxControl, task_id: str, _place: int) -> Task:
    return control.hold(task_id)


async def _release(control: OutboxControl, task_id: str, _place: int) -> Task:
    return control.release(task_id)


async def _retry(control: OutboxControl, task_id: str, _place: int) -> Task:
    return control.retry(task_id)


async def _now(control: OutboxControl, task_id: str, _place: int) -> Task:
    return control.send_now(task_id)


async def _move(control: OutboxControl, task_id: str, place: int) -> Task:
    return control.move(task_id, place)


async def _cancel(control: OutboxControl, task_id: str, _place: int) -> Task:
    return await control.cancel(task_id)


_ACTIONS: Mapping[Action, Callable[[OutboxControl, str, int], Awaitable[Task]]] = MappingProxyType(
    {"cancel": _cancel, "hold": _hold, "release": _release, "retry": _retry, "now": _now, "move": _move}
)


def message_json(message: WaitingMessage) -> dict[str, Any]:
    """A waiting message with the beginning of its text; `GET /tasks/{id}` tells all of it."""
    task = message.task
    return {
        "id": task.id,
        "position": message.position,
        "sender": sender_json(task.sender),
        "follows": task.follows,
        "priority": task.priority,
        "delivery": task.delivery.value,
        "reason": task.reason,
        "held": message.entry.parked,
        "uncertain": message.uncertain,
        "unread": message.unread,
        "text": task.text[:BEGINNING].encode("utf-8", "replace").decode(),
        "length": len(task.text),
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
    }
