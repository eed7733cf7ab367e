"""The registry of external agents: `~/.a2a/external/<alias>.json`, one private file an agent.

The files of the original synapse-a2a are read as well. Standard library only; all methods block.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

from synapse_tui.addresses import fold, parse_agent_id
from synapse_tui.errors import AgentNotFound, InvalidValue
from synapse_tui.files import check_safe, is_open, private_folder, write_private

from .untrusted import check_url, clean_line, clean_text

Binding = Literal["JSONRPC", "HTTP+JSON", "dialect"]
BINDINGS: tuple[Binding, ...] = ("JSONRPC", "HTTP+JSON", "dialect")
MAX_CARD = 256 * 1024
"""Bytes of a card."""
_ALIAS = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_RESERVED = frozenset({"all", "user", "external", "synapse", "synapse-system"})
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept"}
)
_SHOWN_SKILLS = 50


@dataclass(frozen=True, slots=True)
class Interface:
    """One way to call an agent (A2A section 4.4.6).

    Attributes:
        url: Where.
        binding: `JSONRPC`, `HTTP+JSON`, or `dialect` for the routes of synapse-a2a.
        version: Version of the protocol; empty for the dialect.
        tenant: Goes with every request; may be empty.
    """

    url: str
    binding: Binding = "JSONRPC"
    version: str = "1.0"
    tenant: str = ""

    @property
    def words(self) -> str:
        """It for a person: `1.0 JSONRPC`."""
        return f"{self.version} {self.binding}".strip()


@dataclass(frozen=True, slots=True)
class ExternalAgent:
    """An external agent as the registry keeps it.

    Attributes:
        alias: What it is called here: `@alias`.
        url: The URL under which it was added.
        card_url: Where its card was found.
        card: Its card as it came; every text in it is untrusted.
        interface: How it is called; None when its card must be read first (a file of the original).
        allowed: URLs of further origins that the person agreed to.
        headers: Headers that go with every request, by name; secret.
        token_env: Environment variable with a bearer token; empty for none.
        added_at: When it was added, ISO 8601.
        last_seen: When it answered last, ISO 8601; may be empty.
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
        """The name in its card, harmless."""
        return clean_line(self.card.get("name"), 80) or self.alias

    @property
    def description(self) -> str:
        """The description in its card, harmless."""
        return clean_text(self.card.get("description"), 2000)

    @property
    def streaming(self) -> bool:
        """Whether it tells of its work while it works."""
        found = self.card.get("capabilities")
        return isinstance(found, Mapping) and found.get("streaming") is True

    @property
    def protocol(self) -> str:
        """How it is called, for a person."""
        return self.interface.words if self.interface is not None else "not read yet"

    @property
    def card_hash(self) -> str:
        """What tells its card from another one."""
        return hash_of(self.card)

    @property
    def identity(self) -> str:
        """What tells it from another agent that has or had its alias."""
        return f"{self.url} {self.added_at}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of what it is given to prove who calls, never the values."""
        token = (f"Authorization: Bearer ${self.token_env}",) if self.token_env else ()
        return (*token, *(f"{name}: ***" for name in self.headers))

    def skills(self) -> list[tuple[str, str]]:
        """Name and description of its skills, harmless."""
        found = self.card.get("skills")
        skills = found if isinstance(found, Sequence) and not isinstance(found, str) else ()
        return [
            (clean_line(skill.get("name") or skill.get("id"), 80), clean_line(skill.get("description"), 300))
            for skill in skills[:_SHOWN_SKILLS]
            if isinstance(skill, Mapping)
        ]

    def as_json(self) -> dict[str, Any]:
        """It as data for programs: no secrets, and harmless texts."""
        return {
            "alias": self.alias,
            "name": self.name,
            "description": self.description,
            "url": self.url,
            "card_url": self.card_url,
            "protocol": self.protocol,
            "endpoint": self.interface.url if self.interface else "",
            "streaming": self.streaming,
            "skills": [{"name": name, "description": told} for name, told in self.skills()],
            "allowed_origins": list(self.allowed),
            "credentials": list(self.secrets),
            "card_hash": self.card_hash,
            "added_at": self.added_at,
            "last_seen": self.last_seen,
        }

    def seen(self, when: str) -> ExternalAgent:
        """The same, which has answered just now."""
        return replace(self, last_seen=when)


def hash_of(card: Mapping[str, Any]) -> str:
    """SHA-256 of a card, without regard to the order of its keys."""
    text = json.dumps(dict(card), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def check_alias(alias: str, *, taken: Sequence[str] = ()) -> str:
    """Return a word that can be an alias.

    Args:
        alias: With or without `@`.
        taken: Words that mean something else: types of agents.

    Raises:
        InvalidValue: It cannot be one.
    """
    word = alias.strip().removeprefix("@").lower()
    if not _ALIAS.fullmatch(word):
        raise InvalidValue(
            f"'{clean_line(alias, 60)}' cannot be an alias",
            "use letters a-z, digits, '_' and '-', a letter or digit first, 32 at most",
        )
    if word in _RESERVED or parse_agent_id(word) is not None or word in taken:
        raise InvalidValue(f"the alias '{word}' means something else", "choose another with --alias")
    return word


def alias_from(name: object, taken: Sequence[str]) -> str:
    """An alias made of the name in a card; another one where it is taken.

    Args:
        name: The name as the card has it.
        taken: Words that mean something already.
    """
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
    """Name and value of a header `K: V`.

    Raises:
        InvalidValue: It is none, or one that is not the user's to give.
    """
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    printable = all(" " <= char <= "~" or char == "\t" for char in value)
    if not colon or not _HEADER.fullmatch(name) or not value or not printable:
        raise InvalidValue("a header cannot be read", "give it as 'NAME: VALUE', in ASCII")
    if name.lower() in _OWN_HEADERS:
        raise InvalidValue(f"the header {name} cannot be given", "it is part of the protocol")
    return name, value


def check_variable(name: str) -> str:
    """Return the name of an environment variable.

    Raises:
        InvalidValue: It cannot be one.
    """
    if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,100}", name):
        raise InvalidValue(
            f"'{clean_line(name, 60)}' names no environment variable", "give its name, without $"
        )
    return name


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


LABEL = 12
"""Characters of the longest label."""


def facts_of(agent: ExternalAgent) -> list[tuple[str, str]]:
    """Label and value of what is known; what is empty is left out."""
    rows = [
        ("alias", f"@{agent.alias}"),
        ("name", agent.name),
        ("url", agent.url),
        ("card", agent.card_url),
        ("protocol", agent.protocol + (", streaming" if agent.streaming else "")),
        ("endpoint", agent.interface.url if agent.interface else ""),
        ("allowed", ", ".join(agent.allowed)),
        ("credentials", ", ".join(agent.secrets)),
        ("card hash", agent.card_hash[:16]),
        ("added", agent.added_at),
        ("last seen", agent.last_seen),
    ]
    return [(name, value) for name, value in rows if value]


def description_of(agent: ExternalAgent) -> str:
    """All of it as lines."""
    lines = [f"{name:<{LABEL}} {value}" for name, value in facts_of(agent)]
    if agent.description:
        lines += ["", *("  " + line for line in agent.description.splitlines())]
    skills = agent.skills()
    if skills:
        lines += ["", "skills"]
        lines += [f"  {name}" + (f": {told}" if told else "") for name, told in skills]
    return "\n".join(lines)
