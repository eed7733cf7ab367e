"""Shared vocabulary of all layers: states, senders, tasks and agent specifications, without behaviour."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from synapse_tui.system.dataclass import dataclass

from .content import Artifact, Part, TaskMessage, artifact_words
from .errors import InvalidValue

DEFAULT_PRIORITY = 3
INFO_PRIORITY = 1
INTERRUPT_PRIORITY = 5
LAYOUTS = ("tabs", "columns", "grid", "main")
NOTIFICATIONS = ("auto", "off", "bell", "desktop", "both")
THEMES = (
    *("auto", "dark", "light", "high-contrast", "high-contrast-light", "16", "nord", "gruvbox", "dracula"),
    *("tokyo-night", "monokai", "flexoki", "catppuccin-mocha", "catppuccin-macchiato", "catppuccin-frappe"),
    *("catppuccin-latte", "solarized-dark", "solarized-light", "rose-pine", "rose-pine-moon"),
    *("rose-pine-dawn", "atom-one-dark", "atom-one-light"),
)
"""Colour themes of the application; `auto` follows the terminal's background."""
SIGNS = ("auto", "drawn", "plain")
ORIGIN_ID = "origin_id"
"""Metadata key: the sender's id of the message, the same each time that it is sent."""
ANSWER_WANTED = "answer_wanted"
"""Metadata key: the sender waits for an answer even if the message goes to the inbox."""
MAX_MESSAGE_BYTES = 1_000_000
"""Maximum length of a message text, in UTF-8 bytes."""


class AgentState(StrEnum):
    """What an agent is doing, derived from its signals (design, decision 6)."""

    STARTING = "STARTING"
    READY = "READY"
    PROCESSING = "PROCESSING"
    WAITING = "WAITING"
    """A permission or question dialog is open; only a human may answer it."""
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"
    """No signal matches; messages are held."""
    SUSPENDED = "SUSPENDED"
    """Its process is stopped, as by Ctrl+Z in its own keys, until a person continues it."""
    EXITED = "EXITED"


class DeliveryState(StrEnum):
    """Progress of a message's delivery into the agent's terminal (design, decision 4)."""

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

    @property
    def waits(self) -> bool:
        """Whether the agent does not have it yet."""
        return not self.final and self is not DeliveryState.SUBMITTED


class TaskState(StrEnum):
    """State of a task as the HTTP API spells it: the A2A states of section 4.1.3 in lower case."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"

    @property
    def final(self) -> bool:
        """Whether this is a terminal state in the sense of A2A."""
        return self in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)

    @property
    def at_rest(self) -> bool:
        """Whether the agent does nothing more by itself: the task has ended, or waits for an answer."""
        return self.final or self is TaskState.INPUT_REQUIRED


class ReplyState(StrEnum):
    """Whether the sender of a message has been notified of its outcome."""

    NONE = ""
    """No notification is due."""
    DUE = "due"
    GIVEN = "told"
    FAILED = "failed"
    """Notifying the sender failed and is not retried."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message.

    Attributes:
        sender_id: An agent id, `user` for the person at the keyboard, or a name given by an outside caller.
        sender_type: The agent's type (`claude`), `user`, `system` or `external`.
        sender_endpoint: URL of the sender's own server; empty if it has none.
        verified: Whether the sender's identity is proven.
    """

    sender_id: str
    sender_type: str = "external"
    sender_endpoint: str = ""
    verified: bool = False


USER = Sender("user", "user", "", verified=True)
SYSTEM = Sender("synapse-system", "system", "", verified=True)
"""This program itself; no outside caller can authenticate as it."""
INSTRUCTIONS = "instructions"
"""`metadata.kind` of messages that introduce an agent to the others."""
WATCHED_WORK = "watched"
"""`metadata.kind` of tasks that a watch makes: they stand for no message."""


@dataclass(frozen=True, slots=True)
class Task:
    """An immutable snapshot of a message to an agent and its outcome; each change replaces it.

    An outgoing task belongs to the sender and represents the answer it waits for.

    Attributes:
        id: UUID; people see its first 8 characters.
        context_id: UUID of the session of the agent that owns the task.
        target: Agent id of the receiver.
        priority: 1 (information) to 5 (interrupt).
        reason: Why it is held or failed, in a few words for a person.
        metadata: Further data from the sender; our own keys take precedence over keys from outside.
        created_at: Timezone-aware.
        updated_at: Timezone-aware.
        outgoing: Whether it belongs to the sender and is never typed.
        replied: Whether the agent replied explicitly, so the text of its turn is not the answer.
        reply: Whether the sender was notified of the outcome; for an outgoing task, whether its agent was.
        caller: Owner of the API key used (`Principal.name`); empty for the user of this machine.
        messages: The task's protocol messages, oldest first; empty for a plain message.
        follows: Id of the task it continues; it is typed like any message but is not a task of its own.
        state_since: When it came into its state; None to derive it (`since`). Not stored.
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
    state_since: datetime | None = field(default=None, compare=False)

    @property
    def short_id(self) -> str:
        return self.id[:8]

    @property
    def since(self) -> datetime:
        """When it came into its state, whatever else has changed since.

        What waits does since it came, or since a person held or released it.
        """
        return self.state_since or (self.created_at if self.delivery.waits else self.updated_at)

    @property
    def watched(self) -> bool:
        """Whether a watch made it: it stands for no message."""
        return self.metadata.get("kind") == WATCHED_WORK

    @property
    def instructs(self) -> bool:
        """Whether it introduces the agent to the others; only this program sends these, first of all."""
        return self.sender == SYSTEM and self.metadata.get("kind") == INSTRUCTIONS

    @property
    def answered(self) -> bool:
        """Whether it was completed with an answer; what was canceled may have one, too."""
        return self.state is TaskState.COMPLETED and bool(self.answer)

    @property
    def answer(self) -> str:
        """The agent's explicit reply if it gave one, else everything its turn wrote."""
        texts = [artifact_words(artifact) for artifact in self.artifacts]
        return "\n".join(texts[-1:] if self.replied else texts)


class Parked(StrEnum):
    """Why a waiting message needs a person to release it."""

    NO = ""
    HELD = "held"
    """Held by a person, or it could not be typed."""
    RECOVERED = "recovered"
    """Queued before a restart or before its agent was closed."""
    INBOX = "inbox"
    """Left for the agent to read instead of being typed."""
    UNCERTAIN = "uncertain"
    """May have been sent already."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """Position of a waiting message in its agent's outbox.

    Attributes:
        rank: Messages are typed in ascending rank.
        hold: Why it is not sent automatically.
        urgent: Whether a person moved it ahead of all others.
        entered: Whether Enter may have been pressed and the result is not known yet.
        prompt: Whether it is the person's first prompt, typed without a prefix.
    """

    task_id: str
    rank: float
    hold: Parked = Parked.NO
    urgent: bool = False
    entered: bool = False
    prompt: bool = False

    @property
    def parked(self) -> bool:
        """Whether a person must release it."""
        return self.hold is not Parked.NO


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """A message handed to an agent by a server or the router.

    Attributes:
        task_id: UUID for the task; generated if empty.
        caller: Owner of the API key used; empty for the user of this machine.
        message: The protocol's message; None for plain text.
        follows: Id of the open task it continues; empty for a new task.
        context_id: Conversation named by the caller; empty for the agent's session.
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
class Reply:
    """An answer to a task.

    Attributes:
        text: The answer; the reason for `failed` and `rejected`, the question for `input_required`.
        state: The task's new state.
        truncated: Whether rows are known to be missing.
        explicit: Whether the agent replied explicitly; otherwise this is the text of its turn.
        in_reply_to: Id of the receiver's task that this answers; empty if it answers this task itself.
        reason: Note for a person, in a few words; may be empty.
        parts: The content, if it is more than the text.
        as_message: Whether an A2A caller gets a plain message instead of a task with an artifact.
        origin_id: The same in each attempt to deliver it; empty if unknown.
    """

    text: str
    state: TaskState = TaskState.COMPLETED
    truncated: bool = False
    explicit: bool = True
    in_reply_to: str = ""
    reason: str = ""
    parts: tuple[Part, ...] = ()
    as_message: bool = False
    origin_id: str = ""


@dataclass(frozen=True, slots=True)
class StateReport:
    """A state and why it was decided.

    Attributes:
        rule: Name of the profile's rule that decided.
        matched: The text it matched, at most 200 characters.
        since: Seconds on the session's monotonic clock.
        detail: Note for a person (`permission: Bash(rm -r build)`); may be empty.
    """

    state: AgentState
    rule: str
    matched: str
    since: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended; exactly one of the two is set.

    Attributes:
        code: Exit status, 0 to 255.
        signal: Number of the signal that ended the process.
    """

    code: int | None = None
    signal: int | None = None

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def words(self) -> str:
        """The status in a few words: `exited with status 3`, `killed by SIGSEGV`."""
        if self.signal is None:
            return f"exited with status {self.code}"
        try:
            return f"killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"killed by signal {self.signal}"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent to open: a `PROFILE[:NAME][@DIR]` argument, a command line, or an entry of the settings.

    Attributes:
        profile: Name or alias of its profile; for a command line the name of the program, which need not have
            a profile.
        cwd: Working folder; None for the project's.
        args: Appended to the profile's own arguments.
        port: Port to serve on; 0 for the first free port of the profile's range.
        prompt: First prompt, delivered as soon as the agent is ready.
        restore: Whether this continues an earlier run, so that messages still waiting for it are not held.
        resume: Whether the agent resumes its last conversation in that folder (the profile's `resume`).
        last_port: Previous port, reused if it is free; 0 for none.
        told_as: Agent id under which the resumed conversation was instructed; empty if it was not.
        began: When that conversation began, in seconds since the epoch; 0 if unknown.
        command: The program to run and how, instead of the profile's `command`; empty for the profile's.
        allowed: Whether a person has allowed messages to a program without a profile.
        worktree: Whether it works in a git worktree of its own, which is made if it has none.
        role: Its own instructions, given in each new conversation after those for all agents.
        opened_by: The agent that opened it, then the one that opened that, and so on; empty for a person.
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
    command: tuple[str, ...] = ()
    allowed: bool = False
    worktree: bool = False
    role: str = ""
    opened_by: tuple[str, ...] = ()


DEMO_AGENTS = tuple(
    AgentSpec("dummy", name, args=("--name", name, "--part", name)) for name in ("alice", "bob")
)
"""Opened if no agent is installed; the README's first example uses these names."""


def check_priority(value: object) -> int:
    """Return the priority if it is an integer from 1 to 5.

    Raises:
        InvalidValue: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= INTERRUPT_PRIORITY:
        raise InvalidValue(f"priority {value!r} is not valid", "use 1 (information) to 5 (interrupt)")
    return value
