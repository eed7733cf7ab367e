"""The vocabulary that every layer shares: states, senders, tasks, agent specifications; no behaviour."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from .content import Artifact, Part, TaskMessage, artifact_words
from .errors import InvalidValue

DEFAULT_PRIORITY = 3
INFO_PRIORITY = 1
INTERRUPT_PRIORITY = 5
LAYOUTS = ("tabs", "columns", "grid", "main")
"""How panes can be arranged."""
NOTIFICATIONS = ("off", "bell", "desktop", "both")
"""How the terminal around the application calls a person."""
THEMES = (
    *("auto", "dark", "light", "high-contrast", "high-contrast-light", "16", "nord", "gruvbox", "dracula"),
    *("tokyo-night", "monokai", "flexoki", "catppuccin-mocha", "catppuccin-macchiato", "catppuccin-frappe"),
    *("catppuccin-latte", "solarized-dark", "solarized-light", "rose-pine", "rose-pine-moon"),
    *("rose-pine-dawn", "atom-one-dark", "atom-one-light"),
)
"""Colours of the application; `auto` is the one that suits the terminal."""
AGENT_EXITED = "agent exited"
"""Why a message is held whose agent has ended while its host lives."""
IN_INBOX = "in the inbox"
"""Why a message is not typed that is kept for the agent to read."""
ANSWER_WANTED = "answer_wanted"
"""Metadata of a message whose sender waits for an answer also where it is kept for the agent to read."""
MAX_MESSAGE_BYTES = 1_000_000
"""The longest message text that is taken, in UTF-8 bytes."""


class AgentState(StrEnum):
    """What an agent is doing, as far as its signals tell (design, decision 5)."""

    STARTING = "STARTING"
    READY = "READY"
    PROCESSING = "PROCESSING"
    WAITING = "WAITING"
    """A permission or a question dialog is open: only a human may answer it."""
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"
    """No signal matches; messages are held."""
    EXITED = "EXITED"


class DeliveryState(StrEnum):
    """How far the delivery of a message into the agent's terminal has come (decision 4)."""

    QUEUED = "queued"
    HELD = "held"
    TYPING = "typing"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def final(self) -> bool:
        return self in (DeliveryState.DONE, DeliveryState.FAILED, DeliveryState.CANCELED)


class TaskState(StrEnum):
    """State of a task in the words of the HTTP dialect; the A2A states of section 4.1.3 in lower case."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"

    @property
    def final(self) -> bool:
        """Whether the task has ended (a terminal state in A2A's words)."""
        return self in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)


class ReplyState(StrEnum):
    """Whether the one who sent a message has been told what came of it."""

    NONE = ""
    """Nobody is to be told."""
    DUE = "due"
    TOLD = "told"
    FAILED = "failed"
    """The sender could not be told, and it is tried no more."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a message.

    Attributes:
        sender_id: An agent id, `user` for the person at the keyboard, or the name an outside caller gave.
        sender_type: The agent's type (`claude`), `user`, `system` or `external`.
        sender_endpoint: Where the sender's own server answers; empty when it has none.
        verified: Whether the sender proved to be who it says.
    """

    sender_id: str
    sender_type: str = "external"
    sender_endpoint: str = ""
    verified: bool = False


USER = Sender("user", "user", "", verified=True)
SYSTEM = Sender("synapse-system", "system", "", verified=True)
"""This program itself; nobody outside can prove to be it."""
INSTRUCTIONS = "instructions"
"""`metadata.kind` of the messages by which this program tells an agent of the others."""


@dataclass(frozen=True, slots=True)
class Task:
    """One message to an agent and all that became of it; a snapshot, replaced as a whole by each change.

    An outgoing task is the sender's own: it stands for the answer that the sender waits for.

    Attributes:
        id: UUID, shown to people as its first 8 characters.
        context_id: UUID of the session of the agent that keeps the task.
        target: Agent id of the receiver.
        sender: Who sent it.
        text: The message.
        priority: 1 (information) to 5 (interrupt).
        state: State of the task.
        delivery: State of the delivery into the terminal.
        reason: Why it is held or failed, in a few words for a person.
        artifacts: What the agent answered.
        response_expected: Whether the sender waits for the answer.
        metadata: Whatever else the sender gave; keys of ours win over the same keys from outside.
        created_at: When it was accepted, aware.
        updated_at: When it last changed, aware.
        outgoing: Whether it is the sender's own, and never typed.
        replied: Whether the agent itself has answered, in place of the text of its turn.
        reply: Whether the sender was told how it ended; of an outgoing task, whether its agent was.
        caller: Whose key brought it (`Principal.name`); empty for the user of this machine.
        messages: The conversation about it as the protocol tells it, oldest first; empty for a plain message.
        follows: Id of the task that it goes on with; typed as any message, but no task of its own.
    """

    id: str
    context_id: str
    target: str
    sender: Sender
    text: str
    priority: int
    created_at: datetime
    updated_at: datetime
    state: TaskState = TaskState.SUBMITTED
    delivery: DeliveryState = DeliveryState.QUEUED
    reason: str = ""
    artifacts: tuple[Artifact, ...] = ()
    response_expected: bool = False
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    outgoing: bool = False
    replied: bool = False
    reply: ReplyState = ReplyState.NONE
    caller: str = ""
    messages: tuple[TaskMessage, ...] = ()
    follows: str = ""

    @property
    def short_id(self) -> str:
        """The first 8 characters of the id."""
        return self.id[:8]

    @property
    def instructs(self) -> bool:
        """Whether it tells the agent of the others: only this program sends such, before all others."""
        return self.sender == SYSTEM and self.metadata.get("kind") == INSTRUCTIONS

    @property
    def answer(self) -> str:
        """What the sender is told: the agent's own reply if there is one, else all that its turn wrote."""
        texts = [artifact_words(artifact) for artifact in self.artifacts]
        return "\n".join(texts[-1:] if self.replied else texts)


class Parked(StrEnum):
    """Why a waiting message goes on only when a person lets it."""

    NO = ""
    HELD = "held"
    """A person held it, or it could not be typed."""
    RECOVERED = "recovered"
    """It waits from before a restart, or from before its agent was closed."""
    INBOX = "inbox"
    """It is kept for the agent to read, and not typed."""
    UNCERTAIN = "uncertain"
    """It may have been sent already."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """The place of a waiting message in its agent's outbox.

    Attributes:
        task_id: The message's task.
        rank: Messages are typed by rising rank.
        hold: Why it does not go on by itself.
        urgent: Whether a person put it before all others.
        entered: Whether Enter may have been pressed on it, and nothing proves yet what became of it.
        prompt: Whether it is the person's own first prompt, typed without a prefix.
    """

    task_id: str
    rank: float
    hold: Parked = Parked.NO
    urgent: bool = False
    entered: bool = False
    prompt: bool = False

    @property
    def parked(self) -> bool:
        """Whether a person must act before it goes on."""
        return self.hold is not Parked.NO


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """A message as a server or the router hands it to an agent.

    Attributes:
        text: The message.
        sender: Who sent it.
        priority: 1 to 5.
        response_expected: Whether the sender waits for the answer.
        task_id: UUID to give the task; empty to have one made.
        metadata: Whatever else came with it.
        caller: Whose key brought it; empty for the user of this machine.
        message: The message as the protocol brought it; None for a plain text.
        follows: Id of the open task that it goes on with; empty for a task of its own.
        context_id: Conversation that the caller named; empty for the agent's session.
    """

    text: str
    sender: Sender
    priority: int = DEFAULT_PRIORITY
    response_expected: bool = False
    task_id: str = ""
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    caller: str = ""
    message: TaskMessage | None = None
    follows: str = ""
    context_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks of an agent are wanted, the newest change first (A2A section 3.1.4).

    Attributes:
        context_id: Of this conversation; empty for all.
        states: In one of these states; empty for all.
        caller: Brought by this key; None for all.
        changed_after: Changed at this time or later, aware; None for always.
        limit: How many at most.
        cursor: `TaskPage.cursor` of the page before; empty for the first.
    """

    context_id: str = ""
    states: frozenset[TaskState] = frozenset()
    caller: str | None = None
    changed_after: datetime | None = None
    limit: int = 50
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks that a query means.

    Attributes:
        tasks: The newest change first.
        cursor: Where the next page begins; empty for none.
        total: How many tasks the query means in all.
    """

    tasks: tuple[Task, ...]
    cursor: str
    total: int


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a task.

    Attributes:
        text: The answer; for `failed` and `rejected` why, for `input_required` the question.
        state: What the task becomes by it.
        truncated: Whether rows of it are known to be missing.
        explicit: Whether the agent replied by itself, or this is the text of its turn.
        in_reply_to: Id of the receiver's task that it answers; empty in an answer to that very task.
        reason: What a person should know of it, in a few words; empty for nothing.
        parts: Its content where that is more than the text.
        as_message: Whether an A2A caller is answered by a message alone, in place of a task with an artifact.
    """

    text: str
    state: TaskState = TaskState.COMPLETED
    truncated: bool = False
    explicit: bool = True
    in_reply_to: str = ""
    reason: str = ""
    parts: tuple[Part, ...] = ()
    as_message: bool = False


@dataclass(frozen=True, slots=True)
class StateReport:
    """A state and why it was decided.

    Attributes:
        state: The state.
        rule: Name of the rule of the profile that decided.
        matched: The text it matched, at most 200 characters.
        since: Seconds on the session's monotonic clock.
        detail: What a person should know (`permission: Bash(rm -r build)`); may be empty.
    """

    state: AgentState
    rule: str
    matched: str
    since: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended: exactly one of the two is set.

    Attributes:
        code: Exit status, 0 to 255.
        signal: Number of the signal that ended it.
    """

    code: int | None = None
    signal: int | None = None

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.code == 0

    @property
    def words(self) -> str:
        """It in a few words: `exited with status 3`, `killed by SIGSEGV`."""
        if self.signal is None:
            return f"exited with status {self.code}"
        try:
            return f"killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"killed by signal {self.signal}"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What to open: one `PROFILE[:NAME][@DIR]` of the command line, or one entry of the settings.

    Attributes:
        profile: Name of the profile.
        name: Name given by the user; empty for none.
        cwd: Working folder; None for the project's.
        args: Arguments after the profile's own.
        port: Port to serve on; 0 for the first free one of the profile's range.
        prompt: First prompt, delivered as soon as the agent is ready; empty for none.
        restore: Whether it is opened to go on where it was: messages that still wait for it are not held.
        resume: Whether the agent takes up its last conversation in that folder (the profile's `resume`).
        last_port: Port that it was served on before: it is taken when it is free; 0 for none.
        told_as: Agent id under which the conversation that goes on got its instructions; empty for not yet.
        began: When that conversation began, in seconds since the epoch; 0 for not known.
    """

    profile: str
    name: str = ""
    cwd: Path | None = None
    args: tuple[str, ...] = ()
    port: int = 0
    prompt: str = ""
    restore: bool = False
    resume: bool = False
    last_port: int = 0
    told_as: str = ""
    began: float = 0.0


DEMO_AGENTS = tuple(AgentSpec("dummy", name, args=("--name", name)) for name in ("alice", "bob"))
"""What opens where no agent is installed; the README's first example names them."""


def check_priority(value: object) -> int:
    """Return the priority if it is one.

    Raises:
        InvalidValue: It is not a whole number from 1 to 5.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= INTERRUPT_PRIORITY:
        raise InvalidValue(f"priority {value!r} is not valid", "use 1 (information) to 5 (interrupt)")
    return value
