"""Dialogs that open in the very moment of Enter: `python -m tests.bench.dialogs [TRIES] [KINDS]`.

An agent that rests with a message of ours in its composer opens a permission dialog by itself, as a hook or a
task in the background would, in one of these ways:

    timer    by a timer of its own that is due within a millisecond of Enter
    before   by a signal that comes 0 to 300 microseconds before Enter is written, after the last look
    after    by a signal that comes 0 to 100 microseconds after Enter was written
    lag      by a timer due up to 40 ms before Enter, and it shows everything 30 ms late
    working  as before, and in the midst of a turn: the message is one of priority 4

The dummy's own log tells what its dialogs were given. The status is 1 when an Enter was among that, or when a
message was not submitted exactly once. SYNAPSE_BENCH_AGENTS agents (2) are worked at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synapse_tui.core.model import AgentState, TaskState
from tests.integration.session_rig import Rig, open_rig, until

KINDS = ("timer", "before", "after", "lag", "working")
QUICK = ("--word-delay", "0", "--reply", "ok")
TURN = "%%hang:1.5%%"
LAG = 30
SAME = 0.001
"""Seconds between a dialog and an Enter that count as the same moment."""


@dataclass
class Tally:
    """What happened.

    Attributes:
        tries: Messages.
        entered: When Enter was written, by number of the message, as often as it was.
        opened: When dialogs opened, by number of the message.
        wrong: What should not have happened.
    """

    tries: int = 0
    entered: dict[int, list[float]] = field(default_factory=dict)
    opened: dict[int, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def same_moment(self) -> int:
        return sum(
            any(abs(enter - opened) <= SAME for enter in self.entered.get(number, ()))
            for number, opened in self.opened.items()
        )

    def row(self, name: str) -> str:
        again = sum(len(enters) > 1 for enters in self.entered.values())
        into = sum(count for key, count in self.answers.items() if key != "escape")
        return (
            f"{name:8}{self.tries:7}{len(self.opened):9}{self.same_moment:9}{again:15}{into:10}"
            f"{len(self.wrong):8}"
        )


class Watch:
    """Hears of every Enter that is written in this process, and may do something around it."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[[], None]] = {}
        self.after: dict[int, Callable[[float], None]] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        write = os.write

        def watched(descriptor: int, data: Any) -> int:
            if len(data) != 1 or bytes(data) != b"\r":
                return write(descriptor, data)
            if (before := self.before.get(descriptor)) is not None:
                before()
            count = write(descriptor, data)
            written = time.time()
            if (after := self.after.get(descriptor)) is not None:
                after(written)
            return count

        os.write = watched
        try:
            yield
        finally:
            os.write = write


class Tries:
    """Messages to one agent, each of which meets a dialog.

    Args:
        rig: The agent.
        kind: How its dialogs open.
        watch: Hears of Enter.
        tally: Where it is counted.
        chance: Decides when.
    """

    def __init__(self, rig: Rig, kind: str, watch: Watch, tally: Tally, chance: random.Random) -> None:
        self._rig = rig
        self._kind = kind
        self._watch = watch
        self._tally = tally
        self._chance = chance
        self._delays: list[float] = [0.055]
        self._number = -1
        self._armed = False
        self._texts: list[str] = []

    async def run(self, numbers: Iterator[int]) -> None:
        await self._rig.ready()
        console = self._rig.session.console
        self._watch.before[console.process.fd] = self._before
        self._watch.after[console.process.fd] = self._after
        for number in numbers:
            await self._try(number)
        self._check()

    def _before(self) -> None:
        if self._kind in ("before", "working") and self._armed:
            self._surprise()
            _spin(self._chance.uniform(0, 300e-6))

    def _after(self, written: float) -> None:
        self._tally.entered.setdefault(self._number, []).append(written)
        if self._kind == "after" and self._armed:
            _spin(self._chance.uniform(0, 100e-6))
            self._surprise()

    def _surprise(self) -> None:
        self._armed = False
        os.kill(self._rig.session.pid, signal.SIGUSR1)

    def _text(self, number: int) -> str:
        """The message; those of the timers say when the dialog opens, counted from the paste."""
        if self._kind not in ("timer", "lag"):
            return f"message {number}"
        spread = (-SAME, SAME) if self._kind == "timer" else (-0.04, SAME)
        instant = statistics.median(self._delays[-9:]) + self._chance.uniform(*spread)
        return f"%%surprise:{instant * 1000:.3f}%% message {number}"

    async def _try(self, number: int) -> None:
        rig = self._rig
        if self._kind == "working":
            rig.send(TURN)
            await rig.state(AgentState.PROCESSING)
        self._number, self._armed = number, True
        text = self._text(number)
        self._texts.append(text)
        seen = len(rig.records())
        task = rig.send(text, 4)
        denied = 0.0

        def ended() -> bool:
            nonlocal denied
            # Not by the keyboard: nobody must wait until the user is quiet again.
            if rig.session.reading().dialog and time.monotonic() - denied > 0.2:
                denied = time.monotonic()
                rig.session.console.write(b"\x1b")
            return rig.session.tasks.get(task.id).state.final

        await until(ended, f"the end of message {number}", 30)
        await until(lambda: rig.session.report.state is AgentState.READY or ended(), "READY")
        state = rig.session.tasks.get(task.id)
        if state.state is not TaskState.COMPLETED:
            self._tally.wrong.append(f"{number}: {state.state} {state.reason}")
        self._note(number, rig.records()[seen:])

    def _note(self, number: int, records: list[dict[str, Any]]) -> None:
        tally = self._tally
        tally.tries += 1
        opened = [record["t"] for record in records if record["event"] == "dialog-open"]
        pasted = [record["t"] for record in records if record["event"] == "paste"]
        if opened:
            tally.opened[number] = opened[0]
        if pasted and tally.entered.get(number):
            self._delays.append(tally.entered[number][0] - pasted[0])
        keys = [r.get("text") or r["key"] for r in records if r["event"] == "key" and r.get("dialog")]
        tally.answers.update(keys)
        if set(keys) - {"escape"}:
            tally.wrong.append(f"{number}: a dialog was given {keys}")

    def _check(self) -> None:
        submitted = [text for text in self._rig.submitted if text != TURN]
        if submitted != self._texts:
            self._tally.wrong.append(f"submitted {len(submitted)} of {len(self._texts)}, or others")


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@contextlib.asynccontextmanager
async def _rigs(kind: str, count: int) -> AsyncIterator[list[Rig]]:
    options = (*QUICK, "--lag", str(LAG)) if kind == "lag" else QUICK
    async with contextlib.AsyncExitStack() as stack:
        rigs = []
        for _ in range(count):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="synapse-dialogs-")))
            rigs.append(await stack.enter_async_context(open_rig(folder, *options)))
        yield rigs


async def run(kind: str, tries: int, *, agents: int = 1, seed: int = 0) -> Tally:
    """Send messages that meet dialogs."""
    tally, watch, numbers = Tally(), Watch(), iter(range(tries))
    async with _rigs(kind, agents) as rigs:
        with watch.watching():
            await asyncio.gather(
                *(
                    Tries(rig, kind, watch, tally, random.Random(seed + at)).run(numbers)
                    for at, rig in enumerate(rigs)
                )
            )
    return tally


def main() -> None:
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("SYNAPSE_BENCH_TRIES", "500"))
    kinds = sys.argv[2].split(",") if len(sys.argv) > 2 else KINDS
    agents = int(os.environ.get("SYNAPSE_BENCH_AGENTS", "2"))
    seed = random.randrange(1 << 30)
    print("kind      tries  dialogs  same ms  entered again  into it   wrong", flush=True)
    wrong: list[str] = []
    for kind in kinds:
        tally = asyncio.run(run(kind, tries, agents=agents, seed=seed))
        print(tally.row(kind), flush=True)
        wrong += [f"{kind} {what}" for what in tally.wrong]
    print(*wrong, sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
