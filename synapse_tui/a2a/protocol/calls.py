"""What the protocol knows of a request: whose it is, who makes it, which version and extensions it names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from a2a.auth.user import User
from a2a.compat.v0_3.extension_headers import LEGACY_HTTP_EXTENSION_HEADER
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils.constants import PROTOCOL_VERSION_0_3, VERSION_HEADER
from starlette.requests import Request

from synapse_tui.a2a.agent import HostedAgent
from synapse_tui.a2a.body_files import BodyFiles
from synapse_tui.a2a.principal import Principal
from synapse_tui.a2a.request_state import visitor_of
from synapse_tui.a2a.services import Services
from synapse_tui.a2a.visitor import Visitor
from synapse_tui.errors import TaskNotFound
from synapse_tui.model import Task

_CALL = "synapse_call"
MAX_EXTENSIONS = 50


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as the gate let it in.

    Attributes:
        agent: Whose server was called.
        services: What the servers of the host share.
        visitor: Who calls.
        stopping: Set when the server ends: nothing may be waited for any longer.
        base_url: Where the caller reached the server, without a slash at the end.
        version: Version of the protocol that the caller names, `MAJOR.MINOR`.
        extensions: URIs of the extensions that it wants to use.
        files: The files of its body, where that is large.
    """

    agent: HostedAgent
    services: Services
    visitor: Visitor
    stopping: asyncio.Event
    base_url: str
    version: str
    extensions: frozenset[str]
    files: BodyFiles | None = None


class Caller(User):
    """Who calls, as the SDK wants to know it.

    Args:
        principal: The same.
    """

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    @property
    def is_authenticated(self) -> bool:
        """Whether it proved who it is."""
        return self._principal.verified

    @property
    def user_name(self) -> str:
        """The name of its key; empty for the person who owns the agents."""
        return self._principal.name


class CallContextBuilder(ServerCallContextBuilder):
    """Gives the handler what the gate knows of a request."""

    def build(self, request: Request) -> ServerCallContext:
        """The context of a request that passed the gate."""
        call = call_from(request)
        return ServerCallContext(
            user=Caller(call.visitor.principal),
            # The SDK looks for the version among the headers; that of the query counts as much (section 3.6).
            state={_CALL: call, "headers": {VERSION_HEADER: call.version}},
            requested_extensions=set(call.extensions),
        )


def call_from(request: Request) -> Call:
    """What is known of a request that passed the gate."""
    state = request.state
    return Call(
        agent=state.agent,
        services=state.services,
        visitor=visitor_of(request),
        stopping=state.stopping,
        base_url=f"{request.url.scheme}://{request.url.netloc}",
        version=version_of(request),
        extensions=extensions_of(request),
        files=state.files,
    )


def call_of(context: ServerCallContext) -> Call:
    """The call of a context that `CallContextBuilder` made."""
    call: Call = context.state[_CALL]
    return call


def version_of(request: Request) -> str:
    """The version that a request names in header or query, `MAJOR.MINOR`; none means 0.3 (section 3.6)."""
    named = request.headers.get(VERSION_HEADER) or request.query_params.get(VERSION_HEADER) or ""
    return ".".join(named.strip().split(".")[:2]) or PROTOCOL_VERSION_0_3


def extensions_of(request: Request) -> frozenset[str]:
    """The URIs of the extensions that a request wants to use, by the header of 1.0 or that of 0.3."""
    headers = request.headers
    values = headers.getlist(HTTP_EXTENSION_HEADER) + headers.getlist(LEGACY_HTTP_EXTENSION_HEADER)
    return frozenset(sorted(get_requested_extensions(values))[:MAX_EXTENSIONS])


async def find_task(call: Call, task_id: str) -> Task:
    """A task that the caller may see.

    Raises:
        TaskNotFound: There is none.
    """
    unknown = TaskNotFound(f"task '{task_id[:100]}' not found", "ListTasks tells which there are")
    try:
        task = await call.agent.tasks.find(task_id)
    except TaskNotFound:
        raise unknown from None
    hidden = task.outgoing or task.follows or not call.visitor.may_see(task)
    if task.id != task_id or hidden:
        raise unknown
    return task
