"""External agents for tests: one on the SDK's own server (1.0), one of 0.3 by hand, one of the dialect."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Handle = Callable[[Request], Awaitable[Response]]


@dataclass
class Running:
    """A server that runs.

    Attributes:
        url: Its base URL.
        seen: Headers of every request, the newest last.
        go: Lets an agent that waits for it go on.
        bodies: Bodies of every POST, the newest last.
    """

    url: str
    go: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[Mapping[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)


class KeywordAgent(AgentExecutor):
    """Does what the first word says."""

    def __init__(self, server: Running) -> None:
        self._server = server

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        word, _, rest = text.partition(" ")
        if word == "message":
            await event_queue.enqueue_event(
                pb.Message(message_id="m1", role=pb.ROLE_AGENT, parts=[pb.Part(text=f"direct {rest}")])
            )
            return
        task = context.current_task
        if task is None:
            task = pb.Task(
                id=context.task_id,
                context_id=context.context_id,
                status=pb.TaskStatus(state=pb.TASK_STATE_SUBMITTED),
                history=[context.message] if context.message else [],
            )
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await self._work(updater, word, rest)

    async def _work(self, updater: TaskUpdater, word: str, rest: str) -> None:
        if word == "ask":
            await updater.requires_input(updater.new_agent_message([pb.Part(text="which colour?")]))
            return
        if word == "fail":
            await updater.failed(updater.new_agent_message([pb.Part(text="it broke")]))
            return
        if word == "slow":
            await self._server.go.wait()
        if word in ("stream", "halfway"):
            await self._stream(updater, pauses=word == "halfway")
        elif word == "file":
            raw = pb.Part(raw=b"\x00\x01 bytes", filename="../../evil name.txt", media_type="text/plain")
            await updater.add_artifact([pb.Part(text="here:"), raw], "f1")
        elif word == "nasty":
            await updater.add_artifact(
                [pb.Part(text="\x1b]52;c;QUJD\x07red\x1b[31m \u202egnp.exe [bold]x[/]")]
            )
        else:
            await updater.add_artifact([pb.Part(text=f"{word} {rest}".strip())])
        await updater.complete()

    async def _stream(self, updater: TaskUpdater, *, pauses: bool) -> None:
        for at, piece in enumerate(("one ", "two ", "three")):
            if at == 1 and pauses:
                await self._server.go.wait()
            await updater.add_artifact([pb.Part(text=piece)], "a1", append=bool(at), last_chunk=at == 2)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card_v1(
    url: str, *, streaming: bool = True, binding: str = "JSONRPC", name: str = "Echo Agent"
) -> pb.AgentCard:
    path = {"JSONRPC": "/rpc", "HTTP+JSON": "/rest"}[binding]
    return pb.AgentCard(
        name=name,
        description="echoes",
        version="1",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=pb.AgentCapabilities(streaming=streaming),
        supported_interfaces=[
            pb.AgentInterface(url=url + path, protocol_binding=binding, protocol_version="1.0")
        ],
        skills=[pb.AgentSkill(id="echo", name="Echo", description="says it again", tags=["echo"])],
    )


@contextlib.asynccontextmanager
async def sdk_agent(
    *, streaming: bool = True, binding: str = "JSONRPC", token: str = "", port: int = 0
) -> AsyncIterator[Running]:
    with _bound(port) as listener:
        server = Running(f"http://127.0.0.1:{listener.getsockname()[1]}")
        card = card_v1(server.url, streaming=streaming, binding=binding)
        handler = DefaultRequestHandler(KeywordAgent(server), InMemoryTaskStore(), card)
        routes = [
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
        app = Starlette(routes=routes)
        async with _serving(_noting(app, server, token), listener):
            yield server
            server.go.set()


@contextlib.asynccontextmanager
async def hand_made(handle: Handle, *paths: str) -> AsyncIterator[Running]:
    with _bound() as listener:
        server = Running(f"http://127.0.0.1:{listener.getsockname()[1]}")
        routes = [Route(path, handle, methods=["GET", "POST"]) for path in paths]
        app = Starlette(routes=routes)
        app.state.server = server
        async with _serving(_noting(app, server, ""), listener):
            yield server


def card_v03(url: str, *, streaming: bool = True) -> dict[str, Any]:
    return {
        "name": "Old Agent",
        "description": "speaks 0.3",
        "url": f"{url}/",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "version": "1",
        "capabilities": {"streaming": streaming},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }


class OldAgent:
    """Plays an agent of 0.3: answers as gemini-cli's does, in the status, and ends in input-required."""

    def __init__(self, *, streaming: bool = True) -> None:
        self.streaming = streaming
        self.tasks: dict[str, dict[str, Any]] = {}

    async def handle(self, request: Request) -> Response:
        server: Running = request.app.state.server
        if request.url.path.startswith("/.well-known/"):
            return JSONResponse(card_v03(server.url, streaming=self.streaming))
        body = json.loads(await request.body())
        server.bodies.append(body)
        method, call_id = body["method"], body["id"]
        if method == "message/stream":
            return StreamingResponse(self._events(body, call_id), media_type="text/event-stream")
        if method == "message/send":
            return self._result(call_id, self._task(body, "working"))
        if method == "tasks/get":
            return self._result(call_id, self._finished(self.tasks[body["params"]["id"]]))
        if method == "tasks/cancel":
            return self._result(
                call_id, {**self.tasks[body["params"]["id"]], "status": {"state": "canceled"}}
            )
        error = {"code": -32601, "message": "Method not found"}
        return JSONResponse({"jsonrpc": "2.0", "id": call_id, "error": error})

    def _task(self, body: dict[str, Any], state: str) -> dict[str, Any]:
        message = body["params"]["message"]
        task_id = message.get("taskId") or f"task-{len(self.tasks) + 1}"
        text = message["parts"][0]["text"]
        task = {
            "kind": "task",
            "id": task_id,
            "contextId": "old-context",
            "status": {"state": state},
            "text": text,
        }
        self.tasks[task_id] = task
        return {key: value for key, value in task.items() if key != "text"}

    def _finished(self, task: dict[str, Any]) -> dict[str, Any]:
        status = {"state": "completed", "message": _said(f"done: {task['text']}")}
        return {key: value for key, value in {**task, "status": status}.items() if key != "text"}

    async def _events(self, body: dict[str, Any], call_id: object) -> AsyncIterator[str]:
        task = self._task(body, "submitted")
        text = body["params"]["message"]["parts"][0]["text"]
        about = {"kind": "status-update", "taskId": task["id"], "contextId": "old-context"}
        working = {
            **about,
            "status": {"state": "working", "message": _said(f"heard: {text}")},
            "final": False,
        }
        over = {**about, "status": {"state": "input-required"}, "final": True}
        for event in (task, working, over):
            yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': call_id, 'result': event})}\n\n"

    @staticmethod
    def _result(call_id: object, result: object) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": call_id, "result": result})


def _said(text: str) -> dict[str, Any]:
    part = {"kind": "text", "text": text}
    return {"kind": "message", "messageId": f"id-{text}", "role": "agent", "parts": [part]}


class EndlessAgent(OldAgent):
    """Answers with results of new ids without an end, as fast as it is read.

    Attributes:
        sent: Events that it has sent.
        streams: Streams that were asked for.
        ended: How many of them were closed by the other side.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent = self.streams = self.ended = 0

    async def handle(self, request: Request) -> Response:
        if request.method == "POST":
            body = json.loads(await request.body())
            if body["method"] in ("message/stream", "tasks/resubscribe"):
                return StreamingResponse(self._endless(body["id"]), media_type="text/event-stream")
        return await super().handle(request)

    async def _endless(self, call_id: object) -> AsyncIterator[str]:
        self.streams += 1
        about = {"kind": "artifact-update", "taskId": "task-1", "contextId": "old-context"}
        try:
            while True:
                events = []
                for _ in range(50):
                    self.sent += 1
                    parts = [{"kind": "text", "text": "word " * 20}]
                    event = {**about, "artifact": {"artifactId": f"a{self.sent}", "parts": parts}}
                    events.append(json.dumps({"jsonrpc": "2.0", "id": call_id, "result": event}))
                yield "".join(f"data: {event}\n\n" for event in events)
                await asyncio.sleep(0)  # uvicorn goes on without a pause when the other side has gone
        finally:
            self.ended += 1


class HugeAgent(OldAgent):
    """Answers with one thing that takes long to parse, as an event of a stream or as an answer.

    Args:
        what: Fields of the task.
        streaming: Whether it comes in a stream.
    """

    def __init__(self, what: Mapping[str, Any], *, streaming: bool) -> None:
        super().__init__(streaming=streaming)
        self._what = what

    def _task(self, body: dict[str, Any], state: str) -> dict[str, Any]:
        return {**super()._task(body, state), **self._what}


class DialectAgent:
    """Plays an agent of the original synapse-a2a."""

    async def handle(self, request: Request) -> Response:
        server: Running = request.app.state.server
        path = request.url.path
        if path == "/.well-known/agent.json":
            return JSONResponse(
                {
                    "name": "Synapse Claude",
                    "url": server.url,
                    "extensions": {"synapse": {}},
                    "capabilities": {},
                }
            )
        if path == "/tasks/send":
            server.bodies.append(json.loads(await request.body()))
            return JSONResponse({"task": self._task("working", ())})
        if path == "/tasks/t-1":
            return JSONResponse(self._task("completed", ("from the dialect",)))
        return JSONResponse({"detail": "Not Found"}, 404)

    @staticmethod
    def _task(status: str, texts: tuple[str, ...]) -> dict[str, Any]:
        artifacts = [{"type": "text", "data": text} for text in texts]
        return {"id": "t-1", "context_id": "c-1", "status": status, "artifacts": artifacts}


@contextlib.contextmanager
def _bound(port: int = 0) -> Any:
    listener = socket.create_server(("127.0.0.1", port))
    try:
        yield listener
    finally:
        listener.close()


def _noting(app: Any, server: Running, token: str) -> Any:
    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", ())}
        server.seen.append(headers)
        if token and headers.get("authorization") != f"Bearer {token}":
            await JSONResponse({"error": "no"}, 401)(scope, receive, send)
            return
        await app(scope, receive, send)

    return guarded


@contextlib.asynccontextmanager
async def _serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn tells it by an attribute only
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await running
