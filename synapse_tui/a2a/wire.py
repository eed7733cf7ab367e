"""The HTTP dialect's bodies as pydantic models, and tasks as the dialect writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synapse_tui.errors import MessageError
from synapse_tui.model import DEFAULT_PRIORITY, Sender, Task, TaskState

from .problems import HttpProblem

MAX_DEPTH = 20
_OTHER_CONTENT = frozenset({"file", "data", "raw", "url"})
MAX_PARTS = 1000
_RESERVED = frozenset({"sender", "direction", "replied", "reply"})
"""Keys of the metadata that only this program writes."""


class WireMessage(BaseModel):
    """A message; its parts may be `{"type": "text", "text"}` or any of A2A's ways to write a text."""

    role: Literal["user", "agent", "ROLE_USER", "ROLE_AGENT"] = "user"
    parts: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_PARTS)]


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
    """Answer to a message."""

    task: dict[str, Any]


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Join the text parts of a message by line feeds.

    Raises:
        HttpProblem: A part is no text (415).
        MessageError: There is no text in them.
    """
    texts = [_part_text(part, f"message.parts[{at}]") for at, part in enumerate(parts)]
    text = "\n".join(texts)
    if not text.strip():
        raise MessageError("the message is empty", "put the text into message.parts[0].text")
    return text


def _part_text(part: Mapping[str, Any], where: str) -> str:
    kind = part.get("type", part.get("kind", "text"))
    text = part.get("text")
    if kind != "text" or (text is None and _OTHER_CONTENT & part.keys()):
        raise HttpProblem(
            415,
            "content_type_not_supported",
            f"{where} is no text part; only text parts are supported",
            "send text; name files by their path in it",
        )
    if not isinstance(text, str):
        raise MessageError(
            f"{where}.text is missing or no string", 'a part is {"type": "text", "text": "..."}'
        )
    check_unicode(text, f"{where}.text")
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


def check_unicode(text: str, where: str) -> None:
    """Refuse half a surrogate pair, which JSON can write and UTF-8 cannot.

    Raises:
        MessageError: There is one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MessageError(f"{where} holds half a surrogate pair", "send whole characters") from error


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
        "message": {"role": "user", "parts": [_text_part(task.text)]},
        "artifacts": [
            {
                "type": "text",
                "data": sound(each.text),
                "parts": [_text_part(each.text)],
                "truncated": each.truncated,
            }
            for each in task.artifacts
        ],
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


def _text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": sound(text)}


def sound(text: str) -> str:
    """Text that UTF-8 can carry; a lone surrogate would break the answer."""
    return text.encode("utf-8", "replace").decode()
