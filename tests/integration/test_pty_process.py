"""Programs in real PTYs: spawn, bytes in and out, size, signals, end."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from synapse_tui.core.errors import FolderUnusable, MessageError, SpawnError
from synapse_tui.core.model import ExitStatus
from synapse_tui.system.pty import PtyProcess
from tests.integration.pty_harness import descriptors, runs, until

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


async def test_program_leads_its_own_session_on_a_terminal_of_the_given_size(harness):
    code = (
        "import os,sys;print(os.getpid()==os.getsid(0)==os.getpgrp()==os.tcgetpgrp(0),"
        "all(map(os.isatty,range(3))),os.get_terminal_size(0),os.open('/dev/tty',2)>0,flush=True)"
    )
    program = harness.spawn(sys.executable, "-S", "-c", code, columns=101, lines=33)
    assert await program.ends() == ExitStatus(code=0)
    assert program.output == b"True True os.terminal_size(columns=101, lines=33) True\r\n"


@needs_proc
async def test_child_inherits_no_descriptor_and_no_signal_setting(harness):
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    previous = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        code = (
            "import os\nfor fd in range(3,500):\n"
            "  try: os.fstat(fd); print('leaked',fd)\n  except OSError: pass\n"
            "import signal\nprint('blocked',signal.pthread_sigmask(signal.SIG_BLOCK,()))\n"
            "ignored=[int(n) for n in signal.valid_signals() if signal.getsignal(n)==signal.SIG_IGN]\n"
            "print('ignored',sorted(ignored))\n"
            "print('end',flush=True)"
        )
        program = harness.python(code)
        await program.says(b"end")
    finally:
        signal.signal(signal.SIGUSR2, previous)
        os.close(leaked)
    assert b"leaked" not in program.output
    # CPython ignores SIGPIPE and SIGXFSZ by itself.
    assert b"blocked set()" in program.output
    assert b"ignored [13, 25]" in program.output


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", ExitStatus(code=0)),
        ("exit 77", ExitStatus(code=77)),
        ("kill -KILL $$", ExitStatus(signal=signal.SIGKILL)),
        ("kill -TERM $$", ExitStatus(signal=signal.SIGTERM)),
        ("ulimit -c 0; kill -SEGV $$", ExitStatus(signal=signal.SIGSEGV)),
    ],
)
async def test_exit_status_and_signal(harness, script, status):
    program = harness.sh(script)
    assert await program.ends() == status
    assert program.process.exit == status
    assert program.process.fd == -1


# -- what cannot be started


def spawn(argv, cwd, **env):
    return PtyProcess.spawn(argv, cwd=cwd, env={"PATH": os.environ["PATH"], **env}, columns=80, lines=24)


def test_unusable_folders(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FolderUnusable, match="does not exist"):
        spawn(["true"], tmp_path / "missing")
    with pytest.raises(FolderUnusable, match="is a file"):
        spawn(["true"], file)


@needs_proc
@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (b"#!/nowhere/interpreter\n", 0o755, "No such file"),
        (b"\x00\x01\x02 no program", 0o755, "Exec format error"),
        (b"#!/bin/sh\n", 0o644, "not executable"),
    ],
)
def test_programs_that_cannot_be_executed_say_why(children, tmp_path, content, mode, message):
    tool = tmp_path / "tool"
    tool.write_bytes(content)
    tool.chmod(mode)
    before = descriptors()
    with pytest.raises(SpawnError, match=message):
        spawn(["./tool"], tmp_path)
    assert descriptors() == before
    assert not children()


# -- input

SLOW_READER = """
import hashlib, os, sys, time, tty
tty.setraw(0)
os.write(1, b"ready")
size, left = int(sys.argv[1]), int(sys.argv[1])
digest = hashlib.sha256()
while left:
    data = os.read(0, min(left, 30000))
    digest.update(data)
    left -= len(data)
    time.sleep(0.0002)
os.write(1, digest.hexdigest().encode())
"""


async def test_five_megabytes_reach_a_slow_reader_in_order(harness):
    chunks = [os.urandom(size) for size in (1, 3_000_000, 70_000, 17)]
    chunks += [f"{number:07d}".encode() for number in range(280_000)]
    digest = hashlib.sha256(b"".join(chunks)).hexdigest().encode()
    program = harness.python(SLOW_READER, str(sum(map(len, chunks))))
    await program.says(b"ready")
    for chunk in chunks:
        program.process.write(chunk)
    assert program.process.pending > 4_000_000
    await program.process.drain()
    assert program.process.pending == 0
    await program.says(digest)


async def test_a_program_that_does_not_read_blocks_nobody(harness):
    program = harness.sh("stty raw -echo; echo ready; exec sleep 1000")
    await program.says(b"ready")
    megabyte = b"x" * 1_000_000
    for _ in range(32):
        program.process.write(megabyte)
    waiting = program.process.pending
    with pytest.raises(MessageError, match="does not read"):
        program.process.write(megabyte * 2)
    assert program.process.pending == waiting
    other = harness.sh("read line; echo got $line")
    other.process.write(b"hello\n")
    await other.says(b"got hello")
    drained = asyncio.create_task(program.process.drain())
    await program.process.terminate(0.2)
    await drained
    assert program.process.pending == 0
    program.process.write(b"to nobody")
    assert program.process.pending == 0


# -- size and signals


async def test_resize_tells_the_foreground_program(harness):
    code = (
        "import os,signal\n"
        "signal.signal(signal.SIGWINCH,lambda *_:print('size',*os.get_terminal_size(0),flush=True))\n"
        "print('ready',flush=True)\n"
        "while True: signal.pause()\n"
    )
    program = harness.python(code)
    await program.says(b"ready")
    program.process.resize(132, 50)
    await program.says(b"size 132 50")
    program.process.resize(0, 0)
    await program.says(b"size 1 1")


async def test_signal_goes_to_the_foreground_group_only(harness):
    program = harness.spawn("/bin/bash", "--norc", "-ic", "trap 'echo shell' INT; sleep 1000; echo slept")
    await until(lambda: os.tcgetpgrp(program.process.fd) != program.process.pid, "the job in the foreground")
    program.process.signal(signal.SIGINT)
    await program.says(b"slept")
    await program.ends()
    program.process.signal(signal.SIGINT)


# -- the end


async def test_a_huge_burst_at_exit_is_not_lost(harness):
    code = (
        "import os\ndata=b'0123456789abcdef'*16384\n"
        "for _ in range(16):\n  left=data\n  while left: left=left[os.write(1,left):]\nos._exit(5)"
    )
    program = harness.spawn("/bin/sh", "-c", f'stty -opost; exec {sys.executable} -S -c "$0"', code)
    assert await program.ends() == ExitStatus(code=5)
    assert len(program.output) == 16 * 16 * 16384
    assert program.output_at_exit == len(program.output)


async def test_the_end_is_told_although_a_left_process_keeps_the_terminal(harness):
    program = harness.sh("trap '' HUP; sleep 1000 & echo child $!; exit 6")
    assert await program.ends() == ExitStatus(code=6)
    left = int(program.output.split()[1])
    os.kill(left, signal.SIGKILL)


async def test_hang_up_of_a_living_program_is_no_end_and_no_busy_loop(harness):
    code = (
        "import os,time\nfor fd in (0,1,2): os.close(fd)\ntime.sleep(0.4)\n"
        "fd=os.open('/dev/tty',os.O_RDWR)\nos.write(fd,b'back again')\nos.read(fd,1)\nos._exit(3)"
    )
    calls = 0
    add = harness.scheduler.add

    def counted(*arguments, **options):
        nonlocal calls
        calls += 1
        add(*arguments, **options)

    harness.scheduler.add = counted
    program = harness.python(code)
    await program.says(b"back again")
    program.process.write(b"\n")
    assert await program.ends() == ExitStatus(code=3)
    assert calls < 5


FOREVER = "while :; do sleep 1000; done"
STUBBORN = f"trap '' HUP TERM INT; sh -c 'echo child $$; {FOREVER}' & echo main; {FOREVER}"


@needs_proc
async def test_terminate_ends_a_family_that_ignores_hup_and_term(harness):
    program = harness.sh(STUBBORN)
    await program.says(b"main")
    await program.says(b"child")
    child = int(program.output.split(b"child ")[1].split()[0])
    assert runs(child)
    status = await program.process.terminate(0.3)
    assert status == ExitStatus(signal=signal.SIGKILL)
    assert program.exits == [status]
    await until(lambda: not runs(child), "the end of the child")
    assert await program.process.terminate() == status


@needs_proc
async def test_terminate_ends_background_jobs_and_tools_with_their_own_sessions(harness):
    code = (
        "import subprocess as s,time\n"
        "job=s.Popen(['sleep','1000'],process_group=0)\n"
        "tool=s.Popen(['sleep','1000'],start_new_session=True)\n"
        "print('pids',job.pid,tool.pid,'.',flush=True)\ntime.sleep(1000)"
    )
    program = harness.python(code)
    await program.says(b".")
    pids = [int(word) for word in program.output.split()[1:3]]
    assert all(map(runs, pids))
    assert os.getsid(pids[1]) != os.getsid(program.process.pid)
    await program.process.terminate(0.5)
    await until(lambda: not any(map(runs, pids)), "the end of both")


async def test_terminate_prefers_a_polite_end(harness):
    code = (
        "import signal,sys\n"
        "signal.signal(signal.SIGHUP,lambda *_:(print('goodbye',flush=True),sys.exit(12)))\n"
        "print('ready',flush=True)\nwhile True: signal.pause()"
    )
    program = harness.python(code)
    await program.says(b"ready")
    assert await program.process.terminate(10) == ExitStatus(code=12)
    assert b"goodbye" in program.output


@needs_proc
async def test_no_zombie_and_no_descriptor_is_left(children, harness):
    warm = harness.sh("exit 0")
    await warm.ends()
    await asyncio.to_thread(lambda: None)
    before = descriptors()
    for _ in range(3):
        programs = [harness.sh(script) for script in ("exit 1", "kill -9 $$", "sleep 1000", "yes")]
        await programs[0].ends()
        await programs[1].ends()
        await asyncio.gather(*(program.process.terminate(0.2) for program in programs))
    assert descriptors() == before
    assert not children()


async def test_output_that_is_held_back_at_exit_is_not_lost(harness):
    """The end is known at once, the output only within the budget of parse time."""
    received = bytearray()

    def parse(data: bytes) -> None:
        received.extend(data)
        due = time.perf_counter() + len(data) / 400_000
        while time.perf_counter() < due:
            pass

    script = "stty -opost; head -c 60000 /dev/zero; printf end"
    program = harness.spawn("/bin/sh", "-c", script, on_data=parse)
    assert (await program.ends()).ok
    assert len(received) == 60_003
    assert received.endswith(b"end")


async def test_last_words_after_a_hang_up_are_not_lost(harness):
    code = (
        "import os,time\nfor fd in (0,1,2): os.close(fd)\ntime.sleep(0.1)\n"
        "fd=os.open('/dev/tty',os.O_RDWR)\nos.write(fd,b'last words')\nos._exit(3)"
    )
    program = harness.python(code)
    assert await program.ends() == ExitStatus(code=3)
    assert program.output == b"last words"


async def test_exit_is_noticed_without_pidfd(harness, monkeypatch):
    def missing(_pid: int) -> int:
        raise OSError("no such system call")

    monkeypatch.setattr(os, "pidfd_open", missing)
    program = harness.sh("exit 9")
    assert await program.ends() == ExitStatus(code=9)
    assert len(program.exits) == 1


@needs_proc
def test_without_descriptors_left_it_says_so_and_leaks_none(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers = [os.open("/dev/null", os.O_RDONLY) for _ in range(40)]
    before = descriptors()
    reasons = []
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1 + spare, hard))
        try:
            process = spawn(["true"], tmp_path)
            break
        except SpawnError as error:
            reasons.append(error.message)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert descriptors() == before
    assert len(reasons) > 5
    assert all("Too many open files" in reason for reason in reasons)
    assert descriptors() - before <= {process.fd}
    for descriptor in (process.fd, *fillers):
        os.close(descriptor)
    os.waitpid(process.pid, 0)
