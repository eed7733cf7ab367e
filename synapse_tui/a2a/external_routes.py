"""The routes of external agents. The person adds and removes them; hosted agents send messages to them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from synapse_tui.core.errors import TaskNotFound
from synapse_tui.core.model import USER, Task

from .access import Principal
from .context import IsOurs, Seen, Shared, VerifiedId, Wait, sender_of, while_wanted
from .external.hub import ExternalAgents
from .external.registry import AddRequest, read_header
from .external.untrusted import check_url, clean_line
from .problems import HttpProblem
from .wire import check_unicode, request_fields, task_json

external_router = APIRouter(prefix="/external")


def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


Caller = Annotated[Principal, Depends(_caller)]


class DiscoverBody(BaseModel):
    """Body of `POST /external/discover` and `POST /external/agents`."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    alias: Annotated[str, Field(max_length=64)] | None = None
    headers: dict[str, str] = {}
    token_env: Annotated[str, Field(max_length=128)] = ""
    allowed_origins: Annotated[list[str], Field(max_length=20)] = []
    replace: bool = False


class ExternalMessage(BaseModel):
    """Body of `POST /external/agents/{alias}/send`."""

    model_config = ConfigDict(extra="ignore")

    message: str = ""
    metadata: dict[str, Any] = {}


async def _external(shared: Shared) -> ExternalAgents:
    if shared.external is None:
        raise HttpProblem(503, "no_external_agents", "this server knows no external agents", "ask its host")
    await shared.external.ready()
    return shared.external


def _person(principal: Caller, verified_id: VerifiedId) -> None:
    """Only the person may name URLs to call: for agents they would be a way out of their sandbox."""
    if not principal.admin or verified_id not in ("", USER.sender_id):
        raise HttpProblem(
            403,
            "person_only",
            "only the person adds and removes external agents",
            "ask them to: synapse external add URL",
        )


External = Annotated[ExternalAgents, Depends(_external)]
Person = Annotated[None, Depends(_person)]


@external_router.post("/discover")
async def discover_agent(
    body: DiscoverBody, request: Request, shared: Shared, external: External, _person: Person
) -> dict[str, Any]:
    """Find an agent by its URL and store it.

    The answer also has the agent's own fields, as in the original.
    """
    found = await add_external(body, request, shared, external, _person)
    return {**found["agent"], **found}


@external_router.get("/agents")
async def list_external(external: External) -> dict[str, Any]:
    return {"agents": [agent.as_json() for agent in external.agents]}


@external_router.post("/agents")
async def add_external(
    body: DiscoverBody, request: Request, shared: Shared, external: External, _person: Person
) -> dict[str, Any]:
    candidate = await external.preview(await _add_request(body, request, shared))
    await external.keep(candidate)
    return candidate.as_json()


@external_router.get("/agents/{alias}")
async def read_external(alias: str, external: External) -> dict[str, Any]:
    """Return an external agent with its card."""
    agent = external.get(alias)
    return {"agent": agent.as_json(), "card": dict(agent.card)}


@external_router.delete("/agents/{alias}")
async def remove_external(alias: str, external: External, _person: Person) -> dict[str, Any]:
    """Remove an agent and its conversation."""
    return {"agent": (await external.remove(alias)).as_json()}


@external_router.post("/agents/{alias}/send")
async def send_external(
    alias: str,
    body: ExternalMessage,
    external: External,
    principal: Caller,
    verified_id: VerifiedId,
    is_ours: IsOurs,
) -> dict[str, Any]:
    """Send a message; if the agent has asked this sender something, it continues that task."""
    check_unicode(body.message, "message")
    expected = request_fields(body.metadata)["response_expected"]
    claimed = sender_of(body.metadata, verified_id, is_ours=is_ours)
    person = principal.admin and claimed.sender_id in ("external", USER.sender_id)
    sender = USER if person else claimed
    task = await external.send(alias, body.message, sender=sender, expected=expected)
    return {"task": task_json(task)}


@external_router.get("/agents/{alias}/tasks/{task_id}")
async def read_external_task(
    alias: str,
    task_id: str,
    request: Request,
    external: External,
    principal: Caller,
    wait: Wait = 0.0,
    seen: Seen = "",
) -> dict[str, Any]:
    """Return a task; with `wait`, once it differs from what was seen or the time is up."""
    task = _task(external, alias, task_id, principal)
    if wait:
        waited = external.wait(alias, task.id, seen=seen.replace(" ", "+"), seconds=wait)
        found = await while_wanted(request, waited)
        task, there = found if found is not None else (task, False)
        if there and task.state.at_rest and request.state.sender_id == task.sender.sender_id:
            external.collected(alias, task)
    return task_json(task)


@external_router.post("/agents/{alias}/tasks/{task_id}/cancel")
async def cancel_external_task(
    alias: str, task_id: str, external: External, principal: Caller
) -> dict[str, Any]:
    """Cancel a task, also at the agent if it has it."""
    task = _task(external, alias, task_id, principal)
    return task_json(await external.cancel(alias, task.id))


async def _add_request(body: DiscoverBody, request: Request, shared: Shared) -> AddRequest:
    """The agent to add; only the person on this machine may name its other programs, or private addresses."""
    # A caller that reaches this server but cannot read the host's environment could otherwise have any of its
    # secrets sent to a URL of its choice.
    if body.token_env:
        raise HttpProblem(
            403,
            "token_env_not_over_http",
            "a variable of the host's environment cannot be named over HTTP",
            "send the header itself in 'headers', or use: synapse external add URL --token-env NAME",
        )
    local: bool = request.state.principal.local
    if not local and shared.push is not None:
        for url in (body.url, *body.allowed_origins):
            await shared.push.policy.check(check_url(url), local=False)
    headers = dict(read_header(f"{name}: {value}") for name, value in body.headers.items())
    return AddRequest(
        body.url,
        alias=body.alias or "",
        headers=headers,
        token_env=body.token_env,
        allowed=tuple(body.allowed_origins),
        replace=body.replace,
    )


def _task(external: ExternalAgents, alias: str, task_id: str, principal: Principal) -> Task:
    task = external.task(alias, task_id)
    if not principal.admin and task.sender.sender_id != principal.name:
        raise TaskNotFound(
            f"there is no task '{clean_line(task_id, 40)}' of {principal.name}", "see its answer"
        )
    return task
