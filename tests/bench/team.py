"""A team's PostgreSQL under load: `python -m tests.bench.team [PROCESSES [LOCKS [TASKS]]]`, 16, 1000, 100000.

Makes a server of its own. First processes race for locks as in `tests.bench.locks`, half of them on another
machine (as they say). Then searches of `tests.bench.search` in a history of many tasks, with the extension
pg_trgm and without.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from synapse_tui.core.locks import Holder
from synapse_tui.hooks.lock_database import LockDatabase
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.records import TaskQuery
from synapse_tui.messages.storage.location import TeamDatabase
from synapse_tui.system.process_times import is_alive, process_name
from tests.bench.locks import change
from tests.bench.search import NAMES, QUERIES, ask, fill_index, rows
from tests.postgres_kit import Server, running, why_not


def contend(folder: Path, url: str, machine: str, count: int, seed: int) -> None:
    """Take every lock once; prints how often another held one, and every second holder."""
    chance = random.Random(seed)
    safety = LockDatabase(TeamDatabase(url, machine, folder / "app"), alive=is_alive, busy=30)
    name = f"synapse-a-{seed}"
    holder = Holder(name, process=process_name(os.getpid()))
    waits, longest = 0, 0.0
    left = list(range(count))
    chance.shuffle(left)
    while left:
        number = left.pop()
        begun = time.perf_counter()
        allowed = safety.acquire_locks([f"f{number}"], holder).allowed
        longest = max(longest, time.perf_counter() - begun)
        if not allowed:
            waits += 1
            left.insert(chance.randint(0, len(left)), number)
            continue
        mark = folder / f"held-{number}"
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            print("two holders of", number, flush=True)
            continue
        safety.record_modification(change(f"f{number}", name))
        mark.unlink()
        safety.release_lock(f"f{number}", name)
    print(f"waits {waits} longest {longest * 1000:.0f}")
    safety.close()


def race(server: Server, processes: int, locks: int) -> None:
    with tempfile.TemporaryDirectory() as name, server.database() as url:
        folder = Path(name).resolve()
        subprocess.run(["git", "init", "-q", str(folder / "app")], check=True)
        remote = ["remote", "add", "origin", "git@host.example:team/app.git"]
        subprocess.run(["git", "-C", str(folder / "app"), *remote], check=True)
        begun = time.perf_counter()
        started = [child(name, url, f"machine-{at % 2}", locks, at) for at in range(processes)]
        said = [process.communicate()[0] for process in started]
        seconds = time.perf_counter() - begun
        twice = sum(text.count("two holders") for text in said)
        failed = sum(process.returncode != 0 for process in started)
        database = url.rpartition("/")[2].partition("?")[0]
        changes = server.sql("SELECT count(*) FROM synapse.file_modifications", database=database)[0][0]
        left = server.sql("SELECT count(*) FROM synapse.file_locks", database=database)[0][0]
        took = processes * locks
        longest = max((int(text.split()[-1]) for text in said if text), default=0)
        print(
            f"{processes} processes, {locks} locks: {twice} second holders, {failed} processes failed, "
            f"{changes} of {took} changes, {left} locks left, {took / seconds:.0f} locks/s, "
            f"longest question {longest} ms"
        )


def child(folder: str, url: str, machine: str, locks: int, seed: int) -> subprocess.Popen[str]:
    words = ["--child", folder, url, machine, str(locks), str(seed)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bench.team", *words], stdout=subprocess.PIPE, text=True
    )


def search(server: Server, tasks: int, *, trigrams: bool) -> None:
    print(f"-- {tasks} tasks, {'with' if trigrams else 'without'} pg_trgm")
    with tempfile.TemporaryDirectory() as folder, server.database(trigrams=trigrams) as url:
        location = TeamDatabase(url, "m", Path(folder))
        archive = Archive(location, busy=120)
        database = url.rpartition("/")[2].partition("?")[0]
        if not trigrams:
            server.sql("DROP EXTENSION IF EXISTS pg_trgm CASCADE", database=database)
        fill(database, server, tasks)
        fill_index(archive)
        server.sql("VACUUM ANALYZE", database=database)
        for query in QUERIES:
            ask(repr(query), lambda: archive.select(TaskQuery(query=query)))  # noqa: B023 - called at once
        ask("list", lambda: archive.select(TaskQuery()))
        ask("list agent=seldom", lambda: archive.select(TaskQuery(agent="seldom")))
        ask("statistics", lambda: [archive.stats(TaskQuery())])
        archive.close()


def fill(database: str, server: Server, tasks: int) -> None:
    import psycopg

    with (
        psycopg.connect(host=str(server.folder), dbname=database, user="postgres") as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY synapse.tasks ({', '.join(NAMES)}) FROM STDIN") as copy,
    ):
        at = NAMES.index("sender_verified"), NAMES.index("truncated"), NAMES.index("response_expected")
        for row in rows(tasks):
            copy.write_row([bool(value) if place in at else value for place, value in enumerate(row)])


def main(words: Sequence[str]) -> None:
    if words[:1] == ["--child"]:
        folder, url, machine, *numbers = words[1:]
        contend(Path(folder), url, machine, *map(int, numbers))
        return
    if reason := why_not():
        sys.exit(reason)
    processes, locks, tasks = [*map(int, words), *(16, 1000, 100_000)[len(words) :]]
    with running() as server:
        race(server, processes, locks)
        for trigrams in (True, False) if tasks else ():
            search(server, tasks, trigrams=trigrams)


if __name__ == "__main__":
    main(sys.argv[1:])
