"""A host executes itself anew, and its programs go on as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.core.errors import HandoverError
from synapse_tui.system.pty import Guardian, GuardianHandle, Handle, PtyProcess, ReadScheduler
from tests.integration.pty_harness import Harness, runs, until

HOST = Path(__file__).with_name("upgrade_host.py")
COUNTER = """
import os, sys, time
number = 0
while not os.path.exists(sys.argv[1]):
    print(number, flush=True)
    number += 1
    time.sleep(0.0005)
print("typed", input(), os.get_terminal_size(), flush=True)
sys.exit(7)
"""
DUMMY = (sys.executable, "-P", "-m", "synapse_tui.dummy", "--word-delay", "5")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


class Remote:
    """The host in its own process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def __call__(self, **command: object) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return answer

    async def until(self, condition: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        for _ in range(12_000):
            answer = await self()
            if condition(answer):
                return answer
            await asyncio.sleep(0.005)
        raise AssertionError(f"never happened: {what}: {answer}")

    async def shows(self, text: str) -> dict[str, Any]:
        return await self.until(lambda told: text in "\n".join(told["lines"]), text)


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., Any]]:
    hosts: list[Remote] = []

    async def run(*argv: str) -> Remote:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(HOST), *argv, stdin=pipe, stdout=pipe, limit=50_000_000
        )
        hosts.append(Remote(process))
        return hosts[-1]

    yield run
    for host in hosts:
        if host.process.stdin is not None:
            host.process.stdin.close()
        await host.process.wait()


async def test_output_has_no_gap_and_the_program_can_be_used(start, tmp_path):
    stop = tmp_path / "stop"
    host = await start(sys.executable, "-S", "-c", COUNTER, str(stop))
    first = await host.shows("200")
    for generation in (1, 2, 3):
        told = await host(exec=True)
        assert (told["generation"], told["pid"], told["guardian"]) == (
            generation,
            first["pid"],
            first["guardian"],
        )
        seen = len(told["lines"])
        await host.until(lambda told: len(told["lines"]) > seen + 50, "more output")  # noqa: B023
    await host(resize=[90, 20])
    stop.touch()
    await host(write="hello\n")
    told = await host.shows("typed hello os.terminal_size(columns=90, lines=20)")
    numbers = [int(line) for line in told["lines"] if line.isdigit()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 300
    told = await host.until(lambda told: told["exit"], "the end")
    assert told["exit"] == {"code": 7, "signal": None}
    assert not runs(first["pid"])


async def test_the_dummy_goes_on_in_the_midst_of_its_answer(start):
    host = await start(*DUMMY)
    await host.shows("ready")
    await host(write="%%slow:1%%\r")
    before = await host.shows("working")
    told = await host(exec=True)
    assert told["lines"][:3] == before["lines"][:3]
    told = await host.shows("· ready")
    assert "  END-OF-SLOW" in told["lines"]
    await host(write="/exit\r")
    told = await host.until(lambda told: told["exit"], "the end")
    assert told["exit"] == {"code": 0, "signal": None}


async def test_no_descriptor_is_left_over(start):
    host = await start("/bin/cat")
    first = await host()
    counts = [len((await host(exec=True))["descriptors"]) for _ in range(3)]
    assert counts[0] == counts[1] == counts[2]
    assert counts[2] <= len(first["descriptors"])


async def test_the_guardian_still_watches_after_the_upgrade(start):
    host = await start("/bin/sh", "-c", "trap '' HUP; echo up; while :; do sleep 1000; done")
    first = await host.shows("up")
    told = await host(exec=True)
    assert told["guardian"] == first["guardian"]
    host.process.kill()
    await until(lambda: not runs(first["pid"]), "the end of the program")
    await until(lambda: not runs(first["guardian"]), "the end of the guardian")


async def test_an_upgrade_that_fails_changes_nothing(start):
    host = await start("/bin/cat")
    first = await host(write="one\n")
    await host.shows("one\none")  # the terminal's echo, and cat's
    told = await host(exec="fails")
    assert told["pid"] == first["pid"]
    await host(write="two\n")
    await host.shows("one\none\ntwo\ntwo")


# In this process


async def test_input_that_was_not_taken_follows(tmp_path):
    harness = Harness(tmp_path)
    program = harness.python("import sys, time; time.sleep(0.5); print(sum(map(len, sys.stdin.buffer)))")
    lines = b"x" * 99 + b"\n"
    program.process.write(lines * 5000 + b"\x04")
    assert program.process.pending
    handle = program.process.hand_over()
    assert handle is not None
    assert handle.pending
    assert os.get_inheritable(handle.fd)
    again = PtyProcess.adopt(handle)
    assert not os.get_inheritable(handle.fd)
    output = bytearray()
    again.start(ReadScheduler(), on_data=output.extend, on_exit=lambda _status: None)
    await until(lambda: b"500000" in output, lambda: repr(bytes(output[-200:])))
    await again.terminate()


async def test_what_was_not_handed_over_is_told(tmp_path):
    harness = Harness(tmp_path)
    program = harness.sh("sleep 1000")
    with pytest.raises(HandoverError, match="Bad file descriptor"):
        PtyProcess.adopt(Handle(program.process.pid, "1", 98765))
    with pytest.raises(HandoverError, match="is not the agent"):
        PtyProcess.adopt(Handle(program.process.pid, "1", 0))
    with pytest.raises(HandoverError, match="is not the agent"):
        PtyProcess.adopt(Handle(os.getpid(), "1", 0))
    with pytest.raises(HandoverError, match="pipe was not handed over"):
        Guardian.adopt(GuardianHandle(1, 98765))
    await harness.close()
