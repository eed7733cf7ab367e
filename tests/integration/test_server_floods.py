"""Many callers, slow ones, and ones that never read: each gets an answer, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import pytest

from synapse_tui.a2a import bodies
from synapse_tui.a2a.server import OVERFLOW, ConnectionLimits, Timeouts
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import BODY, Connection, http, running
from tests.waiting import PATIENCE, until

IMPATIENT = Timeouts(head=0.05, overflow=0.05, unread=0.1, idle=30, hurry=1)


async def opened(stack: contextlib.AsyncExitStack, port: int, count: int) -> list[Connection]:
    connections = [await Connection.open(port) for _ in range(count)]
    for connection in connections:
        stack.push_async_callback(connection.close)
    return connections


async def asked(connection: Connection, port: int) -> int:
    try:
        return (await connection.ask(http("GET", "/status", port)))[0]
    except (ConnectionError, asyncio.IncompleteReadError):
        return 0


async def test_two_hundred_callers_are_served_at_once(stack: contextlib.AsyncExitStack) -> None:
    """All of them stay, and each is answered: those that wait for a task, and those that come after."""
    agent, _ = await stack.enter_async_context(running())
    first = (await opened(stack, agent.port, 1))[0]
    _, answer = await first.ask(http("POST", "/tasks/send", agent.port, BODY))
    path = f"/tasks/{json.loads(answer)['task']['id']}"
    waiting = await opened(stack, agent.port, 100)
    for connection in waiting:
        connection.writer.write(http("GET", f"{path}?wait=30", agent.port))
    others = await opened(stack, agent.port, 100)
    assert await asyncio.gather(*(asked(each, agent.port) for each in others)) == [200] * 100
    await first.ask(http("POST", f"{path}/cancel", agent.port))
    answers = await asyncio.gather(*(each.answer() for each in waiting))
    assert {json.loads(body)["status"] for _, body in answers} == {"canceled"}


async def test_a_flood_is_told_to_come_again_and_another_agent_is_not_touched(
    stack: contextlib.AsyncExitStack,
) -> None:
    room = ConnectionLimits(each=4, in_all=9)
    agent, _ = await stack.enter_async_context(running(room=room))
    other, _ = await stack.enter_async_context(running("codex", room=room))
    held = await opened(stack, agent.port, 4)
    assert [await asked(each, agent.port) for each in held] == [200] * 4
    late = (await opened(stack, agent.port, 1))[0]
    status, body = await late.ask(http("POST", "/tasks/send", agent.port, BODY))
    assert (status, json.loads(body)["error"]["code"]) == (503, "too_many_connections")
    assert await late.reader.read() == b"", "it is closed"
    assert not agent.requests
    assert [await asked(each, other.port) for each in await opened(stack, other.port, 4)] == [200] * 4
    await held.pop().close()
    await until(lambda: room.taken <= 7)  # idle ones may be closed as well, to make room
    assert await asked((await opened(stack, agent.port, 1))[0], agent.port) == 200


async def test_beyond_the_lobby_connections_are_closed(stack: contextlib.AsyncExitStack) -> None:
    room = ConnectionLimits(each=2, in_all=10, timeouts=Timeouts(head=120, overflow=120))
    agent, _ = await stack.enter_async_context(running(room=room))
    crowd = await opened(stack, agent.port, 2 + OVERFLOW)
    last = (await opened(stack, agent.port, 1))[0]
    with contextlib.suppress(ConnectionError):
        assert (await last.reader.read()).startswith(b"HTTP/1.1 503 ")
    assert await asked(crowd[0], agent.port) == 200


async def test_strangers_leave_half_of_the_room(stack: contextlib.AsyncExitStack) -> None:
    """Whoever may not even ask does not keep the person out by opening connections."""
    theirs: set[int] = set()
    room = ConnectionLimits(each=4, in_all=100, stranger=lambda client, _server: client[1] in theirs)
    agent, _ = await stack.enter_async_context(running(room=room))

    async def stranger() -> Connection:
        end = socket.socket()
        end.bind(("127.0.0.1", 0))
        end.setblocking(False)
        theirs.add(end.getsockname()[1])
        await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", agent.port))
        connection = Connection(*await asyncio.open_connection(sock=end))
        stack.push_async_callback(connection.close)
        return connection

    first = [await stranger() for _ in range(2)]
    crowd = [await stranger() for _ in range(OVERFLOW // 2)]
    last = await stranger()
    with contextlib.suppress(ConnectionError):
        assert (await last.reader.read()).startswith(b"HTTP/1.1 503 ")
    assert await asked(crowd[0], agent.port) == 503
    assert await asked(first[0], agent.port) == 200
    for each in (*crowd, last):
        await each.close()
    await until(lambda: room.strangers == 2)
    assert [await asked(each, agent.port) for each in await opened(stack, agent.port, 2)] == [200] * 2
    await first.pop().close()
    await until(lambda: room.strangers == 1)
    assert await asked(await stranger(), agent.port) == 200


async def test_a_caller_that_trickles_its_request_is_given_up(stack: contextlib.AsyncExitStack) -> None:
    """Slowloris: headers that never end."""
    agent, _ = await stack.enter_async_context(running(room=ConnectionLimits(timeouts=IMPATIENT)))
    [again] = await opened(stack, agent.port, 1)
    assert await asked(again, agent.port) == 200
    silent, slow = await opened(stack, agent.port, 2)
    slow.writer.write(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-")
    again.writer.write(b"GET /status HTTP/1.1\r\n")
    for connection in (silent, slow, again):
        async with asyncio.timeout(PATIENCE):
            assert (await connection.reader.read()).startswith(b"HTTP/1.1 408 ")


async def test_a_request_that_is_worked_on_is_not_given_up(stack: contextlib.AsyncExitStack) -> None:
    agent, _ = await stack.enter_async_context(running(room=ConnectionLimits(timeouts=IMPATIENT)))
    [busy] = await opened(stack, agent.port, 1)
    _, answer = await busy.ask(http("POST", "/tasks/send", agent.port, BODY))
    path = f"/tasks/{json.loads(answer)['task']['id']}"
    busy.writer.write(http("GET", f"{path}?wait=30", agent.port))
    for _ in range(3):  # each is given up after the time that the other is not
        [silent] = await opened(stack, agent.port, 1)
        await silent.reader.read()
    [other] = await opened(stack, agent.port, 1)
    await other.ask(http("POST", f"{path}/cancel", agent.port))
    assert (await busy.answer())[0] == 200


class Talkative(FakeAgent):
    """Its status is larger than all buffers on the way."""

    def recent_text(self) -> str:
        return "x" * 8_000_000


async def test_a_caller_that_does_not_read_is_cut(stack: contextlib.AsyncExitStack) -> None:
    room = ConnectionLimits(timeouts=IMPATIENT)
    agent, _ = await stack.enter_async_context(running(agent=Talkative(), room=room))
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, ("127.0.0.1", agent.port))
        await loop.sock_sendall(deaf, http("GET", "/status", agent.port, headers={"Connection": "close"}))
        await until(lambda: room.taken == 1)
        await until(lambda: room.taken == 0)


async def test_a_body_after_a_refusal_holds_no_connection(
    stack: contextlib.AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "DROP_TIMEOUT", 0.05)
    agent, _ = await stack.enter_async_context(running())
    caller = (await opened(stack, agent.port, 1))[0]
    headers = {"Host": "evil.example", "Content-Length": "1000000"}
    caller.writer.write(http("POST", "/tasks/send", agent.port, b"{", headers))
    async with asyncio.timeout(PATIENCE):
        assert (await caller.answer())[0] == 403
        assert await caller.reader.read() == b""


async def test_a_refused_caller_with_a_whole_body_keeps_its_connection(
    stack: contextlib.AsyncExitStack,
) -> None:
    agent, _ = await stack.enter_async_context(running())
    caller = (await opened(stack, agent.port, 1))[0]
    request = http("POST", "/tasks/send", agent.port, BODY, {"Origin": "https://evil.example"})
    assert [(await caller.ask(request))[0] for _ in range(2)] == [403, 403]
    assert (await caller.ask(http("POST", "/tasks/send", agent.port, BODY)))[0] == 200
