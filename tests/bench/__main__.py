"""One table of the speeds that are looked after: `python -m tests.bench [PART...]`, all parts by default.

Beside each number of ours stands that of another program, measured in the same run on the same machine, since
only their ratio says anything on a machine that does other things too. The parts:

    terminal  MB/s of CPU time of the terminal core; beside tmux, @xterm/headless and pyte
    frames    per cent of a core of the whole application; beside tmux
    echo      ms from a key to its echo; beside tmux
    start     from the start to the first frame with two agents, and of a second terminal that attaches
    commands  CPU of the commands that agents use; beside `python -c pass`
    messages  messages that a server takes in a second; beside a bare server of the A2A SDK
    memory    of a host with ten agents that have talked

It takes about eight minutes. The last column is what is wanted, as a value or as a ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.bench import app, loads, servers, terminal
from tests.bench.a2a_client import Client, message

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("synapse-tui")
MESSAGES = 200
STARTS = 5
COMMANDS = {
    "send": ("send", "nobody", "Hello."),
    "history": ("history",),
    "outbox": ("outbox",),
    "file-safety": ("file-safety", "locks"),
}


def row(what: str, ours: float, other: float | None = None, beside: str = "", wanted: str = "") -> None:
    ratio = f"{ours / other:.2f}" if other else ""
    print(
        f"| {what} | {ours:.4g} | {f'{other:.4g}' if other else ''} | {beside} | {ratio} | {wanted} |",
        flush=True,
    )


def terminal_core() -> None:
    names = loads.NAMES
    ours, *others = terminal.speeds(names).items()
    for name in names:
        for title, speeds in others:
            if name in speeds:
                wanted = ">= 2" if "tmux" in title else ""
                row(f"core, {name}, MB/s", ours[1][name], speeds[name], title, wanted)


def frames() -> None:
    for what, modes, wanted in (
        ("idle", ["cat"], "0.3"),
        ("four spinners", ["spin"] * 4, "5"),
        ("four full screens", ["full"] * 4, "15"),
    ):
        used = {name: found[0] for name, found in app.cpu(modes).items()}
        row(f"{what}, % of a core", used["synapse-tui"], used.get("tmux"), "tmux", wanted)


def echo() -> None:
    for what, modes, keys, wanted in (
        ("ASCII", ["cat"], app.ASCII, ("1.5", "3")),
        ("CJK", ["cat"], app.CJK, ("1.5", "3")),
        ("beside 3 floods", ["cat", *["flood"] * 3], app.CJK, ("3", "8")),
        ("beside 9 floods", ["cat", *["flood"] * 9], app.CJK, ("< tmux", "< tmux")),
    ):
        found = app.echo(modes, keys)
        for at, name in enumerate(("p50", "p95")):
            other = found["tmux"][at] if "tmux" in found else None
            row(f"echo {what}, {name}, ms", found["synapse-tui"][at], other, "tmux", wanted[at])


def cpu_of_children(run: Callable[[], object], times: int) -> float:
    """CPU seconds of the processes that one call starts and waits for."""
    before = os.times()
    for _ in range(times):
        run()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used / times


def _of_children(command: Sequence[str], environ: dict[str, str], cwd: Path) -> float:
    """CPU of a command, in ms."""
    run = partial(subprocess.run, command, env=environ, cwd=cwd, capture_output=True, check=False)
    return cpu_of_children(run, 10) * 1000


@contextmanager
def home() -> Iterator[tuple[Path, dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="synapse-bench-") as name:
        folder = Path(name)
        (folder / "project").mkdir()
        yield folder, {"PATH": os.environ["PATH"], "HOME": name}


class Start(NamedTuple):
    """Milliseconds of a start, which is complete with the frame that shows the second agent's tab."""

    wall: float
    cpu: float  # of the host
    attached: float  # until a second terminal shows the same


def first_frame(program: Sequence[str] = (str(PROGRAM),), environ: Mapping[str, str] | None = None) -> Start:
    with home() as (folder, own):
        given = {**own, **(environ or {})}
        first, wall = _shown([*program, "dummy:alice", "dummy:bob"], folder, given)
        cpu = app.cpu_seconds(_host_in(folder)) * 1000
        time.sleep(1)
        second, attached = _shown([*program, "attach"], folder, given)
        subprocess.run([*program, "kill", "--all"], env=given, capture_output=True, check=False)
        first.close()
        second.close()
        return Start(wall, cpu, attached)


def start() -> None:
    walls, used, attached = zip(*(first_frame() for _ in range(STARTS)), strict=True)
    plain = min(_of_children([sys.executable, "-c", "pass"], dict(os.environ), ROOT) for _ in range(3))
    row("first frame, ms", statistics.median(walls), plain, "python -c pass", "600")
    row("first frame, CPU of the host, ms", statistics.median(used), plain, "python -c pass", "500")
    row("attach, slowest of 5, ms", max(attached), plain, "python -c pass", "200")


def _shown(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> tuple[app.Outer, float]:
    begun = time.perf_counter()
    outer = app.Outer(command, folder, environ)
    seen = b""
    while b"bob" not in seen:
        seen += outer.read(1.0)
        if time.perf_counter() - begun > 30:
            raise TimeoutError(seen[-2000:])
    return outer, (time.perf_counter() - begun) * 1000


def _host_in(folder: Path) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"synapse_tui.daemon" in words and str(folder).encode() in words:
                return int(entry.name)
    raise LookupError("no host")


def commands() -> None:
    with home() as (folder, environ):
        times: dict[str, list[float]] = {}
        for _ in range(3):  # in turns, so that other work falls on all
            plain = _of_children([sys.executable, "-c", "pass"], environ, folder)
            times.setdefault("pass", []).append(plain)
            for name, words in COMMANDS.items():
                used = _of_children([str(PROGRAM.with_name("synapse")), *words], environ, folder / "project")
                times.setdefault(name, []).append(used)
    for name in COMMANDS:
        row(f"synapse {name}, CPU ms", min(times[name]), min(times["pass"]), "python -c pass", "ratio <= 5")


async def _taken(endpoint: str, count: int) -> float:
    client = Client(endpoint)
    at_once = {"configuration": {"returnImmediately": True}}
    await client.call("SendMessage", message("Hello.", **at_once))  # the first pays for imports
    begun = time.perf_counter()
    for _ in range(count):
        await client.call("SendMessage", message("Hello.", **at_once))
    seconds = time.perf_counter() - begun
    await client.close()
    return count / seconds


def messages() -> None:
    """One client sends one after another; ours writes each down before it answers."""
    ours, theirs = [], []
    with servers.started() as host, _bare_server() as other:
        (endpoint,) = host.ask("open 1")
        host.ask("ready")
        for _ in range(3):
            theirs.append(asyncio.run(_taken(other, MESSAGES // 3)))
            ours.append(asyncio.run(_taken(endpoint, MESSAGES // 3)))
    row(
        "messages taken a second",
        statistics.median(ours),
        statistics.median(theirs),
        "SDK server",
        "ratio >= 1",
    )


@contextmanager
def _bare_server() -> Iterator[str]:
    command = [sys.executable, "-c", "from tests.bench.__main__ import serve; serve()"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def serve() -> None:
    """A bare server of the SDK, in a process of its own; prints its URL."""
    from tests.integration.external_kit import sdk_agent

    async def run() -> None:
        async with sdk_agent() as server:
            print(f"{server.url}/rpc", flush=True)
            await asyncio.Event().wait()

    asyncio.run(run())


def memory() -> None:
    with servers.started() as host:
        endpoints = host.ask("open 10")
        host.ask("ready")
        asyncio.run(servers.everyone(endpoints))
        row("host with ten agents, MB", host.megabytes, None, "", "110")


PARTS: dict[str, Callable[[], None]] = {
    "terminal": terminal_core,
    "frames": frames,
    "echo": echo,
    "start": start,
    "commands": commands,
    "messages": messages,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []])
    arguments = parser.parse_args()
    print("| | ours | other | which | ratio | wanted |\n|---|---|---|---|---|---|", flush=True)
    for name in arguments.parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
