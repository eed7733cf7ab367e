"""Worktrees of agents: made, forecast, merged, kept and removed, with a real git."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from synapse_tui.agents.worktrees import keep
from synapse_tui.agents.worktrees.changes import LineCounter, read_changes
from synapse_tui.agents.worktrees.merge import Conflict, difference, is_merged, merge
from synapse_tui.agents.worktrees.merge import commit as commit_work
from synapse_tui.agents.worktrees.setup import set_up
from synapse_tui.agents.worktrees.trees import INCLUDE, TRASH, Repository, in_main_folder, why_not_there
from synapse_tui.cli.worktree import shown_diff
from synapse_tui.core.errors import SynapseError, WorktreeError
from synapse_tui.core.events import Notice
from synapse_tui.core.model import AgentSpec
from synapse_tui.host.host import Host
from synapse_tui.sessions.registry import Registry, RegistryEntry
from synapse_tui.system.trust import TrustStore
from tests.command_line import Result, call
from tests.integration.host_kit import make_host, running
from tests.waiting import PATIENCE, wait_until
from tests.worktree_kit import ENVIRON, add, commit, foreseen, git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "shop")


def test_a_worktree_is_beside_the_repository_with_a_branch_of_its_own(repository: Repository) -> None:
    (repository.top / "a.py").write_text("not committed\n")
    made = repository.add("alice")
    assert made.tree.path == repository.top.with_name("shop.worktrees") / "alice"
    assert (made.tree.branch, made.tree.onto, made.uncommitted) == ("synapse/alice", "main", 1)
    assert (made.tree.path / "a.py").read_text() == "one\ntwo\nthree\n"
    assert made.tree.locked == "synapse-tui: alice"
    assert not made.tree.lock_of_others
    assert [tree.name for tree in Repository(made.tree.path, ENVIRON).trees()] == ["alice"]
    assert Repository(made.tree.path, ENVIRON).top == repository.top


def test_inside_it_is_ignored_by_git(repository: Repository) -> None:
    tree = repository.add("alice", place="inside").tree
    assert tree.path == repository.top / ".synapse" / "worktrees" / "alice"
    assert not git(repository.top, "status", "--porcelain")


def test_names_that_are_taken_or_no_names(repository: Repository) -> None:
    add(repository, "alice")
    with pytest.raises(WorktreeError, match="already"):
        add(repository, "alice")
    for name in ("../x", "-x", ".x", "a b", ""):
        with pytest.raises(WorktreeError, match="no name"):
            add(repository, name)
    git(repository.top, "branch", "synapse/bob")
    assert add(repository, "bob").branch == "synapse/bob-2"
    assert add(repository, "翻訳").branch == "synapse/翻訳"


@pytest.mark.parametrize("stage", ["begun", "empty", "without files", "half", "all but the mark"])
def test_what_a_killed_add_has_left_is_in_nobodys_way(repository: Repository, stage: str) -> None:
    """git writes our lock first, and we the mark last."""
    path = repository.top.with_name("shop.worktrees") / "alice"
    gitdir = repository.common / "worktrees" / "alice"
    lock = ("--lock", "--reason", "synapse-tui: alice")
    git(repository.top, "worktree", "add", "-q", *lock, "-b", "synapse/alice", str(path))
    if stage != "all but the mark":
        (gitdir / "index").rename(gitdir / "index.lock")
        (path / "b.py").unlink()
    if stage in ("begun", "empty", "without files"):
        for name in ("a.py", ".gitignore"):
            (path / name).unlink()
    if stage in ("begun", "empty"):
        (path / ".git").unlink()
        (gitdir / "gitdir").unlink()
    if stage == "begun":
        path.rmdir()
    tree = repository.add("alice").tree
    assert (tree.path, tree.branch, tree.gitdir) == (path, "synapse/alice", gitdir)
    assert not repository.changed(path)
    assert len(git(repository.top, "worktree", "list").splitlines()) == 2
    trash = list((path.parent / TRASH).glob("alice-*"))
    assert [sorted(each.name for each in folder.iterdir() if each.name != ".git") for folder in trash] == {
        "without files": [[]],
        "half": [[".gitignore", "a.py"]],
        "all but the mark": [[".gitignore", "a.py", "b.py"]],
    }.get(stage, [])


def test_where_someone_has_worked_without_our_mark_nothing_is_touched(repository: Repository) -> None:
    """Such as one whose mark cannot be read any more, or was removed."""
    for name in ("alice", "bob"):
        tree = add(repository, name)
        if name == "alice":
            (tree.gitdir / "synapse.json").write_text("{")
        else:
            commit(tree.path, "mine", a_py="mine\n")
            (tree.gitdir / "synapse.json").unlink()
    add(repository, "carol")
    assert git(repository.top, "log", "-1", "--format=%s", "synapse/bob") == "mine\n"
    assert [path.name for path in sorted(tree.path.parent.iterdir())] == ["alice", "bob", "carol"]
    with pytest.raises(WorktreeError, match="exists already"):
        add(repository, "bob")


@pytest.mark.parametrize("kind", ["submodule", "separate"])
def test_a_repository_whose_git_folder_is_elsewhere(
    repository: Repository, tmp_path: Path, kind: str
) -> None:
    """git lists its git folder as the main one (git-worktree(1))."""
    main = tmp_path / kind
    if kind == "submodule":
        make_repository(tmp_path / "above")
        main = tmp_path / "above" / "within"
        words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository.top), "within")
        git(tmp_path / "above", *words)
    else:
        git(tmp_path, "clone", "-q", f"--separate-git-dir={tmp_path / 'elsewhere'}", "shop", "separate")
    git(main, "config", "user.name", "a")
    git(main, "config", "user.email", "a@b")
    found = Repository(main, ENVIRON)
    assert found.top == main
    tree = add(found, "alice")
    assert tree.path == main.with_name(f"{main.name}.worktrees") / "alice"
    (tree.path / "a.py").write_text("mine\n")
    assert why_not_there(tree.path, [main / "a.py"])
    assert merge(found, tree, commit="mine").commit
    assert (main / "a.py").read_text() == "mine\n"
    assert Repository(tree.path, ENVIRON).top == main


def test_one_that_began_from_no_branch_says_how_it_is_merged(repository: Repository) -> None:
    git(repository.top, "checkout", "-q", "--detach")
    tree = add(repository, "alice")
    with pytest.raises(WorktreeError, match="began from no branch") as error:
        merge(repository, tree)
    assert "git merge synapse/alice" in error.value.hint


def test_a_branch_called_synapse_is_no_obstacle(repository: Repository) -> None:
    git(repository.top, "branch", "synapse")
    assert add(repository, "alice").branch == "synapse-alice"


def test_where_there_is_nothing_to_begin_from(tmp_path: Path) -> None:
    with pytest.raises(WorktreeError, match="not in a git repository"):
        Repository(tmp_path, ENVIRON)
    git(tmp_path, "init", "-q")
    with pytest.raises(WorktreeError, match="no commit yet"):
        Repository(tmp_path, ENVIRON).add("alice")
    (tmp_path / "new.py").write_text("1\n")
    with pytest.raises(WorktreeError, match="no commit yet"):
        read_changes(tmp_path, ENVIRON)


def test_files_that_git_does_not_know_are_copied_where_they_are_wanted(repository: Repository) -> None:
    top = repository.top
    (top / ".env").write_text("KEY=1\n")
    (top / "run.log").write_text("no\n")
    (top / "conf").mkdir()
    (top / "conf" / "local.env").write_text("x\n")
    (top / INCLUDE).write_text(".env\n*.env\na.py\n")
    commit(top)
    (top / "a.py").write_text("changed\n")
    (top / "conf" / "local.env").write_text("x\n")
    made = repository.add("alice")
    assert ".env" in made.copied
    assert (made.tree.path / ".env").read_text() == "KEY=1\n"
    assert not (made.tree.path / "run.log").exists()
    assert (made.tree.path / "a.py").read_text() == "one\ntwo\nthree\n"


class Hostile:
    """A repository, with a submodule, that names a program wherever its configuration can name one.

    Each leaves a mark with its name.
    """

    HOOKS = (
        *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout"),
        *("post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc"),
        *("pre-commit", "pre-merge-commit", "pre-rebase", "prepare-commit-msg", "reference-transaction"),
    )
    FAILING = (
        *(
            "core.editor",
            "sequence.editor",
            "core.fsmonitor",
            "core.pager",
            "core.askpass",
            "core.sshcommand",
        ),
        *("core.gitproxy", "pager.diff", "pager.status", "diff.external", "credential.helper", "gpg.program"),
        *("gpg.ssh.program", "gpg.x509.program", "gpg.ssh.defaultkeycommand", "merge.evil.driver"),
        *("remote.origin.uploadpack", "trailer.sign.command", "interactive.difffilter"),
    )
    FILTERS = (
        *("filter.evil.clean", "filter.evil.smudge", "filter.included.smudge"),
        *("diff.evil.textconv", "diff.evil.command"),
    )
    SWITCHES = (
        *(
            "filter.evil.required",
            "filter.line.required",
            "commit.gpgsign",
            "tag.gpgsign",
            "log.showsignature",
        ),
        *("merge.verifysignatures", "status.submodulesummary", "submodule.recurse", "rerere.enabled"),
    )

    def __init__(self, folder: Path) -> None:
        self.marks = folder / "marks"
        self.marks.mkdir()
        library = make_repository(folder / "library")
        self.repository = make_repository(folder / "shop")
        self.top = self.repository.top
        git(self.top, *LOCAL, "submodule", "-q", "add", str(library.top), "lib")
        commit(self.top, "with a submodule")

    @property
    def ran(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())

    def arm(self) -> None:
        attributes = "*.py filter=evil diff=evil merge=evil\n*.txt filter=line\n*.md filter=included\n"
        for top in (self.top, self.top / "lib"):
            gitdir = Path(git(top, "rev-parse", "--absolute-git-dir").strip())
            self._arm(top, gitdir)
            with (gitdir / "info" / "attributes").open("a") as file:
                file.write(attributes)

    def _arm(self, top: Path, gitdir: Path) -> None:
        where = top.name
        (gitdir / "info").mkdir(exist_ok=True)
        included = gitdir / "included"
        git(top, "config", "include.path", str(included))
        git(top, "config", "diff.submodule", "diff")
        for key in self.SWITCHES:
            git(top, "config", key, "true")
        for key in self.FAILING:
            git(top, "config", key, f"{self._mark(where, key)}; false")
        for key in self.FILTERS:
            file = ("-f", str(included)) if ".included." in key else ()
            git(top, "config", *file, key, f"{self._mark(where, key)}; cat")
        git(top, "config", "filter.line.process", f"{self._mark(where, 'process')}; false")
        for alias in ("status", "diff", "add", "commit", "merge", "config", "worktree", "rev-parse"):
            git(top, "config", f"alias.{alias}", f"!{self._mark(where, f'alias-{alias}')}")
        for hooks in (gitdir / "hooks", gitdir / "more-hooks"):
            hooks.mkdir(exist_ok=True)
            for name in self.HOOKS:
                (hooks / name).write_text(f"#!/bin/sh\n{self._mark(where, name)}\n")
                (hooks / name).chmod(0o755)
        git(top, "config", "core.hooksPath", str(gitdir / "more-hooks"))
        # configured last: git itself would run it
        git(top, "config", "core.fsmonitor", f"{self._mark(where, 'fsmonitor')}; false")

    def _mark(self, where: str, name: str) -> str:
        return f"touch {self.marks}/{where}-{name}"

    def forget(self) -> None:
        for mark in self.marks.iterdir():
            mark.unlink()


LOCAL = ("-c", "protocol.file.allow=always")


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


def same_size(path: Path) -> None:
    """Change a file so that git has to read it to know."""
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_the_hostile_repository_is_one(hostile: Hostile) -> None:
    hostile.arm()
    same_size(hostile.top / "a.py")
    git(hostile.top, "status", check=False)
    git(hostile.top, "commit", "-am", "x", check=False)
    for mark in ("shop-fsmonitor", "shop-filter.evil.clean", "lib-fsmonitor", "shop-post-index-change"):
        assert mark in hostile.ran


def test_nothing_of_a_hostile_repository_runs(hostile: Hostile) -> None:
    repository, top = hostile.repository, hostile.top
    tree = add(repository, "alice")
    git(tree.path, *LOCAL, "submodule", "-q", "update", "--init")
    hostile.arm()
    modules = tree.gitdir / "modules" / "lib"
    hostile._arm(tree.path / "lib", modules)
    (modules / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    hostile.forget()
    bob = add(repository, "bob")
    (tree.path / "a.py").write_text("ONE\ntwo\nthree\n")
    (bob.path / "a.py").write_text("bob\ntwo\nthree\n")
    for name in ("new.py", "new.txt", "new.md"):
        (tree.path / name).write_text("new\n")
    for folder in (tree.path / "lib", top / "lib"):
        same_size(folder / "a.py")
    (top / "b.py").write_text("one\ntwo\nTHREE\n")
    for folder in (tree.path, top):
        counter = LineCounter(folder, ENVIRON)
        assert counter.count()
        assert counter.count([folder / "a.py", folder / "new.md", folder / "lib"], whole=False)
    assert "lib" in repository.changed(tree.path)
    assert "+ONE" in difference(repository, tree, keep.snapshot(repository, tree.path))
    assert read_changes(tree.path, ENVIRON).conflicts
    assert read_changes(top, ENVIRON).files
    keep.keep(repository, tree, "test")
    repository.git.run("commit", "-qm", "base moves", "--", "b.py")
    assert merge(repository, tree, commit="work", squash=True).commit
    (bob.path / "b.py").write_text("bob\n")
    assert merge(repository, bob, commit="other work").conflicts
    keep.remove(repository, repository.tree("alice"), "test")
    keep.restore(repository, keep.find_kept(repository, "alice"))
    assert not hostile.ran
    assert (top / "a.py").read_text() == "ONE\ntwo\nthree\n"
    assert (top / "b.py").read_text() == "one\ntwo\nTHREE\n"


def test_what_a_partial_clone_lacks_is_not_fetched_by_a_program_of_the_repository(
    repository: Repository, tmp_path: Path
) -> None:
    top, ran = repository.top, tmp_path / "ran"
    tree = add(repository, "alice")
    commit(tree.path, a_py="ONE\ntwo\nthree\n")
    blob = git(top, "rev-parse", "main:a.py").strip()
    (top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(top),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {ran}; false",
    }.items():
        git(top, "config", key, value)
    with pytest.raises(WorktreeError):
        difference(repository, tree, keep.snapshot(repository, tree.path))
    assert not ran.exists()
    git(top, "show", "main:a.py", check=False)
    assert ran.exists(), "git itself would have run it"


def test_variables_of_a_hook_do_not_lead_to_another_repository(
    repository: Repository, tmp_path: Path
) -> None:
    other = make_repository(tmp_path / "other")
    misled = {
        **ENVIRON,
        "GIT_DIR": str(other.common),
        "GIT_WORK_TREE": str(other.top),
        "GIT_INDEX_FILE": "/x",
    }
    assert Repository(repository.top, misled).top == repository.top


def test_the_forecast_names_agents_and_files_before_anything_is_committed(repository: Repository) -> None:
    alice, bob, carol = (add(repository, name) for name in ("alice", "bob", "carol"))
    (alice.path / "a.py").write_text("alice\ntwo\nthree\n")
    (bob.path / "a.py").write_text("bob\ntwo\nthree\n")
    (carol.path / "new.py").write_text("carol\n")
    before = [git(tree.path, "status", "--porcelain") for tree in (alice, bob, carol)]
    assert foreseen(repository) == [Conflict("alice", "bob", ("a.py",), with_base=False)]
    commit(repository.top, a_py="main\ntwo\nthree\n")
    found = foreseen(repository)
    assert Conflict("bob", "main", ("a.py",), with_base=True) in found
    assert [git(tree.path, "status", "--porcelain") for tree in (alice, bob, carol)] == before
    assert not git(repository.top, "stash", "list")


@pytest.mark.parametrize("squash", [False, True])
def test_the_forecast_does_not_name_work_that_is_merged(repository: Repository, squash: bool) -> None:
    """Who conflicts with it conflicts with the branch now; what else it changes later counts by itself."""
    alice, bob, carol = (add(repository, name) for name in ("alice", "bob", "carol"))
    commit(alice.path, a_py="alice\ntwo\nthree\n")
    (bob.path / "a.py").write_text("bob\ntwo\nthree\n")
    merge(repository, alice, squash=squash)
    with_main = Conflict("bob", "main", ("a.py",), with_base=True)
    assert foreseen(repository) == [with_main]
    commit(repository.top, a_py="alice\ntwo\nmain\n")
    commit(alice.path, b_py="alice\ntwo\nthree\n")
    (carol.path / "b.py").write_text("carol\ntwo\nthree\n")
    assert foreseen(repository) == [with_main, Conflict("alice", "carol", ("b.py",), with_base=False)]


def test_a_branch_that_is_gone_is_named(repository: Repository, home: dict[str, str]) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="alice\ntwo\nthree\n")
    git(repository.top, "branch", "-m", "main", "trunk")
    assert not foreseen(repository)
    with pytest.raises(WorktreeError, match="the branch main is gone") as failed:
        merge(repository, tree)
    assert "git merge synapse/alice" in failed.value.hint
    assert "no branch to merge into" in synapse(repository, home, "list").out


def test_a_tag_of_the_same_name_is_not_the_branch(repository: Repository) -> None:
    alice, bob = add(repository, "alice"), add(repository, "bob")
    commit(alice.path, a_py="alice\ntwo\nthree\n")
    commit(bob.path, a_py="bob\ntwo\nthree\n")
    git(repository.top, "tag", "main")
    merge(repository, alice)
    assert foreseen(repository) == [Conflict("bob", "main", ("a.py",), with_base=True)]
    assert merge(repository, bob).conflicts == ("a.py",)
    assert is_merged(repository, repository.tree("alice"))


def test_merging_moves_the_branch_forward(repository: Repository) -> None:
    tree = add(repository, "alice")
    (tree.path / "a.py").write_text("ONE\ntwo\nthree\n")
    with pytest.raises(WorktreeError, match=r"uncommitted changes in a\.py"):
        merge(repository, tree)
    commit(repository.top, b_py="one\ntwo\nTHREE\n")
    done = merge(repository, tree, commit="work of alice")
    assert not done.conflicts
    assert git(repository.top, "rev-parse", "main").strip() == done.commit
    assert (repository.top / "a.py").read_text() == "ONE\ntwo\nthree\n"
    assert not git(repository.top, "status", "--porcelain")
    assert is_merged(repository, repository.tree("alice"))
    assert not merge(repository, repository.tree("alice")).commit


def test_conflicts_arise_in_the_worktree_and_nowhere_else(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="alice\ntwo\nthree\n")
    commit(repository.top, a_py="main\ntwo\nthree\n")
    main = git(repository.top, "rev-parse", "main")
    done = merge(repository, tree)
    assert (done.commit, done.conflicts, done.base) == ("", ("a.py",), main.strip())
    assert git(repository.top, "rev-parse", "main") == main
    assert not git(repository.top, "status", "--porcelain")
    text = (tree.path / "a.py").read_text()
    assert "<<<<<<< HEAD" in text
    assert ">>>>>>> main" in text
    with pytest.raises(WorktreeError, match="in the middle of a merge"):
        merge(repository, repository.tree("alice"), commit="too early")
    commit(tree.path, "resolved", a_py="both\ntwo\nthree\n")
    assert merge(repository, repository.tree("alice")).commit
    assert (repository.top / "a.py").read_text() == "both\ntwo\nthree\n"


def test_in_the_middle_of_a_merge_the_work_of_the_base_is_not_the_agents(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="alice\ntwo\nthree\n")
    commit(repository.top, a_py="main\ntwo\nthree\n", new="main\n")
    merge(repository, tree)
    changes = read_changes(tree.path, ENVIRON)
    assert [(file.path, file.added, file.removed) for file in changes.files] == [("a.py", 4, 0)]
    assert (changes.busy, changes.conflicts) == ("merge", ())
    (tree.path / "a.py").write_text("both\ntwo\nthree\n")
    assert [file.lines[1:3] for file in read_changes(tree.path, ENVIRON).files] == [("-main", "+both")]


@pytest.mark.parametrize("conflicts", [False, True])
def test_a_git_that_runs_in_the_worktree_stops_the_merge_before_it_begins(
    repository: Repository, conflicts: bool
) -> None:
    """git says that it merged, and has touched nothing: whoever commits then takes back the base's work."""
    tree = add(repository, "alice")
    commit(tree.path, **{"a_py" if conflicts else "b_py": "alice\ntwo\nthree\n"})
    commit(repository.top, a_py="main\ntwo\nthree\n", new="main\n")
    (tree.gitdir / "index.lock").touch()
    with pytest.raises(WorktreeError, match="cannot write the index") as failed:
        merge(repository, tree)
    assert "another git command" in failed.value.hint
    assert not repository.busy(tree.path)
    assert not (tree.path / "new").exists()
    (tree.gitdir / "index.lock").unlink()
    assert merge(repository, tree).conflicts == (("a.py",) if conflicts else ())


def test_a_branch_that_cannot_be_moved_leaves_the_main_folder_as_it_was(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="alice\ntwo\nthree\n", new="alice\n")
    (repository.top / "b.py").write_text("mine\n")
    lock = repository.common / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(WorktreeError, match=r"main.lock.*File exists"):
        merge(repository, tree)
    assert git(repository.top, "status", "--porcelain") == " M b.py\n"
    lock.unlink()
    assert merge(repository, tree).commit
    assert git(repository.top, "status", "--porcelain") == " M b.py\n"


@pytest.mark.parametrize("resolved", ["both\ntwo\nthree\n", "alice\ntwo\nthree\n", None])
def test_what_an_agent_resolved_but_cannot_commit_is_committed_for_it(
    repository: Repository, resolved: str | None
) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="alice\ntwo\nthree\n")
    commit(repository.top, a_py="main\ntwo\nthree\n")
    assert merge(repository, tree).conflicts == ("a.py",)
    tree = repository.tree("alice")
    with pytest.raises(WorktreeError, match=r"in the middle of a merge, and conflicts are left in a\.py"):
        commit_work(repository, tree, "too early")
    (tree.path / "a.py").write_text(resolved) if resolved else (tree.path / "a.py").unlink()
    assert commit_work(repository, tree, "resolved")
    assert len(git(tree.path, "log", "-1", "--format=%P").split()) == 2
    merge(repository, repository.tree("alice"))
    assert is_merged(repository, repository.tree("alice"))
    there = repository.top / "a.py"
    assert (there.read_text() if there.exists() else None) == resolved


@pytest.mark.parametrize("kind", ["binary", "removed here", "removed there"])
def test_a_conflict_without_marks_counts_as_left_until_it_is_touched(
    repository: Repository, kind: str
) -> None:
    tree = add(repository, "alice")
    for folder, side in ((tree.path, "here"), (repository.top, "there")):
        if kind == f"removed {side}":
            git(folder, "rm", "-q", "a.py")
            commit(folder, b_py=f"{side}\n")
        else:
            commit(folder, a_py=f"\0{side}" if kind == "binary" else "one\ntwo\nmore\n")
    merge(repository, tree)
    tree = repository.tree("alice")
    with pytest.raises(WorktreeError, match=r"conflicts are left in .*a\.py"):
        merge(repository, tree, commit="too early")
    commit_all = {"a_py": "\0both", "b_py": "both\n"}
    for name, text in commit_all.items():
        (tree.path / name.replace("_", ".")).write_text(text)
    assert merge(repository, tree, commit="resolved").commit
    assert (repository.top / "a.py").read_text() == "\0both"


@pytest.mark.parametrize("name", ["a.py", "new.py", "run.log"], ids=["changed", "untracked", "ignored"])
def test_what_is_in_the_way_in_the_main_folder_stays_as_it_is(repository: Repository, name: str) -> None:
    tree = add(repository, "alice")
    (tree.path / name).write_text("alice\n")
    git(tree.path, "add", "-f", name)
    git(tree.path, "commit", "-qm", "alice")
    (repository.top / name).write_text("mine, not committed\n")
    with pytest.raises(WorktreeError, match=name):
        merge(repository, tree)
    assert (repository.top / name).read_text() == "mine, not committed\n"


def test_an_ignored_file_of_the_agent_is_not_overwritten_by_the_base(repository: Repository) -> None:
    tree = add(repository, "alice")
    (tree.path / "run.log").write_text("alice, ignored\n")
    commit(tree.path, a_py="x\n")
    (repository.top / "run.log").write_text("main\n")
    git(repository.top, "add", "-f", "run.log")
    commit(repository.top)
    with pytest.raises(WorktreeError, match=r"run\.log"):
        merge(repository, tree)
    assert (tree.path / "run.log").read_text() == "alice, ignored\n"


def test_who_has_no_name_yet_is_told_how_to_set_one(repository: Repository) -> None:
    tree = add(repository, "alice")
    (tree.path / "a.py").write_text("mine\n")
    git(repository.top, "config", "--remove-section", "user")
    git(repository.top, "config", "user.useConfigOnly", "true")  # no name of this machine either
    with pytest.raises(WorktreeError, match="identity unknown") as error:
        merge(repository, tree, commit="mine")
    assert "git config --global user.email" in error.value.hint
    assert (tree.path / "a.py").read_text() == "mine\n"


def test_commits_become_one_and_the_branch_follows(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, "first", a_py="1\n")
    commit(tree.path, "second", a_py="2\n")
    old = git(tree.path, "rev-parse", "HEAD").strip()
    done = merge(repository, tree, squash=True)
    assert git(repository.top, "rev-list", "--count", "main").strip() == "2"
    assert "- first\n- second" in git(repository.top, "log", "-1", "--format=%B")
    assert git(tree.path, "rev-parse", "HEAD").strip() == done.commit
    assert not git(tree.path, "status", "--porcelain")
    assert keep.kept(repository)[0].head == old


def test_a_squash_merge_made_elsewhere_counts_as_merged(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="1\n")
    git(repository.top, "merge", "-q", "--squash", tree.branch)
    assert not is_merged(repository, repository.tree("alice"))
    git(repository.top, "commit", "-qm", "squashed")
    assert is_merged(repository, repository.tree("alice"))


def test_everything_comes_back_after_it_was_discarded(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="committed\n")
    (tree.path / "b.py").write_text("staged\n")
    git(tree.path, "add", "b.py")
    (tree.path / "b.py").write_text("not staged\n")
    (tree.path / "new.py").write_text("new\n")
    (tree.path / "run.log").write_text("ignored\n")
    tree = repository.tree("alice")
    one = keep.remove(repository, tree, "discarded")
    assert not tree.path.exists()
    assert not git(repository.top, "branch", "--list", "synapse/alice")
    assert not repository.trees()
    assert Path(one.trash).parent.name == TRASH
    assert (Path(one.trash) / "run.log").read_text() == "ignored\n"
    assert git(repository.top, "show", f"{one.ref}^2^2:b.py") == "staged\n"
    back = keep.restore(repository, keep.find_kept(repository, "alice"))
    assert back.branch == "synapse/alice"
    assert (back.path / "a.py").read_text() == "committed\n"
    assert (back.path / "b.py").read_text() == "not staged\n"
    assert git(back.path, "status", "--porcelain") == " M b.py\n?? new.py\n"


@pytest.mark.parametrize("worked", [False, True])
def test_a_branch_of_the_user_outlives_the_worktree_that_has_switched_to_it(
    repository: Repository, home: dict[str, str], worked: bool
) -> None:
    git(repository.top, "checkout", "-q", "-b", "dev")
    tree = add(repository, "alice")
    assert tree.onto == "dev"
    commit(tree.path, a_py="on its own branch\n")
    git(tree.path, "checkout", "-q", "main")
    assert "alice stays: its work is not merged" in synapse(repository, home, "prune").err
    with pytest.raises(WorktreeError, match="work is left on synapse/alice"):
        merge(repository, repository.tree("alice"))
    git(repository.top, "merge", "-q", "synapse/alice")
    if worked:
        commit(tree.path, a_py="on main\n")
    before = git(repository.top, "rev-parse", "main")
    words = ("discard", "alice", "--yes") if worked else ("prune",)
    assert synapse(repository, home, *words).out == "alice\n"
    assert git(repository.top, "rev-parse", "main") == before
    assert git(repository.top, "branch", "--format=%(refname:short)").split() == ["dev", "main"]
    (one,) = keep.kept(repository)
    assert one.branch == "synapse/alice"
    assert "on its own branch" in git(repository.top, "log", "-p", one.ref)
    back = keep.restore(repository, one)
    assert (back.branch, back.head) == ("synapse/alice", before.strip())


def test_what_git_put_aside_for_a_rebase_is_kept(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, a_py="alice\ntwo\nthree\n")
    commit(repository.top, a_py="main\ntwo\nthree\n")
    (tree.path / "b.py").write_text("not committed\n")
    git(tree.path, "rebase", "-q", "--autostash", "main", check=False)
    assert repository.busy(tree.path) == "rebase-merge"
    assert (tree.path / "b.py").read_text() == "one\ntwo\nthree\n"
    tree = repository.tree("alice")
    keep.remove(repository, tree, "discarded")
    held = git(repository.top, "rev-list", "--objects", "--all").split()
    blob = git(repository.top, "hash-object", "-t", "blob", "--stdin", stdin="not committed\n").strip()
    assert blob in held


def test_commits_that_an_agent_has_reset_away_are_kept(repository: Repository) -> None:
    tree = add(repository, "alice")
    commit(tree.path, "first", a_py="1\n")
    commit(tree.path, "second", a_py="2\n")
    gone = git(tree.path, "rev-parse", "HEAD").strip()
    git(tree.path, "reset", "-q", "--hard", "HEAD~2")
    keep.remove(repository, repository.tree("alice"), "discarded")
    assert gone in git(repository.top, "rev-list", "--all").split()
    assert keep.restore(repository, keep.find_kept(repository, "alice"))


def test_what_is_in_a_submodule_outlives_the_worktree(hostile: Hostile) -> None:
    """git keeps the commits of a worktree's submodule in the worktree's own git folder."""
    repository = hostile.repository
    tree = add(repository, "alice")
    git(tree.path, *LOCAL, "submodule", "-q", "update", "--init")
    git(tree.path / "lib", "config", "user.name", "a")
    git(tree.path / "lib", "config", "user.email", "a@b")
    commit(tree.path / "lib", "only here", a_py="in the submodule\n")
    (tree.path / "lib" / "new.py").write_text("not committed\n")
    assert "lib" in repository.changed(tree.path)
    one = keep.remove(repository, tree, "discarded")
    assert not tree.gitdir.exists()
    assert git(Path(one.trash) / "lib", "show", "HEAD:a.py") == "in the submodule\n"
    assert git(Path(one.trash) / "lib", "status", "--porcelain") == "?? new.py\n"


def test_commits_of_submodules_of_a_folder_that_is_gone_are_kept(hostile: Hostile) -> None:
    repository = hostile.repository
    tree = add(repository, "alice")
    git(tree.path, *LOCAL, "submodule", "-q", "update", "--init")
    head = git(tree.path / "lib", "rev-parse", "HEAD").strip()
    shutil.rmtree(tree.path)
    one = keep.remove(repository, repository.tree("alice"), "gone")
    found = Path(one.trash) / ".git-modules" / "lib"
    assert git(found, "--git-dir=.", "cat-file", "-t", head) == "commit\n"


def test_repositories_within_a_worktree_are_in_nobodys_way(repository: Repository) -> None:
    tree = add(repository, "alice")
    (tree.path / "new.py").write_text("new\n")
    empty = tree.path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "x.py").write_text("x\n")
    make_repository(tree.path / "other")
    assert "+new" in difference(repository, tree, keep.snapshot(repository, tree.path))
    assert merge(repository, tree, commit="work").commit
    assert git(repository.top, "ls-files").split() == [".gitignore", "a.py", "b.py", "new.py"]
    assert not merge(repository, repository.tree("alice"), commit="nothing").commit
    one = keep.remove(repository, repository.tree("alice"), "discarded")
    assert (Path(one.trash) / "empty" / "x.py").read_text() == "x\n"


def test_a_folder_that_became_a_link_or_a_file_is_kept_as_it_is(repository: Repository) -> None:
    tree = add(repository, "alice")
    for name in ("one", "two"):
        (tree.path / name).mkdir()
        (tree.path / name / "x.py").write_text("x\n")
    commit(tree.path)
    for name in ("one", "two"):
        (tree.path / name / "x.py").unlink()
        (tree.path / name).rmdir()
    (tree.path / "one").symlink_to(repository.top)
    (tree.path / "two").write_text("a file now\n")
    (tree.path / "a.py").unlink()
    (tree.path / "a.py").mkdir()
    (tree.path / "a.py" / "x").write_text("a folder now\n")
    now = keep.snapshot(repository, tree.path)
    found = git(tree.path, "ls-tree", "-r", "--name-only", now).split()
    assert found == [".gitignore", "a.py/x", "b.py", "one", "two"]


def test_a_worktree_in_which_a_program_runs_is_not_removed(repository: Repository) -> None:
    tree = add(repository, "alice")
    with subprocess.Popen(["sleep", "600"], cwd=tree.path) as process:
        try:
            with pytest.raises(WorktreeError, match=rf"process {process.pid} \(sleep\) runs"):
                keep.remove(repository, tree, "discarded")
            assert tree.path.is_dir()
        finally:
            process.kill()
    assert keep.remove(repository, tree, "discarded")


def test_what_is_kept_expires(repository: Repository) -> None:
    one = keep.remove(repository, add(repository, "alice"), "discarded")
    assert keep.expire(repository) == []
    assert keep.expire(repository, days=-1) == [one]
    assert not Path(one.trash).exists()
    assert keep.kept(repository) == []


@pytest.mark.parametrize("through", ["..", "a link", "itself"])
def test_a_repository_that_comes_with_entries_of_its_own_has_nothing_deleted(
    repository: Repository, tmp_path: Path, through: str
) -> None:
    """A copied git folder can hold refs with any content: what is deleted has to be a worktree's."""
    victim = tmp_path / "home" / ".trash" / "documents"
    victim.mkdir(parents=True)
    (victim / "file").write_text("mine")
    (repository.top / ".trash").symlink_to(victim.parent)
    trash = {
        "..": f"{victim.parent}/..",
        "a link": f"{repository.top}/.trash/documents",
        "itself": str(victim),
    }
    facts = {"name": "x", "why": "", "branch": "x", "when": 1.0, "trash": trash[through]}
    head = repository.head()
    for number, commit_id in enumerate((head, "--index-output=/x")):
        words = ("commit-tree", f"{head}^{{tree}}", "-m", json.dumps({**facts, "head": commit_id}))
        made = git(repository.top, *words).strip()
        git(repository.top, "update-ref", f"refs/synapse/keep/x/{number}", made)
    assert [one.head for one in keep.kept(repository)] == [head]
    keep.expire(repository)
    assert (victim / "file").read_text() == "mine"


def test_a_mark_that_names_no_commit_is_none(repository: Repository, tmp_path: Path) -> None:
    """It is in the git folder, which can be copied: git would take a word of it for an option."""
    tree = add(repository, "alice")
    git(tree.path, "checkout", "-q", "--orphan", "other")
    commit(tree.path)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    mark = json.loads((tree.gitdir / "synapse.json").read_text())
    (tree.gitdir / "synapse.json").write_text(json.dumps({**mark, "base": f"--output={victim}"}))
    read_changes(tree.path, ENVIRON)
    LineCounter(tree.path, ENVIRON).count()
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "wrong",
    [{"name": "a\x1b[31m"}, {"name": "../x"}, {"onto": "x\x1b]0;y\x07"}, {"branch": "-x"}, {"onto": "-x"}],
)
def test_a_mark_with_words_that_no_name_can_have_is_none(
    repository: Repository, wrong: dict[str, str]
) -> None:
    """An agent can write it: what it says is shown to the user, and given to git."""
    tree = add(repository, "alice")
    mark = json.loads((tree.gitdir / "synapse.json").read_text())
    (tree.gitdir / "synapse.json").write_text(json.dumps({**mark, **wrong}))
    assert repository.trees() == []


def test_what_an_agent_has_written_does_nothing_to_the_terminal() -> None:
    assert shown_diff("\x1b[32m+a\x1b[m\tb\r\n\x1b]52;c;AAAA\x07\x1b[2J\x9b5n") == (
        "\x1b[32m+a\x1b[m\tb\n]52;c;AAAA[2J5n"
    )


def test_whoever_holds_the_lock_is_not_waited_for_forever(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent can hold it, too."""
    monkeypatch.setattr("synapse_tui.agents.worktrees.trees.LOCK_TIMEOUT", 0.05)
    lock = repository.common / "synapse-worktrees.lock"
    held = repository.locked()
    with held, ThreadPoolExecutor() as pool:
        done = pool.submit(repository.add, "alice")
        with pytest.raises(WorktreeError, match="another process"):
            done.result(timeout=PATIENCE)
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(WorktreeError, match=r"worktrees\.lock cannot be used"):
        repository.add("alice")
    lock.unlink()
    assert repository.add("alice").tree.name == "alice"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_git_cannot_store_is_in_nobodys_way(repository: Repository, kind: str) -> None:
    tree = add(repository, "alice")
    (tree.path / "b.py").write_text("alice\n")
    (tree.path / "a.py").unlink()
    if kind == "pipe":
        os.mkfifo(tree.path / "a.py")
    else:
        with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(tree.path):  # a path may have 108 bytes
            one.bind("a.py")
    changes = read_changes(tree.path, ENVIRON)
    assert [(file.path, file.added, file.removed) for file in changes.files] == [
        ("a.py", 0, 3),
        ("b.py", 1, 3),
    ]
    one_kept = keep.remove(repository, tree, "discarded")
    assert git(repository.top, "show", f"{one_kept.ref}:b.py") == "alice\n"


def test_a_worktree_that_cannot_be_read_hides_no_other(repository: Repository, home: dict[str, str]) -> None:
    alice, bob, carol = (add(repository, name) for name in ("alice", "bob", "carol"))
    for tree in (alice, bob):
        (tree.path / "a.py").write_text(f"{tree.name}\ntwo\nthree\n")
    (carol.gitdir / "index").write_bytes(b"broken")
    done = synapse(repository, home, "list")
    assert (done.code, "conflicts with bob in a.py" in done.out) == (0, True)
    assert "cannot be read: git status failed" in done.out
    rows = json.loads(synapse(repository, home, "list", "--json").out)
    assert ["error" in row for row in rows] == [False, False, True]
    changes = read_changes(alice.path, ENVIRON)
    assert changes.conflicts == (Conflict("alice", "bob", ("a.py",), with_base=False),)
    with pytest.raises(WorktreeError, match="git status failed"):
        read_changes(carol.path, ENVIRON)
    pruned = synapse(repository, home, "prune")
    assert (pruned.code, "carol stays: git status failed" in pruned.err) == (0, True)


def test_agents_of_one_name_that_two_hosts_open_at_once_do_not_share_a_worktree(
    repository: Repository,
) -> None:
    """Neither has written a record yet that the other could have seen."""
    used: set[Path] = set()
    opened = []

    def open_one() -> str:
        with repository.for_agent("alice", lambda: used) as (tree, _made):
            opened.append(tree.name)
            everyone.wait(PATIENCE)
        return tree.name

    for _existing in range(2):  # made by them, then there already
        everyone = threading.Barrier(4)
        with ThreadPoolExecutor() as pool:
            found = [pool.submit(open_one) for _ in range(4)]
            assert {each.result() for each in found} == {"alice", "alice-2", "alice-3", "alice-4"}
    with repository.for_agent("alice", lambda: used) as (tree, made):
        assert (tree.name, made) == ("alice", None), "the others have ended"
    used.add(tree.path)
    with repository.for_agent("alice", lambda: used) as (tree, _made):
        assert tree.name == "alice-2", "one that runs has a record"


def test_worktrees_of_others_are_left_alone(repository: Repository) -> None:
    git(repository.top, "worktree", "add", "-q", "../theirs")
    assert repository.trees() == []
    with pytest.raises(WorktreeError, match="no agent 'theirs'"):
        repository.tree("theirs")


# -- the command


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {**ENVIRON, "HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"}


def synapse(repository: Repository, home: dict[str, str], *words: str) -> Result:
    return call("synapse", "worktree", *words, environ=home, folder=repository.top)


def test_a_day_with_the_command(repository: Repository, home: dict[str, str]) -> None:
    alice = Path(synapse(repository, home, "add", "alice").out.strip())
    bob = Path(synapse(repository, home, "add", "bob").out.strip())
    (alice / "a.py").write_text("alice\ntwo\nthree\n")
    (bob / "a.py").write_text("bob\ntwo\nthree\n")
    table = synapse(repository, home, "list").out
    assert "conflicts with bob in a.py, 1 uncommitted" in table
    assert "+1 -1 in 1" in table
    rows = json.loads(synapse(repository, home, "list", "--json").out)
    assert rows[1]["conflicts"] == [{"with": "alice", "files": ["a.py"]}]
    assert "+alice" in synapse(repository, home, "diff", "alice").out
    assert "a.py" in synapse(repository, home, "diff", "alice", "--stat").out
    merged = synapse(repository, home, "merge", "alice", "--commit", "alice")
    assert (merged.code, merged.out.split()[0]) == (0, "main")
    conflicting = synapse(repository, home, "merge", "bob", "--commit", "bob")
    assert conflicting.code == 4
    assert "synapse send bob 'main was merged into your worktree and conflicts in a.py" in conflicting.err
    pruned = synapse(repository, home, "prune")
    assert pruned.out == "alice\n"
    assert "bob stays: in the middle of a merge" in pruned.err
    unasked = synapse(repository, home, "discard", "bob")
    assert (unasked.code, "nothing is removed without confirmation" in unasked.err) == (2, True)
    assert synapse(repository, home, "discard", "bob", "--yes").out == "bob\n"
    assert synapse(repository, home, "keep").out.count("\n") == 3
    assert Path(synapse(repository, home, "keep", "--restore", "bob").out.strip()) == bob
    assert "already" not in synapse(repository, home, "list").out


def test_names_of_files_stay_on_their_line_and_within_quotes(
    repository: Repository, home: dict[str, str]
) -> None:
    name = "it's\nsynapse: forged\x1b[31m"
    for agent in ("alice", "bob"):
        tree = Path(synapse(repository, home, "add", agent).out.strip())
        (tree / name).write_text(agent)
    taken = synapse(repository, home, "merge", "bob").err
    assert not any(line.startswith("synapse: forged") for line in taken.splitlines())
    assert synapse(repository, home, "merge", "alice", "--commit", "alice").code == 0
    err = synapse(repository, home, "merge", "bob", "--commit", "bob").err
    assert not any(line.startswith("synapse: forged") for line in err.splitlines())
    command = err.splitlines()[-1].strip()
    assert [*shlex.split(command)[:3], len(shlex.split(command))] == ["synapse", "send", "bob", 4]


def setup_script(repository: Repository, text: str) -> Path:
    folder = repository.top / ".synapse"
    folder.mkdir(exist_ok=True)
    script = folder / "worktree-setup"
    script.write_text(text)
    return script


def test_a_worktree_is_set_up_once_the_user_trusts_the_script(
    repository: Repository, home: dict[str, str]
) -> None:
    home = {**home, "VIRTUAL_ENV": "/x", "GIT_DIR": "/x"}
    script = setup_script(
        repository, 'echo "$PWD $SYNAPSE_MAIN_FOLDER $VIRTUAL_ENV$GIT_DIR" > ready; exit $CODE'
    )
    added = synapse(repository, home, "add", "alice")
    alice = Path(added.out.strip())
    assert "is not set up: read" in added.err
    assert not (alice / "ready").exists()
    listed = call("synapse", "trust", "--list", environ=home, folder=repository.top)
    assert "worktree-setup" in listed.out + listed.err
    trust = ("trust", "worktree-setup", "--yes")
    assert call("synapse", *trust, environ=home, folder=repository.top).code == 0
    assert synapse(repository, home, "setup", "alice").code == 0
    assert (alice / "ready").read_text() == f"{alice} {repository.top} \n"
    failed = synapse(repository, {**home, "CODE": "7"}, "setup", "alice")
    assert (failed.code, "exit status 7" in failed.err or "it failed" in failed.err) == (1, True)
    bob = Path(synapse(repository, home, "add", "bob").out.strip())
    assert (bob / "ready").exists()
    script.write_text("touch other")  # in the main folder, or by a branch: it has to be trusted again
    carol = synapse(repository, home, "add", "carol")
    assert "is not set up" in carol.err
    assert not (Path(carol.out.strip()) / "other").exists()
    refused = synapse(repository, {**home, "SYNAPSE_AGENT_ID": "synapse-claude-8100"}, "setup", "bob")
    assert refused.code == 2


def test_a_project_that_is_a_folder_of_the_repository_is_set_up_there(
    repository: Repository, home: dict[str, str]
) -> None:
    folder = repository.top / "api"
    (folder / ".synapse").mkdir(parents=True)
    commit(folder, code_py="1\n")
    (folder / ".synapse" / "worktree-setup").write_text("touch ready")
    trust = ("trust", "worktree-setup", "--yes")
    assert call("synapse", *trust, environ=home, folder=folder).code == 0
    alice = Path(call("synapse", "worktree", "add", "alice", environ=home, folder=folder).out.strip())
    assert (alice / "api" / "ready").exists()
    (alice / "api" / "ready").unlink()
    words = ("worktree", "setup", "alice")
    assert call("synapse", *words, environ=home, folder=alice / "api").code == 0
    assert (alice / "api" / "ready").exists()


def test_a_script_that_does_not_end_is_ended(repository: Repository) -> None:
    setup_script(repository, "echo $$ > pid; sleep 600 & wait")
    tree = add(repository, "alice")
    done = set_up(repository, tree, repository.top, ENVIRON, lambda *_file: True, limit=1.0)
    assert done.trouble == "it took more than 1 s"
    wait_until(lambda: next(keep.processes_in(tree.path), None) is None, "the end of what it had started")


def test_an_agent_may_look_but_not_merge_or_remove(repository: Repository, home: dict[str, str]) -> None:
    synapse(repository, home, "add", "alice")
    inside = {**home, "SYNAPSE_AGENT_ID": "synapse-claude-8100"}
    assert synapse(repository, inside, "list").code == 0
    for words in (("merge", "alice"), ("discard", "alice", "--yes"), ("prune",)):
        refused = synapse(repository, inside, *words)
        assert (refused.code, "ask the user" in refused.err) == (2, True)


def test_looking_at_large_changes_takes_no_lock_of_the_agent(repository: Repository) -> None:
    tree = add(repository, "alice")
    for number in range(50):
        (tree.path / f"{number}.txt").write_text("x\n" * 100)
    index = tree.gitdir / "index"
    before = index.read_bytes()
    lock = index.with_name("index.lock")
    lock.touch()  # the agent commits
    difference(repository, tree, keep.snapshot(repository, tree.path))
    foreseen(repository)
    keep.keep(repository, tree, "test")
    assert index.read_bytes() == before
    lock.unlink()


def test_a_change_in_the_second_of_the_checkout_is_seen(repository: Repository) -> None:
    """git tells such a change only by the time of its index (racy-git), which a copy must keep."""
    git(repository.top, "config", "core.trustctime", "false")
    tree = add(repository, "alice")
    path, index = tree.path / "a.py", tree.gitdir / "index"
    long_ago = 1_700_000_000
    os.utime(path, (long_ago, long_ago))
    git(tree.path, "update-index", "--refresh")
    path.write_text("ONE\ntwo\nthree\n")
    for each in (path, index):
        os.utime(each, (long_ago, long_ago))
    assert "+ONE" in difference(repository, tree, keep.snapshot(repository, tree.path))
    one = keep.keep(repository, tree, "test")
    assert git(repository.top, "show", f"{one.ref}:a.py").startswith("ONE")


# -- agents


async def test_the_worktree_of_an_agent_is_set_up_before_it_starts(host: Host) -> None:
    repository = make_repository(host.project)
    script = setup_script(repository, "touch ready")
    notices: list[str] = []
    host.events.subscribe(lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
    first = await host.open(AgentSpec("dummy", "alice", worktree=True), columns=80, lines=24)
    assert not (first.cwd / "ready").exists()
    assert any("alice is not set up: read" in text for text in notices)
    store = TrustStore(host.paths.trusted)
    untrusted = store.check(script, script.read_bytes())
    assert untrusted is not None
    store.trust([untrusted])
    second = await host.open(AgentSpec("dummy", "bob", worktree=True), columns=80, lines=24)
    assert (second.cwd / "ready").exists()


async def test_each_agent_gets_a_worktree_of_its_own_and_the_same_one_again(host: Host) -> None:
    make_repository(host.project)
    (host.project / "a.py").write_text("not committed\n")
    notices: list[str] = []
    host.events.subscribe(lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
    alice = AgentSpec("dummy", "alice", worktree=True)
    nameless = AgentSpec("dummy", worktree=True)
    first = await host.open(alice, columns=80, lines=24)
    others = await asyncio.gather(*(host.open(nameless, columns=80, lines=24) for _ in range(2)))
    root = host.project.with_name(f"{host.project.name}.worktrees")
    assert [each.cwd for each in (first, *others)] == [root / "alice", root / "dummy", root / "dummy-2"]
    assert any("uncommitted changes of the main folder (files: 1)" in text for text in notices)
    await host.close(first.agent_id)
    again = await host.open(alice, columns=80, lines=24)
    assert again.cwd == root / "alice"


async def test_an_agent_of_another_host_keeps_its_worktree_for_itself(host: Host) -> None:
    tree = make_repository(host.project).add("alice").tree
    always = 1  # a process that runs, and is not this one
    other = RegistryEntry("synapse-codex-8120", "codex", 8120, "http://127.0.0.1:8120", always)
    Registry(host.paths.registry).register(
        dataclasses.replace(other, working_dir=str(tree.path / "api"), project="/elsewhere")
    )
    alice = await host.open(AgentSpec("dummy", "alice", worktree=True), columns=80, lines=24)
    assert alice.cwd == tree.path.with_name("alice-2")


async def test_every_agent_gets_a_worktree_if_that_is_set(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".synapse"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text('{"worktrees": {"always": true, "place": "inside"}}')
    async with running(make_host(tmp_path)) as host:
        make_repository(host.project)
        first = await host.open(AgentSpec("dummy", "alice"), columns=80, lines=24)
        assert first.cwd == host.project / ".synapse" / "worktrees" / "alice"
        inside = await host.open(AgentSpec("dummy", "bob", first.cwd), columns=80, lines=24)
        assert inside.cwd == first.cwd, "where it was sent, which is a worktree already"


async def test_an_agent_that_is_started_again_stays_in_its_worktree(host: Host) -> None:
    make_repository(host.project)
    first = await host.open(AgentSpec("dummy", "alice", worktree=True), columns=80, lines=24)
    await host.close(first.agent_id)
    again = await host.open(dataclasses.replace(first.spec, name="renamed"), columns=80, lines=24)
    assert again.cwd == first.cwd


def test_a_worktree_inside_the_repository_is_not_its_main_folder(repository: Repository) -> None:
    below = repository.top / "src"
    below.mkdir()
    assert in_main_folder(below)
    assert not in_main_folder(repository.add("alice", place="inside").tree.path)


async def test_an_agent_that_cannot_be_opened_leaves_no_worktree(host: Host) -> None:
    repository = make_repository(host.project)
    with pytest.raises(SynapseError):
        await host.open(AgentSpec("no-such-profile", worktree=True), columns=80, lines=24)
    assert not repository.trees()


async def test_without_git_it_says_so(host: Host) -> None:
    with pytest.raises(WorktreeError, match="not in a git repository"):
        await host.open(AgentSpec("dummy", worktree=True), columns=80, lines=24)
    assert not host.agents
