"""Parts and states of the dialect from the caller's side: written with what files hold, read as text."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from synapse_tui.content import Part, part_words
from synapse_tui.model import TaskState

NO_CONTENTS: Mapping[str, bytes] = MappingProxyType({})


def parts_json(text: str, parts: Sequence[Part], contents: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The parts of a message.

    Args:
        text: Its text; may be empty when there are parts.
        parts: What else it holds; text parts among them are left out.
        contents: What the files among them hold, by their paths.
    """
    first = [{"type": "text", "text": _sound(text)}] if text or not parts else []
    return [*first, *(_part_json(part, contents) for part in parts if part.kind != "text")]


def _part_json(part: Part, contents: Mapping[str, bytes]) -> dict[str, Any]:
    if part.kind == "data":
        return {"type": "data", "data": part.data}
    about = {"name": _sound(part.name), "mimeType": part.media_type}
    if part.kind == "url":
        about["uri"] = part.text
    else:
        about["bytes"] = binascii.b2a_base64(contents[part.path], newline=False).decode()
    return {"type": "file", "file": {key: value for key, value in about.items() if value or key == "bytes"}}


def artifact_text(artifact: Mapping[str, object]) -> str:
    """An artifact as text: its parts with files, URLs and data named, or the `data` of the early dialect."""
    parts = artifact.get("parts")
    if isinstance(parts, list):
        words = [_words(part) for part in parts if isinstance(part, dict)]
        return "\n".join(filter(None, words))
    data = artifact.get("data")
    if isinstance(data, dict):
        data = data.get("content", data.get("text"))
    return data if isinstance(data, str) else ""


def last_question(task: Mapping[str, object]) -> tuple[str, str] | None:
    """Id and text of the last message about a task, if its agent wrote it; None if it did not."""
    messages = task.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "agent":
        return None
    return str(last.get("message_id", "")), artifact_text(last)


def state_of(value: object) -> TaskState:
    """A state as the dialect, A2A 0.3 (`input-required`) or 1.0 (`TASK_STATE_WORKING`) spells it.

    Args:
        value: The word, or `{"state": word}`; one that is not known counts as working.
    """
    word = value.get("state") if isinstance(value, dict) else value
    if not isinstance(word, str):
        return TaskState.WORKING
    word = word.lower().replace("-", "_").removeprefix("task_state_")
    try:
        return TaskState(word)
    except ValueError:
        return TaskState.WORKING


def _words(part: Mapping[str, Any]) -> str:
    """A part as text; what is no part of any dialect is left out."""
    text, file = part.get("text"), part.get("file")
    if isinstance(text, str):
        return text
    if isinstance(file, dict):
        uri, name, kind = (str(file.get(key, "")) for key in ("uri", "name", "mimeType"))
        if uri.startswith("file://"):
            return part_words(Part("file", path=unquote(uri.removeprefix("file://")), media_type=kind))
        return part_words(Part("url", uri or name, media_type=kind))
    return part_words(Part("data", data=part["data"])) if "data" in part else ""


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
