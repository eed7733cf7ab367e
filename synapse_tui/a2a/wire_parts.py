"""Parts of messages and artifacts as the dialect reads and writes them.

It reads every spelling that clients use: `{"type": "text", "text"}`, `{"kind": "data", "data"}` and
`{"type": "file", "file": {name, mimeType, bytes}}` of the dialect and of A2A 0.3, and `text`, `raw`, `url`
and `data` of A2A 1.0.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from synapse_tui.agents.delivery.incoming import Upload
from synapse_tui.content import Part
from synapse_tui.errors import MessageError

from .body_files import BodyFiles
from .media_types import check_media_type
from .problems import HttpProblem

_CONTENTS = ("text", "file", "raw", "url", "data")
_FORMS = (
    'a part is {"type": "text", "text": "..."} or {"type": "file", "file": {"name", "mimeType", "bytes"}} or '
    '{"type": "data", "data": {...}}'
)


def content_of(
    parts: Sequence[Mapping[str, Any]], files: BodyFiles | None = None
) -> tuple[Part | Upload, ...]:
    """The content of a message.

    Args:
        parts: Its parts as they came.
        files: The files of its body, where that is large.

    Raises:
        HttpProblem: A part is of a kind or a type that is not taken (415).
        MessageError: A part is malformed.
    """
    return with_files((_content(part, f"message.parts[{at}]") for at, part in enumerate(parts)), files)


def with_files(content: Iterable[Part | Upload], files: BodyFiles | None) -> tuple[Part | Upload, ...]:
    """A content with the files of a large body in the places of the words that stand for them.

    Raises:
        MessageError: A file of the body is none of the content's.
    """
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
    """Whether there is nothing but text in a content."""
    return all(isinstance(part, Part) and part.kind == "text" for part in content)


def _content(part: Mapping[str, Any], where: str) -> Part | Upload:
    kind = part.get("type", part.get("kind"))
    if kind is None:
        kind = next((each for each in _CONTENTS if each in part), "text")
    name, media_type = _word(part, "filename", where), _type_of(part, where)
    if kind == "file" and isinstance(part.get("file"), Mapping):
        return _file(part["file"], f"{where}.file")
    match kind:
        case "text":
            return Part("text", _text(part, "text", where), name=name, media_type=media_type)
        case "data" if "data" in part:
            return Part("data", data=part["data"], name=name, media_type=media_type)
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
    """Refuse half a surrogate pair, which JSON can write and UTF-8 cannot.

    Raises:
        MessageError: There is one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MessageError(f"{where} holds half a surrogate pair", "send whole characters") from error


def part_json(part: Part) -> dict[str, Any]:
    """A part as the dialect writes it; files lie on this machine and are named by their URLs."""
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
    """A text part."""
    return {"type": "text", "text": sound(text)}


def _about_file(part: Part, uri: str) -> dict[str, str]:
    told = {"name": part.name, "mimeType": part.media_type, "uri": uri}
    return {key: sound(value) for key, value in told.items() if value}


def sound(text: str) -> str:
    """Text that UTF-8 can carry; a lone surrogate would break the answer."""
    return text.encode("utf-8", "replace").decode()
