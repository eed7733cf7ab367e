"""Sharing of parse time: floods, echoes, the PTY in focus."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pty
import statistics
import time
import tty

import pytest

from synapse_tui.system.pty import ReadScheduler
from synapse_tui.system.pty.scheduler import LOOK_AGAIN, LOOK_READ
from tests.integration.pty_harness import until

FLOOD = "stty -echo; exec yes 'a line of a program that writes as fast as it can'"
PARSE_RATE = 3e6
"""Bytes a second of the pretended parser."""


class Parser:
    """Takes as long as a terminal emulator would."""

    def __init__(self) -> None:
        self.bytes = 0
        self.seconds = 0.0

    def __call__(self, data: bytes) -> None:
        until_ = time.perf_counter() + len(data) / PARSE_RATE
        while time.perf_counter() < until_:
            pass
        self.bytes += len(data)
        self.seconds += len(data) / PARSE_RATE


async def echo_times(program, count: int) -> list[float]:
    times = []
    for number in range(count):
        mark = f"<{number}>".encode()
        started = time.perf_counter()
        program.process.write(mark)
        await until(functools.partial(program.output.__contains__, mark), f"the echo of {mark!r}")
        times.append(time.perf_counter() - started)
        await asyncio.sleep(0)
    return times


async def test_echo_and_loop_stay_quick_while_four_programs_flood(harness):
    parsers = [Parser() for _ in range(4)]
    for parser in parsers:
        harness.spawn("/bin/sh", "-c", FLOOD, on_data=parser)
    await until(lambda: all(parser.bytes > 100_000 for parser in parsers), "four floods")
    echo = harness.sh("stty raw -echo; echo ready; exec cat")
    await echo.says(b"ready")
    lags = []
    done = False

    async def measure_loop() -> None:
        while not done:
            due = time.perf_counter() + 0.005
            await asyncio.sleep(0.005)
            lags.append(time.perf_counter() - due)

    task = asyncio.create_task(measure_loop())
    times = await echo_times(echo, 60)
    done = True
    await task
    # The margins are for a busy machine.
    assert statistics.median(times) < 0.5, times
    assert statistics.median(lags) < 0.2, lags


PORTION = 0.002
"""Seconds that the pretended parser takes for each portion."""


class Flood:
    """Pipes that are full again after each read, and a clock that goes by what is done."""

    def __init__(self, stack: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch, count: int = 1) -> None:
        self.now = 0.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        self.scheduler = ReadScheduler(clock=lambda: self.now)
        self.portions = [0] * count
        self.descriptors = []
        for number in range(count):
            ours, theirs = os.pipe()
            os.set_blocking(ours, False)
            os.set_blocking(theirs, False)
            stack.callback(os.close, ours)
            stack.callback(os.close, theirs)
            fill(theirs)
            self.scheduler.add(
                ours, on_data=functools.partial(self._parse, number, theirs), on_hangup=lambda: None
            )
            stack.callback(self.scheduler.remove, ours)
            self.descriptors.append(ours)

    def _parse(self, number: int, theirs: int, _data: bytes) -> None:
        self.portions[number] += 1
        self.now += PORTION
        fill(theirs)


async def test_floods_get_all_the_time_that_nothing_else_needs(monkeypatch):
    with contextlib.ExitStack() as stack:
        flood = Flood(stack, monkeypatch, 3)
        flood.scheduler.focused = flood.descriptors[0]
        turns = 0
        while flood.now < 1.0:
            before = flood.now
            await asyncio.sleep(0)
            turns += flood.now == before
            assert turns < 250, "the loop is idle meanwhile"
        first, *others = flood.portions
        assert min(others) > 0.1 * first
        assert max(others) < 0.6 * first, "the focused one gets more"


async def test_a_program_that_got_input_answers_before_floods_go_on(monkeypatch):
    with contextlib.ExitStack() as stack:
        flood = Flood(stack, monkeypatch)
        ours, theirs = os.pipe()
        stack.callback(os.close, ours)
        stack.callback(os.close, theirs)
        os.set_blocking(ours, False)
        seen: list[bytes] = []
        flood.scheduler.add(ours, on_data=seen.append, on_hangup=lambda: None)
        stack.callback(flood.scheduler.remove, ours)
        for number in range(10):
            flood.scheduler.expect_echo()
            flood.now += 0.016
            before = sum(flood.portions)
            for _ in range(20):
                await asyncio.sleep(0)
            assert sum(flood.portions) - before <= 4, "more than the budgets of two ticks"
            before = sum(flood.portions)
            os.write(theirs, b"echo")
            for _ in range(3):
                await asyncio.sleep(0)
            assert len(seen) == number + 1
            assert sum(flood.portions) == before, "a flood goes first"


async def test_floods_get_no_more_than_their_budget_while_there_is_something_else_to_do(monkeypatch):
    with contextlib.ExitStack() as stack:
        flood = Flood(stack, monkeypatch)
        for _ in range(400):
            flood.now += 0.001
            await asyncio.sleep(0)
        assert 0.1 < PORTION * sum(flood.portions) / flood.now < 0.3


async def test_the_flood_in_focus_gets_more_and_starves_nobody(harness):
    parsers = [Parser() for _ in range(3)]
    programs = [harness.spawn("/bin/sh", "-c", FLOOD, on_data=parser) for parser in parsers]
    harness.scheduler.focused = programs[0].process.fd
    await until(lambda: all(parser.bytes > 50_000 for parser in parsers), "three floods")
    before = [parser.seconds for parser in parsers]
    await until(lambda: parsers[0].seconds - before[0] > 0.3, "some parsing")
    shares = [parser.seconds - start for parser, start in zip(parsers, before, strict=True)]
    assert shares[0] > 1.5 * shares[1]
    assert shares[0] > 1.5 * shares[2]
    assert min(shares) > 0.02


async def test_the_kernel_holds_a_flooder_back(harness):
    """What is not parsed is not read either, so that memory does not grow: the writer has to wait."""
    code = (
        "import os,time,fcntl\nos.set_blocking(1,False)\nblocked=0\n"
        "while not blocked:\n  try: os.write(1,b'x'*4096)\n  except BlockingIOError: blocked=1\n"
        "os.set_blocking(1,True)\nos.write(1,b'<held back>')\ntime.sleep(1000)"
    )

    def parse(data: bytes) -> None:
        seen.extend(data)
        parser(data)

    parser, seen = Parser(), bytearray()
    harness.spawn("/usr/bin/env", "python3", "-S", "-c", code, on_data=parse)
    await until(lambda: b"<held back>" in seen, "the writer was held back")


@pytest.fixture
def terminal():
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    os.set_blocking(theirs, False)
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def fill(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, b"x" * 1024)


async def test_a_look_takes_in_all_of_little_output(terminal):
    ours, theirs = terminal
    seen: list[bytes] = []
    scheduler = ReadScheduler(clock=lambda: 0.0, budget=0.0)
    scheduler.add(ours, on_data=seen.append, on_hangup=lambda: None)
    try:
        for text in (b"one", b"two"):
            os.write(theirs, text)
            scheduler.look(ours)
        assert seen == [b"one", b"two"]
    finally:
        scheduler.remove(ours)


@pytest.mark.parametrize("takes_in", [True, False])
async def test_a_look_takes_in_one_portion_of_much_output(terminal, takes_in):
    ours, theirs = terminal
    now = 0.0
    seen: list[bytes] = []

    def take(data: bytes) -> bool:
        seen.append(data)
        return not takes_in

    scheduler = ReadScheduler(clock=lambda: now)
    scheduler.add(ours, on_data=take, on_hangup=lambda: None)
    try:
        for _ in range(20):
            fill(theirs)
            scheduler.look(ours)
        assert [len(data) for data in seen] == [LOOK_READ]
        assert (ours in [source.descriptor for source in scheduler._waiting]) is not takes_in
        now = LOOK_AGAIN
        scheduler.look(ours)
        assert [len(data) for data in seen] == [LOOK_READ] * (2 if takes_in else 1)
    finally:
        scheduler.remove(ours)
