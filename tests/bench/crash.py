"""Kills the host at random moments of deliveries and compares what it knows with what the agent was given.

`python -m tests.bench.crash [KILLS] [SEED]` (200 kills by default). Each time a host is started on the same
database, messages are sent to its dummy over HTTP, and the host is killed by SIGKILL: at any moment after its
start, or a few milliseconds after the dummy's log tells that a text was pasted or submitted, where it hurts
most. In the end the dummy's log is held against the database: nothing may have been submitted twice, and what
was not submitted must be shown as held or uncertain, unless its sender was never told that it was taken.

`python -m tests.bench.crash restored [RUNS] [SEED]` (6 runs) does so with whole sessions and `tui.restore:
always`: two kills among 200 messages to two agents, each session started again by `synapse start` or
`synapse-tui`. In the end nothing may be held but what is uncertain.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from synapse_tui.errors import SynapseError
from tests.bench.sessions import Bench, leave
from tests.ports import free_ports
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
MESSAGES = 3
"""How many are sent before each kill."""
SESSION_MESSAGES = 200
"""How many are sent to a whole session that is killed."""
PATIENCE = 120.0
NOT_WRITTEN = "history cannot be written"
_TEXT = re.compile(r"message \d+-\d+$")


@dataclass
class Outcome:
    """What was sent and what became of it.

    Attributes:
        sent: Every text that was handed to the client.
        taken: Those whose sender was told that they were taken.
        warned: Those whose sender was told that they are kept in memory alone.
        given: How often the dummy was given each text.
        stored: State, delivery and reason of each text in the database.
        struck: How many messages were in which state of delivery when the host was killed.
    """

    sent: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)
    given: Counter[str] = field(default_factory=Counter)
    stored: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    struck: Counter[str] = field(default_factory=Counter)

    @property
    def twice(self) -> list[str]:
        """What the agent was given more than once."""
        return [text for text, count in self.given.items() if count > 1]

    def shown(self, text: str) -> bool:
        """Whether a person sees that a message was, or may be, not submitted."""
        _, delivery, reason = self.stored.get(text, ("", "", ""))
        return delivery == "held" and bool(reason)

    @property
    def lost(self) -> list[str]:
        """What was taken, not given to the agent, and not shown as held."""
        return [text for text in self.taken if not self.given[text] and not self.shown(text)]

    @property
    def untrue(self) -> list[str]:
        """What the database says was submitted, and the agent was never given."""
        ended = {"submitted", "done", "failed"}
        return [text for text, row in self.stored.items() if row[1] in ended and not self.given[text]]

    def table(self) -> Mapping[str, int]:
        """The numbers, by what they count."""
        uncertain = [text for text, row in self.stored.items() if row[2].startswith("uncertain")]
        return {
            "messages handed to the client": len(self.sent),
            "taken (the sender was told)": len(self.taken),
            "held in memory alone (the sender was told)": len(self.warned),
            "given to the agent once": sum(count == 1 for count in self.given.values()),
            "given to the agent twice": len(self.twice),
            "shown as uncertain, and was given": sum(self.given[text] > 0 for text in uncertain),
            "shown as uncertain, and was not given": sum(not self.given[text] for text in uncertain),
            "shown as held": sum(row[1] == "held" for row in self.stored.values()) - len(uncertain),
            "never taken nor stored (the sender was told that nothing is known)": sum(
                text not in {*self.stored, *self.taken, *self.warned} for text in self.sent
            ),
            "lost": len(self.lost),
            "said to be submitted and was not": len(self.untrue),
            **{f"under way when killed: {state}": count for state, count in sorted(self.struck.items())},
        }


class Victim:
    """A host that is started again and again on the same folder.

    Args:
        folder: Where everything of it lies.
        options: Further words of its command line.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self._options = options
        self.log = folder / "dummy.jsonl"
        self.database = folder / "home" / ".synapse" / "history.db"
        self.port = free_ports()
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0
        self._events: list[dict[str, str]] = []

    @property
    def endpoint(self) -> str:
        """URL of the dummy's server."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the host; its agent is open when this returns, and perhaps not ready yet."""
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (self.folder / "host.log").open("ab") as errors:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.bench.crash_host",
                    str(self.folder),
                    str(self.port),
                    *self._options,
                ],
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                env=environ,
            )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != b"open":
            raise RuntimeError((self.folder / "host.log").read_text())

    def end(self, number: int) -> None:
        """Send a signal that ends the host, and wait until it has ended; nothing happens when it has."""
        if self._process is None or self._process.stdout is None:
            return
        self._process.send_signal(number)
        self._process.wait()
        self._process.stdout.close()

    def events(self, *names: str) -> list[dict[str, str]]:
        """Lines of the dummy's log."""
        if self.log.exists():
            with self.log.open("rb") as file:
                file.seek(self._read)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]  # a line may be read while it is being written
            self._read += len(whole)
            self._events += map(json.loads, whole.splitlines())
        return [event for event in self._events if event["event"] in names]

    def rows(self) -> dict[str, tuple[str, str, str]]:
        """State, delivery and reason of each message in the database."""
        return _rows(self.database)

    def wait_quiet(self) -> None:
        """Wait until all that can go on by itself has ended."""
        wait_until(self._is_quiet, lambda: f"messages under way: {self.rows()}", PATIENCE)

    def _is_quiet(self) -> bool:
        try:
            return all(_at_rest(row) for row in self.rows().values())
        except sqlite3.OperationalError:  # the file is being made, or mended after the kill
            return False


def _at_rest(row: tuple[str, str, str]) -> bool:
    state, delivery, reason = row
    return state in ("completed", "failed", "canceled") or (
        delivery == "held" and reason.startswith(("uncertain", "agent did not take"))
    )


class Killer:
    """Sends messages and kills.

    Args:
        victim: What is killed.
        chance: Decides when.
    """

    def __init__(self, victim: Victim, chance: random.Random) -> None:
        self._victim = victim
        self._chance = chance
        self.outcome = Outcome()

    def strike(self, number: int) -> None:
        """Start the host, send messages, and kill it."""
        self._victim.start()
        texts = [f"message {number}-{index}" for index in range(MESSAGES)]
        self.outcome.sent += texts
        senders = [threading.Thread(target=self._send, args=(text,)) for text in texts]
        for sender in senders:
            sender.start()
        self._wait_for_moment(set(texts), senders)
        self._victim.end(signal.SIGKILL)
        for sender in senders:
            sender.join()
        with contextlib.suppress(sqlite3.OperationalError):  # it was killed before it made the file
            states = Counter(row[1] for row in self._victim.rows().values() if not _at_rest(row))
            self.outcome.struck.update(states)

    def _send(self, text: str) -> None:
        with contextlib.suppress(SynapseError):
            answer = Client(timeout=PATIENCE).call(self._victim.endpoint, calls.send(text))
            # On a disk that does not answer in time the sender is told that nothing is written down.
            taken = self.outcome.warned if NOT_WRITTEN in answer.reason else self.outcome.taken
            taken.add(text)

    def _wait_for_moment(self, texts: set[str], senders: Sequence[threading.Thread]) -> None:
        """Wait for any moment of the start, or for one around a paste or an Enter of what was taken."""
        if self._chance.random() < 1 / 4:
            time.sleep(self._chance.uniform(0, 4))
            return
        while not texts & self.outcome.taken and any(sender.is_alive() for sender in senders):
            time.sleep(0.001)  # a host on a busy machine takes its time for the first
        wanted = len(self._victim.events("paste", "submit")) + self._chance.randint(1, 2 * MESSAGES)
        deadline = time.monotonic() + 10
        while len(self._victim.events("paste", "submit")) < wanted and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(self._chance.uniform(0, 0.06))

    def settle(self) -> Outcome:
        """Start the host a last time, let it finish, and look at everything."""
        self._victim.start()
        self._victim.wait_quiet()
        self._victim.end(signal.SIGTERM)
        self.outcome.stored = self._victim.rows()
        texts = (_TEXT.search(event["text"]) for event in self._victim.events("submit"))
        self.outcome.given.update(match[0] for match in texts if match)
        return self.outcome


def restored(folder: Path, chance: random.Random) -> Counter[str]:
    """Kill a session twice; how many messages stand how when all that goes on by itself has ended."""
    bench = Bench(folder)
    settings = folder / ".synapse" / "settings.json"
    settings.write_text(json.dumps({"tui": {"restore": "always"}}))
    for each in (settings.parent, settings.parent / "profiles"):
        each.chmod(0o700)
    try:
        for _ in range(2):
            bench.run("synapse", "start", "dummy", "--", "--word-delay", "0")
        addresses = [each["endpoint"] for each in json.loads(bench.run("synapse", "list", "--json"))]
        for number in range(SESSION_MESSAGES):
            Client(timeout=PATIENCE).call(chance.choice(addresses), calls.send(f"message {number}"))
        for _ in range(2):
            time.sleep(chance.uniform(1.5, 8))  # what was opened is saved after a second
            host = bench.host()
            host.kill()
            host.wait(PATIENCE)
            if chance.random() < 1 / 2:
                bench.run("synapse", "start", "dummy")
            else:
                client = bench.client()
                client.wait(lambda: "ready" in client.text, "the agents")  # noqa: B023 - called at once
                leave(client)
        deadline = time.monotonic() + PATIENCE + SESSION_MESSAGES
        while not all(map(_at_rest, _rows(folder / ".synapse" / "history.db").values())):
            if time.monotonic() > deadline:
                break
            time.sleep(0.5)
        found = _rows(folder / ".synapse" / "history.db").values()
        return Counter(f"{delivery} {reason}".strip() for _, delivery, reason in found)
    finally:
        bench.run("synapse-tui", "kill", "--all")


def _rows(database: Path) -> dict[str, tuple[str, str, str]]:
    """State, delivery and reason of each message in a database."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection:
        found = connection.execute("SELECT input, status, delivery, reason FROM tasks").fetchall()
    return {text: (status, delivery, reason) for text, status, delivery, reason in found}


def _restored(runs: int, seed: int) -> bool:
    """Print how the messages of each run stand.

    Returns:
        Whether some were held that were not uncertain, or lost.
    """
    wrong = False
    for number in range(runs):
        with _folder() as folder:
            found = restored(folder, random.Random(seed + number))
        words = ", ".join(f"{count} {standing}" for standing, count in sorted(found.items()))
        print(f"run {number}, seed {seed + number}: {words}", flush=True)
        held = (standing for standing in found if standing.startswith("held"))
        wrong |= any(not standing.startswith("held uncertain") for standing in held)
        wrong |= found.total() != SESSION_MESSAGES
    return wrong


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="synapse-crash-") as name:
        yield Path(name)


def run(folder: Path, kills: int, seed: int) -> Outcome:
    """Kill so many times.

    Args:
        folder: Where everything of the host lies.
        kills: How often.
        seed: Decides the moments.
    """
    victim = Victim(folder)
    killer = Killer(victim, random.Random(seed))
    try:
        for number in range(kills):
            killer.strike(number)
        return killer.settle()
    finally:
        victim.end(signal.SIGKILL)


def main() -> None:
    """Print the table; the status is 1 when something was given twice, lost, or held that should go on."""
    if sys.argv[1:2] == ["restored"]:
        runs = int(sys.argv[2]) if len(sys.argv) > 2 else 6
        sys.exit(_restored(runs, int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)))
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    with _folder() as folder:
        start = time.monotonic()
        outcome = run(folder, kills, seed)
        print(f"{kills} kills in {time.monotonic() - start:.0f} s, seed {seed}")
    for name, count in outcome.table().items():
        print(f"{count:6}  {name}")
    for name in ("twice", "lost", "untrue"):
        for text in getattr(outcome, name):
            print(name, text, outcome.given[text], outcome.stored.get(text))
    sys.exit(bool(outcome.twice or outcome.lost or outcome.untrue))


if __name__ == "__main__":
    main()
