"""Messages of the protocol as requests to an agent (A2A sections 3.2.1 and 4.1.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError

from synapse_tui.a2a.wire import MAX_PARTS, check_media_type, check_metadata, own_metadata, with_files
from synapse_tui.agents.delivery.incoming import Upload, receive, text_with_files
from synapse_tui.content import Part, TaskMessage
from synapse_tui.errors import MessageError
from synapse_tui.model import MessageRequest

from .calls import Call
from .extensions import priority_of
from .struct import json_of, object_of

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
