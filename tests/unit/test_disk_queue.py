"""Things that wait for the disk."""

from __future__ import annotations

import asyncio
import threading

from synapse_tui.disk_queue import DiskQueue


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
