"""The routes of the HTTP dialect.

One application serves all agents: the gate in front of each server says whose request it is.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from synapse_tui.addresses import ALL, Address, fold, resolve
from synapse_tui.errors import AgentNotFound, InvalidValue, SynapseError, TaskNotFound
from synapse_tui.messages.service import told_before
from synapse_tui.model import DEFAULT_PRIORITY, MessageRequest, check_priority

from .agent import HostedAgent
from .body_files import BodyFiles
from .external_routes import external_router
from .inbox_routes import inbox_router
from .instructions_routes import instructions_router
from .outbox_routes import outbox_router
from .problems import HttpProblem
from .protocol.endpoints import protocol_routes
from .protocol.streams import EventStream
from .refusals import refusal
from .reply_routes import ReplyTo, answered_by, reply_router, take_answer
from .request_state import Agent, Caller, Files, Shared, find_kept_task
from .rings import check_ring
from .sending import request_of
from .services import Services
from .status_routes import status_router
from .subscribing import task_events
from .visitor import Visitor
from .waiting import Seen, Wait, waited
from .watch_routes import watch_router
from .webhook_routes import webhook_router
from .wire import PlainBody, SendBody, SentTask, WireMessage, task_json

log = logging.getLogger(__name__)

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
    """Send a message at the usual priority, or the answer to an outgoing task of this agent."""
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
    """Send a message at a priority; 5 interrupts the agent."""
    return await _take(agent, body, caller, services, priority, files)


@router.post("/message")
async def send_plain(body: PlainBody, agent: Agent, caller: Caller, services: Shared) -> dict[str, Any]:
    """Send a message in the early form, to the agent that it names at its beginning, else to this one."""
    priority = check_priority(body.priority)
    agent, text = _named(agent, body.content, services)
    message = WireMessage(parts=[{"type": "text", "text": text}])
    whole = SendBody(message=message, metadata=body.metadata)
    sent = await _send(agent, await request_of(agent, whole, caller, priority), services)
    return {"status": "sent", "priority": priority, "task_id": sent.task["id"], "task": sent.task}


@router.get("/tasks")
async def list_tasks(agent: Agent, caller: Caller, limit: Limit = 100) -> Response:
    """The newest tasks that are still known, oldest first."""
    found = agent.tasks.newest(None if caller.sees_all else caller.caller)
    # It is JSON already: a framework that looks through it once more takes several times as long.
    return JSONResponse([task_json(task) for task in itertools.islice(found, limit)][::-1])


@router.get("/tasks/{task_id}")
async def read_task(
    task_id: str, request: Request, agent: Agent, caller: Caller, wait: Wait = 0.0, seen: Seen = ""
) -> dict[str, Any]:
    """One task; with `wait` as soon as it differs from what was seen, or the time is over."""
    task = await find_kept_task(agent, task_id, caller)
    if wait:
        with contextlib.suppress(TaskNotFound):  # only the history knows it: it changes no more
            task = await waited(request, agent, task, seen, wait)
    return task_json(task)


@router.get("/tasks/{task_id}/subscribe")
async def subscribe_to_task(task_id: str, request: Request, agent: Agent, caller: Caller) -> Response:
    """The task as it is and whenever it changes, as server-sent events, until it has ended."""
    task = await find_kept_task(agent, task_id, caller)
    return EventStream(task_events(agent, task), request.state.stopping)


@router.post("/tasks/{task_id}/cancel")
async def cancel_task(task_id: str, agent: Agent, caller: Caller) -> dict[str, Any]:
    """Cancel a task that has not ended."""
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
    """The agent that a message is for, and its text without the name of that.

    Args:
        agent: Who is called.
        content: `@ClaudeCode go on`; what names no agent, such as `@README.md`, is part of the text.
        services: Know the agents.

    Raises:
        AmbiguousAddress: Several others are named alike.
        AgentExited: The agent has ended.
        HttpProblem: It is served by another process.
    """
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
    """Whom an address means; empty for nobody."""
    try:
        return resolve(name, candidates)
    except AgentNotFound:
        return []


async def _send(agent: HostedAgent, request: MessageRequest, services: Services) -> SentTask:
    task = told_before(agent.tasks, request)
    if task is None:
        check_ring(agent, request, services)
        task = agent.accept(request)
    # Whoever is told that a message was taken need not send it again, whatever happens to this process.
    if request.follows:
        message = await agent.control.saved(agent.tasks.get(request.task_id))
        return SentTask(task=task_json(agent.tasks.get(task.id)), follow_up=task_json(message))
    return SentTask(task=task_json(await agent.control.saved(task)))


def build_app() -> FastAPI:
    """Make the application; it holds nothing of any agent and can serve all of them."""
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
    # Last: the dialect's paths are its own, whatever the protocol may come to serve.
    app.router.routes.extend(protocol_routes())
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
    """Say what pydantic found in the words of the dialect."""
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
    """What a route takes."""
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
    """Why FastAPI could not read a body as JSON; None where that is not what happened."""
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
