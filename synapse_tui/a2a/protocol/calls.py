"""The context of a protocol request (agent, caller, version, extensions), and errors in protocol terms."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, ParamSpec, TypeVar

from a2a.auth.user import User
from a2a.compat.v0_3.extension_headers import LEGACY_HTTP_EXTENSION_HEADER
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils import errors as sdk
from a2a.utils.constants import PROTOCOL_VERSION_0_3, VERSION_HEADER
from starlette.requests import Request

from synapse_tui.a2a.access import Principal
from synapse_tui.a2a.agent import HostedAgent, Services
from synapse_tui.a2a.bodies import BodyFiles
from synapse_tui.a2a.context import Visitor, visitor_of
from synapse_tui.a2a.problems import HttpProblem
from synapse_tui.core import errors
from synapse_tui.core.errors import TaskNotFound
from synapse_tui.core.model import DEFAULT_PRIORITY, Task, check_priority
from synapse_tui.system.dataclass import dataclass

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

MAX_EXTENSIONS = 50
_CALL = "synapse_call"


@dataclass(frozen=True, slots=True)
class ProtocolCall:
    """A request that passed the guard.

    Attributes:
        stopping: Set on shutdown; waits must end.
        base_url: The URL by which the caller reached the server, without a trailing slash.
        version: Protocol version named by the caller, `MAJOR.MINOR`.
        extensions: URIs of the requested extensions.
    """

    agent: HostedAgent
    services: Services
    visitor: Visitor
    stopping: asyncio.Event
    base_url: str
    version: str
    extensions: frozenset[str]
    files: BodyFiles | None = None


class SdkUser(User):
    """The caller as the SDK's `User`."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    @property
    def is_authenticated(self) -> bool:
        return self._principal.verified

    @property
    def user_name(self) -> str:
        """The name of its key; empty for the person."""
        return self._principal.name


class CallContextBuilder(ServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        call = call_from(request)
        return ServerCallContext(
            user=SdkUser(call.visitor.principal),
            # The SDK looks for the version in the headers only; the query counts as well (section 3.6).
            state={_CALL: call, "headers": {VERSION_HEADER: call.version}},
            requested_extensions=set(call.extensions),
        )


def call_from(request: Request) -> ProtocolCall:
    state = request.state
    return ProtocolCall(
        agent=state.agent,
        services=state.services,
        visitor=visitor_of(request),
        stopping=state.stopping,
        base_url=f"{request.url.scheme}://{request.url.netloc}",
        version=version_of(request),
        extensions=extensions_of(request),
        files=state.files,
    )


def call_of(context: ServerCallContext) -> ProtocolCall:
    call: ProtocolCall = context.state[_CALL]
    return call


def version_of(request: Request) -> str:
    """The version named in header or query, `MAJOR.MINOR`; by default 0.3 (section 3.6)."""
    named = request.headers.get(VERSION_HEADER) or request.query_params.get(VERSION_HEADER) or ""
    return ".".join(named.strip().split(".")[:2]) or PROTOCOL_VERSION_0_3


def extensions_of(request: Request) -> frozenset[str]:
    """The requested extensions, by the header of 1.0 or 0.3."""
    headers = request.headers
    values = headers.getlist(HTTP_EXTENSION_HEADER) + headers.getlist(LEGACY_HTTP_EXTENSION_HEADER)
    return frozenset(sorted(get_requested_extensions(values))[:MAX_EXTENSIONS])


async def find_task(call: ProtocolCall, task_id: str) -> Task:
    unknown = TaskNotFound(f"task '{task_id[:100]}' not found", "ListTasks tells which there are")
    try:
        task = await call.agent.tasks.find(task_id)
    except TaskNotFound:
        raise unknown from None
    hidden = task.outgoing or task.follows or not call.visitor.may_see(task)
    if task.id != task_id or hidden:
        raise unknown
    return task


# -- extensions (A2A section 4.6; docs/a2a.md) ---


# By convention these are URLs; names below `.invalid` can never be registered (RFC 2606).
SYNAPSE = "https://synapse-tui.invalid/a2a/v1"  # the extension that every agent supports


def priority_of(*places: Mapping[str, object]) -> int:
    """The priority in the metadata of a message or its request; the first takes precedence."""
    for place in places:
        extended = place.get(SYNAPSE)
        for found in (place, extended if isinstance(extended, Mapping) else {}):
            if "priority" in found:
                return check_priority(found["priority"])
    return DEFAULT_PRIORITY


# -- errors (A2A section 3.3.2); codes and statuses are the SDK's ---

_KINDS: tuple[tuple[type[errors.SynapseError], type[sdk.A2AError]], ...] = (
    (errors.TaskNotFound, sdk.TaskNotFoundError),
    (errors.PushNotFound, sdk.TaskNotFoundError),
    (errors.TaskEnded, sdk.UnsupportedOperationError),
    (errors.PushError, sdk.InvalidParamsError),
    (errors.MessageError, sdk.InvalidParamsError),
    (errors.ConfigError, sdk.InvalidParamsError),
)
"""The first matching class decides; otherwise an internal error."""
_STATUSES = {
    403: sdk.InvalidRequestError,
    404: sdk.TaskNotFoundError,
    409: sdk.UnsupportedOperationError,
    413: sdk.InvalidParamsError,
    415: sdk.ContentTypeNotSupportedError,
    422: sdk.InvalidParamsError,
}


def protocol_error(error: errors.SynapseError) -> sdk.A2AError:
    """Convert one of our errors to a protocol error, with the hint in its details."""
    if isinstance(error, HttpProblem):
        kind = _STATUSES.get(error.status, sdk.InternalError)
    else:
        kind = next((theirs for ours, theirs in _KINDS if isinstance(error, ours)), sdk.InternalError)
    return kind(error.message, {"hint": error.hint} if error.hint else None)


def translated(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate an operation to raise protocol errors only."""

    @functools.wraps(work)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(*args, **kwargs)
        except Exception as error:
            raise _translated(error) from error

    return wrapper


def translated_stream(work: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, AsyncGenerator[T, None]]:
    """Decorate a stream to raise protocol errors only."""

    @functools.wraps(work)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        try:
            async with aclosing(work(*args, **kwargs)) as found:
                async for each in found:
                    yield each
        except Exception as error:
            raise _translated(error) from error

    return wrapper


def _translated(error: Exception) -> sdk.A2AError:
    if isinstance(error, sdk.A2AError):
        return error
    if isinstance(error, errors.SynapseError):
        return protocol_error(error)
    log.error("request failed", exc_info=error)
    return sdk.InternalError("the agent's server failed; its log says why")
