"""What an agent may be called: a name must never be mistaken for another address."""

from __future__ import annotations

import re
from collections.abc import Collection

from .errors import ConfigError

MAX_NAME = 32
"""The longest name, in characters."""
_FORM = re.compile(r"\w[\w.-]*")
_ADDRESS = re.compile(r".+-\d+|synapse-.*")
_RESERVED = frozenset({"all", "user", "system"})


def check_name(name: str, *, taken: Collection[str] = ()) -> str:
    """Return a name if an agent may have it.

    Args:
        name: The name; any letters and digits of any script, `_`, `.` and `-`.
        taken: Words that mean something else already: types, their aliases, other names; in lower case.

    Raises:
        ConfigError: It is no name, or could be taken for another address.
    """
    word = name.lower()
    if len(name) > MAX_NAME:
        raise ConfigError(
            f"'{name[:MAX_NAME]}…' cannot be an agent's name: it has {len(name)} characters",
            f"a name has at most {MAX_NAME}",
        )
    if not _FORM.fullmatch(name):
        raise ConfigError(
            f"'{name}' cannot be an agent's name",
            f"use up to {MAX_NAME} letters, digits, '_', '.' or '-', beginning with a letter or digit",
        )
    if word in _RESERVED or _ADDRESS.fullmatch(word):
        raise ConfigError(
            f"'{name}' cannot be an agent's name", "it has a meaning in addresses; choose another"
        )
    if word in taken:
        raise ConfigError(f"'{name}' already addresses another agent or type", "choose another name")
    return name
