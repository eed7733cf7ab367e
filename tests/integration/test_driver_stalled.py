"""A terminal that does not read, or goes away."""

from __future__ import annotations

import asyncio
import threading

from textual.widgets import Static

from synapse_tui.widgets.driver.tty import LIMIT, OutputQueue
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
