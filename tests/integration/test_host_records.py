"""What a host writes down about its agents for others: it stays true while they live, and ends with them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.host import Host
from tests.integration.shell_kit import InnerShell
from tests.integration.test_host import make_host, open_ready, records, running, until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with running(make_host(tmp_path)) as started:
        yield started


def inside(host: Host, agent_id: str) -> InnerShell:
    """A shell inside an agent."""
    shell = InnerShell(host.paths.home, host.project)
    shell.environ["SYNAPSE_AGENT_ID"] = agent_id
    return shell


async def locks(shell: InnerShell) -> list[str]:
    return [each["file_path"] for each in json.loads((await shell.run("file-safety", "locks", "--json")).out)]


@pytest.mark.parametrize("end", ["killed", "restarted", "closed"])
async def test_a_lock_ends_with_its_agent_while_file_safety_is_off(host: Host, end: str) -> None:
    alice, bob = await open_ready(host, "alice", "bob")
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


async def test_an_agent_that_was_restarted_locks_again(host: Host) -> None:
    (alice,) = await open_ready(host, "alice")
    before = records(host)[alice.agent_id]["process"]
    await host.restart(alice.agent_id)
    await until(lambda: records(host)[alice.agent_id]["process"] != before)
    shell = inside(host, alice.agent_id)
    assert (await shell.run("file-safety", "lock", "a.py")).code == 0
    assert await locks(shell) == ["a.py"]
