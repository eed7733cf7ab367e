"""Encodes changes of tasks as JSON in the format of each kind of subscription; loads the SDK."""

from __future__ import annotations

from collections.abc import Mapping

from a2a.compat.v0_3.conversions import to_compat_task
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

from synapse_tui.a2a.protocol.convert import (
    NO_FILES,
    Files,
    artifact_proto,
    read_files,
    status_event,
    task_proto,
)
from synapse_tui.a2a.wire import task_json
from synapse_tui.messages.records import PushProtocol

from .subscriptions import PushedChange


async def encode_with_files(change: PushedChange, protocol: PushProtocol) -> Mapping[str, object]:
    """Encode a change with the contents of its files."""
    return encode(change, protocol, await read_files(change.parts))


def encode(change: PushedChange, protocol: PushProtocol, files: Files = NO_FILES) -> Mapping[str, object]:
    """Encode a change, by default with its files as paths."""
    if protocol is PushProtocol.DIALECT:
        return {"task_id": change.task.id, **task_json(change.task)}
    if protocol is PushProtocol.V03:
        task = to_compat_task(task_proto(change.task, files))
        fields: Mapping[str, object] = task.model_dump(mode="json", by_alias=True, exclude_none=True)
        return fields
    return MessageToDict(_stream_response(change, files))


def _stream_response(change: PushedChange, files: Files) -> pb.StreamResponse:
    task = change.task
    if change.kind == "status":
        return pb.StreamResponse(status_update=status_event(task))
    if change.kind == "artifact":
        artifact = artifact_proto(task.artifacts[change.index], change.index + 1, files)
        update = pb.TaskArtifactUpdateEvent(
            task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=True
        )
        return pb.StreamResponse(artifact_update=update)
    return pb.StreamResponse(task=task_proto(task, files))
