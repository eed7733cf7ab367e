"""Clients that are killed at random moments, while agents stream: no output is lost, no terminal left broken.

SYNAPSE_STORM sets the number of kills; SYNAPSE_STORM_REPORT=1 prints how long attaching took.
"""

from __future__ import annotations

import os
import random
import re
import signal
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.pty_client import PtyClient

KILLS = int(os.environ.get("SYNAPSE_STORM", "9"))
COUNT = "i=0; while :; do i=$((i+1)); echo line $i of {name}; sleep 0.02; done"
PROFILE = """
command: sh
args: ["-c", "{script}"]
ports: {first}-{last}
description: counts
"""


@pytest.fixture
def counters(home: Path, environ: dict[str, str], project: Path) -> Iterator[list[str]]:
    ports = re.search(r"(?m)^ports: (\d+)-", (home / ".synapse/profiles/dummy.yaml").read_text())
    assert ports
    names = ["alpha", "beta", "gamma"]
    for place, name in enumerate(names):
        first = int(ports[1]) + 5 * place
        text = PROFILE.format(script=COUNT.format(name=name), first=first, last=first + 4)
        (home / ".synapse" / "profiles" / f"{name}.yaml").write_text(text)
    yield names
    subprocess.run(
        ["synapse-tui", "kill", "--all", "--yes"], env=environ, cwd=project, check=True, capture_output=True
    )


def numbers(path: Path) -> list[int]:
    return [int(found) for found in re.findall(rb"line (\d+) of", path.read_bytes())]


@pytest.mark.timeout(180 + 5 * KILLS)
def test_killed_clients_lose_nothing(
    counters: list[str], home: Path, environ: dict[str, str], project: Path
) -> None:
    chance = random.Random(4)
    client = PtyClient(["synapse-tui", *counters, "--layout", "columns"], environ=environ, cwd=project)
    times = []
    for kill in range(KILLS):
        shown = client.wait(
            lambda: (
                all(re.search(rf"line \d+ of {name}", client.text) for name in counters)  # noqa: B023
                and "F10" in client.text  # noqa: B023
            ),
            "the screens",
        )
        if kill:
            times.append(shown)
        client.read(chance.uniform(0, 0.2))
        how = ("kill", "hangup", "close")[kill % 3]
        if how == "close":
            client.close()
        else:
            client.signal(signal.SIGKILL if how == "kill" else signal.SIGHUP)
            client.wait(client.ended, "the end of the client")
            client.wait(client.is_clean, f"a clean terminal after {how}")
            client.close()
        client = PtyClient(["synapse-tui"], environ=environ, cwd=project)
    client.wait(lambda: "F10" in client.text, "the last screen")
    client.signal(signal.SIGTERM)
    client.wait(client.ended, "the end")
    client.close()
    logs = sorted((home / ".synapse" / "logs").glob("synapse-*.log"))
    assert len(logs) == 3
    for path in logs:
        found = numbers(path)
        assert found == list(range(1, len(found) + 1)), path
    if os.environ.get("SYNAPSE_STORM_REPORT"):
        print(
            f"{KILLS} kills; attach to full frame: median {statistics.median(times) * 1000:.0f} ms, "
            f"95 % {sorted(times)[int(len(times) * 0.95)] * 1000:.0f} ms"
        )
