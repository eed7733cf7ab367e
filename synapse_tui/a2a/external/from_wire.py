"""Messages of the SDK in our words: cleaned, bounded, never trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.model import TaskState

from .untrusted import clean_line, clean_text
from .updates import Chunk, DirectAnswer, Snapshot, StatusUpdate, Update, artifact_of

MAX_PARTS = 200
MAX_ARTIFACTS = 100
MAX_HISTORY = 50
MAX_ID = 256

_STATES: Mapping[int, TaskState] = {
    pb.TASK_STATE_SUBMITTED: TaskState.SUBMITTED,
    pb.TASK_STATE_WORKING: TaskState.WORKING,
    pb.TASK_STATE_COMPLETED: TaskState.COMPLETED,
    pb.TASK_STATE_FAILED: TaskState.FAILED,
    pb.TASK_STATE_CANCELED: TaskState.CANCELED,
    pb.TASK_STATE_REJECTED: TaskState.REJECTED,
    pb.TASK_STATE_INPUT_REQUIRED: TaskState.INPUT_REQUIRED,
    pb.TASK_STATE_AUTH_REQUIRED: TaskState.INPUT_REQUIRED,
}


def update_of(response: pb.StreamResponse) -> Update | None:
    """One event of a stream; None for one that tells nothing."""
    kind = response.WhichOneof("payload")
    if kind == "task":
        return snapshot_of(response.task)
    if kind == "message":
        return DirectAnswer(_id(response.message.context_id), _message(response.message))
    if kind == "status_update":
        event = response.status_update
        return StatusUpdate(
            _id(event.task_id),
            _id(event.context_id),
            _state(event.status.state),
            _status_message(event.status),
            auth=event.status.state == pb.TASK_STATE_AUTH_REQUIRED,
        )
    if kind == "artifact_update":
        piece = response.artifact_update
        return Chunk(
            _id(piece.task_id),
            _id(piece.context_id),
            _artifact(piece.artifact),
            append=piece.append,
            last=piece.last_chunk,
        )
    return None


def snapshot_of(task: pb.Task) -> Snapshot:
    """A task as it is."""
    said = [each for each in task.history if each.role == pb.ROLE_AGENT]
    return Snapshot(
        _id(task.id),
        _id(task.context_id),
        _state(task.status.state),
        _status_message(task.status),
        auth=task.status.state == pb.TASK_STATE_AUTH_REQUIRED,
        artifacts=tuple(_artifact(each) for each in task.artifacts[:MAX_ARTIFACTS]),
        history=tuple(_message(each) for each in said[-MAX_HISTORY:]),
    )


def _state(state: int) -> TaskState:
    """Our word for a state; one that is not known counts as working."""
    return _STATES.get(state, TaskState.WORKING)


def _status_message(status: pb.TaskStatus) -> TaskMessage | None:
    return _message(status.message) if status.HasField("message") and status.message.parts else None


def _message(message: pb.Message) -> TaskMessage:
    return TaskMessage(_id(message.message_id), "agent", _parts(message.parts))


def _artifact(artifact: pb.Artifact) -> Artifact:
    name = clean_line(artifact.name, 120)
    return artifact_of(_parts(artifact.parts), artifact_id=_id(artifact.artifact_id), name=name)


def _parts(parts: Iterable[pb.Part]) -> tuple[Part, ...]:
    return tuple(_part(part) for part in list(parts)[:MAX_PARTS])


def _part(part: pb.Part) -> Part:
    name, media_type = clean_line(part.filename, 120), clean_line(part.media_type, 100)
    kind = part.WhichOneof("content")
    if kind == "raw":
        raw = bytes(part.raw)
        return Part("file", data=raw, name=name, media_type=media_type, metadata={"size": len(raw)})
    if kind == "url":
        return Part("url", text=clean_line(part.url, 2000), name=name, media_type=media_type)
    if kind == "data":
        return Part("data", data=_value(part), name=name, media_type=media_type)
    return Part("text", text=clean_text(part.text), name=name, media_type=media_type)


def _value(part: pb.Part) -> object:
    return _whole(MessageToDict(part).get("data"))


def _whole(value: object) -> object:
    """A JSON value whose whole numbers are so again: protobuf has only floating ones."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _id(text: str) -> str:
    """An id as the agent gave it, if it is of a length to be given back; else none."""
    return text if len(text) <= MAX_ID and text.isprintable() else ""
