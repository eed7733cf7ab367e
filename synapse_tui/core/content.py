"""Content of messages and artifacts: parts of text, data and files (A2A sections 4.1.4 to 4.1.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields
from types import MappingProxyType
from typing import Any, Literal

from synapse_tui.system.dataclass import dataclass

PartKind = Literal["text", "data", "file", "url"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message or an artifact.

    Attributes:
        text: The text; for `url` the URL.
        data: The JSON value of a `data` part.
        path: Absolute path of a `file` part's content on this machine.
        name: File name given by the sender; may be empty.
        media_type: Empty if unknown.
    """

    kind: PartKind = "text"
    text: str = ""
    data: object = None
    path: str = ""
    name: str = ""
    media_type: str = ""
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """One message of a task's conversation.

    Attributes:
        message_id: Assigned by the sender.
        extensions: URIs of the extensions it uses.
        references: Ids of related tasks.
    """

    message_id: str
    role: Literal["user", "agent"]
    parts: tuple[Part, ...]
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    extensions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Artifact:
    """One result of a task.

    Attributes:
        truncated: Whether rows are known to be missing.
        artifact_id: Id within the task; if empty, derived from the position.
        name: May be empty.
        parts: The content, if it is more than the text; its text parts are repeated in `text`.
        as_message: Whether the agent sent it as a message; a waiting A2A caller then gets only the message.
    """

    text: str
    truncated: bool = False
    artifact_id: str = ""
    name: str = ""
    parts: tuple[Part, ...] = ()
    as_message: bool = False


def artifact_id(artifact: Artifact, position: int) -> str:
    """Return the artifact's id within its task; `position` counts from 1."""
    return artifact.artifact_id or f"artifact-{position}"


def part_words(part: Part, path: str = "") -> str:
    """Return a part as text: data as JSON, files and URLs by name.

    `path` replaces the file's absolute path.
    """
    kind = f" ({part.media_type})" if part.media_type else ""
    match part.kind:
        case "text":
            return part.text
        case "url":
            return f"Attached URL: {part.text}{kind}"
        case "data":
            import json  # noqa: PLC0415 - keeps command startup fast

            return f"Attached data: {json.dumps(part.data, ensure_ascii=False, default=str)}"
        case "file":
            return f"Attached file: {path or part.path}{kind}"


def artifact_words(artifact: Artifact) -> str:
    """Return an artifact as text: its text followed by its other parts."""
    others = [part_words(part) for part in artifact.parts if part.kind != "text"]
    return "\n".join(filter(None, (artifact.text, *others)))


def text_of_parts(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if part.kind == "text")


def to_json(content: Part | TaskMessage | Artifact) -> dict[str, Any]:
    """Return the JSON form of a part, message or artifact; default values are omitted."""
    found: dict[str, Any] = {}
    for entry in fields(content):
        value = getattr(content, entry.name)
        if value == entry.default or (entry.default_factory is not MISSING and not value):
            continue
        if entry.name == "parts":
            value = [to_json(part) for part in value]
        elif isinstance(value, Mapping):
            value = dict(value)
        found[entry.name] = list(value) if isinstance(value, tuple) else value
    return found


def part_from_json(content: Mapping[str, Any]) -> Part:
    """Read the output of `to_json`; fields added by other versions are ignored.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is invalid.
    """
    return Part(**_known(Part, content))


def message_from_json(content: Mapping[str, Any]) -> TaskMessage:
    """Read the output of `to_json`; fields added by other versions are ignored.

    Raises:
        TypeError: A field is missing or has the wrong type.
        ValueError: A value is invalid.
    """
    return TaskMessage(**_known(TaskMessage, content))


def artifact_from_json(content: Mapping[str, Any]) -> Artifact:
    """Read the output of `to_json`; fields added by other versions are ignored.

    Raises:
        TypeError: A value has the wrong type.
        ValueError: A value is invalid.
    """
    return Artifact(**{"text": "", **_known(Artifact, content)})


def _known(kind: type[Part | TaskMessage | Artifact], content: Mapping[str, Any]) -> dict[str, Any]:
    names = {entry.name for entry in fields(kind)}
    found = {name: value for name, value in content.items() if name in names}
    if "parts" in found:
        found["parts"] = tuple(map(part_from_json, found["parts"]))
    for name in ("extensions", "references"):
        if name in found:
            found[name] = tuple(map(str, found[name]))
    if "metadata" in found:
        found["metadata"] = MappingProxyType(dict(found["metadata"]))
    return found


_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Return an agent's text without control characters, except newlines and tabs."""
    return _ACTING.sub("", text)


def is_deeper(value: object, levels: int) -> bool:
    """Whether JSON is nested deeper than a number of levels."""
    level = [value]
    for _ in range(levels):
        level = [inner for each in level for inner in _children(each)]
    return bool(level)


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
