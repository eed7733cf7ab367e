"""What tests of the A2A protocol share: an agent that says when it was given something, calls, messages."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import httpx

from synapse_tui.core.model import DeliveryState, MessageRequest, Task, TaskState
from tests.fake_agent import FakeAgent
from tests.waiting import PATIENCE

V1 = {"A2A-Version": "1.0"}
AT_ONCE = {"returnImmediately": True}
_numbers = itertools.count(1)


class GivenAgent(FakeAgent):
    """Tells of each message that it has accepted."""

    def __init__(self, port: int = 8100, agent_type: str = "claude", name: str = "") -> None:
        super().__init__(port, agent_type, name)
        self.given: asyncio.Queue[Task] = asyncio.Queue()

    def accept(self, request: MessageRequest) -> Task:
        task = super().accept(request)
        self.given.put_nowait(task)
        return task

    async def taken(self) -> Task:
        """Wait for the next message."""
        async with asyncio.timeout(PATIENCE):
            return await self.given.get()

    async def works(self) -> Task:
        """Wait for the next message, and work on it."""
        task = await self.taken()
        self.give(task.id)
        return self.tasks.get(task.id)

    def asks(self, task_id: str, reason: str) -> None:
        """A dialog is open in the turn that works on a task."""
        self.tasks.change(task_id, state=TaskState.INPUT_REQUIRED, reason=reason)

    def goes_on(self, task_id: str) -> None:
        self.tasks.change(task_id, state=TaskState.WORKING, reason="", delivery=DeliveryState.SUBMITTED)


def said(text: str = "Hello!", **fields: Any) -> dict[str, Any]:
    """Parameters of SendMessage; fields of the message."""
    message = {"messageId": f"m-{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": {**message, **fields}}


def old_said(text: str = "Hello!", *, blocking: bool = True, **fields: Any) -> dict[str, Any]:
    """Parameters of message/send of 0.3; fields of the message."""
    message = {
        "kind": "message",
        "messageId": f"m-{next(_numbers)}",
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }
    return {"message": {**message, **fields}, "configuration": {"blocking": blocking}}


class Refused(Exception):
    """An error of JSON-RPC."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


async def post(
    client: httpx.AsyncClient,
    method: str,
    params: Any,
    path: str = "/",
    headers: Mapping[str, str] = V1,
) -> httpx.Response:
    """One call."""
    call = {"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params}
    return await client.post(path, json=call, headers=headers)


async def rpc(
    client: httpx.AsyncClient,
    method: str,
    params: Any,
    path: str = "/",
    headers: Mapping[str, str] = V1,
) -> Any:
    """The result of one call.

    Raises:
        Refused: It is an error.
    """
    response = await post(client, method, params, path, headers)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == "call-1"
    assert ("result" in answer) is not ("error" in answer)
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["result"]


async def stream(
    client: httpx.AsyncClient, method: str, params: Any, headers: Mapping[str, str] = V1
) -> AsyncGenerator[Any, None]:
    """The results of one call that is answered by a stream.

    Raises:
        Refused: One is an error.
    """
    call = {"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params}
    request = client.stream("POST", "/", json=call, headers=headers)
    async with request as response, aclosing(events(response)) as found:
        if not response.headers["content-type"].startswith("text/event-stream"):
            raise Refused(json.loads(await response.aread())["error"])
        async for _, answer in found:
            if "error" in answer:
                raise Refused(answer["error"])
            yield answer["result"]


async def events(response: httpx.Response) -> AsyncGenerator[tuple[str, Any], None]:
    """The server-sent events of an answer: their names and their data."""
    name, data = "", ""
    async for line in response.aiter_lines():
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            data += value
        elif not line and data:
            yield name, json.loads(data)
            name, data = "", ""


async def collect(found: AsyncIterator[Any]) -> list[Any]:
    """All of a stream."""
    return [each async for each in found]


def states(found: list[Any]) -> list[str]:
    """The states that the events of a stream tell, in 1.0."""
    told = [each.get("task") or each.get("statusUpdate") for each in found]
    return [each["status"]["state"] for each in told if each]
