"""The registry of live agents: `~/.a2a/registry/<agent_id>.json`, one private file per agent.

All processes of a user share the folder; records of the original synapse-a2a are read as well. A record is
stale if its process is gone or its pid now belongs to another process. A file that is not a valid record is
skipped and logged, so foreign files never make reading fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from synapse_tui.core.addresses import Address, identity_of
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import check_safe, is_open, lock_exclusively, private_folder, write_private
from synapse_tui.system.process_times import is_alive, pid_namespace, process_name, process_start

if TYPE_CHECKING:
    import logging

MAX_RECORD_BYTES = 64 * 1024
LOCK_TIMEOUT = 5.0
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ENDPOINT = re.compile(r"https?://[A-Za-z0-9._:\[\]-]{1,255}(/[!-~]*)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PROCESS = re.compile(r"(\d{1,10}):(\d{1,15}\.\d{2})")
"""Format of `process_name`."""
MAX_PID = 2**31 - 1
_LOCK_NAME = ".registry.lock"
"""Same lock file as the original's, so that both programs exclude each other."""


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """The registry's entry for one agent.

    Attributes:
        agent_id: `synapse-{type}-{port}`.
        endpoint: URL of its server, `http://127.0.0.1:8100`.
        pid: The agent's own process, which the original's `synapse stop` signals; None if it has exited.
        name: Given by the user; may be empty.
        pid_started: Start time of that process in seconds (`process_start`); 0 if unknown.
        status: A value of `model.AgentState`, or a state of the original.
        project: Folder of its project; the working folder if none is given.
        started_at: ISO 8601; may be empty.
        aliases: Other names of its type, from the profile.
        pid_namespace: Namespace of the pids (`pid_namespace`); empty if unknown.
        host: The process that serves it, as formatted by `process_name`; empty if it is `pid`.
        receives: Whether it receives messages; a shell does not.
    """

    agent_id: str
    agent_type: str
    port: int
    endpoint: str
    pid: int | None
    name: str = ""
    pid_started: float = 0.0
    status: str = "STARTING"
    working_dir: str = ""
    project: str = ""
    started_at: str = ""
    command: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    pid_namespace: str = ""
    host: str = ""
    receives: bool = True

    @property
    def process(self) -> str:
        """The agent's own process as formatted by `process_name`; its locks end with it."""
        return process_name(self.pid or 0, self.pid_started)

    @property
    def server(self) -> int:
        return int(self.host.partition(":")[0]) if self.host else self.pid or 0

    def address(self, project: str) -> Address:
        """How it is addressed by agents of `project`."""
        return Address(
            self.agent_id,
            self.agent_type,
            self.name,
            self.port,
            self.endpoint,
            local=self.project == project,
            working_dir=self.working_dir,
            aliases=self.aliases,
            project=self.project,
            receives=self.receives,
        )


class RecordChanges(TypedDict, total=False):
    """Fields that may change while an agent runs."""

    name: str
    status: str
    working_dir: str
    pid: int | None
    pid_started: float
    command: tuple[str, ...]


def is_live(record: RegistryEntry) -> bool:
    """Whether the process that serves a record is still running and is the one that wrote it.

    Processes outside the current sandbox or container cannot be seen and count as running.
    """
    if record.pid_namespace and pid_namespace() not in ("", record.pid_namespace):
        return True
    if record.host:
        return is_alive(record.host)
    started = process_start(record.server)
    if started is None:
        return False
    return not (started and record.pid_started) or abs(started - record.pid_started) < 1.0


class Registry:
    """The records of one user's live agents.

    The methods block on file access; call them in a thread from an event loop.

    Args:
        folder: `~/.a2a/registry` (`UserPaths.registry`).
        live: Returns whether the process of a record is running.
    """

    def __init__(self, folder: Path, *, live: Callable[[RegistryEntry], bool] = is_live) -> None:
        self._folder = folder
        self._live = live

    def register(self, record: RegistryEntry) -> RegistryEntry:
        """Write a record and return it as written; bind the agent's port first.

        A missing `pid_started` is filled in.

        Raises:
            ValueError: The id is not usable as a file name.
            OSError: It could not be written.
        """
        if not _AGENT_ID.fullmatch(record.agent_id):
            raise ValueError(f"agent id {record.agent_id!r} is not valid")
        record = _completed(record)
        private_folder(self._folder)
        with self._locked():
            self._write(record)
        return record

    def restore(self, record: RegistryEntry) -> bool:
        """Rewrite a record that was removed, damaged or changed, and return whether it was written.

        A record with the pid of another live process is left alone only if it may be another agent's, that
        is, if it
        may be from another system. On this system only the agent itself can own the port in its id.

        Raises:
            OSError: It could not be written.
        """
        record = _completed(record)
        private_folder(self._folder)
        with self._locked():
            found = self.get(record.agent_id)
            if found == _as_read(record):
                return False
            ours = (
                found is None or found.pid_namespace == record.pid_namespace or found.server == record.server
            )
            if found is not None and not ours and self._live(found):
                return False
            self._write(record)
        _log().warning("wrote the record of %s again", record.agent_id)
        return True

    def update(self, agent_id: str, **changes: Unpack[RecordChanges]) -> RegistryEntry | None:
        """Change fields of a record and return it, or None if there is no such record.

        Raises:
            OSError: It could not be written.
        """
        if not self._folder.is_dir():
            return None
        with self._locked():
            record = self.get(agent_id)
            if record is None:
                return None
            changed = replace(record, **changes)
            if changed != record:
                self._write(changed)
            return changed

    def remove(self, agent_id: str, *, pid: int | None = None) -> bool:
        """Remove a record and return whether there was one.

        Args:
            agent_id: Id of the agent.
            pid: Remove the record only if this process serves the agent; None for any process.
        """
        if not self._folder.is_dir():
            return False
        with self._locked():
            record = self.get(agent_id)
            if record is None or (pid is not None and record.server != pid):
                return False
            self._path(agent_id).unlink(missing_ok=True)
            return True

    def get(self, agent_id: str) -> RegistryEntry | None:
        """Return an agent's record, live or stale; None if it is missing or invalid.

        Raises:
            UnsafePath: Another user can write to the registry.
        """
        check_safe(self._folder)
        return _read(self._path(agent_id)) if _AGENT_ID.fullmatch(agent_id) else None

    def scan(self) -> tuple[Sequence[RegistryEntry], Sequence[RegistryEntry]]:
        """Read all records without changing any.

        Raises:
            UnsafePath: Another user can write to the registry.

        Returns:
            The live and the stale records, each ordered by type and port.
        """
        records = sorted(
            self._read_all(), key=lambda record: (record.agent_type, record.port, record.agent_id)
        )
        live: list[RegistryEntry] = []
        stale: list[RegistryEntry] = []
        for record in records:
            (live if self._live(record) else stale).append(record)
        return live, stale

    def list(self) -> Sequence[RegistryEntry]:
        """Return the live records ordered by type and port, and remove stale ones."""
        live, stale = self.scan()
        for record in stale:
            self.discard(record)
        return live

    def discard(self, record: RegistryEntry) -> None:
        """Remove a stale record, unless it was replaced since it was read."""
        with contextlib.suppress(OSError), self._locked():
            if self.get(record.agent_id) == record:
                self._path(record.agent_id).unlink(missing_ok=True)
                about = {"agent_id": record.agent_id, "agent_pid": record.server}
                _log().info("removed stale record", extra=about)

    def _path(self, agent_id: str) -> Path:
        return self._folder / f"{agent_id}.json"

    def _write(self, record: RegistryEntry) -> None:
        fields = asdict(record) | {
            "identity": identity_of(record.working_dir, record.agent_type, record.name)
        }
        path = self._path(record.agent_id)
        previous: object = None
        with contextlib.suppress(OSError, ValueError, RecursionError):
            previous = _load(path)
        # Preserve fields that another program stores in this file.
        merged = {**previous, **fields} if isinstance(previous, dict) else fields
        # A name that is not UTF-8 holds lone surrogates, which only escapes can write.
        escaped = not _is_text(merged)
        write_private(path, (json.dumps(merged, ensure_ascii=escaped, indent=1) + "\n").encode())

    def _read_all(self) -> Iterator[RegistryEntry]:
        check_safe(self._folder)
        try:
            paths = sorted(self._folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            _log().warning("registry cannot be read: %s", error)
            return
        for path in paths:
            if path.suffix == ".json" and not path.name.startswith("."):
                record = _read(path)
                if record is not None:
                    yield record

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(
            self._folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            try:
                lock_exclusively(descriptor, LOCK_TIMEOUT)
            except TimeoutError:
                raise TimeoutError("the registry is locked by another process") from None
            yield
        finally:
            os.close(descriptor)


def _load(path: Path) -> object:
    # Do not block on a FIFO or device.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - from a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_RECORD_BYTES:
            raise ValueError("no plain small file")
        if status.st_uid not in (os.geteuid(), 0):
            raise ValueError("belongs to another user")
        if is_open(status):
            raise ValueError("other users can write to it")
        value: object = json.loads(file.read(MAX_RECORD_BYTES))
        return value


def _read(path: Path) -> RegistryEntry | None:
    try:
        value = _load(path)
        if not isinstance(value, dict):
            raise ValueError("no JSON object")
        record = _record(value)
        if f"{record.agent_id}.json" != path.name:
            raise ValueError(f"is of agent {record.agent_id!r}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        _log().warning("skipped registry file %s: %s", path.name, error)
        return None
    return record


def _record(fields: Mapping[str, object]) -> RegistryEntry:
    agent_id = _text(fields, "agent_id")
    if not _AGENT_ID.fullmatch(agent_id):
        raise ValueError("agent_id is missing or not valid")
    port = _number(fields, "port", 65535)
    endpoint = _text(fields, "endpoint") or f"http://127.0.0.1:{port}"
    if not _ENDPOINT.fullmatch(endpoint):
        raise ValueError("endpoint is no URL")
    working_dir = _folder(fields, "working_dir")
    pid, started, host = _processes(fields)
    return RegistryEntry(
        agent_id=agent_id,
        agent_type=_text(fields, "agent_type") or _type_of(agent_id),
        port=port,
        endpoint=endpoint.rstrip("/"),
        pid=pid,
        name=_text(fields, "name"),
        pid_started=started,
        status=_text(fields, "status") or "UNKNOWN",
        working_dir=working_dir,
        project=_folder(fields, "project") or working_dir,
        started_at=_text(fields, "started_at"),
        command=_words(fields, "command"),
        aliases=_words(fields, "aliases"),
        pid_namespace=_text(fields, "pid_namespace"),
        host=host,
        receives=fields.get("receives") is not False,
    )


def _processes(fields: Mapping[str, object]) -> tuple[int | None, float, str]:
    """Return the agent's pid, its start time, and the name of the host process if it differs."""
    started = fields.get("pid_started", 0)
    if isinstance(started, bool) or not isinstance(started, int | float):
        started = 0.0
    host = _PROCESS.fullmatch(_text(fields, "host"))
    if host is not None:
        pid = None if fields.get("pid") is None else _number(fields, "pid", MAX_PID)
        return pid, float(started), host[0]
    pid = _number(fields, "pid", MAX_PID)
    own = _PROCESS.fullmatch(_text(fields, "process"))
    if own is not None:  # an earlier version, whose `pid` is the host's
        return int(own[1]), float(own[2]), process_name(pid, float(started))
    return pid, float(started), ""


def _completed(record: RegistryEntry) -> RegistryEntry:
    return replace(
        record,
        pid_started=record.pid_started or (process_start(record.pid) if record.pid else None) or 0.0,
        project=record.project or record.working_dir,
        pid_namespace=record.pid_namespace or pid_namespace(),
    )


def _as_read(record: RegistryEntry) -> RegistryEntry:
    return _record(json.loads(json.dumps(asdict(record))))


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    return _CONTROL.sub("", value) if isinstance(value, str) else ""


def _folder(fields: Mapping[str, object], key: str) -> str:
    """A folder's name as it is, which may contain any character: it is compared, and cleaned when shown."""
    value = fields.get(key)
    return value if isinstance(value, str) and "\0" not in value else ""


def _is_text(fields: Mapping[str, object]) -> bool:
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _words(fields: Mapping[str, object], key: str) -> tuple[str, ...]:
    values = fields.get(key)
    return (
        tuple(_CONTROL.sub("", word) for word in values if isinstance(word, str))
        if isinstance(values, list)
        else ()
    )


def _number(fields: Mapping[str, object], key: str, largest: int) -> int:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= largest:
        raise ValueError(f"{key} is missing or not valid")
    return value


def _type_of(agent_id: str) -> str:
    match = re.fullmatch(r"synapse-(.+)-\d+", agent_id)
    return match[1] if match else agent_id


def _log() -> logging.Logger:
    import logging  # noqa: PLC0415 - rarely needed, and slows down command startup

    return logging.getLogger(__name__)
