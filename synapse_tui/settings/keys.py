"""Keys of callers as settings write them: `[name[@priority]=]key` or `[name[@priority]=]sha256:<hex>`.

Several are separated by commas. `@priority` is the highest priority of the messages that the key may send.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

HASHED = "sha256:"
DEFAULT_CEILING = 4
"""The highest priority of a key that names none: 5 interrupts the agent."""
RESERVED = frozenset({"all", "external", "system", "user"})
"""Names that mean somebody else wherever callers are shown."""
LONGEST = 512
"""Characters of a key."""
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})(?:@([1-5]))?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"[!-~]+")
_AGENTS = "synapse-"
"""The beginning of agents' ids: no key may pass for an agent."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, of which only the hash is kept.

    Attributes:
        name: Whose it is; of a key without a name the beginning of its hash.
        digest: SHA-256 of the key in hexadecimal digits.
        max_priority: The highest priority of the messages that it may send.
    """

    name: str
    digest: str
    max_priority: int = DEFAULT_CEILING

    def __str__(self) -> str:
        ceiling = "" if self.max_priority == DEFAULT_CEILING else f"@{self.max_priority}"
        return f"{self.name}{ceiling}={HASHED}{self.digest}"

    @property
    def unnamed(self) -> bool:
        """Whether it was given no name of its own."""
        return self.name == unnamed(self.digest)

    def fits(self, digest: str) -> bool:
        """Whether a hash is that of this key; takes as long for a wrong one."""
        return hmac.compare_digest(self.digest, digest)


def unnamed(digest: str) -> str:
    """What a key is called that has no name: the beginning of its hash stays the same."""
    return f"key-{digest[:8]}"


def digest_of(secret: str) -> str:
    """SHA-256 of a key in hexadecimal digits: keys are random, so no slow hash is needed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def read_keys(value: object) -> tuple[ApiKey, ...]:
    """Read a list of keys.

    Args:
        value: A text with commas, or a list of texts.

    Returns:
        The keys; none where the text is empty.

    Raises:
        ValueError: One is malformed; the message tells which, and never a key.
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
    if not mark or not key.strip("="):  # the padding of base64 is no name's end
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
