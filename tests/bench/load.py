"""The keyboard of the application while 200 clients ask its agents.

`python -m tests.bench.load [CLIENTS] [SECONDS]`. The application runs on a terminal of this script: `cat` is
in focus beside three dummies, whose servers are asked by a process of clients; a webhook hangs. Printed
are the time from a key to its echo before, during and after, the memory of the application's process, the
clients' own times, and whether each message that was taken stands in the dummies' logs exactly once.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from synapse_tui.system.paths import shipped_profiles
from tests.bench.app import Outer

ROOT = Path(__file__).parents[2]
AGENTS = 3
SECONDS = 8.0
"""How long the keyboard is measured before and after."""


class Keyboard:
    """Types at the pace of a fast typist and notes when each key is seen.

    Args:
        outer: The terminal of the application.
    """

    def __init__(self, outer: Outer) -> None:
        self._outer = outer
        self._typed = 0
        self.peak = 0.0
        """Megabytes of the application, at most."""

    def type(self, goes_on: Callable[[], bool]) -> list[float]:
        """Type as long as wanted; gives milliseconds from each key to its echo."""
        times = []
        while goes_on():
            times.append(self._outer.echo(chr(0x4E00 + self._typed % 5000)))
            self._typed += 1
            if self._typed % 30 == 0:
                os.write(self._outer.master, b"\r")
                self._outer.drain(0.1)
            self._outer.drain(0.05)
            self.peak = max(self.peak, self.megabytes)
        return times

    @property
    def megabytes(self) -> float:
        fields = Path(f"/proc/{self._outer.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def make_home(home: Path) -> Path:
    """A home folder with the profiles of the panes; gives the log of the dummies."""
    profiles = home / ".synapse" / "profiles"
    profiles.mkdir(parents=True)
    log = home / "dummy.jsonl"
    (profiles / "cat.yaml").write_text("name: cat\ncommand: cat\nreceives: false\n")
    quick = yaml.safe_load((shipped_profiles() / "dummy.yaml").read_text())
    quick |= {"name": "quick", "args": [*quick["args"], "--word-delay", "0", "--log", str(log)]}
    quick["ports"] = "48300-48399"
    (profiles / "quick.yaml").write_text(yaml.safe_dump(quick))
    return log


def endpoints(outer: Outer, home: Path) -> list[str]:
    registry = home / ".a2a" / "registry"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        outer.drain(0.3)
        records = [json.loads(path.read_text()) for path in registry.glob("synapse-quick-*.json")]
        if sum(record.get("status") == "READY" for record in records) == AGENTS:
            return sorted(record["endpoint"] for record in records)
    raise TimeoutError("the agents are not ready")


def show(what: str, times: list[float]) -> None:
    late = statistics.quantiles(times, n=20)[18]
    middle = statistics.median(times)
    numbers = f"median {middle:6.1f} ms  p95 {late:6.1f} ms  max {max(times):6.1f} ms  n {len(times)}"
    print(f"key to echo {what:7} {numbers}", flush=True)


def for_seconds(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def measure(clients: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="synapse-load-") as name:
        home = Path(name)
        log = make_home(home)
        program = str(Path(sys.executable).with_name("synapse-tui"))
        outer = Outer([program, "--foreground", "--layout", "grid", "cat", *["quick"] * AGENTS], home)
        try:
            found = endpoints(outer, home)
            os.write(outer.master, b"\x1d1")
            outer.drain(2)
            report = _loaded(Keyboard(outer), found, clients, seconds)
        finally:
            outer.close()
            _complaints(home)
        _account(report["sent"], log)


def _loaded(keyboard: Keyboard, found: list[str], clients: int, seconds: float) -> dict[str, Any]:
    show("before", keyboard.type(for_seconds(SECONDS)))
    before = keyboard.megabytes
    given = json.dumps({"endpoints": found, "clients": clients, "seconds": seconds})
    command = [sys.executable, "-m", "tests.bench.load_clients", given]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        show("during", keyboard.type(lambda: process.poll() is None))
        assert process.stdout is not None
        report: dict[str, Any] = json.loads(process.stdout.read())
    show("after", keyboard.type(for_seconds(SECONDS)))
    print(f"memory: before {before:.1f} MB, peak {keyboard.peak:.1f} MB, after {keyboard.megabytes:.1f} MB")
    for kind, (count, middle, late) in report["times"].items():
        print(f"{kind:7} {count:6} calls  median {middle * 1000:7.0f} ms  p95 {late * 1000:7.0f} ms")
    print(f"events {report['events']}, webhook called {report['told']} times, errors {report['errors']}")
    return report


def _complaints(home: Path) -> None:
    for path in (home / ".synapse" / "logs").glob("*host*.log"):
        for line in path.read_text(errors="replace").splitlines():
            if any(word in line for word in (" WARNING ", " ERROR ", "Error")):
                print("log:", line[:300])


def _account(sent: list[str], log: Path) -> None:
    records = (json.loads(line) for line in log.read_text().splitlines())
    given = Counter(each["text"].partition("] ")[2] for each in records if each["event"] == "submit")
    lost = [text for text in sent if not given[text]]
    twice = [text for text, count in given.items() if count > 1]
    print(f"messages taken {len(sent)}, given {sum(given.values())}, lost {len(lost)}, twice {len(twice)}")
    for text in (*lost[:5], *twice[:5]):
        print("   ", text, given[text])
    sys.exit(bool(lost or twice))


def main() -> None:
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    measure(clients, seconds)


if __name__ == "__main__":
    main()
