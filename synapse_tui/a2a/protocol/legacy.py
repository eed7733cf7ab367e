"""A2A 0.3 by the SDK's adapters, with corrections.

Wrong parameters are error -32602, parts of unknown kinds -32005; every answer has a result; a stream ends
with an event with `final`; a push configuration is found without its id and can be deleted over REST; an
authentication without schemes is ignored; and file bytes must be base64.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from a2a.compat.v0_3 import types as old
from a2a.compat.v0_3.conversions import to_core_message
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.compat.v0_3.request_handler import RequestHandler03
from a2a.compat.v0_3.rest_adapter import REST03Adapter
from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import InvalidParamsError, MethodNotFoundError
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.utils import errors as sdk
from a2a.utils.constants import PROTOCOL_VERSION_0_3
from google.protobuf.json_format import ParseError
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .calls import version_of

DEFAULT_CONFIG = "default"
_PART_KINDS = frozenset({"text", "file", "data"})
_SENDING = (old.SendMessageRequest, old.SendStreamingMessageRequest)
Said = old.SendStreamingMessageSuccessResponse


class OldRequestHandler(RequestHandler03):
    """The operations of 0.3. A stream ends when its task ends or asks a question."""

    async def on_message_send(
        self, request: old.SendMessageRequest, context: ServerCallContext
    ) -> old.Task | old.Message:
        _drop_empty_authentication(_push_config_of(request))
        return await super().on_message_send(request, context)

    async def on_message_send_stream(
        self, request: old.SendMessageRequest, context: ServerCallContext
    ) -> AsyncIterator[Said]:
        _drop_empty_authentication(_push_config_of(request))
        async for event in _until_final(super().on_message_send_stream(request, context)):
            yield event

    async def on_subscribe_to_task(
        self, request: old.TaskResubscriptionRequest, context: ServerCallContext
    ) -> AsyncIterator[Said]:
        async for event in _until_final(super().on_subscribe_to_task(request, context)):
            yield event

    async def on_create_task_push_notification_config(
        self, request: old.SetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> old.TaskPushNotificationConfig:
        _drop_empty_authentication(request.params.push_notification_config)
        return await super().on_create_task_push_notification_config(request, context)

    async def on_get_task_push_notification_config(
        self, request: old.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> old.TaskPushNotificationConfig:
        """Return a push configuration; one created without an id can be requested as `default`."""
        params = request.params
        try:
            return await super().on_get_task_push_notification_config(request, context)
        except sdk.TaskNotFoundError:
            if isinstance(params, old.TaskIdParams) or params.push_notification_config_id != DEFAULT_CONFIG:
                raise
            params.push_notification_config_id = params.id  # the id under which it is stored
        return await super().on_get_task_push_notification_config(request, context)

    async def on_delete_task_push_notification_config(
        self, request: old.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        params = request.params
        if params.push_notification_config_id == DEFAULT_CONFIG:
            wanted = old.GetTaskPushNotificationConfigParams(
                id=params.id, push_notification_config_id=DEFAULT_CONFIG
            )
            found = old.GetTaskPushNotificationConfigRequest(id="", params=wanted)
            with suppress(sdk.TaskNotFoundError):  # also if there is no such task: the deletion reports it
                config = await self.on_get_task_push_notification_config(found, context)
                params.push_notification_config_id = config.push_notification_config.id or DEFAULT_CONFIG
        await super().on_delete_task_push_notification_config(request, context)


def _push_config_of(request: old.SendMessageRequest) -> old.PushNotificationConfig | None:
    configuration = request.params.configuration
    return configuration.push_notification_config if configuration is not None else None


def _drop_empty_authentication(config: old.PushNotificationConfig | None) -> None:
    """Ignore an authentication without schemes: protobuf clients send empty messages."""
    auth = config.authentication if config is not None else None
    if config is not None and auth is not None and not any(auth.schemes) and not auth.credentials:
        config.authentication = None


async def _until_final(events: AsyncIterable[Said]) -> AsyncIterator[Said]:
    async with aclosing(events) as each:  # type: ignore[type-var]
        async for event in each:
            result = event.result
            if isinstance(result, old.TaskStatusUpdateEvent):
                result.final = result.final or result.status.state is old.TaskState.input_required
            yield event
            if isinstance(result, old.TaskStatusUpdateEvent) and result.final:
                return


class OldJsonRpc(JSONRPC03Adapter):
    def __init__(self, handler: RequestHandler, context_builder: ServerCallContextBuilder) -> None:
        super().__init__(handler, context_builder)
        self.handler = OldRequestHandler(handler)

    async def handle_request(
        self, request_id: str | int | None, method: str, body: dict[str, Any], request: Request
    ) -> Any:  # noqa: ANN401 - the SDK's own promises a stream that is no Response to type checkers
        if version_of(request) != PROTOCOL_VERSION_0_3:
            return self._generate_error_response(request_id, MethodNotFoundError())
        model: type[BaseModel] = self.METHOD_TO_MODEL[method]  # type: ignore[assignment]
        if unknown := _unknown_part(body):
            return self._generate_error_response(request_id, sdk.ContentTypeNotSupportedError(unknown))
        wrong = _wrong_params(model, body)
        if wrong:
            return self._generate_error_response(request_id, InvalidParamsError(data=wrong))
        return _with_result(await super().handle_request(request_id, method, body, request))


def _unknown_part(body: dict[str, Any]) -> str:
    """Name the first part of a kind that 0.3 does not have; its models would read one with `type` as text."""
    params = body.get("params")
    message = params.get("message") if isinstance(params, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    for position, part in enumerate(parts if isinstance(parts, list) else ()):
        kind = part.get("kind", part.get("type")) if isinstance(part, dict) else None
        if isinstance(kind, str) and kind not in _PART_KINDS:
            return f"params.message.parts.{position} is of an unknown kind: {kind[:40]!r}"
    return ""


def _wrong_params(model: type[BaseModel], body: dict[str, Any]) -> str:
    try:
        call = model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return _wrong_message(call) if isinstance(call, _SENDING) else ""


def _wrong_message(call: old.SendMessageRequest | old.SendStreamingMessageRequest) -> str:
    for position, part in enumerate(call.params.message.parts):
        if isinstance(part.root, old.FilePart) and isinstance(part.root.file, old.FileWithBytes):
            try:
                base64.b64decode(part.root.file.bytes, validate=True)
            except (binascii.Error, ValueError) as error:
                return f"params.message.parts.{position}.file.bytes is no base64: {error}"
    try:
        to_core_message(call.params.message)
    except (ParseError, ValueError) as error:
        return f"params.message: {error}"
    return ""


def _with_result(response: Response) -> Response:
    """Add the result that JSON-RPC requires, even if it is null."""
    if not isinstance(response, JSONResponse):
        return response
    answer = json.loads(bytes(response.body))
    if "result" in answer or "error" in answer:
        return response
    return JSONResponse({**answer, "result": None})


def old_rest_routes(
    handler: RequestHandler, context_builder: ServerCallContextBuilder, prefixes: Sequence[str]
) -> list[Route]:
    adapter = REST03Adapter(handler, context_builder)
    adapter.handler.handler03 = operations = OldRequestHandler(handler)
    endpoints = adapter.routes()
    delete = partial(adapter._handle_request, partial(_delete_push, operations))
    endpoints["/v1/tasks/{id}/pushNotificationConfigs/{push_id}", "DELETE"] = delete
    return [
        Route(f"{prefix}{path}", _sound(endpoint), methods=[method])
        for prefix in prefixes
        for (path, method), endpoint in endpoints.items()
    ]


def _sound(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[..., Any]:
    """Wrap an endpoint: check its query, and report errors in a form that clients of 0.3 can read."""

    async def answer(request: Request) -> Response:
        length = request.query_params.get("historyLength", "")
        if length and not length.isdecimal():
            raise sdk.InvalidParamsError(f"historyLength '{length[:40]}' is no number")
        response = await endpoint(request)
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return response
        return JSONResponse(old_error(json.loads(bytes(response.body))), response.status_code)

    return answer


def old_error(payload: dict[str, Any]) -> dict[str, Any]:
    """Add to a REST error what clients of 0.3 expect: the name of its type, and the message."""
    error = payload["error"]
    reasons = [each.get("reason", "") for each in error.get("details", ())]
    kind = sdk.A2A_REASON_TO_ERROR.get(reasons[0] if reasons else "", sdk.InternalError)
    return {**payload, "type": kind.__name__, "message": error["message"]}


async def _delete_push(
    operations: OldRequestHandler, request: Request, context: ServerCallContext
) -> dict[str, Any]:
    params = old.DeleteTaskPushNotificationConfigParams(
        id=request.path_params["id"], push_notification_config_id=request.path_params["push_id"]
    )
    await operations.on_delete_task_push_notification_config(
        old.DeleteTaskPushNotificationConfigRequest(id="", params=params), context
    )
    return {}
