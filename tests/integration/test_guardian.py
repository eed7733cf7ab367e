"""The guardian: nothing is left when the process that owns the agents is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from synapse_tui.system.pty import Guardian
from synapse_tui.system.pty.guardian import restart_delay
from synapse_tui.system.pty.guardian_process import (
    Family,
    ProcessKey,
    alive,
    read_row,
    read_table,
    start_time,
)
from tests.integration.pty_harness import Harness, descriptors, runs, until

OWNER = """
import asyncio, json, os, re, sys
from pathlib import Path
from synapse_tui.system.pty import Guardian, PtyProcess, ReadScheduler

async def main():
    guardian = Guardian(sys.argv[3] or sys.executable)
    scheduler, outputs = ReadScheduler(), []
    processes = []
    def announced():
        return [int(pid) for output in outputs for pid in re.findall(rb"PID (\\d+)\\r\\n", output)]
    for command in json.loads(sys.argv[1]):
        process = PtyProcess.spawn(
            command, cwd=Path("/"), env={**os.environ, "SYNAPSE_AGENT_ID": f"synapse-dummy-{os.getpid()}"},
            columns=80, lines=24, guardian=guardian
        )
        outputs.append(bytearray())
        process.start(scheduler, on_data=outputs[-1].extend, on_exit=lambda status: None)
        processes.append(process)
    while len(announced()) < int(sys.argv[2]):
        await asyncio.sleep(0.01)
    pids = [p.pid for p in processes] + announced()
    print(json.dumps({"pids": pids, "guardian": guardian.pid}), flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""

PLAIN = ["/bin/sh", "-c", "echo PID $$; exec sleep 1000"]
GRANDCHILDREN = ["/bin/sh", "-c", "sh -c 'echo PID $$; sleep 1000; :' & echo PID $$; sleep 1000; :"]
FOREVER = "echo PID $$; while :; do sleep 1000; done"
DEAF = ["/bin/sh", "-c", f"trap '' HUP TERM INT; sh -c '{FOREVER}' & {FOREVER}"]
TOOLS_CODE = """
import os, subprocess, signal, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for options in ({"start_new_session": True}, {"process_group": 0}):
    child = subprocess.Popen(["sleep", "1000"], stdin=-3, stdout=-3, stderr=-3, **options)
    os.write(1, b"PID %d\\n" % child.pid)
time.sleep(1000)
"""
TOOLS = [sys.executable, "-S", "-c", TOOLS_CODE]
STOPPED = ["/bin/sh", "-c", "echo PID $$; kill -STOP $$; echo never"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture
def start_owner():
    """Starts a process that owns some agents; gives it, the pids that must go with it, and the guardian's."""
    started: list[int] = []

    def start(*commands: list[str]) -> tuple[subprocess.Popen[str], list[int], int]:
        owner, pids, guardian = owner_of(*commands)
        started.extend((owner.pid, *pids, guardian))
        return owner, pids, guardian

    yield start
    for pid in started:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def owner_of(
    *commands: list[str], announced: int = 0, python: str = ""
) -> tuple[subprocess.Popen[str], list[int], int]:
    announced = announced or sum(" ".join(command).count("PID") for command in commands)
    announced += sum(command is TOOLS for command in commands)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, json.dumps(commands), str(announced), python],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout
    answer = json.loads(owner.stdout.readline())
    return owner, answer["pids"], answer["guardian"]


def finish(owner: subprocess.Popen[str]) -> None:
    if owner.stdout:
        owner.stdout.close()
    owner.wait()


@pytest.mark.parametrize(
    "commands",
    [[PLAIN], [GRANDCHILDREN], [DEAF], [TOOLS], [STOPPED], [PLAIN, GRANDCHILDREN, DEAF, TOOLS, STOPPED]],
    ids=["plain", "grandchildren", "deaf", "tools", "stopped", "all"],
)
async def test_nothing_is_left_after_kill_9_of_the_owner(start_owner, commands):
    owner, pids, guardian = start_owner(*commands)
    assert all(map(runs, pids))
    owner.kill()
    finish(owner)
    await until(lambda: not any(map(runs, pids)), f"the end of {pids}")
    await until(lambda: not runs(guardian), "the end of the guardian")


async def test_guardian_ignores_what_a_person_or_a_shell_sends(start_owner):
    owner, pids, guardian = start_owner(DEAF)
    assert os.getsid(guardian) == guardian
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        os.kill(guardian, number)
    owner.terminate()
    finish(owner)
    await until(lambda: not any(map(runs, pids)), f"the end of {pids}")
    await until(lambda: not runs(guardian), "the end of the guardian")


async def test_guardian_holds_nothing_and_nobody_holds_its_pipe(children, tmp_path):
    guardian = Guardian()
    harness = Harness(tmp_path)
    program = harness.spawn("/bin/sh", "-c", "echo started; sleep 1000; :", guardian=guardian)
    await program.says(b"started")
    assert guardian.pid
    await until(lambda: descriptors(guardian.pid or 0) == {0, 1, 2}, "a guardian that has started")
    assert descriptors(program.process.pid) == {0, 1, 2}
    await harness.close()
    pid = guardian.pid
    guardian.close()
    await until(lambda: not children(), "no child")
    assert not runs(pid)


async def test_a_guardian_that_was_killed_is_replaced_and_knows_all(children, tmp_path):
    guardian = Guardian()
    harness = Harness(tmp_path)
    deaf = harness.spawn(*DEAF, guardian=guardian)
    await deaf.says(b"PID")
    first = guardian.pid
    assert first
    os.kill(first, signal.SIGKILL)
    await until(lambda: not runs(first), "the end of the first guardian")
    other = harness.spawn("/bin/sh", "-c", "echo up; exec sleep 1000", guardian=guardian)
    await other.says(b"up")
    assert guardian.pid not in (None, first)
    guardian.close()
    assert (await deaf.ends()).signal == signal.SIGKILL
    assert (await other.ends()).signal == signal.SIGHUP
    await until(lambda: not children(), "no child")


async def test_a_killed_guardian_that_was_handed_over_is_replaced(children, tmp_path):
    before = Guardian()
    harness = Harness(tmp_path)
    program = harness.spawn("/bin/sh", "-c", "echo up; exec sleep 1000", guardian=before)
    await program.says(b"up")
    guardian = Guardian.adopt(before.hand_over())
    first = guardian.pid
    assert first
    os.kill(first, signal.SIGKILL)
    await until(lambda: guardian.pid not in (None, first), "another guardian")
    guardian.close()
    assert (await program.ends()).signal == signal.SIGHUP
    await until(lambda: not children(), "no child")


async def test_a_guardian_that_never_stays_is_tried_ever_more_seldom_and_reported(tmp_path, caplog):
    starts, python = tmp_path / "starts", tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho started >> {starts}\n")
    python.chmod(0o700)
    reports: list[str] = []
    guardian = Guardian(python=str(python), report=reports.append)
    harness = Harness(tmp_path)
    program = harness.spawn("/bin/sh", "-c", "echo up; exec sleep 1000", guardian=guardian)
    await program.says(b"up")
    await until(lambda: reports, "a report")
    assert len(starts.read_text().splitlines()) == 3
    assert "would outlive" in reports[0]
    assert "guardian has ended" in caplog.text
    guardian.close()
    await harness.close()
    assert len(reports) == 1
    assert [restart_delay(failures) for failures in (0, 1, 2, 3, 7, 8, 100)] == [0, 0.5, 1, 2, 32, 60, 60]


def test_a_pid_that_was_used_again_is_not_touched():
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        key = ProcessKey(process.pid, start_time(process.pid))
        assert alive(key)
        assert Family([key]).members(read_table()) == {key}
        assert not alive(ProcessKey(process.pid, "1"))
        assert Family([ProcessKey(process.pid, "1")]).members(read_table()) == set()
    finally:
        process.kill()
        process.wait()
    assert not alive(key)


def test_table_by_ps_agrees_with_proc():
    from synapse_tui.system.pty.guardian_process import _ps_rows

    if not Path("/bin/ps").exists():
        pytest.skip("no ps")
    rows = {row.key.pid: row for row in _ps_rows()}
    mine = read_row(os.getpid())
    assert mine
    told = rows[os.getpid()]
    assert (told.parent, told.group, told.session, told.zombie) == (
        mine.parent,
        mine.group,
        mine.session,
        False,
    )
    assert next(_ps_rows(os.getpid())).key == told.key
