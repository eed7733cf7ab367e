"""How many modules a message runs through, and how long that takes: `python -m tests.bench.modules`.

Counted while it happens, in all threads of a host with two built-in agents: from Enter on `@agent message`
until the text stands in the other agent's composer, and from a call of `Host.send` until its receipt.
Timed without counting: from Enter on `@agent message` to the first byte typed into the other, idle agent, and
from a plain key to the byte that the agent in focus gets.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from textual.events import Key
from textual.pilot import Pilot

from synapse_tui.agents.session import AgentSession
from synapse_tui.app import SynapseApp
from synapse_tui.model import AgentState
from tests.integration.host_kit import make_host, open_ready, running
from tests.waiting import until

PACKAGE = str(Path(sys.modules["synapse_tui"].__file__ or "").parent)
TEXT = "please look at the tests"
NAMES = {"@": "at", " ": "space"}
SAMPLES = 7


class Counter:
    """Notes the modules whose functions are called while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.modules: dict[str, int] = {}
        self.own: set[str] = set()
        """Those that the caller itself runs, and the thread that writes for it."""
        self._loop = asyncio.get_running_loop()
        self._caller = asyncio.current_task()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if self.on and event == "call":
            path = frame.f_code.co_filename
            if path.startswith(PACKAGE):
                self.modules[path] = self.modules.get(path, 0) + 1
                if threading.current_thread() is threading.main_thread():
                    own = asyncio.current_task(self._loop) is self._caller
                else:
                    own = threading.current_thread().name.startswith("history_")
                if own:
                    self.own.add(path)

    @contextmanager
    def counting(self) -> Iterator[dict[str, int]]:
        self.modules, self.own = {}, set()
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


class FirstByte:
    """Notes when bytes go to an agent's process."""

    def __init__(self, agent: AgentSession) -> None:
        self.at: list[float] = []
        process = agent.console.process
        write = process.write

        def noted(data: bytes) -> None:
            self.at.append(time.perf_counter())
            write(data)

        process.write = noted

    async def after(self, act: Callable[[], object]) -> float:
        """Return the seconds from the start of an action to the first byte."""
        self.at.clear()
        begun = time.perf_counter()
        act()
        await until(lambda: bool(self.at))
        return self.at[0] - begun


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
        await pilot.press(*(NAMES.get(each, each) for each in f"@bob say {'abcdefghij'[number]}"))
        await pilot.pause(1)
        messages.append(await typed.after(key(app, "enter", "\r")))
        await until(shows(bob, f"say {'abcdefghij'[number]}"))
    key_ms, message_ms = (1000 * statistics.median(each) for each in (keys, messages))
    print(
        f"A key until it is typed: {key_ms:.1f} ms; '@bob ...' from Enter to the first byte:"
        f" {message_ms:.1f} ms (best {1000 * min(messages):.1f}), {message_ms / key_ms:.1f} times a key"
    )


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
            own = sorted(path.removeprefix(PACKAGE + "/") for path in counter.own)
            await until(lambda: bob.report.state is AgentState.READY)
            app = SynapseApp(host)
            async with app.run_test(size=(120, 40)) as pilot:
                await pilot.pause(1)
                await pilot.press(*(NAMES.get(each, each) for each in "@bob count the files"))
                await pilot.pause(1)
                with counter.counting() as typed:
                    await pilot.press("enter")
                    await until(shows(bob, "count the files"))
                sys.setprofile(None)
                threading.setprofile(None)
                await time_local(app, pilot, alice, bob)
    sys.setprofile(None)
    report("Idle for 2 s", idle, {})
    report("Host.send until its receipt", sending, idle)
    print(f"  {len(own)} in the call itself, not in the delivery that begins meanwhile: {', '.join(own)}")
    report("Enter on '@bob ...' until the text stands in the other terminal", typed, idle)


if __name__ == "__main__":
    asyncio.run(main())
