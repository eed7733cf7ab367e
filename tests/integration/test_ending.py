"""The end of an agent is the end of all that it started, wherever that has gone; and of nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapse_tui.cli.caller import IDENTITY
from synapse_tui.core.events import Notice
from synapse_tui.sessions.client import ask, connect_or_start, request
from synapse_tui.sessions.places import place_of
from synapse_tui.system.pty import guardian_process
from synapse_tui.system.pty.guardian_process import parse_start, start_time
from tests.integration.pty_harness import Harness, runs, until
from tests.integration.session_rig import open_rig
from tests.integration.test_guardian import finish, owner_of

AGENT = f"synapse-dummy-{os.getpid()}"
OTHER = f"synapse-other-{os.getpid()}"

DAEMON = """
import os, signal, sys, time
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
told, tell = os.pipe()
if os.fork():
    os.close(tell)
    os.read(told, 1)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.write(1, b"PID %d\\n" % os.getpid())
os.write(tell, b".")
null = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(null, number)
time.sleep(1000)
"""
"""Leaves its session and its parents, as daemons do, and heeds no polite signal.

Its line is one write: two daemons share a terminal, and unbuffered output is written word by word. Its first
process ends once that is written, so that several daemons tell their pids in the order of their commands.
"""

STARTER = f"""
import subprocess, sys, time
for outside in OUTSIDE:
    subprocess.run([*outside, sys.executable, "-S", "-c", {DAEMON!r}], check=True)
time.sleep(1000)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture
def reaped() -> Iterator[list[int]]:
    pids: list[int] = []
    yield pids
    for pid in pids:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def starter(*outside: list[str]) -> list[str]:
    return [sys.executable, "-S", "-c", STARTER.replace("OUTSIDE", repr(list(outside)))]


def bystander(agent_id: str, token: str = "") -> subprocess.Popen[bytes]:
    """A process that carries the id of an agent and was not started by it."""
    own = {"SYNAPSE_AGENT_ID": agent_id, "SYNAPSE_TOKEN": token}
    return subprocess.Popen(["sleep", "1000"], env={**os.environ, **own})


def pids_in(output: bytes | bytearray) -> list[int]:
    return [int(word) for word in output.replace(b"PID", b"").split()]


def now() -> float:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")) - 1


def described(pids: list[int], guardian: int) -> str:
    running = [(guardian_process.read_row(pid), guardian_process.mark_of(pid)) for pid in pids if runs(pid)]
    wait = Path(f"/proc/{guardian}/wchan").read_text() if runs(guardian) else "ended"
    return f"the end of {running} of {pids}; the guardian: {wait}"


def parent(pid: int) -> int:
    row = guardian_process.read_row(pid)
    assert row
    return row.parent


async def test_daemons_of_an_agent_end_with_it(harness: Harness, reaped: list[int]) -> None:
    program = harness.spawn(*starter([], ["setsid"]), SYNAPSE_AGENT_ID=AGENT)
    await until(lambda: program.output.count(b"PID") == 2 and program.output.endswith(b"\n"), "the daemons")
    daemons = pids_in(program.output)
    reaped += daemons
    await until(lambda: program.process.pid not in map(parent, daemons), "daemons that are nobody's children")
    assert program.process.pid not in map(os.getsid, daemons)
    await program.process.terminate(0.3)
    await until(lambda: not any(map(runs, daemons)), "their end")
    assert not program.process.left


async def test_what_is_said_to_be_nobodys_or_anothers_goes_on(harness: Harness, reaped: list[int]) -> None:
    before = bystander(AGENT)
    reaped.append(before.pid)
    await until(lambda: now() > parse_start(start_time(before.pid)), "a time that can be told from its start")
    commands = [["env", f"SYNAPSE_AGENT_ID={name}"] for name in ("", OTHER, AGENT)]
    program = harness.spawn(*starter(*commands), SYNAPSE_AGENT_ID=AGENT)
    await until(lambda: program.output.count(b"PID") == 3 and program.output.endswith(b"\n"), "the daemons")
    nobodys, anothers, own = pids_in(program.output)
    reaped += [nobodys, anothers, own]
    await program.process.terminate(0.3)
    await until(lambda: not runs(own), "its end")
    assert runs(nobodys)
    assert runs(anothers)
    assert runs(before.pid), "it is older than the agent: one of another home that had the same id"
    before.kill()
    before.wait()


async def test_an_agent_of_the_same_id_in_another_home_goes_on(harness: Harness, reaped: list[int]) -> None:
    commands = [["env", *words] for words in (["SYNAPSE_TOKEN=other"], ["-u", "SYNAPSE_TOKEN"])]
    program = harness.spawn(*starter(*commands), SYNAPSE_AGENT_ID=AGENT, SYNAPSE_TOKEN="own")
    await until(lambda: program.output.count(b"PID") == 2 and program.output.endswith(b"\n"), "the daemons")
    others, own = pids_in(program.output)
    reaped += [others, own]
    await program.process.terminate(0.3)
    await until(lambda: not runs(own), "the end of what an agent's tool was not given the token")
    assert runs(others)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_daemons_of_agents_end_with_a_killed_host(reaped: list[int], number: int) -> None:
    owner, pids, guardian = owner_of(starter([], ["setsid"]), announced=2)
    reaped += [*pids, guardian, owner.pid]
    owner.send_signal(number)
    finish(owner)
    await until(lambda: not any(map(runs, pids)), lambda: described(pids, guardian))
    await until(lambda: not runs(guardian), "the end of the guardian")


async def test_daemons_end_when_the_host_is_killed_before_its_guardian_has_started(
    tmp_path: Path, reaped: list[int]
) -> None:
    python, go = tmp_path / "python", tmp_path / "go"
    python.write_text(f'#!/bin/sh\nwhile ! [ -e {go} ]; do sleep 0.02; done\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    owner, pids, guardian = owner_of(starter([], ["setsid"]), announced=2, python=str(python))
    leader, *daemons = pids
    reaped += [*pids, guardian, owner.pid]
    owner.kill()
    finish(owner)
    await until(lambda: not runs(leader), "the leader's end by the hang-up of its terminal")
    assert all(map(runs, daemons))
    go.touch()
    await until(lambda: not any(map(runs, daemons)), f"the end of {daemons}")
    await until(lambda: not runs(guardian), "the end of the guardian")


async def test_an_agent_is_known_by_what_it_was_given_not_by_what_proc_shows(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Just after its start a process shows no environment, and a leader that has ended shows none at all."""
    monkeypatch.setattr("synapse_tui.system.pty.process.agent_of", lambda leader: None)
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {DAEMON!r}])"
    program = harness.spawn(
        sys.executable, "-S", "-c", f"{code}\nimport time\ntime.sleep(1000)", SYNAPSE_AGENT_ID=AGENT
    )
    await until(lambda: program.output.count(b"PID") == 1 and program.output.endswith(b"\n"), "the daemon")
    (daemon,) = pids_in(program.output)
    await program.process.terminate(0.3)
    await until(lambda: not runs(daemon), "its end")


async def test_what_cannot_be_ended_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reaped: list[int]
) -> None:
    kill = os.kill
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        agent_id = rig.session.agent_id
        other = bystander(agent_id, rig.session.environ["SYNAPSE_TOKEN"])
        reaped.append(other.pid)

        def refuse(pid: int, number: int) -> None:
            if pid == other.pid:
                raise PermissionError
            kill(pid, number)

        monkeypatch.setattr(os, "kill", refuse)
        await rig.session.restart()
        monkeypatch.undo()
        assert rig.session.exit is None
        (notice,) = [event for event in rig.heard if isinstance(event, Notice)]
        assert notice == Notice(
            f"{agent_id}: what it started still runs and could not be ended: {other.pid} sleep",
            "warning",
            agent_id,
        )
        assert runs(other.pid)
    assert runs(other.pid), "it is older than what runs now"
    other.kill()
    other.wait()


def test_a_session_that_was_begun_inside_an_agent_is_nobodys(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    own = {name: f"{name} of the agent" for name in IDENTITY}
    environ = {**os.environ, **own, "XDG_RUNTIME_DIR": str(runtime), "HOME": str(tmp_path)}
    place = place_of(project, environ=environ)
    logs = tmp_path / ".synapse" / "logs"
    connection, _ = connect_or_start(place, folder=project, logs=logs, environ=environ)
    host = int(ask(connection, request("info"), timeout=60)["pid"])
    try:
        words = Path(f"/proc/{host}/environ").read_bytes().split(b"\0")
        names = tuple(f"{name}=".encode() for name in IDENTITY)
        assert [word for word in words if word.startswith(names)] == [b"SYNAPSE_AGENT_ID="]
    finally:
        os.kill(host, signal.SIGKILL)


async def test_a_child_that_is_said_to_be_nobodys_goes_on(harness: Harness, reaped: list[int]) -> None:
    child = ["env", "SYNAPSE_AGENT_ID=", "setsid", "sh", "-c", "echo PID $$; exec sleep 1000"]
    code = f"import subprocess,time\nsubprocess.Popen({child!r})\ntime.sleep(1000)"
    program = harness.spawn(sys.executable, "-S", "-c", code, SYNAPSE_AGENT_ID=AGENT)
    await until(lambda: program.output.endswith(b"\n"), "the child")
    reaped += pids_in(program.output)
    await program.process.terminate(0.3)
    assert all(map(runs, reaped))
