"""A recording of the built-in agent, made while it is asked for: its output, keys, and changes of size."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.terminal.recorder import Recorder
from tests.terminal.recordings import Recording, steps

COLUMNS, LINES = 100, 32
CLEARED = b"\x1b[2J"
SIZES = ((70, 20), (130, 40), (100, 32))


async def record(folder: Path, *arguments: str) -> Recording:
    """Run the dummy through answers, dialogs, an interrupt and changes of size.

    Args:
        folder: Where it runs.
        arguments: More of its command line.
    """
    argv = [sys.executable, "-m", "synapse_tui.dummy", "--word-delay", "0", *arguments]
    environ = {**os.environ, "TERM": "xterm-256color"}
    environ.pop("NO_COLOR", None)
    run = Recorder(argv, folder, environ, (COLUMNS, LINES))
    try:
        await _play(run)
        return Recording(COLUMNS, LINES, tuple(steps(run.events, bytes(run.data), run.marks)))
    finally:
        await run.close()


async def _play(run: Recorder) -> None:
    async def look(place: str, text: str, *, wrote: bytes = b"\x1b") -> None:
        await run.shows(text, wrote=wrote)
        run.mark(place)

    async def submit(text: str) -> None:
        run.paste(text)
        await look(f"pasted {text}", text[-12:])
        run.press(b"\r")

    await look("startup", "enter sends")
    await submit("hello")
    await look("an answer", "You said: hello")
    await submit("日本語と한국어のé")
    await look("a wide answer", "You said: 日本語と한국어のé")
    await submit("%%run:seq 1 60%%")
    await look("a dialog", "Do you want to proceed?")
    run.press(b"\r")
    await look("output that scrolls", "Only directives. (16 characters")
    await submit("%%hang:60%%")
    await look("working", "esc interrupts")
    run.press(b"\x1b")
    await look("interrupted", "Interrupted by the user")
    for columns, lines in SIZES:
        run.resize(columns, lines)
        await look(f"drawn anew at {columns}x{lines}", "─" * columns, wrote=CLEARED)
        run.press(f"typed at {columns}")
        await look(f"typed at {columns}x{lines}", f"typed at {columns}")
        run.press(b"\x15")
    await submit("/quit")
    await run.ends()
