"""What is known of an external agent: where it is, its card as it was when it was added, how it is called."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from synapse_tui.addresses import parse_agent_id
from synapse_tui.errors import InvalidValue

from .untrusted import clean_line, clean_text

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
