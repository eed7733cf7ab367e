"""How long a session takes to begin and to be shown again, and what an idle host costs.

`python -m tests.bench.sessions [ROUNDS]`; targets: first start to first frame 700 ms, attach to full frame
200 ms (medians, from process start); a host with ten idle agents under 1 % CPU and 120 MB, attached and idle
under 2 %.
"""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from synapse_tui.paths import shipped_profiles
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


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="syn-") as name:
        bench = Bench(Path(name))
        starts, attaches = [], []
        for _ in range(rounds):
            client = bench.client("dummy", "dummy", "dummy")
            starts.append(client.wait(lambda: "F10" in client.text, "the first frame"))  # noqa: B023
            client.wait(lambda: "❯" in client.text, "the agents")  # noqa: B023
            for _ in range(4):
                leave(client)
                client = bench.client()
                shown = client.wait(lambda: "F10" in client.text and "❯" in client.text, "all")  # noqa: B023
                attaches.append(shown)
            leave(client)
            bench.run("synapse-tui", "kill")
        print(f"first start to first frame: median {statistics.median(starts) * 1000:.0f} ms")
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


if __name__ == "__main__":
    main()
