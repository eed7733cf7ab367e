"""Reading JSON that an older or a newer version of this program wrote: each value is checked for its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


class Malformed(ValueError):
    """A value is missing or of another kind; the message names it."""


def field(content: Mapping[str, object], name: str, kind: type[T]) -> T:
    """A value that must be there.

    Raises:
        Malformed: It is missing, or no `kind`.
    """
    value = content.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed(f"'{name}' is missing or no {kind.__name__}")
    return value


def optional(content: Mapping[str, object], name: str, default: T) -> T:
    """A value that an older version did not write.

    Raises:
        Malformed: It is there and of another kind than the default.
    """
    return field(content, name, type(default)) if name in content else default


def table(value: object, what: str) -> Mapping[str, object]:
    """A JSON object.

    Raises:
        Malformed: It is none.
    """
    if not isinstance(value, dict):
        raise Malformed(f"{what} is no object")
    return value


def strings(content: Mapping[str, object], name: str) -> tuple[str, ...]:
    """A list of texts.

    Raises:
        Malformed: It is none.
    """
    values = field(content, name, list)
    if not all(isinstance(value, str) for value in values):
        raise Malformed(f"'{name}' is no list of texts")
    return tuple(values)


def tables(content: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """A list of JSON objects.

    Raises:
        Malformed: It is none.
    """
    return [table(value, f"an entry of '{name}'") for value in field(content, name, list)]
