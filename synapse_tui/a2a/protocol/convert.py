"""Tasks as the protocol tells them (A2A section 4.1), made of our snapshots and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from a2a.types import a2a_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from synapse_tui.a2a.wire import sound
from synapse_tui.content import Artifact, Part, TaskMessage, artifact_id
from synapse_tui.messages.streams import Chunk
from synapse_tui.messages.tasks import is_asked
from synapse_tui.model import Task, TaskState

from .struct import struct_of, value_of

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
