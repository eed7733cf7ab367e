"""Locks under a race: `python -m tests.bench.locks [PROCESSES [LOCKS [KILLS]]]`, 16, 1000 and 200 by default.

Each process takes every lock once, in an order of its own. Whoever holds one makes a file that must not be
there yet and removes it before it gives the lock back: a file that is there already is a second holder. Then
holders are killed at random moments, with SIGKILL, in the midst of their transactions: their locks must be
free at once, and the database sound.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from synapse_tui.core.locks import ChangeType, Holder, Modification
from synapse_tui.hooks.lock_database import LockDatabase
from synapse_tui.system.process_times import is_alive, process_name

PAUSE = 0.002


def contend(folder: Path, name: str, count: int, seed: int) -> None:
    """Take every lock once; prints how often another held one, and every second holder."""
    chance = random.Random(seed)
    safety = LockDatabase(folder / "locks.db", alive=is_alive)
    holder = Holder(name, process=process_name(os.getpid()))
    own = folder / name
    own.write_text(holder.process)
    waits = 0
    left = list(range(count))
    chance.shuffle(left)
    while left:
        number = left.pop()
        if not safety.acquire_locks([f"f{number}"], holder).allowed:
            waits += 1
            left.insert(chance.randint(0, len(left)), number)
            continue
        mark = folder / f"held-{number}"
        if not marked(mark, own):
            print("two holders of", number, flush=True)
            continue
        safety.record_modification(change(f"f{number}", name))
        mark.unlink()
        safety.release_lock(f"f{number}", name)
    print("waits", waits)
    safety.close()


def marked(mark: Path, own: Path) -> bool:
    """Make the mark of who holds a lock; gives whether no living process has made it already."""
    while True:
        try:
            mark.hardlink_to(own)
        except FileExistsError:
            if is_alive(mark.read_text()):
                return False
            mark.unlink()  # that process has failed, and its locks have ended with it
        else:
            return True


def hold_for_ever(folder: Path, name: str) -> None:
    """Take and give back locks until killed; each step is written to a log of its own, before and after."""
    safety = LockDatabase(folder / "locks.db", alive=is_alive)
    holder = Holder(name, process=process_name(os.getpid()))
    log = (folder / f"{name}.log").open("a", buffering=1)
    for number in range(10**9):
        file = f"k{number % 7}"
        if safety.acquire_locks([file], holder).allowed:
            log.write(f"held {file}\n")
            safety.record_modification(change(file, name))
            safety.release_lock(file, name)


def change(file: str, name: str) -> Modification:
    from datetime import UTC, datetime

    return Modification(file, ChangeType.MODIFY, name, "", datetime.now(UTC))


def race(folder: Path, processes: int, locks: int) -> None:
    begun = time.perf_counter()
    started = [child(folder, "contend", f"synapse-a-{at}", str(locks), str(at)) for at in range(processes)]
    said = [process.communicate()[0] for process in started]
    seconds = time.perf_counter() - begun
    twice = sum(text.count("two holders") for text in said)
    failed = sum(process.returncode != 0 for process in started)
    with closing(sqlite3.connect(folder / "locks.db")) as connection:
        changes = connection.execute("SELECT COUNT(*) FROM file_modifications").fetchone()[0]
    took = processes * locks
    print(
        f"{processes} processes, {locks} locks: {twice} second holders, {failed} processes failed, "
        f"{changes} of {took} changes, {took / seconds:.0f} locks/s"
    )


def kills(folder: Path, count: int) -> None:
    chance = random.Random(1)
    worst = 0.0
    wrong = 0
    safety = LockDatabase(folder / "locks.db", alive=is_alive)
    for at in range(count):
        process = child(folder, "hold", f"synapse-k-{at}")
        while not (folder / f"synapse-k-{at}.log").exists():
            time.sleep(PAUSE)
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        begun = time.perf_counter()
        free = safety.acquire_locks([f"k{number}" for number in range(7)], Holder("synapse-next-1"))
        worst = max(worst, time.perf_counter() - begun)
        wrong += not free.allowed
        safety.release_agent("synapse-next-1")
    facts = safety.facts()
    safety.close()
    sound, slowest = facts["integrity"], worst * 1000
    print(f"{count} kills: {wrong} locks not free, database {sound}, slowest take-over {slowest:.0f} ms")


def child(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.bench.locks", "--child", str(folder), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main(words: Sequence[str]) -> None:
    if words[:1] == ["--child"]:
        folder, what, name, *rest = words[1:]
        if what == "contend":
            contend(Path(folder), name, *map(int, rest))
        else:
            hold_for_ever(Path(folder), name)
        return
    processes, locks, killed = [*map(int, words), *(16, 1000, 200)[len(words) :]]
    with tempfile.TemporaryDirectory() as folder:
        race(Path(folder), processes, locks)
        kills(Path(folder), killed)


if __name__ == "__main__":
    main(sys.argv[1:])
