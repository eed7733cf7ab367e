"""From the start of `synapse send` to the text in the agent's composer: `python -m tests.bench.send [N]`.

`python -m tests.bench.send queue [N]` gives one agent N messages at once (300) and tells how fast they are
worked off, and how long after the end of a turn the next text is in the composer.

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

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client

from .crash import LIMIT, ROOT, Victim

STEPS = ("paste", "submit", "turn-end")
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
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        for record in victim.events(event):
            if record["text"].endswith(text):
                return float(record["t"])
        time.sleep(0.005)
    raise TimeoutError(f"{event} of {text!r}")


def send(victim: Victim, number: int) -> tuple[float, float]:
    """Send one message."""
    text = f"message {number}."
    environ = {"PATH": os.environ["PATH"], "HOME": str(victim.folder / "home"), "PYTHONPATH": str(ROOT)}
    begun = time.time()
    with subprocess.Popen(
        [*COMMAND, "send", "dummy", text, "--no-response"],
        cwd=victim.folder / "project",
        env=environ,
        stdout=subprocess.DEVNULL,
    ) as command:
        status = command.wait()
        if status:
            raise SystemExit(f"synapse send ended with {status}")
        pasted, submitted = _wait(victim, "paste", text), _wait(victim, "submit", text)
    _wait(victim, "turn-end", text)
    time.sleep(0.5)
    return (pasted - begun) * 1000, (submitted - begun) * 1000


def _print(what: str, milliseconds: list[float]) -> None:
    values = sorted(milliseconds)
    median, late = statistics.median(values), values[int(0.9 * len(values))]
    print(f"{what:33} median {median:6.0f} ms   90 % {late:6.0f} ms")


def work_off(count: int) -> None:
    with _host() as victim:
        client = Client(timeout=LIMIT)
        for number in range(count):
            client.call(victim.endpoint, calls.send(f"message {number}."))
        deadline = time.monotonic() + LIMIT + count
        while len(victim.events("turn-end")) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(victim.events('turn-end'))} of {count} messages")
            time.sleep(0.05)
        times = {name: [float(each["t"]) for each in victim.events(name)] for name in STEPS}
    pastes, submits, ends = (times[name] for name in STEPS)
    print(f"{count} messages, {(count - 1) / (submits[-1] - submits[0]):.2f} a second")
    _print("turn end to next paste", [(b - a) * 1000 for a, b in zip(ends, pastes[1:], strict=False)])
    _print("paste to submit", [(b - a) * 1000 for a, b in zip(pastes, submits, strict=True)])
    _print("submit to turn end", [(b - a) * 1000 for a, b in zip(submits, ends, strict=True)])


def main() -> None:
    if sys.argv[1:2] == ["queue"]:
        work_off(int(sys.argv[2]) if len(sys.argv) > 2 else 300)
        return
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
            _print(f"{name:16} {what}", [pair[at] for pair in found])


if __name__ == "__main__":
    main()
