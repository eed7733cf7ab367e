"""Nothing is deleted: what a worktree holds is kept under `refs/synapse/keep/`, its folder moves to a trash.

`git stash` is not used: one stack serves all worktrees, so that agents take each other's work. `git worktree
remove` is not used on a folder that exists: it deletes ignored files without a word.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from synapse_tui.agents.worktrees.trees import (
    COMMIT,
    MOST_AT_ONCE,
    TRASH,
    Repository,
    Worktree,
    free_trash,
    linked_path,
)
from synapse_tui.core.content import plain
from synapse_tui.core.errors import WorktreeError
from synapse_tui.system.dataclass import dataclass

KEEP = "refs/synapse/keep"
MODULES = ".git-modules"  # in the trash: git folders of submodules that cannot be found
DAYS = 30
"""Days for which removed worktrees are kept."""
_WHO = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in (("NAME", "synapse-tui"), ("EMAIL", "synapse-tui@localhost"))
}


@dataclass(frozen=True, slots=True)
class Kept:
    """What a worktree held at some time.

    Attributes:
        ref: The ref that keeps it.
        name: The agent's name.
        when: When it was kept, in seconds since the epoch.
        why: Why it was kept.
        head: The commit that the worktree was at.
        branch: The branch it was made with.
        trash: Where its folder was moved, with ignored files; empty if it was not removed.
    """

    ref: str
    name: str
    when: float
    why: str
    head: str
    branch: str
    trash: str = ""

    @property
    def short(self) -> str:
        """The ref as commands take it."""
        return self.ref.removeprefix(f"{KEEP}/")


def snapshot(repository: Repository, folder: Path) -> str:
    """Return a commit of a folder as it is now, with untracked files; HEAD if that is the same.

    The folder's index and branch stay as they are. Its staged files are the commit's second parent, and what
    is being merged into it is its last.
    """
    git = repository.git.at(folder)
    head = git.run("rev-parse", "HEAD").strip()
    changed = repository.changed(folder)
    if not changed:
        return head
    index = Path(git.run("rev-parse", "--path-format=absolute", "--git-path", "index").strip())
    with TemporaryDirectory(prefix="synapse-index-") as temporary:
        copy = Path(temporary) / "index"
        shutil.copy2(index, copy)  # with its time, by which git tells changes of the same second
        extra = {"GIT_INDEX_FILE": str(copy), **_WHO}
        status, staged = git.call("write-tree", extra=extra, expected=(0, 128))
        repository.stage(folder, changed, extra)
        tree = git.run("write-tree", extra=extra).strip()
    if tree == git.run("rev-parse", "HEAD^{tree}").strip() and (status or staged.strip() == tree):
        return head
    parents = ["-p", head]
    if status == 0 and staged.strip() not in (tree, git.run("rev-parse", "HEAD^{tree}").strip()):
        commit = git.run("commit-tree", staged.strip(), "-p", head, "-m", "staged", extra=_WHO).strip()
        parents += ["-p", commit]
    # without it, what a merge has brought would count as the agent's
    merging = git.run("rev-parse", "-q", "--verify", "MERGE_HEAD", expected=(0, 1)).strip()
    parents += ["-p", merging] if merging else []
    return git.run("commit-tree", tree, *parents, "-m", "as the worktree was", extra=_WHO).strip()


def keep(repository: Repository, tree: Worktree, why: str, trash: str = "") -> Kept:
    """Keep what a worktree holds now, its commits included."""
    git = repository.git
    held = tree.head if tree.missing else snapshot(repository, tree.path)
    head = tree.head if tree.missing else git.at(tree.path).run("rev-parse", "HEAD").strip()
    now = datetime.now(UTC)
    facts = {"name": tree.name, "why": why, "head": head, "branch": tree.own_branch, "trash": trash}
    content = git.run("rev-parse", f"{held}^{{tree}}").strip()
    others = [held] if held != head else []
    parents = [word for each in (head, *others, *_put_aside(repository, tree, head)) for word in ("-p", each)]
    commit = git.run(
        "commit-tree", content, *parents, "-m", json.dumps({**facts, "when": now.timestamp()}), extra=_WHO
    ).strip()
    number = 0
    while True:
        stamp = now.strftime("%Y%m%d-%H%M%S") + (f"-{number}" if number else "")
        ref = f"{KEEP}/{tree.name}/{stamp}"
        if git.succeeds("update-ref", ref, commit, ""):
            return Kept(ref, tree.name, now.timestamp(), why, head, tree.own_branch, trash)
        number += 1
        if number > MOST_AT_ONCE:
            raise WorktreeError(
                f"what {tree.name} holds cannot be kept in {repository.top}",
                "check the repository with git fsck",
            )


def _put_aside(repository: Repository, tree: Worktree, head: str) -> list[str]:
    """Return commits that only the worktree's git folder knows: those that it was at, and git's autostash."""
    at = ("--git-dir", str(tree.gitdir))
    found = repository.git.run(*at, "log", "-g", "--format=%H", "HEAD", expected=(0, 128)).split()
    for name in ("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash"):
        with contextlib.suppress(OSError):
            found.append((tree.gitdir / name).read_text(encoding="utf-8").strip())
    wanted = "\n".join([*dict.fromkeys(found), f"^{head}"])
    # what git has deleted meanwhile counts for nothing
    words = ("rev-list", "--ignore-missing", "--topo-order", "--parents", "--stdin")
    listed = [line.split() for line in repository.git.run(*words, stdin=wanted).splitlines()]
    parents = {parent for _commit, *several in listed for parent in several}
    return [commit for commit, *_parents in listed if commit not in parents]


def kept(repository: Repository) -> list[Kept]:
    """Return all that is kept, the newest first."""
    listed = repository.git.run("for-each-ref", "--format=%(refname)%00%(contents)%00", KEEP)
    fields = listed.split("\0")
    found = []
    for ref, message in zip(fields[::2], fields[1::2], strict=False):
        try:
            facts = json.loads(message)
            one = Kept(
                ref.strip(),
                str(facts["name"]),
                float(facts["when"]),
                str(facts["why"]),
                str(facts["head"]),
                str(facts["branch"]),
                str(facts["trash"]),
            )
            if COMMIT.fullmatch(one.head):
                found.append(one)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return sorted(found, key=lambda each: -each.when)


def find_kept(repository: Repository, name: str) -> Kept:
    """Return what is kept under a ref, or last of an agent."""
    found = kept(repository)
    for each in found:
        if name in (each.short, each.ref, each.name):
            return each
    raise WorktreeError(f"nothing is kept of '{name}'", "'synapse worktree keep' lists what is kept")


def restore(repository: Repository, one: Kept, *, place: str = "beside") -> Worktree:
    """Make a worktree again with all that it held; what was not committed is not committed again."""
    made = repository.add(one.name, place=place, branch=one.branch).tree
    git = repository.git.at(made.path)
    with repository.locked():
        git.run("reset", "-q", "--hard", one.head)
        git.run("read-tree", "--reset", "-u", one.ref)
        git.run("read-tree", one.head)
        git.run("update-index", "-q", "--refresh", expected=(0, 1))
    return repository.tree(one.name)


def remove(repository: Repository, tree: Worktree, why: str) -> Kept:
    """Remove a worktree and its branch; keep what it held, and move its folder to the trash.

    Raises:
        WorktreeError: A program runs in it, or the folder cannot be moved.
    """
    with repository.locked():
        running = None if tree.missing else next(processes_in(tree.path), None)
        if running is not None:
            raise WorktreeError(
                f"process {running} ({_command_of(running)}) runs in {tree.path}", "end it first"
            )
        trash = None if tree.missing and not _has_submodules(tree) else free_trash(tree.path)
        held = keep(repository, tree, why, str(trash or ""))
        repository.unlock(tree)
        if trash is not None:
            try:
                trash.parent.mkdir(parents=True, exist_ok=True)
                if tree.missing:
                    trash.mkdir()
                else:
                    tree.path.rename(trash)
                _keep_submodules(repository, tree, trash)
            except OSError as error:
                raise WorktreeError(f"{tree.path} cannot be moved to {trash}: {error.strerror}") from error
        repository.git.run("worktree", "remove", "--force", str(tree.path))
        # Only what is kept of it: a branch that has moved since, or is checked out elsewhere, stays.
        git, tip = repository.git, repository.own_tip(tree)
        free = tip and repository.checkout_of(tree.own_branch) is None
        if free and git.succeeds("merge-base", "--is-ancestor", tip, held.ref):
            git.call("update-ref", "-d", f"refs/heads/{tree.own_branch}", tip, expected=(0, 1, 128))
        return held


def _keep_submodules(repository: Repository, tree: Worktree, trash: Path) -> None:
    """Give each submodule its own git folder, which git deletes with the worktree's.

    A submodule that cannot be found stays together: all of them are then in `.git-modules` in the trash.
    """
    modules = tree.gitdir / "modules"
    for config in sorted(modules.rglob("config")):
        gitdir = config.parent
        if not (gitdir / "HEAD").is_file():  # moved with the one that it is within, or no git folder
            continue
        words = ("config", "--file", str(config))  # from elsewhere: git goes where `core.worktree` points
        worktree = repository.git.run(*words, "core.worktree", expected=(0, 1)).rstrip("\n")
        if worktree:
            repository.git.run(*words, "--unset", "core.worktree")
        path = Path(os.path.normpath(gitdir / worktree))
        link = trash / os.path.relpath(path, tree.path) / ".git"
        if path != tree.path and path.is_relative_to(tree.path) and link.is_file():
            link.unlink()
            shutil.move(gitdir, link)
    if _has_submodules(tree):
        shutil.move(modules, trash / MODULES)


def _has_submodules(tree: Worktree) -> bool:
    return any((tree.gitdir / "modules").rglob("HEAD"))


def expire(repository: Repository, days: int = DAYS) -> list[Kept]:
    """Delete what was removed or kept more than `days` days ago, and return it."""
    oldest = time.time() - days * 86400
    old = [one for one in kept(repository) if one.when < oldest]
    for one in old:
        if one.trash and _is_ours(repository, Path(one.trash)):
            shutil.rmtree(one.trash, ignore_errors=True)
        repository.git.run("update-ref", "-d", one.ref)
    return old


def _is_ours(repository: Repository, trash: Path) -> bool:
    """Whether a folder was a worktree of this repository: a copied one can come with entries of anything."""
    if trash.parent.name != TRASH or os.path.realpath(trash) != str(trash):
        return False
    gitdir = linked_path(trash / ".git")
    return (trash / MODULES).is_dir() if gitdir is None else gitdir.parent == repository.common / "worktrees"


def processes_in(folder: Path) -> Iterator[int]:
    """Yield the processes that work in a folder, as far as this user may see them (proc(5), `cwd`)."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            cwd = (entry / "cwd").readlink()
        except OSError:
            continue
        if cwd.is_relative_to(folder) and int(entry.name) != os.getpid():
            yield int(entry.name)


def _command_of(process: int) -> str:
    """Return the name of a process's program (proc(5), `comm`), which the program chooses."""
    try:
        return plain(Path(f"/proc/{process}/comm").read_text("utf-8", "replace")).strip()
    except OSError:
        return "?"
