"""An external agent that speaks A2A 1.0 or 0.3, over JSON-RPC or REST: by the client of the A2A SDK."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from synapse_tui.a2a import dialect
from synapse_tui.a2a.dialect import Call, PeerTask
from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.errors import CardRefused, ConfigError, PeerRefused, TaskNotFound
from synapse_tui.model import TaskState

from .discovery import discover, read_again
from .peer import (
    Budget,
    Chunk,
    DirectAnswer,
    NotOffered,
    Outgoing,
    Peer,
    Snapshot,
    StatusUpdate,
    Update,
    artifact_of,
)
from .registry import ExternalAgent, Interface
from .transport import Bounds, make_client, problem_of
from .untrusted import clean_line, clean_text
from .worker import Exchange

__all__ = ["Exchange", "credentials_of", "discover", "open_peer", "read_again"]

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


def update_of(response: pb.StreamResponse) -> Update | None:
    """One event of a stream; None for one that tells nothing."""
    kind = response.WhichOneof("payload")
    if kind == "task":
        return snapshot_of(response.task)
    if kind == "message":
        return DirectAnswer(_id(response.message.context_id), _message(response.message))
    if kind == "status_update":
        event = response.status_update
        return StatusUpdate(
            _id(event.task_id),
            _id(event.context_id),
            _state(event.status.state),
            _status_message(event.status),
            auth=event.status.state == pb.TASK_STATE_AUTH_REQUIRED,
        )
    if kind == "artifact_update":
        piece = response.artifact_update
        return Chunk(
            _id(piece.task_id),
            _id(piece.context_id),
            _artifact(piece.artifact),
            append=piece.append,
            last=piece.last_chunk,
        )
    return None


def snapshot_of(task: pb.Task) -> Snapshot:
    """A task as it is."""
    said = [each for each in task.history if each.role == pb.ROLE_AGENT]
    return Snapshot(
        _id(task.id),
        _id(task.context_id),
        _state(task.status.state),
        _status_message(task.status),
        auth=task.status.state == pb.TASK_STATE_AUTH_REQUIRED,
        artifacts=tuple(_artifact(each) for each in task.artifacts[:MAX_ARTIFACTS]),
        history=tuple(_message(each) for each in said[-MAX_HISTORY:]),
    )


def _state(state: int) -> TaskState:
    """Our word for a state; one that is not known counts as working."""
    return _STATES.get(state, TaskState.WORKING)


def _status_message(status: pb.TaskStatus) -> TaskMessage | None:
    return _message(status.message) if status.HasField("message") and status.message.parts else None


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
        return Part("data", data=_value(part), name=name, media_type=media_type)
    return Part("text", text=clean_text(part.text), name=name, media_type=media_type)


def _value(part: pb.Part) -> object:
    return _whole(MessageToDict(part).get("data"))


def _whole(value: object) -> object:
    """A JSON value whose whole numbers are so again: protobuf has only floating ones."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _id(text: str) -> str:
    """An id as the agent gave it, if it is of a length to be given back; else none."""
    return text if len(text) <= MAX_ID and text.isprintable() else ""


os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")  # before the SDK is imported


GET_TIMEOUT = 30.0
"""Seconds in which the state of a task must have come."""
HISTORY = 20
"""How many messages of a task are asked for."""


class SdkPeer:
    """One agent by the SDK's client.

    Args:
        agent: The agent.
        interface: How it is called.
        http: Makes the requests; closed with this.
        budget: What the agent may send.
    """

    def __init__(
        self, agent: ExternalAgent, interface: Interface, http: httpx.AsyncClient, budget: Budget
    ) -> None:
        self._url = interface.url
        self._http = http
        self._budget = budget
        self._streaming = agent.streaming
        card = _card(agent, interface)
        self._plain = _client(card, http, streaming=False)
        self._live = _client(card, http, streaming=True)

    @property
    def streaming(self) -> bool:
        """Whether it tells of its work while it works."""
        return self._streaming

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:
        """Send a message.

        Raises:
            PeerError: It did not go as asked.
        """
        client = self._live if stream else self._plain
        request = _request(outgoing)
        async with contextlib.aclosing(self._told(client.send_message(request), sends=True)) as told:
            async for update in told:
                yield update

    async def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        """What happens to a task from now on.

        Raises:
            PeerError: It did not go as asked.
        """
        request = pb.SubscribeToTaskRequest(id=task_id)
        async with contextlib.aclosing(self._told(self._live.subscribe(request), sends=False)) as told:
            async for update in told:
                yield update

    async def get(self, task_id: str) -> Snapshot:
        """A task as it is.

        Raises:
            PeerError: It did not go as asked.
        """
        request = pb.GetTaskRequest(id=task_id, history_length=HISTORY)
        return snapshot_of(await self._asked(lambda: self._plain.get_task(request)))

    async def cancel(self, task_id: str) -> Snapshot:
        """Cancel a task.

        Raises:
            PeerError: It did not go as asked.
        """
        request = pb.CancelTaskRequest(id=task_id)
        return snapshot_of(await self._asked(lambda: self._plain.cancel_task(request)))

    async def close(self) -> None:
        """End the connection."""
        await self._http.aclose()

    async def _asked(self, ask: Callable[[], Any]) -> pb.Task:
        try:
            async with asyncio.timeout(GET_TIMEOUT):
                task: pb.Task = await ask()
        except Exception as error:
            raise problem_of(error, self._url, sends=False) from error
        return task

    async def _told(
        self, stream: AsyncIterator[pb.StreamResponse], *, sends: bool
    ) -> AsyncGenerator[Update, None]:
        try:
            async for response in stream:
                sends = False
                await self._budget.event()  # also for what is not understood, or about another task
                update = update_of(response)
                if update is not None:
                    yield update
        except Exception as error:
            raise problem_of(error, self._url, sends=sends) from error
        finally:
            close = getattr(stream, "aclose", None)
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


def _card(agent: ExternalAgent, interface: Interface) -> pb.AgentCard:
    """A card as the SDK wants it, with the one interface that was chosen."""
    way = pb.AgentInterface(
        url=interface.url,
        protocol_binding=interface.binding,
        protocol_version=interface.version,
        tenant=interface.tenant,
    )
    return pb.AgentCard(name=agent.name, supported_interfaces=[way])


def _request(outgoing: Outgoing) -> pb.SendMessageRequest:
    return pb.SendMessageRequest(
        message=pb.Message(
            message_id=outgoing.message_id,
            role=pb.ROLE_USER,
            parts=[pb.Part(text=outgoing.text, media_type="text/plain")],
            task_id=outgoing.task_id,
            context_id=outgoing.context_id,
        )
    )


TIMEOUT = 30.0
"""Seconds in which an answer must have come: the dialect takes a message and answers at once."""


class DialectPeer:
    """One agent by the dialect.

    Args:
        interface: Where it is.
        http: Makes the requests; closed with this.
    """

    def __init__(self, interface: Interface, http: httpx.AsyncClient) -> None:
        self._url = interface.url.rstrip("/")
        self._http = http

    @property
    def streaming(self) -> bool:
        """The dialect is asked again and again."""
        return False

    async def send(self, outgoing: Outgoing, *, stream: bool) -> AsyncGenerator[Update, None]:  # noqa: ARG002
        """Send a message.

        Raises:
            PeerError: It did not go as asked.
        """
        part = {"type": "text", "text": outgoing.text}
        body = {
            "message": {"role": "user", "parts": [part]},
            "context_id": outgoing.context_id or None,
            "metadata": {"response_expected": True, "message_id": outgoing.message_id},
        }
        call = Call("POST", "/tasks/send", json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        yield await self._call(call, sends=True)

    async def subscribe(self, task_id: str) -> AsyncGenerator[Update, None]:
        """Not offered by the dialect.

        Raises:
            NotOffered: Always.
        """
        raise NotOffered("the dialect tells of tasks only when it is asked", 405)
        yield await self.get(task_id)

    async def get(self, task_id: str) -> Snapshot:
        """A task as it is.

        Raises:
            PeerError: It did not go as asked.
        """
        return await self._call(dialect.task_call(task_id), sends=False)

    async def cancel(self, task_id: str) -> Snapshot:
        """Cancel a task.

        Raises:
            PeerError: It did not go as asked.
        """
        return await self._call(dialect.task_call(task_id, "cancel"), sends=False)

    async def close(self) -> None:
        """End the connection."""
        await self._http.aclose()

    async def _call(self, call: Call, *, sends: bool) -> Snapshot:
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
            answer = dialect.read_answer(self._url, response.status_code, response.content)
            return _snapshot(dialect.read_task(self._url, answer))
        except TaskNotFound as error:
            raise PeerRefused(error.message, 404, error.hint) from error


def _snapshot(task: PeerTask) -> Snapshot:
    reason = clean_line(task.reason, 300)
    told = TaskMessage("", "agent", (Part(text=reason),)) if reason and _matters(task.state) else None
    return Snapshot(
        task.task_id,
        clean_line(task.context_id, 256),
        task.state,
        told,
        artifacts=tuple(
            artifact_of((Part(text=clean_text(text)),), artifact_id=str(at))
            for at, text in enumerate(task.texts)
        ),
    )


def _matters(state: TaskState) -> bool:
    return state in (TaskState.FAILED, TaskState.REJECTED, TaskState.INPUT_REQUIRED)


def credentials_of(agent: ExternalAgent, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers by which an agent knows who calls.

    Args:
        agent: The agent.
        environ: Where tokens are.

    Raises:
        ConfigError: The variable of its token is not set.
    """
    return headers_of(agent.headers, agent.token_env, environ)


def headers_of(headers: Mapping[str, str], token_env: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers, with the token of a variable as one of them.

    Raises:
        ConfigError: The variable is not set, or holds what cannot be sent.
    """
    found = dict(headers)
    if token_env:
        token = environ.get(token_env, "").strip()
        if not token:
            raise ConfigError(
                f"the environment variable {token_env} is not set",
                "set it where synapse-tui is started, then try again",
            )
        if not token.isascii() or not token.isprintable():
            raise ConfigError(f"what {token_env} holds cannot be sent in a header", "look at its value")
        found["Authorization"] = f"Bearer {token}"
    return found


async def open_peer(agent: ExternalAgent, environ: Mapping[str, str], budget: Budget) -> Peer:
    """Connect to an agent.

    Args:
        agent: The agent.
        environ: Where tokens are.
        budget: What the agent may send.

    Raises:
        CardRefused: Its card must be read first.
        ConfigError: The variable of its token is not set.
    """
    interface = agent.interface
    if interface is None:
        raise CardRefused(
            f"the card of '{agent.alias}' was not read yet", f"add it anew: synapse external add {agent.url}"
        )
    bounds = Bounds(agent.url, agent.allowed, credentials_of(agent, environ), budget=budget)
    http = await asyncio.to_thread(make_client, bounds)
    if interface.binding == "dialect":
        return DialectPeer(interface, http)
    return await asyncio.to_thread(SdkPeer, agent, interface, http, budget)
