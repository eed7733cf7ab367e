"""`synapse file-safety`: who may write which file, and who has written what."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click

from synapse_tui.durations import duration, moment
from synapse_tui.errors import InvalidValue
from synapse_tui.safety.locks import ChangeType, Lock, Modification, ModificationQuery

from .commands import CommandGroup
from .completing import complete_agents
from .file_safety_desk import Desk, json_of_lock, json_of_modification
from .options import Function, json_option, limit_option
from .output import ExitCode, note, plain, show, show_json
from .tables import show_table

_limit_option = limit_option(10_000)
_LOCK_HEADS = ("FILE", "AGENT", "HELD", "LEFT", "TASK", "INTENT")
_CHANGE_HEADS = ("TIME", "FILE", "CHANGE", "LINES", "AGENT", "TASK", "INTENT")
_FREE = ("FILE", "LINES", "AGENT", "TASK", "INTENT")
"""Columns whose texts may be of any length."""


def _agent_option(about: str) -> Callable[[Function], Function]:
    return click.option("--agent", metavar="AGENT", default="", shell_complete=complete_agents, help=about)


def _with_agent(desk: Desk, words: Sequence[str], agent: str) -> tuple[Sequence[Path], str]:
    """FILEs and the agent; `FILE AGENT` are a file and its holder, as in the documents of synapse-a2a."""
    if len(words) == 2 and not agent and desk.names_agent(words[1]):
        words, agent = words[:1], words[1]
    return [Path(word) for word in words], agent


@click.group(name="file-safety", cls=CommandGroup)
def command() -> None:
    """Who may write which file of this project, and who has written what."""


@command.command(name="status")
@json_option
def status_command(*, as_json: bool) -> None:
    """Print whether file safety is on, where its database lies and what is in it."""
    desk = Desk.here()
    facts = desk.status()
    if as_json:
        show_json(facts)
        return
    show("file safety is " + ("on" if facts["enabled"] else "off (env.SYNAPSE_FILE_SAFETY_ENABLED)"))
    show(f"database: {facts['database']}")
    show(
        f"locks: {facts['locks']}, changes: {facts['modifications']}, kept for {facts['retention_days']} days"
    )


@command.command(name="locks")
@_agent_option("Only those of AGENT.")
@json_option
def locks_command(*, agent: str, as_json: bool) -> None:
    """List the locks that hold, the oldest first."""
    desk = Desk.here()
    _show_locks(desk.locks(desk.agent_id(agent) if agent else ""), as_json=as_json)


@command.command(name="lock")
@click.argument("words", metavar="FILES...", nargs=-1, required=True, type=click.Path())
@_agent_option("For AGENT; by default the agent inside which this runs, else you.")
@click.option("--intent", metavar="TEXT", default="", help="What for, in a few words.")
@click.option("--task", "--task-id", metavar="TASK", default="", help="For which task.")
@json_option
@click.pass_context
def lock_command(
    context: click.Context, *, words: Sequence[str], agent: str, intent: str, task: str, as_json: bool
) -> None:
    """Lock FILEs, all or none, for 5 minutes; locking them again renews that.

    Of two words the second may name an agent or a type, for which the first is locked. The exit code is 4
    when another agent holds one of them; it is named on standard output.
    """
    desk = Desk.here()
    files, agent = _with_agent(desk, words, agent)
    holder = desk.lock_holder(agent, task)
    keys = [desk.file_key(file) for file in files]
    with desk.opened() as safety:
        verdict = safety.acquire_locks(keys, holder, intent=plain(intent)[:500])
        locks = [lock for lock in safety.locks(holder.agent_id) if lock.file in keys]
    if as_json:
        about = json_of_lock(verdict.lock) if verdict.lock is not None else None
        show_json({"allowed": verdict.allowed, "reason": verdict.reason, "lock": about})
    elif verdict.allowed:
        _show_locks(locks, as_json=False)
    elif verdict.lock is not None:
        show(f"{verdict.lock.file}: {verdict.reason}, {_held(verdict.lock)}")
    if not verdict.allowed:
        context.exit(ExitCode.NOT_TAKEN.value)


@command.command(name="unlock")
@click.argument("words", metavar="[FILES]...", nargs=-1, type=click.Path())
@_agent_option("Those of AGENT; by default of the agent inside which this runs, else yours.")
@click.option("--all", "every", is_flag=True, help="All locks of that agent.")
@click.option("--force", is_flag=True, help="Whoever holds them: for people, not inside an agent.")
@json_option
@click.pass_context
def unlock_command(
    context: click.Context, *, words: Sequence[str], agent: str, every: bool, force: bool, as_json: bool
) -> None:
    """Give the locks of FILEs back. The exit code is 4 when one of them was not held.

    Of two words the second may name an agent or a type, whose lock of the first is given back.
    """
    if bool(words) == every:
        problem = "FILEs and --all are given" if every else "say which files"
        raise InvalidValue(problem, "name FILEs, or give --all for all locks of the agent")
    desk = Desk.here()
    if force and desk.caller.agent_id:
        raise InvalidValue("an agent cannot take locks away from others", "ask the holder, or a person")
    files, agent = _with_agent(desk, words, agent)
    agent_id = desk.holder(agent).agent_id
    with desk.opened() as safety:
        if every:
            released, missed = safety.release_agent(agent_id), list[str]()
        else:
            keys = [desk.key(file) for file in files]
            free: Callable[[str], object] = (
                safety.break_lock if force else partial(safety.release_lock, agent_id=agent_id)
            )
            freed = {key for key in keys if free(key)}
            released, missed = sorted(freed), [key for key in keys if key not in freed]
    if as_json:
        show_json({"released": released, "missed": missed})
    for key in () if as_json else released:
        show(key)
    if every and not released:
        note(f"synapse: no file was locked by {agent_id}")
    _miss(context, missed, "" if force else f" by {agent_id}")


def _miss(context: click.Context, missed: Sequence[str], by: str) -> None:
    """Tell which files were not locked, and end with that code."""
    for key in missed:
        note(f"synapse: {key} was not locked{by}")
    if missed:
        context.exit(ExitCode.NOT_TAKEN.value)


@command.command(name="history")
@click.argument("file", type=click.Path(path_type=Path))
@_limit_option
@json_option
def history_command(*, file: Path, limit: int, as_json: bool) -> None:
    """List the changes of FILE, the newest first."""
    desk = Desk.here()
    with desk.opened() as safety:
        changes = safety.modifications(ModificationQuery(file=desk.key(file), limit=limit))
    _show_changes(changes, as_json=as_json)


@command.command(name="recent")
@_agent_option("Only those of AGENT.")
@click.option(
    "--hours", metavar="H", type=click.FloatRange(min=0), default=24, show_default=True, help="How far back."
)
@_limit_option
@json_option
def recent_command(*, agent: str, hours: float, limit: int, as_json: bool) -> None:
    """List the last changes of files, the newest first."""
    if math.isnan(hours):
        raise InvalidValue("--hours nan: no number of hours", "write one, such as 2 or 0.5")
    desk = Desk.here()
    since = datetime.now(UTC) - timedelta(hours=min(hours, 10 * 366 * 24.0))
    query = ModificationQuery(agent_id=desk.agent_id(agent) if agent else "", since=since, limit=limit)
    with desk.opened() as safety:
        changes = safety.modifications(query)
    _show_changes(changes, as_json=as_json)


@command.command(name="record")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("by", metavar="[AGENT]", default="")
@click.argument("task_id", metavar="[TASK]", default="")
@click.option(
    "--change",
    "--type",
    "-t",
    "change",
    type=click.Choice([kind.value for kind in ChangeType], case_sensitive=False),
    default=ChangeType.MODIFY.value,
    show_default=True,
    help="What was done.",
)
@click.option("--lines", metavar="LINES", default="", help="Which lines, such as 3-7,12.")
@click.option("--intent", metavar="TEXT", default="", help="What for, in a few words.")
@click.option("--task", metavar="TASK", default="", help="In which task.")
@_agent_option("By AGENT; by default the agent inside which this runs, else you.")
@json_option
def record_command(
    *,
    file: Path,
    by: str,
    task_id: str,
    change: str,
    lines: str,
    intent: str,
    task: str,
    agent: str,
    as_json: bool,
) -> None:
    """Note that FILE was changed; the agents' own tools are noted by themselves."""
    desk = Desk.here()
    for words in ((agent, by), (task, task_id)):
        if all(words):
            raise InvalidValue(f"'{words[0]}' and '{words[1]}' are given for the same", "give one of them")
    noted = Modification(
        file=desk.file_key(file),
        change=ChangeType(change.upper()),
        agent_id=desk.holder(agent or by).agent_id,
        task_id=plain(task or task_id),
        time=datetime.now(UTC),
        lines=desk.lines(lines),
        intent=plain(intent)[:500],
    )
    with desk.opened() as safety:
        found = safety.record_modification(noted)
    if as_json:
        show_json(json_of_modification(found))
    else:
        show(f"{found.file} {found.change} {found.task_id}")


@command.command(name="cleanup")
@click.option("--days", metavar="N", type=click.IntRange(0, 100_000), help="Keep those of the last N days.")
@json_option
def cleanup_command(*, days: int | None, as_json: bool) -> None:
    """Remove old changes (by default those older than the settings say) and locks that do not hold."""
    desk = Desk.here()
    kept = desk.retention_days if days is None else days
    with desk.opened() as safety:
        modifications, locks = safety.cleanup(datetime.now(UTC) - timedelta(days=kept))
    if as_json:
        show_json({"modifications": modifications, "locks": locks})
    else:
        show(f"removed {modifications} changes and {locks} locks")


@command.command(name="debug")
@json_option
def debug_command(*, as_json: bool) -> None:
    """Print what helps to find a fault: paths, settings and their origins, the database's state."""
    facts = Desk.here().debug()
    if as_json:
        show_json(facts)
        return
    for name, value in facts.items():
        if not isinstance(value, dict):
            show(f"{name}: {value}".rstrip())
            continue
        show(f"{name}:")
        for key, inner in value.items():
            show(f"  {key}: {inner}")


def _show_locks(locks: Sequence[Lock], *, as_json: bool) -> None:
    now = datetime.now(UTC)
    if as_json:
        show_json([json_of_lock(lock) for lock in locks])
    elif locks:
        rows = [
            (
                lock.file,
                lock.agent_id,
                duration((now - lock.locked_at).total_seconds()),
                duration((lock.expires_at - now).total_seconds()),
                lock.task_id[:8],
                lock.intent,
            )
            for lock in locks
        ]
        show_table(_LOCK_HEADS, rows, shrinking=_FREE)
    else:
        note("synapse: no file is locked")


def _show_changes(changes: Sequence[Modification], *, as_json: bool) -> None:
    if as_json:
        show_json([json_of_modification(change) for change in changes])
    elif changes:
        now = datetime.now(UTC)
        rows = [
            (
                moment(change.time, now),
                change.file,
                change.change.value,
                change.lines,
                change.agent_id,
                change.task_id if change.task_id.startswith("local-") else change.task_id[:8],
                change.intent,
            )
            for change in changes
        ]
        show_table(_CHANGE_HEADS, rows, shrinking=_FREE)
    else:
        note("synapse: no change of a file is known")


def _held(lock: Lock) -> str:
    now = datetime.now(UTC)
    held = duration((now - lock.locked_at).total_seconds())
    left = duration((lock.expires_at - now).total_seconds())
    purpose = f" ({plain(lock.intent)})" if lock.intent else ""
    return f"for {held} now{purpose}, for {left} more at most"
