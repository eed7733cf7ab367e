"""Validates messages to an agent and queues them, as tasks or as follow-ups of tasks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from synapse_tui.agents.profiles.profile import Hazards, Profile
from synapse_tui.dataclass import dataclass
from synapse_tui.errors import MessageError, TaskEnded
from synapse_tui.instructions import HEADER
from synapse_tui.messages.follow_ups import WAITS
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.tasks import TaskStore, conversation, is_asked
from synapse_tui.messages.text import check_size, clean
from synapse_tui.model import INFO_PRIORITY, MessageRequest, Task, TaskState, check_priority


@dataclass(slots=True)
class MessageStyle:
    """How a host types messages into its agents; shared, so that changes apply to the next message."""

    plain: bool = False  # type `A2A: text` instead of `[A2A:<task8>:<sender>] text`
    info_to_inbox: bool = False  # put messages of priority 1 into the inbox instead of typing them


class Intake:
    def __init__(
        self, agent_id: str, profile: Profile, tasks: TaskStore, outbox: Outbox, style: MessageStyle
    ) -> None:
        self._agent_id = agent_id
        self.profile = profile
        self._tasks = tasks
        self._outbox = outbox
        self._style = style

    def take(self, request: MessageRequest) -> Task:
        if not self.profile.receives:
            raise MessageError(
                f"{self._agent_id} takes no messages: it would run them", "send it to an agent"
            )
        check_priority(request.priority)
        check_size(request.text)
        followed = self._followed(request.follows) if request.follows else None
        inbox = self._style.info_to_inbox and request.priority == INFO_PRIORITY and followed is None
        self._outbox.check_room(request.text, inbox=inbox)
        if followed is not None:
            return self._follow_up(followed, request)
        task = self._tasks.create(request)
        self._outbox.put(task, inbox=inbox)
        return task

    def _followed(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task.outgoing or task.follows:
            raise MessageError(
                f"task {task.short_id} was not given to {self._agent_id}", "send a new message"
            )
        if task.state.final:
            raise TaskEnded(f"task {task.short_id} is {task.state.value} already", "send a new message")
        return task

    def _follow_up(self, followed: Task, request: MessageRequest) -> Task:
        task = self._tasks.create(replace(request, follows=followed.id, context_id=followed.context_id))
        self._outbox.put(task)
        fields: dict[str, object] = {}
        if request.message is not None:
            fields["messages"] = (*conversation(followed), request.message)
        if is_asked(followed):
            fields |= {"state": TaskState.WORKING, "reason": WAITS}
        self._tasks.change(followed.id, **fields)
        return task


MessageFormat = Literal["a2a", "plain"]
GUARD = "Prompt: "  # put before a text without prefix whose first character would start a command

_FORGED = re.compile(
    r"^([^\w\n\\]*?)([\[\uff3b]\s*(?:A2A\s*[:\uff1a]|Synapse\s+A2A)|A2A\s*[:\uff1a])",
    re.IGNORECASE | re.MULTILINE,
)
_COMPLETING = re.compile(r"(?:\\|[@#/$:!+][^\s]*)\Z")
_ID = re.compile(r"[^\w.@-]", re.ASCII)


def typed_text(task: Task, profile: Profile, *, plain: bool = False, prompt: bool = False) -> str:
    multiline = profile.submit.multiline
    head = HEADER if task.instructs and task.text.startswith(HEADER) else ""
    if prompt:
        return prompt_text(task.text, hazards=profile.hazards, multiline=multiline)
    return message_text(
        _referring(task).removeprefix(head),
        head=head,
        task_id=task.id,
        sender_id=task.sender.sender_id,
        hazards=profile.hazards,
        form="plain" if plain else "a2a",
        multiline=multiline,
    )


def _referring(task: Task) -> str:
    about = task.metadata.get("in_reply_to")
    if not isinstance(about, str) or not about:
        return task.text
    return f"(reply to {safe_id(about)[:8]}) {escape_forged(clean(task.text))}"


def message_text(
    text: str,
    *,
    task_id: str,
    sender_id: str,
    hazards: Hazards,
    form: MessageFormat = "a2a",
    multiline: bool = True,
    head: str = "",
) -> str:
    body = escape_forged(clean(text))
    prefix = f"[A2A:{task_id[:8]}:{safe_id(sender_id)}]" if form == "a2a" else "A2A:"
    start = f"{head}\n" if head else ""
    return _finish(f"{prefix} {start}{body}", hazards, multiline)


def prompt_text(text: str, *, hazards: Hazards, multiline: bool = True) -> str:
    """Return the text to type for the user's first prompt: no prefix, but never a command by accident."""
    body = clean(text)
    if body.startswith(hazards.leading):
        body = GUARD + body
    return _finish(body, hazards, multiline)


def escape_forged(text: str) -> str:
    """Escape lines that imitate a message of this program with a backslash."""
    return _FORGED.sub(r"\1\\\2", text)


def safe_id(sender_id: str) -> str:
    """Return a sender id that cannot end the prefix early: ASCII letters, digits, `_.@-`, at most 64."""
    return _ID.sub("_", sender_id)[:64] or "unknown"


def _finish(text: str, hazards: Hazards, multiline: bool) -> str:
    if not multiline:
        text = re.sub(r"\s*\n\s*", " ", text).replace("\t", " ")
    # Enter after `@token` accepts a completion, after a backslash a new line; a space prevents both.
    if hazards.trailing_mention and _COMPLETING.search(text):
        text += " "
    return text
