"""The routes of an agent's outbox, inbox, status and instructions.

An agent that signs its requests may act on the messages that it sent, except to reorder them: that would
affect other senders. Unsigned requests are the person's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from synapse_tui.agents.composer import ComposerExplanation
from synapse_tui.agents.composer_box import Refusal
from synapse_tui.agents.delivery.gate import Explanation
from synapse_tui.agents.instructions import Composed
from synapse_tui.agents.state import Passage
from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.model import USER, Task
from synapse_tui.messages.outbox import OutboxControl, WaitingMessage, wants_answer
from synapse_tui.messages.reasons import Reason

from .agent import HostedAgent
from .context import Agent, Caller, VerifiedId
from .problems import HttpProblem
from .wire import sender_json, sound, task_json

Action = Literal["cancel", "hold", "release", "retry", "now", "move"]
BEGINNING = 500
"""Characters of each text in a listing."""
EVERY = "all"
"""Instead of an id: all messages of the caller to which the action applies."""
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
    """List the messages waiting to be typed, in order, then the unread ones."""
    return JSONResponse({"messages": [waiting_json(message) for message in control.every()]})


@outbox_router.post("/outbox/{task_id}/{action}")
async def act(
    task_id: str, action: Action, control: Control, sender_id: AgentSender, place: Place | None = None
) -> dict[str, Any]:
    """Apply an action to one waiting message, or to all."""
    if action == "move" and (place is None or task_id == EVERY):
        raise InvalidValue("move needs one message and its place", "POST /outbox/{id}/move?place=1")
    chosen = _chosen(control, task_id, action, sender_id)
    if chosen and not sender_id and action in ("release", "retry", "now"):
        control.allow()
    tasks = [await _apply(control, action, message.task.id, place or 1) for message in chosen]
    # Answer after the commit: a canceled message must not come back after a crash.
    return {"tasks": [task_json(await control.saved(task)) for task in tasks]}


def _chosen(control: OutboxControl, task_id: str, action: Action, sender_id: str) -> Sequence[WaitingMessage]:
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
    """Whether an action on all applies to a message; uncertain ones must be handled one by one."""
    if action in ("release", "retry", "now"):
        asks = Reason.of(message.task.reason) is Reason.NO_PROFILE
        return (message.entry.parked or asks) and not message.uncertain
    return action == "cancel" or not message.entry.parked


async def _apply(control: OutboxControl, action: Action, task_id: str, place: int) -> Task:
    match action:
        case "cancel":
            return await control.cancel(task_id)
        case "hold":
            return control.hold(task_id)
        case "release":
            return control.release(task_id)
        case "retry":
            return control.retry(task_id)
        case "now":
            return control.send_now(task_id)
        case "move":
            return control.move(task_id, place)


def waiting_json(message: WaitingMessage) -> dict[str, Any]:
    """A waiting message with the beginning of its text; `GET /tasks/{id}` returns all of it."""
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


MAX_MESSAGES = 100
MAX_CHARACTERS = 2_000_000
"""Maximum characters in one answer, which has at least one message."""

inbox_router = APIRouter()


class ReadBody(BaseModel):
    """Body of `POST /inbox/read`; without `tasks`, all messages."""

    model_config = ConfigDict(extra="forbid")

    tasks: Annotated[list[str], Field(max_length=1000)] | None = None


def _reader(agent: Agent, verified_id: VerifiedId) -> str:
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
    """List the unread messages, oldest first, as many as fit in one answer."""
    unread = agent.control.unread()
    return {
        "messages": [_unread_json(message.task) for message in _fitting(unread[skip:])],
        "unread": len(unread),
    }


@inbox_router.post("/inbox/read")
async def mark_read(agent: Agent, _reader: Reader, body: ReadBody | None = None) -> dict[str, Any]:
    """Mark messages as read and complete their tasks, except where an answer is awaited."""
    wanted = body.tasks if body is not None else None
    unread = [message.task for message in agent.control.unread()]
    named = frozenset(wanted or ())
    meant = [task for task in unread if wanted is None or task.id in named]
    tasks = [agent.control.read(task.id) for task in meant]
    return {"tasks": [task_json(await agent.control.saved(task)) for task in tasks]}


def _fitting(messages: Sequence[WaitingMessage]) -> Sequence[WaitingMessage]:
    length, count = 0, 0
    for message in messages[:MAX_MESSAGES]:
        length += len(message.task.text)
        if count and length > MAX_CHARACTERS:
            break
        count += 1
    return messages[:count]


def _unread_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "sender": sender_json(task.sender),
        "text": sound(task.text),
        "answer_wanted": wants_answer(task),
        "created_at": task.created_at.isoformat(),
    }


Why = Annotated[bool, Query(description="Whether to tell the rule, the timeline and what waits")]

ShowComposer = Annotated[bool, Query(description="Whether to show how the composer is read, and why so")]

status_router = APIRouter()


@status_router.get("/status")
async def read_status(
    agent: Agent, caller: Caller, why: Why = False, composer: ShowComposer = False
) -> dict[str, Any]:
    """Return the agent's state and what its screen shows; with `why` also the reason.

    Callers that may not see others' tasks get only the state, since tasks are visible on the screen.
    """
    status = agent.report.state.value
    if not caller.sees_all:
        return {"status": status, "context": ""}
    answer: dict[str, Any] = {"status": status, "context": sound(agent.recent_text())}
    if composer:
        answer["composer"] = composer_json(agent.explain_composer())
    if not why:
        return answer
    found = agent.watcher.report
    watch = {"state": found.state.value, "sent": found.sent, "times": found.order.times} if found else None
    return answer | why_json(agent.explain()) | {"opened_by": list(agent.opened_by), "watch": watch}


@status_router.post("/continue")
async def continue_suspended(agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
    """Let a process that has suspended itself, as by Ctrl+Z, go on."""
    if verified_id not in ("", USER.sender_id):
        raise HttpProblem(
            403, "order_is_the_persons", f"an agent may not continue {agent.agent_id}", "ask the user"
        )
    if not agent.go_on():
        state = agent.report.state.value
        raise HttpProblem(409, "not_suspended", f"{agent.agent_id} is not suspended", f"its state is {state}")
    return {"status": agent.report.state.value}


def composer_json(view: ComposerExplanation) -> dict[str, Any]:
    """Format a composer; rows and columns count from 1, as editors count."""
    reading = view.reading
    box, refusal = reading.box, reading.refusal
    dialog = {"name": reading.dialog_name, "kind": reading.dialog_kind, "title": sound(reading.dialog_title)}
    return {
        "rules": view.rules,
        "visible": reading.visible,
        "empty": reading.empty,
        "draft": sound(reading.draft),
        "suggestion": reading.placeholder,
        "vi_normal": reading.vi_normal,
        "found_by": box.found_by if box is not None else "",
        "prompt": sound(box.prompt) if box is not None else "",
        "draft_at": {"row": box.first + 1, "column": box.column + 1} if box is not None else None,
        "cursor": {"row": view.cursor[1] + 1, "column": view.cursor[0] + 1, "visible": view.cursor_visible},
        "refused": _refusal_json(refusal) if refusal is not None else None,
        "dialog": dialog if reading.dialog is not None else None,
        "rows": [
            {"row": place + 1, "part": view.part(place), "text": sound(row.rstrip())}
            for place, row in enumerate(view.rows)
        ],
    }


def _refusal_json(refusal: Refusal) -> dict[str, Any]:
    return {"reason": refusal.reason, "row": refusal.row + 1 if refusal.row is not None else None}


def why_json(found: Explanation) -> dict[str, Any]:
    report = found.report
    return {
        "why": {
            "rule": report.rule,
            "matched": sound(report.matched),
            "detail": sound(report.detail),
            "since": found.since.isoformat(),
            "seconds": round(found.seconds, 3),
            "timeline": [_passage_json(passage, seconds) for passage, seconds in found.past],
        },
        "outbox": {
            "waiting": len(found.waiting),
            "held": found.held,
            "unread": found.unread,
            "reason": sound(found.held_by),
            "next": waiting_json(found.next) if found.next is not None else None,
        },
        "task": _running_json(found.task) if found.task is not None else None,
    }


def _passage_json(passage: Passage, seconds: float) -> dict[str, Any]:
    report = passage.report
    return {
        "state": report.state.value,
        "rule": report.rule,
        "matched": sound(report.matched),
        "detail": sound(report.detail),
        "at": passage.at.isoformat(),
        "seconds": round(seconds, 3),
    }


def _running_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "sender": sender_json(task.sender),
        "priority": task.priority,
        "status": task.state.value,
        "delivery": task.delivery.value,
        "text": sound(task.text[:BEGINNING]),
        "length": len(task.text),
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
    }


Now = Annotated[bool, Query(description="Whether to tell what would be sent now, also when they were sent")]

instructions_router = APIRouter()


@instructions_router.get("/instructions")
async def read_instructions(agent: Agent, now: Now = False) -> dict[str, Any]:
    """Return the instructions that the agent was last given; with `now` those it would be given now."""
    sent = agent.briefing.last
    if sent is not None and not now:
        return {
            "text": sound(sent.text),
            "files": _files_of(sent),
            "faults": [],
            "wanted": agent.briefing.wanted,
            "told": agent.briefing.told_as == agent.agent_id,
            "sent": {
                "task_id": sent.id,
                "status": sent.state.value,
                "delivery": sent.delivery.value,
                "reason": sound(sent.reason),
                "at": sent.created_at.isoformat(),
            },
        }
    composed = await agent.briefing.source()
    files = [sound(str(file.path)) for file in composed.files]
    return {
        "text": sound(composed.text),
        "files": files,
        "faults": _faults(composed),
        "wanted": agent.briefing.wanted,
        "told": agent.briefing.told_as == agent.agent_id,
        "sent": None,
    }


@instructions_router.post("/instructions/send")
async def send_instructions(agent: Agent, verified_id: VerifiedId) -> dict[str, Any]:
    """Send the agent its instructions again, in their current form."""
    if verified_id not in ("", USER.sender_id, agent.agent_id):
        raise HttpProblem(
            403, "not_the_agent", f"an agent may not instruct {agent.agent_id}", "send it a message"
        )
    task, composed = await agent.briefing.send()
    return {"task": task_json(await agent.control.saved(task)), "faults": _faults(composed)}


def _faults(composed: Composed) -> list[str]:
    return [sound(str(fault)) for fault in composed.faults]


def _files_of(task: Task) -> list[str]:
    files = task.metadata.get("files")
    return [sound(path) for path in files.split("\n") if path] if isinstance(files, str) else []
