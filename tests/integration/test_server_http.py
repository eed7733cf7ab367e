"""Servers on real sockets: addresses, connections, limits, and many in one loop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import threading
from typing import Any

import psutil
import pytest

from synapse_tui.a2a.network import LoopbackSockets, bind_loopback, free_port
from synapse_tui.a2a.server import AgentServer
from synapse_tui.core.errors import PortsExhausted, SpawnError
from synapse_tui.core.model import USER, MessageRequest, Task
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import BODY, Connection, http, running
from tests.integration.session_rig import until


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        return True
    return False


ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_the_curl_line_of_the_manual() -> None:
    async with running() as (agent, _):
        line = (
            f"curl -sS -X POST http://localhost:{agent.port}/tasks/send "
            '-H "Content-Type: application/json" '
            """-d '{"message": {"role": "user", "parts": [{"type": "text", "text": "Hello!"}]}}'"""
        )
        curl = await asyncio.create_subprocess_shell(line, stdout=asyncio.subprocess.PIPE)
        out, _ = await curl.communicate()
        assert json.loads(out)["task"]["status"] == "submitted"
        assert agent.requests[0].text == "Hello!"
        for refused in (
            "-H 'Origin: https://evil.example'",
            "-H 'Host: evil.example'",
            "-H 'Content-Type: text/plain'",
        ):
            # The header given last replaces the one of the line, except for Content-Type: leave that out.
            base = (
                line.replace('-H "Content-Type: application/json" ', "")
                if "Content-Type" in refused
                else line
            )
            curl = await asyncio.create_subprocess_shell(
                f"{base} {refused} -o /dev/null -w '%{{http_code}}'", stdout=asyncio.subprocess.PIPE
            )
            out, _ = await curl.communicate()
            assert out.decode() in ("403", "415")
        assert len(agent.requests) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=ipv6), "localhost"])
async def test_every_loopback_address_is_served(host: str) -> None:
    async with running() as (agent, _):
        connection = await Connection.open(agent.port, host)
        name = f"[{host}]" if ":" in host else host
        request = http("GET", "/status", agent.port, headers={"Host": f"{name}:{agent.port}"})
        assert (await connection.ask(request))[0] == 200
        await connection.close()


async def test_the_owner_is_looked_up_once_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    from synapse_tui.a2a.socket_owner import Address, Owner

    asked: list[Address] = []

    async def owner(client: Address, server: Address) -> Owner:
        asked.append(client)
        return Owner.OURS

    sockets = bind_loopback(0)
    server = AgentServer(FakeAgent(sockets.port), sockets, owner=owner)
    await server.start()
    for _ in range(2):
        connection = await Connection.open(sockets.port)
        for _ in range(3):
            await connection.ask(http("GET", "/status", sockets.port))
        await connection.close()
    await server.stop()
    assert len(asked) == len(set(asked)) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can call as somebody else")
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("[::1]", marks=ipv6)])
async def test_another_user_of_the_machine_is_refused(host: str) -> None:
    async with running() as (agent, _):
        url = f"http://{host}:{agent.port}/status"
        curl = await asyncio.create_subprocess_exec(
            "curl", "-sS", url, stdout=asyncio.subprocess.PIPE, user=65534, group=65534, extra_groups=[]
        )
        out, _ = await curl.communicate()
        assert json.loads(out)["error"]["code"] == "foreign_user"


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        *itertools.product([{}, {"Transfer-Encoding": "chunked"}], [5_000_000, 30_000_000, 40_000_000]),
        ({"Expect": "100-continue"}, 40_000_000),  # a smaller one could have files
    ],
)
async def test_a_body_that_is_too_large_is_refused_and_the_caller_is_told(
    headers: dict[str, str], size: int
) -> None:
    """The answer reaches a caller that is still sending: no reset comes before it."""
    body = b"x" * size
    async with running() as (agent, _):
        connection = await Connection.open(agent.port)
        if "Transfer-Encoding" in headers:
            request = http(
                "POST", "/tasks/send", agent.port, b"", {**headers, "Content-Type": "application/json"}
            )
            request = request.replace(b"Content-Length: 0\r\n", b"")
            body = b"".join(
                b"186a0\r\n" + body[at : at + 100_000] + b"\r\n" for at in range(0, size, 100_000)
            )
            request += body + b"0\r\n\r\n"
        else:
            request = http("POST", "/tasks/send", agent.port, body, headers)
            if headers:
                request = request[: request.index(b"\r\n\r\n") + 4]  # waits for the server's leave
        connection.writer.write(request)
        await connection.writer.drain()  # all is sent before anything is read, as simple programs do
        status, answer = await connection.answer()
        assert status == 413
        assert json.loads(answer)["error"]["code"] == "body_too_large"
        await connection.close()
        assert not agent.requests


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 100_000,
    ],
)
async def test_garbage_disturbs_nothing(garbage: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    async with running() as (agent, _):
        connection = await Connection.open(agent.port)
        connection.writer.write(garbage)
        connection.writer.write_eof()
        await connection.reader.read()
        await connection.close()
        good = await Connection.open(agent.port)
        assert (await good.ask(http("GET", "/status", agent.port)))[0] == 200
        await good.close()
    assert capfd.readouterr() == ("", ""), "nothing is written to the terminal"


async def test_a_caller_that_hangs_up_in_the_body_sends_nothing() -> None:
    """What has come is JSON already, but the end of the body has not."""
    async with running() as (agent, _):
        head = http("POST", "/tasks/send", agent.port, headers={"Content-Type": "application/json"})
        head = head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        connection = await Connection.open(agent.port)
        connection.writer.write(head + b"%x\r\n" % len(BODY) + BODY + b"\r\n")
        await connection.writer.drain()
        await connection.close()
        good = await Connection.open(agent.port)
        await good.ask(http("GET", "/status", agent.port))
        await good.close()
        assert not agent.requests


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_a_request_whose_end_others_would_read_elsewhere_is_the_last_of_its_connection(
    version: bytes,
) -> None:
    """A proxy that goes by the length forwards a second request in the body: it looks like the user's."""
    async with running() as (agent, _):
        head = http("POST", "/tasks/send", agent.port, headers={"Content-Type": "application/json"})
        second = http("GET", "/status", agent.port)
        body = b"0\r\n\r\n" + second
        if version == b"1.1":
            length = b"Content-Length: %d\r\nTransfer-Encoding: chunked" % len(body)
        else:
            length = b"Transfer-Encoding: chunked"
        head = head.replace(b"Content-Length: 0", length).replace(b"HTTP/1.1", b"HTTP/" + version)
        connection = await Connection.open(agent.port)
        status, _body = await connection.ask(head + body)
        assert status == 400
        assert not await connection.reader.read()
        await connection.close()
        assert not agent.requests


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels - 1):
        value = {"a": value}
    return value


OLD_MESSAGE: dict[str, Any] = {
    "kind": "message",
    "role": "user",
    "messageId": "one",
    "parts": [{"kind": "text", "text": "x"}],
}
MESSAGE: dict[str, Any] = {"role": "ROLE_USER", "messageId": "one", "parts": [{"text": "x"}]}


@pytest.mark.parametrize(("depth", "taken"), [(29, True), (30, False), (45, False), (60, False)])
async def test_data_that_could_not_be_shown_again_is_refused(depth: int, taken: bool) -> None:
    """One such task would be in the way of every list of tasks: protobuf has a limit of its own."""
    data = nested(depth + 1)
    message = {"role": "ROLE_USER", "messageId": "one", "parts": [{"data": data}]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    old = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {
            "message": {**OLD_MESSAGE, "messageId": "two", "parts": [{"kind": "data", "data": data}]},
            "configuration": {"blocking": False},
        },
    }
    plain = {"message": {"role": "user", "parts": [{"type": "data", "data": data}]}}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"historyLength": 1}}
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    async with running() as (agent, _):
        connection = await Connection.open(agent.port)

        async def ask(path: str, body: object) -> tuple[int, dict[str, Any]]:
            request = http("POST", path, agent.port, json.dumps(body).encode(), headers)
            status, answer = await connection.ask(request)
            return status, json.loads(answer)

        _status, answer = await ask("/", call)
        assert ("result" in answer, answer.get("error", {}).get("code")) == (taken, None if taken else -32602)
        status, _answer = await ask("/tasks/send", plain)
        assert status == (200 if taken else 422)
        headers["A2A-Version"] = "0.3"
        _status, answer = await ask("/", old)
        assert ("result" in answer, answer.get("error", {}).get("code")) == (taken, None if taken else -32602)
        headers["A2A-Version"] = "1.0"
        _status, answer = await ask("/", listing)
        assert "result" in answer
        await connection.close()


@pytest.mark.parametrize("levels", [20, 21, 34, 46, 61, 400])
async def test_metadata_that_could_not_be_shown_again_is_refused(levels: int) -> None:
    """Wherever it stands, in both versions, on every method, over JSON-RPC and REST: never as our failure."""
    about = {"metadata": nested(levels)}
    now = {"configuration": {"returnImmediately": True}}
    soon = {"configuration": {"blocking": False}}
    old_rest = {"request": {"messageId": "one", "role": "ROLE_USER", "content": [{"text": "x"}]}}
    sent: list[tuple[str, str, str, dict[str, Any]]] = [
        ("1.0", "/", "SendMessage", {"message": {**MESSAGE, **about}, **now}),
        ("1.0", "/", "SendMessage", {"message": MESSAGE, **about, **now}),
        ("1.0", "/", "SendMessage", {"message": {**MESSAGE, "parts": [{"text": "x", **about}]}, **now}),
        ("1.0", "/", "CancelTask", {"id": "no-task", **about}),
        ("0.3", "/", "message/send", {"message": {**OLD_MESSAGE, **about}, **soon}),
        ("0.3", "/", "message/send", {"message": OLD_MESSAGE, **about, **soon}),
        (
            "0.3",
            "/",
            "message/send",
            {"message": {**OLD_MESSAGE, "parts": [{"kind": "text", "text": "x", **about}]}, **soon},
        ),
        ("0.3", "/", "tasks/cancel", {"id": "no-task", **about}),
        (
            "1.0",
            "/a2a/rest/message:send",
            "",
            {"message": {**MESSAGE, "parts": [{"text": "x", **about}]}, **now},
        ),
        ("1.0", "/a2a/rest/message:send", "", {"message": MESSAGE, **about, **now}),
        ("1.0", "/a2a/rest/tasks/no-task:cancel", "", about),
        ("0.3", "/v1/message:send", "", {**old_rest, **about, **soon}),
        ("0.3", "/v1/message:send", "", {"request": {**old_rest["request"], **about}, **soon}),
        ("0.3", "/v1/tasks/no-task:cancel", "", about),
    ]
    async with running() as (agent, _):
        connection = await Connection.open(agent.port)

        async def ask(version: str, path: str, body: object) -> dict[str, Any]:
            headers = {"Content-Type": "application/json", "A2A-Version": version}
            request = http("POST", path, agent.port, json.dumps(body).encode(), headers)
            _status, answer = await connection.ask(request)
            found: dict[str, Any] = json.loads(answer)
            return found

        for version, path, method, params in sent:
            call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params} if method else params
            answer = await ask(version, path, call)
            error = answer.get("error")
            unknown = error is not None and error["code"] in (-32001, 404)  # there is no task to cancel
            if levels == 20:
                assert error is None or unknown, (version, path, method, answer)
            elif not unknown or levels > 60:
                assert error is not None, (version, path, method)
                assert error["code"] in (-32602, 400), (version, path, method, error)
                assert "nested deeper than" in error["message"], (version, path, method, error)
        listing = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"historyLength": 1}}
        assert "result" in await ask("1.0", "/", listing)
        await connection.close()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("path", ["/", "/a2a/rest/message:send", "/v1/message:send", "/tasks/send"])
async def test_only_utf_8_is_exchanged(path: str, encoding: str) -> None:
    """RFC 8259, section 8.1: whoever reads a body before us, as a proxy does, must read the same."""
    message = {"role": "user", "parts": [{"type": "text", "text": "x"}]}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "message": message}).encode(encoding)
    async with running() as (agent, _):
        for kind in ("application/json", f"application/json; charset={encoding[:6]}"):
            connection = await Connection.open(agent.port)
            status, answer = await connection.ask(
                http("POST", path, agent.port, body, {"Content-Type": kind, "A2A-Version": "1.0"})
            )
            await connection.close()
            assert status == 415
            assert "JSON in UTF-8" in json.loads(answer)["error"]["message"]
        assert not agent.requests


class Slow(FakeAgent):
    """Takes its time to cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()

    async def cancel(self, task_id: str) -> Task:
        self.entered.set()
        await self.leave.wait()
        return await super().cancel(task_id)


async def test_stopping_one_server_leaves_the_connections_of_the_others() -> None:
    slow = Slow()
    async with running("gemini", agent=slow) as (_, _), running("codex") as (other, other_server):
        sent = await Connection.open(slow.port)
        _, answer = await sent.ask(http("POST", "/tasks/send", slow.port, BODY))
        task_id = json.loads(answer)["task"]["id"]
        idle = await Connection.open(slow.port)
        assert (await idle.ask(http("GET", "/status", slow.port)))[0] == 200
        sent.writer.write(http("POST", f"/tasks/{task_id}/cancel", slow.port))
        await slow.entered.wait()

        await other_server.stop()
        assert not other_server.running
        with pytest.raises(ConnectionRefusedError):
            await Connection.open(other.port)

        slow.leave.set()
        status, answer = await sent.answer()
        assert (status, json.loads(answer)["status"]) == (200, "canceled")
        assert (await idle.ask(http("GET", "/status", slow.port)))[0] == 200
        for connection in (sent, idle):
            await connection.close()


async def test_starting_and_stopping_leave_signals_and_tasks_alone() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    tasks = asyncio.all_tasks()
    threads = threading.active_count()
    async with running() as (_, server):
        assert server.running
        assert {number: signal.getsignal(number) for number in before} == before
        await server.stop()
        await server.stop()
        assert not server.running
    assert asyncio.all_tasks() == tasks
    assert threading.active_count() <= threads, "one of an earlier test may have ended meanwhile"


async def test_an_idle_server_does_not_tick() -> None:
    """Ten agents that nobody calls must not wake the processor a hundred times a second."""
    async with running():
        loop = asyncio.get_running_loop()
        waiting = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        assert waiting == []


async def test_callers_wait_in_the_queue_until_the_server_runs() -> None:
    """The port is bound and listens long before the server is loaded."""
    sockets = bind_loopback(0)
    connection = await Connection.open(sockets.port)
    connection.writer.write(http("GET", "/status", sockets.port))
    server = AgentServer(FakeAgent(sockets.port), sockets)
    await server.start()
    assert (await connection.answer())[0] == 200
    await connection.close()
    await server.stop()


@ipv6
def test_a_port_whose_other_address_is_taken_is_taken() -> None:
    with socket.socket(socket.AF_INET6) as stranger:
        stranger.bind(("::1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        before = psutil.Process().num_fds()
        with pytest.raises(PortsExhausted) as _refused:  # keeps what the call has not closed
            bind_loopback(port)
        # What was bound first has been given back; others may have bound that port meanwhile.
        assert psutil.Process().num_fds() == before


def test_the_first_free_port_of_a_range_is_taken() -> None:
    held: list[LoopbackSockets] = []
    try:
        first = bind_loopback(0)
        held.append(first)
        ports = range(first.port, min(first.port + 20, 65536))
        second = free_port(ports)
        held.append(second)
        assert second.port in ports
        assert second.port != first.port
        again = free_port(ports, preferred=first.port)
        held.append(again)
        assert again.port not in (first.port, second.port)
    finally:
        for sockets in held:
            sockets.close()


def test_a_full_range_is_told() -> None:
    taken = bind_loopback(0)
    try:
        with pytest.raises(PortsExhausted, match=f"no port is free in {taken.port}-{taken.port}") as caught:
            free_port([taken.port])
        assert caught.value.hint
    finally:
        taken.close()


def test_a_port_is_not_called_taken_where_descriptors_ran_out() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        for bind in (lambda: free_port(range(20000, 20020)), lambda: bind_loopback(20000)):
            with pytest.raises(SpawnError, match="Too many open files") as caught:
                bind()
            assert not isinstance(caught.value, PortsExhausted)
            assert "ulimit" in caught.value.hint
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_long_poll_ends_when_the_caller_leaves() -> None:
    async with running() as (agent, server):
        task = agent.accept(MessageRequest("hello", USER))
        connection = await Connection.open(server.sockets.port)
        connection.writer.write(http("GET", f"/tasks/{task.id}?wait=60", server.sockets.port))
        await until(lambda: agent.service.waiting == 1)
        await connection.close()
        await until(lambda: agent.service.waiting == 0)


async def test_long_polls_do_not_hold_up_a_server_that_stops() -> None:
    async with running() as (agent, server):
        task = agent.accept(MessageRequest("hello", USER))
        port = server.sockets.port
        connections = [await Connection.open(port) for _ in range(3)]
        asked = [
            asyncio.ensure_future(each.ask(http("GET", f"/tasks/{task.id}?wait=60", port)))
            for each in connections
        ]
        await until(lambda: agent.service.waiting == 3)
        await server.stop()  # cuts off what has not ended by itself after a while
        for answer in await asyncio.gather(*asked):
            assert answer[0] == 200
            assert json.loads(answer[1])["id"] == task.id
        for each in connections:
            await each.close()


def test_child_processes_do_not_inherit_the_port() -> None:
    sockets = bind_loopback(0)
    try:
        assert not any(sock.get_inheritable() for sock in sockets.sockets)
    finally:
        sockets.close()
