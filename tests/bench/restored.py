"""Kills whole sessions with `tui.restore: always` among 200 messages to two agents.

`python -m tests.bench.restored [RUNS] [SEED]` (6 runs). Each session is killed twice and started again by
`synapse start` or `synapse-tui`. In the end nothing may be held but what is uncertain.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from tests.bench.crash import LIMIT, rows_of
from tests.bench.sessions import Bench, leave

MESSAGES = 200


def restored(folder: Path, chance: random.Random) -> Counter[str]:
    """Kill a session twice; how many messages stand how when all that goes on by itself has ended."""
    bench = Bench(folder)
    settings = folder / ".synapse" / "settings.json"
    settings.write_text(json.dumps({"tui": {"restore": "always"}}))
    for each in (settings.parent, settings.parent / "profiles"):
        each.chmod(0o700)
    try:
        for _ in range(2):
            bench.run("synapse", "start", "dummy", "--", "--word-delay", "0")
        addresses = [each["endpoint"] for each in json.loads(bench.run("synapse", "list", "--json"))]
        for number in range(MESSAGES):
            Client(timeout=LIMIT).call(chance.choice(addresses), calls.send(f"message {number}"))
        for _ in range(2):
            time.sleep(chance.uniform(1.5, 8))  # what was opened is saved after a second
            host = bench.host()
            host.kill()
            host.wait(LIMIT)
            if chance.random() < 1 / 2:
                bench.run("synapse", "start", "dummy")
            else:
                client = bench.client()
                client.wait(lambda: "ready" in client.text, "the agents")  # noqa: B023 - called at once
                leave(client)
        deadline = time.monotonic() + LIMIT + MESSAGES
        database = folder / ".synapse" / "history.db"
        while not all(row.at_rest for row in rows_of(database)) and time.monotonic() < deadline:
            time.sleep(0.5)
        return Counter(f"{row.delivery} {row.reason}".strip() for row in rows_of(database))
    finally:
        bench.run("synapse-tui", "kill", "--all")


def run(runs: int, seed: int) -> bool:
    """Print how messages stand; gives whether some were lost, or held that were not uncertain."""
    wrong = False
    for number in range(runs):
        with tempfile.TemporaryDirectory(prefix="synapse-crash-") as folder:
            found = restored(Path(folder), random.Random(seed + number))
        words = ", ".join(f"{count} {standing}" for standing, count in sorted(found.items()))
        print(f"run {number}, seed {seed + number}: {words}", flush=True)
        held = (standing for standing in found if standing.startswith("held"))
        wrong |= any(not standing.startswith("held uncertain") for standing in held)
        wrong |= found.total() != MESSAGES
    return wrong


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    sys.exit(run(runs, int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)))
