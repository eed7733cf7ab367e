"""Kinds of settings: what a value of each must be, and how it is read from a file or a variable."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

Kind = Literal[
    "boolean",
    "text",
    "number",
    "choice",
    "list",
    "table",
    "file",
    "keys",
    "count",
    "words",
    "leader",
    "bindings",
]

TABLES: frozenset[Kind] = frozenset({"table", "bindings"})
"""Kinds whose values are tables by themselves."""

MOST = 500_000
"""The largest count: so many days before now are still a date."""
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_FILE = re.compile(r"(\w[\w.-]*)?")


def read(kind: Kind, value: object, choices: tuple[str, ...] = ()) -> object:
    """A value in its kind.

    Args:
        kind: What it must be.
        value: What stands in a file or a variable.
        choices: The allowed values of a `choice`, in whatever case they are written.

    Raises:
        ValueError: It is of another kind; the message says what is allowed.
    """
    return _choice(value, choices) if kind == "choice" else _CONVERTERS[kind](value)


def _choice(value: object, choices: tuple[str, ...]) -> str:
    word = str(value).strip().casefold()
    found = next((choice for choice in choices if choice.casefold() == word), None)
    if found is None:
        raise ValueError(f"must be one of {', '.join(choices)}")
    return found


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError("must be true or false")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    try:
        return int(str(value))
    except ValueError:
        raise ValueError("must be a whole number") from None


def _count(value: object) -> int:
    number = _number(value)
    if not 0 <= number <= MOST:
        raise ValueError(f"must be from 0 to {MOST}")
    return number


def _list(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    return list(value)


def _table(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError("must be a table of texts")
    return {str(key): item for key, item in value.items()}


def _file(value: object) -> str:
    if not isinstance(value, str) or not _FILE.fullmatch(value):
        raise ValueError("must be the name of a file in .synapse, without folders, or empty for none")
    return value


def _words(value: object) -> list[str]:
    texts = [value] if isinstance(value, str) else _list(value)
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _keys(value: object) -> list[str]:
    from .keys import read_keys  # noqa: PLC0415 - seldom needed

    return [str(key) for key in read_keys(value)]


def _leader(value: object) -> str:
    from synapse_tui.keymap import read_leader  # noqa: PLC0415 - seldom needed

    return read_leader(value)


def _bindings(value: object) -> dict[str, list[str]]:
    from synapse_tui.keymap import read_bindings  # noqa: PLC0415 - seldom needed

    return read_bindings(value)


_CONVERTERS: Mapping[Kind, Callable[[object], object]] = MappingProxyType(
    {
        "boolean": _boolean,
        "text": _text,
        "number": _number,
        "count": _count,
        "list": _list,
        "table": _table,
        "file": _file,
        "keys": _keys,
        "words": _words,
        "leader": _leader,
        "bindings": _bindings,
    }
)
