"""Keys that a program reads before it does anything else, or does not get; and whether a program rests."""

import asyncio
import os
import signal
import sys

import pytest

from synapse_tui.agents.console import AtRest
from tests.integration.pty_harness import Program, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the terminals of Linux")

LISTENER = """
import os, select, signal, tty
tty.setraw(0)
woken, wake = os.pipe()
os.set_blocking(wake, False)
signal.set_wakeup_fd(wake)
signal.signal(signal.SIGUSR1, lambda *_: None)
os.write(1, b"listens;")
while True:
    ready = select.select([woken, 0], [], [])[0]
    if woken in ready:
        os.read(woken, 9)
        os.write(1, b"woken;")
    else:
        os.write(1, b"got %r;" % os.read(0, 99))
"""


@pytest.fixture
async def listener(harness):
    program = harness.python(LISTENER)
    await program.says(b"listens;")
    return program


async def nothing() -> None:
    """What a program has put out is of no interest here."""


def at_rest(program: Program) -> AtRest:
    clock = asyncio.get_running_loop().time
    return AtRest(program.process, clock, take_in=nothing, drawing=lambda: False)


async def test_a_program_that_sleeps_gets_the_key(listener):
    rest = at_rest(listener)
    assert await rest.settled(0.04, 10)
    assert await rest.press(b"\r", lambda: "seen", 10) == "seen"
    await listener.says(b"got b'\\r';")


async def test_a_program_that_is_woken_by_something_else_does_not_get_it(listener):
    for number in range(20):
        rest = at_rest(listener)
        assert await rest.settled(0, 10)

        def look() -> str:
            os.kill(listener.process.pid, signal.SIGUSR1)
            return "seen"

        assert await rest.press(b"\r", look, 10) is None
        await until(lambda number=number: listener.output.count(b"woken;") > number, "what it drew")  # type: ignore[misc]
    listener.process.write(b"x")
    await listener.says(b"got b'x';")
    assert b"\\r" not in listener.output


async def test_a_program_that_has_not_read_what_came_before_does_not_get_it(listener):
    os.kill(listener.process.pid, signal.SIGSTOP)
    listener.process.write(b"x")
    rest = at_rest(listener)
    assert await rest.settled(0, 10)
    assert await rest.press(b"\r", lambda: "seen", 10) is None
    os.kill(listener.process.pid, signal.SIGCONT)
    await listener.says(b"got b'x';")


async def test_a_program_that_does_not_run_gets_it_taken_back_and_only_it(listener):
    os.kill(listener.process.pid, signal.SIGSTOP)
    with listener.process.stopped() as terminal:
        assert terminal is not None
        assert not terminal.unread
        listener.process.write(b"\r")
        listener.process.write(b"\x1b[I")
        assert terminal.unread
        assert terminal.take_back(b"\r")
        assert not terminal.take_back(b"\r")
    os.kill(listener.process.pid, signal.SIGCONT)
    await listener.says(b"got b'\\x1b[I';")
    assert b"\\r" not in listener.output


async def test_a_terminal_that_hands_on_whole_lines_gets_its_key_without_more(harness):
    program = harness.sh('read line; echo "got $line"')
    rest = at_rest(program)
    program.process.write(b"text")
    assert await rest.press(b"\n", lambda: "seen", 10) == "seen"
    await program.says(b"got text")


@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import time\nwhile True: time.sleep(0.005)"],
    ids=["busy", "awake now and then"],
)
async def test_a_program_that_works_on_is_not_at_rest(harness, code):
    program = harness.python(f"print('begun', flush=True)\n{code}")
    await program.says(b"begun")
    assert not await at_rest(program).settled(0.04, 0.2)


async def test_output_that_is_stopped_twice_goes_on_with_the_second(listener):
    with listener.process.stopped():
        with listener.process.stopped():
            listener.process.write(b"x")
        await until(lambda: not listener.process.unread, "its reading")
        await asyncio.sleep(0.1)
        assert b"got" not in listener.output
    await listener.says(b"got b'x';")
