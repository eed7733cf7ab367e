"""Which worktrees will conflict, and how they are merged: the base into the worktree, then fast-forward."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from synapse_tui.agents.worktrees.git import LOCKED, Git
from synapse_tui.agents.worktrees.keep import keep, snapshot
from synapse_tui.agents.worktrees.trees import Repository, Worktree
from synapse_tui.core.content import plain
from synapse_tui.core.errors import WorktreeError
from synapse_tui.system.dataclass import dataclass

_MARKS = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Files that two sides have changed so that git cannot merge them.

    Attributes:
        one: An agent.
        other: Another agent, or the branch that it is merged into.
        files: The paths; None if this git cannot tell (before 2.38).
        with_base: Whether the other is a branch.
    """

    one: str
    other: str
    files: tuple[str, ...] | None
    with_base: bool


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of a merge.

    Attributes:
        commit: The commit that the branch is at now; empty if nothing was merged.
        onto: The branch.
        conflicts: The files in which the agent has to resolve conflicts first; then nothing was merged.
        base: The commit of the branch that was brought into the worktree.
    """

    commit: str
    onto: str
    conflicts: tuple[str, ...] = ()
    base: str = ""

    @property
    def request(self) -> str:
        """What the agent is asked if there are conflicts, in one line."""
        return (
            f"{self.onto} was merged into your worktree and conflicts in {listed(self.conflicts)}. "
            "Resolve the conflicts and commit; do not abort or reset the merge."
        )


class _Outcome(NamedTuple):
    """What merging two commits would give: a tree, and the paths in which they conflict."""

    tree: str
    conflicts: tuple[str, ...]


def _foresee(repository: Repository, one: str, other: str) -> _Outcome | None:
    """Merge two commits in no folder; None if this git cannot (git-merge-tree(1))."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other)
    status, output = repository.git.call(*words, expected=(0, 1, 128, 129))
    if status > 1:
        return None
    tree, *paths = output.split("\0")
    return _Outcome(tree, tuple(dict.fromkeys(filter(None, paths))))


def snapshots(repository: Repository, trees: Sequence[Worktree]) -> dict[str, str]:
    """Return the worktrees as they are now, as commits by name; see `snapshot`.

    One that cannot be read is left out: an agent can break its own, and none of the others.
    """
    found = {}
    for tree in trees:
        if not tree.missing:
            with contextlib.suppress(WorktreeError):
                found[tree.name] = snapshot(repository, tree.path)
    return found


def forecast(
    repository: Repository, trees: Sequence[Worktree], heads: Mapping[str, str]
) -> Iterator[Conflict]:
    """Yield the conflicts to come, of each worktree with its branch and with the others.

    Args:
        repository: The repository.
        trees: Its worktrees.
        heads: What they hold, as `snapshots` returns it.
    """
    merged: dict[str, tuple[str, _Outcome]] = {}
    for tree in trees:
        onto = repository.target(tree) if tree.name in heads else ""
        if onto:
            found = _foresee(repository, onto, heads[tree.name])
            if found is not None:
                merged[tree.name] = (onto, found)
            if found is None or found.conflicts:
                yield Conflict(tree.name, tree.onto, found and found.conflicts, with_base=True)
    for one, other in combinations(heads, 2):
        found = _foresee(repository, heads[one], heads[other])
        files = found and found.conflicts
        if files and one in merged and other in merged and merged[one][0] == merged[other][0]:
            files = _without_merged(repository, files, merged[one][0], (merged[one][1], merged[other][1]))
        if files is None or files:
            yield Conflict(one, other, files, with_base=False)


def _without_merged(
    repository: Repository, files: tuple[str, ...], onto: str, outcomes: Sequence[_Outcome]
) -> tuple[str, ...]:
    """Leave out what one side would not change in the branch: the other conflicts there with the branch."""
    for outcome in outcomes:
        if outcome.tree == repository.git.run("rev-parse", f"{onto}^{{tree}}").strip():
            return ()
        before, after = (_entries(repository, tree, files) for tree in (onto, outcome.tree))
        files = tuple(path for path in files if path not in before or before[path] != after.get(path))
    return files


def _entries(repository: Repository, tree: str, files: Sequence[str]) -> dict[str, str]:
    words = ("--literal-pathspecs", "ls-tree", "-r", "-z", tree, "--", *files)
    return {
        path: what for what, _tab, path in (each.partition("\t") for each in repository.git.paths(*words))
    }


def is_merged(repository: Repository, tree: Worktree) -> bool:
    """Whether its branches hold nothing that the other has not, also after a squash merge.

    The ancestry does not tell after a squash: a merge that changes nothing does.
    """
    onto, git = repository.target(tree), repository.git
    for head in filter(None, (tree.head, repository.own_tip(tree))):
        if onto and git.succeeds("merge-base", "--is-ancestor", head, onto):
            continue
        found = _foresee(repository, onto, head) if onto else None
        if found is None or found.conflicts:
            return False
        if found.tree != git.run("rev-parse", f"{onto}^{{tree}}").strip():
            return False
    return True


def difference(repository: Repository, tree: Worktree, now: str, *words: str) -> str:
    """Return what a worktree changes, as git prints it with these options.

    Args:
        repository: The repository.
        tree: The worktree.
        now: What it holds, as `snapshot` returns it.
        words: Options of git-diff(1).
    """
    git = repository.git.at(tree.path)
    onto = repository.target(tree) or tree.base
    base = git.run("merge-base", onto, now, expected=(0, 1)).strip() or tree.base
    return git.run("diff", "--no-ext-diff", "--no-textconv", *words, base, now, "--")


def merge(
    repository: Repository, tree: Worktree, *, squash: bool = False, message: str = "", commit: str = ""
) -> Merged:
    """Merge a worktree into the branch that it began from.

    If that branch has moved, it is merged into the worktree first; conflicts stay there, for the agent. The
    other branch is then only moved forward.

    Args:
        repository: The repository.
        tree: The worktree.
        squash: Whether its commits become one.
        message: The message of that one commit; by default the list of the commits.
        commit: Commit uncommitted work first, with this message.

    Raises:
        WorktreeError: There is uncommitted work here or there that is in the way, or git refused.
    """
    with repository.locked():
        git = repository.git.at(tree.path)
        _check(repository, tree, commits=bool(commit))
        own = repository.own_tip(tree)
        if own and not git.succeeds("merge-base", "--is-ancestor", own, "HEAD"):
            raise WorktreeError(
                f"{tree.name} is on {tree.branch} now, and work is left on {tree.own_branch}",
                f"check out {tree.own_branch} in {tree.path}, or merge it there, and try again",
            )
        onto = repository.target(tree)
        left = repository.changed(tree.path)
        if left and not commit:
            raise WorktreeError(
                f"{tree.name} has uncommitted changes in {_named(left)}",
                "commit them, or give --commit MESSAGE",
            )
        if left or repository.busy(tree.path):
            _commit(repository, tree.path, left, commit)
        if not git.succeeds("merge-base", "--is-ancestor", onto, "HEAD"):
            conflicts = _bring_in(repository, tree, onto)
            if conflicts:
                return Merged("", tree.onto, conflicts, onto)
        head = git.run("rev-parse", "HEAD").strip()
        if git.run("rev-parse", "HEAD^{tree}") == git.run("rev-parse", f"{onto}^{{tree}}"):
            return Merged("", tree.onto)
        result = _squashed(repository, tree, onto, message) if squash else head
        _move_forward(repository, tree, onto, result)
        if squash:
            keep(repository, tree, "before its commits became one")
            git.run("update-ref", "-m", "synapse: squash", "HEAD", result, head)
        return Merged(result, tree.onto)


def commit(repository: Repository, tree: Worktree, message: str) -> str:
    """Commit what is uncommitted in a worktree, as an agent whose sandbox forbids it cannot.

    Returns:
        The commit; empty if there was nothing to commit.
    """
    with repository.locked():
        _check(repository, tree, commits=True)
        return _commit(repository, tree.path, repository.changed(tree.path), message)


def _commit(repository: Repository, folder: Path, paths: Sequence[str], message: str) -> str:
    git = repository.git.at(folder)
    repository.stage(folder, paths)
    if not repository.busy(folder) and git.succeeds("diff-index", "--cached", "--quiet", "HEAD"):
        return ""
    git.run("commit", "-q", "-m", message)
    return git.run("rev-parse", "HEAD").strip()


def _check(repository: Repository, tree: Worktree, *, commits: bool) -> None:
    if tree.missing:
        raise WorktreeError(f"the folder of {tree.name} is gone", "synapse worktree prune tidies up")
    if tree.detached:
        raise WorktreeError(
            f"{tree.name} is on no branch", f"check out its branch in {tree.path}, and try again"
        )
    if not tree.onto:
        raise WorktreeError(
            f"{tree.name} began from no branch",
            f"check out the branch that is to have its work, then: git merge {tree.branch}",
        )
    if not repository.target(tree):
        raise WorktreeError(
            f"the branch {tree.onto} is gone, from which {tree.name} began",
            f"check out the branch that is to have its work, then: git merge {tree.branch}",
        )
    busy = repository.busy(tree.path)
    left = _unresolved(repository, tree) if busy == "merge" and commits else []
    if left:
        raise WorktreeError(
            f"{tree.name} is in the middle of a merge, and conflicts are left in {_named(left)}",
            "let it resolve them, and try again",
        )
    if busy and not (busy == "merge" and commits):
        raise WorktreeError(f"{tree.name} is in the middle of a {busy}", "let it finish, and try again")


def _unresolved(repository: Repository, tree: Worktree) -> list[str]:
    """Return the files in which conflicts are left; an agent that cannot commit cannot tell git either.

    Those of texts have marks. What git cannot mark it leaves as one side has it.
    """
    git = repository.git.at(tree.path)
    sides: dict[str, dict[str, str]] = {}
    for entry in git.paths("ls-files", "--unmerged", "--full-name", "-z", ":/"):
        facts, _tab, path = entry.partition("\t")
        _mode, blob, stage = facts.split()
        sides.setdefault(path, {})[stage] = blob
    return [path for path, blobs in sides.items() if _is_unresolved(git, tree.path / path, blobs)]


def _is_unresolved(git: Git, file: Path, blobs: Mapping[str, str]) -> bool:
    """Whether a file is still as a merge left it; `blobs` are its sides by stage (git-ls-files(1))."""
    if not os.path.lexists(file):
        return False
    if file.is_symlink() or not file.is_file():
        return True
    content = file.read_bytes()
    if _MARKS.search(content):
        return True
    has_marks = b"\0" not in content and {"2", "3"} <= blobs.keys()
    return not has_marks and git.run("hash-object", "--", str(file)).strip() in blobs.values()


def listed(paths: Sequence[str]) -> str:
    """Return paths in one line: names of files may hold line breaks and control characters."""
    return ", ".join(re.sub(r"\s", " ", plain(path)) for path in paths)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return listed(paths[:3]) + more


def _bring_in(repository: Repository, tree: Worktree, onto: str) -> tuple[str, ...]:
    """Merge the branch into the worktree; return the files in which it conflicts."""
    git = repository.git.at(tree.path)
    base = git.run("merge-base", "HEAD", onto, expected=(0, 1)).strip()
    if not base:
        raise WorktreeError(f"{tree.name} and {tree.onto} have no common commit", "merge them by hand")
    _check_free(repository, tree.path, git.paths("diff", "--name-only", "-z", "--no-renames", base, onto))
    # marks of conflicts name what git is given: the branch, unless a tag of that name comes first
    found = git.run("rev-parse", "-q", "--verify", tree.onto, expected=(0, 1)).strip()
    what = tree.onto if found == onto else onto
    status, said = git.call(
        *("merge", "-q", "--no-edit", "-m", f"Merge {tree.onto} into {tree.branch}", what), expected=(0, 1)
    )
    if status == 0:
        return ()
    unmerged = git.paths("diff", "--name-only", "-z", "--diff-filter=U", "--ignore-submodules=dirty")
    if unmerged:
        return tuple(dict.fromkeys(unmerged))
    if git.succeeds("diff-index", "--cached", "--quiet", "HEAD"):
        # It has done nothing, since another git has the index, but noted a merge. Who commits that takes back
        # all that the branch has.
        git.run("merge", "--quit")
        raise WorktreeError(
            f"git cannot write the index of {tree.path}",
            LOCKED,
        )
    raise WorktreeError(
        f"git cannot end the merge of {tree.onto} into {tree.name}: {said.splitlines()[0]}",
        f"finish and commit the merge in {tree.path}",
    )


def _check_free(repository: Repository, folder: Path, paths: Sequence[str]) -> None:
    """Check that no change and no unknown file is in the way: git overwrites ignored files."""
    there = repository.changed(folder, ignored=True)
    taken = [path for path in paths if any(_meets(folder, path, entry) for entry in there)]
    if taken:
        raise WorktreeError(
            f"{folder} has changes of its own in {_named(taken)}", "commit or move them, and try again"
        )


def _meets(folder: Path, path: str, entry: str) -> bool:
    """Whether writing a path touches what git does not have; an entry that ends in `/` is a whole folder."""
    if entry.endswith("/"):
        return path.startswith(entry) and os.path.lexists(folder / path)
    return entry == path or path.startswith(f"{entry}/") or entry.startswith(f"{path}/")


def _squashed(repository: Repository, tree: Worktree, onto: str, message: str) -> str:
    git = repository.git.at(tree.path)
    subjects = git.lines("log", "--reverse", "--no-merges", "--format=%s", f"{onto}..HEAD")
    listed = "\n".join(f"- {subject}" for subject in subjects)
    text = message or (subjects[0] if len(subjects) == 1 else f"Merge {tree.branch}\n\n{listed}")
    return git.run("commit-tree", "HEAD^{tree}", "-p", onto, "-F", "-", stdin=text).strip()


def _move_forward(repository: Repository, tree: Worktree, onto: str, result: str) -> None:
    folder = repository.checkout_of(tree.onto)
    if folder is None:
        repository.git.run("update-ref", "-m", "synapse: merge", f"refs/heads/{tree.onto}", result, onto)
        return
    busy = repository.busy(folder)
    if busy:
        raise WorktreeError(f"{folder} is in the middle of a {busy}", "finish it, and try again")
    git = repository.git.at(folder)
    _check_free(repository, folder, git.paths("diff", "--name-only", "-z", "--no-renames", onto, result))
    try:
        git.run("merge", "-q", "--ff-only", "--no-overwrite-ignore", result)
    except WorktreeError:
        # It moves the branch last: if only that failed, the files go back; what is not of the merge stays.
        if git.run("rev-parse", "HEAD").strip() == onto:
            git.call("read-tree", "-m", "-u", result, onto, expected=(0, 128))
        raise
