"""Memory of a session's host over a long quiet time, and what an answer costs on disk.

`python -m tests.bench.soak [MINUTES [FLOODS [SCROLLBACK]]]`, 60 minutes without floods by default. First each
agent answers more messages than a host keeps in memory, so that what is bounded is full. Then a message goes
to one of four dummies every 2.5 seconds, half of them are streamed and half are polled; pages of tasks are
listed, and a terminal attaches and detaches every two minutes. The resident memory is printed every 30
seconds, and in the end its slope by least squares (target: at most 2 MB an hour), what kinds of objects
became more, and the size of `history.db` for each byte of the answers in it. The agents' scrollback is kept
to 200 lines by default, which are full after the warm-up. With FLOODS, so many of the first messages let the
agents write for a second as fast as they can: what is left of that is the scrollback.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.bench.a2a_client import OVER, Client, TooMany, message
from tests.bench.search import WORDS
from tests.bench.sessions import Bench, leave

ROOT = Path(__file__).parents[2]
AGENTS = 4
PAUSE = 2.5
"""Seconds from one message to the next."""
SAMPLE = 30.0
ATTACH = 120.0
SCROLLBACK = 200
FILL = 550
"""Messages to each agent before the time begins; a host keeps the last 500 tasks of an agent in memory."""
WARM_UP = 0.2
"""Which part of the time is over before memory is compared."""
COUNTER = """
import collections, gc, json, os, signal

def count(*_):
    gc.collect()
    types = (type(each) for each in gc.get_objects())
    kinds = collections.Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in types)
    path = f"{os.environ['SOAK_COUNTS']}.{os.getpid()}"
    with open(path + ".new", "w") as file:
        json.dump(kinds, file)
    os.rename(path + ".new", path)

signal.signal(signal.SIGUSR2, count)
"""
"""Imported by the host: on a signal it writes down how many objects of each kind there are."""


class Soak:
    """A session of dummies that answer with what they were asked.

    Args:
        folder: Where everything of it lies.
        scrollback: How many lines each terminal keeps.
    """

    def __init__(self, folder: Path, scrollback: int) -> None:
        self.bench = Bench(folder)
        self._counts = folder / "counts"
        sites = folder / "site"
        sites.mkdir()
        (sites / "sitecustomize.py").write_text(COUNTER)
        self.bench.environ |= {"PYTHONPATH": f"{sites}:{ROOT}", "SOAK_COUNTS": str(self._counts)}
        profile = folder / ".synapse" / "profiles" / "dummy.yaml"
        fields = yaml.safe_load(profile.read_text())
        fields["args"] = [*fields["args"], "--word-delay", "0", "--reply", "{text}"]
        profile.write_text(yaml.safe_dump(fields))
        settings = {"tui": {"board": 0, "scrollback": scrollback}}
        (folder / ".synapse" / "settings.json").write_text(json.dumps(settings))
        for _ in range(AGENTS):
            self.bench.run("synapse", "start", "dummy")
        self.host = self.bench.host()
        self.database = folder / ".synapse" / "history.db"
        self.endpoints = self._endpoints(folder / ".a2a" / "registry")
        self.done = self.sent = self.refused = 0
        self._random = random.Random(1)

    @staticmethod
    def _endpoints(registry: Path) -> list[str]:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            records = [json.loads(path.read_text()) for path in registry.glob("synapse-dummy-*.json")]
            if sum(record.get("status") == "READY" for record in records) == AGENTS:
                return sorted(record["endpoint"] for record in records)
            time.sleep(0.3)
        raise TimeoutError("the agents are not ready")

    @property
    def megabytes(self) -> float:
        """Resident memory of the host."""
        return float(self.host.memory_info().rss / 1e6)

    def objects(self) -> Counter[str]:
        """How many objects of each kind the host has."""
        path = Path(f"{self._counts}.{self.host.pid}")
        path.unlink(missing_ok=True)
        self.host.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        return Counter(json.loads(path.read_text()))

    async def send(self, number: int, directive: str = "") -> None:
        """Send a message and follow it until its end, streamed or polled."""
        text = " ".join(self._random.choices(WORDS, k=100))
        client = Client(self.endpoints[number % AGENTS])
        self.sent += 1
        try:
            parameters = message(f"{number} {text} {directive}".rstrip())
            if number // AGENTS % 2:
                async with contextlib.aclosing(client.stream("SendStreamingMessage", parameters)) as events:
                    async for _ in events:
                        pass
            else:
                parameters["configuration"] = {"returnImmediately": True}
                task = (await client.call("SendMessage", parameters))["task"]
                while task["status"]["state"] not in OVER:
                    await asyncio.sleep(0.5)
                    task = await client.call("GetTask", {"id": task["id"]})
                await client.call("ListTasks", {"pageSize": 20})
            self.done += 1
        except (TooMany, OSError, RuntimeError, asyncio.IncompleteReadError) as error:
            self.refused += 1
            print(f"message {number}: {error!r}", flush=True)
        finally:
            await client.close()

    def show_for(self, seconds: float) -> None:
        """Attach a terminal and detach it."""
        client = self.bench.client()
        client.wait(lambda: "F10" in client.text, "the screen")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            client.read(0.2)
        leave(client)


async def fill(soak: Soak) -> None:
    """Send one message after the other to each agent until all that is bounded is full."""

    async def agent(place: int) -> None:
        for number in range(FILL):
            await soak.send(number * AGENTS + place)

    await asyncio.gather(*map(agent, range(AGENTS)))
    print(f"filled: RSS {soak.megabytes:6.1f} MB  tasks {soak.done}", flush=True)


async def run(soak: Soak, minutes: float, floods: int) -> tuple[list[tuple[float, float]], Counter[str]]:
    """Send until the time is over.

    Returns:
        Hours and megabytes of each sample, and how many objects of each kind there were after the warm-up.
    """
    began = time.monotonic()
    warm: Counter[str] = Counter()
    samples: list[tuple[float, float]] = []
    due_sample = due_attach = began
    running: set[asyncio.Task[None]] = set()
    number = 0
    while (now := time.monotonic()) < began + 60 * minutes:
        running.add(asyncio.create_task(soak.send(number, "%%flood:1%%" if number < floods else "")))
        running = {each for each in running if not each.done()}
        number += 1
        if now >= due_sample:
            due_sample += SAMPLE
            samples.append(((now - began) / 3600, soak.megabytes))
            size = _size(soak.database) / 1e6
            print(
                f"{(now - began) / 60:6.1f} min  RSS {soak.megabytes:6.1f} MB  history {size:6.2f} MB  "
                f"tasks {soak.done}",
                flush=True,
            )
        if not warm and now >= began + 60 * minutes * WARM_UP:
            warm = soak.objects()
        if now >= due_attach:
            due_attach += ATTACH
            await asyncio.to_thread(soak.show_for, 5)
        await asyncio.sleep(PAUSE)
    if running:
        await asyncio.wait(running, timeout=60)
    return samples, warm


def _size(database: Path) -> int:
    return sum(path.stat().st_size for path in database.parent.glob(database.name + "*"))


def report(soak: Soak, samples: list[tuple[float, float]], before: Counter[str], after: Counter[str]) -> None:
    """Print what was found."""
    steady = samples[int(len(samples) * WARM_UP) :]
    if len(steady) > 1:
        slope = statistics.linear_regression(*zip(*steady, strict=True)).slope
        hours = steady[-1][0] - steady[0][0]
        print(
            f"slope {slope:+.2f} MB/h over {hours:.2f} h (RSS {steady[0][1]:.1f} -> {steady[-1][1]:.1f} MB)"
        )
    print(f"sent {soak.sent}, ended {soak.done}, refused {soak.refused}")
    print(f"objects {before.total()} -> {after.total()}")
    for kind, more in (after - before).most_common(12):
        print(f"  {more:+8} {kind}")
    print_disk(soak.database)


def print_disk(database: Path) -> None:
    """Print the size of the database for each byte of an answer, and which tables need it."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        texts = "SUM(LENGTH(CAST(input AS BLOB))), SUM(LENGTH(CAST(output AS BLOB))), COUNT(*)"
        asked, answered, tasks = connection.execute(f"SELECT {texts} FROM tasks").fetchone()
        size = _size(database)
        print(
            f"history.db {size / 1e6:.2f} MB: {tasks} tasks, messages {asked / 1e6:.2f} MB, answers "
            f"{answered / 1e6:.2f} MB: {size / answered:.2f} bytes for each byte of an answer, "
            f"{size / (asked + answered):.2f} for each byte of both"
        )
        with contextlib.suppress(sqlite3.OperationalError):  # an SQLite without `dbstat`
            pages = "SELECT name, SUM(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 12"
            for name, bytes_ in connection.execute(pages):
                print(f"  {bytes_ / 1e6:8.2f} MB {name}")


def main() -> None:
    """Read the command line."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    floods = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    scrollback = int(sys.argv[3]) if len(sys.argv) > 3 else SCROLLBACK
    with tempfile.TemporaryDirectory(prefix="syn-soak-") as name, _session(Path(name), scrollback) as soak:
        asyncio.run(fill(soak))
        samples, warm = asyncio.run(run(soak, minutes, floods))
        report(soak, samples, warm, soak.objects())


@contextlib.contextmanager
def _session(folder: Path, scrollback: int) -> Iterator[Soak]:
    soak = Soak(folder, scrollback)
    try:
        yield soak
    finally:
        soak.bench.run("synapse-tui", "kill")


if __name__ == "__main__":
    main()
