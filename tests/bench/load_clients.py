"""The clients of `tests.bench.load`, in a process of their own: `python -m tests.bench.load_clients JSON`.

A quarter each sends and looks until the end, streams, reads tasks, and lists them, as fast as the servers
answer. A webhook that takes connections and never answers is told of every fourth message. One line of JSON
tells what was sent and how long everything took.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.bench.a2a_client import OVER, Client, TooMany, message, state_of
from tests.streams import listening

PATIENCE = 120.0
"""Seconds in which a task must end after the last was sent."""
KINDS = ("send", "stream", "get", "list")


@dataclass
class Ledger:
    """What the clients did.

    Attributes:
        until: When nothing more is begun, on the monotonic clock.
        hook: URL of the webhook.
        sent: Texts whose server said that it took them.
        times: Seconds of each kind of call.
        errors: What went wrong, counted.
        events: How many events streams had.
        told: How often the webhook was called.
        ids: Tasks that are known.
    """

    until: float
    hook: str = ""
    sent: list[str] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    errors: Counter[str] = field(default_factory=Counter)
    events: int = 0
    told: int = 0
    ids: dict[str, str] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until

    def parameters(self, text: str, **configuration: Any) -> dict[str, Any]:
        if next(self.numbers) % 4 == 0:
            configuration["taskPushNotificationConfig"] = {"url": self.hook}
        return message(text, configuration=configuration)


async def send(client: Client, ledger: Ledger, who: str) -> None:
    text = f"load {who} {next(ledger.numbers)}."
    asked = time.monotonic()
    answer = await client.call("SendMessage", ledger.parameters(text, returnImmediately=True))
    ledger.times["send"].append(time.monotonic() - asked)
    ledger.sent.append(text)
    task = answer["task"]
    ledger.ids[who] = task["id"]
    while task["status"]["state"] not in OVER:
        await asyncio.sleep(0.5)
        with contextlib.suppress(TooMany):
            task = await client.call("GetTask", {"id": task["id"]})


async def stream(client: Client, ledger: Ledger, who: str) -> None:
    text = f"load {who} {next(ledger.numbers)}."
    asked, last = time.monotonic(), ""
    async with contextlib.aclosing(client.stream("SendStreamingMessage", ledger.parameters(text))) as events:
        async for event in events:
            if "task" in event and text not in ledger.sent:
                ledger.times["stream"].append(time.monotonic() - asked)
                ledger.sent.append(text)
            ledger.events += 1
            last = state_of(event) or last
    if last not in OVER:
        ledger.errors[f"a stream ended at {last}"] += 1


async def get(client: Client, ledger: Ledger, who: str) -> None:
    agent = who.partition("-")[0]
    found = [task for name, task in ledger.ids.items() if name.partition("-")[0] == agent]
    if not found:
        await asyncio.sleep(0.1)
        return
    asked = time.monotonic()
    await client.call("GetTask", {"id": found[next(ledger.numbers) % len(found)]})
    ledger.times["get"].append(time.monotonic() - asked)


async def list_some(client: Client, ledger: Ledger, _who: str) -> None:
    asked = time.monotonic()
    await client.call("ListTasks", {"pageSize": 10})
    ledger.times["list"].append(time.monotonic() - asked)


ACTIONS: tuple[Callable[[Client, Ledger, str], Awaitable[None]], ...] = (send, stream, get, list_some)


async def live(endpoint: str, number: int, agent: int, ledger: Ledger) -> None:
    client = Client(endpoint)
    action = ACTIONS[number % len(ACTIONS)]
    while ledger.goes_on:
        try:
            await action(client, ledger, f"{agent}-{number}")
        except TooMany as busy:
            ledger.errors["429"] += 1
            await asyncio.sleep(min(busy.seconds, 2.0))
        except (OSError, RuntimeError, asyncio.IncompleteReadError) as error:
            ledger.errors[f"{KINDS[number % 4]}: {type(error).__name__} {str(error)[:100]}"] += 1
            await client.close()
            await asyncio.sleep(0.2)
    await client.close()


@asynccontextmanager
async def hanging_webhook(ledger: Ledger) -> AsyncIterator[None]:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ledger.told += 1
        while await reader.read(1 << 16):
            pass

    async with listening(hang) as port:
        ledger.hook = f"http://127.0.0.1:{port}/hook"
        yield


async def main(endpoints: list[str], clients: int, seconds: float) -> None:
    ledger = Ledger(time.monotonic() + seconds)
    async with hanging_webhook(ledger):
        every = (
            live(endpoints[number % len(endpoints)], number, number % len(endpoints), ledger)
            for number in range(clients)
        )
        async with asyncio.timeout(seconds + PATIENCE):
            await asyncio.gather(*every)
    times = {
        kind: (len(values), statistics.median(values), sorted(values)[int(0.95 * len(values))])
        for kind, values in ledger.times.items()
        if values
    }
    told = {"sent": ledger.sent, "times": times, "errors": ledger.errors}
    print(json.dumps({**told, "events": ledger.events, "told": ledger.told}))


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
