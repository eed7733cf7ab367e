"""From the start of `synapse send` to the text in the agent's composer: `python -m tests.bench.send [N]`.

The agent is the dummy of a host without a screen; its own log tells when the text was pasted and when it was
submitted. The same is measured with a host that writes nothing down: the difference is what durability costs.
Both hosts run all the time and take turns, so that the load of the machine falls on both.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .crash import PATIENCE, ROOT, Victim

COMMAND = (sys.executable, "-c", "from synapse_tui.cli import main; main()")


@contextlib.contextmanager
def _host(*options: str) -> Iterator[Victim]:
    with tempfile.TemporaryDirectory(prefix="synapse-send-") as name:
        victim = Victim(Path(name), *options)
        victim.start()
        try:
            yield victim
        finally:
            victim.end(signal.SIGTERM)


def _wait(victim: Victim, event: str, text: str) -> float:
    """When the dummy logged an event with a text, in seconds since the epoch."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for record in victim.events(event):
            if record["text"].endswith(text):
                return float(record["t"])
        time.sleep(0.005)
    raise TimeoutError(f"{event} of {text!r}")


def send(victim: Victim, number: int) -> tuple[float, float]:
    """Send one message.

    Returns:
        Milliseconds from the start of the command until it was pasted, and until it was submitted.
    """
    text = f"message {number}."
    environ = {"PATH": os.environ["PATH"], "HOME": str(victim.folder / "home"), "PYTHONPATH": str(ROOT)}
    begun = time.time()
    with subprocess.Popen(
        [*COMMAND, "send", "dummy", text, "--no-response"],
        cwd=victim.folder / "project",
        env=environ,
        stdout=subprocess.DEVNULL,
    ):
        pasted, submitted = _wait(victim, "paste", text), _wait(victim, "submit", text)
    _wait(victim, "turn-end", text)
    time.sleep(0.5)
    return (pasted - begun) * 1000, (submitted - begun) * 1000


def main() -> None:
    """Print medians and 90th percentiles."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with _host() as durable, _host("forgetful") as forgetful:
        hosts = {"written down": durable, "nothing written": forgetful}
        for victim in hosts.values():
            send(victim, 0)  # the first pays for imports
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in hosts}
        for number in range(1, count + 1):
            for name, victim in hosts.items():
                times[name].append(send(victim, number))
    for name, found in times.items():
        for at, what in enumerate(("in the composer", "submitted")):
            values = sorted(pair[at] for pair in found)
            median, late = statistics.median(values), values[int(0.9 * len(values))]
            print(f"{name:16} {what:16} median {median:6.0f} ms   90 % {late:6.0f} ms")


if __name__ == "__main__":
    main()
