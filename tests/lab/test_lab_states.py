"""States and composers of the real agents, offline: drafts, turns, dialogs, interrupts, wide and narrow."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from synapse_tui.agents.composer import ComposerReading, read_composer
from synapse_tui.agents.environment import child_environment
from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.state import StateDetector
from synapse_tui.core.model import AgentState
from synapse_tui.system.paths import shipped_profiles
from synapse_tui.system.pty import PtyProcess, ReadScheduler
from synapse_tui.terminal import Terminal
from tests.integration.pty_harness import until
from tests.lab.agents import AGENTS as LAB_AGENTS
from tests.lab.lab_kit import AGENTS

READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING
PATIENCE = 60.0
SIZES = {"wide": (100, 32), "narrow": (44, 16)}
LONG = "\n".join(f"line {number} of a long message" for number in range(62))

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(300),
]


class AgentRig:
    """A real agent in a PTY, with the detector of its profile."""

    def __init__(self, name: str, columns: int, lines: int) -> None:
        self.profile = load_profiles(shipped_profiles()).find(name)
        self.detector = StateDetector(self.profile, now=time.monotonic())
        self.terminal = Terminal(
            columns, lines, listener=lambda event: self.detector.event(event, time.monotonic())
        )
        env = child_environment(
            os.environ,
            profile=self.profile,
            agent_id=f"synapse-{name}-8100",
            endpoint="http://127.0.0.1:1",
            token="none",
        )
        env["PATH"] = os.environ["PATH"]
        argv = [self.profile.command, *self.profile.args, *self.profile.doctor.args]
        self.process = PtyProcess.spawn(argv, cwd=Path.cwd(), env=env, columns=columns, lines=lines)
        self.process.start(ReadScheduler(), on_data=self._output, on_exit=lambda status: None)
        self._ticker = asyncio.create_task(self._tick())

    def _output(self, data: bytes) -> None:
        self.terminal.feed(data)
        if replies := self.terminal.take_replies():
            self.process.write(replies)
        self.detector.update(self.terminal, time.monotonic())

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            if self.detector.deadline is not None and self.detector.deadline <= time.monotonic():
                self.detector.update(self.terminal, time.monotonic())

    @property
    def reading(self) -> ComposerReading:
        return read_composer(self.terminal, self.profile)

    @property
    def state(self) -> AgentState:
        return self.detector.report.state

    def told(self) -> str:
        return "\n".join([str(self.detector.report), str(self.reading), *self.terminal.display])

    async def reaches(self, state: AgentState) -> None:
        await until(lambda: self.state is state, lambda: f"{state} in {self.told()}", PATIENCE)

    def press(self, key: bytes) -> None:
        self.process.write(key)

    async def draft(self, text: str) -> None:
        self.press(f"\x1b[200~{text}\x1b[201~".encode())
        await until(lambda: self.reading.shows(text), lambda: f"{text!r} in {self.told()}")
        await asyncio.sleep(self.profile.submit.pause)

    async def send(self, text: str) -> None:
        await self.draft(text)
        self.press(self.profile.submit.enter)
        await until(lambda: not self.reading.draft, lambda: f"an empty composer in {self.told()}")

    async def clear(self) -> None:
        for _ in range(20):
            for key in self.profile.clear:
                self.press(key)
                await asyncio.sleep(0.15)
            await asyncio.sleep(0.3)
            if self.reading.empty:
                return
        raise AssertionError(self.told())

    async def close(self) -> None:
        self._ticker.cancel()
        await self.process.terminate()


@pytest_asyncio.fixture(params=[(name, size) for size in SIZES for name in AGENTS], ids="-".join)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[AgentRig]:
    name, size = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed in the lab")
    rig = AgentRig(name, *SIZES[size])
    try:
        await rig.reaches(READY)
        yield rig
    finally:
        await rig.close()


async def test_the_day_of_an_agent(rig: AgentRig) -> None:
    assert rig.reading.empty

    await rig.draft("alpha\n\ngamma with 日本語")
    assert rig.state is READY
    assert not rig.reading.empty
    await rig.clear()

    await rig.send("hello")
    await rig.reaches(WORKING)
    await rig.reaches(READY)

    await rig.send(LONG)
    await rig.reaches(WORKING)
    await rig.reaches(READY)

    if LAB_AGENTS[rig.profile.name].asks:
        await rig.send("%%run:touch made-by-agent; id -un%% %%esc%%")
        await rig.reaches(WAITING)
        await until(lambda: rig.reading.dialog, rig.told)
        seen = len(rig.detector.timeline)
        await asyncio.sleep(1.5)
        assert not rig.reading.visible
        assert {report.state for report in rig.detector.timeline[seen:]} <= {WAITING}
        for key in rig.profile.deny:
            rig.press(key)
        await rig.reaches(READY)
        await until(lambda: rig.reading.empty, rig.told)  # told before it is drawn

    await rig.send("%%slow:30%%")
    await rig.reaches(WORKING)
    await asyncio.sleep(2)
    assert rig.state is WORKING
    for key in rig.profile.interrupt.keys:
        rig.press(key)
        await asyncio.sleep(rig.profile.interrupt.gap)
    pressed = time.monotonic()
    await rig.reaches(READY)
    assert time.monotonic() - pressed < 2
    await rig.send("still there?")
    await rig.reaches(WORKING)
    await rig.reaches(READY)
