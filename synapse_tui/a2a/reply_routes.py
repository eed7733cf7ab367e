"""The routes of answers: outgoing tasks, replies of the agent itself, and answers that come from others.

An agent that waits for an answer keeps an outgoing task for it. The one who was asked answers its own task by
`POST /tasks/{id}/reply` on its own server; its host then sends that to the outgoing task, by
`POST /tasks/send?reply_to=ID` on the server of the one who asked. The original names the task in
`metadata.in_reply_to` instead, so both are sent and taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ValidationError

from synapse_tui.agents.delivery.incoming import receive
from synapse_tui.content import text_of_parts
from synapse_tui.errors import MessageError, SynapseError
from synapse_tui.messages.service import late_message
from synapse_tui.model import MessageRequest, Reply, Sender, Task, TaskState

from .agent import HostedAgent
from .body_files import BodyFiles
from .problems import HttpProblem
from .request_state import Agent, Files, VerifiedId, find_task
from .senders import sender_of, type_of
from .wire import SendBody, SentTask, WireTarget, check_metadata, own_metadata, task_json, text_of
from .wire_parts import content_of, only_text

_STATES = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED, TaskState.INPUT_REQUIRED})
_ENDS = _STATES | {TaskState.CANCELED}
MAX_WORD = 300

reply_router = APIRouter()

ReplyTo = Annotated[str, Query(max_length=100, description="The outgoing task that the message answers")]


@reply_router.post("/tasks/create")
async def create_outgoing(body: SendBody, agent: Agent, verified_id: VerifiedId) -> SentTask:
    """Make an outgoing task of this agent: it ends when the answer comes."""
    _check_own(agent, verified_id)
    target = _target(check_metadata(body.metadata))
    request = MessageRequest(
        text=text_of(body.message.parts),
        sender=Sender(verified_id, type_of(verified_id), agent.endpoint, verified=True),
        response_expected=True,
        metadata={
            **own_metadata(body.metadata),
            "target_agent": target.target_agent,
            "target_endpoint": target.target_endpoint,
        },
    )
    return SentTask(task=task_json(agent.service.open(request, target.target_agent)))


@reply_router.get("/reply")
async def list_awaiting(agent: Agent) -> dict[str, Any]:
    """The tasks that this agent can reply to; the first is the one that `POST /reply` answers."""
    return {"tasks": [task_json(task) for task in agent.service.awaiting()]}


@reply_router.post("/reply")
async def reply_to_current(body: SendBody, agent: Agent, verified_id: VerifiedId, files: Files) -> SentTask:
    """Reply to the task that this agent works on, or else to the newest that awaits it."""
    return await _reply(agent, "", body, verified_id, files)


@reply_router.post("/tasks/{task_id}/reply")
async def reply(
    task_id: str, body: SendBody, agent: Agent, verified_id: VerifiedId, files: Files
) -> SentTask:
    """Reply to a task in the agent's own words."""
    _check_own(agent, verified_id)
    return await _reply(agent, find_task(agent, task_id).id, body, verified_id, files)


async def _reply(
    agent: HostedAgent, task_id: str, body: SendBody, verified_id: str, files: BodyFiles | None
) -> SentTask:
    _check_own(agent, verified_id)
    meant = agent.service.replied_to(task_id)
    task = agent.service.reply(meant.id, await _reply_of(agent, meant.id, body, files))
    return SentTask(task=task_json(await agent.control.saved(task)))


async def _reply_of(agent: HostedAgent, task_id: str, body: SendBody, files: BodyFiles | None) -> Reply:
    """An agent's own answer; files in it are kept like those that come with messages."""
    state = _state(body.metadata, _STATES)
    as_message = body.metadata.get("as_message") is True
    content = content_of(body.message.parts, files)
    if only_text(content):
        return Reply(text_of(body.message.parts), state, as_message=as_message)
    parts = await receive(content, agent.cwd, task_id, typed=False)
    return Reply(text_of_parts(parts), state, parts=parts, as_message=as_message)


def _check_own(agent: HostedAgent, verified_id: str) -> None:
    if verified_id != agent.agent_id:
        raise HttpProblem(
            403,
            "not_the_agent",
            f"only {agent.agent_id} itself may do that",
            "sign the request with the agent's token, as `synapse reply` inside it does",
        )


def answered_by(agent: HostedAgent, body: SendBody) -> str:
    """The outgoing task that a message answers in the original's way, by its whole id; empty for none."""
    found = body.metadata.get("in_reply_to")
    if not isinstance(found, str) or not found:
        return ""
    with contextlib.suppress(SynapseError):
        if agent.service.outgoing(found).id == found:
            return found
    return ""


async def take_answer(
    agent: HostedAgent, reply_to: str, body: SendBody, verified_id: str, is_ours: Callable[[str], bool]
) -> Task:
    """Take what answers an outgoing task.

    Only the agent that was asked may answer. One of another host cannot prove itself here: then the whole id,
    which only it was told, stands for that.

    Returns:
        The outgoing task; where it had ended, the message by which the agent is told.

    Raises:
        TaskNotFound: There is no such outgoing task.
        HttpProblem: The answer is not from the one who was asked.
    """
    metadata = check_metadata(body.metadata)
    task = agent.service.outgoing(find_task(agent, reply_to).id)
    sender = sender_of(metadata, verified_id, is_ours=is_ours)
    trusted = sender.verified or (task.id == reply_to.lower() and not is_ours(task.target))
    if sender.sender_id != task.target or not trusted:
        raise HttpProblem(
            403, "not_the_target", f"task {task.short_id} is answered by {task.target} only", "send a message"
        )
    named = _word(metadata, "receiver_task_id") or _word(metadata, "in_reply_to")
    error = metadata.get("reply_error")
    answer = Reply(
        _answer_text(body),
        _state(metadata, _ENDS),
        truncated=metadata.get("truncated") is True,
        # The original gives what stands on its screen as artifacts, and the words of its agent without.
        explicit=metadata.get("explicit", not metadata.get("reply_artifacts")) is not False,
        in_reply_to="" if named == task.id else named,
        reason=_word(metadata, "reason") or (_word(error, "message") if isinstance(error, dict) else ""),
    )
    taken = agent.service.answered(task.id, answer, verified=sender.verified)
    if taken is None:
        taken = agent.accept(late_message(answer, sender))
    return await agent.control.saved(taken)


def _answer_text(body: SendBody) -> str:
    """The text of an answer; an agent may have written nothing at all."""
    try:
        return text_of(body.message.parts)
    except MessageError:
        return ""


def _state(metadata: Mapping[str, Any], known: frozenset[TaskState]) -> TaskState:
    word = metadata.get("status", metadata.get("reply_status", TaskState.COMPLETED.value))
    if word not in known:
        words = ", ".join(sorted(known))
        raise MessageError(f"metadata.status {word!r} is not valid", f"use one of {words}")
    return TaskState(word)


def _target(metadata: Mapping[str, Any]) -> WireTarget:
    try:
        return WireTarget.model_validate(metadata, strict=True)
    except ValidationError as error:
        where = error.errors(include_url=False, include_input=False)[0]["loc"][0]
        raise MessageError(
            f"metadata.{where} is missing or not valid", "name the receiver and its URL"
        ) from error


def _word(metadata: Mapping[str, Any], key: str) -> str:
    found = metadata.get(key)
    return found[:MAX_WORD] if isinstance(found, str) else ""
