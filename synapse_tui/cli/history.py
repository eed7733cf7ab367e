"""`synapse history`: messages and their answers."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.core.errors import InvalidValue, SynapseError
from synapse_tui.core.model import USER, TaskState
from synapse_tui.core.wording import (
    YOU,
    called,
    duration,
    moment,
    sender_called,
    standing,
    standing_words,
    step_words,
    task_word,
    with_names,
)
from synapse_tui.messages.export import FORMATS, json_of, write
from synapse_tui.messages.reasons import Reason
from synapse_tui.system.language import name_list, tr

from .caller import Caller
from .commands import CommandGroup, json_option, limit_option, stacked
from .completion import complete_agents, complete_tasks
from .config import Layers
from .output import confirm, is_interactive, note, one_line, plain, say, show, show_json, show_table

if TYPE_CHECKING:
    from synapse_tui.messages.archive import Archive
    from synapse_tui.messages.records import Record, TaskQuery
    from synapse_tui.messages.storage.location import Location

_SETTING = "env.SYNAPSE_HISTORY_ENABLED"
_SPAN = re.compile(r"(\d+)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

_filters = stacked(
    click.option(
        "--agent",
        metavar="AGENT",
        default="",
        shell_complete=complete_agents,
        help="Only tasks of this agent (id or type).",
    ),
    click.option(
        "--from", "sender", metavar="SENDER", default="", help="Only tasks from this agent, or `you`."
    ),
    click.option(
        "--status", type=click.Choice([state.value for state in TaskState]), help="Only tasks in this state."
    ),
    click.option("--since", metavar="TIME", default="", help="Created since: 2h, 3d, 2026-05-01."),
    click.option("--until", metavar="TIME", default="", help="Created before."),
    click.option("--all", "everywhere", is_flag=True, help="Include all projects."),
)
_limit_option = limit_option(100_000)

_WATCH_ENDS: Mapping[Reason | None, str] = {
    Reason.GAVE_UP: tr("gave up"),
    Reason.WATCH_STOPPED: tr("stopped"),
}
"""How a watch came to end that did not end well."""


@click.group(name="history", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def history_command(context: click.Context) -> None:
    """List, search, export and remove messages and their answers; alone, the last ones are listed.

    Examples:
      synapse history
      synapse history list --agent claude --since 2h
      synapse history search parser crash
      synapse history show 25ea4569
    """
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@history_command.command(name="list")
@_filters
@_limit_option
@json_option
def list_command(*, limit: int, as_json: bool, **filters: Any) -> None:
    """List the tasks of this project, the newest first.

    Examples:
      synapse history list -n 10
      synapse history list --status failed --since 3d --all
    """
    _list("", limit, as_json=as_json, filters=filters)


@history_command.command(name="search")
@click.argument("words", nargs=-1, required=True)
@_filters
@_limit_option
@json_option
def search_command(*, words: Sequence[str], limit: int, as_json: bool, **filters: Any) -> None:
    """List the tasks whose message or answer contains all WORDS.

    Any part of a text matches, in any script, ignoring case and width; one or two symbols such as `++` alone
    match nothing. A quoted WORD with spaces is matched as a phrase.

    Examples:
      synapse history search 日本
      synapse history search "null pointer" --agent codex
    """
    query = " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)
    _list(query, limit, as_json=as_json, filters=filters)


@history_command.command(name="show")
@click.argument("task", shell_complete=complete_tasks)
@json_option
def show_command(*, task: str, as_json: bool) -> None:
    """Print the message and the answer of TASK; standard error lists each step with its time and reason.

    TASK is an id, or its first 8 characters.

    Examples:
      synapse history show 25ea4569
    """
    with _archive() as archive:
        record, steps = archive.find(task)
    if as_json:
        passed = [
            {
                "time": step.time.isoformat(),
                "state": step.state,
                "delivery": step.delivery,
                "reason": step.reason,
            }
            for step in steps
        ]
        show_json(json_of(record) | {"steps": passed})
        return
    found = record.task
    live = Caller.of().names()
    how, names = _status(record, live), {**live, **record.names(live)}
    sender, target = sender_called(found.sender, names), called(found.target, names)
    note(f"synapse: task {found.id}: {sender} to {target}, {how}")
    now = datetime.now(UTC)
    for step in steps:
        words = _WATCH_ENDS.get(Reason.of(step.reason)) or name_list(
            map(tr, step_words(TaskState(step.state), step.delivery).split(", "))
        )
        why = f": {with_names(tr(step.reason), names)}" if step.reason else ""
        note(f"  {moment(step.time, now)}  {words}{why}")
    show(plain(found.text))
    show("")
    why = with_names(tr(found.reason), names)
    show(plain(found.answer) or f"({how if why in ('', how) else f'{how}: {why}'})")


@history_command.command(name="stats")
@_filters
@json_option
def stats_command(*, as_json: bool, **filters: Any) -> None:
    """Count the tasks of this project by agent and state.

    Examples:
      synapse history stats --since 7d
    """
    wanted = _wanted(filters)
    with _archive() as archive:
        stats = archive.stats(wanted)
    if as_json:
        show_json(stats)
        return
    words = {state: task_word(TaskState(state), "") for state in sorted(stats["states"])}
    if not words:
        note("synapse: no tasks")
        return
    heads = tuple(dict.fromkeys(words.values()))

    def row(name: str, counts: Mapping[str, int]) -> tuple[str, ...]:
        sums = Counter[str]()
        for state, count in counts.items():
            sums[words[state]] += count
        return (name, *(str(sums[word] or "") for word in heads), str(sums.total()))

    rows = [row(agent, counts) for agent, counts in stats["agents"].items()]
    show_table(("AGENT", *(word.upper() for word in heads), "TASKS"), [*rows, row("all", stats["states"])])
    if stats["mean_seconds"] is not None:
        note(f"synapse: a task took {duration(stats['mean_seconds'])} on average")


@history_command.command(name="export")
@_filters
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="json", show_default=True, help="Output format."
)
@click.option("--search", "query", metavar="WORDS", default="", help="Only tasks that contain WORDS.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write to a new file; default: standard output (`-`).",
)
def export_command(*, form: str, query: str, output: Path | None, **filters: Any) -> None:
    """Write the tasks of this project, the newest first, as JSON, JSON lines, CSV or Markdown.

    Examples:
      synapse history export --format md -o week.md --since 7d
      synapse history export --format jsonl --all
    """
    wanted = _wanted(filters, query)
    with _archive() as archive:
        if output is None or str(output) == "-":
            write(form, archive.walk(wanted), sys.stdout)
            return
        made = False
        try:
            with output.open("x", encoding="utf-8", newline="") as file:
                made = True
                output.chmod(0o600)
                count = write(form, archive.walk(wanted), file)
        except FileExistsError:
            raise InvalidValue(f"{output} exists already", "name another file, or remove it") from None
        except OSError as error:
            if made:
                output.unlink(missing_ok=True)  # a partial file could be mistaken for a complete one
            raise InvalidValue(
                f"{output} cannot be written: {error.strerror}", "name another file"
            ) from error
    note(f"synapse: {count} tasks in {output}")


@history_command.command(name="cleanup")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(0, 100_000),
    help="Keep the last N days; default: a2a.retention_days.",
)
@click.option("--dry-run", is_flag=True, help="Only print how many would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def cleanup_command(*, days: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove tasks of all projects that ended more than N days ago, as hosts do.

    Examples:
      synapse history cleanup --days 90 --dry-run
    """
    if days is None:
        caller = Caller.of()
        days = Layers(caller, Path(caller.project)).load().number("a2a.retention_days")
        if not days:
            raise InvalidValue("ended tasks are kept forever (a2a.retention_days is 0)", "give --days N")
    before = datetime.now(UTC) - timedelta(days=days)
    with _archive() as archive:
        count = archive.clean(before, dry=True)
        if count and not dry_run:
            if not yes:
                if as_json or not is_interactive():
                    raise InvalidValue(
                        "nothing is removed without confirmation", "--yes confirms, --dry-run only counts"
                    )
                confirm(f"Permanently remove {count} tasks?", abort=True)
            count = archive.clean(before)
    if as_json:
        show_json({"removed": 0 if dry_run else count, "found": count})
    else:
        say(f"{count} tasks {'would be' if dry_run else 'were'} removed")


def _list(query: str, limit: int, *, as_json: bool, filters: dict[str, Any]) -> None:
    from synapse_tui.messages.quick import listed_tasks

    wanted = _wanted(filters, query, limit)
    place = _location()
    records = listed_tasks(place, wanted)
    if records is None:
        with _archive(place) as archive:
            records = archive.select(wanted)
    if as_json:
        show_json([json_of(record) for record in records])
    elif records:
        now = datetime.now(UTC)
        heads = ("TASK", "TIME", "FROM", "TO", "STATUS", "TEXT")
        names = Caller.of().names()
        rows = [_row(record, now, names) for record in records]
        show_table(heads, rows, shrinking=("FROM", "TO", "TEXT"))
    else:
        note("synapse: no tasks found" + ("" if filters["everywhere"] else "; --all searches all projects"))


def _status(record: Record, live: Mapping[str, str]) -> str:
    """Describe how far a task has come; its agent may have ended with its host and cannot tell any more."""
    task = record.task
    if task.state.final and (end := _WATCH_ENDS.get(Reason.of(task.reason))):
        return end
    words = standing_words(standing(task.state, task.delivery))
    elsewhere = "@" in record.owner  # on another machine
    if task.state.final or elsewhere or record.owner in live:
        return words
    return tr(f"{words} (not open)")


def _row(record: Record, now: datetime, live: Mapping[str, str]) -> tuple[str, ...]:
    task, names = record.task, record.names(live)
    when, status = moment(task.created_at, now), _status(record, live)
    sender, target = sender_called(task.sender, names), called(task.target, names)
    return task.short_id, when, sender, target, status, one_line(task.text)


def _wanted(filters: dict[str, Any], query: str = "", limit: int = 50) -> TaskQuery:
    from synapse_tui.messages.records import TaskQuery

    caller = Caller.of()
    sender = filters["sender"]
    return TaskQuery(
        agent=_agent(caller, filters["agent"]),
        sender=USER.sender_id if sender in (YOU, tr(YOU)) else _agent(caller, sender),
        states=(filters["status"],) if filters["status"] else (),
        project="" if filters["everywhere"] else caller.project,
        since=time_of(filters["since"]),
        until=time_of(filters["until"]),
        query=query,
        limit=limit,
    )


def _agent(caller: Caller, name: str) -> str:
    """Return the id of an agent that runs; a type, or the id of another one, stays as it is."""
    name = name.removeprefix("@")
    if not name:
        return ""
    try:
        [found] = caller.find(name)
    except (SynapseError, ValueError):
        return name
    return name if name == found.agent_type else found.agent_id


def time_of(word: str, now: datetime | None = None) -> datetime | None:
    """Parse a time: `2h` (ago), `2026-05-01` or `2026-05-01T12:00`; None for an empty string."""
    if not word:
        return None
    span = _SPAN.fullmatch(word)
    try:
        if span:
            return (now or datetime.now(UTC)) - timedelta(seconds=int(span[1]) * _SECONDS[span[2]])
        return datetime.fromisoformat(word).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidValue(
            f"'{word}' is not a time", "write 30m, 2h, 3d, 2026-05-01 or 2026-05-01T12:00"
        ) from None


def _location() -> Location:
    from synapse_tui.messages.storage.location import location_of

    caller = Caller.of()
    project = Path(caller.project)
    settings = Layers(caller, project).load()
    if not settings.flag(_SETTING):
        note(f"synapse: history is off ({_SETTING}): ended tasks are not saved")
    return location_of(settings, caller.paths.history, paths=caller.paths, project=project)


@contextmanager
def _archive(location: Location | None = None) -> Iterator[Archive]:
    from synapse_tui.messages.archive import Archive

    archive = Archive(location or _location())
    if archive.moved:
        note(f"synapse: the history was damaged and has been moved to {archive.moved}")
    try:
        yield archive
    finally:
        archive.close()
