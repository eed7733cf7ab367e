"""`synapse worktree`: a git worktree for each agent."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.agents.worktrees.line_counts import FolderChange, parse_numstat
from synapse_tui.core.errors import InvalidValue, WorktreeError
from synapse_tui.core.wording import duration
from synapse_tui.system.language import name_list, tr
from synapse_tui.system.paths import tilde

from .caller import Caller
from .commands import CommandGroup, json_option
from .completion import offering
from .config import Layers
from .output import ExitCode, confirm, is_interactive, note, plain, show, show_json, show_list

if TYPE_CHECKING:
    from synapse_tui.agents.worktrees.keep import Kept
    from synapse_tui.agents.worktrees.merge import Conflict
    from synapse_tui.agents.worktrees.setup import SetUp
    from synapse_tui.agents.worktrees.trees import Repository, Worktree


def _names() -> list[tuple[str, str]]:
    try:
        return [(tree.name, tree.branch) for tree in _repository().trees()]
    except WorktreeError:
        return []


_ACTING = re.compile(r"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_AGENT = click.argument("agent", shell_complete=offering(_names))


@click.group(name="worktree", cls=CommandGroup)
def worktree_command() -> None:
    """Give agents a git worktree of their own, see what they change there, merge and remove it.

    Nothing is deleted: what a worktree held is kept for 30 days. The repository's hooks do not run.

    Examples:
      synapse worktree list
      synapse worktree merge alice
    """


@worktree_command.command(name="add")
@click.argument("agent")
@click.option(
    "--place",
    metavar="PLACE",
    default="",
    help="beside the repository, inside its .synapse, or a folder; default: worktrees.place.",
)
@json_option
def add_command(*, agent: str, place: str, as_json: bool) -> None:
    """Make a worktree for AGENT, with a branch of its own, and print its folder.

    It begins at the commit of the repository's main folder. Untracked files that .worktreeinclude names, in
    the syntax of .gitignore, are copied.

    Examples:
      synapse worktree add alice
      synapse worktree add alice --place inside
    """
    repository = _repository()
    made = repository.add(agent, place=place or Layers.here().load().text("worktrees.place"))
    _set_up(repository, made.tree)
    if as_json:
        show_json({**_facts(made.tree), "copied": list(made.copied), "uncommitted": made.uncommitted})
        return
    show(str(made.tree.path))
    note(f"synapse: the branch is {made.tree.branch}, from {made.tree.onto or made.tree.base[:12]}")
    if made.uncommitted:
        note(f"synapse: it lacks uncommitted changes of the main folder (files: {made.uncommitted})")


@worktree_command.command(name="setup")
@_AGENT
@json_option
def setup_command(*, agent: str, as_json: bool) -> None:
    """Run the project's .synapse/worktree-setup in AGENT's worktree once more.

    It is run in each new worktree, by /bin/sh, once you have trusted its content with 'synapse trust'.

    Examples:
      synapse worktree setup alice
    """
    _check_person("set up")
    repository = _repository()
    tree = repository.tree(agent)
    if tree.missing:
        raise WorktreeError(f"the folder of {agent} is gone", "synapse worktree prune tidies up")
    done = _set_up(repository, tree)
    if done.script is None:
        raise WorktreeError("this project has no .synapse/worktree-setup", "write one: it is run by /bin/sh")
    if as_json:
        facts = {"script": str(done.script), "untrusted": done.untrusted, "trouble": done.trouble}
        show_json(facts)
    if done.untrusted or done.trouble:
        click.get_current_context().exit(ExitCode.FAILED.value)


def _set_up(repository: Repository, tree: Worktree) -> SetUp:
    from synapse_tui.agents.worktrees.setup import set_up
    from synapse_tui.system.trust import TrustStore

    caller = Caller.of()
    done = set_up(repository, tree, caller.folder, os.environ, TrustStore(caller.paths.trusted).trusts)
    if done.untrusted:
        script = tilde(str(done.script))
        note(f"synapse: {tree.name} is not set up: read {script}, then: synapse trust worktree-setup")
        note(f"  synapse worktree setup {tree.name}")
    elif done.trouble:
        note(f"synapse: {tree.name} could not be set up: {done.trouble}")
    return done


@worktree_command.command(name="list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the worktrees of agents: what they change, and with what they will conflict.

    The forecast includes work that is not committed yet.

    Examples:
      synapse worktree list
    """
    from synapse_tui.agents.worktrees.merge import forecast, snapshots

    repository = _repository()
    trees = repository.trees()
    heads = snapshots(repository, trees)
    conflicts = list(forecast(repository, trees, heads))
    found = [_State(repository, tree, heads.get(tree.name, ""), conflicts) for tree in trees]
    show_list(
        [state.data for state in found],
        ("AGENT", "BRANCH", "CHANGES", "STATE", "FOLDER"),
        [state.row for state in found],
        "synapse: no agent has a worktree; 'synapse worktree add NAME' makes one",
        as_json=as_json,
        shrinking=("STATE", "FOLDER"),
    )


@worktree_command.command(name="diff")
@_AGENT
@click.option("--stat", is_flag=True, help="Only the files and how many lines.")
@json_option
def diff_command(*, agent: str, stat: bool, as_json: bool) -> None:
    """Print what AGENT's worktree changes, uncommitted and new files included.

    Examples:
      synapse worktree diff alice
      synapse worktree diff alice --stat
    """
    from synapse_tui.agents.worktrees.keep import snapshot
    from synapse_tui.agents.worktrees.merge import difference

    repository = _repository()
    tree = repository.tree(agent)
    if tree.missing:
        raise WorktreeError(f"the folder of {agent} is gone", "synapse worktree prune tidies up")
    now = snapshot(repository, tree.path)
    if as_json:
        files = _changes(repository, tree, now).files
        show_json([{"path": path, "added": added, "removed": removed} for path, added, removed in files])
        return
    terminal = sys.stdout.isatty()
    colour = "--color=always" if terminal and "NO_COLOR" not in os.environ else "--color=never"
    text = difference(repository, tree, now, colour, *(("--stat",) if stat else ()))
    if text:
        text = text.rstrip("\n").encode(errors="surrogateescape").decode(errors="replace")
        show(shown_diff(text) if terminal else text)
    else:
        note(f"synapse: {agent} has changed nothing")


def shown_diff(text: str) -> str:
    """Return what a diff says, for a terminal: of control sequences in files only colours act."""
    return _ACTING.sub(r"\1", text)


@worktree_command.command(name="merge")
@_AGENT
@click.option("--squash", is_flag=True, help="Make one commit of its commits.")
@click.option("--message", "-m", metavar="TEXT", default="", help="With --squash: message of that commit.")
@click.option("--commit", metavar="TEXT", default="", help="First commit uncommitted work with this message.")
@json_option
@click.pass_context
def merge_command(
    context: click.Context, *, agent: str, squash: bool, message: str, commit: str, as_json: bool
) -> None:
    """Merge AGENT's worktree into the branch that it began from.

    If that branch has moved, it is merged into the worktree first, so conflicts arise there and the agent can
    resolve them; the exit code is then 4 and nothing else has changed. Uncommitted files that are in the way
    are never touched.

    Examples:
      synapse worktree merge alice
      synapse worktree merge alice --commit "new parser" --squash
    """
    from synapse_tui.agents.worktrees.merge import listed, merge

    _check_person("merge")
    repository = _repository()
    done = merge(repository, repository.tree(agent), squash=squash, message=message, commit=commit)
    if as_json:
        facts = {"commit": done.commit, "onto": done.onto, "base": done.base}
        show_json({**facts, "conflicts": list(done.conflicts)})
    elif done.commit:
        show(f"{done.onto} {done.commit}")
    elif not done.conflicts:
        note(f"synapse: {done.onto} has all of {agent} already")
    if done.conflicts:
        note(f"synapse: nothing was merged: {done.onto} and {agent} conflict in {listed(done.conflicts)}")
        note("synapse: the merge is begun in the worktree; let the agent resolve and commit it, for example:")
        note(f"  synapse send {agent} {shlex.quote(done.request)}")
        context.exit(ExitCode.NOT_TAKEN.value)


@worktree_command.command(name="discard")
@_AGENT
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def discard_command(*, agent: str, yes: bool, as_json: bool) -> None:
    """Remove AGENT's worktree and branch, whatever they hold.

    All of it is kept for 30 days: commits and files, ignored ones too. `synapse worktree keep --restore`
    brings it back.

    Examples:
      synapse worktree discard alice
    """
    from synapse_tui.agents.worktrees.keep import remove

    _check_person("discard")
    repository = _repository()
    tree = repository.tree(agent)
    if not yes:
        if as_json or not is_interactive():
            raise InvalidValue("nothing is removed without confirmation", "--yes confirms")
        confirm(f"Remove {tilde(str(tree.path))} and the branch {tree.own_branch}?", abort=True)
    _show_removed([remove(repository, tree, "discarded")], as_json=as_json)


@worktree_command.command(name="keep")
@click.argument("agent", default="", shell_complete=offering(_names))
@click.option("--restore", metavar="KEPT", default="", help="Make a worktree again from what is kept.")
@json_option
def keep_command(*, agent: str, restore: str, as_json: bool) -> None:
    """Keep what AGENT's worktree holds now; without AGENT, list what is kept.

    KEPT is an entry of the list, or an agent for its last one.

    Examples:
      synapse worktree keep
      synapse worktree keep alice
      synapse worktree keep --restore alice
    """
    from synapse_tui.agents.worktrees import keep

    if agent and restore:
        raise InvalidValue("AGENT and --restore cannot be combined", "give one of them")
    repository = _repository()
    if restore:
        place = Layers.here().load().text("worktrees.place")
        tree = keep.restore(repository, keep.find_kept(repository, restore), place=place)
        show_json(_facts(tree)) if as_json else show(str(tree.path))
        return
    mine = [keep.keep(repository, repository.tree(agent), "kept by you")] if agent else None
    found = keep.kept(repository) if mine is None else mine
    now = datetime.now(UTC).timestamp()
    rows = [(each.short, plain(each.why), f"{duration(max(now - each.when, 0))} ago") for each in found]
    data = [_kept_facts(each) for each in found]
    show_list(data, ("KEPT", "WHY", "WHEN"), rows, "synapse: nothing is kept", as_json=as_json)


@worktree_command.command(name="prune")
@click.option("--dry-run", "-n", is_flag=True, help="Only show what would be removed.")
@json_option
def prune_command(*, dry_run: bool, as_json: bool) -> None:
    """Remove the worktrees whose work is merged, and those whose folder is gone.

    One is left if it has uncommitted files, a program runs in it, it is locked, or git cannot tell. Entries
    kept for more than 30 days are deleted.

    Examples:
      synapse worktree prune --dry-run
    """
    from synapse_tui.agents.worktrees import keep

    _check_person("prune")
    repository = _repository()
    going = [tree for tree in repository.trees() if _may_go(repository, tree)]
    if dry_run:
        found = [(tree.name, tree.own_branch, tilde(str(tree.path))) for tree in going]
        data = [_facts(tree) for tree in going]
        show_list(data, ("AGENT", "BRANCH", "FOLDER"), found, "synapse: nothing to remove", as_json=as_json)
        return
    removed = [keep.remove(repository, tree, "pruned") for tree in going]
    old = keep.expire(repository)
    _show_removed(removed, as_json=as_json)
    if old:
        note(f"synapse: {len(old)} kept entries were over {keep.DAYS} days old and are deleted")


def _may_go(repository: Repository, tree: Worktree) -> bool:
    if tree.missing:
        return not tree.lock_of_others
    try:
        why = _why_it_stays(repository, tree)
    except WorktreeError as error:
        why = error.message
    if why:
        note(f"synapse: {tree.name} stays: {why}")
    return not why


def _why_it_stays(repository: Repository, tree: Worktree) -> str:
    from synapse_tui.agents.worktrees.keep import processes_in
    from synapse_tui.agents.worktrees.merge import is_merged

    why = ""
    if tree.lock_of_others:
        why = tree.lock_of_others
    elif busy := repository.busy(tree.path):
        why = tr(f"in the middle of a {busy}")
    elif repository.changed(tree.path):
        why = tr("it has uncommitted files")
    elif not is_merged(repository, tree):
        why = tr("its work is not merged")
    elif next(processes_in(tree.path), None) is not None:
        why = tr("a program runs in it")
    return why


class _State:
    """What `list` tells of a worktree."""

    def __init__(
        self, repository: Repository, tree: Worktree, now: str, conflicts: Sequence[Conflict]
    ) -> None:
        from synapse_tui.agents.worktrees.keep import snapshot

        self.tree = tree
        self.changes, self.uncommitted, self.busy, self.trouble = FolderChange(), list[str](), "", ""
        if not tree.missing:
            try:
                self.uncommitted = repository.changed(tree.path)
                self.changes = _changes(repository, tree, now or snapshot(repository, tree.path))
                self.busy = repository.busy(tree.path)
            except WorktreeError as error:
                self.trouble = error.message
        self.mergeable = bool(repository.target(tree))
        self.conflicts = [
            conflict for conflict in conflicts if tree.name == conflict.one or self._meets(conflict)
        ]

    def _meets(self, conflict: Conflict) -> bool:
        return not conflict.with_base and conflict.other == self.tree.name

    @property
    def data(self) -> dict[str, Any]:
        return {
            **_facts(self.tree),
            **({"error": self.trouble} if self.trouble else {}),
            "files": len(self.changes.files),
            "added": self.changes.added,
            "removed": self.changes.removed,
            "uncommitted": len(self.uncommitted),
            "busy": self.busy,
            "conflicts": [
                {
                    "with": self._other(conflict),
                    "files": None if conflict.files is None else list(conflict.files),
                }
                for conflict in self.conflicts
            ],
        }

    def _other(self, conflict: Conflict) -> str:
        return conflict.other if conflict.one == self.tree.name else conflict.one

    @property
    def row(self) -> tuple[str, ...]:
        tree, changes = self.tree, self.changes
        counts = f"+{changes.added} -{changes.removed} in {len(changes.files)}" if changes.files else ""
        return tree.name, tree.branch, counts, self._state(), tilde(str(tree.path))

    def _state(self) -> str:
        if self.tree.missing:
            return tr("its folder is gone")
        if self.trouble:
            return tr(f"cannot be read: {self.trouble}")
        said = [
            tr(f"conflicts with {self._other(conflict)} in {_shortened(conflict.files)}")
            for conflict in self.conflicts
            if conflict.files
        ]
        if any(conflict.files is None for conflict in self.conflicts):
            said += [tr("conflicts unknown: git is older than 2.38")]
        said += [tr(f"in the middle of a {self.busy}")] if self.busy else []
        said += [tr(f"{len(self.uncommitted)} uncommitted")] if self.uncommitted else []
        if self.changes.files and not self.mergeable:
            said += [tr("no branch to merge into")]
        return name_list(said) or (tr("can be merged") if self.changes.files else tr("no changes"))


def _shortened(files: Sequence[str]) -> str:
    more = tr(f" and {len(files) - 2} more") if len(files) > 2 else ""
    return f"{', '.join(files[:2])}{more}"


def _changes(repository: Repository, tree: Worktree, now: str) -> FolderChange:
    from synapse_tui.agents.worktrees.merge import difference

    return parse_numstat(difference(repository, tree, now, "--numstat", "-z", "--no-renames"))


def _repository() -> Repository:
    from synapse_tui.agents.worktrees.trees import Repository

    return Repository(Caller.of().folder, os.environ)


def _check_person(what: str) -> None:
    if Caller.of().acting_agent:
        raise InvalidValue(f"an agent cannot {what} worktrees", "ask the user")


def _facts(tree: Worktree) -> Mapping[str, object]:
    return {
        "name": tree.name,
        "path": str(tree.path),
        "branch": tree.branch,
        "head": tree.head,
        "onto": tree.onto,
        "base": tree.base,
        "made": datetime.fromtimestamp(tree.made, UTC).isoformat(timespec="seconds"),
        "locked": tree.locked,
        "missing": tree.missing,
    }


def _kept_facts(one: Kept) -> Mapping[str, object]:
    when = datetime.fromtimestamp(one.when, UTC).isoformat(timespec="seconds")
    facts = {"kept": one.short, "name": one.name, "when": when, "why": one.why}
    return {**facts, "head": one.head, "branch": one.branch, "trash": one.trash}


def _show_removed(removed: Sequence[Kept], *, as_json: bool) -> None:
    if as_json:
        show_json([_kept_facts(each) for each in removed])
        return
    for kept in removed:
        show(kept.name)
        if kept.trash and Path(kept.trash).exists():
            note(f"synapse: {kept.name} is kept as {kept.short}; its folder is {tilde(kept.trash)}")
        else:
            note(f"synapse: {kept.name} is kept as {kept.short}")
    if not removed:
        note("synapse: nothing to remove")
