"""The registry of external agents: `~/.a2a/external/<alias>.json`, one private file per agent.

Also reads the files of the original synapse-a2a. Standard library only; all methods block.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from synapse_tui.core.addresses import Address, fold, parse_agent_id
from synapse_tui.core.errors import AgentNotFound, ConfigError, InvalidValue
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import check_safe, is_open, lock_exclusively, private_folder, write_private

from .untrusted import check_url, clean_line, clean_text

Binding = Literal["JSONRPC", "HTTP+JSON", "dialect"]
BINDINGS: tuple[Binding, ...] = ("JSONRPC", "HTTP+JSON", "dialect")
VERSION = 1
MAX_CARD = 256 * 1024  # maximum bytes of a card
MAX_FILE = 2 * MAX_CARD
MAX_AGENTS = 200
_LOCK = ".external.lock"
_ORIGINAL = (
    "name",
    "description",
    "capabilities",
    "skills",
)  # What the original synapse-a2a stores of a card
_ALIAS = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_RESERVED = frozenset({"all", "user", "external", "synapse", "synapse-system"})
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept"}
)
_SHOWN_SKILLS = 50


@dataclass(frozen=True, slots=True)
class Interface:
    """A way to call an agent (A2A section 4.4.6); `dialect` means the routes of synapse-a2a."""

    url: str
    binding: Binding = "JSONRPC"
    version: str = "1.0"
    tenant: str = ""

    @property
    def label(self) -> str:
        """For display, such as `1.0 JSONRPC`."""
        return f"{self.version} {self.binding}".strip()


@dataclass(frozen=True, slots=True)
class ExternalAgent:
    """An external agent as stored in the registry.

    Attributes:
        card: Its card, unchanged; all of its text is untrusted.
        interface: How to call it; None if its card must be read first (a file of the original).
        allowed: URLs of other origins that the person agreed to.
        headers: Sent with every request; secret.
        token_env: Environment variable with a bearer token; may be empty.
        added_at: ISO 8601, as `last_seen`.
    """

    alias: str
    url: str
    card_url: str = ""
    card: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    interface: Interface | None = None
    allowed: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    token_env: str = ""
    added_at: str = ""
    last_seen: str = ""

    @property
    def name(self) -> str:
        return clean_line(self.card.get("name"), 80) or self.alias

    @property
    def description(self) -> str:
        return clean_text(self.card.get("description"), 2000)

    @property
    def streaming(self) -> bool:
        found = self.card.get("capabilities")
        return isinstance(found, Mapping) and found.get("streaming") is True

    @property
    def protocol(self) -> str:
        return self.interface.label if self.interface is not None else "not read yet"

    @property
    def card_hash(self) -> str:
        return hash_of(self.card)

    @property
    def identity(self) -> str:
        return f"{self.url} {self.added_at}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of its credentials, never the values."""
        token = (f"Authorization: Bearer ${self.token_env}",) if self.token_env else ()
        return (*token, *(f"{name}: ***" for name in self.headers))

    def skills(self) -> list[tuple[str, str]]:
        found = self.card.get("skills")
        skills = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
        return [
            (clean_line(skill.get("name") or skill.get("id"), 80), clean_line(skill.get("description"), 300))
            for skill in skills[:_SHOWN_SKILLS]
            if isinstance(skill, Mapping)
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "alias": self.alias,
            "name": self.name,
            "description": self.description,
            "url": self.url,
            "card_url": self.card_url,
            "protocol": self.protocol,
            "endpoint": self.interface.url if self.interface else "",
            "streaming": self.streaming,
            "skills": [{"name": name, "description": text} for name, text in self.skills()],
            "allowed_origins": list(self.allowed),
            "credentials": list(self.secrets),
            "card_hash": self.card_hash,
            "added_at": self.added_at,
            "last_seen": self.last_seen,
        }

    def facts(self, when: Callable[[str], str]) -> list[tuple[str, str]]:
        """Label and value of each non-empty field, for display; `when` formats times."""
        rows = [
            ("alias", f"@{self.alias}"),
            ("name", self.name),
            ("url", self.url),
            ("card", self.card_url),
            ("protocol", self.protocol + (", streaming" if self.streaming else "")),
            ("endpoint", self.interface.url if self.interface else ""),
            ("allowed", ", ".join(self.allowed)),
            ("credentials", ", ".join(self.secrets)),
            ("card hash", self.card_hash[:16]),
            ("added", when(self.added_at)),
            ("last seen", when(self.last_seen)),
        ]
        return [(label, value) for label, value in rows if value]


def external_address(alias: str, url: str = "") -> Address:
    return Address(alias, "external", "", 0, url, local=False, external=True)


@dataclass(frozen=True, slots=True)
class AddRequest:
    """A request to add an agent, by its URL or that of its card.

    Attributes:
        alias: Empty to derive one from its card.
        replace: Whether to replace another agent with that alias.
    """

    url: str
    alias: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    token_env: str = ""
    allowed: tuple[str, ...] = ()
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent that was found but not stored, with warnings for the person."""

    agent: ExternalAgent
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {"agent": self.agent.as_json(), "warnings": list(self.warnings)}


def hash_of(card: Mapping[str, Any]) -> str:
    text = json.dumps(dict(card), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def check_alias(alias: str, *, taken: Sequence[str] = ()) -> str:
    """Normalize and validate an alias; `taken` are words with another meaning, such as types of agents."""
    word = alias.strip().removeprefix("@").lower()
    if not _ALIAS.fullmatch(word):
        raise InvalidValue(
            f"'{clean_line(alias, 60)}' is not a valid alias",
            "use letters a-z, digits, '_' and '-', a letter or digit first, 32 at most",
        )
    if word in _RESERVED or parse_agent_id(word) is not None or word in taken:
        raise InvalidValue(f"the alias '{word}' has another meaning", "choose another alias")
    return word


def alias_from(name: object, taken: Sequence[str]) -> str:
    words = re.findall(r"[a-z0-9]+", clean_line(name, 80).lower())
    base = ("-".join(words)[:24].strip("-")) or "agent"
    if parse_agent_id(base) is not None or base in _RESERVED:
        base = f"x-{base}"[:24]
    found, number = base, 1
    while found in taken:
        number += 1
        found = f"{base}-{number}"
    return found


def read_header(text: str) -> tuple[str, str]:
    """Parse a header `NAME: VALUE` into name and value."""
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    printable = all(" " <= char <= "~" or char == "\t" for char in value)
    if not colon or not _HEADER.fullmatch(name) or not value or not printable:
        raise InvalidValue("a header is not valid", "give it as 'NAME: VALUE', in ASCII")
    if name.lower() in _OWN_HEADERS:
        raise InvalidValue(f"the header {name} cannot be given", "it is part of the protocol")
    return name, value


def check_variable(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,100}", name):
        raise InvalidValue(
            f"'{clean_line(name, 60)}' is not the name of an environment variable",
            "give its name, without $",
        )
    return name


def no_such_agent(alias: str, known: Sequence[str]) -> AgentNotFound:
    """The error for an unknown alias; it lists the known ones."""
    listed = ", ".join(f"@{each}" for each in known)
    return AgentNotFound(
        f"no external agent is named '{clean_line(alias, 60)}'",
        f"known: {listed}" if listed else "add one: synapse external add URL",
    )


class ExternalStore:
    """The files of the registry in `folder` (`~/.a2a/external`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self) -> list[ExternalAgent]:
        """Return all agents, sorted by alias; unreadable files are skipped."""
        check_safe(self.folder)
        try:
            paths = sorted(self.folder.glob("*.json"))[:MAX_AGENTS]
        except OSError:
            return []
        return [agent for path in paths if (agent := _read(path)) is not None]

    def find(self, alias: str) -> ExternalAgent | None:
        try:
            word = check_alias(fold(alias))
        except InvalidValue:
            return None
        check_safe(self.folder)
        return _read(self.folder / f"{word}.json")

    def get(self, alias: str) -> ExternalAgent:
        agent = self.find(alias)
        if agent is None:
            raise no_such_agent(alias, [each.alias for each in self.list()])
        return agent

    def put(self, agent: ExternalAgent) -> None:
        private_folder(self.folder)
        with self._locked():
            self._put(agent)

    def _put(self, agent: ExternalAgent) -> None:
        data = json.dumps(_to_json(agent), ensure_ascii=False, indent=2).encode("utf-8", "replace")
        write_private(self.folder / f"{check_alias(agent.alias)}.json", data)

    def touch(self, alias: str, when: str) -> None:
        """Record that an agent has answered; ignored if it has been removed meanwhile."""
        if not self.folder.is_dir():
            return
        with self._locked():
            agent = self.find(alias)
            if agent is not None and agent.interface is not None:
                self._put(replace(agent, last_seen=when))

    def remove(self, alias: str) -> ExternalAgent:
        agent = self.get(alias)
        with self._locked():
            (self.folder / f"{agent.alias}.json").unlink(missing_ok=True)
        return agent

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # Other processes write here too, and a removed agent must not come back.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.folder / _LOCK, flags, 0o600)
        try:
            try:
                lock_exclusively(descriptor)
            except TimeoutError:
                raise ConfigError(
                    f"another process is writing external agents in {self.folder}", "try it again"
                ) from None
            yield
        finally:
            os.close(descriptor)

    def version(self) -> tuple[tuple[str, int], ...]:
        """Names and times of the files; differs after every change."""
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
        return _from_json(value, path.stem) if isinstance(value, dict) else None
    except (OSError, ValueError, RecursionError, InvalidValue, TypeError, KeyError):
        return None


def _to_json(agent: ExternalAgent) -> dict[str, Any]:
    return {
        "version": VERSION,
        "alias": agent.alias,
        "name": agent.name,
        "url": agent.url,
        "card_url": agent.card_url,
        "protocol": agent.protocol,
        "interface": agent.interface and asdict(agent.interface),
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
