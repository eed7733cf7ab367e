"""A recording of the built-in agent, made while it is asked for: its output, keys, and changes of size."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from synapse_tui.pty import PtyProcess, ReadScheduler
from synapse_tui.terminal import Terminal
from tests.integration.pty_harness import until
from tests.terminal.recordings import Recording, Step

COLUMNS, LINES = 100, 32
CLEARED = b"\x1b[2J"
SIZES = ((70, 20), (130, 40), (100, 32))


class _Recorder:
    """One run: what it wrote since the last look, and its screen."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.steps: list[Step] = []
        self._data = bytearray()
        self._terminal = Terminal(COLUMNS, LINES)
        self.ended = False
        argv = [sys.executable, "-m", "synapse_tui.dummy", "--word-delay", "0", *arguments]
        environ = {**os.environ, "TERM": "xterm-256color"}
        environ.pop("NO_COLOR", None)
        self.process = PtyProcess.spawn(argv, cwd=folder, env=environ, columns=COLUMNS, lines=LINES)
        self.process.start(ReadScheduler(), on_data=self._take, on_exit=lambda _status: self._end())

    def _take(self, data: bytes) -> None:
        self._data += data
        self._terminal.feed(data)

    def _end(self) -> None:
        self.ended = True

    async def look(self, place: str, text: str, *, wrote: bytes = b"\x1b") -> None:
        """Wait until some text is shown and no frame is open; all output so far is one step.

        Args:
            place: Where in the recording, for messages.
            text: What is to be shown.
            wrote: What the program must have written since the last step.
        """

        def settled() -> bool:
            shown = wrote in self._data and any(text in row for row in self._terminal.display)
            return shown and not (self._terminal.stream.incomplete or self._terminal.modes.synchronized)

        await until(settled, lambda: f"{place}: {text!r} in\n" + "\n".join(self._terminal.display))
        self.note(place)

    def note(self, place: str) -> None:
        """Make a step of all output so far."""
        self.steps.append(Step(bytes(self._data), None, place))
        self._data.clear()

    async def submit(self, text: str) -> None:
        """Paste a message, and press Enter when it is in the composer."""
        self.process.write(f"\x1b[200~{text}\x1b[201~".encode())
        await self.look(f"pasted {text}", text[-12:])
        self.process.write(b"\r")

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, of the program too."""
        self.note(f"before a resize to {columns}x{lines}")
        self.steps.append(Step(b"", (columns, lines), f"after a resize to {columns}x{lines}"))
        self._terminal.resize(columns, lines)
        self.process.resize(columns, lines)


async def record(folder: Path, *arguments: str) -> Recording:
    """Run the dummy through answers, dialogs, an interrupt and changes of size.

    Args:
        folder: Where it runs.
        arguments: More of its command line.
    """
    run = _Recorder(folder, *arguments)
    try:
        await _play(run)
        return Recording(COLUMNS, LINES, tuple(run.steps))
    finally:
        await run.process.terminate(0.5)


async def _play(run: _Recorder) -> None:
    await run.look("startup", "enter sends")
    await run.submit("hello")
    await run.look("an answer", "You said: hello")
    await run.submit("日本語と한국어のé")
    await run.look("a wide answer", "You said: 日本語と한국어のé")
    await run.submit("%%run:seq 1 60%%")
    await run.look("a dialog", "Do you want to proceed?")
    run.process.write(b"\r")
    await run.look("output that scrolls", "Done. (16 characters")
    await run.submit("%%hang:60%%")
    await run.look("working", "esc interrupts")
    run.process.write(b"\x1b")
    await run.look("interrupted", "Interrupted by the user")
    for columns, lines in SIZES:
        run.resize(columns, lines)
        await run.look(f"drawn anew at {columns}x{lines}", "─" * columns, wrote=CLEARED)
        run.process.write(f"typed at {columns}".encode())
        await run.look(f"typed at {columns}x{lines}", f"typed at {columns}")
        run.process.write(b"\x15")
    await run.submit("/quit")
    await until(lambda: run.ended, "the end of the dummy")
    run.note("the end")
