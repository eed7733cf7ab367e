"""What counting the changes of ten worktrees of 50,000 files costs, while three agents write.

python -m tests.bench.worktrees [SECONDS] [FILES]
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from synapse_tui.agents.worktrees.changes import LineCounter
from synapse_tui.agents.worktrees.line_counts import Activity, ChangeCounter, FolderChange
from tests.worktree_kit import ENVIRON, commit, git, make_repository

TREES = 10
WRITING = 3  # agents that write
EACH = 3.0  # seconds between two files that an agent writes
TURN = 30.0  # seconds of a turn
PER_FOLDER = 20
MOST = 0.01  # of a core


def make(folder: Path, files: int) -> list[Path]:
    repository = make_repository(folder / "shop")
    for number in range(files):
        path = repository.top / f"{number // PER_FOLDER // 50}" / f"{number // PER_FOLDER}" / f"{number}.py"
        if number % PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"number = {number}\n" * 20)
    git(repository.top, "config", "gc.autoDetach", "false")
    commit(repository.top, "many files")
    return [repository.add(f"agent-{number}").tree.path for number in range(TREES)]


async def measure(trees: list[Path], seconds: float, files: int) -> tuple[float, int, int]:
    """Return the share of a core that counting took, and the numbers of counts of paths and of folders."""
    counters = {tree: LineCounter(tree, ENVIRON) for tree in trees}
    counts = {True: 0, False: 0}

    async def count(folder: Path, touched: Collection[Path], whole: bool) -> FolderChange | None:
        counts[whole] += 1
        return await asyncio.to_thread(counters[folder].count, touched, whole=whole)

    counter = ChangeCounter(count)
    began, cpu, written = time.monotonic(), spent(), 0
    while (now := time.monotonic() - began) < seconds:
        if now >= written * EACH:
            written += 1
            for tree in trees[:WRITING]:
                name = written * 997 % files
                path = tree / f"{name // PER_FOLDER // 50}" / f"{name // PER_FOLDER}" / f"{name}.py"
                path.write_text(f"written {written}\n" * 10)
                counter.touch(path)
        turns = now // TURN
        await counter.look(
            {tree: Activity(written, turns) if tree in trees[:WRITING] else Activity() for tree in trees}
        )
        await asyncio.sleep(0.25)
    passed = time.monotonic() - began
    changes = [counter.get(tree) for tree in trees[:WRITING]]
    seen = [len(change.files) if change is not None else 0 for change in changes]
    print(f"{written} files written by each, {seen} seen")
    return (spent() - cpu) / passed, counts[False], counts[True]


def spent() -> float:
    """Return the CPU seconds of this process and of the git that it has run."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(seconds: float = 600.0, files: int = 50_000) -> float:
    with tempfile.TemporaryDirectory(prefix="synapse-bench-") as folder:
        began = time.monotonic()
        trees = make(Path(folder), files)
        print(f"{TREES} worktrees of {files} files made in {time.monotonic() - began:.0f} s", flush=True)
        share, some, whole = asyncio.run(measure(trees, seconds, files))
        print(
            f"{share:.2%} of a core in {seconds:.0f} s: {some} counts of paths, {whole} of folders",
            flush=True,
        )
    return share


if __name__ == "__main__":
    given = sys.argv[1:]
    seconds = float(given[0]) if given else 600.0
    sys.exit(main(seconds, *map(int, given[1:2])) > MOST)
