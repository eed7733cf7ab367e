"""The dummy agent in a real PTY, its screen, and its own log of what it was given."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapse_tui.agents.composer import ComposerReading, read_composer
from synapse_tui.agents.state import StateDetector
from synapse_tui.core.model import AgentState, ExitStatus
from synapse_tui.system.pty import PtyProcess, ReadScheduler
from synapse_tui.terminal import Terminal
from synapse_tui.terminal.events import TerminalEvent
from tests.integration.pty_harness import until
from tests.profiles import shipped

PASTE = "\x1b[200~{}\x1b[201~"
_SIGNALS = re.compile(rb"(?=\x1b\]|\x1b\[\?2026h)")


class DummyRig:
    """One run of the dummy, with the state detector of its profile."""

    def __init__(
        self,
        folder: Path,
        *args: str,
        columns: int = 80,
        lines: int = 24,
        cwd: Path | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.log_file = folder / "dummy.jsonl"
        self.profile = shipped().find("dummy")
        self.signals: list[TerminalEvent] = []
        self.output = bytearray()
        self.terminal = Terminal(columns, lines, listener=self._signal)
        self.detector = StateDetector(self.profile, now=time.monotonic())
        self.states: list[AgentState] = []
        """Every state that was reported, without repetitions."""
        self.exit: ExitStatus | None = None
        argv = [sys.executable, *self.profile.args, "--log", str(self.log_file), *args]
        env = {**os.environ, "TERM": "xterm-256color", **env}
        self.process = PtyProcess.spawn(argv, cwd=cwd or folder, env=env, columns=columns, lines=lines)
        self.process.start(ReadScheduler(), on_data=self._output, on_exit=self._exited)
        self._ticker = asyncio.create_task(self._tick())

    def _signal(self, event: TerminalEvent) -> None:
        self.signals.append(event)
        self.detector.event(event, time.monotonic())

    def _output(self, data: bytes) -> None:
        """Judge each signal and each frame by itself: a busy machine reads many at once."""
        self.output += data
        for part in _SIGNALS.split(data):
            self.terminal.feed(part)
            self._update()

    def _exited(self, status: ExitStatus) -> None:
        self.exit = status

    def _update(self) -> None:
        report = self.detector.update(self.terminal, time.monotonic())
        if report is not None and self.states[-1:] != [report.state]:
            self.states.append(report.state)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            if self.detector.deadline is not None and time.monotonic() >= self.detector.deadline:
                self._update()

    # what the test does

    def press(self, text: str | bytes) -> None:
        self.process.write(text.encode() if isinstance(text, str) else text)

    def paste(self, text: str) -> None:
        self.press(PASTE.format(text))

    async def submit(self, text: str) -> None:
        pastes = len(self.events("paste"))
        self.paste(text)
        await until(lambda: len(self.events("paste")) > pastes, "the paste")
        self.press("\r")

    def resize(self, columns: int, lines: int) -> None:
        self.terminal.resize(columns, lines)
        self.process.resize(columns, lines)

    # what it sees

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.terminal.display)

    @property
    def history(self) -> str:
        scrollback = self.terminal.scrollback
        return (
            "\n".join(scrollback[index].text.rstrip() for index in range(len(scrollback))) + "\n" + self.text
        )

    @property
    def state(self) -> AgentState:
        return self.detector.report.state

    @property
    def rule(self) -> str:
        return self.detector.report.rule

    @property
    def reading(self) -> ComposerReading:
        return read_composer(self.terminal, self.profile)

    def events(self, name: str = "") -> list[dict[str, Any]]:
        try:
            lines = self.log_file.read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        records = [json.loads(line) for line in lines]
        return [record for record in records if name in ("", record["event"])]

    @property
    def submitted(self) -> list[str]:
        return [record["text"] for record in self.events("submit")]

    async def shows(self, text: str) -> None:
        await until(lambda: text in self.text, lambda: f"{text!r} in\n{self.text}")

    async def reaches(self, state: AgentState) -> None:
        await until(lambda: self.state is state, lambda: f"{state}, is {self.detector.report}\n{self.text}")

    async def logs(self, name: str, count: int = 1, **fields: object) -> dict[str, Any]:
        """Wait for the log to hold so many records of a kind with some fields; gives the last of them."""

        def found() -> list[dict[str, Any]]:
            return [record for record in self.events(name) if fields.items() <= record.items()]

        await until(
            lambda: len(found()) >= count, lambda: f"{count} x {name} {fields} in {self.events()[-8:]}"
        )
        return found()[-1]

    async def ends(self) -> ExitStatus:
        await until(lambda: self.exit, lambda: f"the end; screen:\n{self.text}")
        assert self.exit
        return self.exit

    async def close(self) -> None:
        self._ticker.cancel()
        await self.process.terminate(0.5)
