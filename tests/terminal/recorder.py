"""Records a program in a PTY: its output, the keys it got and its changes of size, with their times."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from synapse_tui.system.pty import PtyProcess, ReadScheduler
from synapse_tui.terminal import Terminal
from tests.integration.pty_harness import until

REST = 0.3
"""Seconds without output after which a program has said all that it will say for now."""


class Recorder:
    """One run of a program, and its screen.

    Args:
        argv: The program.
        folder: Where it runs.
        env: Its environment.
        size: Columns and rows at the start.
    """

    def __init__(
        self, argv: Sequence[str], folder: Path, env: Mapping[str, str], size: tuple[int, int] = (100, 32)
    ) -> None:
        self.size = size
        self.data = bytearray()
        self.events: list[list[object]] = []
        self.marks: list[tuple[str, int, float]] = []
        self.terminal = Terminal(*size)
        self.ended = False
        self._began = self._wrote = time.monotonic()
        self._seen = 0
        self.process = PtyProcess.spawn(argv, cwd=folder, env=dict(env), columns=size[0], lines=size[1])
        self.process.start(ReadScheduler(), on_data=self._take, on_exit=lambda _status: self._end())

    def _take(self, data: bytes) -> None:
        self._wrote = time.monotonic()
        self._note("o", len(self.data), len(data))
        self.data += data
        self.terminal.feed(data)
        if replies := self.terminal.take_replies():
            self.process.write(replies)

    def _end(self) -> None:
        self.ended = True

    def _note(self, kind: str, *facts: object) -> None:
        self.events.append([self._now, kind, *facts])

    @property
    def _now(self) -> float:
        return round(time.monotonic() - self._began, 6)

    def mark(self, name: str) -> None:
        """Begin a scene."""
        self.marks.append((name, len(self.data), self._now))

    def press(self, keys: bytes | str) -> None:
        """Write keys in one piece."""
        data = keys.encode() if isinstance(keys, str) else keys
        self._note("i", base64.b64encode(data).decode())
        self._seen = len(self.data)
        self.process.write(data)

    def paste(self, text: str) -> None:
        """Write a bracketed paste."""
        self.press(f"\x1b[200~{text}\x1b[201~")

    async def submit(self, text: str) -> None:
        """Paste a message, and press Enter when it is in the composer."""
        self.paste(text)
        await self.rest()
        self.press(b"\r")

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, of the program too."""
        self._note("r", columns, lines)
        self._seen = len(self.data)
        self.terminal.resize(columns, lines)
        self.process.resize(columns, lines)

    async def shows(self, text: str, *, wrote: bytes = b"\x1b") -> None:
        """Wait until some text is shown and no frame is open.

        Args:
            text: What is to be shown.
            wrote: What the program must have written since the last key or change of size.
        """

        def settled() -> bool:
            shown = wrote in self.data[self._seen :] and any(text in row for row in self.terminal.display)
            return shown and not (self.terminal.stream.incomplete or self.terminal.modes.synchronized)

        await until(settled, lambda: f"{text!r} in\n" + "\n".join(self.terminal.display))

    async def rest(self, seconds: float = REST) -> None:
        """Wait until it has written nothing for some time."""
        await until(lambda: len(self.data) > self._seen and time.monotonic() - self._wrote > seconds, "rest")

    async def ends(self) -> None:
        """Wait for the end of the program."""
        await until(lambda: self.ended, lambda: "the end after\n" + "\n".join(self.terminal.display))

    async def wait(self, seconds: float) -> None:
        """Let time pass, which the replay will see."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """End the program."""
        await self.process.terminate(0.5)

    def write(self, stem: Path) -> None:
        """Write `stem.bin`, the output, and `stem.json`, all else."""
        columns, lines = self.size
        facts = {"cols": columns, "rows": lines, "marks": self.marks, "events": self.events}
        stem.with_name(f"{stem.name}.bin").write_bytes(self.data)
        stem.with_name(f"{stem.name}.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
