"""What messages and artifacts are made of: parts of text, data and files (A2A sections 4.1.4 to 4.1.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

PartKind = Literal["text", "data", "file", "url"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message or an artifact.

    Attributes:
        kind: What it holds.
        text: The text; of a `url` the URL.
        data: The JSON value of a `data` part.
        path: Where the bytes of a `file` lie on this machine, an absolute path.
        name: Name of a file as the sender gave it; may be empty.
        media_type: Its type; empty when it is not known.
        metadata: Whatever else the sender gave.
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
        message_id: Id that its sender gave it.
        role: Whether the caller or the agent wrote it.
        parts: Its content.
        metadata: Whatever else came with it.
        extensions: URIs of the extensions it uses.
        references: Ids of other tasks it is about.
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
        text: The text that the agent wrote.
        truncated: Whether rows of it are known to be missing.
        artifact_id: Its id within the task; empty for the position it has.
        name: What it is called; may be empty.
        parts: Its content where that is more than the text; the text parts of it are `text`.
        as_message: Whether the agent gave it as a message: an A2A caller that waits gets that alone.
    """

    text: str
    truncated: bool = False
    artifact_id: str = ""
    name: str = ""
    parts: tuple[Part, ...] = ()
    as_message: bool = False


def artifact_id(artifact: Artifact, position: int) -> str:
    """The id of an artifact within its task.

    Args:
        artifact: The artifact.
        position: Its position in the task, from 1.
    """
    return artifact.artifact_id or f"artifact-{position}"


def part_words(part: Part, path: str = "") -> str:
    """A part as text: data as JSON, files and URLs named.

    Args:
        part: The part.
        path: How its file is called; empty for its absolute path.
    """
    kind = f" ({part.media_type})" if part.media_type else ""
    match part.kind:
        case "text":
            return part.text
        case "url":
            return f"Attached URL: {part.text}{kind}"
        case "data":
            import json  # noqa: PLC0415 - the help of commands loads this module

            return f"Attached data: {json.dumps(part.data, ensure_ascii=False, default=str)}"
        case "file":
            return f"Attached file: {path or part.path}{kind}"


def artifact_words(artifact: Artifact) -> str:
    """An artifact as text: its text, then what else it holds, named."""
    others = [part_words(part) for part in artifact.parts if part.kind != "text"]
    return "\n".join(filter(None, (artifact.text, *others)))


def text_of_parts(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if part.kind == "text")


def to_json(content: Part | TaskMessage | Artifact) -> dict[str, Any]:
    """A part, message or artifact as it is kept: what has its default value is left out."""
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
    """A part of what `to_json` gave; what another version added is left out.

    Raises:
        TypeError: It is of another kind.
        ValueError: It is of another kind.
    """
    return Part(**_known(Part, content))


def message_from_json(content: Mapping[str, Any]) -> TaskMessage:
    """A message of what `to_json` gave; what another version added is left out.

    Raises:
        TypeError: Something is missing, or of another kind.
        ValueError: Something is of another kind.
    """
    return TaskMessage(**_known(TaskMessage, content))


def artifact_from_json(content: Mapping[str, Any]) -> Artifact:
    """An artifact of what `to_json` gave; what another version added is left out.

    Raises:
        TypeError: It is of another kind.
        ValueError: It is of another kind.
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
    """An agent's text without the control characters that would act on the terminal; lines and tabs stay."""
    return _ACTING.sub("", text)
