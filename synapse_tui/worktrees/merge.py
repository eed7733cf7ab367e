"""Which worktrees will conflict, and how they are merged: the base into the worktree, then fast-forward."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from synapse_tui.dataclass import dataclass
from synapse_tui.errors import WorktreeError

from .keep import keep, snapshot
from .trees import Repository, Worktree


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


def conflicting(repository: Repository, one: str, other: str) -> tuple[str, ...] | None:
    """Return the paths in which two commits conflict; None if this git cannot tell (git-merge-tree(1))."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other)
    status, output = repository.git.call(*words, expected=(0, 1, 128, 129))
    if status > 1:
        return None
    return tuple(dict.fromkeys(each for each in output.split("\0")[1:] if each))


def snapshots(repository: Repository, trees: Sequence[Worktree]) -> dict[str, str]:
    """Return the worktrees as they are now, as commits by name; see `snapshot`."""
    return {tree.name: snapshot(repository, tree.path) for tree in trees if not tree.missing}


def forecast(
    repository: Repository, trees: Sequence[Worktree], heads: Mapping[str, str]
) -> Iterator[Conflict]:
    """Yield the conflicts to come, of each worktree with its branch and with the others.

    Args:
        repository: The repository.
        trees: Its worktrees.
        heads: What they hold, as `snapshots` returns it.
    """
    for tree in trees:
        if tree.name in heads and tree.onto:
            found = conflicting(repository, tree.onto, heads[tree.name])
            if found is None or found:
                yield Conflict(tree.name, tree.onto, found, with_base=True)
    for one, other in combinations(heads, 2):
        found = conflicting(repository, heads[one], heads[other])
        if found is None or found:
            yield Conflict(one, other, found, with_base=False)


def is_merged(repository: Repository, tree: Worktree) -> bool:
    """Whether its branch holds nothing that the other has not, also after a squash merge.

    The ancestry does not tell after a squash: a merge that changes nothing does.
    """
    if not tree.onto:
        return False
    git = repository.git
    if git.succeeds("merge-base", "--is-ancestor", tree.head, tree.onto):
        return True
    status, output = git.call("merge-tree", "--write-tree", tree.onto, tree.head, expected=(0, 1, 128, 129))
    return status == 0 and output.strip() == git.run("rev-parse", f"{tree.onto}^{{tree}}").strip()


def difference(repository: Repository, tree: Worktree, now: str, *words: str) -> str:
    """Return what a worktree changes, as git prints it with these options.

    Args:
        repository: The repository.
        tree: The worktree.
        now: What it holds, as `snapshot` returns it.
        words: Options of git-diff(1).
    """
    git = repository.git.at(tree.path)
    base = git.run("merge-base", tree.onto or tree.base, now, expected=(0, 1)).strip() or tree.base
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
        _check(repository, tree)
        onto = git.run("rev-parse", "--verify", f"refs/heads/{tree.onto}").strip()
        left = repository.changed(tree.path)
        if left and not commit:
            raise WorktreeError(
                f"{tree.name} has uncommitted changes in {_named(left)}",
                "commit them, or give --commit MESSAGE",
            )
        if left:
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
        _check(repository, tree)
        return _commit(repository, tree.path, repository.changed(tree.path), message)


def _commit(repository: Repository, folder: Path, paths: Sequence[str], message: str) -> str:
    git = repository.git.at(folder)
    repository.stage(folder, paths)
    if git.succeeds("diff-index", "--cached", "--quiet", "HEAD"):
        return ""
    git.run("commit", "-q", "-m", message)
    return git.run("rev-parse", "HEAD").strip()


def _check(repository: Repository, tree: Worktree) -> None:
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
    busy = repository.busy(tree.path)
    if busy:
        raise WorktreeError(f"{tree.name} is in the middle of a {busy}", "let it finish, and try again")


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more


def _bring_in(repository: Repository, tree: Worktree, onto: str) -> tuple[str, ...]:
    """Merge the branch into the worktree; return the files in which it conflicts."""
    git = repository.git.at(tree.path)
    base = git.run("merge-base", "HEAD", onto, expected=(0, 1)).strip()
    if not base:
        raise WorktreeError(f"{tree.name} and {tree.onto} have no common commit", "merge them by hand")
    _check_free(repository, tree.path, git.paths("diff", "--name-only", "-z", "--no-renames", base, onto))
    status, _output = git.call(
        *("merge", "-q", "--no-edit", "-m", f"Merge {tree.onto} into {tree.branch}", onto), expected=(0, 1)
    )
    if status == 0:
        return ()
    return tuple(
        dict.fromkeys(git.paths("diff", "--name-only", "-z", "--diff-filter=U", "--ignore-submodules=dirty"))
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
    git.run("merge", "-q", "--ff-only", "--no-overwrite-ignore", result)
