"""What a host writes down about its agents for others: it stays true while they live, and ends with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import stat
from dataclasses import replace

import pytest

from synapse_tui.host.host import Host
from synapse_tui.sessions.registry import Registry
from synapse_tui.system.process_times import process_start
from tests.integration.host_kit import open_published, records
from tests.integration.shell_kit import Shell
from tests.waiting import until

pytestmark = pytest.mark.timeout(120)


def inside(host: Host, agent_id: str) -> Shell:
    shell = Shell(host.paths.home, host.project)
    shell.environ["SYNAPSE_AGENT_ID"] = agent_id
    return shell


async def locks(shell: Shell) -> list[str]:
    return [each["file_path"] for each in json.loads((await shell.run("file-safety", "locks", "--json")).out)]


@pytest.mark.parametrize("end", ["killed", "restarted", "closed"])
async def test_a_lock_ends_with_its_agent_while_file_safety_is_off(host: Host, end: str) -> None:
    alice, bob = await open_published(host, "alice", "bob")
    assert not host.safety.enabled
    await until(lambda: alice.agent_id in records(host))
    shell = inside(host, alice.agent_id)
    assert (await shell.run("file-safety", "lock", "a.py")).code == 0
    assert await locks(shell) == ["a.py"]
    other = inside(host, bob.agent_id)
    assert (await other.run("file-safety", "lock", "a.py")).code == 4
    if end == "killed":
        os.kill(alice.pid, signal.SIGKILL)
        await until(lambda: alice.exit is not None)
    elif end == "restarted":
        await host.restart(alice.agent_id)
        await until(lambda: alice.exit is None)
    else:
        await host.close(alice.agent_id)
    assert await locks(other) == []
    assert (await other.run("file-safety", "lock", "a.py")).code == 0


async def test_a_signal_to_the_pid_of_a_record_ends_that_agent_alone(host: Host) -> None:
    alice, bob = await open_published(host, "alice", "bob")
    pids = [records(host)[each.agent_id]["pid"] for each in (alice, bob)]
    assert len({*pids, os.getpid()}) == 3
    assert isinstance(pids[0], int)
    os.kill(pids[0], signal.SIGTERM)  # as the original's `synapse stop`
    await until(lambda: alice.exit is not None)
    await until(lambda: records(host)[alice.agent_id]["pid"] is None, "its id may be another's by now")
    assert bob.exit is None
    listed = json.loads((await inside(host, bob.agent_id).run("list", "--json")).out)
    assert {each["agent_id"]: each["status"] for each in listed}[alice.agent_id] == "EXITED"
    await host.restart(alice.agent_id)
    await until(lambda: records(host)[alice.agent_id]["pid"] == alice.pid)


async def test_a_record_that_was_harmed_is_written_again(host: Host) -> None:
    alice, bob = await open_published(host, "alice", "bob")
    await until(lambda: all(each.get("status") == "READY" for each in records(host).values()))
    before = records(host)
    path = host.paths.registry / f"{alice.agent_id}.json"
    whole = path.read_bytes()
    changed = json.dumps({**json.loads(whole), "endpoint": "http://127.0.0.1:1"}).encode()
    for content in (b"", b"\xff{", whole[:50], changed):
        path.write_bytes(content)
        await until(lambda: readable(host) == before, content)
    path.unlink()
    await until(lambda: readable(host) == before, "removed")
    shutil.rmtree(host.paths.registry)
    await until(lambda: readable(host) == before, "without its folder")
    assert stat.S_IMODE(host.paths.registry.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {each.agent_id for each in Registry(host.paths.registry).list()} == {
        alice.agent_id,
        bob.agent_id,
    }


async def test_a_record_of_another_process_is_taken_back_when_that_has_ended(host: Host) -> None:
    (alice,) = await open_published(host, "alice")
    registry = Registry(host.paths.registry)
    other = await asyncio.create_subprocess_exec("sleep", "1000")
    try:
        started = process_start(other.pid) or 0.0
        ours = registry.get(alice.agent_id)
        assert ours is not None
        registry.register(replace(ours, pid=other.pid, pid_started=started, host=""))
    finally:
        other.kill()
        await other.wait()
    await until(lambda: readable(host).get(alice.agent_id, {}).get("pid") == alice.pid)


async def test_the_record_of_an_agent_that_is_closed_stays_away(host: Host) -> None:
    alice, bob = await open_published(host, "alice", "bob")
    await until(lambda: len(readable(host)) == 2)
    (host.paths.registry / f"{alice.agent_id}.json").unlink()
    await host.close(alice.agent_id)
    (host.paths.registry / f"{bob.agent_id}.json").unlink()
    await until(lambda: bob.agent_id in readable(host))
    assert alice.agent_id not in readable(host)


def readable(host: Host) -> dict[str, dict[str, object]]:
    found = {}
    for path in host.paths.registry.glob("synapse-*.json"):
        with contextlib.suppress(OSError, ValueError):
            found[path.stem] = json.loads(path.read_bytes())
    return found
