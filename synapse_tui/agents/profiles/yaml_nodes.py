"""Reads values out of a YAML node tree, so that every fault can be told with its line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from synapse_tui.errors import ProfileError

Value = TypeVar("Value")
Word = TypeVar("Word", bound=str)

MAX_FILE_BYTES = 256 * 1024
_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(slots=True)
class Faults:
    """Collects what is wrong in one file."""

    path: Path
    found: list[ProfileError] = field(default_factory=list)

    def add(self, node: Node | None, reason: str) -> None:
        """Note a fault at a node; None means the file as a whole."""
        line = node.start_mark.line + 1 if node is not None else 0
        self.found.append(ProfileError(self.path, line, reason))


class Section:
    """One mapping of the file: values are asked for by key, and what was never asked for is unknown.

    Args:
        node: The mapping; None reads as an empty one.
        faults: Where faults go; a faulty value reads as its default.
        name: Where in the file it stands, for messages; empty for the top.
    """

    def __init__(self, node: MappingNode | None, faults: Faults, name: str = "") -> None:
        self.node = node
        self.faults = faults
        self.name = name
        self._values: dict[str, Node] = {}
        self._keys: dict[str, Node] = {}
        self._asked: set[str] = set()
        self._skipped: set[str] = set()
        for key, value in node.value if node is not None else ():
            self._take(key, value)

    def _take(self, key: Node, value: Node) -> None:
        if not isinstance(key, ScalarNode):
            self.faults.add(key, "a key must be a word")
        elif key.value in self._values:
            self.faults.add(key, f"'{self._path(key.value)}' is given twice")
        else:
            self._keys[key.value] = key
            self._values[key.value] = value

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        """Whether the key is given and not null."""
        return self._node(key) is not None

    def _node(self, key: str) -> Node | None:
        self._asked.add(key)
        node = self._values.get(key)
        return None if node is not None and node.tag == "tag:yaml.org,2002:null" else node

    def _fault(self, node: Node, key: str, wanted: str) -> None:
        self.faults.add(node, f"'{self._path(key)}' must be {wanted}")

    def at(self, key: str) -> Node | None:
        """The node to point at when something is wrong with the key: its own, else the section's."""
        return self._keys.get(key, self.node)

    def fault(self, key: str, reason: str) -> None:
        """Note a fault of a value that was read but cannot be used."""
        self.faults.add(self.at(key), f"'{self._path(key)}' {reason}")

    def text(self, key: str, default: str = "") -> str:
        """A string; numbers and booleans are taken as they are written."""
        node = self._node(key)
        if node is None:
            return default
        if isinstance(node, ScalarNode):
            return str(node.value)
        self._fault(node, key, "a text")
        return default

    def number(self, key: str, default: float, low: float = 0.0, high: float = 600.0) -> float:
        """A number of `low` to `high`."""
        node = self._node(key)
        if node is None:
            return default
        value = _to_float(node)
        if value is None or not low <= value <= high:
            self._fault(node, key, f"a number from {low:g} to {high:g}")
            return default
        return value

    def count(self, key: str, default: int, low: int = 0, high: int = 100_000) -> int:
        """A whole number of `low` to `high`."""
        value = self.number(key, default, low, high)
        if value != int(value):
            self.fault(key, "must be a whole number")
            return default
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        node = self._node(key)
        if node is None:
            return default
        value = _BOOLS.get(node.value.lower()) if isinstance(node, ScalarNode) else None
        if value is None:
            self._fault(node, key, "true or false")
            return default
        return value

    def maybe_flag(self, key: str) -> bool | None:
        """True, false, or None when it is not given."""
        return self.flag(key, default=False) if self.has(key) else None

    def maybe_number(self, key: str) -> float | None:
        """A number of seconds, or None when it is not given."""
        return self.number(key, 0.0) if self.has(key) else None

    def choice(self, key: str, words: Sequence[Word], default: Word) -> Word:
        """One of some words."""
        node = self._node(key)
        if node is None:
            return default
        if isinstance(node, ScalarNode) and node.value in words:
            return words[words.index(node.value)]
        given = node.value if isinstance(node, ScalarNode) else ""
        near = difflib.get_close_matches(given, words, 1)
        self._fault(
            node,
            key,
            f"'{near[0]}' perhaps, or one of {', '.join(words)}" if near else f"one of {', '.join(words)}",
        )
        return default

    def strings(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts; one text is a list of one."""
        return tuple(value for value, _ in self._strings(key, default))

    def _strings(self, key: str, default: tuple[str, ...] = ()) -> list[tuple[str, Node | None]]:
        node = self._node(key)
        if node is None:
            return [(value, None) for value in default]
        items = node.value if isinstance(node, SequenceNode) else [node]
        if not all(isinstance(item, ScalarNode) for item in items):
            self._fault(node, key, "a list of texts")
            return [(value, None) for value in default]
        return [(str(item.value), item) for item in items]

    def convert(self, key: str, reader: Callable[[str], Value]) -> tuple[Value, ...]:
        """A list of texts, each changed by a function whose ValueError is a fault of that text."""
        found: list[Value] = []
        for value, node in self._strings(key):
            try:
                found.append(reader(value))
            except ValueError as error:
                self.faults.add(node, f"'{self._path(key)}': {error}")
        return tuple(found)

    def patterns(self, key: str) -> tuple[re.Pattern[str], ...]:
        """A list of regular expressions; `^` and `$` hold at each row."""
        return self.convert(key, _pattern)

    def pattern(self, key: str) -> re.Pattern[str] | None:
        """One regular expression, or None when it is not given."""
        found = self.patterns(key)
        if len(found) > 1:
            self.fault(key, "must be one pattern")
        return found[0] if found else None

    def mapping(self, key: str) -> dict[str, str]:
        """A mapping of texts to texts."""
        section = self.section(key)
        return {name: section.text(name) for name in section._values}

    def section(self, key: str) -> Section:
        """A mapping below this one; an empty one when it is not given."""
        node = self._node(key)
        if node is not None and not isinstance(node, MappingNode):
            self._fault(node, key, "a mapping")
            node = None
        return Section(node, self.faults, self._path(key))

    def sections(self, key: str, *, alone: bool = False) -> list[Section]:
        """A list of mappings; where `alone` is set, one of them may stand without the list."""
        node = self._node(key)
        if node is None:
            return []
        if alone and isinstance(node, MappingNode):
            return [Section(node, self.faults, self._path(key))]
        if not isinstance(node, SequenceNode) or not all(
            isinstance(item, MappingNode) for item in node.value
        ):
            self._fault(node, key, "a list of mappings")
            return []
        return [
            Section(item, self.faults, f"{self._path(key)}[{index}]") for index, item in enumerate(node.value)
        ]

    def skip(self, *keys: str) -> None:
        """Let keys be there that mean nothing here."""
        self._skipped.update(keys)

    def finish(self) -> None:
        """Note a fault for each key that was never asked for, naming the nearest that is known."""
        for key, node in self._keys.items():
            if key in self._asked or key in self._skipped:
                continue
            near = difflib.get_close_matches(key, sorted(self._asked), 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(sorted(self._asked))}"
            self.faults.add(node, f"unknown key '{self._path(key)}': {hint}")


def _to_float(node: Node) -> float | None:
    if not isinstance(node, ScalarNode):
        return None
    try:
        return float(node.value)
    except ValueError:
        return None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"'{text}' is no regular expression: {error}") from error


def read_mapping(path: Path, data: bytes, faults: Faults) -> Section | None:
    """Parse a file whose top is one mapping.

    Args:
        path: Its name, for messages.
        data: Its bytes, UTF-8.
        faults: Where faults go.

    Returns:
        The top section, or None when it cannot be parsed; the fault is noted then.
    """
    if len(data) > MAX_FILE_BYTES:
        faults.add(None, f"the file is longer than {MAX_FILE_BYTES} bytes")
        return None
    try:
        node = yaml.compose(data.decode("utf-8"), Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        faults.found.append(ProfileError(path, line, "the file is not UTF-8"))
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 0
        faults.found.append(ProfileError(path, line, f"no valid YAML: {error.problem or error.context}"))
        return None
    except yaml.YAMLError as error:
        faults.add(None, f"no valid YAML: {error}")
        return None
    if not isinstance(node, MappingNode):
        faults.add(node, "the file must hold one mapping of keys to values")
        return None
    return Section(node, faults)
