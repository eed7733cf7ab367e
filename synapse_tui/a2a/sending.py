"""Messages of the dialect as requests to an agent."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from synapse_tui.agents.delivery.incoming import receive, text_with_files
from synapse_tui.content import TaskMessage
from synapse_tui.errors import MessageError, MessageTooLarge
from synapse_tui.model import MAX_MESSAGE_BYTES, MessageRequest

from .agent import HostedAgent
from .body_files import BodyFiles
from .problems import HttpProblem
from .request_state import find_task
from .visitor import Visitor
from .wire import SendBody, check_metadata, own_metadata, text_of
from .wire_parts import content_of, only_text


async def request_of(
    agent: HostedAgent, body: SendBody, caller: Visitor, priority: int, files: BodyFiles | None = None
) -> MessageRequest:
    """A message as the agent takes it; its files are written into the agent's project.

    Args:
        agent: Who is to be given it.
        body: The message.
        caller: Who sends it.
        priority: 1 to 5.
        files: The files of the request's body, where that is large.

    Raises:
        MessageError: It cannot be taken.
        HttpProblem: The same.
    """
    request = _without_text(body, caller, priority)
    if body.message.task_id:
        request = _following(agent, request, body.message.task_id, caller)
    content = content_of(body.message.parts, files)
    if only_text(content) and not request.follows:
        return replace(request, text=checked_size(text_of(body.message.parts)))
    task_id = str(uuid4())
    parts = await receive(content, agent.cwd, request.follows or task_id)
    return replace(
        request,
        text=checked_size(text_with_files(parts, agent.cwd)),
        task_id=task_id,
        message=TaskMessage(body.message.message_id or str(uuid4()), "user", parts),
    )


def _following(agent: HostedAgent, request: MessageRequest, task_id: str, caller: Visitor) -> MessageRequest:
    """A message that goes on with a task: agents go on with their own only."""
    task = find_task(agent, task_id, caller)
    if caller.sender_id and task.sender.sender_id != request.sender.sender_id:
        raise HttpProblem(
            403,
            "not_your_task",
            f"task {task.short_id} was sent by {task.sender.sender_id}",
            "agents go on with their own tasks only",
        )
    return replace(request, follows=task.id)


def _without_text(body: SendBody, caller: Visitor, priority: int) -> MessageRequest:
    # The original's words; "notify" means that its command does not wait, but its agent does.
    asked = body.metadata.get("response_mode") in ("wait", "notify")
    expected = body.metadata.get("response_expected", asked)
    if not isinstance(expected, bool):
        raise MessageError("metadata.response_expected is neither true nor false", "send a boolean")
    return MessageRequest(
        text="",
        sender=caller.sender(body.metadata),
        priority=caller.check_priority(priority),
        response_expected=expected,
        metadata=own_metadata(check_metadata(body.metadata)),
        caller=caller.caller,
    )


def checked_size(text: str) -> str:
    """The text of a message if it is not too long.

    Raises:
        MessageTooLarge: It is.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(
            f"the message has {size} bytes, more than {MAX_MESSAGE_BYTES}",
            "put the text into a file and name the file in the message",
        )
    return text
