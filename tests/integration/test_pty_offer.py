"""Keys that a program reads before it does anything else, or does not get; and whether a program rests."""

import asyncio
import os
import signal
import sys

import pytest

from synapse_tui.agents.console import LOOK_BYTES, OFFER_TRIES, OFFER_WAITS, AtRest, Offer
from synapse_tui.system.pty.scheduler import ReadScheduler
from tests.integration.pty_harness import Program, until
from tests.waiting import PATIENCE

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


ASKER = """
import os, select, signal, time, tty
tty.setraw(0)
ask = []
signal.signal(signal.SIGUSR1, lambda *_: ask.append(1))
os.write(1, b"waits;")
def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def read():
    return os.read(0, 99) if select.select([0], [], [], 0)[0] else b""
while True:
    time.sleep(0.001)
    if ask:
        ask.clear()
        os.write(1, b"asks;")
        compute(COMPUTES)
        os.write(1, b"took %r;" % read())
    elif keys := read():
        os.write(1, b"got %r;" % keys)
"""


class Console:
    """What an offer knows of a console, for a program whose screen is what it printed."""

    def __init__(self, program: Program, scheduler: ReadScheduler) -> None:
        self.program = program
        self.scheduler = scheduler
        self.process = program.process
        self.offer_tries = OFFER_TRIES
        self.offer_waits = True
        self.drawing = False
        self.now = asyncio.get_running_loop().time
        self.write = program.process.write
        self.refresh_activity = lambda: None

    def take_in_for(self, _seconds: float) -> bool:
        while self.scheduler.take(self.process.fd, LOOK_BYTES):
            pass
        return True

    async def offer(self, key: bytes) -> bool:
        """Offer a key that may not be read once the program has drawn its dialog."""
        read: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        may = lambda: b"took" not in self.program.output  # noqa: E731
        activity = at_rest(self.program).activity
        Offer(key, self, activity, may=may, read=lambda: None, done=read.set_result)  # type: ignore[arg-type]
        return await read


async def test_a_key_does_not_reach_a_program_that_is_about_to_draw_its_dialog(harness, monkeypatch):
    """A busy program may take keys for a dialog that it has not yet begun to draw."""
    # on a busy machine its 40 ms of computing may take long
    monkeypatch.setattr("synapse_tui.agents.console.OFFER_WAITS", PATIENCE)
    program = harness.python(ASKER.replace("COMPUTES", "0.04"))
    await program.says(b"waits;")
    console = Console(program, harness.scheduler)
    assert await console.offer(b"a")
    await program.says(b"got b'a';")
    os.kill(program.process.pid, signal.SIGUSR1)
    await program.says(b"asks;")
    assert not await console.offer(b"y")
    assert b"took b'';" in program.output
    assert console.offer_waits


async def test_a_program_that_computes_on_gets_its_keys_after_a_moment_and_then_at_once(harness):
    program = harness.python(ASKER.replace("COMPUTES", "3"))
    await program.says(b"waits;")
    console = Console(program, harness.scheduler)
    os.kill(program.process.pid, signal.SIGUSR1)
    await program.says(b"asks;")
    begun = console.now()
    offers = [asyncio.create_task(console.offer(b"a"))]
    with program.process.stopped() as terminal:
        assert terminal is not None
        await until(lambda: terminal.unread, "the key in the terminal")
    assert console.now() - begun >= OFFER_WAITS
    assert not console.offer_waits
    assert await asyncio.gather(*offers) == [True]
    await program.says(b"took b'a';")
