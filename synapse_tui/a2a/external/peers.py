"""Connects to external agents: A2A 1.0 and 0.3 by the SDK's client, and the routes of synapse-a2a.

Loads httpx and the SDK: import it in a thread. All input is sanitized and limited here.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Mapping

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")  # before the SDK is imported

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from synapse_tui.a2a import calls
from synapse_tui.a2a.calls import Call, PeerTask
from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.errors import CardRefused, PeerRefused, TaskNotFound
from synapse_tui.core.model import TaskState

from .discovery import credentials_of
from .peer import Budget, NotOffered, Outgoing, Peer, TaskUpdate, artifact_of, piece_of
from .registry import ExternalAgent, Interface
from .transport import Bounds, make_client, problem_of
from .untrusted import clean_line, clean_text

TIMEOUT = 30.0  # seconds for requests that are answered immediately
HISTORY = 20  # number of messages requested of a task
MAX_PARTS = 200
MAX_ARTIFACTS = 100
MAX_HISTORY = 50
MAX_ID = 256

_STATES: Mapping[int, TaskState] = {
    pb.TASK_STATE_SUBMITTED: TaskState.SUBMITTED,
    pb.TASK_STATE_WORKING: TaskState.WORKING,
    pb.TASK_STATE_COMPLETED: TaskState.COMPLETED,
    pb.TASK_STATE_FAILED: TaskState.FAILED,
    pb.TASK_STATE_CANCELED: TaskState.CANCELED,
    pb.TASK_STATE_REJECTED: TaskState.REJECTED,
    pb.TASK_STATE_INPUT_REQUIRED: TaskState.INPUT_REQUIRED,
    pb.TASK_STATE_AUTH_REQUIRED: TaskState.INPUT_REQUIRED,
}


async def open_peer(agent: ExternalAgent, environ: Mapping[str, str], budget: Budget) -> Peer:
    """Connect to an agent; its token is read from `environ`."""
    interface = agent.interface
    if interface is None:
        raise CardRefused(
            f"the card of '{agent.alias}' was never read", f"add it again: synapse external add {agent.url}"
        )
    bounds = Bounds(agent.url, agent.allowed, credentials_of(agent, environ), budget=budget)
    http = await asyncio.to_thread(make_client, bounds)
    if interface.binding == "dialect":
        return DialectPeer(interface, http)
    return await asyncio.to_thread(SdkPeer, agent, interface, http, budget)


class SdkPeer:
    """A `Peer` that uses the SDK's client, over JSON-RPC or REST."""

    def __init__(
        self, agent: ExternalAgent, interface: Interface, http: httpx.AsyncClient, budget: Budget
    ) -> None:
        self.streaming = agent.streaming
        self._url = interface.url
        self._http = http
        self._budget = budget
        way = pb.AgentInterface(
            url=interface.url,
            protocol_binding=interface.binding,
            protocol_version=interface.version,
            tenant=interface.tenant,
        )
        card = pb.AgentCard(name=agent.name, supported_interfaces=[way])
        self._plain = _client(card, http, streaming=False)
        self._live = _client(card, http, streaming=True)

    def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[TaskUpdate, None]:
        message = pb.Message(
            message_id=outgoing.message_id,
            role=pb.ROLE_USER,
            parts=[pb.Part(text=outgoing.text, media_type="text/plain")],
            task_id=outgoing.task_id,
            context_id=outgoing.context_id,
        )
        client = self._live if stream else self._plain
        return self._updates(client.send_message(pb.SendMessageRequest(message=message)), sends=True)

    def subscribe(self, task_id: str) -> AsyncGenerator[TaskUpdate, None]:
        return self._updates(self._live.subscribe(pb.SubscribeToTaskRequest(id=task_id)), sends=False)

    async def get(self, task_id: str) -> TaskUpdate:
        return await self._task(self._plain.get_task(pb.GetTaskRequest(id=task_id, history_length=HISTORY)))

    async def cancel(self, task_id: str) -> TaskUpdate:
        return await self._task(self._plain.cancel_task(pb.CancelTaskRequest(id=task_id)))

    async def close(self) -> None:
        await self._http.aclose()

    async def _task(self, answer: Awaitable[pb.Task]) -> TaskUpdate:
        try:
            async with asyncio.timeout(TIMEOUT):
                return whole_task(await answer)
        except Exception as error:
            raise problem_of(error, self._url, sends=False) from error

    async def _updates(
        self, responses: AsyncIterator[pb.StreamResponse], *, sends: bool
    ) -> AsyncGenerator[TaskUpdate, None]:
        try:
            async for response in responses:
                sends = False
                await self._budget.event()  # also for events that are unknown, or belong to another task
                update = update_of(response)
                if update is not None:
                    yield update
        except Exception as error:
            raise problem_of(error, self._url, sends=sends) from error
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()


def _client(card: pb.AgentCard, http: httpx.AsyncClient, *, streaming: bool) -> Client:
    config = ClientConfig(
        streaming=streaming,
        polling=not streaming,
        httpx_client=http,
        supported_protocol_bindings=["JSONRPC", "HTTP+JSON"],
    )
    own = copy.deepcopy(card)
    own.capabilities.streaming = streaming
    return ClientFactory(config).create(own)


def update_of(response: pb.StreamResponse) -> TaskUpdate | None:
    kind = response.WhichOneof("payload")
    if kind == "task":
        return whole_task(response.task)
    if kind == "message":
        message = response.message
        return TaskUpdate("", _id(message.context_id), TaskState.COMPLETED, _message(message))
    if kind == "status_update":
        event = response.status_update
        return _with_status(event.task_id, event.context_id, event.status)
    if kind == "artifact_update":
        piece = response.artifact_update
        return piece_of(
            _id(piece.task_id),
            _id(piece.context_id),
            _artifact(piece.artifact),
            append=piece.append,
            last=piece.last_chunk,
        )
    return None


def whole_task(task: pb.Task) -> TaskUpdate:
    said = [each for each in task.history if each.role == pb.ROLE_AGENT]
    return _with_status(
        task.id,
        task.context_id,
        task.status,
        artifacts=tuple(_artifact(artifact) for artifact in task.artifacts[:MAX_ARTIFACTS]),
        history=tuple(_message(each) for each in said[-MAX_HISTORY:]),
    )


def _with_status(
    task_id: str,
    context_id: str,
    status: pb.TaskStatus,
    artifacts: tuple[Artifact, ...] = (),
    history: tuple[TaskMessage, ...] = (),
) -> TaskUpdate:
    return TaskUpdate(
        _id(task_id),
        _id(context_id),
        _STATES.get(status.state, TaskState.WORKING),
        _message(status.message) if status.HasField("message") and status.message.parts else None,
        auth=status.state == pb.TASK_STATE_AUTH_REQUIRED,
        artifacts=artifacts,
        history=history,
    )


def _message(message: pb.Message) -> TaskMessage:
    return TaskMessage(_id(message.message_id), "agent", _parts(message.parts))


def _artifact(artifact: pb.Artifact) -> Artifact:
    name = clean_line(artifact.name, 120)
    return artifact_of(_parts(artifact.parts), artifact_id=_id(artifact.artifact_id), name=name)


def _parts(parts: Iterable[pb.Part]) -> tuple[Part, ...]:
    return tuple(_part(part) for part in list(parts)[:MAX_PARTS])


def _part(part: pb.Part) -> Part:
    name, media_type = clean_line(part.filename, 120), clean_line(part.media_type, 100)
    kind = part.WhichOneof("content")
    if kind == "raw":
        raw = bytes(part.raw)
        return Part("file", data=raw, name=name, media_type=media_type, metadata={"size": len(raw)})
    if kind == "url":
        return Part("url", text=clean_line(part.url, 2000), name=name, media_type=media_type)
    if kind == "data":
        data = _with_integers(MessageToDict(part).get("data"))
        return Part("data", data=data, name=name, media_type=media_type)
    return Part("text", text=clean_text(part.text), name=name, media_type=media_type)


def _with_integers(value: object) -> object:
    """Convert whole numbers in a JSON value back to integers: protobuf has only floats."""
    if isinstance(value, dict):
        return {key: _with_integers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_integers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _id(text: str) -> str:
    """An id of the agent; empty if it cannot be sent back."""
    return text if len(text) <= MAX_ID and text.isprintable() else ""


class DialectPeer:
    """A `Peer` for the original synapse-a2a: posts to `/tasks/send` and polls `/tasks/{id}`."""

    streaming = False

    def __init__(self, interface: Interface, http: httpx.AsyncClient) -> None:
        self._url = interface.url.rstrip("/")
        self._http = http

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[TaskUpdate, None]:  # noqa: ARG002
        body = {
            "message": {"role": "user", "parts": [{"type": "text", "text": outgoing.text}]},
            "context_id": outgoing.context_id or None,
            "metadata": {"response_expected": True, "message_id": outgoing.message_id},
        }
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        call = Call("POST", "/tasks/send", calls.read_task, data)
        yield await self._call(call, sends=True)

    async def subscribe(self, task_id: str) -> AsyncGenerator[TaskUpdate, None]:
        raise NotOffered("the dialect has no streams", 405)
        yield await self.get(task_id)

    async def get(self, task_id: str) -> TaskUpdate:
        return await self._call(calls.task(task_id), sends=False)

    async def cancel(self, task_id: str) -> TaskUpdate:
        return await self._call(calls.cancel(task_id), sends=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def _call(self, call: Call[PeerTask], *, sends: bool) -> TaskUpdate:
        headers = {"Accept": "application/json"}
        if call.body:
            headers["Content-Type"] = "application/json"
        url = self._url + call.target
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await self._http.request(
                    call.method, url, content=call.body or None, headers=headers
                )
        except (httpx.HTTPError, TimeoutError) as error:
            raise problem_of(error, self._url, sends=sends) from error
        try:
            return _dialect_task(call.read(self._url, response.status_code, response.content))
        except TaskNotFound as error:
            raise PeerRefused(error.message, 404, error.hint) from error


def _dialect_task(task: PeerTask) -> TaskUpdate:
    reason = clean_line(task.reason, 300)
    explained = reason and task.state in (TaskState.FAILED, TaskState.REJECTED, TaskState.INPUT_REQUIRED)
    return TaskUpdate(
        task.task_id,
        clean_line(task.context_id, 256),
        task.state,
        TaskMessage("", "agent", (Part(text=reason),)) if explained else None,
        artifacts=tuple(
            artifact_of((Part(text=clean_text(text)),), artifact_id=str(position))
            for position, text in enumerate(task.texts)
        ),
    )
