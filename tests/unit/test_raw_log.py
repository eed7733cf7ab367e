"""The log of an agent's output."""

from __future__ import annotations

import asyncio
import io
import logging
import threading

from synapse_tui.agents.raw_log import GAP, Begun, RawLog, Resized, TimesReader, WrittenBytes, times_path
from synapse_tui.daemon.logs import PAUSE, Repeats
from synapse_tui.system.disk_queue import MAX_WAITING, DiskQueue


async def test_only_the_owner_may_read_it(tmp_path):
    path = tmp_path / "logs" / "a.log"
    path.parent.mkdir(mode=0o755)
    path.write_bytes(b"old")
    path.chmod(0o644)
    log = RawLog(path)
    log.write(b"new")
    await log.close()
    assert path.read_bytes() == b"oldnew"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_its_size_is_bounded(tmp_path):
    log = RawLog(tmp_path / "a.log", max_bytes=100)
    for number in range(20):
        log.write(b"%02d" % number * 20)
        await log.close()
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) <= {"a.log", "a.log.1", "a.log.times", "a.log.1.times"}
    assert sizes["a.log.1"] <= 140
    assert max(sizes.values()) <= 140


async def test_what_the_disk_cannot_take_is_left_out_and_told(tmp_path):
    log = RawLog(tmp_path / "a.log")
    log.write(b"x" * 10)
    log.write(b"y" * MAX_WAITING)
    await log.close()
    log.write(b"z")
    await log.close()
    assert (tmp_path / "a.log").read_bytes() == b"x" * 10 + GAP + b"z"


def noted(path):
    """The records beside a log."""
    return list(TimesReader().read(times_path(path).read_text().splitlines(keepends=True)))


async def test_times_and_sizes_are_noted(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"old")
    now = 1000.0
    log = RawLog(path, clock=lambda: now)
    log.started(100, 30)
    log.write(b"abc")
    log.write(b"de")
    now = 1000.25
    log.write("漢".encode())
    log.resized(120, 40)
    await log.close()
    now = 1000.5
    log.write(b"f")
    log.started(120, 40)
    log.write(b"g")
    await log.close()
    assert noted(path) == [
        Begun(1000.0, 3, 100, 30, anew=True),
        WrittenBytes(1000.0, 3, 5),
        WrittenBytes(1000.25, 8, 3),
        Resized(1000.25, 120, 40),
        WrittenBytes(1000.5, 11, 1),
        Begun(1000.5, 12, 120, 40, anew=True),
        WrittenBytes(1000.5, 12, 1),
    ]


async def test_a_new_file_says_that_the_process_goes_on(tmp_path):
    path = tmp_path / "a.log"
    log = RawLog(path, max_bytes=100, clock=lambda: 5.0)
    log.started(100, 30)
    log.write(b"x" * 200)
    await log.close()
    log.resized(90, 20)
    log.write(b"y")
    await log.close()
    assert noted(path) == [Begun(5.0, 0, 90, 20, anew=False), WrittenBytes(5.0, 0, 1)]


async def test_a_clock_that_is_put_back_makes_no_negative_times(tmp_path):
    now = 1000.0
    log = RawLog(tmp_path / "a.log", clock=lambda: now)
    log.started(80, 24)
    now = 900.0
    log.write(b"x")
    await log.close()
    assert noted(tmp_path / "a.log")[1] == WrittenBytes(1000.0, 0, 1)


def test_what_is_no_record_is_left_out():
    lines = ["12 5\n", "@1000 0 80x24\n", "rubbish\n", "-3 4\n", "@1 2\n", "٣ 4\n", "7 5\n", "7 0x0\n"]
    assert list(TimesReader().read(lines)) == [
        Begun(1.0, 0, 80, 24, anew=True),
        WrittenBytes(1.007, 0, 5),
        Resized(1.014, 1, 1),
    ]


async def test_a_folder_that_cannot_be_made_stops_the_log_only(tmp_path, caplog):
    (tmp_path / "logs").write_text("a file in the way")
    log = RawLog(tmp_path / "logs" / "a.log")
    log.write(b"x")
    await log.close()
    log.write(b"y")
    assert "cannot be written" in caplog.text


async def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / "a.log").symlink_to(target)
    log = RawLog(tmp_path / "a.log")
    log.write(b"x")
    await log.close()
    assert target.read_bytes() == b""


# -- What a host's log leaves out ---


class Log:
    """A log whose records come when they are told to."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        self._handler = logging.StreamHandler(self.file)
        self._handler.addFilter(Repeats())

    def say(self, at: float, words: str, *args: object, level: int = logging.WARNING) -> None:
        record = logging.LogRecord("synapse", level, __file__, 1, words, args, None)
        record.created = at
        self._handler.handle(record)

    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()


def test_the_same_words_are_written_once_a_minute_and_counted():
    log = Log()
    for second in range(int(PAUSE) + 1):
        log.say(float(second), "history not written: %s", "disk full")
    assert log.lines() == [
        "history not written: disk full",
        f"history not written: disk full (and {int(PAUSE) - 1} times since)",
    ]
    log.say(3 * PAUSE, "history not written: %s", "disk full")
    assert log.lines()[-1] == "history not written: disk full"


def test_other_words_and_severities_are_written():
    log = Log()
    for name in ("a", "b", "a"):
        log.say(1.0, "%s is gone", name)
    log.say(1.0, "%s is gone", "a", level=logging.ERROR)
    assert log.lines() == ["a is gone", "b is gone", "a is gone"]


# -- Things that wait for the disk ---


class Disk:
    """Takes what is written, or holds it up, or fails."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self.failure: OSError | None = None
        self.errors: list[OSError] = []
        self.room = 0

    def write(self, items: list[str]) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.free.wait(30)
        if self.failure is not None:
            raise self.failure
        self.taken += items

    def told(self) -> None:
        self.room += 1

    def queue(self, limit: int = 100) -> DiskQueue[str]:
        return DiskQueue(self.write, on_error=self.errors.append, on_room=self.told, limit=limit)


async def test_things_are_written_in_order():
    disk = Disk()
    queue = disk.queue(10_000)
    for number in range(500):
        assert queue.put(str(number), 1)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await queue.close()
    assert disk.taken == [str(number) for number in range(500)]
    assert queue.put("later", 1)
    await queue.close()
    assert disk.taken[-1] == "later"
    assert disk.room == 0


async def test_what_is_too_much_is_left_out_until_all_is_written():
    disk = Disk()
    disk.free.clear()
    queue = disk.queue(limit=10)
    assert queue.put("a", 6)
    assert not queue.put("b", 6)
    assert not queue.put("c", 1)
    disk.free.set()
    await queue.close()
    assert disk.room == 1
    assert queue.put("d", 1)
    await queue.close()
    assert (disk.taken, disk.room) == (["a", "d"], 1)


async def test_one_thing_that_is_larger_than_all_room_is_told():
    disk = Disk()
    queue = disk.queue(limit=10)
    assert not queue.put("a", 11)
    await queue.close()
    assert disk.room == 1
    assert queue.put("b", 1)
    await queue.close()
    assert disk.taken == ["b"]


async def test_a_disk_that_fails_is_told_once():
    disk = Disk()
    disk.failure = OSError(28, "No space left on device")
    queue = disk.queue()
    assert queue.put("a", 1)
    await queue.close()
    assert not queue.put("b", 1)
    await queue.close()
    assert disk.errors == [disk.failure]
