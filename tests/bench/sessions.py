"""How long a session takes to begin and to be shown again, and what an idle host costs.

`python -m tests.bench.sessions [ROUNDS]`; targets: first start to first frame 700 ms, attach to full frame
200 ms (medians, from process start); CPU of host and client until the first frame 0.8 s, also in multiples of
`python -c pass`, since that hardly depends on what else runs; a host with ten idle agents under 1 % CPU and
100 MB, attached and idle under 2 %.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from synapse_tui.system.paths import shipped_profiles
from tests.e2e.pty_client import PtyClient

AGENTS = 10
SECONDS = 10.0


class Bench:
    """A scratch home with sessions in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        profiles = folder / ".synapse" / "profiles"
        profiles.mkdir(parents=True)
        shipped = (shipped_profiles() / "dummy.yaml").read_text()
        (profiles / "dummy.yaml").write_text(re.sub(r"(?m)^ports:.*$", "ports: 28190-28250", shipped))
        # Panes are measured, not the board.
        (folder / ".synapse" / "settings.json").write_text('{"tui": {"board": 0}}')
        bin_folder = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environ = {
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "PATH": bin_folder,
            "LANG": "C.UTF-8",
            "COLORTERM": "truecolor",
        }

    def run(self, *words: str) -> str:
        """Run a command and give what it prints."""
        done = subprocess.run(
            words, env=self.environ, cwd=self.project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self) -> None:
        """End a host that still runs."""
        command = ("synapse-tui", "kill")
        subprocess.run(command, env=self.environ, cwd=self.project, capture_output=True, check=False)

    def client(self, *words: str) -> PtyClient:
        """Start a client."""
        return PtyClient(["synapse-tui", *words], environ=self.environ, cwd=self.project)

    def host(self) -> psutil.Process:
        """The host of the only session."""
        return psutil.Process(json.loads(self.run("synapse-tui", "ls", "--json"))[0]["pid"])


def leave(client: PtyClient) -> None:
    """Detach a client."""
    client.signal(signal.SIGTERM)
    client.wait(client.ended, "the end of the client")
    client.close()


def cpu(process: psutil.Process, client: PtyClient | None = None) -> float:
    """CPU of a process in per cent of a core, over some seconds."""
    before, began = process.cpu_times(), time.monotonic()
    if client is not None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            client.read(0.5)
    else:
        time.sleep(SECONDS)
    after = process.cpu_times()
    spent = after.user + after.system - before.user - before.system
    return 100 * spent / (time.monotonic() - began)


def used(process: psutil.Process) -> float:
    """CPU seconds of a process so far."""
    times = process.cpu_times()
    return times.user + times.system


def bare_python() -> float:
    """CPU seconds of `python -c pass`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(bench: Bench, rounds: int) -> None:
    """Measure and print."""
    starts, attaches = [], []
    host_cpu, client_cpu, bare = [], [], []
    for _ in range(rounds):
        bare.append(statistics.median(bare_python() for _ in range(5)))
        client = bench.client("dummy", "dummy", "dummy")
        starts.append(client.wait(lambda: "F10" in client.text, "the first frame"))  # noqa: B023
        started = psutil.Process(client.pid)
        host_cpu.append(used(started.children()[0]))
        client_cpu.append(used(started))
        client.wait(lambda: "❯" in client.text, "the agents")  # noqa: B023
        for _ in range(4):
            leave(client)
            client = bench.client()
            shown = client.wait(lambda: "F10" in client.text and "❯" in client.text, "all")  # noqa: B023
            attaches.append(shown)
        leave(client)
        bench.run("synapse-tui", "kill")
    print(f"first start to first frame: median {statistics.median(starts) * 1000:.0f} ms")
    ratio = statistics.median((a + b) / c for a, b, c in zip(host_cpu, client_cpu, bare, strict=True))
    host_ms, client_ms = (1000 * statistics.median(each) for each in (host_cpu, client_cpu))
    print(f"CPU until then: host {host_ms:.0f} ms (best {1000 * min(host_cpu):.0f}), ", end="")
    print(f"client {client_ms:.0f} ms, together {ratio:.0f} times `python -c pass`")
    print(f"attach to full frame: median {statistics.median(attaches) * 1000:.0f} ms")
    for _ in range(AGENTS):
        bench.run("synapse", "start", "dummy")
    time.sleep(8)  # what they began with is over
    host = bench.host()
    print(f"{AGENTS} idle agents, nobody attached: {cpu(host):.2f} % CPU, ", end="")
    print(f"{host.memory_info().rss / 1e6:.0f} MB RSS")
    client = bench.client()
    client.wait(lambda: "F10" in client.text, "the screen")
    client.read(2)
    print(f"attached and idle: {cpu(host, client):.2f} % CPU")
    leave(client)
    bench.run("synapse-tui", "kill")


def main() -> None:
    """Measure in a scratch home."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="syn-") as name:
        bench = Bench(Path(name))
        try:
            measure(bench, rounds)
        finally:
            bench.end()


if __name__ == "__main__":
    main()
