"""Converts tasks and messages to and from the protocol's types (A2A sections 3.2.1 and 4.1)."""

from __future__ import annotations

import asyncio
import json
import math
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from synapse_tui.a2a.wire import (
    MAX_DATA_DEPTH,
    MAX_PARTS,
    check_data,
    check_media_type,
    check_metadata,
    own_metadata,
    sound,
    with_files,
)
from synapse_tui.agents.delivery.incoming import Upload, receive, text_with_files
from synapse_tui.core.content import Artifact, Part, TaskMessage, artifact_id
from synapse_tui.core.errors import MessageError
from synapse_tui.core.model import MessageRequest, Task, TaskState
from synapse_tui.messages.task_stream import Chunk
from synapse_tui.messages.tasks import is_asked
from synapse_tui.system.dataclass import dataclass

from .calls import ProtocolCall, priority_of

MAX_EXACT = 2**53  # JSON parsers disagree on greater integers; they are sent as text
MAX_FILES = 4 * 1024 * 1024  # bytes of files in one answer; further files are given by path
MAX_ID = 200  # characters of an id chosen by a caller

Files = Mapping[str, bytes]  # Contents of files by path
NO_FILES: Files = MappingProxyType({})

_STATES = {
    TaskState.SUBMITTED: pb.TASK_STATE_SUBMITTED,
    TaskState.WORKING: pb.TASK_STATE_WORKING,
    TaskState.INPUT_REQUIRED: pb.TASK_STATE_INPUT_REQUIRED,
    TaskState.COMPLETED: pb.TASK_STATE_COMPLETED,
    TaskState.FAILED: pb.TASK_STATE_FAILED,
    TaskState.CANCELED: pb.TASK_STATE_CANCELED,
    TaskState.REJECTED: pb.TASK_STATE_REJECTED,
}
_OURS = {number: state for state, number in _STATES.items()}


def state_of(number: pb.TaskState) -> TaskState | None:
    """Our state for one of the protocol; None if our tasks never have it."""
    return _OURS.get(number)


# -- our tasks as theirs ---


def task_proto(
    task: Task, files: Files = NO_FILES, *, history: int | None = None, artifacts: bool = True
) -> pb.Task:
    """Convert a task with the newest `history` messages; None for all (section 3.2.4)."""
    messages = task.messages or (TaskMessage(task.id, "user", (Part(text=task.text),)),)
    shown = messages if history is None else messages[max(0, len(messages) - history) :]
    return pb.Task(
        id=task.id,
        context_id=task.context_id,
        status=_status(task, files),
        artifacts=[
            artifact_proto(each, position, files)
            for position, each in enumerate(task.artifacts, 1)
            if artifacts
        ],
        history=[_message(each, task, files) for each in shown],
        metadata=struct_of({**task.metadata, "synapse": _about(task)}),
    )


def status_event(task: Task, files: Files = NO_FILES) -> pb.TaskStatusUpdateEvent:
    return pb.TaskStatusUpdateEvent(
        task_id=task.id,
        context_id=task.context_id,
        status=_status(task, files),
        metadata=struct_of({"synapse": _about(task)}),
    )


def chunk_event(task: Task, chunk: Chunk, files: Files = NO_FILES) -> pb.TaskArtifactUpdateEvent:
    artifact = pb.Artifact(artifact_id=chunk.artifact_id, parts=[_part(part, files) for part in chunk.parts])
    if chunk.artifact is not None:
        artifact.name = sound(chunk.artifact.name)
        if chunk.artifact.truncated:
            artifact.metadata.CopyFrom(struct_of({"truncated": True}))
    return pb.TaskArtifactUpdateEvent(
        task_id=task.id,
        context_id=task.context_id,
        artifact=artifact,
        append=chunk.append,
        last_chunk=chunk.last,
    )


def answer_message(task: Task, files: Files = NO_FILES) -> pb.Message:
    """The message that answered a task (`Artifact.as_message`), sent instead of the task."""
    artifact = task.artifacts[-1]
    return pb.Message(
        message_id=f"{task.id}:{artifact_id(artifact, len(task.artifacts))}",
        context_id=task.context_id,
        role=pb.ROLE_AGENT,
        parts=_artifact_parts(artifact, files),
    )


def artifact_proto(artifact: Artifact, position: int, files: Files = NO_FILES) -> pb.Artifact:
    """Convert the artifact at a position in its task, from 1."""
    return pb.Artifact(
        artifact_id=artifact_id(artifact, position),
        name=sound(artifact.name),
        parts=_artifact_parts(artifact, files),
        metadata=struct_of({"truncated": True}) if artifact.truncated else None,
    )


def status_message(task: Task) -> TaskMessage | None:
    """The agent's own question, or else the reason of the state; None if the state is self-explanatory."""
    if task.state is TaskState.INPUT_REQUIRED and is_asked(task):
        asked = [message for message in task.messages if message.role == "agent"]
        if asked:
            return asked[-1]
    if task.state is TaskState.COMPLETED or not task.reason:
        return None
    message_id = f"{task.id}:{task.state.value}:{task.updated_at.timestamp():.6f}"
    return TaskMessage(message_id, "agent", (Part(text=task.reason),))


def _about(task: Task) -> dict[str, object]:
    """Additional fields of a task in the dialect: `metadata.synapse`."""
    return {
        "target": task.target,
        "sender": task.sender.sender_id,
        "priority": task.priority,
        "delivery": task.delivery.value,
        "reason": task.reason,
    }


def _status(task: Task, files: Files) -> pb.TaskStatus:
    message = status_message(task)
    return pb.TaskStatus(
        state=_STATES[task.state],
        timestamp=_time(task.updated_at),
        message=_message(message, task, files) if message is not None else None,
    )


def _message(message: TaskMessage, task: Task, files: Files) -> pb.Message:
    return pb.Message(
        message_id=sound(message.message_id),
        context_id=task.context_id,
        task_id=task.id,
        role=pb.ROLE_USER if message.role == "user" else pb.ROLE_AGENT,
        parts=[_part(part, files) for part in message.parts],
        metadata=struct_of(message.metadata) if message.metadata else None,
        extensions=[sound(uri) for uri in message.extensions],
        reference_task_ids=[sound(reference) for reference in message.references],
    )


def _artifact_parts(artifact: Artifact, files: Files) -> list[pb.Part]:
    return [_part(part, files) for part in artifact.parts or (Part(text=artifact.text),)]


def _part(part: Part, files: Files) -> pb.Part:
    """Convert a part; a file whose content is not available is given by its path."""
    found = pb.Part(
        filename=sound(part.name),
        media_type=sound(part.media_type),
        metadata=struct_of(part.metadata) if part.metadata else None,
    )
    if part.kind == "data":
        found.data.CopyFrom(value_of(part.data))
    elif part.kind == "url":
        found.url = sound(part.text)
    elif part.kind == "file" and part.path in files:
        found.raw = files[part.path]
    elif part.kind == "file":
        found.url = Path(part.path).as_uri()
    else:
        found.text = sound(part.text)
    return found


def _time(moment: datetime) -> Timestamp:
    """A time with milliseconds (section 5.6.1)."""
    stamp = Timestamp()
    exact = moment.astimezone(UTC).replace(tzinfo=None)
    stamp.FromDatetime(exact.replace(microsecond=exact.microsecond // 1000 * 1000))
    return stamp


# -- contents of files ---


async def files_of(*tasks: Task) -> Files:
    parts: list[Part] = []
    for task in tasks:
        parts += [part for artifact in task.artifacts for part in artifact.parts]
        parts += [part for message in task.messages for part in message.parts]
    return await read_files(parts)


async def read_files(parts: Sequence[Part]) -> Files:
    paths = tuple(dict.fromkeys(part.path for part in parts if part.kind == "file" and part.path))
    return await asyncio.to_thread(_read, paths) if paths else NO_FILES


def _read(paths: Iterable[str]) -> Files:
    found: dict[str, bytes] = {}
    left = MAX_FILES
    for path in paths:
        content = _read_one(path, left)
        if content is not None:
            found[path] = content
            left -= len(content)
    return found


def _read_one(path: str, most: int) -> bytes | None:
    try:
        # The path may have become a pipe or a link since: do not block on it or follow it.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return None
        return file.read(most)


# -- their messages as ours ---


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message whose files are not written yet; the request lacks its text and file paths."""

    request: MessageRequest
    content: tuple[Part | Upload, ...]

    async def written(self, folder: Path, task_id: str) -> MessageRequest:
        """Write the files into the agent's working folder and complete the request."""
        parts = await receive(self.content, folder, task_id)
        text = text_with_files(parts, folder)
        if not text.strip():
            raise MessageError("the message is empty", "put text into message.parts[0].text")
        assert self.request.message is not None
        return replace(self.request, text=text, message=replace(self.request.message, parts=parts))


def draft_of(params: pb.SendMessageRequest, call: ProtocolCall) -> MessageDraft:
    """Parse a message, without looking up the task that it continues."""
    message = params.message
    if message.role == pb.ROLE_AGENT:
        raise InvalidParamsError("message.role is ROLE_AGENT", {"hint": "callers write as ROLE_USER"})
    if len(message.parts) > MAX_PARTS:
        raise InvalidParamsError(f"the message has more than {MAX_PARTS} parts")
    for name in ("message_id", "context_id", "task_id"):
        if len(getattr(message, name)) > MAX_ID:
            raise InvalidParamsError(f"message.{name} has more than {MAX_ID} characters")
    own, outer = object_of(message.metadata), object_of(params.metadata)
    metadata = {**outer, **own}
    content = with_files((_content(part) for part in message.parts), call.files)
    request = MessageRequest(
        text="",
        sender=call.visitor.sender(metadata),
        priority=call.visitor.check_priority(priority_of(own, outer)),
        response_expected=True,
        metadata=own_metadata(check_metadata(metadata)),
        caller=call.visitor.caller,
        message=TaskMessage(
            message.message_id,
            "user",
            tuple(map(_outline, content)),
            own,
            tuple(message.extensions),
            tuple(message.reference_task_ids),
        ),
        follows=message.task_id,
        context_id=message.context_id,
    )
    return MessageDraft(request, content)


def _content(part: pb.Part) -> Part | Upload:
    name, kind, metadata = part.filename, part.media_type, check_metadata(object_of(part.metadata))
    check_media_type(kind, "a part")
    match part.WhichOneof("content"):
        case "text":
            return Part("text", part.text, name=name, media_type=kind, metadata=metadata)
        case "url":
            return Part("url", part.url, name=name, media_type=kind, metadata=metadata)
        case "data":
            return Part(
                "data", data=check_data(json_of(part.data)), name=name, media_type=kind, metadata=metadata
            )
        case "raw":
            return Upload(part.raw, name, kind, metadata)
    raise InvalidParamsError("a part has none of text, raw, url and data")


def _outline(content: Part | Upload) -> Part:
    if isinstance(content, Part):
        return content
    return Part("file", name=content.name, media_type=content.media_type, metadata=content.metadata)


# -- JSON and protobuf's Struct: values that one cannot represent are converted ---


def struct_of(fields: Mapping[str, object]) -> Struct:
    fitting = _fitting(fields)
    assert isinstance(fitting, dict)
    return ParseDict(fitting, Struct())


def value_of(value: object) -> Value:
    return struct_of({"": value}).fields[""]


def json_of(message: Struct | Value) -> object:
    """The JSON value of a Struct or Value, with whole numbers as integers again."""
    return _whole(MessageToDict(message))


def object_of(struct: Struct) -> dict[str, object]:
    found = json_of(struct)
    assert isinstance(found, dict)
    return found


def _fitting(value: object, levels: int = MAX_DATA_DEPTH) -> object:
    if not levels and isinstance(value, Mapping | list | tuple):  # of an agent, or of an earlier version
        return sound(json.dumps(value, ensure_ascii=False, default=str))
    if isinstance(value, Mapping):
        return {sound(str(key)): _fitting(inner, levels - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fitting(inner, levels - 1) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return sound(str(value))


def _whole(value: object) -> object:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT:
        return int(value)
    return value
