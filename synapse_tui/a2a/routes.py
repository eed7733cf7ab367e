"""The routes of the HTTP dialect.

One application serves all agents; the guard in front of each server adds the agent to the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send

from synapse_tui.agents.delivery.incoming import receive, text_with_files
from synapse_tui.core.addresses import ALL, Address, fold, resolve
from synapse_tui.core.content import TaskMessage, text_of_parts
from synapse_tui.core.errors import (
    AgentNotFound,
    HistoryError,
    InvalidValue,
    MessageError,
    SynapseError,
    TaskNotFound,
)
from synapse_tui.core.model import (
    DEFAULT_PRIORITY,
    ORIGIN_ID,
    MessageRequest,
    Reply,
    Sender,
    Task,
    TaskState,
    check_priority,
)
from synapse_tui.messages.service import has_reply, is_repetition, late_message, repeatable, repeated
from synapse_tui.messages.task_stream import Chunk
from synapse_tui.messages.tasks import LOAD_TIMEOUT

from .agent import HostedAgent, Services
from .agent_routes import inbox_router, instructions_router, outbox_router, status_router
from .bodies import BodyFiles
from .context import (
    Agent,
    Caller,
    Files,
    Seen,
    Shared,
    VerifiedId,
    Visitor,
    Wait,
    check_ring,
    find_kept_task,
    find_task,
    sender_of,
    type_of,
    unknown_task,
    waited,
)
from .event_stream import EventStream
from .external_routes import external_router
from .problems import HttpProblem, is_protocol_path, refusal
from .watch_routes import watch_router, webhook_router
from .wire import (
    PlainBody,
    SendBody,
    SentTask,
    WireMessage,
    WireTarget,
    check_metadata,
    content_of,
    only_text,
    own_metadata,
    part_json,
    request_fields,
    task_json,
    text_of,
)

log = logging.getLogger(__name__)


async def request_of(
    agent: HostedAgent, body: SendBody, caller: Visitor, priority: int, files: BodyFiles | None = None
) -> MessageRequest:
    """Build the request that the agent accepts; attached files are written into its project."""
    request = _without_text(body, caller, priority)
    if body.message.task_id:
        request = _following(agent, request, body.message.task_id, caller)
    content = content_of(body.message.parts, files)
    request = repeatable(request, agent.agent_id)
    if only_text(content) and not request.follows:
        return replace(request, text=text_of(body.message.parts))
    task_id = request.task_id or str(uuid4())
    parts = await receive(content, agent.cwd, request.follows or task_id)
    return replace(
        request,
        text=text_with_files(parts, agent.cwd),
        task_id=task_id,
        message=TaskMessage(body.message.message_id or str(uuid4()), "user", parts),
    )


def _following(agent: HostedAgent, request: MessageRequest, task_id: str, caller: Visitor) -> MessageRequest:
    """Make the message continue a task. Agents may continue only their own tasks."""
    task = find_task(agent, task_id, caller)
    if caller.sender_id and task.sender.sender_id != request.sender.sender_id:
        raise HttpProblem(
            403,
            "not_your_task",
            f"task {task.short_id} was sent by {task.sender.sender_id}",
            "agents go on with their own tasks only",
        )
    return replace(request, follows=task.id)


def _without_text(body: SendBody, caller: Visitor, priority: int) -> MessageRequest:
    # Values of the original; with "notify" its command does not wait for the answer, but its agent does.
    asked = body.metadata.get("response_mode") in ("wait", "notify")
    return MessageRequest(
        text="",
        sender=caller.sender(body.metadata),
        priority=caller.check_priority(priority),
        metadata=own_metadata(check_metadata(body.metadata)),
        caller=caller.caller,
        **request_fields(body.metadata, response_expected=asked),
    )


async def task_events(agent: HostedAgent, task: Task) -> AsyncGenerator[dict[str, str], None]:
    """Yield the task as it is now, then its events until it ends."""
    if task.state.final:
        yield _event("task", task_json(task))
        return
    async with agent.tasks.changes.follow(task.id) as events:
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


def _event(name: str, data: object) -> dict[str, str]:
    return {"event": name, "data": json.dumps(data, ensure_ascii=False)}


_STATES = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED, TaskState.INPUT_REQUIRED})
_ENDS = _STATES | {TaskState.CANCELED}
MAX_WORD = 300

reply_router = APIRouter()

ReplyTo = Annotated[str, Query(max_length=100, description="The outgoing task that the message answers")]


@reply_router.post("/tasks/create")
async def create_outgoing(body: SendBody, agent: Agent, verified_id: VerifiedId) -> SentTask:
    """Create an outgoing task of this agent; it ends when the answer arrives."""
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
    """List the tasks that this agent can reply to; `POST /reply` answers the first."""
    return {"tasks": [task_json(task) for task in agent.service.awaiting()]}


@reply_router.post("/reply")
async def reply_to_current(body: SendBody, agent: Agent, verified_id: VerifiedId, files: Files) -> SentTask:
    """Reply to the task this agent is working on, or else to the newest that awaits a reply."""
    return await _reply(agent, "", body, verified_id, files)


@reply_router.post("/tasks/{task_id}/reply")
async def reply(
    task_id: str, body: SendBody, agent: Agent, verified_id: VerifiedId, files: Files
) -> SentTask:
    _check_own(agent, verified_id)
    # An agent may have been given the id of the sender's own task, for example in the message's text.
    named = find_task(agent, task_id, by_sender=True)
    return await _reply(agent, named.id, body, verified_id, files)


async def _reply(
    agent: HostedAgent, task_id: str, body: SendBody, verified_id: str, files: BodyFiles | None
) -> SentTask:
    _check_own(agent, verified_id)
    meant = agent.service.replied_to(task_id)
    task = agent.service.reply(meant.id, await _reply_of(agent, meant.id, body, files))
    return SentTask(task=task_json(await agent.control.saved(task)))


async def _reply_of(agent: HostedAgent, task_id: str, body: SendBody, files: BodyFiles | None) -> Reply:
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
    """The full id of the outgoing task that a message answers in the original's format; empty if none."""
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
    """Accept the answer to an outgoing task.

    Only the agent that was asked may answer. Agents of other hosts cannot sign for this one: for them the
    full task id, which only they were given, is the proof.
    """
    metadata = check_metadata(body.metadata)
    task = await _outgoing(agent, reply_to)
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
        # The original sends its screen as artifacts, and an explicit answer of its agent without any.
        explicit=metadata.get("explicit", not metadata.get("reply_artifacts")) is not False,
        in_reply_to="" if named == task.id else named,
        reason=_word(metadata, "reason") or (_word(error, "message") if isinstance(error, dict) else ""),
        origin_id=_word(metadata, ORIGIN_ID),
    )
    if task.id not in agent.tasks:
        if has_reply(task, answer):
            return task
        raise unknown_task(reply_to)
    taken = agent.service.answered(task.id, answer, verified=sender.verified)
    if taken is None:
        message = repeatable(late_message(answer, sender), agent.agent_id)
        taken = await _repeated(agent, message) or agent.accept(message)
    return await _saved(agent, taken)


async def _outgoing(agent: HostedAgent, task_id: str) -> Task:
    """Find an outgoing task; one that ended before a restart may be found in the history alone."""
    with contextlib.suppress(TaskNotFound):
        return agent.service.outgoing(find_task(agent, task_id).id)
    await agent.tasks.journal.restored(LOAD_TIMEOUT)
    if problem := agent.tasks.journal.problem:
        raise HttpProblem(503, "history_unread", problem, "send it again later")
    task = await agent.tasks.find(task_id)
    if not task.outgoing:
        raise unknown_task(task_id)
    return task


def _answer_text(body: SendBody) -> str:
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


_PRIORITY_HINT = "use 1 (information) to 5 (interrupt)"
_MENTION = re.compile(r"[@＠](?P<name>[^\s@＠]{1,200})\s+(?P<text>\S.*)", re.DOTALL)
_ROUTES_HINT = "GET /.well-known/agent.json tells what this agent offers"


Priority = Annotated[int, Query(ge=1, le=5, description=_PRIORITY_HINT)]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many tasks at most")]

router = APIRouter()


@router.post("/tasks/send", response_model_exclude_defaults=True)
async def send_message(
    body: SendBody, agent: Agent, caller: Caller, services: Shared, files: Files, reply_to: ReplyTo = ""
) -> SentTask:
    """Send a message at the default priority, or the answer to an outgoing task of this agent."""
    return await _take(agent, body, caller, services, DEFAULT_PRIORITY, files, reply_to)


@router.post("/tasks/send-priority", response_model_exclude_defaults=True)
async def send_with_priority(
    body: SendBody,
    agent: Agent,
    caller: Caller,
    services: Shared,
    files: Files,
    priority: Priority = DEFAULT_PRIORITY,
) -> SentTask:
    """Send a message at a given priority; 5 interrupts the agent."""
    return await _take(agent, body, caller, services, priority, files)


@router.post("/message")
async def send_plain(body: PlainBody, agent: Agent, caller: Caller, services: Shared) -> dict[str, Any]:
    """Send a message in the format of the early API. A mention at its beginning selects the agent."""
    priority = check_priority(body.priority)
    agent, text = _named(agent, body.content, services)
    message = WireMessage(parts=[{"type": "text", "text": text}])
    whole = SendBody(message=message, metadata=body.metadata)
    sent = await _send(agent, await request_of(agent, whole, caller, priority), services)
    return {"status": "sent", "priority": priority, "task_id": sent.task["id"], "task": sent.task}


@router.get("/tasks")
async def list_tasks(agent: Agent, caller: Caller, limit: Limit = 100) -> Response:
    """List the newest tasks in memory, oldest first."""
    found = agent.tasks.newest(None if caller.sees_all else caller.caller)
    # Already JSON: FastAPI's encoder would take several times as long.
    return JSONResponse([task_json(task) for task in itertools.islice(found, limit)][::-1])


@router.get("/tasks/{task_id}")
async def read_task(
    task_id: str, request: Request, agent: Agent, caller: Caller, wait: Wait = 0.0, seen: Seen = ""
) -> dict[str, Any]:
    """Return a task; with `wait`, once it differs from what was seen or the time is up."""
    task = await find_kept_task(agent, task_id, caller)
    if wait:
        with contextlib.suppress(TaskNotFound):  # a task found only in the history no longer changes
            task = await waited(request, agent, task, seen, wait)
    return task_json(task)


@router.get("/tasks/{task_id}/subscribe")
async def subscribe_to_task(task_id: str, request: Request, agent: Agent, caller: Caller) -> Response:
    """Stream the task as server-sent events: its current state, then every change until it ends."""
    task = await find_kept_task(agent, task_id, caller)
    return EventStream(task_events(agent, task), request.state.stopping)


@router.post("/tasks/{task_id}/cancel")
async def cancel_task(task_id: str, agent: Agent, caller: Caller) -> dict[str, Any]:
    task = await find_kept_task(agent, task_id, caller)
    if task.state.final:
        raise HttpProblem(409, "task_not_cancelable", f"task {task.short_id} is {task.state} already")
    canceled = agent.service.cancel_outgoing(task.id) if task.outgoing else await agent.cancel(task.id)
    return task_json(await agent.control.saved(canceled))


async def _take(
    agent: HostedAgent,
    body: SendBody,
    caller: Visitor,
    services: Services,
    priority: int,
    files: BodyFiles | None,
    reply_to: str = "",
) -> SentTask:
    if asked := reply_to or answered_by(agent, body):
        answered = await take_answer(agent, asked, body, caller.sender_id, caller.is_ours)
        return SentTask(task=task_json(answered))
    return await _send(agent, await request_of(agent, body, caller, priority, files), services)


def _named(agent: HostedAgent, content: str, services: Services) -> tuple[HostedAgent, str]:
    found = _MENTION.fullmatch(content)
    if found is None or fold(found["name"]) == ALL:
        return agent, content
    everyone = services.addresses()
    own = [each for each in everyone if each.agent_id == agent.agent_id]
    try:
        (target,) = _resolved(found["name"], own) or resolve(found["name"], everyone)
    except AgentNotFound:
        return agent, content
    named = services.agent_of(target.agent_id)
    if named is None:
        path = f"/external/agents/{target.agent_id}/send" if target.external else "/message"
        place = agent.endpoint if target.external else target.endpoint
        raise HttpProblem(
            421, "served_elsewhere", f"{target.agent_id} is not served here", f"POST it to {place}{path}"
        )
    return named, found["text"]


def _resolved(name: str, candidates: Sequence[Address]) -> list[Address]:
    try:
        return resolve(name, candidates)
    except AgentNotFound:
        return []


async def _send(agent: HostedAgent, request: MessageRequest, services: Services) -> SentTask:
    task = await _repeated(agent, request)
    if task is None:
        check_ring(agent, request, services)
        task = agent.accept(request)
    elif task.id == request.task_id and not is_repetition(task, request):
        text = f"another message has the {ORIGIN_ID} {request.metadata[ORIGIN_ID]!r}: task {task.id}"
        raise HttpProblem(409, "origin_id_reused", text, "give each message an id of its own")
    # Acknowledge only after the commit: an acknowledged message must survive a crash.
    if request.follows:
        message = await agent.control.saved(agent.tasks.get(request.task_id))
        return SentTask(task=task_json(agent.tasks.get(task.id)), follow_up=task_json(message))
    return SentTask(task=task_json(await _saved(agent, task)))


async def _repeated(agent: HostedAgent, request: MessageRequest) -> Task | None:
    try:
        return await repeated(agent.tasks, request)
    except HistoryError as error:
        raise HttpProblem(503, "history_unread", error.message, "send it again later") from error


async def _saved(agent: HostedAgent, task: Task) -> Task:
    return await agent.control.saved(task) if task.id in agent.tasks else task


class ProtocolRoutes(BaseRoute):
    """The routes of the A2A protocol, imported with the first request: the SDK takes a second and 20 MB."""

    def __init__(self) -> None:
        self._router: Router | None = None
        self._loading = asyncio.Lock()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if is_protocol_path(scope["path"]) else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._loading:
            if self._router is None:
                endpoints = await asyncio.to_thread(
                    importlib.import_module, "synapse_tui.a2a.protocol.endpoints"
                )
                self._router = Router(endpoints.protocol_routes(), redirect_slashes=False)
        await self._router(scope, receive, send)


def build_app() -> FastAPI:
    """Build the application. It has no state of any agent, so one can serve all of them."""
    app = FastAPI(
        title="synapse-tui", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.include_router(router)
    app.include_router(reply_router)
    app.include_router(outbox_router)
    app.include_router(watch_router)
    app.include_router(inbox_router)
    app.include_router(status_router)
    app.include_router(instructions_router)
    app.include_router(webhook_router)
    app.include_router(external_router)
    # Last, so that the dialect's paths take precedence over the protocol's.
    app.router.routes.append(ProtocolRoutes())
    app.add_exception_handler(SynapseError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_crash)
    return app


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SynapseError)
    answer = refusal(request.url.path, error)
    return Response(answer.body, answer.status, dict(answer.headers), "application/json")


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await _on_error(request, _invalid(error, _body_hint(request)))


def _invalid(error: RequestValidationError, body_hint: str) -> SynapseError:
    first = error.errors()[0]
    place = list(first["loc"])
    if first["type"] == "json_invalid":
        text, at = str(error.body), int(place[-1])
        found = json.JSONDecodeError(first.get("ctx", {}).get("error", "malformed"), text, min(at, len(text)))
        where = f"line {found.lineno}, column {found.colno}"
        return HttpProblem(400, "invalid_json", f"the body is no JSON: {found.msg} ({where})", body_hint)
    if place[-1:] == ["priority"]:
        return InvalidValue(f"priority {first.get('input')!r} is not valid", _PRIORITY_HINT)
    if place == ["body"]:
        return HttpProblem(400, "invalid_body", "the body is missing or no JSON object", body_hint)
    where = ".".join(str(step) for step in place[1:])
    hint = body_hint if place[0] == "body" else _ROUTES_HINT
    return HttpProblem(422, "invalid_request", f"{where}: {first['msg']}", hint)


def _body_hint(request: Request) -> str:
    path = request.scope["route"].path
    return f"a body is {_BODIES[path]}" if path in _BODIES else f"docs/http.md says what {path} takes"


_MESSAGE_BODY = '{"message": {"role": "user", "parts": [{"type": "text", "text": "..."}]}}'
_AGENT_BODY = '{"url": "https://agents.example/weather"}'
_BODIES = {
    "/tasks/send": _MESSAGE_BODY,
    "/tasks/send-priority": _MESSAGE_BODY,
    "/message": '{"content": "...", "priority": 3}',
    "/external/discover": _AGENT_BODY,
    "/external/agents": _AGENT_BODY,
}


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    unread = _unread(error.__cause__)
    if unread is not None:
        return await _on_error(request, unread)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
    message = {
        404: f"there is no {request.url.path[:100]}",
        405: f"{request.url.path[:100]} does not take {request.method}",
    }.get(error.status_code, str(error.detail))
    return await _on_error(
        request, HttpProblem(error.status_code, code, message, _ROUTES_HINT, error.headers)
    )


def _unread(cause: BaseException | None) -> HttpProblem | None:
    if isinstance(cause, UnicodeDecodeError):
        found = cause.object[cause.start : cause.start + 1].hex()
        return HttpProblem(
            400,
            "invalid_utf8",
            f"the body is no UTF-8: byte {cause.start + 1} is 0x{found}",
            "write the body in UTF-8, or other characters than ASCII as \\uXXXX",
        )
    if isinstance(cause, RecursionError):
        return HttpProblem(
            400, "nested_too_deeply", "the body is nested too deeply", "flatten it, or send it as a text"
        )
    return None


async def _on_crash(request: Request, error: Exception) -> Response:
    log.error("request failed: %s %s", request.method, request.url.path, exc_info=error)
    return await _on_error(
        request, HttpProblem(500, "internal_error", "the agent's server failed", "see its log")
    )
