"""What an agent has changed: in its worktree since it left its branch, elsewhere since the last commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from synapse_tui.dataclass import dataclass
from synapse_tui.git_changes import numstat

from .keep import snapshot
from .merge import Conflict, difference, forecast, snapshots
from .trees import Repository, Worktree


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The changes of one file.

    Attributes:
        path: Its path in the repository.
        added: How many lines were added; 0 for a binary file.
        removed: How many lines were removed; 0 for a binary file.
        lines: The hunks of a unified diff, or why there are none.
    """

    path: str
    added: int
    removed: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of a folder.

    Attributes:
        repository: Its repository.
        tree: Its worktree; None if it is shared with others.
        files: The changes by file.
        uncommitted: How many files are not as committed.
        conflicts: The conflicts to come with its branch and other worktrees; empty for a shared folder.
    """

    repository: Repository
    tree: Worktree | None
    files: tuple[FileDiff, ...]
    uncommitted: int
    conflicts: tuple[Conflict, ...] = ()


def read_changes(folder: Path, environ: Mapping[str, str]) -> Changes:
    """Return what has changed in a folder, with new files; takes no lock of git's.

    Raises:
        WorktreeError: It is in no repository, or in one without a commit, or git failed.
    """
    repository = Repository(folder, environ)
    repository.head()  # says so if there is none
    tree = repository.tree_at(folder)
    uncommitted = len(repository.changed(folder))
    plain, counting = ("--no-renames", "--no-color"), ("--numstat", "-z")
    if tree is None:
        git, now = repository.git.at(folder), snapshot(repository, folder)
        words = ("diff", "--no-ext-diff", "--no-textconv", *plain)
        files = _files(git.run(*words, "HEAD", now), git.run(*words, *counting, "HEAD", now))
        return Changes(repository, None, tuple(files), uncommitted)
    trees = repository.trees()
    heads = snapshots(repository, trees)
    now = heads[tree.name]
    files = _files(
        difference(repository, tree, now, *plain), difference(repository, tree, now, *plain, *counting)
    )
    found = forecast(repository, trees, heads)
    conflicts = tuple(each for each in found if tree.name in (each.one, each.other))
    return Changes(repository, tree, tuple(files), uncommitted, conflicts)


def _files(text: str, counts: str) -> Iterator[FileDiff]:
    parts = ("\n" + text).split("\ndiff --git ")[1:]
    for (path, added, removed), part in zip(numstat(counts), parts, strict=False):
        lines = part.splitlines()[1:]
        start = next((place for place, line in enumerate(lines) if line.startswith("@@")), None)
        yield FileDiff(path, added, removed, tuple(lines if start is None else lines[start:]))
