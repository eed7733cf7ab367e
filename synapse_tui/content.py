"""What messages and artifacts are made of: parts of text, data and files (A2A sections 4.1.4 to 4.1.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

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


def text_of_parts(parts: Sequence[Part]) -> str:
    """The text parts, joined by line feeds."""
    return "\n".join(part.text for part in parts if part.kind == "text")
