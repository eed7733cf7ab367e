"""Random work in worktrees, with kill -9 in the middle: no byte that was written is ever gone.

`SYNAPSE_STORM=500 SYNAPSE_STORM_SEEDS=3,4` makes it that long, with these seeds.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from synapse_tui.agents.worktrees import keep
from synapse_tui.agents.worktrees.merge import is_merged, merge
from synapse_tui.agents.worktrees.trees import Repository, Worktree
from synapse_tui.core.errors import WorktreeError
from tests.worktree_kit import ENVIRON, foreseen, git, make_repository

STEPS = int(os.environ.get("SYNAPSE_STORM", "60"))
SEEDS = [int(seed) for seed in os.environ.get("SYNAPSE_STORM_SEEDS", "1,2").split(",")]
NAMES = ("alice", "bob", "carol")
FILES = (
    "a.py",
    "b.py",
    "new-1.txt",
    "new-2.txt",
    "run.log",
    "build/out",
    "deep/er/file.txt",
    "vendor/own.txt",
)
OWN = ("build", "vendor")  # folders that are ignored, or a repository within: no commit has their files
CALL = """
import os, sys
from pathlib import Path
from synapse_tui.agents.worktrees import keep
from synapse_tui.agents.worktrees.merge import merge
from synapse_tui.agents.worktrees.trees import Repository
repository = Repository(Path(sys.argv[1]), dict(os.environ))
what, name = sys.argv[2:4]
if what == "add":
    repository.add(name)
else:
    tree = repository.tree(name)
    if what == "discard":
        keep.remove(repository, tree, "storm")
    else:
        merge(repository, tree, commit="by the storm", squash=what == "squash")
"""


class Storm:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.repository = make_repository(folder / "shop")
        self.top = self.repository.top
        self.count = 0
        self.written: dict[Path, str] = {}  # what a file holds that nobody has changed since
        self.committed: set[str] = set()
        self.log: list[str] = []

    def step(self) -> None:
        trees = {tree.name: tree for tree in self.repository.trees()}
        name = self.random.choice(NAMES)
        tree = trees.get(name)
        actions = (
            *["write"] * 8,
            *["commit"] * 4,
            *["base"] * 3,
            *("write-main", "merge", "merge", "squash", "discard", "prune", "look", "vanish", "rescue"),
            *("killed", "killed", "killed", "restore", "by-hand"),
        )
        action = self.random.choice(actions)
        self.log.append(f"{action} {name}")
        if action in ("base", "write-main"):
            self.write(self.top)
            if action == "base":
                self.commit(self.top)
        elif action in ("prune", "rescue", "restore"):
            {"prune": self.prune, "rescue": self.rescue, "restore": self.restore}[action]()
        elif tree is None or tree.missing:
            with contextlib.suppress(WorktreeError):
                keep.remove(self.repository, tree, "gone") if tree else self.repository.add(name)
        else:
            self.act(action, tree)

    def act(self, action: str, tree: Worktree) -> None:
        if action == "write":
            self.write(tree.path)
        elif action == "commit":
            self.commit(tree.path)
        elif action == "look":
            foreseen(self.repository)
        elif action == "vanish" and self.random.random() < 0.3:  # a person deletes the folder by hand
            shutil.rmtree(tree.path)
            self.forget(tree.path)
        elif action in ("killed", "by-hand"):
            {"killed": self.killed, "by-hand": self.squash_by_hand}[action](tree)
        elif action in ("merge", "squash", "discard"):
            with contextlib.suppress(WorktreeError):
                if action == "discard":
                    keep.remove(self.repository, tree, "storm")
                else:
                    commit = self.random.choice(["", "by the storm"])
                    merge(self.repository, tree, squash=action == "squash", commit=commit)

    def write(self, folder: Path) -> None:
        """Write something new; what stood there was the writer's to replace."""
        path = folder / self.random.choice(FILES)
        self.count += 1
        text = f"written {self.count} {self.random.random()}\n"
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.parent.name == "vendor" and not (path.parent / ".git").exists():
                make_repository(path.parent)
            path.write_text(text)
            self.written[path] = text

    def commit(self, folder: Path) -> None:
        git(folder, "add", "-A", check=False)
        done = subprocess.run(
            ["git", "commit", "-qm", "work"], cwd=folder, env=ENVIRON, capture_output=True, check=False
        )
        if done.returncode == 0:
            self.committed |= {
                text
                for path, text in self.written.items()
                if path.is_relative_to(folder) and path.suffix != ".log" and path.parent.name not in OWN
            }

    def prune(self) -> None:
        for tree in self.repository.trees():
            with contextlib.suppress(WorktreeError):
                if (
                    not tree.missing
                    and not self.repository.changed(tree.path)
                    and is_merged(self.repository, tree)
                ):
                    keep.remove(self.repository, tree, "storm")

    def restore(self) -> None:
        held = keep.kept(self.repository)
        if held:
            with contextlib.suppress(WorktreeError):
                keep.restore(self.repository, self.random.choice(held))

    def squash_by_hand(self, tree: Worktree) -> None:
        """Merge as a person does who knows nothing of us, or fail where something is in the way."""
        if not self.repository.changed(self.top) and not self.repository.busy(self.top):
            git(self.top, "merge", "-q", "--squash", tree.branch, check=False)
            git(self.top, "commit", "-qm", "squashed by hand", check=False)
            git(self.top, "reset", "-q", "--merge", check=False)

    def killed(self, tree: Worktree) -> None:
        what = self.random.choice(["merge", "squash", "discard", "add"])
        name = "dave" if what == "add" else tree.name
        words = [sys.executable, "-c", CALL, str(self.top), what, name]
        with subprocess.Popen(
            words, env=ENVIRON, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            time.sleep(self.random.uniform(0.1, 0.6))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
        self.unlock()
        for each in self.repository.trees():
            if each.name == "dave":
                with contextlib.suppress(WorktreeError):
                    keep.remove(self.repository, each, "storm")

    def unlock(self) -> None:
        """Remove what a killed git leaves, as a person does."""
        for lock in (*self.top.glob(".git/**/*.lock"), self.top / ".git" / "index.lock"):
            if lock.name != "synapse-worktrees.lock":
                lock.unlink(missing_ok=True)
        for head in self.top.glob(".git/worktrees/*/HEAD"):
            if not head.read_text().strip(
                "0\n"
            ):  # of a worktree that was only begun: git reads no history then
                shutil.rmtree(head.parent)

    def rescue(self) -> None:
        """End merges that stand half done, as an agent does: its files stay as they are."""
        for folder in (self.top, *(tree.path for tree in self.repository.trees() if not tree.missing)):
            if self.repository.busy(folder):
                git(folder, "add", "-A", check=False)
                git(folder, "commit", "-qm", "resolved", "--no-edit", check=False)

    def forget(self, folder: Path) -> None:
        self.written = {path: text for path, text in self.written.items() if not path.is_relative_to(folder)}

    def lost(self) -> set[str]:
        """Return what was written and is neither in a folder nor in the trash nor in a commit of a ref."""
        wanted = {*self.written.values(), *self.committed}
        listed = git(self.top, "rev-list", "--objects", "--all")
        blobs = "\n".join(line.split()[0] for line in listed.splitlines())
        batch = subprocess.run(
            ["git", "cat-file", "--batch"],
            cwd=self.top,
            env=ENVIRON,
            input=blobs,
            check=True,
            capture_output=True,
            encoding="latin-1",
        ).stdout
        held = [batch]
        for root in (self.top, self.top.with_name("shop.worktrees")):
            files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
            held += [path.read_text(encoding="latin-1") for path in files]
        everything = "\n".join(held)
        return {text for text in wanted if text.strip() not in everything}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_byte_is_lost(tmp_path: Path, seed: int) -> None:
    storm = Storm(tmp_path, seed)
    for number in range(STEPS):
        storm.step()
        if number % 20 == 19 or number == STEPS - 1:
            assert not storm.lost(), storm.log[-25:]
    assert git(storm.top, "fsck", "--no-dangling", check=False) is not None
    assert isinstance(Repository(storm.top, ENVIRON).trees(), list)
