"""Repositories with worktrees, for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from synapse_tui.agents.worktrees.merge import Conflict, forecast, snapshots
from synapse_tui.agents.worktrees.trees import Repository, Worktree

ENVIRON = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def git(folder: Path, *words: str, check: bool = True, stdin: str = "") -> str:
    """Run git as the agents do: with the configuration of the repository."""
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        check=check,
        capture_output=True,
        input=stdin,
        env=ENVIRON,
        encoding="utf-8",
        errors="replace",
    )
    return done.stdout


def commit(folder: Path, message: str = "more", **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def make_repository(folder: Path) -> Repository:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b")
    (folder / ".gitignore").write_text("*.log\n.env\nbuild/\n")
    commit(folder, "begin", a_py="one\ntwo\nthree\n", b_py="one\ntwo\nthree\n")
    return Repository(folder, ENVIRON)


def add(repository: Repository, name: str) -> Worktree:
    return repository.add(name).tree


def foreseen(repository: Repository) -> list[Conflict]:
    trees = repository.trees()
    return list(forecast(repository, trees, snapshots(repository, trees)))
