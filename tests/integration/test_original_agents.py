"""Messages between our agents and one of the original synapse-a2a, rebuilt as a server that answers alike."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import ReplyState, TaskState
from synapse_tui.host.host import Host
from tests.integration.host_kit import make_host, open_published, running
from tests.integration.shell_kit import Shell
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.timeout(120)

KIND = "gemini"


class Original:
    """An agent of the original: its store of tasks, and the routes by which messages and answers go."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.typed: list[str] = []
        """What was typed into it."""
        self.refused = 0
        """How many messages it has refused."""
        self.busy: Callable[[], bool] = self.works
        self.on_message: Callable[[dict[str, Any]], None] = lambda _task: None
        original = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                task = original.tasks.get(urlsplit(self.path).path.removeprefix("/tasks/"))
                self._answer(*((200, task) if task else (404, {"detail": "Not Found"})))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(*original.post(self.path, body))

            def _answer(self, status: int, value: object) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if status == 409:
                    self.send_header("Retry-After", "2")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.agent_id = f"synapse-{KIND}-{self.port}"
        self.endpoint = f"http://localhost:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def register(self, folder: Path, working_dir: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {
            "agent_id": self.agent_id,
            "agent_type": KIND,
            "port": self.port,
            "status": "READY",
            "registered_at": 1.5,
            "pid": os.getppid(),
            "working_dir": str(working_dir),
            "endpoint": self.endpoint,
            "uds_path": f"/tmp/synapse-a2a/{self.agent_id}.sock",
        }
        path = folder / f"{self.agent_id}.json"
        path.write_text(json.dumps(record))
        path.chmod(0o600)

    def works(self) -> bool:
        return any(
            task["status"] == "working" and task["metadata"].get("direction") != "outgoing"
            for task in self.tasks.values()
        )

    def create(self, message: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        task: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "status": "working",
            "message": message,
            "artifacts": [],
            "error": None,
            "metadata": metadata,
        }
        self.tasks[task["id"]] = task
        return task

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, object]:
        route = urlsplit(path).path
        if route == "/tasks/create":
            return 200, {"task": self.create(body["message"], body["metadata"])}
        if route not in ("/tasks/send", "/tasks/send-priority"):
            return 404, {"detail": "Not Found"}
        metadata = body.get("metadata", {})
        text = "\n".join(part["text"] for part in body["message"]["parts"] if part["type"] == "text")
        if not text:
            return 400, {"detail": "No text content in message"}
        if metadata.get("in_reply_to"):
            return self._take_reply(metadata, text)
        if self.busy() and not path.endswith("priority=5"):
            self.refused += 1
            return 409, {"detail": "Agent already has a working task (01234567). Retry after it completes."}
        self.typed.append(text)
        task = self.create(body["message"], metadata)
        self.on_message(task)
        return 200, {"task": task}

    def _take_reply(self, metadata: dict[str, Any], text: str) -> tuple[int, object]:
        task = self.tasks.get(metadata["in_reply_to"])
        if task is None:
            return 404, {"detail": "Task not found"}
        structured = metadata.keys() & {"reply_artifacts", "reply_status", "reply_error"}
        if not structured:
            task["artifacts"].append({"type": "text", "data": {"content": text}})
        task["status"] = "failed" if metadata.get("reply_status") == "failed" else "completed"
        task["error"] = metadata.get("reply_error")
        self.typed.append(text)
        return 200, {"task": task}

    # -- what its commands and its end of a turn send ---

    def ask(self, session: AgentSession, text: str, **metadata: object) -> tuple[str, str]:
        """`synapse send --wait`: ids of its own task and of that at the receiver."""
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        own = self.create(message, {"direction": "outgoing", "response_mode": "wait"})
        about = {
            "response_mode": "wait",
            "sender": self._sender(),
            "sender_task_id": own["id"],
        }
        sent = self._call(session, "/tasks/send-priority?priority=3", message, about | metadata)
        return own["id"], sent["task"]["id"]

    def reply(self, session: AgentSession, task: dict[str, Any], text: str) -> dict[str, Any]:
        task["status"] = "completed"
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        to = task["metadata"]["sender_task_id"]
        about = {"response_mode": "silent", "sender": self._sender(), "in_reply_to": to}
        return self._call(session, "/tasks/send-priority?priority=3", message, about)

    def end_turn(self, session: AgentSession, task: dict[str, Any], text: str, status: str) -> None:
        task["status"] = status
        error = {"code": "MISSING_REPLY", "message": "no reply"} if status == "failed" else None
        about = {
            "response_mode": "silent",
            "sender": {"sender_id": self.agent_id},
            "in_reply_to": task["metadata"]["sender_task_id"],
            "reply_artifacts": [{"type": "text", "data": {"content": text}}],
            "reply_status": status,
        } | ({"reply_error": error} if error else {})
        message = {"role": "agent", "parts": [{"type": "text", "text": text}]}
        self._call(session, "/tasks/send", message, about)

    def _sender(self) -> dict[str, str]:
        return {
            "sender_id": self.agent_id,
            "sender_type": KIND,
            "sender_endpoint": self.endpoint,
            "sender_uds_path": f"/tmp/synapse-a2a/{self.agent_id}.sock",
        }

    def _call(self, session: AgentSession, path: str, message: object, metadata: object) -> dict[str, Any]:
        body = json.dumps({"message": message, "metadata": metadata}).encode()
        url = f"http://localhost:{session.port}{path}"
        with urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=60) as answer:
            value: dict[str, Any] = json.load(answer)
            return value


@pytest.fixture
def original() -> Iterator[Original]:
    agent = Original()
    yield agent
    agent.close()


@pytest.fixture
async def host(tmp_path: Path, original: Original) -> AsyncIterator[Host]:
    made = make_host(tmp_path)
    made._replies._uncollected = 0.2
    original.register(made.paths.registry, made.project)
    async with running(made) as started:
        yield started


def shell_of(host: Host, session: AgentSession | None = None) -> Shell:
    shell = Shell(host.paths.home, host.project)
    if session is not None:
        shell.environ |= {
            name: session.environ[name] for name in ("SYNAPSE_AGENT_ID", "SYNAPSE_TOKEN", "SYNAPSE_ENDPOINT")
        }
    return shell


# -- it asks ---


async def test_the_answer_of_our_agent_ends_the_task_of_the_sender(host: Host, original: Original) -> None:
    (alice,) = await open_published(host, "alice")
    own, given = await asyncio.to_thread(original.ask, alice, "what is it?")
    assert alice.tasks.get(given).response_expected
    await until(lambda: original.tasks[own]["status"] == "completed", lambda: original.tasks[own])
    (artifact,) = original.tasks[own]["artifacts"]
    assert "what is it?" in artifact["data"]["content"]
    await until(lambda: alice.tasks.get(given).reply is ReplyState.GIVEN, "the note of that")


async def test_a_failure_of_our_agent_is_one_of_the_senders_task(host: Host, original: Original) -> None:
    (alice,) = await open_published(host, "alice")
    own, given = await asyncio.to_thread(original.ask, alice, "%%hang:60%%")
    await until(lambda: alice.tasks.get(given).state is TaskState.WORKING, "the turn")
    refused = await shell_of(host, alice).run("reply", "no such branch", "--fail")
    assert refused.code == 0, refused.err
    await until(lambda: original.tasks[own]["status"] == "failed", lambda: original.tasks[own])
    assert original.tasks[own]["error"]["message"] == "no such branch"


# -- it is asked ---


@pytest.mark.parametrize("explicit", [True, False])
async def test_its_answer_ends_our_waiting(host: Host, original: Original, *, explicit: bool) -> None:
    (alice,) = await open_published(host, "alice")

    def answer(task: dict[str, Any]) -> None:
        end = original.reply if explicit else original.end_turn
        words = (alice, task, "42") if explicit else (alice, task, "42", "completed")
        threading.Thread(target=end, args=words, daemon=True).start()

    original.on_message = answer
    host._replies._uncollected = PATIENCE  # a busy machine may be late to collect it
    asked = await shell_of(host, alice).run("send", KIND, "what is it?", "--response", "--json")
    assert asked.code == 0, asked.err
    assert asked.json["text"] == "42"
    (own,) = [task for task in list(alice.tasks) if task.outgoing]
    assert (own.state, own.answer, own.metadata["explicit"]) == (TaskState.COMPLETED, "42", explicit)
    assert [task for task in list(alice.tasks) if not task.outgoing] == [], "it is not typed too"


# -- it is busy ---


async def test_a_command_waits_for_a_busy_agent(host: Host, original: Original) -> None:
    original.busy = lambda: original.refused < 2
    sent = await shell_of(host).run("send", KIND, "later", "--no-response")
    assert (sent.code, original.typed, original.refused) == (0, ["later"], 2), sent.err
    assert "busy" in sent.err


async def test_messages_of_the_host_wait_for_a_busy_agent_in_order(host: Host, original: Original) -> None:
    await until(host.addresses, "the record of the other agent")
    held = [True]
    original.busy = lambda: held[0]
    first = asyncio.create_task(host.send(KIND, "first"))
    await until(lambda: original.refused >= 1, "the first try")
    second = asyncio.create_task(host.send(KIND, "second"))
    (urgent,) = await host.send(KIND, "stop", priority=5)
    assert (urgent.error, original.typed) == (None, ["stop"]), "an interrupt does not wait behind others"
    held[0] = False
    receipts = [*await first, *await second]
    assert [receipt.error for receipt in receipts] == [None, None]
    assert original.typed == ["stop", "first", "second"]


# -- what it has not ---


@pytest.mark.parametrize("command", ["outbox", "inbox"])
async def test_an_agent_without_outbox_and_inbox_is_no_error(
    tmp_path: Path, original: Original, command: str
) -> None:
    shell = Shell.scratch(tmp_path)
    original.register(shell.home / ".a2a" / "registry", shell.folder)
    listed = await shell.run(command)
    assert (listed.code, "refused" in listed.err) == (0, False), listed.err
    assert (await shell.run(command, "--json")).out == "[]\n"
    named = [original.agent_id] if command == "outbox" else ["--agent", original.agent_id]
    told = await shell.run(command, *named)
    assert (told.code, original.agent_id in told.err) == (0, True), told.err


def entered(shell: Shell, port: int, name: str, *words: str) -> subprocess.Popen[bytes]:
    """A process that is registered as the original does it: with no program that serves it but itself."""
    process = subprocess.Popen(words)
    record = {
        "agent_id": f"synapse-codex-{port}",
        "agent_type": "codex",
        "name": name,
        "port": port,
        "status": "IDLE",
        "pid": process.pid,
        "working_dir": str(shell.folder),
        "endpoint": f"http://localhost:{port}",
    }
    folder = shell.home / ".a2a/registry"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"synapse-codex-{port}.json").write_text(json.dumps(record))
    threading.Thread(target=process.wait, daemon=True).start()  # as its own parent would
    return process


def test_an_agent_of_the_original_is_stopped(tmp_path: Path) -> None:
    shell = Shell.scratch(tmp_path)
    alice, bob = (
        entered(shell, port, name, "sleep", "600") for port, name in ((8120, "alice"), (8121, "bob"))
    )
    try:
        many = shell.call("stop", "codex")
        assert (many.code, many.out) == (3, "")
        stopped = shell.call("stop", "alice")
        assert (stopped.code, stopped.out) == (0, "stopped synapse-codex-8120\n"), stopped.err
        assert (alice.wait(PATIENCE), bob.poll()) == (-signal.SIGTERM, None)
        assert shell.call("stop", "alice").code == 3
        stopped = shell.call("stop", "synapse-codex-8121", "--json")
        assert json.loads(stopped.out) == [{"agent_id": "synapse-codex-8121", "kept": 0}]
        assert bob.wait(PATIENCE) == -signal.SIGTERM
    finally:
        alice.kill()
        bob.kill()
