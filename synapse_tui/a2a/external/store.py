"""The registry of external agents: `~/.a2a/external/<alias>.json`, one private file an agent.

The files of the original synapse-a2a are read as well. Standard library only; all methods block.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from synapse_tui.addresses import fold
from synapse_tui.errors import AgentNotFound, InvalidValue
from synapse_tui.files import check_safe, is_open, private_folder, write_private

from .origins import check_url
from .record import BINDINGS, MAX_CARD, ExternalAgent, Interface, check_alias
from .untrusted import clean_line

VERSION = 1
MAX_FILE = 2 * MAX_CARD
MAX_AGENTS = 200
_LOCK = ".external.lock"
_ORIGINAL = ("name", "description", "capabilities", "skills")
"""What the original keeps of a card."""


class ExternalStore:
    """The files of the registry.

    Args:
        folder: `~/.a2a/external`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[ExternalAgent]:
        """All agents by alias; files that cannot be read are left out."""
        check_safe(self.folder)
        try:
            paths = sorted(self.folder.glob("*.json"))[:MAX_AGENTS]
        except OSError:
            return []
        return [agent for path in paths if (agent := _read(path)) is not None]

    def find(self, alias: str) -> ExternalAgent | None:
        """The agent of an alias, with or without `@`; None when there is none."""
        try:
            word = check_alias(fold(alias))
        except InvalidValue:
            return None
        check_safe(self.folder)
        return _read(self.folder / f"{word}.json")

    def get(self, alias: str) -> ExternalAgent:
        """The agent of an alias.

        Raises:
            AgentNotFound: There is none.
        """
        agent = self.find(alias)
        if agent is None:
            known = ", ".join(f"@{each.alias}" for each in self.list())
            raise AgentNotFound(
                f"there is no external agent '{clean_line(alias, 60)}'",
                f"there are: {known}" if known else "add one: synapse external add URL",
            )
        return agent

    def put(self, agent: ExternalAgent) -> None:
        """Write an agent's file."""
        private_folder(self.folder)
        with self._locked():
            self._put(agent)

    def _put(self, agent: ExternalAgent) -> None:
        data = json.dumps(_to_json(agent), ensure_ascii=False, indent=2).encode("utf-8", "replace")
        write_private(self.folder / f"{check_alias(agent.alias)}.json", data)

    def touch(self, alias: str, when: str) -> None:
        """Note that an agent answered just now; nothing happens when it was removed meanwhile."""
        if not self.folder.is_dir():
            return
        with self._locked():
            agent = self.find(alias)
            if agent is not None and agent.interface is not None:
                self._put(agent.seen(when))

    def remove(self, alias: str) -> ExternalAgent:
        """Take an agent away.

        Raises:
            AgentNotFound: There is none.
        """
        agent = self.get(alias)
        with self._locked():
            (self.folder / f"{agent.alias}.json").unlink(missing_ok=True)
        return agent

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing: what was removed must not come back."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.folder / _LOCK, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def version(self) -> tuple[tuple[str, int], ...]:
        """What tells whether anything was changed since: names and times of the files."""
        try:
            with os.scandir(self.folder) as found:
                return tuple(
                    sorted(
                        (entry.name, entry.stat().st_mtime_ns)
                        for entry in found
                        if entry.name.endswith(".json") and not entry.name.startswith(".")
                    )
                )
        except OSError:
            return ()


def _read(path: Path) -> ExternalAgent | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or is_open(status):
                return None
            value = json.loads(file.read(MAX_FILE + 1))
    except (OSError, ValueError, RecursionError):
        return None
    try:
        return _from_json(value, path.stem) if isinstance(value, dict) else None
    except (InvalidValue, TypeError, KeyError):
        return None


def _to_json(agent: ExternalAgent) -> dict[str, Any]:
    way = agent.interface
    return {
        "version": VERSION,
        "alias": agent.alias,
        "name": agent.name,
        "url": agent.url,
        "card_url": agent.card_url,
        "protocol": agent.protocol,
        "interface": way
        and {"url": way.url, "binding": way.binding, "version": way.version, "tenant": way.tenant},
        "allowed_origins": list(agent.allowed),
        "headers": dict(agent.headers),
        "token_env": agent.token_env,
        "card_hash": agent.card_hash,
        "card": dict(agent.card),
        "added_at": agent.added_at,
        "last_seen": agent.last_seen,
    }


def _from_json(value: dict[str, Any], stem: str) -> ExternalAgent:
    alias = check_alias(str(value.get("alias") or stem))
    if alias != stem:
        raise InvalidValue(f"the file {stem}.json is for another alias")
    card = value.get("card")
    if not isinstance(card, dict):
        card = {key: value[key] for key in _ORIGINAL if key in value}
    return ExternalAgent(
        alias,
        check_url(str(value["url"])),
        card_url=str(value.get("card_url") or ""),
        card=MappingProxyType(card),
        interface=_interface(value.get("interface")),
        allowed=tuple(check_url(url) for url in value.get("allowed_origins") or ()),
        headers=MappingProxyType({str(k): str(v) for k, v in (value.get("headers") or {}).items()}),
        token_env=str(value.get("token_env") or ""),
        added_at=clean_line(value.get("added_at"), 40),
        last_seen=clean_line(value.get("last_seen"), 40),
    )


def _interface(value: object) -> Interface | None:
    if not isinstance(value, Mapping) or value.get("binding") not in BINDINGS:
        return None
    fields = cast("Mapping[str, Any]", value)
    return Interface(
        check_url(str(fields["url"])),
        fields["binding"],
        clean_line(fields.get("version"), 20),
        clean_line(fields.get("tenant"), 100),
    )
