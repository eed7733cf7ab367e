"""A2A spoken by hand over its two bindings: tested is the wire, and not what a client makes of it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from tests.waiting import PATIENCE

Json = dict[str, Any]
VERSION = {"A2A-Version": "1.0"}

TERMINAL = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}


@dataclass(frozen=True, slots=True)
class Wrong:
    """An error of section 5.4.

    Attributes:
        code: Of JSON-RPC.
        status: Of HTTP.
        reason: In the details.
    """

    code: int
    status: int
    reason: str


TASK_NOT_FOUND = Wrong(-32001, 404, "TASK_NOT_FOUND")
TASK_NOT_CANCELABLE = Wrong(-32002, 400, "TASK_NOT_CANCELABLE")
UNSUPPORTED_OPERATION = Wrong(-32004, 400, "UNSUPPORTED_OPERATION")
CONTENT_TYPE_NOT_SUPPORTED = Wrong(-32005, 400, "CONTENT_TYPE_NOT_SUPPORTED")
EXTENDED_CARD_NOT_CONFIGURED = Wrong(-32007, 400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
VERSION_NOT_SUPPORTED = Wrong(-32009, 400, "VERSION_NOT_SUPPORTED")
INVALID_PARAMS = Wrong(-32602, 400, "")


class Refused(Exception):
    """An error that the server answered, as both bindings tell it.

    Args:
        code: Of JSON-RPC; 0 over REST.
        status: Of HTTP.
        error: The error as it came.
    """

    def __init__(self, code: int, status: int, error: Json) -> None:
        super().__init__(f"{code} {status} {error}")
        self.code, self.status, self.error = code, status, error

    @property
    def reason(self) -> str:
        details = self.error.get("data", self.error.get("details")) or []
        infos = [each for each in details if each.get("domain") == "a2a-protocol.org"]
        assert all(each["@type"].endswith("google.rpc.ErrorInfo") for each in infos)
        return infos[0]["reason"] if infos else ""

    def means(self, wrong: Wrong) -> bool:
        """Whether it is that error, in every way in which its binding tells it."""
        number = self.code == wrong.code if self.code else self.status == wrong.status
        return number and self.reason == wrong.reason


def message(text: str = "Hello from TCK", message_id: str = "tck-complete-task", **fields: Any) -> Json:
    """A message of a user; its id is made unique, as the scripted agent looks at the beginning."""
    parts = fields.pop("parts", [{"text": text}])
    return {"messageId": f"{message_id}-{uuid4()}", "role": "ROLE_USER", "parts": parts, **fields}


@dataclass
class Binding(ABC):
    """One binding to one agent.

    Attributes:
        http: A client whose base is the agent's server.
        url: Of the card's interface.
        headers: Sent with each request.
    """

    http: httpx.AsyncClient
    url: str
    headers: dict[str, str] = field(default_factory=lambda: dict(VERSION))

    @abstractmethod
    async def send(self, message: Json, **fields: Any) -> Json:
        """SendMessage."""

    @abstractmethod
    def stream(self, message: Json, **fields: Any) -> AsyncGenerator[Json, None]:
        """SendStreamingMessage; the events."""

    @abstractmethod
    async def get(self, task_id: str, **fields: Any) -> Json:
        """GetTask."""

    @abstractmethod
    async def list(self, **fields: Any) -> Json:
        """ListTasks."""

    @abstractmethod
    async def cancel(self, task_id: str) -> Json:
        """CancelTask."""

    @abstractmethod
    def subscribe(self, task_id: str) -> AsyncGenerator[Json, None]:
        """SubscribeToTask; the events."""

    @abstractmethod
    async def create_push(self, task_id: str, config: Json) -> Json:
        """CreateTaskPushNotificationConfig."""

    @abstractmethod
    async def get_push(self, task_id: str, config_id: str) -> Json:
        """GetTaskPushNotificationConfig."""

    @abstractmethod
    async def list_push(self, task_id: str) -> Json:
        """ListTaskPushNotificationConfigs."""

    @abstractmethod
    async def delete_push(self, task_id: str, config_id: str) -> None:
        """DeleteTaskPushNotificationConfig."""

    @abstractmethod
    async def extended_card(self) -> Json:
        """GetExtendedAgentCard."""

    async def task(self, message_id: str = "tck-complete-task", **fields: Any) -> Json:
        answer = await self.send(message(message_id=message_id), **fields)
        assert set(answer) == {"task"}, answer
        task: Json = answer["task"]
        return task


class JsonRpc(Binding):
    """The JSON-RPC binding (section 9)."""

    async def call(self, method: str, params: Mapping[str, Any], **headers: str) -> Any:
        """One call; the id is checked."""
        asked = str(uuid4())
        body = {"jsonrpc": "2.0", "id": asked, "method": method, "params": params}
        answer = await self.http.post(self.url, json=body, headers=self.headers | headers)
        assert answer.headers["content-type"].partition(";")[0] == "application/json"
        return _result(answer.json(), asked)

    async def events(self, method: str, params: Json) -> AsyncGenerator[Json, None]:
        """One call that is answered by a stream."""
        asked = str(uuid4())
        body = {"jsonrpc": "2.0", "id": asked, "method": method, "params": params}
        request = self.http.stream("POST", self.url, json=body, headers=self.headers)
        async with request as answer, aclosing(_sse(answer)) as lines:
            if not _is_stream(answer):
                _result(json.loads(await answer.aread()), asked)
                raise AssertionError(f"{method} was answered without a stream")
            async for line in lines:
                yield _result(line, asked)

    async def send(self, message: Json, **fields: Any) -> Json:
        return dict(await self.call("SendMessage", {"message": message, **fields}))

    def stream(self, message: Json, **fields: Any) -> AsyncGenerator[Json, None]:
        return self.events("SendStreamingMessage", {"message": message, **fields})

    async def get(self, task_id: str, **fields: Any) -> Json:
        return dict(await self.call("GetTask", {"id": task_id, **fields}))

    async def list(self, **fields: Any) -> Json:
        return dict(await self.call("ListTasks", fields))

    async def cancel(self, task_id: str) -> Json:
        return dict(await self.call("CancelTask", {"id": task_id}))

    def subscribe(self, task_id: str) -> AsyncGenerator[Json, None]:
        return self.events("SubscribeToTask", {"id": task_id})

    async def create_push(self, task_id: str, config: Json) -> Json:
        return dict(await self.call("CreateTaskPushNotificationConfig", {"taskId": task_id, **config}))

    async def get_push(self, task_id: str, config_id: str) -> Json:
        return dict(await self.call("GetTaskPushNotificationConfig", {"taskId": task_id, "id": config_id}))

    async def list_push(self, task_id: str) -> Json:
        return dict(await self.call("ListTaskPushNotificationConfigs", {"taskId": task_id}))

    async def delete_push(self, task_id: str, config_id: str) -> None:
        await self.call("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": config_id})

    async def extended_card(self) -> Json:
        return dict(await self.call("GetExtendedAgentCard", {}))


class Rest(Binding):
    """The HTTP+JSON binding (section 11)."""

    async def call(self, method: str, path: str, body: Json | None = None, **query: Any) -> Any:
        """One request."""
        params = {key: _word(value) for key, value in query.items()} or None  # {} takes the query away
        answer = await self.http.request(
            method, self.url + path, params=params, headers=self._headers(body), content=_bytes(body)
        )
        return _answer(answer.status_code, answer.content)

    async def events(self, method: str, path: str, body: Json | None = None) -> AsyncGenerator[Json, None]:
        """One request that is answered by a stream."""
        request = self.http.stream(method, self.url + path, headers=self._headers(body), content=_bytes(body))
        async with request as answer, aclosing(_sse(answer)) as lines:
            if not _is_stream(answer):
                _answer(answer.status_code, await answer.aread())
                raise AssertionError(f"{path} was answered without a stream")
            async for line in lines:
                yield line

    def _headers(self, body: Json | None) -> dict[str, str]:
        return self.headers if body is None else {**self.headers, "Content-Type": "application/a2a+json"}

    async def send(self, message: Json, **fields: Any) -> Json:
        return dict(await self.call("POST", "/message:send", {"message": message, **fields}))

    def stream(self, message: Json, **fields: Any) -> AsyncGenerator[Json, None]:
        return self.events("POST", "/message:stream", {"message": message, **fields})

    async def get(self, task_id: str, **fields: Any) -> Json:
        return dict(await self.call("GET", f"/tasks/{quote(task_id)}", **fields))

    async def list(self, **fields: Any) -> Json:
        return dict(await self.call("GET", "/tasks", **fields))

    async def cancel(self, task_id: str) -> Json:
        return dict(await self.call("POST", f"/tasks/{quote(task_id)}:cancel", {}))

    def subscribe(self, task_id: str) -> AsyncGenerator[Json, None]:
        return self.events("POST", f"/tasks/{quote(task_id)}:subscribe", {})

    async def create_push(self, task_id: str, config: Json) -> Json:
        return dict(await self.call("POST", f"/tasks/{quote(task_id)}/pushNotificationConfigs", config))

    async def get_push(self, task_id: str, config_id: str) -> Json:
        return dict(await self.call("GET", f"/tasks/{quote(task_id)}/pushNotificationConfigs/{config_id}"))

    async def list_push(self, task_id: str) -> Json:
        return dict(await self.call("GET", f"/tasks/{quote(task_id)}/pushNotificationConfigs"))

    async def delete_push(self, task_id: str, config_id: str) -> None:
        await self.call("DELETE", f"/tasks/{quote(task_id)}/pushNotificationConfigs/{config_id}")

    async def extended_card(self) -> Json:
        return dict(await self.call("GET", "/extendedAgentCard"))


@asynccontextmanager
async def connected(endpoint: str, kind: str) -> AsyncIterator[Binding]:
    """A binding to an agent, at the URL that its card tells."""
    # Without https, certificates need not be loaded, which takes longer than most calls.
    async with httpx.AsyncClient(
        base_url=endpoint, timeout=PATIENCE, trust_env=False, verify=False
    ) as client:
        card = (await client.get("/.well-known/agent-card.json")).json()
        urls = [
            each["url"]
            for each in card["supportedInterfaces"]
            if (each["protocolBinding"], each["protocolVersion"]) == (kind, "1.0")
        ]
        yield {"JSONRPC": JsonRpc, "HTTP+JSON": Rest}[kind](client, urls[0].rstrip("/"))


async def collect(events: AsyncIterator[Json]) -> list[Json]:
    return [event async for event in events]


def state_of(event: Json) -> str:
    told = event.get("task") or event.get("statusUpdate") or {}
    return str(told.get("status", {}).get("state", ""))


def _is_stream(answer: httpx.Response) -> bool:
    return str(answer.headers.get("content-type", "")).startswith("text/event-stream")


async def _sse(answer: httpx.Response) -> AsyncGenerator[Json, None]:
    data: list[str] = []
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


def _result(answer: Json, asked: str) -> Any:
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == asked
    assert ("result" in answer) != ("error" in answer), answer
    if "error" in answer:
        raise Refused(answer["error"]["code"], 0, answer["error"])
    return answer["result"]


def _answer(status: int, content: bytes) -> Any:
    found = json.loads(content) if content else {}
    if status >= 400:
        error = found["error"]
        assert error["code"] == status
        assert error["status"]
        assert error["message"]
        raise Refused(0, status, error)
    return found


def _bytes(body: Json | None) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def _word(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
