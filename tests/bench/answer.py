"""From the start of `synapse send --response` to its end, at an agent that answers at once.

`python -m tests.bench.answer [N]`. The agent is the dummy of a host without a screen. It is asked from a
shell, which waits for the receiver's task, and from inside another agent, which waits for a task of its own.
The dummy's log tells where the time goes: until the message was submitted, until the turn was over, and from
then until the command has ended.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from .crash import PATIENCE, ROOT, Victim

COMMAND = (sys.executable, "-c", "from synapse_tui.cli import main; main()")
SPANS = ("until submitted", "until the turn's end", "until the command's end", "all")


def _wait(victim: Victim, event: str, text: str) -> float:
    """When the dummy logged an event with a text, in seconds since the epoch."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for record in victim.events(event):
            if record["text"].endswith(text):
                return float(record["t"])
        time.sleep(0.005)
    raise TimeoutError(f"{event} of {text!r}")


def ask(victim: Victim, text: str, identity: Mapping[str, str]) -> tuple[float, ...]:
    """Send one message and wait for its answer.

    Returns:
        Milliseconds of each of `SPANS`.
    """
    environ = {"PATH": os.environ["PATH"], "HOME": str(victim.folder / "home"), "PYTHONPATH": str(ROOT)}
    begun = time.time()
    command = [*COMMAND, "send", f"dummy-{victim.port}", text, "--response"]
    result = subprocess.run(
        command, cwd=victim.folder / "project", env={**environ, **identity}, capture_output=True, check=True
    )
    ended = time.time()
    assert result.stdout.strip() == b"taken", result
    submitted, answered = _wait(victim, "submit", text), _wait(victim, "turn-end", text)
    spans = (submitted - begun, answered - submitted, ended - answered, ended - begun)
    return tuple(span * 1000 for span in spans)


def main() -> None:
    """Print medians and 90th percentiles."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory(prefix="synapse-answer-") as name:
        victim = Victim(Path(name), "sender")
        victim.start()
        try:
            agent = json.loads((victim.folder / "sender.json").read_text())
            senders: dict[str, Mapping[str, str]] = {"shell": {"SYNAPSE_AGENT_ID": ""}, "agent": agent}
            times: dict[str, list[tuple[float, ...]]] = {who: [] for who in senders}
            for number in range(count + 1):
                for who, identity in senders.items():
                    spans = ask(victim, f"{who} asks {number}.", identity)
                    if number:  # the first pays for imports
                        times[who].append(spans)
                    time.sleep(0.3)
        finally:
            victim.end(signal.SIGTERM)
    for who, found in times.items():
        for at, what in enumerate(SPANS):
            values = sorted(spans[at] for spans in found)
            median, late = statistics.median(values), values[int(0.9 * len(values))]
            print(f"from {who:6} {what:24} median {median:6.0f} ms   90 % {late:6.0f} ms")


if __name__ == "__main__":
    main()
