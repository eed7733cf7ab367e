"""The HTTP dialect's bodies as pydantic models, and tasks as the dialect writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synapse_tui.content import Artifact, Part, TaskMessage, artifact_id
from synapse_tui.errors import MessageError
from synapse_tui.model import DEFAULT_PRIORITY, Sender, Task, TaskState

from .problems import HttpProblem
from .wire_parts import check_unicode, content_of, only_text, part_json, sound, text_json

__all__ = [
    "PlainBody",
    "SendBody",
    "SentTask",
    "WireMessage",
    "WireSender",
    "WireTarget",
    "check_metadata",
    "check_unicode",
    "own_metadata",
    "sender_json",
    "sound",
    "task_json",
    "text_of",
]

MAX_DEPTH = 20
MAX_PARTS = 1000
_RESERVED = frozenset({"sender", "direction", "replied", "reply"})
"""Keys of the metadata that only this program writes."""


class WireMessage(BaseModel):
    """A message; its parts may be written in any way that `wire_parts` knows."""

    role: Literal["user", "agent", "ROLE_USER", "ROLE_AGENT"] = "user"
    parts: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_PARTS)]
    message_id: Annotated[str, Field(alias="messageId", max_length=200)] = ""
    task_id: Annotated[str, Field(alias="taskId", max_length=200)] = ""
    """The open task that it goes on with."""


class WireSender(BaseModel):
    """`metadata.sender`: who the caller says it is."""

    model_config = ConfigDict(extra="ignore")

    sender_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")] = "external"
    sender_type: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$")] = "external"
    sender_endpoint: Annotated[str, Field(pattern=r"^(https?://[!-~]{1,500})?$")] = ""


class WireTarget(BaseModel):
    """The part of the metadata that says to whom an outgoing task was sent."""

    model_config = ConfigDict(extra="ignore")

    target_agent: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")]
    target_endpoint: Annotated[str, Field(pattern=r"^https?://[!-~]{1,500}$")]


class SendBody(BaseModel):
    """Body of `POST /tasks/send` and `/tasks/send-priority`."""

    message: WireMessage
    context_id: str | None = None
    metadata: dict[str, Any] = {}


class PlainBody(BaseModel):
    """Body of `POST /message`."""

    content: str
    priority: int = DEFAULT_PRIORITY
    metadata: dict[str, Any] = {}


class SentTask(BaseModel):
    """Answer to a message; of one that goes on with a task, that task, and the message's own."""

    task: dict[str, Any]
    follow_up: dict[str, Any] = {}


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Join the text parts of a message by line feeds.

    Raises:
        HttpProblem: A part is no text (415).
        MessageError: There is no text in them.
    """
    content = content_of(parts)
    if not only_text(content):
        raise HttpProblem(
            415,
            "content_type_not_supported",
            "only text parts are taken here",
            "send text; name files by their path in it",
        )
    text = "\n".join(part.text for part in content if isinstance(part, Part))
    if not text.strip():
        raise MessageError("the message is empty", "put the text into message.parts[0].text")
    return text


def check_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata if it can be stored and sent on.

    Raises:
        MessageError: It is nested too deeply, or UTF-8 cannot carry it.
    """
    level: list[object] = [metadata]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _children(value)]
    if level:
        raise MessageError(f"metadata is nested deeper than {MAX_DEPTH} levels", "flatten it")
    check_unicode(json.dumps(metadata, ensure_ascii=False), "metadata")
    return metadata


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of the metadata that a caller gave."""
    return {key: value for key, value in metadata.items() if key not in _RESERVED}


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def task_json(task: Task) -> dict[str, Any]:
    """A task as the dialect writes it."""
    return {
        "id": task.id,
        "context_id": task.context_id,
        "status": task.state.value,
        "message": {"role": "user", "parts": _parts_of(task)},
        "messages": [_message_json(each) for each in task.messages],
        "artifacts": [_artifact_json(each, place) for place, each in enumerate(task.artifacts, 1)],
        "error": _error_json(task),
        "metadata": {
            **task.metadata,
            "sender": sender_json(task.sender),
            "target": task.target,
            "priority": task.priority,
            "response_expected": task.response_expected,
            "delivery": task.delivery.value,
            "reason": sound(task.reason),
            "direction": "outgoing" if task.outgoing else "incoming",
            "replied": task.replied,
            "reply": task.reply.value,
        },
        "created_at": task.created_at.isoformat(),
        "updated_at": task.updated_at.isoformat(),
    }


def sender_json(sender: Sender) -> dict[str, Any]:
    """A sender as `metadata.sender`."""
    return {
        "sender_id": sender.sender_id,
        "sender_type": sender.sender_type,
        "sender_endpoint": sender.sender_endpoint,
        "verified": sender.verified,
    }


def _error_json(task: Task) -> dict[str, str] | None:
    if task.state not in (TaskState.FAILED, TaskState.REJECTED):
        return None
    return {"code": task.state.value, "message": sound(task.reason)}


def _parts_of(task: Task) -> list[dict[str, Any]]:
    """The content of the message that made a task."""
    first = next((each.parts for each in task.messages if each.role == "user"), ())
    return [part_json(part) for part in first] or [text_json(task.text)]


def _message_json(message: TaskMessage) -> dict[str, Any]:
    return {
        "message_id": sound(message.message_id),
        "role": message.role,
        "parts": [part_json(part) for part in message.parts],
    }


def _artifact_json(artifact: Artifact, position: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "type": "text",
        "data": sound(artifact.text),
        "parts": [part_json(part) for part in artifact.parts] or [text_json(artifact.text)],
        "truncated": artifact.truncated,
        "artifact_id": sound(artifact_id(artifact, position)),
    }
    return told | ({"name": sound(artifact.name)} if artifact.name else {})
