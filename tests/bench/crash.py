"""Kills hosts at random moments and compares what they know with what agents and receivers were given.

`python -m tests.bench.crash [SCENARIO ...] [--kills 20] [--messages 3] [--seed N]` (all scenarios but `older`
by default). For each kill, hosts are started on the same database, messages are sent to their dummies over
HTTP, and a host is killed by SIGKILL: at any moment after its start, or a few milliseconds after a dummy
logged a pasted or submitted text or the end of a turn, where it hurts most. The scenarios:

- `messages`: a person writes to one host.
- `pushes`: an A2A client writes to one host, each message with a push configuration, by turns 1.0 and 0.3. A
  message without an answer is sent again under its id.
- `replies`: an agent asks another one of its host, and each ended message owes it one reply.
- `remote`: an agent of one host asks an agent of another one. Either is killed, or both. A message without
  acknowledgement is sent again under its id.
- `shared`: two hosts on one database, each as in `replies`.
- `older`: a host of the source tree `--older` (`git worktree add --detach FOLDER COMMIT`) beside one of
  today, on one database.

Each agent that is written to has a webhook. Its receiver refuses every other notification once, so that some
wait for their next attempt when a host is killed. In the end no text may have been submitted twice, and one
that was acknowledged and not submitted must be shown as held or uncertain; each ended message has one reply
(or one that is shown as uncertain), and its end was pushed under one id. The exit status is 1 otherwise.
"""

from __future__ import annotations

import argparse
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
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from synapse_tui.core.errors import PeerRefused, PeerSilent, SynapseError
from synapse_tui.core.model import Sender
from tests.ports import free_ports
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
MESSAGES = 3  # before each kill
LIMIT = 120.0  # seconds for an answer, and for the end of all work
NOT_WRITTEN = "history cannot be written"
_TEXT = re.compile(r"message (\d+-\d+)$")
_REPLY = re.compile(r"\(reply to ([0-9a-f]{8})\)|answer to .*message (\d+-\d+)$", re.DOTALL)
_FINAL = ("completed", "failed", "canceled", "rejected")


@dataclass(frozen=True)
class Scenario:
    """What is killed, and who writes to whom."""

    hosts: int = 1
    asks: bool = True  # agents write and wait for replies; otherwise a person does
    across: bool = False  # agents write to those of the other host
    configs: bool = False  # an A2A client writes, with push configurations
    older: bool = False  # the second host is of an older version


SCENARIOS: Mapping[str, Scenario] = {
    "messages": Scenario(asks=False),
    "pushes": Scenario(asks=False, configs=True),
    "replies": Scenario(),
    "remote": Scenario(2, across=True),
    "shared": Scenario(2),
    "older": Scenario(2, asks=False, older=True),
}


@dataclass(frozen=True)
class Row:
    id: str
    agent: str
    sender: str
    text: str
    state: str
    delivery: str
    reason: str
    reply: str
    metadata: str

    @property
    def answers(self) -> str:
        """The id of the message that it answers, if it is a reply."""
        return str(json.loads(self.metadata).get("in_reply_to", ""))

    @property
    def at_rest(self) -> bool:
        held = self.delivery == "held" and self.reason.startswith(("uncertain", "agent did not take"))
        return self.reply != "due" and (self.sender == self.agent or self.state in _FINAL or held)

    @property
    def shown(self) -> bool:
        """Whether a person sees that it was, or may be, not submitted."""
        return self.delivery == "held" and bool(self.reason)


@dataclass
class Outcome:
    """What was sent and what became of it; the messages are named by their numbers.

    Attributes:
        taken: Messages whose sender was told that they were taken.
        warned: Those whose sender was told that they are kept in memory alone.
        given: How often an agent was given each message.
        struck: How many messages were in which state of delivery when a host was killed.
        replied: How often the sender was given a reply to each message.
        unproved: Messages with a reply of which it is uncertain whether the sender was given it.
        ends: The ids of the notifications of ends, by subscription and task.
        due: The subscription and task of each end that was to be pushed, and the message.
        stories: What the database knows of messages with faults.
    """

    asks: bool = False
    sent: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    warned: set[str] = field(default_factory=set)
    given: Counter[str] = field(default_factory=Counter)
    stored: dict[str, Row] = field(default_factory=dict)
    struck: Counter[str] = field(default_factory=Counter)
    replied: Counter[str] = field(default_factory=Counter)
    unproved: set[str] = field(default_factory=set)
    ends: Mapping[tuple[str, str], set[str]] = field(default_factory=dict)
    due: dict[tuple[str, str], str] = field(default_factory=dict)
    stories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def lost(self) -> list[str]:
        """What was taken, not given to the agent, and not shown as held."""
        missing = (text for text in self.taken if not self.given[text])
        return [text for text in missing if text not in self.stored or not self.stored[text].shown]

    @property
    def untrue(self) -> list[str]:
        """What the database says was submitted, and the agent was never given."""
        ended = {"submitted", "done", "failed"}
        return [text for text, row in self.stored.items() if row.delivery in ended and not self.given[text]]

    @property
    def ended(self) -> list[str]:
        return [text for text, row in self.stored.items() if row.state in _FINAL]

    @property
    def undelivered(self) -> list[str]:
        """Messages whose reply could not be delivered, of which a notice told."""
        return [text for text in self.ended if self.stored[text].reply == "failed" and not self.replied[text]]

    @property
    def unanswered(self) -> list[str]:
        known = {*self.replied, *self.unproved, *self.undelivered}
        return [text for text in self.ended if self.asks and text not in known]

    @property
    def faults(self) -> dict[str, list[str]]:
        """What may not be, by the kind of fault."""
        return {
            "given twice": _counted(self.given),
            "lost": self.lost,
            "said to be submitted and was not": self.untrue,
            "replied to twice": _counted(self.replied),
            "ended without a reply": self.unanswered,
            "end pushed under several ids": [
                text for push, text in self.due.items() if len(self.ends.get(push, ())) > 1
            ],
            "end not pushed": [text for push, text in self.due.items() if not self.ends.get(push)],
        }

    def table(self) -> Mapping[str, int]:
        """The numbers, by what they count."""
        uncertain = [text for text, row in self.stored.items() if row.reason.startswith("uncertain")]
        known = {*self.stored, *self.taken, *self.warned}
        replies = {
            "replied to once": sum(count == 1 for count in self.replied.values()),
            "reply shown as uncertain": len(self.unproved - set(self.replied)),
            "reply failed, with a notice": len(self.undelivered),
        }
        return {
            "messages handed to the client": len(self.sent),
            "taken (the sender was told)": len(self.taken),
            "held in memory alone (the sender was told)": len(self.warned),
            "never taken nor stored": sum(text not in known for text in self.sent),
            "given to the agent once": sum(count == 1 for count in self.given.values()),
            "shown as uncertain, and was given": sum(self.given[text] > 0 for text in uncertain),
            "shown as uncertain, and was not given": sum(not self.given[text] for text in uncertain),
            "shown as held": sum(row.delivery == "held" for row in self.stored.values()) - len(uncertain),
            "ended": len(self.ended),
            "ends pushed": sum(push in self.ends for push in self.due),
            **(replies if self.asks else {}),
            **{fault: len(texts) for fault, texts in self.faults.items()},
            **{f"under way when killed: {state}": count for state, count in sorted(self.struck.items())},
        }


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [text for text, count in counts.items() if count > 1]


class Receiver:
    """Receives the notifications of webhooks and of push configurations; refuses every other one once."""

    def __init__(self) -> None:
        self.ends: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._refused: set[str] = set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(length := int(self.headers["Content-Length"]))
                if len(data) < length:
                    return  # its host was killed
                taken = receiver._take(self.path, self.headers["X-Synapse-Delivery"], json.loads(data))
                self.send_response(204 if taken else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def _take(self, path: str, push_id: str, body: dict[str, Any]) -> bool:
        if int(push_id[0], 16) % 2 and push_id not in self._refused:
            self._refused.add(push_id)
            return False
        task = body.get("data") or body.get("task") or body.get("statusUpdate") or body
        status = task.get("status", "")
        state = status["state"] if isinstance(status, dict) else status
        if state.lower().removeprefix("task_state_") in _FINAL:
            task_id = task.get("task_id") or task.get("taskId") or task["id"]
            self.ends[path, task_id].add(push_id)
        return True

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Victim:
    """A host of a source tree that is started again and again on the same folder."""

    def __init__(self, folder: Path, *options: str, source: Path = ROOT) -> None:
        self.folder = folder
        self._options = options
        self.source = source
        self.database = folder / "home" / ".synapse" / "history.db"
        self.port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._read: Counter[str] = Counter()
        self._events: list[dict[str, str]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def agent(self) -> str:
        return f"synapse-dummy-{self.port}"

    def start(self) -> None:
        """Start the host unless it runs; its agents are open when this returns, and perhaps not ready yet."""
        with self._starting:
            if self._process is None or self._process.poll() is not None:
                self._start()

    def _start(self) -> None:
        script = self.source / "tests" / "bench" / "crash_host.py"
        with (self.folder / "host.log").open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(script), str(self.folder), str(self.port), *self._options],
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.source,
                env={**os.environ, "PYTHONPATH": str(self.source)},
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

    def send(self, client: Client, text: str) -> str:
        """Send a message of a person to the dummy; gives why it is held."""
        return client.call(self.endpoint, calls.send(text)).reason

    def send_with_push(self, client: Client, text: str, url: str, *, v03: bool) -> None:
        """Send a message as an A2A client that wants to be notified."""
        message: dict[str, Any] = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
        options: dict[str, Any] = {"returnImmediately": True, "taskPushNotificationConfig": {"url": url}}
        if v03:
            message |= {"role": "user", "kind": "message", "parts": [{"kind": "text", "text": text}]}
            options = {"blocking": False, "pushNotificationConfig": {"url": url}}
        method, version = ("message/send", "0.3") if v03 else ("SendMessage", "1.0")
        params = {"message": message, "configuration": options}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        send = calls.request("POST", f"/?A2A-Version={version}", body)
        try:
            answer = client.call(self.endpoint, send)
        except PeerSilent:
            self.start()
            answer = client.call(self.endpoint, send)
        if not isinstance(answer, dict) or "result" not in answer:
            raise PeerRefused(f"an A2A error: {answer}", 200)

    def ask(self, other: Victim, text: str) -> str:
        """Send a message of the second dummy and expect a reply, as `synapse send --response` does in it."""
        identity = json.loads((self.folder / "sender.json").read_text())
        agent_id, endpoint = identity["SYNAPSE_AGENT_ID"], identity["SYNAPSE_ENDPOINT"]
        tokens = {agent_id: identity["SYNAPSE_TOKEN"]}
        client = Client(token_of=tokens.get, timeout=LIMIT, environ={})
        sender = Sender(agent_id, "dummy", endpoint)
        create = calls.create(text, sender=sender, target_agent=other.agent, target_endpoint=other.endpoint)
        own = client.call(endpoint, create)
        about = {"sender_task_id": own.task_id, "origin_id": str(uuid4())}
        send = calls.send(text, sender=sender, response_expected=True, metadata=about)
        try:
            return client.call(other.endpoint, send).reason
        except PeerSilent:
            if other is self:
                raise
            other.start()
            return client.call(other.endpoint, send).reason

    def events(self, *names: str, log: str = "dummy") -> list[dict[str, str]]:
        """Lines of a dummy's log."""
        path = self.folder / f"{log}.jsonl"
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read[log])
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]  # a line may be read while it is being written
            self._read[log] += len(whole)
            self._events += ({**json.loads(line), "log": log} for line in whole.splitlines())
        return [event for event in self._events if event["event"] in names and event["log"] == log]

    def is_quiet(self) -> bool:
        """Whether all that can go on by itself has ended."""
        try:
            with contextlib.closing(sqlite3.connect(self.database, timeout=10)) as connection:
                pending = "SELECT COUNT(*) FROM push_deliveries WHERE state = 'pending'"
                if connection.execute(pending).fetchone()[0]:
                    return False
            return all(row.at_rest for row in rows_of(self.database))
        except sqlite3.OperationalError:  # the file is being made, or mended after the kill
            return False


class Attack:
    """Sends messages and kills at the moments that `chance` decides; `older` is an older source tree."""

    def __init__(
        self, folder: Path, scenario: Scenario, chance: random.Random, messages: int, older: Path = ROOT
    ) -> None:
        self._scenario = scenario
        self._chance = chance
        self._messages = messages
        self.outcome = Outcome(asks=scenario.asks)
        self._receiver = Receiver()
        self._hooked: set[str] = set()
        self.victims: list[Victim] = []
        (folder / "home").mkdir(mode=0o700)
        for number in range(scenario.hosts):
            own = folder / f"host-{number}"
            own.mkdir()
            (own / "home").symlink_to(folder / "home")
            source = older if scenario.older and number else ROOT
            options = ("sender", "echo") if scenario.asks else ()
            self.victims.append(Victim(own, *options, source=source))

    def begin(self) -> None:
        for victim in self.victims:
            victim.start()
            if victim.source != ROOT:
                continue  # its notifications are those of its version
            self._hooked.add(victim.agent)
            events = [f"task.{state}" for state in _FINAL]
            webhook = {"url": f"{self._receiver.url}webhook", "events": events, "persist": True}
            Client(timeout=LIMIT, environ={}).call(victim.endpoint, calls.add_webhook(webhook))

    def close(self) -> None:
        for victim in self.victims:
            victim.end(signal.SIGKILL)
        self._receiver.close()

    def strike(self, number: int) -> None:
        """Start the hosts, send messages, and kill one or all."""
        for victim in self.victims:
            victim.start()
        texts = [f"{number}-{index}" for index in range(self._messages)]
        self.outcome.sent += texts
        senders = [threading.Thread(target=self._send, args=(text,)) for text in texts]
        for sender in senders:
            sender.start()
        self._wait_for_moment(set(texts), senders)
        some = self._chance.randint(1, len(self.victims))
        for victim in self._chance.sample(self.victims, some):
            victim.end(signal.SIGKILL)
        with contextlib.suppress(sqlite3.OperationalError):  # it was killed before it made the file
            open_rows = (row for row in rows_of(self.victims[0].database) if not row.at_rest)
            self.outcome.struck.update(row.delivery for row in open_rows)
        for sender in senders:
            sender.join()

    def _send(self, text: str) -> None:
        words, at = f"message {text}", int(text.partition("-")[2]) % len(self.victims)
        victim = self.victims[at]
        with contextlib.suppress(SynapseError):
            if self._scenario.asks:
                target = self.victims[at - 1] if self._scenario.across else victim
                reason = victim.ask(target, words)
            elif self._scenario.configs:
                client, v03 = Client(timeout=LIMIT, environ={}), int(text.partition("-")[2]) % 2 == 1
                victim.send_with_push(client, words, f"{self._receiver.url}config", v03=v03)
                reason = ""
            else:
                reason = victim.send(Client(timeout=LIMIT, environ={}), words)
            # On a disk that does not answer in time the sender is told that nothing is written down.
            (self.outcome.warned if NOT_WRITTEN in reason else self.outcome.taken).add(text)

    def _events(self) -> int:
        logs = ("dummy", "sender") if self._scenario.asks else ("dummy",)
        names = ("paste", "submit", "turn-end")
        return sum(len(victim.events(*names, log=log)) for victim in self.victims for log in logs)

    def _wait_for_moment(self, texts: set[str], senders: Sequence[threading.Thread]) -> None:
        """Wait for any moment of the start, or for one around what agents do with what was taken."""
        if self._chance.random() < 1 / 4:
            time.sleep(self._chance.uniform(0, 4))
            return
        while not texts & self.outcome.taken and any(sender.is_alive() for sender in senders):
            time.sleep(0.001)  # a host on a busy machine takes its time for the first
        most = (6 if self._scenario.asks else 3) * self._messages
        wanted = self._events() + self._chance.randint(1, most)
        deadline = time.monotonic() + 10
        while self._events() < wanted and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(self._chance.uniform(0, 0.06))

    def settle(self) -> Outcome:
        """Start the hosts a last time, let them finish, and look at everything."""
        for victim in self.victims:
            victim.start()
        first, outcome = self.victims[0], self.outcome
        wait_until(first.is_quiet, lambda: [row for row in rows_of(first.database) if not row.at_rest], LIMIT)
        for victim in self.victims:
            victim.end(signal.SIGTERM)
        self._compare(rows_of(first.database))
        outcome.ends = dict(self._receiver.ends)
        for text in {text for texts in outcome.faults.values() for text in texts} & outcome.stored.keys():
            outcome.stories[text] = story_of(first.database, outcome.stored[text].id)
        return outcome

    def _compare(self, rows: Sequence[Row]) -> None:
        outcome, agents = self.outcome, [victim.agent for victim in self.victims]
        outcome.stored = {_number(row.text): row for row in rows if row.agent in agents}
        asked = {row.id[:8]: text for text, row in outcome.stored.items()}
        for victim in self.victims:
            outcome.given.update(_number(event["text"]) for event in victim.events("submit"))
            found = (event["text"] for event in victim.events("submit", log="sender"))
            outcome.replied.update(_answered(text, asked) for text in found)
        for row in rows:
            if row.agent not in agents and row.sender in agents and row.reason.startswith("uncertain"):
                outcome.unproved.add(asked.get(row.answers[:8]) or _answered(row.text, asked))
        for text in outcome.ended:
            row = outcome.stored[text]
            if row.agent in self._hooked:
                outcome.due["/webhook", row.id] = text
            if self._scenario.configs and text in outcome.taken:
                outcome.due["/config", row.id] = text


def _number(text: str) -> str:
    return found[1] if (found := _TEXT.search(text)) else ""


def _answered(text: str, asked: Mapping[str, str]) -> str:
    """The number of the message that a reply answers; `asked` are the numbers by the beginning of the id."""
    found = _REPLY.search(text)
    return (found[2] or asked.get(found[1], text)) if found else text


def rows_of(database: Path) -> list[Row]:
    query = "SELECT id, agent_name, sender_id, input, status, delivery, reason, reply, metadata FROM tasks"
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection:
        return [Row(*row) for row in connection.execute(query)]


def story_of(database: Path, task_id: str) -> list[str]:
    """The steps of a message, and its notifications."""
    steps = "SELECT time, state, delivery, reason FROM task_changes WHERE task_id = ? ORDER BY id"
    pushes = (
        "SELECT created_at, id, event, state, attempts, status, problem, ended_at"
        " FROM push_deliveries WHERE task_id = ? ORDER BY created_at"
    )
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection:
        found = [*connection.execute(steps, (task_id,)), *connection.execute(pushes, (task_id,))]
    return [" ".join(map(str, row)) for row in found]


def run(
    folder: Path, kills: int, seed: int, name: str = "messages", messages: int = MESSAGES, older: Path = ROOT
) -> Outcome:
    """Kill so many times; `older` is the source tree of an older version."""
    attack = Attack(folder, SCENARIOS[name], random.Random(seed), messages, older)
    try:
        attack.begin()
        for number in range(kills):
            attack.strike(number)
        return attack.settle()
    finally:
        attack.close()


def main() -> None:
    """Print a table; the status is 1 when something was lost or given twice, or held that should go on."""
    parser = argparse.ArgumentParser(prog="tests.bench.crash")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--messages", type=int, default=MESSAGES, help="before each kill")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--older", metavar="FOLDER", type=Path, default=ROOT)
    options = parser.parse_args()
    names = options.scenarios or [name for name, each in SCENARIOS.items() if not each.older]
    wrong = False
    outcomes: dict[str, Outcome] = {}
    for name in names:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="synapse-crash-") as folder:
            outcomes[name] = outcome = run(
                Path(folder), options.kills, options.seed, name, options.messages, options.older
            )
        print(f"{name}: {options.kills} kills in {time.monotonic() - start:.0f} s, seed {options.seed}")
        for fault, texts in outcome.faults.items():
            for text in texts:
                print(f"  {fault} {text}: given {outcome.given[text]}, {outcome.stored.get(text)}")
                print(*(f"    {line}" for line in outcome.stories.get(text, ())), sep="\n")
        sys.stdout.flush()
        wrong |= any(outcome.faults.values())
    tables = {name: outcome.table() for name, outcome in outcomes.items()}
    print(*(f"{name:>9}" for name in tables))
    for what in dict.fromkeys(what for table in tables.values() for what in table):
        print(*(f"{table.get(what, ''):>9}" for table in tables.values()), f" {what}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
