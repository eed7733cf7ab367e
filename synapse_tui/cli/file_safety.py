"""`synapse file-safety`: locks on files, and the history of their changes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import click

from synapse_tui.core.addresses import ALL, fold, parse_agent_id
from synapse_tui.core.errors import AddressError, AgentExited, AgentNotFound, HistoryError, InvalidValue
from synapse_tui.core.locks import ChangeType, FileKeys, Holder, Lock, Modification, ModificationQuery
from synapse_tui.core.model import USER
from synapse_tui.core.wording import moment, since
from synapse_tui.system.files import write_advice
from synapse_tui.system.paths import make_project_folder

from .caller import Caller
from .commands import CommandGroup, Function, json_option, limit_option
from .completion import complete_agents
from .config import Layers
from .group import profile_names
from .output import ExitCode, note, plain, say, show, show_json, show_list

if TYPE_CHECKING:
    from synapse_tui.hooks.lock_database import LockDatabase
    from synapse_tui.messages.storage.location import Location
    from synapse_tui.settings import Settings

_PREFIX = "env.SYNAPSE_FILE_SAFETY_"
_LINES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_FREE_TEXT = ("FILE", "LINES", "AGENT", "TASK", "INTENT")
_limit_option = limit_option(10_000)
_intent_option = click.option("--intent", metavar="TEXT", default="", help="Purpose, in a few words.")


def _agent_option(about: str) -> Callable[[Function], Function]:
    return click.option("--agent", metavar="AGENT", default="", shell_complete=complete_agents, help=about)


_WAIT_SECONDS = 0.5  # between attempts to lock


@click.group(name="file-safety", cls=CommandGroup)
def file_safety_command() -> None:
    """Manage file locks and show the history of file changes in this project.

    FILE is a path; all spellings of a path mean the same file.

    Examples:
      synapse file-safety locks
      synapse file-safety history src/app.py
    """


@file_safety_command.command(name="status")
@json_option
def status_command(*, as_json: bool) -> None:
    """Print whether file safety is on, where its database is and what it contains.

    Examples:
      synapse file-safety status
    """
    facts = ProjectLocks.here().status()
    if as_json:
        show_json(facts)
        return
    say(f"file safety is {'on' if facts['enabled'] else 'off (env.SYNAPSE_FILE_SAFETY_ENABLED)'}")
    say(f"database: {facts['database']}")
    say(
        f"locks: {facts['locks']}, changes: {facts['modifications']}, kept for {facts['retention_days']} days"
    )


@file_safety_command.command(name="locks")
@_agent_option("Only those of AGENT.")
@json_option
def locks_command(*, agent: str, as_json: bool) -> None:
    """List the current locks, the oldest first.

    Examples:
      synapse file-safety locks --agent claude
    """
    project = ProjectLocks.here()
    _show_locks(project.locks(project.agent_id(agent) if agent else ""), as_json=as_json)


@file_safety_command.command(name="lock")
@click.argument("words", metavar="FILES...", nargs=-1, required=True, type=click.Path())
@_agent_option("For AGENT; default: the agent that runs this, or you.")
@_intent_option
@click.option("--task", "--task-id", metavar="TASK", default="", help="Task that it is for.")
@click.option(
    "--wait",
    "seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    help="If another agent holds one of them, wait for it at most this long.",
)
@json_option
@click.pass_context
def lock_command(
    context: click.Context,
    *,
    words: Sequence[str],
    agent: str,
    intent: str,
    task: str,
    seconds: float,
    as_json: bool,
) -> None:
    """Lock FILES, all or none, for 5 minutes; lock them again to renew.

    With two words, the second may be an agent or a type for which the first is locked. The exit code is 4 if
    another agent holds one of them; standard output names it.

    Examples:
      synapse file-safety lock src/app.py --intent "new parser"
      synapse file-safety lock src/app.py claude
    """
    project = ProjectLocks.here()
    files, agent = project.files_and_agent(words, agent)
    holder = project.lock_holder(agent, task)
    keys = [project.file_key(file) for file in files]
    until, noted = monotonic() + seconds, ("", "")
    with project.opened() as safety:
        verdict = safety.acquire_locks(keys, holder, intent=plain(intent)[:500])
        while verdict.lock is not None and not verdict.allowed and (left := until - monotonic()) > 0:
            file, owner = verdict.lock.file, verdict.lock.agent_id
            if (file, owner) != noted:
                note(f"waiting for {file}: locked by {owner}")
                noted = file, owner
            sleep(min(left, _WAIT_SECONDS))
            verdict = safety.acquire_locks(keys, holder, intent=plain(intent)[:500])
        locks = [lock for lock in safety.locks(holder.agent_id) if lock.file in keys]
    if as_json:
        about = json_of_lock(verdict.lock) if verdict.lock is not None else None
        show_json({"allowed": verdict.allowed, "reason": verdict.reason, "lock": about})
    elif verdict.allowed:
        _show_locks(locks, as_json=False)
    elif verdict.lock is not None:
        held, rest = _times(verdict.lock, datetime.now(UTC))
        purpose = f" ({plain(verdict.lock.intent)})" if verdict.lock.intent else ""
        who = verdict.lock.agent_id
        say(f"{verdict.lock.file}: locked by {who} {held} ago{purpose}, expires in {rest}")
    if not verdict.allowed:
        context.exit(ExitCode.NOT_TAKEN.value)


@file_safety_command.command(name="unlock")
@click.argument("words", metavar="[FILES]...", nargs=-1, type=click.Path())
@_agent_option("Locks of AGENT; default: the agent that runs this, or you.")
@click.option("--all", "every", is_flag=True, help="All locks of that agent.")
@click.option("--force", is_flag=True, help="Release locks of any holder; not allowed inside an agent.")
@json_option
@click.pass_context
def unlock_command(
    context: click.Context, *, words: Sequence[str], agent: str, every: bool, force: bool, as_json: bool
) -> None:
    """Release the locks on FILES. The exit code is 4 if one of them was not held.

    With two words, the second may be an agent or a type whose lock on the first is released.

    Examples:
      synapse file-safety unlock src/app.py
      synapse file-safety unlock --all
    """
    if bool(words) == every:
        problem = "FILES and --all cannot be combined" if every else "no FILES given"
        raise InvalidValue(problem, "name FILES, or give --all for all locks of the agent")
    project = ProjectLocks.here()
    if force and project.caller.acting_agent:
        raise InvalidValue("an agent cannot release the locks of others", "ask the holder or the user")
    files, agent = project.files_and_agent(words, agent)
    agent_id = project.holder(agent).agent_id
    with project.opened() as safety:
        if every:
            released, missed = safety.release_agent(agent_id), list[str]()
        else:
            keys = [project.key(file) for file in files]
            free: Callable[[str], object] = (
                safety.break_lock if force else partial(safety.release_lock, agent_id=agent_id)
            )
            freed = {key for key in keys if free(key)}
            released, missed = sorted(freed), [key for key in keys if key not in freed]
    if as_json:
        show_json({"released": released, "missed": missed})
    else:
        for key in released:
            show(key)
    if every and not released:
        note(f"synapse: {agent_id} held no locks")
    _end_with_missed(context, missed, "" if force else f" by {agent_id}")


def _end_with_missed(context: click.Context, missed: Sequence[str], by: str) -> None:
    for key in missed:
        note(f"synapse: {key} was not locked{by}")
    if missed:
        context.exit(ExitCode.NOT_TAKEN.value)


@file_safety_command.command(name="history")
@click.argument("file", type=click.Path(path_type=Path))
@_limit_option
@json_option
def history_command(*, file: Path, limit: int, as_json: bool) -> None:
    """List the changes of FILE, the newest first.

    Examples:
      synapse file-safety history src/app.py -n 5
    """
    project = ProjectLocks.here()
    _show_changes(project, ModificationQuery(file=project.key(file), limit=limit), as_json=as_json)


@file_safety_command.command(name="recent")
@_agent_option("Only those of AGENT.")
@click.option(
    "--hours",
    metavar="H",
    type=click.FloatRange(min=0),
    default=24,
    show_default=True,
    help="How many hours back.",
)
@_limit_option
@json_option
def recent_command(*, agent: str, hours: float, limit: int, as_json: bool) -> None:
    """List the last changes of files, the newest first.

    Examples:
      synapse file-safety recent --hours 2 --agent codex
    """
    if math.isnan(hours):
        raise InvalidValue("--hours nan is not a number", "write one, such as 2 or 0.5")
    project = ProjectLocks.here()
    since = datetime.now(UTC) - timedelta(hours=min(hours, 10 * 366 * 24.0))
    agent_id = project.agent_id(agent) if agent else ""
    _show_changes(project, ModificationQuery(agent_id=agent_id, since=since, limit=limit), as_json=as_json)


@file_safety_command.command(name="record")
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
    help="Kind of change.",
)
@click.option("--lines", metavar="LINES", default="", help="Changed lines, such as 3-7,12.")
@_intent_option
@click.option("--task", metavar="TASK", default="", help="Task that it belongs to.")
@_agent_option("By AGENT; default: the agent that runs this, or you.")
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
    """Record a change of FILE; changes by the agents' own tools are recorded automatically.

    AGENT and TASK are the same as --agent and --task.

    Examples:
      synapse file-safety record src/app.py --lines 3-7,12 --intent "typo"
    """
    project = ProjectLocks.here()
    for words in ((agent, by), (task, task_id)):
        if all(words):
            raise InvalidValue(f"'{words[0]}' and '{words[1]}' contradict each other", "give one of them")
    modification = Modification(
        file=project.file_key(file),
        change=ChangeType(change.upper()),
        agent_id=project.holder(agent or by).agent_id,
        task_id=plain(task or task_id),
        time=datetime.now(UTC),
        lines=_checked_lines(lines),
        intent=plain(intent)[:500],
    )
    with project.opened() as safety:
        found = safety.record_modification(modification)
    if as_json:
        show_json(json_of_modification(found))
    else:
        show(f"{found.file} {found.change} {found.task_id}")


@file_safety_command.command(name="cleanup")
@click.option("--days", metavar="N", type=click.IntRange(0, 100_000), help="Keep the last N days.")
@json_option
def cleanup_command(*, days: int | None, as_json: bool) -> None:
    """Remove expired locks and old changes; the default age is in the settings.

    Examples:
      synapse file-safety cleanup --days 7
    """
    project = ProjectLocks.here()
    kept = project.retention_days if days is None else days
    with project.opened() as safety:
        modifications, locks = safety.cleanup(datetime.now(UTC) - timedelta(days=kept))
    if as_json:
        show_json({"modifications": modifications, "locks": locks})
    else:
        say(f"removed {modifications} changes and {locks} locks")


@file_safety_command.command(name="debug")
@json_option
def debug_command(*, as_json: bool) -> None:
    """Print diagnostics: paths, settings and their origins, the state of the database.

    Examples:
      synapse file-safety debug
    """
    facts = ProjectLocks.here().debug()
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
    data = [json_of_lock(lock) for lock in locks]
    heads = ("FILE", "AGENT", "HELD", "LEFT", "TASK", "INTENT")
    rows = [(lock.file, lock.agent_id, *_times(lock, now), lock.task_id[:8], lock.intent) for lock in locks]
    show_list(data, heads, rows, "synapse: no files are locked", as_json=as_json, shrinking=_FREE_TEXT)


def _times(lock: Lock, now: datetime) -> tuple[str, str]:
    return since((now - lock.locked_at).total_seconds()), since((lock.expires_at - now).total_seconds())


def _show_changes(project: ProjectLocks, query: ModificationQuery, *, as_json: bool) -> None:
    with project.opened() as safety:
        changes = safety.modifications(query)
    now = datetime.now(UTC)
    data = [json_of_modification(change) for change in changes]
    heads = ("TIME", "FILE", "CHANGE", "LINES", "AGENT", "TASK", "INTENT")
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
    show_list(data, heads, rows, "synapse: no file changes", as_json=as_json, shrinking=_FREE_TEXT)


def _checked_lines(text: str) -> str:
    pairs = [each.partition("-") for each in text.split(",")] if _LINES.fullmatch(text) else []
    if text and not (pairs and all(0 < int(first) <= int(last or first) for first, _, last in pairs)):
        raise InvalidValue(f"--lines {text} is not valid", "write them as 3-7,12")
    return text


def json_of_lock(lock: Lock) -> Mapping[str, object]:
    return {
        "file_path": lock.file,
        "agent_name": lock.agent_id,
        "task_id": lock.task_id,
        "intent": lock.intent,
        "locked_at": lock.locked_at.isoformat(),
        "expires_at": lock.expires_at.isoformat(),
    }


def json_of_modification(change: Modification) -> Mapping[str, object]:
    return {
        "id": change.id,
        "task_id": change.task_id,
        "agent_name": change.agent_id,
        "file_path": change.file,
        "change_type": change.change.value,
        "affected_lines": change.lines,
        "intent": change.intent,
        "timestamp": change.time.isoformat(),
        "metadata": dict(change.metadata),
    }


class ProjectLocks:
    def __init__(self, caller: Caller, layers: Layers) -> None:
        self.caller = caller
        self._project = layers.project
        self._settings: Settings = layers.load()
        self._keys = FileKeys(layers.project)

    @classmethod
    def here(cls) -> ProjectLocks:
        caller = Caller.of()
        return cls(caller, Layers(caller, Path(caller.project)))

    @property
    def retention_days(self) -> int:
        return self._settings.number(f"{_PREFIX}RETENTION_DAYS")

    @property
    def location(self) -> Location:
        from synapse_tui.messages.storage.location import location_of

        file = self._project / Path(self._settings.text(f"{_PREFIX}DB_PATH")).expanduser()
        return location_of(self._settings, file, paths=self.caller.paths, project=self._project)

    @contextmanager
    def opened(self) -> Iterator[LockDatabase]:
        from synapse_tui.hooks.lock_database import opened_file_safety

        location = self.location
        if isinstance(location, Path) and location.parent == self._project / ".synapse":
            try:
                make_project_folder(self._project)
            except OSError as error:
                raise HistoryError(
                    f"{location.parent} cannot be created: {error.strerror or error}", write_advice(error)
                ) from error
        with opened_file_safety(location, alive=self.caller.liveness(), project=self._project) as safety:
            if safety.moved:
                note(f"synapse: {location} was damaged and moved to {safety.moved}: all locks are lost")
            yield safety

    def key(self, file: Path) -> str:
        try:
            return self._keys.key(file, self.caller.folder)
        except ValueError as error:
            raise InvalidValue(f"'{file}' is not a file name: {error}", "give its path") from error

    def file_key(self, file: Path) -> str:
        """Return the key of a file that is or will be written; raises InvalidValue for a folder."""
        key = self.key(file)
        if self._keys.path(key).is_dir():
            raise InvalidValue(f"'{file}' is a folder", "name the files in it")
        return key

    def files_and_agent(self, words: Sequence[str], agent: str) -> tuple[Sequence[Path], str]:
        """Split the words into files and the agent; `FILE AGENT` is accepted as in synapse-a2a."""
        if len(words) == 2 and not agent and self._names_agent(words[1]):
            words, agent = words[:1], words[1]
        return [Path(word) for word in words], agent

    def _names_agent(self, word: str) -> bool:
        """Return whether a word that could be a file name is an agent, running or not, or a type of agent."""
        if (self.caller.folder / word).is_file():
            return False
        if parse_agent_id(word) is not None or fold(word) in (USER.sender_id, *profile_names()):
            return True
        try:
            return fold(word) != ALL and bool(self.caller.find(word))
        except AddressError as error:
            return not isinstance(error, AgentNotFound)

    def agent_id(self, name: str) -> str:
        """Resolve an agent to its id; ids, and types without a running agent, are returned as given."""
        name = name.removeprefix("@")
        if name == USER.sender_id or "@" in name or parse_agent_id(name) is not None:
            return name
        try:
            return self.caller.find_one(name).agent_id
        except AgentNotFound:
            if fold(name) in profile_names():
                return fold(name)
            raise

    def holder(self, agent: str = "", task: str = "") -> Holder:
        """Return the holder: the named agent, else the agent this command runs in, else the person."""
        own = self.caller.agent_id
        who = self._own_name(agent) if own and agent else self.agent_id(agent) if agent else own
        record = self.caller.registry.get(who) if who else None
        if record is None:
            return Holder(who or USER.sender_id, task)
        return Holder(who, task, record.process)

    def lock_holder(self, agent: str, task: str) -> Holder:
        """Like `holder`, for a new lock; raises AgentExited, since a lock ends with its process."""
        holder = self.holder(agent, task)
        if holder.process and not self.caller.liveness()(holder.process):
            raise AgentExited(
                f"{holder.agent_id} has ended, so it cannot hold locks", "restart it, then lock the file"
            )
        return holder

    def _own_name(self, agent: str) -> str:
        # A type refers to the calling agent first.
        if agent in self.caller.own_names():
            return self.caller.agent_id
        try:
            meant = self.agent_id(agent)
        except AddressError:
            meant = ""
        if meant != self.caller.agent_id:
            raise InvalidValue(
                f"--agent {agent}: this command runs inside {self.caller.agent_id}", "leave --agent out"
            )
        return meant

    def locks(self, agent_id: str = "") -> Sequence[Lock]:
        from synapse_tui.messages.quick import held_locks

        found = held_locks(self.location, self._keys, agent_id, alive=self.caller.liveness())
        if found is None:
            with self.opened() as safety:
                found = safety.locks(agent_id)
        return found

    def status(self) -> dict[str, object]:
        counts = {"locks": 0, "modifications": 0}
        if self._exists():
            with self.opened() as safety:
                counts = safety.counts()
        return {**self._facts(), **counts}

    def _exists(self) -> bool:
        # Reading must not create the file.
        return not isinstance(self.location, Path) or self.location.exists()

    def _facts(self) -> dict[str, object]:
        return {
            "enabled": self._settings.flag(f"{_PREFIX}ENABLED"),
            "project": str(self._project),
            "database": str(self.location),
            "retention_days": self.retention_days,
        }

    def debug(self) -> dict[str, object]:
        """Return diagnostics; if the database is unusable, `problem` says why."""
        origins = {
            key: self._settings.origins[key] for key in self._settings.values if key.startswith(_PREFIX)
        }
        environ = {key: value for key, value in os.environ.items() if key.startswith("SYNAPSE_FILE_SAFETY")}
        facts: dict[str, object] = {
            **self._facts(),
            "agent": self.caller.agent_id,
            "origins": origins,
            "environment": environ,
            "problem": "",
        }
        try:
            if self._exists():
                with self.opened() as safety:
                    facts |= safety.counts() | safety.facts()
        except HistoryError as error:
            facts["problem"] = f"{error.message}; {error.hint}"
        return facts
