"""Tasks as the protocol tells them (A2A section 4.1), made of our snapshots and of nothing else."""

from __future__ import annotations

import asyncio
import math
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from synapse_tui.a2a.wire import MAX_PARTS, check_media_type, check_metadata, own_metadata, sound, with_files
from synapse_tui.agents.delivery.incoming import Upload, receive, text_with_files
from synapse_tui.content import Artifact, Part, TaskMessage, artifact_id
from synapse_tui.errors import MessageError
from synapse_tui.messages.streams import Chunk
from synapse_tui.messages.tasks import is_asked
from synapse_tui.model import MessageRequest, Task, TaskState

from .calls import Call, priority_of

MAX_EXACT = 2**53
"""Greater whole numbers are no numbers of JSON that everybody reads alike; they are told as text."""


def struct_of(fields: Mapping[str, object]) -> Struct:
    """A Struct of a JSON object."""
    fitting = _fitting(fields)
    assert isinstance(fitting, dict)
    return ParseDict(fitting, Struct())


def value_of(value: object) -> Value:
    """A Value of a JSON value."""
    return struct_of({"": value}).fields[""]


def json_of(message: Struct | Value) -> object:
    """The JSON value of a Struct or a Value; whole numbers are integers again."""
    return _whole(MessageToDict(message))


def object_of(struct: Struct) -> dict[str, object]:
    """The JSON object of a Struct."""
    found = json_of(struct)
    assert isinstance(found, dict)
    return found


def _fitting(value: object) -> object:
    if isinstance(value, Mapping):
        return {sound(str(key)): _fitting(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fitting(inner) for inner in value]
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


Files = Mapping[str, bytes]
"""Contents of files by their paths; see `files.read_files`."""
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


def state_proto(state: TaskState) -> pb.TaskState:
    """A state in the protocol's words."""
    return _STATES[state]


def state_of(number: pb.TaskState) -> TaskState | None:
    """Our word for a state of the protocol; None for one that no task of ours can have."""
    return _OURS.get(number)


def task_proto(
    task: Task, files: Files = NO_FILES, *, history: int | None = None, artifacts: bool = True
) -> pb.Task:
    """A task.

    Args:
        task: The snapshot.
        files: Contents of its files.
        history: How many messages of its history at most, the newest; None for all (section 3.2.4).
        artifacts: Whether with its artifacts.
    """
    told = history_of(task)
    shown = told if history is None else told[max(0, len(told) - history) :]
    return pb.Task(
        id=task.id,
        context_id=task.context_id,
        status=status_proto(task, files),
        artifacts=[
            artifact_proto(each, position, files)
            for position, each in enumerate(task.artifacts, 1)
            if artifacts
        ],
        history=[message_proto(each, task, files) for each in shown],
        metadata=struct_of({**task.metadata, "synapse": _about(task)}),
    )


def _about(task: Task) -> dict[str, object]:
    """What the dialect tells of a task besides: `metadata.synapse`."""
    return {
        "target": task.target,
        "sender": task.sender.sender_id,
        "priority": task.priority,
        "delivery": task.delivery.value,
        "reason": task.reason,
    }


def history_of(task: Task) -> Sequence[TaskMessage]:
    """The messages of a task, oldest first; a plain one is its text."""
    return task.messages or (TaskMessage(task.id, "user", (Part(text=task.text),)),)


def status_proto(task: Task, files: Files = NO_FILES) -> pb.TaskStatus:
    """The status of a task, with the words that explain it where it is no plain progress."""
    told = pb.TaskStatus(state=state_proto(task.state), timestamp=time_proto(task.updated_at))
    words = status_message(task)
    if words is not None:
        told.message.CopyFrom(message_proto(words, task, files))
    return told


def status_message(task: Task) -> TaskMessage | None:
    """What a person should know of the state: why it ended so, what is asked, why the message is held.

    Returns:
        What the agent asks in its own words, else the reason; None when the state says it all.
    """
    if task.state is TaskState.INPUT_REQUIRED and is_asked(task):
        asked = [each for each in task.messages if each.role == "agent"]
        if asked:
            return asked[-1]
    if task.state is TaskState.COMPLETED or not task.reason:
        return None
    place = f"{task.id}:{task.state.value}:{task.updated_at.timestamp():.6f}"
    return TaskMessage(place, "agent", (Part(text=task.reason),))


def message_proto(message: TaskMessage, task: Task, files: Files = NO_FILES) -> pb.Message:
    """A message of a task."""
    return pb.Message(
        message_id=sound(message.message_id),
        context_id=task.context_id,
        task_id=task.id,
        role=pb.ROLE_USER if message.role == "user" else pb.ROLE_AGENT,
        parts=[part_proto(part, files) for part in message.parts],
        metadata=struct_of(message.metadata) if message.metadata else None,
        extensions=[sound(uri) for uri in message.extensions],
        reference_task_ids=[sound(each) for each in message.references],
    )


def answer_message(task: Task, files: Files = NO_FILES) -> pb.Message:
    """The message by which a task was answered (`Artifact.as_message`), told in place of the task."""
    position = len(task.artifacts)
    artifact = task.artifacts[-1]
    return pb.Message(
        message_id=f"{task.id}:{artifact_id(artifact, position)}",
        context_id=task.context_id,
        role=pb.ROLE_AGENT,
        parts=[part_proto(part, files) for part in parts_of(artifact)],
    )


def artifact_proto(artifact: Artifact, position: int, files: Files = NO_FILES) -> pb.Artifact:
    """An artifact.

    Args:
        artifact: The artifact.
        position: Its position in the task, from 1.
        files: Contents of its files.
    """
    return pb.Artifact(
        artifact_id=artifact_id(artifact, position),
        name=sound(artifact.name),
        parts=[part_proto(part, files) for part in parts_of(artifact)],
        metadata=struct_of({"truncated": True}) if artifact.truncated else None,
    )


def parts_of(artifact: Artifact) -> Sequence[Part]:
    """The content of an artifact."""
    return artifact.parts or (Part(text=artifact.text),)


def part_proto(part: Part, files: Files = NO_FILES) -> pb.Part:
    """A part; a file whose content is not at hand is named by its path."""
    about = pb.Part(
        filename=sound(part.name),
        media_type=sound(part.media_type),
        metadata=struct_of(part.metadata) if part.metadata else None,
    )
    if part.kind == "data":
        about.data.CopyFrom(value_of(part.data))
    elif part.kind == "url":
        about.url = sound(part.text)
    elif part.kind == "file" and part.path in files:
        about.raw = files[part.path]
    elif part.kind == "file":
        about.url = Path(part.path).as_uri()
    else:
        about.text = sound(part.text)
    return about


def status_event(task: Task, files: Files = NO_FILES) -> pb.TaskStatusUpdateEvent:
    """The event that tells of a task's new status."""
    return pb.TaskStatusUpdateEvent(
        task_id=task.id,
        context_id=task.context_id,
        status=status_proto(task, files),
        metadata=struct_of({"synapse": _about(task)}),
    )


def chunk_event(task: Task, chunk: Chunk, files: Files = NO_FILES) -> pb.TaskArtifactUpdateEvent:
    """The event that tells of some of an artifact."""
    artifact = pb.Artifact(
        artifact_id=chunk.artifact_id, parts=[part_proto(part, files) for part in chunk.parts]
    )
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


def time_proto(moment: datetime) -> Timestamp:
    """A time; the protocol knows milliseconds (section 5.6.1)."""
    stamp = Timestamp()
    exact = moment.astimezone(UTC).replace(tzinfo=None)
    stamp.FromDatetime(exact.replace(microsecond=exact.microsecond // 1000 * 1000))
    return stamp


MAX_BYTES = 4 * 1024 * 1024
"""How much of files goes into one answer; what is over is named by its path."""


async def files_of(*tasks: Task) -> Files:
    """The contents of the files that belong to some tasks."""
    parts: list[Part] = []
    for task in tasks:
        parts += [part for artifact in task.artifacts for part in artifact.parts]
        parts += [part for message in task.messages for part in message.parts]
    return await read_files(parts)


async def read_files(parts: Sequence[Part]) -> Files:
    """The contents of the files among some parts, as many as fit into an answer."""
    paths = tuple(dict.fromkeys(part.path for part in parts if part.kind == "file" and part.path))
    return await asyncio.to_thread(_read, paths) if paths else NO_FILES


def _read(paths: Iterable[str]) -> Files:
    found: dict[str, bytes] = {}
    left = MAX_BYTES
    for path in paths:
        content = _read_one(Path(path), left)
        if content is not None:
            found[path] = content
            left -= len(content)
    return found


def _read_one(path: Path, most: int) -> bytes | None:
    """The content of a regular file of at most that many bytes; nothing else is opened."""
    try:
        # What was a file once may be a pipe or a link by now: none is waited for or followed.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            return None
        return file.read(most)


MAX_ID = 200
"""Characters of an id that a caller makes."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that was read, and whose files are not written yet.

    Attributes:
        request: The request; its text is empty, and its files have no paths.
        content: The message's parts.
    """

    request: MessageRequest
    content: tuple[Part | Upload, ...]

    async def written(self, folder: Path, task_id: str) -> MessageRequest:
        """The request once its files lie in the agent's project.

        Args:
            folder: Working folder of the agent.
            task_id: Id of the task that the message is for.

        Raises:
            MessageError: There is nothing in it, or its files cannot be written.
        """
        parts = await receive(self.content, folder, task_id)
        text = text_with_files(parts, folder)
        if not text.strip():
            raise MessageError("the message is empty", "put text into message.parts[0].text")
        assert self.request.message is not None
        return replace(self.request, text=text, message=replace(self.request.message, parts=parts))


def draft_of(params: pb.SendMessageRequest, call: Call) -> Draft:
    """Read a message; a task that it goes on with is not looked at.

    Raises:
        A2AError: It is none that an agent can take.
        SynapseError: The same.
    """
    message = params.message
    _check(message)
    own, outer = object_of(message.metadata), object_of(params.metadata)
    about = {**outer, **own}
    content = with_files((content_of(part) for part in message.parts), call.files)
    told = TaskMessage(
        message.message_id,
        "user",
        tuple(map(_outline, content)),
        own,
        tuple(message.extensions),
        tuple(message.reference_task_ids),
    )
    request = MessageRequest(
        text="",
        sender=call.visitor.sender(about),
        priority=call.visitor.check_priority(priority_of(own, outer)),
        response_expected=True,
        metadata=own_metadata(check_metadata(about)),
        caller=call.visitor.caller,
        message=told,
        follows=message.task_id,
        context_id=message.context_id,
    )
    return Draft(request, content)


def _check(message: pb.Message) -> None:
    if message.role == pb.ROLE_AGENT:
        raise InvalidParamsError("message.role is ROLE_AGENT", {"hint": "callers write as ROLE_USER"})
    if len(message.parts) > MAX_PARTS:
        raise InvalidParamsError(f"the message has more than {MAX_PARTS} parts")
    for name in ("message_id", "context_id", "task_id"):
        if len(getattr(message, name)) > MAX_ID:
            raise InvalidParamsError(f"message.{name} has more than {MAX_ID} characters")


def content_of(part: pb.Part) -> Part | Upload:
    """The content of a part.

    Raises:
        InvalidParamsError: It has none.
        HttpProblem: Its type is not known.
    """
    name, kind, about = part.filename, part.media_type, object_of(part.metadata)
    check_media_type(kind, "a part")
    match part.WhichOneof("content"):
        case "text":
            return Part("text", part.text, name=name, media_type=kind, metadata=about)
        case "url":
            return Part("url", part.url, name=name, media_type=kind, metadata=about)
        case "data":
            return Part("data", data=json_of(part.data), name=name, media_type=kind, metadata=about)
        case "raw":
            return Upload(part.raw, name, kind, about)
    raise InvalidParamsError("a part has none of text, raw, url and data")


def _outline(content: Part | Upload) -> Part:
    """A part without the bytes of its file."""
    if isinstance(content, Part):
        return content
    return Part("file", name=content.name, media_type=content.media_type, metadata=content.metadata)
