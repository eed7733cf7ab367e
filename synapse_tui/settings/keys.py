"""API keys as written in settings: `[name[@priority]=]key` or `[name[@priority]=]sha256:<hex>`.

Several keys are separated by commas. `@priority` is the highest message priority that the key may use.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from synapse_tui.system.dataclass import dataclass

HASHED = "sha256:"
DEFAULT_CEILING = 4
"""Maximum priority of a key that names none; 5 would interrupt the agent."""
RESERVED = frozenset({"all", "external", "system", "user"})
"""Names with another meaning wherever callers are shown."""
LONGEST = 512
"""Maximum length of a key in characters."""
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?:@([1-5]))?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[!-~]+")
_AGENTS = "synapse-"
"""Prefix of agent ids, not allowed in names of keys."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, stored as a hash only.

    Attributes:
        name: The owner's name; for an unnamed key, derived from its hash.
        digest: SHA-256 of the key in hexadecimal.
        max_priority: The highest message priority it may use.
    """

    name: str
    digest: str
    max_priority: int = DEFAULT_CEILING

    def __str__(self) -> str:
        ceiling = "" if self.max_priority == DEFAULT_CEILING else f"@{self.max_priority}"
        return f"{self.name}{ceiling}={HASHED}{self.digest}"

    @property
    def unnamed(self) -> bool:
        return self.name == unnamed(self.digest)

    def fits(self, digest: str) -> bool:
        """Compare hashes in constant time."""
        return hmac.compare_digest(self.digest, digest)


def unnamed(digest: str) -> str:
    """Return the name of an unnamed key, derived from its hash."""
    return f"key-{digest[:8]}"


def digest_of(secret: str) -> str:
    """Return the SHA-256 of a key in hexadecimal; keys are random, so no slow hash is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def read_keys(value: object) -> tuple[ApiKey, ...]:
    """Parse keys from comma-separated text or a list of texts.

    Raises:
        ValueError: A key is malformed; the message says which one but never contains a key.
    """
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be keys separated by commas, or a list of them")
    if texts in ([], [""]) or (isinstance(value, str) and not value.strip()):
        return ()
    entries = [entry.strip() for text in texts for entry in text.split(",")]
    return tuple(_read(entry, number) for number, entry in enumerate(entries, 1))


def _read(entry: str, number: int) -> ApiKey:
    words, mark, key = entry.partition("=")
    name, ceiling = "", ""
    if not mark or not key.strip("="):  # base64 padding does not separate a name
        key = entry
    else:
        found = _NAME.fullmatch(words)
        name, ceiling = found.groups(default="") if found is not None else ("", "")
        if not name or name.lower() in RESERVED or name.lower().startswith(_AGENTS):
            raise ValueError(f"has a name that cannot be used (key {number})")
    if key.startswith(HASHED):
        digest = key.removeprefix(HASHED).lower()
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"has a hash that is no SHA-256 of 64 hexadecimal digits (key {number})")
    elif not _KEY.fullmatch(key) or len(key) > LONGEST:
        raise ValueError(f"has an empty key, or one with spaces or odd characters (key {number})")
    else:
        digest = digest_of(key)
    return ApiKey(name or unnamed(digest), digest, int(ceiling or DEFAULT_CEILING))
