"""Request bodies of the HTTP dialect as pydantic models, and tasks as JSON."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synapse_tui.agents.delivery.incoming import Upload
from synapse_tui.core.content import Artifact, Part, TaskMessage, artifact_id, is_deeper
from synapse_tui.core.errors import MessageError
from synapse_tui.core.model import DEFAULT_PRIORITY, Sender, Task, TaskState

from .bodies import BodyFiles
from .problems import HttpProblem

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
    "request_fields",
    "sender_json",
    "sound",
    "task_json",
    "text_of",
]

_FORM = re.compile(r"([a-z0-9][a-z0-9!#$&^_.+-]{0,126})/([a-z0-9][a-z0-9!#$&^_.+-]{0,126})")
_KINDS = frozenset(
    {"text", "image", "audio", "video", "font", "model", "message", "multipart", "application"}
)
_PRIVATE = frozenset(
    {
        "x-7z-compressed", "x-bzip", "x-bzip2", "x-compress", "x-compressed", "x-csh", "x-diff",
        "x-empty", "x-gzip", "x-httpd-php", "x-ipynb+json", "x-java", "x-javascript", "x-json",
        "x-jsonlines", "x-latex", "x-ndjson", "x-patch", "x-perl", "x-pem-file", "x-php",
        "x-powershell", "x-python", "x-python-code", "x-rar-compressed", "x-ruby", "x-sh",
        "x-shellscript", "x-sql", "x-sqlite3", "x-tar", "x-tex", "x-toml", "x-typescript",
        "x-www-form-urlencoded", "x-x509-ca-cert", "x-xz", "x-yaml", "x-zip-compressed", "x-zstd",
    }
)  # fmt: skip
"""Unregistered types of `application/` with a widely known meaning."""


def check_media_type(media_type: str, where: str) -> None:
    """Raise HttpProblem (415) unless this is a media type that the agent can use."""
    main = media_type.partition(";")[0].strip().lower()
    if not main:
        return
    found = _FORM.fullmatch(main)
    private = found is not None and found[1] == "application" and found[2].startswith("x-")
    if found is None or found[1] not in _KINDS or (private and found[2] not in _PRIVATE):
        raise HttpProblem(
            415,
            "content_type_not_supported",
            f"{where} is of the type '{main[:100]}', which is not known",
            "leave the type out, or send it as application/octet-stream",
        )


_CONTENTS = ("text", "file", "raw", "url", "data")
_FORMS = (
    'a part is {"type": "text", "text": "..."} or {"type": "file", "file": {"name", "mimeType", "bytes"}} or '
    '{"type": "data", "data": {...}}'
)


def content_of(
    parts: Sequence[Mapping[str, Any]], files: BodyFiles | None = None
) -> tuple[Part | Upload, ...]:
    """Parse the parts of a message.

    Raises HttpProblem (415) for unsupported kinds and types, and MessageError for malformed parts.
    """
    return with_files((_content(part, f"message.parts[{at}]") for at, part in enumerate(parts)), files)


def with_files(content: Iterable[Part | Upload], files: BodyFiles | None) -> tuple[Part | Upload, ...]:
    """Replace the placeholders in a content by the files of a large body."""
    if files is None:
        return tuple(content)
    found = tuple(
        replace(part, content=b"", file=file)
        if isinstance(part, Upload) and (file := files.find(part.content)) is not None
        else part
        for part in content
    )
    files.check()
    return found


def only_text(content: Sequence[Part | Upload]) -> bool:
    return all(isinstance(part, Part) and part.kind == "text" for part in content)


def _content(part: Mapping[str, Any], where: str) -> Part | Upload:
    kind = part.get("type", part.get("kind"))
    if kind is None:
        kind = next((content for content in _CONTENTS if content in part), "text")
    name, media_type = _word(part, "filename", where), _type_of(part, where)
    if kind == "file" and isinstance(part.get("file"), Mapping):
        return _file(part["file"], f"{where}.file")
    match kind:
        case "text":
            return Part("text", _text(part, "text", where), name=name, media_type=media_type)
        case "data" if "data" in part:
            return Part("data", data=check_data(part["data"]), name=name, media_type=media_type)
        case "url":
            return Part("url", _text(part, "url", where), name=name, media_type=media_type)
        case "raw":
            return Upload(_bytes(_text(part, "raw", where), f"{where}.raw"), name, media_type)
    raise HttpProblem(
        415,
        "content_type_not_supported",
        f"{where} is neither text nor a file, a URL or data",
        _FORMS,
    )


def _file(file: Mapping[str, Any], where: str) -> Part | Upload:
    name, media_type = _word(file, "name", where), _type_of(file, where)
    if "bytes" in file:
        return Upload(_bytes(_text(file, "bytes", where), f"{where}.bytes"), name, media_type)
    if "uri" in file:
        return Part("url", _text(file, "uri", where), name=name, media_type=media_type)
    raise MessageError(f"{where} has neither bytes nor uri", _FORMS)


def _text(part: Mapping[str, Any], key: str, where: str) -> str:
    found = part.get(key)
    if not isinstance(found, str):
        raise MessageError(f"{where}.{key} is missing or no string", _FORMS)
    check_unicode(found, f"{where}.{key}")
    return found


def _word(part: Mapping[str, Any], key: str, where: str) -> str:
    return _text(part, key, where) if part.get(key) is not None else ""


def _type_of(part: Mapping[str, Any], where: str) -> str:
    key = next((each for each in ("mediaType", "mimeType", "mime_type") if each in part), "mediaType")
    found = _word(part, key, where)
    check_media_type(found, where)
    return found


def _bytes(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MessageError(
            f"{where} is no base64: {error}", "encode the bytes as base64 (RFC 4648)"
        ) from error


def check_unicode(text: str, where: str) -> None:
    """Raise MessageError for lone surrogates, which JSON can represent and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MessageError(f"{where} holds half a surrogate pair", "send whole characters") from error


def part_json(part: Part) -> dict[str, Any]:
    """A part as JSON; files are on this machine and are given as file URLs."""
    match part.kind:
        case "text":
            return text_json(part.text)
        case "data":
            return {"type": "data", "data": json.loads(sound(json.dumps(part.data)))}
        case "url":
            return {"type": "file", "file": _about_file(part, part.text)}
        case "file":
            return {"type": "file", "file": _about_file(part, Path(part.path).as_uri() if part.path else "")}


def text_json(text: str) -> dict[str, Any]:
    return {"type": "text", "text": sound(text)}


def _about_file(part: Part, uri: str) -> dict[str, str]:
    fields = {"name": part.name, "mimeType": part.media_type, "uri": uri}
    return {key: sound(value) for key, value in fields.items() if value}


def sound(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


MAX_DEPTH = 20
MAX_DATA_DEPTH = 30  # of a data part: protobuf reads 100 levels, and each of JSON takes three
MAX_PARTS = 1000
_RESERVED = frozenset({"sender", "direction", "replied", "reply"})
"""Metadata keys that only this program writes."""


class WireMessage(BaseModel):
    """A message; its parts may have any of the forms that `wire_parts` accepts."""

    role: Literal["user", "agent", "ROLE_USER", "ROLE_AGENT"] = "user"
    parts: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_PARTS)]
    message_id: Annotated[str, Field(alias="messageId", max_length=200)] = ""
    task_id: Annotated[str, Field(alias="taskId", max_length=200)] = ""
    """Id of the open task to continue."""


class WireSender(BaseModel):
    """`metadata.sender`: the claimed sender."""

    model_config = ConfigDict(extra="ignore")

    sender_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")] = "external"
    sender_type: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$")] = "external"
    sender_endpoint: Annotated[str, Field(pattern=r"^(https?://[!-~]{1,500})?$")] = ""


class WireTarget(BaseModel):
    """The metadata that names the receiver of an outgoing task."""

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
    """Answer to a sent message. For a follow-up: the continued task, and the message's own."""

    task: dict[str, Any]
    follow_up: dict[str, Any] = {}


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Join the text parts of a message with line feeds; there must be no other parts."""
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


def check_data(data: object) -> object:
    """Return the value of a data part if it can be shown again, or raise MessageError."""
    if is_deeper(data, MAX_DATA_DEPTH):
        raise MessageError(f"a data part is nested deeper than {MAX_DATA_DEPTH} levels", "flatten it")
    return data


def check_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata if it can be stored and forwarded, or raise MessageError."""
    if is_deeper(metadata, MAX_DEPTH):
        raise MessageError(f"metadata is nested deeper than {MAX_DEPTH} levels", "flatten it")
    check_unicode(json.dumps(metadata, ensure_ascii=False), "metadata")
    return metadata


def request_fields(metadata: Mapping[str, Any], *, response_expected: bool = False) -> dict[str, Any]:
    """Return the fields of a request that its sender gives as metadata; raises MessageError."""
    expected = metadata.get("response_expected", response_expected)
    if not isinstance(expected, bool):
        raise MessageError("metadata.response_expected is neither true nor false", "send a boolean")
    return {"response_expected": expected}


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in _RESERVED}


def task_json(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "context_id": task.context_id,
        "status": task.state.value,
        "message": {"role": "user", "parts": _parts_of(task)},
        "messages": [_message_json(message) for message in task.messages],
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
    first = next((message.parts for message in task.messages if message.role == "user"), ())
    return [part_json(part) for part in first] or [text_json(task.text)]


def _message_json(message: TaskMessage) -> dict[str, Any]:
    return {
        "message_id": sound(message.message_id),
        "role": message.role,
        "parts": [part_json(part) for part in message.parts],
    }


def _artifact_json(artifact: Artifact, position: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": "text",
        "data": sound(artifact.text),
        "parts": [part_json(part) for part in artifact.parts] or [text_json(artifact.text)],
        "truncated": artifact.truncated,
        "artifact_id": sound(artifact_id(artifact, position)),
    }
    return fields | ({"name": sound(artifact.name)} if artifact.name else {})
