"""The error tree.

Every error that can reach a person derives from `SynapseError`: the message says what happened and to what,
the hint says what to do. They are mapped to exit codes in `cli/output.py` and to HTTP statuses in
`a2a/problems.py`, nowhere else.

    SynapseError
    ├── ConfigError             arguments, settings or profiles are wrong
    │   ├── ProfileError        a profile file is invalid (file, line, reason)
    │   ├── TeamError           the file of a team is invalid (file, lines, reasons)
    │   ├── UnknownProfile      no profile has that name
    │   ├── RulesBroken         the delegation rules are missing or invalid (file, line, reason)
    │   ├── UnsafePath          another user owns one of our files or folders, or can write to it
    │   └── InvalidValue        a value is out of range (a priority of 9)
    ├── SpawnError              an agent cannot be started
    │   ├── CommandNotFound     its command is not on PATH
    │   ├── FolderUnusable      its working folder is missing or cannot be read
    │   └── PortsExhausted      no free port in the range, or the requested one is taken
    ├── AddressError            a message has no valid receiver
    │   ├── AgentNotFound       no agent matches the address
    │   ├── AmbiguousAddress    two or more agents match
    │   ├── NoRuleFits          no delegation rule matches the task
    │   ├── RulesUndecided      several delegation rules match equally
    │   └── AgentExited         the agent has exited
    ├── MessageError            a message cannot be accepted
    │   ├── TakesNoMessages     its receiver is a program that would run it, such as a shell
    │   ├── MessageTooLarge     its text is over the limit
    │   ├── TaskNotFound        no task has that id
    │   ├── TaskEnded           the task to continue has ended
    │   ├── NotAwaited          no reply to that task is expected
    │   └── NotWatched          the agent is not being watched
    ├── PeerError               a request to another process failed
    │   ├── PeerUnreachable     its endpoint does not answer
    │   ├── PeerRefused         it answered with an error
    │   └── CardRefused         the card of an external agent is invalid or not trustworthy
    ├── BudgetSpent             an external agent sent more for a task than the limit
    ├── PushError               push notifications cannot be set up as requested
    │   ├── TargetRefused       the URL is not allowed
    │   ├── PushNotFound        no configuration or webhook has that id
    │   └── PushLimit           there are too many of them
    ├── SessionError            a session's host cannot be started, reached or used
    │   └── SessionNotFound     no session has that name
    ├── HistoryError            the history cannot be read or written
    │   └── DatabaseNameError   the team database's URL is invalid; a ConfigError as well
    ├── WorktreeError           a worktree cannot be made, merged or removed
    ├── HandoverError           a running agent cannot be taken over by another version of this program
    └── TerminalUnfit           the terminal cannot show the application
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class SynapseError(Exception):
    """An error that a person can do something about.

    Args:
        message: What happened, and to what; one sentence without a final full stop.
        hint: What to do about it; empty if the message says it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(SynapseError):
    """Arguments, settings or profiles are wrong."""


class ProfileError(ConfigError):
    """A profile file is invalid; `line` counts from 1, or is 0 for the file as a whole."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{where}: {reason}", "correct the file; the other profiles still load")
        self.path = path
        self.line = line
        self.reason = reason


class TeamError(ConfigError):
    """The file of a team is invalid: a line for each fault.

    Lines of the file count from 1, or are 0 for the file as a whole.
    """

    def __init__(self, path: Path, faults: Sequence[tuple[int, str]]) -> None:
        reasons = [f"{path}:{line}: {reason}" if line else f"{path}: {reason}" for line, reason in faults]
        super().__init__("\n".join(reasons), "correct the file; nothing was started")


class UnknownProfile(ConfigError):
    def __init__(
        self, name: str, known: Sequence[str], nearest: str | None = None, *, program: bool = False
    ) -> None:
        hint = f"did you mean '{nearest}'?" if nearest else f"known profiles: {', '.join(known)}"
        if program:
            hint = f"start the program of that name with: synapse-tui -- {name}; or {hint}"
        super().__init__(f"there is no profile '{name}'", hint)
        self.name = name


class RulesBroken(ConfigError):
    """The delegation rules are missing or invalid."""


class UnsafePath(ConfigError, PermissionError):
    """Another user owns one of our files or folders, or can write to it; nothing in it is used.

    Also an `OSError`, so code that reads the file treats it as unreadable.

    Args:
        path: The file or folder.
        reason: Who else has access, with owner and mode.
        hint: What to do about it.
    """

    def __init__(self, path: str, reason: str, hint: str) -> None:
        super().__init__(f"{path} is not used: {reason}", hint)
        self.errno, self.strerror, self.filename = errno.EPERM, reason, path


class InvalidValue(ConfigError):
    """A value is out of range or not one of the choices."""


class SpawnError(SynapseError):
    """An agent cannot be started."""


class CommandNotFound(SpawnError):
    """The agent's command is not on PATH."""

    def __init__(self, command: str, profile: str, install: str = "") -> None:
        hint = f"install it with: {install}" if install else "install it or put it on PATH"
        super().__init__(f"'{command}' of the profile '{profile}' is not on PATH", hint)
        self.command = command


class FolderUnusable(SpawnError):
    """The agent's working folder is missing, not a folder, or cannot be read."""


class PortsExhausted(SpawnError):
    """No port is free in the agent's range, or the requested one is taken."""


class AddressError(SynapseError):
    """A message has no valid receiver."""


class AgentNotFound(AddressError):
    """No agent matches the address."""


class AmbiguousAddress(AddressError):
    """Two or more agents match the address."""

    def __init__(self, address: str, candidates: Sequence[str]) -> None:
        super().__init__(f"'@{address}' could be any of {', '.join(candidates)}", "use one of these ids")
        self.address = address
        self.candidates = tuple(candidates)


class NoRuleFits(AddressError):
    """No delegation rule matches the task."""


class RulesUndecided(AddressError):
    """Several delegation rules match the task equally; `fitting` describes them in a few words each."""

    def __init__(self, fitting: Sequence[str]) -> None:
        super().__init__(
            f"the rules of delegation fit alike: {'; '.join(fitting)}",
            "name the agent with `synapse send`, or give one of the rows a longer keyword",
        )
        self.fitting = tuple(fitting)


class AgentExited(AddressError):
    """The agent has exited and cannot receive messages."""


class MessageError(SynapseError):
    """A message cannot be accepted."""


class TakesNoMessages(MessageError):
    """The receiver would run a message as a command, such as a shell."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} takes no messages: it would run them", "send it to an agent")


class MessageTooLarge(MessageError):
    """The text of a message is over the limit."""


class TaskNotFound(MessageError):
    """No task has that id."""


class TaskEnded(MessageError):
    """A task that has ended cannot be continued."""


class NotAwaited(MessageError):
    """No reply to that task is expected: it was answered, canceled, or not delivered yet."""


class NotWatched(MessageError):
    """The agent is not being watched."""


class PeerError(SynapseError):
    """A request to another process failed."""


class PeerUnreachable(PeerError):
    """The peer's endpoint refuses connections or does not answer."""


class PeerSilent(PeerUnreachable):
    """The peer accepted the connection but did not answer; the request may have arrived."""


class PeerRefused(PeerError):
    """The peer answered with an error.

    Args:
        message: What happened.
        status: The HTTP status code.
        hint: What to do about it.
        said: The peer's own error text; empty if it is the message.
    """

    def __init__(self, message: str, status: int, hint: str = "", *, said: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.said = said or message


class PeerBusy(PeerRefused):
    """The peer is working on another message and has no queue; the same request may be sent again later."""


class BudgetSpent(SynapseError):
    """An external agent sent more for a task than the limit; no further requests are made for the task."""


class PushError(SynapseError):
    """Push notifications cannot be set up as requested."""


class TargetRefused(PushError):
    """A URL is not allowed as a target, because notifications could reach internal services."""


class PushNotFound(PushError):
    """No push configuration or webhook has that id."""


class PushLimit(PushError):
    """There are too many push configurations or webhooks already."""


class CardRefused(PeerError):
    """The card of an external agent is invalid, or refers to a place it must not."""


class SessionError(SynapseError):
    """A session's host cannot be started, reached or used."""


class SessionNotFound(SessionError):
    """No session has that name."""


class HistoryError(SynapseError):
    """The history cannot be read or written."""


class DatabaseNameError(HistoryError, ConfigError):
    """The setting for the team database is not a valid URL."""


class WorktreeError(SynapseError):
    """A worktree of an agent cannot be made, merged or removed, or git failed."""


class HandoverError(SynapseError):
    """A running agent cannot be taken over by another version of this program."""


class TerminalUnfit(SynapseError):
    """The terminal cannot show the application."""
