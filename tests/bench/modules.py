"""How many modules and functions a message runs through, and how long: `python -m tests.bench.modules`.

Timed in a host with two built-in agents, with its garbage collector as in the daemon: from Enter on
`@agent message` to the first byte typed into the other, idle agent (also the CPU time of the main thread),
and from a plain key to the byte that the agent in focus gets.

Counted while it happens, in all threads of a second such host: from a call of `Host.send` until its receipt,
and from Enter on `@agent message` until the text is written to the other agent's PTY, and until it is on its
screen.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from textual.events import Key
from textual.pilot import Pilot

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentState
from synapse_tui.host.host import Host
from synapse_tui.system.collector import Collector
from synapse_tui.ui.app import SynapseApp
from tests.integration.host_kit import make_host, open_ready, running
from tests.waiting import until

PACKAGE = str(Path(sys.modules["synapse_tui"].__file__ or "").parent)
TEXT = "please look at the tests"
NAMES = {"@": "at", " ": "space"}
SAMPLES = 7


OURS: ContextVar[bool] = ContextVar("OURS", default=False)
"""True in what a counted call runs, in tasks that it creates too."""


class Profiler:
    """Counts the calls of our functions while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.calls: Counter[CodeType] = Counter()
        self.own: set[str] = set()
        """The modules that the call itself runs, and the thread that writes for it."""

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if self.on and event == "call":
            path = frame.f_code.co_filename
            if path.startswith(PACKAGE):
                self.calls[frame.f_code] += 1
                if OURS.get() or threading.current_thread().name.startswith("history_"):
                    self.own.add(path)

    @contextmanager
    def counting(self) -> Iterator[Counter[CodeType]]:
        self.calls, self.own = Counter(), set()
        self.on = True
        token = OURS.set(True)
        try:
            yield self.calls
        finally:
            OURS.reset(token)
            self.on = False


def shows(agent: AgentSession, text: str) -> Callable[[], bool]:
    return lambda: any(text in row for row in agent.terminal.screen.display)


def report(what: str, calls: Counter[CodeType], idle: Counter[CodeType]) -> None:
    modules: Counter[str] = Counter()
    for code, count in calls.items():
        modules[code.co_filename.removeprefix(PACKAGE + "/")] += count
    new = len(calls.keys() - idle.keys())
    print(f"{what}: {len(modules)} modules, {len(calls)} functions ({new} not run by an idle host)")
    for path, count in modules.most_common():
        print(f"  {count:6d} {path}")


class FirstByte:
    """Calls back when bytes go to an agent's process."""

    def __init__(self, agent: AgentSession) -> None:
        self.written: Callable[[bytes], object] = lambda _: None
        process: Any = agent.console.process
        write = process.write

        def noted(data: bytes) -> None:
            self.written(data)
            write(data)

        process.write = noted

    async def after(self, act: Callable[[], object]) -> tuple[float, float]:
        """Return the seconds, and the CPU seconds of this thread, from an action to the first byte."""
        at: list[tuple[float, float]] = []
        self.written = lambda _: at.append((time.perf_counter(), time.thread_time()))
        begun, used = time.perf_counter(), time.thread_time()
        act()
        await until(lambda: bool(at))
        return at[0][0] - begun, at[0][1] - used


def key(app: SynapseApp, name: str, character: str | None) -> Callable[[], None]:
    def press() -> None:
        event = Key(name, character)
        event.set_sender(app)
        assert app._driver is not None
        app._driver.send_message(event)

    return press


async def time_local(app: SynapseApp, pilot: Pilot[None], alice: AgentSession, bob: AgentSession) -> None:
    plain, typed = FirstByte(alice), FirstByte(bob)
    keys, messages = [], []
    for number in range(SAMPLES):
        await until(lambda: bob.report.state is AgentState.READY and bob.turns.current is None)
        await pilot.pause(1)
        keys.append(await plain.after(key(app, "x", "x")))
        await pilot.press("backspace")
        await until(lambda: alice.reading().empty)
        await pilot.pause(1)
        await write_mention(pilot, f"say {'abcdefghij'[number]}")
        messages.append(await typed.after(key(app, "enter", "\r")))
        await until(shows(bob, f"say {'abcdefghij'[number]}"))
    key_ms = 1000 * statistics.median(wall for wall, _ in keys)
    wall_ms, cpu_ms = ([1000 * each for each in column] for column in zip(*messages, strict=True))
    print(
        f"A key until it is typed: {key_ms:.1f} ms; '@bob ...' from Enter to the first byte:"
        f" {statistics.median(wall_ms):.1f} ms (best {min(wall_ms):.1f}), of it CPU of the main thread"
        f" {statistics.median(cpu_ms):.1f} ms (best {min(cpu_ms):.1f})"
    )


async def write_mention(pilot: Pilot[None], text: str) -> None:
    """Type `@bob TEXT` without Enter and wait until the host is idle again."""
    await pilot.press(*(NAMES.get(each, each) for each in f"@bob {text}"))
    await pilot.pause(1)


@asynccontextmanager
async def two_agents() -> AsyncIterator[tuple[Host, AgentSession, AgentSession]]:
    with tempfile.TemporaryDirectory() as folder:
        async with running(make_host(Path(folder))) as host:
            alice, bob = await open_ready(host, "alice", "bob")
            for agent in (alice, bob):
                await host.published(agent.agent_id)
            yield host, alice, bob


async def measure_time() -> None:
    async with two_agents() as (host, alice, bob):
        app = SynapseApp(host)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(1)
            with Collector():
                await time_local(app, pilot, alice, bob)


async def count(counter: Profiler) -> None:
    async with two_agents() as (host, alice, bob):
        with counter.counting() as idle:
            await asyncio.sleep(2)
        with counter.counting() as sending:
            await host.send("bob", TEXT, sender=alice.agent_id)
        own = sorted(path.removeprefix(PACKAGE + "/") for path in counter.own)
        await until(lambda: bob.report.state is AgentState.READY)
        app = SynapseApp(host)
        at_write: Counter[CodeType] = Counter()

        def note(_: bytes) -> None:
            if not at_write:
                at_write.update(counter.calls)

        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause(1)
            await write_mention(pilot, "count the files")
            FirstByte(bob).written = note
            with counter.counting() as typed:
                await pilot.press("enter")
                await until(shows(bob, "count the files"))
    report("Idle for 2 s", idle, Counter())
    report("Host.send until its receipt", sending, idle)
    print(f"  {len(own)} in the call itself, not in the delivery that begins meanwhile: {', '.join(own)}")
    report("Enter on '@bob ...' until the text is written to the other PTY", at_write, idle)
    report("Enter on '@bob ...' until the text stands in the other terminal", typed, idle)


def main() -> None:
    asyncio.run(measure_time())
    counter = Profiler()
    threading.setprofile(counter)
    sys.setprofile(counter)
    try:
        asyncio.run(count(counter))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


if __name__ == "__main__":
    main()
