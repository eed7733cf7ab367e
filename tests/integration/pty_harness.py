"""Programs in PTYs for tests: what they wrote, and waiting for a condition."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from synapse_tui.core.model import ExitStatus
from synapse_tui.system.pty import Guardian, PtyProcess, ReadScheduler
from tests.waiting import until


class Program:
    """A running program and all it has written."""

    def __init__(self, process: PtyProcess) -> None:
        self.process = process
        self.output = bytearray()
        self.exits: list[ExitStatus] = []
        self.output_at_exit = -1

    def start(self, scheduler: ReadScheduler, on_data: Callable[[bytes], None] | None = None) -> None:
        self.process.start(scheduler, on_data=on_data or self.output.extend, on_exit=self._exited)

    def _exited(self, status: ExitStatus) -> None:
        self.exits.append(status)
        self.output_at_exit = len(self.output)

    async def says(self, text: bytes) -> None:
        await until(lambda: text in self.output, lambda: f"{text!r} in {bytes(self.output[-500:])!r}")

    async def ends(self) -> ExitStatus:
        await until(lambda: self.exits, lambda: f"the end after {bytes(self.output[-500:])!r}")
        return self.exits[0]


class Harness:
    """Starts programs that share one scheduler."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scheduler = ReadScheduler()
        self.programs: list[Program] = []

    def spawn(
        self,
        *argv: str,
        columns: int = 80,
        lines: int = 24,
        guardian: Guardian | None = None,
        on_data: Callable[[bytes], None] | None = None,
        **env: str,
    ) -> Program:
        process = PtyProcess.spawn(
            argv, cwd=self.folder, env={**os.environ, **env}, columns=columns, lines=lines, guardian=guardian
        )
        program = Program(process)
        self.programs.append(program)
        program.start(self.scheduler, on_data)
        return program

    def sh(self, script: str, **options: int) -> Program:
        return self.spawn("/bin/sh", "-c", script, **options)  # type: ignore[arg-type]

    def python(self, code: str, *arguments: str) -> Program:
        return self.spawn(sys.executable, "-S", "-c", code, *arguments)

    async def close(self) -> None:
        await asyncio.gather(*(program.process.terminate(0.2) for program in self.programs))


def descriptors(pid: int | str = "self") -> set[int]:
    folder = Path(f"/proc/{pid}/fd")
    return {int(entry.name) for entry in folder.iterdir() if entry.is_symlink()}


def children() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and int(fields[1]) == os.getpid():
            yield int(entry.name), fields[0]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
