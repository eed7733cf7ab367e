"""The protocol's endpoints: JSON-RPC and REST, 1.0 and 0.3, by the SDK's dispatchers on our handler."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, NoReturn

from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import JSONParseError as ParseFault
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.types import a2a_pb2 as pb
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE, PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    VersionNotSupportedError,
)
from a2a.utils.proto_utils import parse_params
from google.protobuf.json_format import ParseError
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from synapse_tui.a2a.event_stream import EventStream, hung_up
from synapse_tui.a2a.problems import JSONRPC_PATHS, OLD_REST_PREFIXES, REST_PREFIX
from synapse_tui.a2a.wire import MAX_DATA_DEPTH
from synapse_tui.core.content import is_deeper

from .calls import SYNAPSE, CallContextBuilder, extensions_of, version_of
from .cards import Cards
from .handler import Handler, check_state, list_json
from .legacy import OldJsonRpc, old_error, old_rest_routes

log = logging.getLogger(__name__)

MAX_BODY_DEPTH = MAX_DATA_DEPTH + 5
"""A data part stands five levels below its call; protobuf would fail on deeper ones in its own words."""


async def check_body(request: Request, *, needed: bool) -> None:
    """Check that the body is JSON that UTF-8 and protobuf can represent; the SDK would fail on it."""
    body = await request.body()
    if not body and not needed:
        return
    try:
        value = json.loads(body, parse_float=_finite, parse_constant=_not_finite)
        sound = b"\\u" not in body or encodable(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        raise JSONParseError("the body is nested too deeply") from None
    except ValueError as error:
        raise JSONParseError(f"the body is no JSON: {error}") from error
    if not sound:
        raise InvalidParamsError("a text holds half a surrogate pair")
    if is_deeper(value, MAX_BODY_DEPTH):
        raise InvalidParamsError(
            f"the body is nested deeper than {MAX_BODY_DEPTH} levels", {"hint": "flatten it"}
        )


def encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _finite(number: str) -> float:
    found = float(number)
    return found if math.isfinite(found) else _not_finite(number)


def _not_finite(_number: str) -> NoReturn:
    raise InvalidParamsError("a number is not finite")


Endpoint = Callable[[Request], Awaitable[Response]]
ErrorAnswer = Callable[[Request, A2AError], Awaitable[Response]]
PLAIN_JSON = "application/json"
VERSIONS = (PROTOCOL_VERSION_1_0, PROTOCOL_VERSION_0_3)
_CLIENT_CLOSED = 499


def protocol_routes() -> Sequence[BaseRoute]:
    handler, builder = Handler(), CallContextBuilder()
    rpc = _served(JsonRpc(handler, builder).handle_requests, _rpc_error)
    routes = [
        *old_rest_routes(handler, builder, OLD_REST_PREFIXES),
        *create_rest_routes(handler, builder, path_prefix=REST_PREFIX),
    ]
    rest = Rest(handler, builder)
    return [
        *Cards().routes(),
        *(Route(path, rpc, methods=["POST"]) for path in JSONRPC_PATHS),
        *(
            Route(
                route.path,
                _served(rest.instead_of(route), _rest_error),
                methods=list(route.methods or ()),
            )
            for route in routes
            # The SDK's mount for tenants matches every path of several segments; our cards have no tenants.
            if isinstance(route, Route)
        ),
    ]


class JsonRpc(JsonRpcDispatcher):
    def __init__(self, handler: Handler, builder: CallContextBuilder) -> None:
        super().__init__(handler, builder, enable_v0_3_compat=True)
        # Instead of the SDK's, which has the defects listed in `legacy`.
        self._v03_adapter = OldJsonRpc(handler, builder)

    async def handle_requests(self, request: Request) -> Response:
        body = await request.json()
        params = body.get("params") if isinstance(body, dict) and body.get("method") == "ListTasks" else None
        check_state(params.get("status") if isinstance(params, dict) else None)
        return await super().handle_requests(request)

    async def _handle_list_tasks(
        self, request_obj: pb.ListTasksRequest, context: ServerCallContext
    ) -> dict[str, Any]:
        return list_json(await self.request_handler.on_list_tasks(request_obj, context))

    async def _handle_list_task_push_notification_configs(
        self, request_obj: pb.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> dict[str, Any]:
        found = await super()._handle_list_task_push_notification_configs(request_obj, context)
        return {"configs": [], **found}


class Rest:
    """REST endpoints where the SDK's are insufficient.

    Tasks look the same in lists as alone, and empty lists are present. Callers that send or accept plain JSON
    get it: not every client knows the protocol's media type (section 11.1).
    """

    def __init__(self, handler: Handler, builder: CallContextBuilder) -> None:
        self._handler = handler
        self._builder = builder

    def instead_of(self, route: Route) -> Endpoint:
        endpoint: Endpoint = route.endpoint
        if route.path == f"{REST_PREFIX}/tasks":
            endpoint = self.tasks
        if route.path.endswith("/pushNotificationConfigs") and "GET" in (route.methods or ()):
            endpoint = _with_empty_list(endpoint)
        return _mirrored(endpoint)

    async def tasks(self, request: Request) -> Response:
        if version_of(request) != PROTOCOL_VERSION_1_0:
            raise VersionNotSupportedError(f"lists are served in {PROTOCOL_VERSION_1_0} only")
        check_state(request.query_params.get("status"))
        params = pb.ListTasksRequest()
        try:
            parse_params(request.query_params, params)
        except ParseError as error:
            raise InvalidParamsError(str(error)) from error
        page = await self._handler.on_list_tasks(params, self._builder.build(request))
        return JSONResponse(list_json(page), media_type=A2A_JSON_MEDIA_TYPE)


def _mirrored(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        response = await endpoint(request)
        if response.media_type == A2A_JSON_MEDIA_TYPE and _wants_plain(request):
            response.headers["content-type"] = PLAIN_JSON
        return response

    return answer


def _wants_plain(request: Request) -> bool:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = request.headers.get("accept", "")
    return sent == PLAIN_JSON or (not sent and PLAIN_JSON in wanted and A2A_JSON_MEDIA_TYPE not in wanted)


def _with_empty_list(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        response = await endpoint(request)
        if response.status_code != HTTPStatus.OK:
            return response
        found = {"configs": [], **json.loads(bytes(response.body))}
        return JSONResponse(found, media_type=response.media_type)

    return answer


def _served(endpoint: Endpoint, error_answer: ErrorAnswer) -> Endpoint:
    """Wrap an endpoint with what the SDK omits: versions, extensions, disconnects, ends of streams."""

    async def serve(request: Request) -> Response:
        try:
            version = version_of(request)
            if version not in VERSIONS:
                raise VersionNotSupportedError(
                    f"version {version[:20]} of the protocol is not supported",
                    {"supported": ", ".join(VERSIONS)},
                )
            await check_body(request, needed=error_answer is _rpc_error)
            response = await _while_there(request, endpoint(request))
            if isinstance(response, EventSourceResponse):
                response = await _stream(response, request)
        except A2AError as error:
            response = await error_answer(request, error)
        if SYNAPSE in extensions_of(request):
            response.headers[HTTP_EXTENSION_HEADER] = SYNAPSE
        return response

    return serve


async def _while_there(request: Request, work: Awaitable[Response]) -> Response:
    wanted = asyncio.ensure_future(work)
    left = asyncio.ensure_future(hung_up(request.receive))
    try:
        await asyncio.wait({wanted, left}, return_when=asyncio.FIRST_COMPLETED)
        return wanted.result() if wanted.done() else Response(status_code=_CLIENT_CLOSED)
    finally:
        for each in (wanted, left):
            each.cancel()
        await asyncio.gather(wanted, left, return_exceptions=True)


async def _stream(response: EventSourceResponse, request: Request) -> Response:
    """Convert the SDK's stream to `EventStream`; errors before the first event become error answers."""
    events: Any = response.body_iterator
    first = await anext(events, None)
    return EventStream(_until_error(events), request.state.stopping, first=first)


async def _until_error(events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    async with aclosing(events):
        try:
            async for event in events:
                yield event
        except A2AError as error:
            log.info("stream ended: %s", error)


async def _rpc_error(request: Request, error: A2AError) -> Response:
    if isinstance(error, JSONParseError):
        return JSONResponse(build_error_response(None, ParseFault(message=error.message)))
    return JSONResponse(build_error_response(await _rpc_id(request), error))


async def _rpc_id(request: Request) -> str | int | None:
    try:
        found = (await request.json())["id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if isinstance(found, str):
        return found if encodable(found) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


async def _rest_error(request: Request, error: A2AError) -> Response:
    # Only JSON-RPC has an error for a body that is not JSON.
    payload = build_rest_error_payload(
        InvalidRequestError(error.message) if isinstance(error, JSONParseError) else error
    )
    old = request.url.path.startswith(tuple(f"{prefix}/v1/" for prefix in OLD_REST_PREFIXES))
    return JSONResponse(old_error(payload) if old else payload, payload["error"]["code"])
