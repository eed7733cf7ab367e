"""What an agent has changed: in its worktree since it left its branch, elsewhere since the last commit."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from synapse_tui.agents.worktrees.git import Git
from synapse_tui.agents.worktrees.keep import snapshot
from synapse_tui.agents.worktrees.line_counts import FolderChange, numstat, parse_numstat
from synapse_tui.agents.worktrees.merge import Conflict, difference, forecast, snapshots
from synapse_tui.agents.worktrees.trees import Repository, Worktree
from synapse_tui.core.errors import WorktreeError
from synapse_tui.system.dataclass import dataclass

COUNTING = 5.0  # seconds that one command of git may take while lines are counted
MOST_PATHS = 500  # changed paths up to which only these are looked at
_NUMSTAT = ("--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")


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
class FolderChanges:
    """All changes of a folder.

    Attributes:
        top: The folder to which the paths are relative.
        tree: Its worktree; None if it is shared with others.
        files: The changes by file.
        uncommitted: How many files are not as committed.
        conflicts: The conflicts to come with its branch and other worktrees; empty for a shared folder.
        busy: What git is in the middle of in a worktree, such as a merge.
    """

    top: Path
    tree: Worktree | None
    files: tuple[FileDiff, ...]
    uncommitted: int
    conflicts: tuple[Conflict, ...] = ()
    busy: str = ""


def read_changes(folder: Path, environ: Mapping[str, str]) -> FolderChanges:
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
        return FolderChanges(repository.top_of(folder), None, tuple(files), uncommitted)
    trees = repository.trees()
    heads = snapshots(repository, trees)
    now = heads.get(tree.name) or snapshot(repository, tree.path)  # which says why it cannot be read
    files = _files(
        difference(repository, tree, now, *plain), difference(repository, tree, now, *plain, *counting)
    )
    found = forecast(repository, trees, heads)
    conflicts = tuple(each for each in found if tree.name in (each.one, each.other))
    return FolderChanges(tree.path, tree, tuple(files), uncommitted, conflicts, repository.busy(tree.path))


def _files(text: str, counts: str) -> Iterator[FileDiff]:
    parts = ("\n" + text).split("\ndiff --git ")[1:]
    for (path, added, removed), part in zip(numstat(counts), parts, strict=False):
        lines = part.removesuffix("\n").split("\n")[1:]  # form feeds and others are within lines
        start = next((place for place, line in enumerate(lines) if line.startswith("@@")), None)
        yield FileDiff(path, added, removed, tuple(lines if start is None else lines[start:]))


class LineCounter:
    """Counts the lines that have changed in a folder, new files included.

    An index that holds nothing but the changed paths, as they were, lets git look at these alone: that takes
    a few milliseconds in a repository of any size. It neither reads nor locks the agent's own index.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._repository: Repository | None = None
        self._top = folder
        self._head = self._base = ""
        self._empty = ""  # id of an empty file
        # with their entries of the index; None if there are too many
        self._paths: dict[str, str] | None = None
        self._last: FolderChange | None = None

    def count(self, touched: Collection[Path] = (), *, whole: bool = True) -> FolderChange | None:
        """Return the changed lines by file; None if there is no repository with a commit, or git failed.

        Args:
            touched: Files that were written since the last count.
            whole: Whether all files are looked at, and not only those and the ones that had changed before.
        """
        try:
            self._last = self._begin(everything=True) if whole else self._count_some(touched)
        except (WorktreeError, OSError):
            self._last, self._repository = None, None
        return self._last

    def _begin(self, *, everything: bool) -> FolderChange:
        """Count what is committed, and everything else too if that is wanted: git then looks at each file."""
        repository = self._repository = Repository(self._folder, self._environ, COUNTING)
        git = repository.git.at_once(self._folder)
        tree = repository.tree_at(self._folder)
        self._top = repository.top_of(self._folder)
        self._head = self._base = git.run("rev-parse", "HEAD").strip()
        if tree is not None:
            onto = repository.target(tree) or tree.base
            found = git.run("merge-base", onto, "HEAD", expected=(0, 1, 128)).strip()
            self._base = found or tree.base
        prefix = git.run("rev-parse", "--show-prefix").rstrip("\n")
        committed = git.paths("diff", "--name-only", "-z", "--no-renames", self._base, "HEAD", "--")
        paths = {*committed, *(repository.changed(self._folder) if everything else ())}
        paths = {path for path in paths if path.startswith(prefix) and not path.endswith("/")}
        if len(paths) > MOST_PATHS:
            self._paths = None
            return parse_numstat(git.run("diff", *_NUMSTAT, "--relative", self._base, "--"))
        self._empty = git.run("hash-object", "-w", "-t", "blob", "--stdin").strip()
        self._paths = {}
        self._add(git, paths)
        return self._counted(git)

    def _count_some(self, touched: Collection[Path]) -> FolderChange | None:
        if self._repository is None:
            self._begin(everything=False)
        if self._repository is None:
            return None
        git = self._repository.git.at_once(self._folder)
        if git.run("rev-parse", "HEAD").strip() != self._head:
            return self._begin(everything=True)
        if self._paths is None:
            return self._last
        inside = (path for path in touched if path.is_relative_to(self._top))
        new = {str(path.relative_to(self._top)) for path in inside} - self._paths.keys()
        if new:
            known = set(git.paths("ls-tree", "-z", "--full-tree", "--name-only", self._base, "--", *new))
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            text = "\0".join(str(self._top / path) for path in new - known)
            ignored = git.run(*words, stdin=text, expected=(0, 1)) if text else ""
            gone = {str(Path(path).relative_to(self._top)) for path in ignored.split("\0") if path}
            self._add(git, new - gone)
        return self._counted(git)

    def _add(self, git: Git, paths: set[str]) -> None:
        """Add paths as they were: as they are in the commit, or else empty."""
        if not paths or self._paths is None:
            return
        listed = git.paths("ls-tree", "-z", "--full-tree", self._base, "--", *sorted(paths))
        entries = {entry.partition("\t")[2]: entry for entry in listed}
        new = f"100644 blob {self._empty}\t"
        self._paths |= {path: entries.get(path, f"{new}{path}") for path in paths}

    def _counted(self, git: Git) -> FolderChange:
        if not self._paths:
            return FolderChange()
        files = [line for line in self._paths.values() if line.startswith(("100", "120"))]  # no submodules
        with TemporaryDirectory(prefix="synapse-index-") as temporary:
            index = {"GIT_INDEX_FILE": str(Path(temporary) / "index")}
            words = ("update-index", "--replace", "-z", "--index-info")
            git.run(*words, stdin="".join(f"{line}\0" for line in files), extra=index)
            found = parse_numstat(git.run("diff-files", *_NUMSTAT, "--relative", extra=index))
        # Of a new file that is gone again, nothing has changed.
        there = (file for file in found.files if any(file[1:]) or os.path.lexists(self._folder / file[0]))
        return FolderChange(tuple(there))
