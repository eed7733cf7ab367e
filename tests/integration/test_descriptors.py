"""A host that may open few files serves on, whoever holds its connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.pty_harness import descriptors, until
from tests.integration.server_kit import BODY, Connection, http
from tests.integration.shell_kit import SYNAPSE, Shell
from tests.ports import free_ports

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="looks into /proc"),
]

ANSWER = 30.0
"""Seconds for an answer; connections that are idle end by themselves only after as many."""


class Host:
    """A host in a process of its own, and its one agent."""

    def __init__(self, shell: Shell, pid: int, agent_id: str, port: int) -> None:
        self.shell, self.pid, self.agent_id, self.port = shell, pid, agent_id, port

    @property
    def descriptors(self) -> int:
        return len(descriptors(self.pid))

    async def post(self) -> int:
        async with asyncio.timeout(ANSWER):
            connection = await Connection.open(self.port)
            status, _ = await connection.ask(http("POST", "/tasks/send", self.port, BODY))
            await connection.close()
        return status


@pytest.fixture
async def hosts(tmp_path: Path) -> AsyncIterator[list[Host]]:
    started: list[Host] = []
    yield started
    for host in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(host.pid, signal.SIGKILL)


async def start(hosts: list[Host], tmp_path: Path, soft: int, hard: int) -> Host:
    """Start a host with a limit of open files, and wait until all of it is loaded."""
    shell = Shell.scratch(tmp_path, apart=True)
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    shell.environ["XDG_RUNTIME_DIR"] = str(runtime)
    limited = ("/bin/sh", "-c", f'ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$@"', "sh", *SYNAPSE)
    result = await shell.run("start", "dummy", "--port", str(free_ports()), "--json", program=limited)
    assert result.code == 0, result.err
    agent_id = str(result.json["agent_id"])
    path = shell.home / ".a2a/registry" / f"{agent_id}.json"
    await until(path.exists, "its record", ANSWER)
    record = json.loads(path.read_text())
    hosts.append(Host(shell, int(record["host"].partition(":")[0]), agent_id, record["port"]))
    sent = await shell.run("send", agent_id, "hello", "--response")
    assert sent.code == 0, sent.err
    return hosts[-1]


def soft_limit(pid: int) -> int:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Max open files")).split()[3])


async def hold(port: int, asks: bool) -> None:
    """Keep a connection without a request, and make it again when it was closed."""
    while True:
        connection = await Connection.open(port)
        try:
            if asks:
                connection.writer.write(http("GET", "/status", port))
            await connection.reader.read()
        except OSError:
            pass
        finally:
            connection.writer.close()


def environ_of(pid: int) -> list[str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return [word.partition(b"=")[0].decode() for word in words]


@pytest.mark.parametrize("asks", [False, True], ids=["silent", "kept alive"])
async def test_idle_connections_make_room(hosts: list[Host], tmp_path: Path, asks: bool) -> None:
    host = await start(hosts, tmp_path, 40, 40)
    holders = [asyncio.create_task(hold(host.port, asks)) for _ in range(80)]
    try:
        await until(lambda: host.descriptors > 30, "connections", ANSWER)
        assert [await host.post() for _ in range(2)] == [200] * 2
        # What needs descriptors besides: records, the history, commands.
        record = host.shell.home / ".a2a/registry" / f"{host.agent_id}.json"
        record.unlink()
        await until(record.exists, "the record", ANSWER)
        sent = await host.shell.run("send", host.agent_id, "and now?", "--response")
        assert (sent.code, "and now?" in sent.out) == (0, True), sent.err
        assert host.descriptors < 40
    finally:
        for each in holders:
            each.cancel()
        await asyncio.gather(*holders, return_exceptions=True)


async def test_a_host_may_open_what_it_can_and_its_agents_what_they_were_given(
    hosts: list[Host], tmp_path: Path
) -> None:
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 3000)
    host = await start(hosts, tmp_path, 200, hard)
    assert soft_limit(host.pid) == hard
    status = await host.shell.run("list", "--json")
    assert host.agent_id in status.out
    record = json.loads((host.shell.home / ".a2a/registry" / f"{host.agent_id}.json").read_text())
    agent = record["pid"]
    assert soft_limit(agent) == 200
    assert not any(name.endswith("OPEN_FILES") for name in environ_of(agent))
    upgraded = await host.shell.run(
        "upgrade", program=(sys.executable, "-c", "from synapse_tui.cli.tui import main; main()")
    )
    assert upgraded.code == 0, upgraded.err
