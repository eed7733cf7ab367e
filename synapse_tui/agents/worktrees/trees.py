"""The worktrees of a repository's agents: where they are, how they are made and locked.

Each is marked by a file in its own git folder, with its agent and the branch that it began from; worktrees
without that mark are another's and never touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from synapse_tui.agents.worktrees.git import TIMEOUT, Git
from synapse_tui.core.errors import WorktreeError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import lock_exclusively, write_private
from synapse_tui.system.paths import make_project_folder
from synapse_tui.system.process_times import given_umask

MARK = "synapse.json"
"""File in a worktree's git folder (`gitrepository-layout(5)`, `worktrees/NAME`)."""
INCLUDE = ".worktreeinclude"
"""Patterns, as in .gitignore, of untracked files that a new worktree gets a copy of."""
TRASH = ".trash"
LOCK_TIMEOUT = 60.0
"""Seconds to wait for another process that makes, merges or removes worktrees."""
MOST_AT_ONCE = 100
"""Removals of one name, or entries of it that are kept, in one second."""
OURS = "synapse-tui"
"""How the reason of our locks begins."""
BRANCH = "synapse/{}"
COMMIT = re.compile(r"[0-9a-f]{40,64}")
_REF = re.compile(r"(?!-)[^\x00-\x20\x7f-\x9f~^:?*\[\\]+")
_NAME = re.compile(r"[^\W_][\w.-]*")
_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG")


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree that was made for an agent.

    Attributes:
        name: The agent's name; the folder is called so too.
        path: The folder.
        gitdir: Its own git folder, below the repository's.
        branch: The branch it is on, or the one it was made with while HEAD is detached.
        own_branch: The one it was made with, which goes with it; an agent can switch to one of the user's.
        head: The commit it is at.
        onto: The branch that it began from and is merged into; empty if HEAD was detached.
        base: The commit it began at.
        made: When, in seconds since the epoch.
        locked: Why it is locked.
        missing: Whether its folder is gone.
        detached: Whether it is on no branch.
    """

    name: str
    path: Path
    gitdir: Path
    branch: str
    own_branch: str
    head: str
    onto: str
    base: str
    made: float
    locked: str = ""
    missing: bool = False
    detached: bool = False

    @property
    def lock_of_others(self) -> str:
        """Why another program has locked it; empty if none has."""
        return "" if self.locked.startswith(OURS) else self.locked


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder that git has checked something out in: the main one, or any worktree."""

    path: Path
    head: str
    branch: str
    locked: str
    missing: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A new worktree.

    Attributes:
        tree: The worktree.
        copied: Files that it got a copy of.
        uncommitted: How many files with changes it does not have, since they are not committed.
    """

    tree: Worktree
    copied: tuple[str, ...]
    uncommitted: int


class Repository:
    """A git repository; `top` is its main folder.

    Raises:
        WorktreeError: The folder is in no repository with a folder to work in.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        git = Git(folder, environ, timeout)
        try:
            common = git.run("rev-parse", "--path-format=absolute", "--git-common-dir").strip()
        except WorktreeError as error:
            if "not a git repository" not in error.message:
                raise
            raise WorktreeError(
                f"{folder} is not in a git repository",
                "worktrees need git: run 'git init' and commit something first",
            ) from None
        self.common = Path(os.path.realpath(common))
        first = self._checkouts(git)[0]
        if git.run("config", "--bool", "core.bare", expected=(0, 1)).strip() == "true":
            raise WorktreeError(f"{first.path} is a bare repository", "work in a clone of it")
        self.top = self._main_folder(git, first.path)
        self.git = git.at(self.top)

    def _main_folder(self, git: Git, listed: Path) -> Path:
        """Return the main folder; git lists its git folder instead if that is elsewhere (a submodule's)."""
        if os.path.lexists(listed / ".git"):
            return listed
        gitdir = git.run("rev-parse", "--absolute-git-dir").strip()
        if Path(os.path.realpath(gitdir)) == self.common:
            found = git.run("rev-parse", "--show-toplevel", expected=(0, 128)).rstrip("\n")
            return Path(os.path.realpath(found)) if found else listed
        words = ("config", "--file", str(self.common / "config"), "core.worktree")
        worktree = git.run(*words, expected=(0, 1)).rstrip("\n")
        if worktree:
            return Path(os.path.realpath(self.common / worktree))
        marks = filter(None, map(_mark, (self.common / "worktrees").glob("*")))
        return next((Path(mark.top) for mark in marks if Path(mark.top, ".git").exists()), listed)

    def checkouts(self) -> list[Checkout]:
        first, *others = self._checkouts(self.git)
        return [replace(first, path=self.top, missing=not self.top.is_dir()), *others]

    def _checkouts(self, git: Git) -> list[Checkout]:
        found = []
        for block in git.run("worktree", "list", "--porcelain").split("\n\n"):
            facts = {line.partition(" ")[0]: line.partition(" ")[2] for line in block.split("\n")}
            if "worktree" in facts:
                branch = facts.get("branch", "").removeprefix("refs/heads/")
                locked = facts["locked"] or "locked" if "locked" in facts else ""
                path = Path(facts["worktree"])
                found.append(Checkout(path, facts.get("HEAD", ""), branch, locked, not path.is_dir()))
        return found

    def trees(self) -> list[Worktree]:
        """Return the worktrees of agents, by name."""
        checkouts = {each.path: each for each in self.checkouts()}
        found = []
        for gitdir in sorted((self.common / "worktrees").glob("*")):
            mark = _mark(gitdir)
            if mark is None:
                continue
            linked = linked_path(gitdir / "gitdir")
            checkout = checkouts.get(linked.parent) if linked is not None else None
            if checkout is not None:
                path = checkout.path
                found.append(
                    Worktree(
                        name=mark.name,
                        path=path,
                        gitdir=gitdir,
                        branch=checkout.branch or mark.branch,
                        own_branch=mark.branch,
                        head=checkout.head,
                        onto=mark.onto,
                        base=mark.base,
                        made=mark.made,
                        locked=checkout.locked,
                        missing=checkout.missing or not (path / ".git").exists(),
                        detached=not checkout.branch,
                    )
                )
        return sorted(found, key=lambda tree: tree.name)

    def tree_at(self, folder: Path) -> Worktree | None:
        """Return the worktree that a folder is in."""
        return next((tree for tree in self.trees() if folder.is_relative_to(tree.path)), None)

    def tree(self, name: str) -> Worktree:
        """Return the worktree of an agent.

        Raises:
            WorktreeError: There is none.
        """
        trees = self.trees()
        for tree in trees:
            if tree.name == name:
                return tree
        known = ", ".join(tree.name for tree in trees)
        hint = f"there are: {known}" if known else "'synapse worktree add' makes one"
        raise WorktreeError(f"no agent '{name}' has a worktree", hint)

    def root(self, place: str) -> Path:
        """Return the folder of the worktrees: `beside` the repository, `inside` it, or below a folder."""
        if place == "beside":
            return self.top.with_name(f"{self.top.name}.worktrees")
        if place == "inside":
            return self.top / ".synapse" / "worktrees"
        folder = Path(place).expanduser()
        if not folder.is_absolute():
            raise WorktreeError(
                f"'{place}' is no place for worktrees", "use beside, inside or an absolute path"
            )
        return folder / self.top.name

    def add(self, name: str, *, place: str = "beside", branch: str = BRANCH) -> Made:
        """Make a worktree with a branch of its own, at the commit of the main folder.

        Nothing that the repository brings is run. Untracked files that `.worktreeinclude` names are copied.
        The worktree is locked, so that no other program removes it.

        Args:
            name: The agent's name.
            place: `beside`, `inside`, or a folder.
            branch: The name of the branch; `{}` stands for the agent's.

        Raises:
            WorktreeError: There is one, the name is none for a folder, or git refused.
        """
        with self.locked():
            return self._add(name, place, branch)

    def _add(self, name: str, place: str, branch: str, held: ExitStack | None = None) -> Made:
        """Make a worktree, and hold it from its start; must be called with the lock held."""
        if not _NAME.fullmatch(name):
            raise WorktreeError(
                f"'{name}' is no name for a worktree", "use letters, digits, '.', '_' and '-'"
            )
        self._tidy_half_made()
        if any(tree.name == name for tree in self.trees()):
            raise WorktreeError(f"'{name}' has a worktree already", "synapse worktree list shows it")
        base = self.head()
        onto = self.git.run("symbolic-ref", "-q", "--short", "HEAD", expected=(0, 1)).strip()
        path = self._root(place) / name
        if os.path.lexists(path) and not _is_empty_folder(path):
            raise WorktreeError(f"{path} exists already", "move it away, or choose another name")
        chosen = self._free_branch(branch.replace("{}", name))
        lock = ("--lock", "--reason", f"{OURS}: {name}")
        self.git.run("worktree", "add", "-q", *lock, "-b", chosen, "--", str(path), base)
        gitdir = Path(self.git.at(path).run("rev-parse", "--absolute-git-dir").strip())
        facts: dict[str, object] = {"name": name, "branch": chosen, "onto": onto, "base": base}
        facts |= {"made": time.time(), "top": str(self.top)}
        if held is not None:
            _hold(gitdir, held)  # no other process knows it before it has our mark
        write_private(gitdir / MARK, json.dumps(facts).encode())
        self.git.at(path).run("update-index", "-q", "--refresh", expected=(0, 1))
        return Made(self.tree(name), tuple(self._copy_included(path)), len(self.changed(self.top)))

    @contextmanager
    def for_agent(
        self, name: str, taken: Callable[[], Collection[Path]], *, place: str = "beside"
    ) -> Iterator[tuple[Worktree, Made | None]]:
        """Give the worktree of an agent; make one if it has none, or another agent works in it.

        No other process gets it until the block ends, when all can see that the agent works there.

        Args:
            name: The agent's name; a number is added where it is taken.
            taken: Returns the folders of worktrees in which other agents work.
            place: Where a new one is made.

        Returns:
            The worktree, and what was made, if it is new.
        """
        made = None
        with ExitStack() as held:
            chosen, tree = self._free(name, taken, held)
            if tree is None:
                with self.locked():
                    chosen, tree = self._free(name, taken, held)
                    if tree is None:
                        made = self._add(chosen, place, BRANCH, held)
                        tree = made.tree
            yield tree, made

    def _free(
        self, name: str, taken: Callable[[], Collection[Path]], held: ExitStack
    ) -> tuple[str, Worktree | None]:
        """Hold the first worktree of an agent in which none works or is about to.

        Returns:
            Its name, and None if it is to be made.
        """
        trees = {tree.name: tree for tree in self.trees()}
        number, chosen = 1, name
        while chosen in trees:
            tree = trees[chosen]
            with ExitStack() as attempt:
                # Looked at once it is held: whoever held it before has a record by now.
                if not tree.missing and _hold(tree.gitdir, attempt) and tree.path not in taken():
                    held.push(attempt.pop_all())
                    return chosen, tree
            number += 1
            chosen = f"{name}-{number}"
        return chosen, None

    def _tidy_half_made(self) -> None:
        """Take away what an `add` that was killed has left; must be called with the lock held.

        It has our lock, which git writes first, but not our mark, which is written last, so no agent has
        worked there. Its folder still goes to the trash, and a branch that has commits of its own stays.
        """
        for gitdir in sorted((self.common / "worktrees").glob("*")):
            if os.path.lexists(gitdir / MARK) or not _text(gitdir / "locked").startswith(f"{OURS}: "):
                continue
            been = {line.split(" ")[1] for line in _text(gitdir / "logs" / "HEAD").splitlines()}
            if (gitdir / "modules").exists() or len(been) > 1:
                continue  # someone has worked there
            linked = linked_path(gitdir / "gitdir")
            path = linked.parent if linked is not None else None
            try:
                if path is not None and path.is_dir() and linked_path(path / ".git") == gitdir:
                    trash = free_trash(path)
                    trash.parent.mkdir(exist_ok=True)
                    path.rename(trash)
                branch = _text(gitdir / "HEAD").removeprefix("ref: ")
                gone = self.common / "synapse-removed"  # git reads no half of it if this is killed too
                shutil.rmtree(gone, ignore_errors=True)
                gitdir.rename(gone)
                shutil.rmtree(gone)
            except OSError as error:
                raise WorktreeError(
                    f"{gitdir}, which a killed process left, cannot be removed: {error.strerror}"
                ) from error
            if branch.startswith("refs/heads/"):
                tip = self.git.run("rev-parse", "-q", "--verify", branch, expected=(0, 1)).strip()
                if tip and self.git.succeeds("merge-base", "--is-ancestor", tip, "HEAD"):
                    self.git.call("update-ref", "-d", branch, tip, expected=(0, 1, 128))

    def head(self) -> str:
        """Return the commit that new worktrees begin from."""
        status, head = self.git.call("rev-parse", "-q", "--verify", "HEAD^{commit}", expected=(0, 1, 128))
        if status:
            raise WorktreeError(f"{self.top} has no commit yet", "commit something first")
        return head.strip()

    def _free_branch(self, wanted: str) -> str:
        """Return the branch to make; where a branch `synapse` forbids `synapse/x`, with a dash."""
        if not self.git.succeeds("check-ref-format", "--branch", wanted):
            raise WorktreeError(f"'{wanted}' is no name for a branch", "choose another name")
        blocking = wanted.rpartition("/")[0]
        name = wanted.replace("/", "-") if blocking and self._has_branch(blocking) else wanted
        number, free = 1, name
        while self._has_branch(free):
            number += 1
            free = f"{name}-{number}"
        return free

    def _has_branch(self, name: str) -> bool:
        return self.git.succeeds("show-ref", "-q", "--verify", f"refs/heads/{name}")

    def _root(self, place: str) -> Path:
        root = self.root(place)
        if place == "inside":
            make_project_folder(self.top)
        try:
            if not root.exists():
                root.mkdir(parents=True)
                if given_umask() >= 0:
                    root.chmod(0o777 & ~given_umask())
            if place == "inside":
                write_private(root / ".gitignore", b"*\n")
        except OSError as error:
            raise WorktreeError(
                f"{root} cannot be made: {error.strerror}", "choose another --place"
            ) from error
        return Path(os.path.realpath(root))

    def _copy_included(self, path: Path) -> Iterator[str]:
        """Copy the untracked files that `.worktreeinclude` names; overwrite none, follow no link out."""
        patterns = self.top / INCLUDE
        if not patterns.is_file():
            return
        listed = ("ls-files", "-z", "--others", "--ignored", f"--exclude-from={patterns}")
        for name in self.git.paths(*listed):
            source, target = self.top / name, path / name
            inside = Path(os.path.realpath(target.parent)).is_relative_to(path)
            if os.path.lexists(target) or not inside or name.startswith(".synapse/worktrees/"):
                continue
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
            except OSError:
                continue
            yield name

    # State

    def changed(self, folder: Path, *, ignored: bool = False) -> list[str]:
        """Return the paths of a folder that are not as committed, with untracked files.

        A repository within it is one path: a submodule's without, another's with a `/` at its end.
        """
        words = ("status", "--porcelain", "-z", "-uall", "--no-renames", "--ignore-submodules=dirty")
        entries = self.git.at(folder).paths(*words, *(("--ignored=matching",) if ignored else ()))
        found = [entry[3:] for entry in entries]
        return found + [path for path in self._changed_submodules(folder) if path not in found]

    def _changed_submodules(self, folder: Path) -> Iterator[str]:
        """Yield the submodules that hold changes; git would run what their own configuration names."""
        listed = self.git.at(folder).paths("ls-files", "--full-name", "--stage", "-z", "--", ":/")
        paths = [entry.partition("\t")[2] for entry in listed if entry.startswith("160000 ")]
        top = self.top_of(folder) if paths else folder
        for path in paths:
            within = top / path
            if not os.path.lexists(within / ".git") or Path(os.path.realpath(within)) != within:
                continue
            try:
                changed = bool(self.changed(within))
            except WorktreeError:
                changed = True  # in doubt there is something to keep
            if changed:
                yield path

    def top_of(self, folder: Path) -> Path:
        return Path(os.path.realpath(self.git.at(folder).run("rev-parse", "--show-toplevel").rstrip("\n")))

    def stage(self, folder: Path, paths: Iterable[str], extra: Mapping[str, str] | None = None) -> None:
        """Put paths that `changed` returns into the index as they are now.

        Repositories within are left out. `git add` is not used: it fails where one has no commit yet, adds
        others as submodules that cannot be cloned, and looks into submodules.

        Args:
            folder: A folder of the worktree.
            paths: The paths.
            extra: Further environment variables, such as `GIT_INDEX_FILE`.
        """
        top = self.top_of(folder)
        there: list[str] = []
        gone: list[str] = []
        for path in paths:
            if not path.endswith("/"):
                real = Path(os.path.realpath((top / path).parent)) / Path(path).name
                (there if real == top / path and _is_storable(real) else gone).append(path)
        git = self.git.at(top)
        for words, some in ((("--force-remove",), gone), (("--add", "--remove", "--replace"), there)):
            if some:
                git.run("update-index", *words, "-z", "--stdin", stdin="\0".join(some), extra=extra)

    def busy(self, folder: Path) -> str:
        """Return what git is in the middle of in a folder, such as a merge; empty if nothing."""
        gitdir = Path(self.git.at(folder).run("rev-parse", "--absolute-git-dir").strip())
        found = next((name for name in _BUSY if (gitdir / name).exists()), "")
        return found.removesuffix("_HEAD").removesuffix("_LOG").replace("_", "-").lower() if found else ""

    def target(self, tree: Worktree) -> str:
        """Return the commit of the branch that a worktree is merged into; empty if there is none."""
        return self._tip(tree.onto) if tree.onto else ""

    def own_tip(self, tree: Worktree) -> str:
        """Return the commit of the branch that a worktree was made with; empty if there is none any more."""
        return self._tip(tree.own_branch)

    def _tip(self, branch: str) -> str:
        ref = f"refs/heads/{branch}"  # in full: a tag of the same name would come first
        return self.git.run("rev-parse", "-q", "--verify", ref, expected=(0, 1)).strip()

    def checkout_of(self, branch: str) -> Path | None:
        """Return the folder in which a branch is checked out."""
        found = (
            checkout for checkout in self.checkouts() if checkout.branch == branch and not checkout.missing
        )
        return next((each.path for each in found), None)

    def unlock(self, tree: Worktree) -> None:
        if tree.locked:
            self.git.run("worktree", "unlock", str(tree.path))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one process at a time make, merge and remove worktrees of this repository.

        Raises:
            WorktreeError: Another one takes too long, or the lock cannot be used.
        """
        path = self.common / "synapse-worktrees.lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            raise WorktreeError(
                f"{path} cannot be used: {error.strerror}", "check its permissions"
            ) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise WorktreeError(f"{path} cannot be used: it is no regular file", "remove it")
            try:
                lock_exclusively(descriptor, LOCK_TIMEOUT)
            except TimeoutError:
                raise WorktreeError(
                    f"another process makes, merges or removes worktrees of {self.top}", "try it again"
                ) from None
            yield
        finally:
            os.close(descriptor)


def _hold(gitdir: Path, held: ExitStack) -> bool:
    """Hold a worktree for this process, and return whether no other one holds it."""
    try:
        descriptor = os.open(gitdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, descriptor)
        lock_exclusively(descriptor, 0)
    except OSError:
        return False
    return True


def in_main_folder(folder: Path) -> bool:
    """Whether a folder is in the main folder of a repository, and not in a worktree."""
    top = _top(folder)
    return top is not None and (top / ".git").is_dir()


def _top(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def branch_of(folder: Path) -> str:
    """Return the branch of the agent's worktree that a folder is in; empty if it is in none."""
    top = _top(folder)
    gitdir = linked_path(top / ".git") if top is not None else None
    mark = _mark(gitdir) if gitdir is not None else None
    if gitdir is None or mark is None:
        return ""
    head = _text(gitdir / "HEAD")
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else mark.branch


def why_not_there(folder: Path, paths: Iterable[Path]) -> str:
    """Return why an agent must not write one of these paths, in words for the agent; empty if it may.

    An agent that works in a worktree may write anywhere but in other folders of the same repository.

    Args:
        folder: Where the agent works.
        paths: Real paths.
    """
    own = _top(folder)
    gitdir = linked_path(own / ".git") if own is not None else None
    mark = _mark(gitdir) if gitdir is not None else None
    if own is None or gitdir is None or mark is None:
        return ""
    common = gitdir.parent.parent
    main = Path(mark.top) if common.name != ".git" and mark.top else common.parent
    others = {main, *(linked_path(each / "gitdir") or each for each in gitdir.parent.iterdir())}
    others = {each.parent if each.name == ".git" else each for each in others} - {own}
    for path in paths:
        within = [each for each in others if path.is_relative_to(each) and not path.is_relative_to(own)]
        if within:
            other = max(within, key=lambda each: len(each.parts))
            return (
                f"You work in the git worktree {own}, but {path} is in another folder of the repository. "
                f"Write {own / path.relative_to(other)} instead, so that your changes stay on your branch."
            )
    return ""


def free_trash(path: Path) -> Path:
    """Return where the folder of a worktree is moved when it is removed."""
    trash = path.parent / TRASH
    stem = f"{path.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, MOST_AT_ONCE)))
    return next(trash / name for name in names if not os.path.lexists(trash / name))


def _is_storable(path: Path) -> bool:
    """Whether something is there that git can store: it stores no pipes, sockets and devices."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)


def _is_empty_folder(path: Path) -> bool:
    try:
        return not path.is_symlink() and not any(path.iterdir())
    except OSError:
        return False


def linked_path(file: Path) -> Path | None:
    """Return the path that a file of git names (gitrepository-layout(5))."""
    text = _text(file).removeprefix("gitdir: ")
    return Path(text) if text.startswith("/") else None


def _text(file: Path) -> str:
    """Return what a file of git says; empty if there is none."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


class _TreeMark(NamedTuple):
    name: str
    branch: str
    onto: str
    base: str
    made: float
    top: str


def _mark(gitdir: Path) -> _TreeMark | None:
    try:
        facts = json.loads((gitdir / MARK).read_text(encoding="utf-8"))
        words = [str(facts[key]) for key in ("name", "branch", "onto", "base")]
        # Agents can write it: git would take another word for an option, and a terminal for a command.
        branches = all(_REF.fullmatch(word) for word in words[1:3] if word)
        if not (_NAME.fullmatch(words[0]) and branches and COMMIT.fullmatch(words[3])):
            return None
        made, top = float(facts["made"]), str(facts.get("top", ""))
        return _TreeMark(words[0], words[1], words[2], words[3], made, top)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
