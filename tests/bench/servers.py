"""Ten agents in one process: when they serve, what they need, and whether one that stops harms the others.

`python -m tests.bench.servers [N]`. Agents are dummies of a host without a screen. Memory is the host's own
resident set, after each agent has answered a message over A2A; the dummies are processes of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.a2a_client import Client, message, state_of

ROOT = Path(__file__).parents[2]
FIRST = "/.well-known/agent-card.json"


class Servers:
    """The host, commanded over its standard input.

    Args:
        process: It.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, command: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    @property
    def megabytes(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def started() -> Iterator[Servers]:
    with tempfile.TemporaryDirectory(prefix="synapse-servers-") as name:
        command = [sys.executable, "-m", "tests.bench.servers_host", name]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
            try:
                yield Servers(process)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                process.wait(30)


async def first_answers(endpoints: list[str], since: float) -> list[float]:
    """Seconds from a moment until each server's first answer; all are asked at once."""

    async def ask(endpoint: str) -> float:
        client = Client(endpoint)
        await client.get(FIRST)
        await client.close()
        return time.monotonic() - since

    return await asyncio.gather(*(ask(endpoint) for endpoint in endpoints))


async def talk(endpoint: str, text: str = "Hello.") -> list[str]:
    events = Client(endpoint).stream("SendStreamingMessage", message(text))
    return [state async for event in events if (state := state_of(event))]


def _show(what: str, seconds: list[float]) -> None:
    spread = (max(seconds) - min(seconds)) * 1000
    print(f"{what}: first {min(seconds):.2f} s, last {max(seconds):.2f} s, {spread:.0f} ms apart", flush=True)


def measure_start(count: int) -> None:
    """Open all at the start of the process, while what serves HTTP is still being imported."""
    begun = time.monotonic()
    with started() as host:
        endpoints = host.ask(f"open {count}")
        _show(f"{count} agents opened at the start answer", asyncio.run(first_answers(endpoints, begun)))


def measure_memory(count: int) -> None:
    """One agent, then the others in the same process, then one of them stops."""
    with started() as host:
        (first,) = host.ask("open 1")
        host.ask("ready")
        asyncio.run(everyone([first]))
        alone = host.megabytes
        begun = time.monotonic()
        others = host.ask(f"open {count - 1}")
        if others:
            _show(f"{count - 1} more answer", asyncio.run(first_answers(others, begun)))
        host.ask("ready")
        asyncio.run(everyone(others))
        together = host.megabytes
        print(
            f"resident: 1 agent {alone:.1f} MB, {count} agents {together:.1f} MB: {together - alone:+.1f} MB"
        )
        asyncio.run(_stop_one(host, [first, *others]))


async def everyone(endpoints: list[str]) -> None:
    for states in await asyncio.gather(*(talk(endpoint) for endpoint in endpoints)):
        assert states[-1] == "TASK_STATE_COMPLETED", states


async def _stop_one(host: Servers, endpoints: list[str]) -> None:
    streams = [asyncio.create_task(talk(endpoint, "%%slow:6%%")) for endpoint in endpoints]
    await asyncio.sleep(2)
    begun = time.monotonic()
    await asyncio.to_thread(host.ask, "close 0")
    print(f"one of {len(endpoints)} stopped in {time.monotonic() - begun:.2f} s")
    results = await asyncio.gather(*streams, return_exceptions=True)
    whole = sum(isinstance(each, list) and each[-1] == "TASK_STATE_COMPLETED" for each in results[1:])
    told = results[0][-1] if isinstance(results[0], list) and results[0] else repr(results[0])
    print(f"streams of the others that came to their end: {whole} of {len(endpoints) - 1}; its own: {told}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    measure_start(count)
    measure_memory(count)


if __name__ == "__main__":
    main()
