"""What the commands of file safety share: project, database, holder, and locks and changes as JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.addresses import ALL, fold, parse_agent_id
from synapse_tui.errors import AddressError, AgentExited, AgentNotFound, HistoryError, InvalidValue
from synapse_tui.files import write_advice
from synapse_tui.model import USER
from synapse_tui.paths import make_project_folder
from synapse_tui.safety.locks import FileKeys, Holder, Lock, Modification

from .caller import Caller
from .group import profile_names
from .output import note
from .settings_layers import Layers

if TYPE_CHECKING:
    from synapse_tui.database.location import Location
    from synapse_tui.safety.database import LockDatabase
    from synapse_tui.settings import Settings

_PREFIX = "env.SYNAPSE_FILE_SAFETY_"
_LINES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


class Desk:
    """File safety of the project of the current folder.

    Args:
        caller: Who runs the command.
        layers: The settings of the project.
    """

    def __init__(self, caller: Caller, layers: Layers) -> None:
        self.caller = caller
        self._layers = layers
        self._settings: Settings = layers.load()
        self._keys = FileKeys(layers.project)

    @classmethod
    def here(cls) -> Desk:
        """That of the current folder, or of the agent inside which this runs."""
        caller = Caller.of()
        return cls(caller, Layers(caller, Path(caller.project)))

    @property
    def enabled(self) -> bool:
        """Whether the settings switch it on."""
        return self._settings.flag(f"{_PREFIX}ENABLED")

    @property
    def retention_days(self) -> int:
        """How many days changes are kept."""
        return self._settings.number(f"{_PREFIX}RETENTION_DAYS")

    @property
    def location(self) -> Location:
        """Where the database is."""
        from synapse_tui.database.location import location_of

        file = self._layers.project / Path(self._settings.text(f"{_PREFIX}DB_PATH")).expanduser()
        return location_of(self._settings, file, paths=self.caller.paths, project=self._layers.project)

    @property
    def made(self) -> bool:
        """Whether there is a database: no file is made to be told that nothing is in it."""
        return not isinstance(self.location, Path) or self.location.exists()

    @contextmanager
    def opened(self) -> Iterator[LockDatabase]:
        """The database, opened.

        Raises:
            HistoryError: It cannot be.
        """
        from synapse_tui.safety.database import opened_file_safety

        location = self.location
        if isinstance(location, Path) and location.parent == self._layers.project / ".synapse":
            try:
                make_project_folder(self._layers.project)
            except OSError as error:
                raise HistoryError(
                    f"{location.parent} cannot be made: {error.strerror or error}", write_advice(error)
                ) from error
        with opened_file_safety(
            location, alive=self.caller.liveness(), project=self._layers.project
        ) as safety:
            if safety.moved:
                note(
                    f"synapse: {location} was no sound database and is {safety.moved} now: all locks are gone"
                )
            yield safety

    def key(self, file: Path) -> str:
        """The key of a file that is named from the current folder.

        Raises:
            InvalidValue: It cannot be a file's name.
        """
        try:
            return self._keys.key(file, self.caller.folder)
        except ValueError as error:
            raise InvalidValue(f"'{file}' names no file: {error}", "give its path") from error

    def file_key(self, file: Path) -> str:
        """The key of a file that is written, or will be: no folder, which nobody writes.

        Raises:
            InvalidValue: It is one, or cannot be a file's name.
        """
        key = self.key(file)
        if self._keys.path(key).is_dir():
            raise InvalidValue(f"'{file}' is a folder", "name the files in it")
        return key

    def names_agent(self, word: str) -> bool:
        """Whether a word that could be a file's name is an agent, running or not, or a type of agents."""
        if (self.caller.folder / word).is_file():
            return False
        if parse_agent_id(word) is not None or fold(word) in (USER.sender_id, *profile_names()):
            return True
        try:
            return fold(word) != ALL and bool(self.caller.find(word))
        except AddressError as error:
            return not isinstance(error, AgentNotFound)

    def agent_id(self, name: str) -> str:
        """The id of whom a name means; that of an agent that is not there any more, or a type, as it is.

        Raises:
            AddressError: Nobody, or more than one.
            InvalidValue: It means all.
        """
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
        """Who locks: the agent that is named, else the one inside which this runs, else the person.

        Raises:
            AddressError: The name means nobody, or more than one.
            InvalidValue: An agent names another one.
        """
        own = self.caller.agent_id
        who = self._own_name(agent) if own and agent else self.agent_id(agent) if agent else own
        record = self.caller.registry.get(who) if who else None
        if record is None:
            return Holder(who or USER.sender_id, task)
        return Holder(who, task, record.process)

    def lock_holder(self, agent: str, task: str) -> Holder:
        """The same for a lock, which ends with its holder's process.

        Raises:
            AddressError: The name means nobody, or more than one.
            AgentExited: The agent's process has ended.
            InvalidValue: An agent names another one.
        """
        holder = self.holder(agent, task)
        if holder.process and not self.caller.liveness()(holder.process):
            raise AgentExited(
                f"{holder.agent_id} has ended: its locks would not hold", "restart it, then lock the file"
            )
        return holder

    def _own_name(self, agent: str) -> str:
        """The agent inside which this runs, by any of its names: a type means oneself first."""
        kind, port = parse_agent_id(self.caller.agent_id) or ("", 0)
        if agent in (self.caller.agent_id, kind, f"{kind}-{port}"):
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

    def lines(self, text: str) -> str:
        """Lines as they are noted.

        Raises:
            InvalidValue: They are none.
        """
        pairs = [each.partition("-") for each in text.split(",")] if _LINES.fullmatch(text) else []
        if text and not (pairs and all(0 < int(first) <= int(last or first) for first, _, last in pairs)):
            raise InvalidValue(f"--lines {text}: no lines", "write them as 3-7,12")
        return text

    def locks(self, agent_id: str = "") -> Sequence[Lock]:
        """The locks that hold, the oldest first; those of one agent, or all of the project.

        Raises:
            HistoryError: The database cannot be used.
        """
        from synapse_tui.messages.quick import held_locks

        found = held_locks(self.location, self._keys, agent_id, alive=self.caller.liveness())
        if found is None:
            with self.opened() as safety:
                found = safety.locks(agent_id)
        return found

    def status(self) -> dict[str, object]:
        """Whether it is on, where the database lies and what is in it."""
        counts = {"locks": 0, "modifications": 0}
        if self.made:
            with self.opened() as safety:
                counts = safety.counts()
        return {**self._facts(), **counts}

    def _facts(self) -> dict[str, object]:
        """What is known without the database."""
        return {
            "enabled": self.enabled,
            "project": str(self._layers.project),
            "database": str(self.location),
            "retention_days": self.retention_days,
        }

    def debug(self) -> dict[str, object]:
        """All that helps to find a fault, also where the database cannot be used; `problem` says so."""
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
            if self.made:
                with self.opened() as safety:
                    facts |= safety.counts() | safety.facts()
        except HistoryError as error:
            facts["problem"] = f"{error.message}; {error.hint}"
        return facts


def json_of_lock(lock: Lock) -> Mapping[str, object]:
    """A lock as data."""
    return {
        "file_path": lock.file,
        "agent_name": lock.agent_id,
        "task_id": lock.task_id,
        "intent": lock.intent,
        "locked_at": lock.locked_at.isoformat(),
        "expires_at": lock.expires_at.isoformat(),
    }


def json_of_modification(change: Modification) -> Mapping[str, object]:
    """A change of a file as data."""
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
