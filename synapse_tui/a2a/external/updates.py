"""What an external agent tells of a task, in words of ours: the same for every protocol it speaks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synapse_tui.content import Artifact, Part, TaskMessage
from synapse_tui.model import TaskState

from .untrusted import clean_line, clean_text


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to an external agent.

    Attributes:
        text: The message.
        message_id: Its id; the same when it is sent again.
        task_id: Its task that it goes on with, as the agent calls it; empty for a new one.
        context_id: The conversation as the agent calls it; empty for a new one.
    """

    text: str
    message_id: str
    task_id: str = ""
    context_id: str = ""


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    """A task has another state.

    Attributes:
        task_id: The agent's id of it.
        context_id: The agent's id of the conversation.
        state: The state.
        message: What the agent says about it; None for nothing.
        auth: Whether it waits for credentials (AUTH_REQUIRED), not for an answer.
    """

    task_id: str
    context_id: str
    state: TaskState
    message: TaskMessage | None = None
    auth: bool = False

    @property
    def at_rest(self) -> bool:
        """Whether nothing more comes before somebody says something."""
        return self.state.final or self.state is TaskState.INPUT_REQUIRED


@dataclass(frozen=True, slots=True)
class Snapshot(StatusUpdate):
    """A task as it is now.

    Attributes:
        artifacts: All its results.
        history: What the agent has said before.
    """

    artifacts: tuple[Artifact, ...] = ()
    history: tuple[TaskMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a result.

    Attributes:
        task_id: The agent's id of the task.
        context_id: The agent's id of the conversation.
        artifact: The piece.
        append: Whether it goes on with what there is of that artifact.
        last: Whether it is the last one.
    """

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """An answer without a task.

    Attributes:
        context_id: The agent's id of the conversation.
        message: The answer.
    """

    context_id: str
    message: TaskMessage


Update = Snapshot | StatusUpdate | Chunk | DirectAnswer


def at_rest(update: Update) -> bool:
    """Whether nothing more comes after an update before somebody says something."""
    if isinstance(update, StatusUpdate):
        return update.at_rest
    return isinstance(update, DirectAnswer)


def text_of(parts: Iterable[Part]) -> str:
    """Parts as text for a person and for an agent; what is no text is described.

    Agents that write bit by bit leave a part for each bit: those are put together where a blank shows it.
    """
    text = ""
    for each in filter(None, map(_text_of_part, parts)):
        joined = not text or text[-1].isspace() or each[0].isspace()
        text += each if joined else f"\n{each}"
    return text


def text_in_one(artifact: Artifact) -> str:
    """The text of an artifact as if its parts had been written bit by bit; empty where it is not all text."""
    if any(part.kind != "text" for part in artifact.parts):
        return ""
    return "".join(part.text for part in artifact.parts)


def text_of_message(message: TaskMessage | None) -> str:
    """The text of a message; empty for none."""
    return text_of(message.parts) if message is not None else ""


def artifact_of(parts: Sequence[Part], *, artifact_id: str = "", name: str = "") -> Artifact:
    """An artifact of parts that are clean."""
    return Artifact(text_of(parts), artifact_id=artifact_id, name=name, parts=tuple(parts))


def _text_of_part(part: Part) -> str:
    if part.kind == "text":
        return part.text
    if part.kind == "data":
        return _json(part.data)
    if part.kind == "url":
        return f"[{_about(part, 'link')}: {clean_line(part.text, 500)}]"
    size = part.metadata.get("size")
    told = f", {size:,} bytes" if isinstance(size, int) else ""
    where = f", kept as {part.path}" if part.path else ", not kept"
    return f"[{_about(part, 'file')}{told}{where}]"


def _about(part: Part, kind: str) -> str:
    words = [kind, part.name, f"({part.media_type})" if part.media_type else ""]
    return " ".join(word for word in words if word)


def _json(value: object) -> str:
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True))
    except (TypeError, ValueError):
        return "[data that cannot be shown]"
