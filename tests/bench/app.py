"""The whole application beside tmux, CPU and latency of keys: `python -m tests.bench.app [cpu|echo]`.

The programs run on a terminal of this script, which answers that it knows synchronized output. CPU is that of
the application's own process (of tmux: of its server), in per cent of one core. Latency is the time from
writing a key to reading its echo, in milliseconds; the program in the pane in focus is `cat`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.bench.child import FLOODS

COLUMNS, LINES = 241, 84
CHILD = Path(__file__).with_name("child.py")
SECONDS = 8.0
CJK = "".join(map(chr, range(0x4E00, 0x4E00 + 150)))
ASCII = "bdefgijkopsvwxyz" * 9
"""Keys that are typed; letters that end no control sequence of those that a frame has."""
_CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")


class Outer:
    """A terminal and the program on it."""

    def __init__(self, command: Sequence[str], home: Path, environ: Mapping[str, str] | None = None) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            environ = {
                **(environ or {}),
                "HOME": str(home),
                "PATH": os.environ["PATH"],
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
            }
            os.chdir(home)
            os.execvpe(command[0], list(command), environ | {"COLORTERM": "truecolor", "SHELL": "/bin/sh"})
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.frames = 0
        self.written = 0

    def read(self, seconds: float) -> bytes:
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        data = os.read(self.master, 1 << 16)
        self.frames += data.count(b"\x1b[?2026h")
        self.written += len(data)
        if b"\x1b[?2026$p" in data:
            os.write(self.master, b"\x1b[?2026;2$y")
        if b"\x1b[c" in data:
            os.write(self.master, b"\x1b[?62;22c")
        return data

    def drain(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def echo(self, character: str) -> float:
        key = character.encode()
        start = time.perf_counter()
        os.write(self.master, key)
        seen = b""
        while key not in _CONTROL.sub(b"", seen):
            seen = seen[-8:] + self.read(2.0)
            if time.perf_counter() - start > 5:
                return 5000.0
        return (time.perf_counter() - start) * 1000

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        end = time.monotonic() + 8
        while time.monotonic() < end and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            with contextlib.suppress(OSError):
                self.read(0.05)
        os.close(self.master)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def synapse(modes: Sequence[str], layout: str) -> Iterator[tuple[Outer, int]]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        profiles = home / ".synapse" / "profiles"
        profiles.mkdir(parents=True)
        for mode in {*modes}:
            command = (
                "command: cat" if mode == "cat" else f"command: {sys.executable}\nargs: [{CHILD}, {mode}]"
            )
            (profiles / f"{mode}.yaml").write_text(f"name: {mode}\n{command}\nreceives: false\n")
        program = str(Path(sys.executable).with_name("synapse-tui"))
        outer = Outer([program, "--foreground", "--layout", layout, *modes], home)
        try:
            outer.drain(5)
            yield outer, outer.pid
        finally:
            outer.close()


@contextlib.contextmanager
def tmux(modes: Sequence[str], _layout: str) -> Iterator[tuple[Outer, int]]:
    """Tmux with the same programs in tiled panes; the first one is in focus."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"bench-{os.getpid()}"
        words = ["tmux", "-L", name, "-f", "/dev/null", "new-session"]
        commands = ["cat" if mode == "cat" else f"{sys.executable} {CHILD} {mode}" for mode in modes]
        words.append(commands[0])
        for command in commands[1:]:
            words += [";", "split-window", command, ";", "select-layout", "tiled"]
        outer = Outer([*words, ";", "select-pane", "-t", "0", ";", "set", "status", "off"], Path(folder))
        try:
            outer.drain(4)
            question = ["tmux", "-L", name, "display-message", "-p", "#{pid}"]
            yield outer, int(subprocess.run(question, capture_output=True, text=True, check=True).stdout)
        finally:
            subprocess.run(["tmux", "-L", name, "kill-server"], check=False)
            outer.close()


def rivals() -> dict[str, Callable[[Sequence[str], str], AbstractContextManager[tuple[Outer, int]]]]:
    """What is measured: the application, and tmux where it is installed."""
    return {"synapse-tui": synapse, **({"tmux": tmux} if shutil.which("tmux") else {})}


def cpu(modes: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Of each that is measured, per cent of a core with these programs in its panes, and frames a second."""
    found = {}
    for name, start in rivals().items():
        with start(modes, "grid") as (outer, pid):
            outer.frames, before = 0, cpu_seconds(pid)
            outer.drain(SECONDS)
            used = (cpu_seconds(pid) - before) / SECONDS * 100
            found[name] = (used, outer.frames / SECONDS)
    return found


def echo(modes: Sequence[str], keys: str = CJK) -> dict[str, tuple[float, float]]:
    """Of each that is measured, ms from a key to its echo in the first pane: the median, and 95 % of them."""
    found = {}
    for name, start in rivals().items():
        with start(modes, "grid") as (outer, _):
            if name == "synapse-tui":
                os.write(outer.master, b"\x1d1")
                outer.drain(1)
            times = []
            for number, key in enumerate(keys):
                times.append(outer.echo(key))
                outer.drain(0.02)
                if number % 30 == 29:
                    os.write(outer.master, b"\r")
                    outer.drain(0.1)
            found[name] = (statistics.median(times), statistics.quantiles(times, n=20)[18])
    return found


def measure_cpu() -> None:
    print("CPU, % of one core (frames a second)")
    for modes in (["cat"], ["spin"] * 4, ["full"] * 4):
        for name, (used, frames) in cpu(modes).items():
            print(f"{len(modes)} x {modes[0]:5} {name:12} {used:6.1f} ({frames:.0f}/s)", flush=True)


def measure_echo() -> None:
    """Latency of a key in an idle terminal, and beside panes that flood."""
    print("key to echo, ms: median, p95")
    beside_one = [["cat", flood] for flood in ("flood", *FLOODS)]
    for modes in (["cat"], *beside_one, ["cat", "flood", "flood", "flood"]):
        for name, (median, late) in echo(modes).items():
            load = os.getloadavg()[0]
            print(f"{'+'.join(modes):22} {name:12} {median:6.2f} {late:6.2f}  load {load:.1f}", flush=True)


def main() -> None:
    wanted = sys.argv[1:] or ["cpu", "echo"]
    if "cpu" in wanted:
        measure_cpu()
    if "echo" in wanted:
        measure_echo()


if __name__ == "__main__":
    main()
