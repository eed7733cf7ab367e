"""A host that executes itself anew and goes on with its program; run by `test_upgrade.py`.

Commands come on standard input as JSON lines, and each is answered by one line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from synapse_tui.system.pty import Guardian, GuardianHandle, Handle, PtyProcess, ReadScheduler
from synapse_tui.terminal import Terminal
from synapse_tui.terminal.dump import dump
from synapse_tui.workspace import AgentHandover, GuardianHandover, Handover


class Host:
    """One program in a PTY with its terminal.

    Args:
        process: The program.
        guardian: Watches it.
        terminal: Shows it.
        generation: How often this host was executed.
    """

    def __init__(self, process: PtyProcess, guardian: Guardian, terminal: Terminal, generation: int) -> None:
        self.process = process
        self.guardian = guardian
        self.terminal = terminal
        self.generation = generation
        self.exit: dict[str, object] = {}
        process.start(
            ReadScheduler(),
            on_data=self._feed,
            on_exit=lambda status: self.exit.update(asdict(status)),
        )

    def _feed(self, data: bytes) -> None:
        self.terminal.feed(data)

    @classmethod
    def spawn(cls, argv: list[str]) -> Host:
        guardian = Guardian()
        process = PtyProcess.spawn(
            argv, cwd=Path("/"), env=dict(os.environ), columns=60, lines=10, guardian=guardian
        )
        return cls(process, guardian, Terminal(60, 10, 100_000), 0)

    @classmethod
    def adopt(cls, descriptor: int, generation: int) -> Host:
        handover = Handover.read(descriptor)
        agent, kept = handover.agents[0], handover.guardian
        guardian = Guardian.adopt(GuardianHandle(kept.pid, kept.fd, kept.leaders))
        terminal = Terminal(agent.columns, agent.lines, 100_000)
        terminal.feed(agent.terminal)
        process = PtyProcess.adopt(Handle(agent.pid, agent.start, agent.fd, agent.pending), guardian=guardian)
        return cls(process, guardian, terminal, generation)

    def hand_over(self) -> int:
        handle = self.process.hand_over()
        assert handle is not None
        guardian = self.guardian.hand_over()
        agent = AgentHandover(
            "synapse-dummy-8190",
            "dummy",
            pid=handle.pid,
            start=handle.start,
            fd=handle.fd,
            pending=handle.pending,
            columns=self.terminal.columns,
            lines=self.terminal.lines,
            terminal=dump(self.terminal),
        )
        return Handover(
            "test", agents=(agent,), guardian=GuardianHandover(guardian.pid, guardian.fd, guardian.leaders)
        ).write()

    def tell(self) -> dict[str, object]:
        terminal = self.terminal
        lines = [*terminal.scrollback, *(terminal.line(y) for y in range(terminal.lines))]
        return {
            "generation": self.generation,
            "pid": self.process.pid,
            "guardian": self.guardian.pid,
            "lines": [line.text for line in lines],
            "exit": self.exit,
            "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
        }

    async def obey(self, command: dict[str, object]) -> object:
        if "write" in command:
            self.process.write(str(command["write"]).encode())
        size = command.get("resize")
        if isinstance(size, list):
            self.process.resize(*size)
            self.terminal.resize(*size)
        if command.get("exec") == "fails":
            again = Host.adopt(self.hand_over(), self.generation)
            self.process, self.guardian = again.process, again.guardian
            self.terminal, self.exit = again.terminal, again.exit
        elif command.get("exec"):
            arguments = [__file__, "--adopt", str(self.hand_over()), str(self.generation + 1)]
            os.execv(sys.executable, [sys.executable, *arguments])
        if command.get("end"):
            await self.process.terminate()
        return self.tell()


async def main() -> None:
    if sys.argv[1] == "--adopt":
        host = Host.adopt(int(sys.argv[2]), int(sys.argv[3]))
        sys.stdout.write(json.dumps(host.tell()) + "\n")
        sys.stdout.flush()
    else:
        host = Host.spawn(sys.argv[1:])
    loop = asyncio.get_running_loop()
    # Unbuffered: what was read ahead would be lost when this program executes itself.
    while line := await loop.run_in_executor(None, read_line):
        answer = await host.obey(json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    if not host.exit:
        await host.process.terminate()
    host.guardian.close()


def read_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return b""
        line += byte
    return line


if __name__ == "__main__":
    asyncio.run(main())
