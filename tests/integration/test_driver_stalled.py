"""A terminal that does not read, or goes away."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from textual.widgets import Static

from synapse_tui.driver.tty import LIMIT, OutputQueue
from tests.integration.driver_terminal import KITTY_ANSWERS, OuterEnd
from tests.integration.test_driver import ProbeApp, driver_of, running
from tests.waiting import PATIENCE


def queue_of(app: ProbeApp) -> OutputQueue:
    link = driver_of(app).link
    assert link is not None
    assert link._queue is not None
    return link._queue


async def flood(app: ProbeApp) -> None:
    """Paint as fast as it goes until frames are dropped, and on; a write that waits would wait for ever."""
    probe = app.query_one("Probe", Static)
    left = 50
    while left:
        driver_of(app).write(f"\x1b[1;1Hframe {left} " + "x" * 4000)
        driver_of(app).flush()
        probe.update(f"frame {left}")
        left -= driver_of(app).dropping
        await asyncio.sleep(0)


class TestStalled:
    async def test_the_loop_goes_on_and_the_screen_is_painted_anew(self):
        end = OuterEnd(KITTY_ANSWERS)
        async with running(end) as app:
            await end.until(lambda: app._sync_available)
            end.stop_reading()
            await flood(app)
            assert queue_of(app).pending <= LIMIT + 65536
            end.type(b"k")  # keys are still taken
            await end.until(lambda: app.keys)
            driver_of(app).write("\x1b[?25h")  # lost, and made up for
            app.query_one("Probe", Static).update("painted anew")
            dropped = queue_of(app).dropped
            await end.until(lambda: queue_of(app).dropped > dropped)  # that frame is lost too
            end.read()
            await end.shows(b"painted anew")
            await end.until(lambda: not driver_of(app).dropping)
            assert b"\x1b[?25h" in end.output
            assert b"the probe" not in end.output[-200:]
        end.close()

    async def test_it_can_be_left(self):
        end = OuterEnd(KITTY_ANSWERS)
        async with running(end) as app:
            await end.until(lambda: app._sync_available)
            end.stop_reading()
            await flood(app)
        end.close()

    async def test_it_reads_in_time_to_be_left_clean(self):
        end = OuterEnd(KITTY_ANSWERS)
        async with running(end) as app:
            await end.until(lambda: app._sync_available)
            end.stop_reading()
            await flood(app)
            reader = threading.Thread(target=end.read_until, args=(b"\x1b[?1049l",))
            reader.start()
            driver_of(app).stop_application_mode()
            reader.join(PATIENCE)
        assert end.take_output().endswith(b"\x1b[?1049l")
        end.close()


class TestHangUp:
    async def test_is_told_once_and_the_loop_goes_on(self):
        end = OuterEnd(KITTY_ANSWERS)
        told: list[int] = []
        async with running(end, on_hangup=lambda: told.append(1)) as app:
            await end.shows(b"the probe")
            end.hang_up()
            await end.until(lambda: told)
            for _ in range(20):
                driver_of(app).write("x" * 10_000)
                driver_of(app).flush()
                await asyncio.sleep(0)
            assert told == [1]
            assert app.is_running
        end.close()

    async def test_while_it_was_stalled(self):
        end = OuterEnd(KITTY_ANSWERS)
        told: list[int] = []
        async with running(end, on_hangup=lambda: told.append(1)) as app:
            await end.until(lambda: app._sync_available)
            end.stop_reading()
            await flood(app)
            end.hang_up()
            await end.until(lambda: told)
        assert told == [1]
        end.close()


class Pipe:
    """A queue on a pipe, and what it told."""

    def __init__(self, limit: int = 10_000) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.resumed = 0
        self.errors: list[OSError] = []
        self.queue = OutputQueue(
            self.writer,
            asyncio.get_running_loop(),
            on_resumed=self.note_resumed,
            on_error=self.errors.append,
            limit=limit,
        )

    def note_resumed(self) -> None:
        self.resumed += 1

    def read_all(self) -> bytes:
        data = b""
        try:
            while chunk := os.read(self.reader, 1 << 20):
                data += chunk
        except BlockingIOError:
            pass
        return data

    def fill(self) -> list[bytes]:
        """Fill the kernel's buffer and the queue; return what was taken."""
        taken: list[bytes] = []
        number = 0
        while True:
            data = b"%06d:" % number + b"." * 980
            if not self.queue.write(data):
                return taken
            self.queue.flush()
            taken.append(data)
            number += 1


@pytest.fixture
async def pipe():
    made = Pipe()
    yield made
    made.queue.close()
    os.close(made.reader)
    os.close(made.writer)


class TestOutputQueue:
    async def test_writes_are_joined_until_flushed(self, pipe):
        pipe.queue.write(b"a")
        pipe.queue.write(b"b")
        assert pipe.read_all() == b""
        pipe.queue.flush()
        assert pipe.read_all() == b"ab"

    async def test_without_flush_they_go_out_at_the_end_of_the_turn(self, pipe):
        pipe.queue.write(b"bell")
        await asyncio.sleep(0)
        assert pipe.read_all() == b"bell"

    async def test_strings_are_dropped_whole_and_in_order(self, pipe):
        taken = pipe.fill()
        assert pipe.queue.dropping
        assert not pipe.queue.write(b"small")  # nothing overtakes what was dropped
        read = b""
        while not pipe.resumed:
            read += pipe.read_all()
            await asyncio.sleep(0)
        read += pipe.read_all()
        assert read == b"".join(taken)
        assert (pipe.queue.pending, pipe.queue.dropping, pipe.resumed) == (0, False, 1)
        assert pipe.queue.dropped == 2
        assert pipe.queue.write(b"next")
        pipe.queue.flush()
        assert pipe.read_all() == b"next"

    async def test_one_string_over_the_limit_is_taken_when_nothing_waits(self, pipe):
        data = b"y" * 1_000_000
        assert pipe.queue.write(data)
        pipe.queue.flush()
        read = b""
        while len(read) < len(data):
            read += pipe.read_all()
            await asyncio.sleep(0)
        assert read == data
        assert pipe.resumed == 0

    async def test_finish_cuts_a_stuck_sequence_and_leaves_in_time(self, pipe):
        pipe.fill()
        pipe.queue.finish(b"last", 0.1)
        assert pipe.queue.pending == 0
        assert pipe.queue.write(b"after") is True

    async def test_finish_writes_what_waits_first(self, pipe):
        pipe.queue.write(b"frame")
        pipe.queue.finish(b"last", 0.5)
        assert pipe.read_all() == b"framelast"

    async def test_error_is_told_once(self, pipe):
        os.close(pipe.reader)
        for _ in range(3):
            pipe.queue.write(b"x")
            pipe.queue.flush()
            await asyncio.sleep(0)
        assert len(pipe.errors) == 1
        pipe.reader = os.open(os.devnull, os.O_RDONLY)
