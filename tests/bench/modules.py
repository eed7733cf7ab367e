"""How many modules of this package a message runs through: `python -m tests.bench.modules`.

Counted while it happens, in all threads of a host with two built-in agents: from Enter on `@agent message`
until the text stands in the other agent's composer, and from a call of `Host.send` until its receipt.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from synapse_tui.agents.session import AgentSession
from synapse_tui.app import SynapseApp
from synapse_tui.model import AgentState
from tests.integration.host_kit import make_host, open_ready, running
from tests.waiting import until

PACKAGE = str(Path(sys.modules["synapse_tui"].__file__ or "").parent)
TEXT = "please look at the tests"


class Counter:
    """Notes the modules whose functions are called while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.modules: dict[str, int] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if self.on and event == "call":
            path = frame.f_code.co_filename
            if path.startswith(PACKAGE):
                self.modules[path] = self.modules.get(path, 0) + 1

    @contextmanager
    def counting(self) -> Iterator[dict[str, int]]:
        self.modules = {}
        self.on = True
        try:
            yield self.modules
        finally:
            self.on = False


def shows(agent: AgentSession, text: str) -> Callable[[], bool]:
    return lambda: any(text in row for row in agent.terminal.screen.display)


def report(what: str, modules: dict[str, int], idle: dict[str, int]) -> None:
    more = len(modules.keys() - idle.keys())
    print(f"{what}: {len(modules)} modules, {more} not run by an idle host")
    for path, calls in sorted(modules.items(), key=lambda item: -item[1]):
        print(f"  {calls:6d} {path.removeprefix(PACKAGE + '/')}")


async def main() -> None:
    counter = Counter()
    threading.setprofile(counter)
    sys.setprofile(counter)
    with tempfile.TemporaryDirectory() as folder:
        async with running(make_host(Path(folder))) as host:
            alice, bob = await open_ready(host, "alice", "bob")
            for agent in (alice, bob):
                await host.published(agent.agent_id)
            with counter.counting() as idle:
                await asyncio.sleep(2)
            with counter.counting() as sending:
                await host.send("bob", TEXT, sender=alice.agent_id)
            await until(lambda: bob.report.state is AgentState.READY)
            app = SynapseApp(host)
            async with app.run_test(size=(120, 40)) as pilot:
                await pilot.pause(1)
                await pilot.press(
                    *(
                        key if key.isalpha() else {"@": "at", " ": "space"}[key]
                        for key in "@bob count the files"
                    )
                )
                await pilot.pause(1)
                with counter.counting() as typed:
                    await pilot.press("enter")
                    await until(shows(bob, "count the files"))
    sys.setprofile(None)
    report("Idle for 2 s", idle, {})
    report("Host.send until its receipt", sending, idle)
    report("Enter on '@bob ...' until the text stands in the other terminal", typed, idle)


if __name__ == "__main__":
    asyncio.run(main())
