"""Answers read from small panes that are resized: `python -m tests.bench.answers [COUNT] [SEED]`.

Four agents give COUNT (200) answers in panes of 39x8. Before a turn, while a dialog is open and while the
answer is printed, their panes take other sizes, chosen by SEED (1). Each stored answer is compared with what
the agent printed, whatever its wrapping. The status is 1 if one differs.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

from synapse_tui.core.model import AgentState, Task
from synapse_tui.dummy.script import WIDE, answer
from tests.integration.session_rig import Rig, open_rig
from tests.waiting import until

SMALL = (39, 8)
SIZES = [SMALL, SMALL, SMALL, (80, 24), (60, 20), (44, 14), (30, 8), (200, 60)]
PERMITTED = "Bash(make all)⎿allowed (and not run: this is a rehearsal)"
WORDS = ["cart", "delta", "total", "tests", "build", "folder", "parser", "cache", "文字列", "行", "順番"]
AGENTS = 4


def words(text: str) -> str:
    return "".join(text.split())


def said(rig: Rig) -> str:
    """Return what the agent prints as the answer of its last turn."""
    asked = [record["text"] for record in rig.records("submit")]
    return answer(asked[-1], turn=len(asked) - 1)


async def resized(rig: Rig, size: tuple[int, int]) -> None:
    if (rig.session.terminal.columns, rig.session.terminal.lines) == size:
        return
    count = len(rig.records("resize"))
    rig.session.resize(*size)
    await until(lambda: len(rig.records("resize")) > count, "the resize")


async def plain(rig: Rig, chance: random.Random) -> tuple[Task, str]:
    size = chance.choice(SIZES)
    if chance.random() < 0.5:
        await resized(rig, size)
    else:
        rig.session.resize(*size)  # the agent draws itself anew while it is given the message
    asked = " ".join(chance.choices(WORDS, k=chance.randint(3, 30)))
    task = rig.send(f"{asked}, then run all the tests and report back in one sentence")
    await rig.done(task)
    return task, said(rig)


async def allowed(rig: Rig, chance: random.Random) -> tuple[Task, str]:
    task = rig.send("%%perm:make all%%")
    await rig.state(AgentState.WAITING)
    for _ in range(chance.randint(1, 4)):
        await resized(rig, chance.choice(SIZES))
    await rig.answer("1")
    await rig.done(task)
    return task, PERMITTED + said(rig)


async def printing(rig: Rig, chance: random.Random) -> tuple[Task, str]:
    task = rig.send("%%wide%% and this is what I ask for")
    await rig.state(AgentState.PROCESSING)
    rig.session.resize(*chance.choice(SIZES))  # the agent learns of it while it prints
    await rig.done(task)
    return task, WIDE + said(rig)


KINDS: dict[str, Callable[[Rig, random.Random], Awaitable[tuple[Task, str]]]] = {
    "plain": plain,
    "allowed": allowed,
    "printing": printing,
}


async def work(folder: str, count: int, chance: random.Random, wrong: Counter[str]) -> None:
    async with open_rig(Path(folder), size=SMALL) as rig:
        await rig.ready()
        printed: list[tuple[str, Task, str]] = []
        for number in range(count):
            name = list(KINDS)[number % len(KINDS)]
            await resized(rig, SMALL)
            printed.append((name, *await KINDS[name](rig, chance)))
            if number % 5 == 0:  # what is drawn a moment later may belong to it, or not
                await resized(rig, chance.choice(SIZES))
        for name, task, expected in printed:
            (stored,) = rig.session.tasks.get(task.id).artifacts
            differs = words(stored.text) != words(expected) or stored.truncated
            wrong[name] += differs
            if differs:
                print(f"--- {name}\n{stored.text}\n--- not\n{expected}", flush=True)


async def main(count: int, seed: int) -> int:
    wrong: Counter[str] = Counter()
    share = -(-count // AGENTS)
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(AGENTS)]
        chances = [random.Random(seed + number) for number in range(AGENTS)]
        pairs = zip(folders, chances, strict=True)
        await asyncio.gather(*(work(folder, share, chance, wrong) for folder, chance in pairs))
    print(f"{share * AGENTS} answers, {sum(wrong.values())} not as printed: {dict(wrong)}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    arguments = [int(word) for word in sys.argv[1:]]
    sys.exit(asyncio.run(main(*arguments, *(200, 1)[len(arguments) :])))
