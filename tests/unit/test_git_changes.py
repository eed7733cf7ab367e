"""Changed lines of a folder: counted by git, without disturbing the agents that work there."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from synapse_tui.git_changes import REST, SHARE, ChangeCounter, FolderChange, count, parse_numstat

ENVIRON = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, env=ENVIRON)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in ("small.py", "large.py", "gone.py"):
        (tmp_path / name).write_text("one\ntwo\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "begin")
    return tmp_path


async def test_changed_lines_are_counted_by_file_the_largest_first(repository: Path) -> None:
    (repository / "small.py").write_text("one\n2\n")
    (repository / "large.py").write_text("one\ntwo\n" + "more\n" * 5)
    (repository / "gone.py").unlink()
    change = await count(repository, ENVIRON)
    assert change == FolderChange((("large.py", 5, 0), ("gone.py", 0, 2), ("small.py", 1, 1)))
    assert (change.added, change.removed) == (6, 3)


async def test_a_folder_without_a_commit_has_no_counts(tmp_path: Path) -> None:
    assert await count(tmp_path, ENVIRON) is None
    assert await count(tmp_path / "missing", ENVIRON) is None


async def test_counting_runs_no_program_of_the_repository(repository: Path) -> None:
    ran = repository / "ran"
    for key in ("core.fsmonitor", "diff.external", "diff.x.textconv"):
        git(repository, "config", key, f"touch {ran}; false")
    (repository / ".gitattributes").write_text("*.py diff=x\n")
    (repository / "small.py").write_text("changed\n")
    change = await count(repository, ENVIRON)
    assert change is not None
    assert change.files[0][0] == "small.py"
    assert not ran.exists()


def test_binary_files_have_no_lines() -> None:
    assert parse_numstat("-\t-\ta.png\0003\t1\tb c.py\0") == FolderChange((("b c.py", 3, 1), ("a.png", 0, 0)))


class Counting:
    """Counts that take as long as the test says."""

    def __init__(self) -> None:
        self.now, self.takes, self.counted = 100.0, 0.0, list[Path]()

    async def __call__(self, folder: Path) -> FolderChange | None:
        self.counted.append(folder)
        self.now += self.takes
        await asyncio.sleep(0)
        return FolderChange((("a", len(self.counted), 0),))


@pytest.fixture
def counting() -> Counting:
    return Counting()


ONE, OTHER = Path("/one"), Path("/other")
Count = Callable[[Path], Awaitable[FolderChange | None]]


async def test_a_folder_is_counted_again_only_after_a_while(counting: Counting) -> None:
    counter = ChangeCounter(counting, lambda: counting.now)
    assert await counter.look([ONE, OTHER, ONE])
    assert counting.counted == [ONE, OTHER]
    assert not await counter.look([ONE])
    counting.now += REST
    assert counter.due(ONE)
    assert await counter.look([ONE])
    assert counter.get(ONE) == FolderChange((("a", 3, 0),))


async def test_where_counting_takes_long_it_is_done_rarely(counting: Counting) -> None:
    counter = ChangeCounter(counting, lambda: counting.now)
    counting.takes = 2.0
    await counter.look([ONE])
    counting.now += SHARE * counting.takes - 1
    assert not counter.due(ONE)
    counting.now += 1
    assert counter.due(ONE)


async def test_counts_never_run_at_the_same_time(counting: Counting) -> None:
    counter = ChangeCounter(counting, lambda: counting.now)
    await asyncio.gather(counter.look([ONE]), counter.look([OTHER]))
    assert counting.counted == [ONE]
