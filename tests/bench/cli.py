"""How much longer commands take than the imports that they need in any case: `python -m tests.bench.cli [N]`.

`synapse send|list|reply` stand beside a program that imports click, http.client and json and makes one
request on loopback, `synapse --help` beside one that imports click. All take turns in one run, so that the
load of the machine falls on all alike, and only ratios are compared. The commands are run as pip installs
them: by the script of the entry point. Their agent is served by this process; what it needs is no time of
theirs.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from synapse_tui.model import MessageRequest, Sender
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running
from tests.integration.shell_kit import Shell

TOKEN = "secret"
REQUEST = """import click, http.client, json, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.request("GET", "/status")
json.load(connection.getresponse())"""
MOST = {"send": 2.0, "list": 2.0, "reply": 2.0, "--help": 1.5}
"""How many times the time of its baseline a command may take."""


@dataclass
class Times:
    """What runs of one program took, in milliseconds.

    Attributes:
        wall: From start to end.
        processor: Of user and system.
    """

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def run(self, words: list[str], environ: dict[str, str], folder: Path) -> None:
        """Run it once more."""
        began = time.perf_counter()
        process = subprocess.Popen(
            words, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{words} ended with {process.returncode}")
        self.wall.append((time.perf_counter() - began) * 1000)
        self.processor.append((used.ru_utime + used.ru_stime) * 1000)


class Agent:
    """An agent that is served by a thread of this process."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self.agent: FakeAgent

    @contextmanager
    def served(self) -> Iterator[Agent]:
        """Serve it for the length of the block."""
        thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        thread.start()
        try:
            self._ready.wait()
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join()

    async def _serve(self) -> None:
        async with running("codex", token_of=lambda _who: TOKEN) as (agent, _server):
            self.agent = agent
            self._shell.register(agent)
            self._ready.set()
            await self._over.wait()

    def ask(self) -> None:
        """Give it a task that awaits a reply."""

        async def give() -> None:
            request = MessageRequest("review this", Sender("user", "user"), response_expected=True)
            self.agent.give(self.agent.accept(request).id)

        asyncio.run_coroutine_threadsafe(give(), self._loop).result()


def measure(rounds: int) -> dict[str, Times]:
    """Run everything so many times, in turns."""
    with tempfile.TemporaryDirectory(prefix="synapse-cli-") as name:
        shell = Shell.scratch(Path(name))
        environ = {"PATH": os.environ["PATH"], "HOME": str(shell.home), "SYNAPSE_AGENT_ID": ""}
        with Agent(shell).served() as codex:
            inside = {
                "SYNAPSE_AGENT_ID": codex.agent.agent_id,
                "SYNAPSE_TOKEN": TOKEN,
                "SYNAPSE_ENDPOINT": codex.agent.endpoint,
            }
            synapse, python = str(Path(sys.executable).with_name("synapse")), sys.executable
            programs: dict[str, tuple[list[str], dict[str, str], Callable[[], None] | None]] = {
                "request": ([python, "-c", REQUEST, str(codex.agent.port)], {}, None),
                "click": ([python, "-c", "import click"], {}, None),
                "send": ([synapse, "send", "codex", "hello", "--no-response"], {}, None),
                "list": ([synapse, "list"], {}, None),
                "reply": ([synapse, "reply", "done"], inside, codex.ask),
                "--help": ([synapse, "--help"], {}, None),
            }
            times = {name: Times() for name in programs}
            for turn in range(rounds + 1):
                for program, (words, more, before) in programs.items():
                    if before is not None:
                        before()
                    kept = times[program] if turn else Times()  # the first round pays for cold files
                    kept.run(words, environ | more, shell.folder)
            return times


def main() -> None:
    """Print medians and their ratios."""
    times = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    for name in ("request", "click", *MOST):
        wall, processor = (statistics.median(each) for each in (times[name].wall, times[name].processor))
        line = f"{name:8} wall {wall:6.1f} ms   processor {processor:6.1f} ms"
        if name in MOST:
            base = times["click" if name == "--help" else "request"]
            ratios = (wall / statistics.median(base.wall), processor / statistics.median(base.processor))
            line += f"   {ratios[0]:.2f} and {ratios[1]:.2f} times (at most {MOST[name]:g})"
        print(line)


if __name__ == "__main__":
    main()
