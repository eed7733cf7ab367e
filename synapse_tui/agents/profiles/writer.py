"""Writes profiles as YAML: a file's keys with their defaults, or the values that were found for an agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from .profile import key_names
from .reader import ProfileSection

WIDTH = 120
_PLAIN = re.compile(r"[A-Za-z0-9/~.+][\w/~.+ -]*(?<! )|--?[\w-]+")
_DEFAULT = "   # default"


class Plain(str):
    """A scalar that is written as it stands, such as `8100-8109` or `2.1.330`."""

    __slots__ = ()


def flow(value: object) -> str:
    """Return a value in one line of YAML; patterns and texts with signs are quoted."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        if value and all(isinstance(each, bytes) for each in value):
            return key_names(tuple(value))
        return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    match value:
        case bool() | None:
            return {True: "true", False: "false", None: "none"}[value]
        case int() | float():
            return f"{value:g}"
        case Plain() | bytes():
            return str(value)
        case re.Pattern():
            return _text(value.pattern)
        case Enum():
            return str(value.value).lower()
    return _text(str(value))


def _text(text: str) -> str:
    if any(ord(char) < 0x20 or char in "\x7f\x85\u2028\u2029\ufeff" for char in text):
        return '"' + "".join(map(_escaped, text)) + '"'
    if _PLAIN.fullmatch(text) and isinstance(yaml.safe_load(text), str):
        return text
    return "'" + text.replace("'", "''") + "'"


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\u{ord(char):04x}"


def block(key: str, value: object, indent: str = "") -> Iterator[str]:
    """Yield the lines of a key: in one if it fits, else one for each item."""
    line = f"{indent}{key}: {flow(value)}"
    items = list(value) if isinstance(value, list | tuple) else []
    if isinstance(value, Mapping) and value and len(line) > WIDTH:
        yield f"{indent}{key}:"
        for name, item in value.items():
            yield from block(name, item, f"{indent}  ")
    elif items and (len(line) > WIDTH or isinstance(items[0], Mapping)):
        yield f"{indent}{key}:"
        for item in items:
            yield f"{indent}  - {flow(item)}"
    else:
        yield line


def with_defaults(section: ProfileSection, indent: str = "") -> Iterator[str]:
    """Yield the lines of a profile's file with every key that it could have; defaults are marked."""
    for entry in section.entries():
        below = entry.section
        if below is not None and (entry.given is not None or _says(below)):
            yield f"{indent}{entry.key}:" + ("" if entry.given is not None else _DEFAULT)
            yield from with_defaults(below, f"{indent}  ")
        elif entry.given is not None:
            yield from block(entry.key, of_node(entry.given), indent)
        else:
            yield f"{indent}{entry.key}: {flow(entry.default)}{_DEFAULT}"


def _says(section: ProfileSection) -> bool:
    """Whether a section that is not given has defaults worth showing."""
    return any(
        _says(entry.section) if entry.section is not None else entry.default not in (None, "")
        for entry in section.entries()
    )


def as_values(section: ProfileSection) -> tuple[dict[str, Any], list[str]]:
    """Return what `with_defaults` shows as data: the values, and the dotted keys that have their default."""
    values: dict[str, Any] = {}
    defaults: list[str] = []
    for entry in section.entries():
        if entry.section is not None and any(entry.section.entries()):
            values[entry.key], below = as_values(entry.section)
            defaults += [f"{entry.key}.{name}" for name in below]
        elif entry.given is not None:
            values[entry.key] = yaml.safe_load(yaml.serialize(entry.given))
        else:
            value = yaml.safe_load(flow(entry.default))
            values[entry.key] = None if entry.default is None else value
            defaults.append(entry.key)
    return values, defaults


def of_node(node: Node) -> object:
    if isinstance(node, MappingNode):
        return {str(key.value): of_node(value) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return [of_node(item) for item in node.value]
    assert isinstance(node, ScalarNode)
    return Plain(node.value) if not node.style and node.tag != "tag:yaml.org,2002:null" else node.value
