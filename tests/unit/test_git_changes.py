"""Changed lines of a folder: counted by git, without disturbing the agents that work there."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from synapse_tui.agents.worktrees import changes
from synapse_tui.agents.worktrees.changes import LineCounter
from synapse_tui.agents.worktrees.line_counts import (
    CALM_REST,
    CREDIT,
    REST,
    SHARE,
    WHOLE_REST,
    Activity,
    ChangeCounter,
    FolderChange,
    parse_numstat,
)
from tests.worktree_kit import ENVIRON, add, commit, make_repository


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


def test_changed_lines_are_counted_by_file_the_largest_first(repository: Path) -> None:
    (repository / "small.py").write_text("one\n2\n")
    (repository / "large.py").write_text("one\ntwo\n" + "more\n" * 5)
    (repository / "gone.py").unlink()
    (repository / "new.py").write_text("1\n2\n3\n")
    change = LineCounter(repository, ENVIRON).count()
    files = (("large.py", 5, 0), ("new.py", 3, 0), ("gone.py", 0, 2), ("small.py", 1, 1))
    assert change == FolderChange(files)
    assert (change.added, change.removed) == (9, 3)


def test_a_folder_without_a_commit_has_no_counts(tmp_path: Path) -> None:
    assert LineCounter(tmp_path, ENVIRON).count() is None
    assert LineCounter(tmp_path / "missing", ENVIRON).count() is None


def test_only_what_was_written_is_looked_at(repository: Path) -> None:
    (repository / "small.py").write_text("one\n2\n")
    (repository / ".gitignore").write_text("*.log\n")
    counter = LineCounter(repository, ENVIRON)
    first = counter.count()
    for name in ("small.py", "large.py", "new.py", "unseen.py", "run.log"):
        (repository / name).write_text("1\n")
    (repository / "large.py").chmod(0o755)
    written = [repository / name for name in ("large.py", "new.py", "run.log", "never-made.py")]
    change = counter.count([*written, repository.parent / "elsewhere.py"], whole=False)
    assert first == FolderChange((("small.py", 1, 1), (".gitignore", 1, 0)))
    counted = {"large.py": (1, 2), "small.py": (1, 2), ".gitignore": (1, 0), "new.py": (1, 0)}
    assert change is not None
    assert {path: (added, removed) for path, added, removed in change.files} == counted
    (repository / "new.py").unlink()
    again = counter.count(whole=False)
    assert again is not None
    assert {path for path, *_counts in again.files} == counted.keys() - {"new.py"}
    assert not (repository / ".git" / "index.lock").exists()


def test_after_a_commit_everything_is_looked_at(repository: Path) -> None:
    (repository / "small.py").write_text("one\n2\n")
    counter = LineCounter(repository, ENVIRON)
    counter.count()
    git(repository, "commit", "-qam", "more")
    assert counter.count(whole=False) == FolderChange()


def test_in_a_folder_below_only_that_folder_counts(repository: Path) -> None:
    below = repository / "src"
    below.mkdir()
    (below / "a.py").write_text("1\n")
    (repository / "small.py").write_text("one\n2\n")
    assert LineCounter(below, ENVIRON).count() == FolderChange((("a.py", 1, 0),))


def test_what_a_worktree_has_committed_counts_too(tmp_path: Path) -> None:
    tree = add(make_repository(tmp_path / "shop"), "alice")
    commit(tree.path, a_py="ONE\ntwo\nthree\n")
    (tree.path / "b.py").write_text("one\n")
    assert LineCounter(tree.path, ENVIRON).count() == FolderChange((("a.py", 1, 1), ("b.py", 0, 2)))


def test_very_many_changes_are_counted_by_the_index_of_the_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_PATHS", 1)
    (repository / "small.py").write_text("one\n2\n")
    (repository / "large.py").write_text("one\n2\n")
    counter = LineCounter(repository, ENVIRON)
    change = counter.count()
    assert change == FolderChange((("large.py", 1, 1), ("small.py", 1, 1)))
    assert counter.count([repository / "gone.py"], whole=False) == change


def test_binary_files_have_no_lines() -> None:
    assert parse_numstat("-\t-\ta.png\0003\t1\tb c.py\0") == FolderChange((("b c.py", 3, 1), ("a.png", 0, 0)))


class Counting:
    """Counts that take as long as the test says."""

    def __init__(self) -> None:
        self.now, self.takes = 100.0, 0.0
        self.counted: list[tuple[Path, set[Path], bool]] = []

    async def __call__(self, folder: Path, touched: Collection[Path], whole: bool) -> FolderChange | None:
        self.counted.append((folder, set(touched), whole))
        self.now += self.takes
        await asyncio.sleep(0)
        return FolderChange((("a", len(self.counted), 0),))

    @property
    def folders(self) -> list[Path]:
        return [folder for folder, *_how in self.counted]


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def counter(counting: Counting) -> ChangeCounter:
    return ChangeCounter(counting, lambda: counting.now, lambda: counting.now)


ONE, OTHER = Path("/one"), Path("/other")
IDLE = Activity()


async def test_where_something_happens_is_counted_often_elsewhere_rarely(
    counting: Counting, counter: ChangeCounter
) -> None:
    assert await counter.look({ONE: IDLE, OTHER: IDLE})
    assert counting.folders == [ONE, OTHER, ONE, OTHER], "what is known at once, then all of it"
    assert not await counter.look({ONE: IDLE, OTHER: IDLE})
    counting.now += REST
    busy = {ONE: Activity(7), OTHER: IDLE}
    assert counter.due(ONE, busy[ONE])
    assert not counter.due(OTHER, IDLE)
    assert await counter.look(busy)
    assert counter.get(ONE) == FolderChange((("a", 5, 0),))
    counting.now += CALM_REST
    await counter.look(busy)
    assert counting.folders[5:] == [OTHER, ONE]
    assert [whole for *_which, whole in counting.counted] == [False] * 2 + [True] * 2 + [False] * 3


async def test_what_hooks_report_is_counted(counting: Counting, counter: ChangeCounter) -> None:
    await counter.look({ONE: IDLE, OTHER: IDLE})
    counter.touch(ONE / "x.py")
    counting.now += REST
    await counter.look({ONE: IDLE, OTHER: IDLE})
    assert counting.counted[4:] == [(ONE, {ONE / "x.py"}, False)]


async def test_all_is_counted_at_the_end_of_a_turn_and_now_and_then(
    counting: Counting, counter: ChangeCounter
) -> None:
    for drawn, ended in ((1, 0.0), (2, 0.0), (3, 5.0), (4, 5.0)):
        await counter.look({ONE: Activity(drawn, ended)})
        counting.now += REST
    counting.now += WHOLE_REST
    await counter.look({ONE: Activity(4, 5.0)})
    how = [False, True, False, False, True, False, False, True]
    assert [whole for *_which, whole in counting.counted] == how


async def test_counts_of_all_folders_together_take_a_hundredth_of_the_time(
    counting: Counting, counter: ChangeCounter
) -> None:
    counting.takes = 0.02
    began, folders = counting.now, [Path(f"/{number}") for number in range(10)]
    for second in range(3600):
        counting.now = max(counting.now, began + second)
        await counter.look({folder: Activity(second, second // 60) for folder in folders})
    taken = counting.takes * len(counting.counted)
    assert taken <= (counting.now - began + CREDIT) / SHARE + 2 * counting.takes
    for kind in (False, True):
        counts = [sum(each[::2] == (folder, kind) for each in counting.counted) for folder in folders]
        assert 25 < max(counts) < 2 * min(counts), "a folder is forgotten"


async def test_counts_never_run_at_the_same_time(counting: Counting, counter: ChangeCounter) -> None:
    await asyncio.gather(counter.look({ONE: IDLE}), counter.look({OTHER: IDLE}))
    assert set(counting.folders) == {ONE}
