"""The error tree.

Every error that can reach a person derives from `SynapseError`: its message says what happened and to what,
its hint says what to do. Exit codes are given in `cli/output.py`, HTTP status codes in `a2a/`, nowhere else.

    SynapseError
    ├── ConfigError             arguments, settings or profiles are wrong
    │   ├── ProfileError        a profile file is broken (file, line, reason)
    │   ├── UnknownProfile      no profile of that name
    │   ├── RulesBroken         the rules of delegation are missing or broken (file, line, reason)
    │   ├── UnsafePath          another user owns one of our files or folders, or can write to it
    │   └── InvalidValue        a value is out of its range (a priority of 9)
    ├── SpawnError              an agent cannot be started
    │   ├── CommandNotFound     its command is not on PATH
    │   ├── FolderUnusable      its working folder is missing or cannot be read
    │   └── PortsExhausted      no free port in the range, or the asked one is taken
    ├── AddressError            a message has no one to go to
    │   ├── AgentNotFound       no agent answers to that address
    │   ├── AmbiguousAddress    two or more do
    │   ├── NoRuleFits          the rules of delegation give a task to nobody
    │   ├── RulesUndecided      they give it to two or more
    │   └── AgentExited         it did, but it has ended
    ├── MessageError            a message cannot be taken
    │   ├── MessageTooLarge     its text is over the limit
    │   ├── TaskNotFound        no task of that id
    │   ├── TaskEnded           the task to go on with has ended
    │   ├── NotAwaited          nobody waits for a reply to that task
    │   ├── NotWatched          no watch is over that agent
    │   └── SlowReader          who reads a task's events is too far behind
    ├── PeerError               another process did not do as asked
    │   ├── PeerUnreachable     nobody listens at its endpoint
    │   ├── PeerRefused         it answered with an error
    │   └── CardRefused         the card of an external agent is broken, or not to be trusted
    ├── BudgetSpent             an external agent sent more for a task than is read
    ├── PushError               nobody can be told of tasks as was asked
    │   ├── TargetRefused       that URL may not be called
    │   ├── PushNotFound        no configuration and no webhook of that id
    │   └── PushLimit           there are too many of them
    ├── SessionError            a session's host cannot be started, reached or used
    │   └── SessionNotFound     no session of that name
    ├── HistoryError            what becomes of messages cannot be written down
    │   └── DatabaseNameError   what is set for the team's database names none; a ConfigError as well
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
    """Something went wrong that a person can do something about.

    Args:
        message: What happened, and to what; one sentence without a final full stop.
        hint: What to do about it; empty when the message says it already.
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
    """A profile file is broken.

    Args:
        path: The file.
        line: Its line, from 1; 0 when the file as a whole is meant.
        reason: What is wrong there.
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{where}: {reason}", "correct the file; the other profiles still load")
        self.path = path
        self.line = line
        self.reason = reason


class UnknownProfile(ConfigError):
    """No profile has that name."""

    def __init__(self, name: str, known: Sequence[str], nearest: str | None = None) -> None:
        hint = f"did you mean '{nearest}'?" if nearest else f"known profiles: {', '.join(known)}"
        super().__init__(f"there is no profile '{name}'", hint)
        self.name = name


class RulesBroken(ConfigError):
    """The rules of delegation are missing or broken."""


class UnsafePath(ConfigError, PermissionError):
    """Another user owns one of our files or folders, or can write to it; nothing in it is used.

    It is an `OSError` too: to whoever reads the file it is one that may not be read.

    Args:
        path: The file or folder.
        reason: Who else it is open to, with its owner and mode.
        hint: What to do about it.
    """

    def __init__(self, path: str, reason: str, hint: str) -> None:
        super().__init__(f"{path} is not used: {reason}", hint)
        self.errno, self.strerror, self.filename = errno.EPERM, reason, path


class InvalidValue(ConfigError):
    """A value is not one of those allowed."""


class SpawnError(SynapseError):
    """An agent cannot be started."""


class CommandNotFound(SpawnError):
    """The agent's command is not on PATH."""

    def __init__(self, command: str, profile: str, install: str = "") -> None:
        hint = f"install it with: {install}" if install else "install it or put it on PATH"
        super().__init__(f"'{command}' of the profile '{profile}' is not on PATH", hint)
        self.command = command


class FolderUnusable(SpawnError):
    """The agent's working folder is missing, no folder, or cannot be read."""


class PortsExhausted(SpawnError):
    """No port is free in the agent's range, or the one asked for is taken."""


class AddressError(SynapseError):
    """A message has no one to go to."""


class AgentNotFound(AddressError):
    """No agent answers to that address."""


class AmbiguousAddress(AddressError):
    """Two or more agents answer to that address."""

    def __init__(self, address: str, candidates: Sequence[str]) -> None:
        super().__init__(f"'@{address}' could be any of {', '.join(candidates)}", "use one of these ids")
        self.address = address
        self.candidates = tuple(candidates)


class NoRuleFits(AddressError):
    """The rules of delegation give a task to nobody."""


class RulesUndecided(AddressError):
    """The rules of delegation give a task to two or more agents.

    Args:
        fitting: The rows that fit alike, a few words each.
    """

    def __init__(self, fitting: Sequence[str]) -> None:
        super().__init__(
            f"the rules of delegation fit alike: {'; '.join(fitting)}",
            "name the agent with `synapse send`, or give one of the rows a longer keyword",
        )
        self.fitting = tuple(fitting)


class AgentExited(AddressError):
    """The agent has ended and can take no message."""


class MessageError(SynapseError):
    """A message cannot be taken."""


class MessageTooLarge(MessageError):
    """The text of a message is over the limit."""


class TaskNotFound(MessageError):
    """No task has that id."""


class TaskEnded(MessageError):
    """A task that has ended cannot be gone on with."""


class SlowReader(MessageError):
    """Who reads the events of a task is too far behind; what they missed is in the task itself."""


class NotAwaited(MessageError):
    """Nobody waits for a reply to that task: it was answered, was canceled, or has not been given yet."""


class NotWatched(MessageError):
    """Nobody watches over that agent."""


class PeerError(SynapseError):
    """Another process did not do as asked."""


class PeerUnreachable(PeerError):
    """Nobody listens at the peer's endpoint, or whoever does has not answered."""


class PeerSilent(PeerUnreachable):
    """The peer took the connection and did not answer: what was sent may have arrived."""


class PeerRefused(PeerError):
    """The peer answered with an error.

    Args:
        message: What happened.
        status: The HTTP status code.
        hint: What to do about it.
        said: The peer's own words; empty where the message is all there is.
    """

    def __init__(self, message: str, status: int, hint: str = "", *, said: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.said = said or message


class PeerBusy(PeerRefused):
    """The peer works on another message and keeps none; the same may be sent again later."""


class BudgetSpent(SynapseError):
    """An external agent sent more for a task than is read; it is neither asked nor listened to again."""


class PushError(SynapseError):
    """Nobody can be told of tasks as was asked."""


class TargetRefused(PushError):
    """A URL may not be called: notifications would reach what is not for them."""


class PushNotFound(PushError):
    """There is no push configuration and no webhook of that id."""


class PushLimit(PushError):
    """There are too many push configurations or webhooks already."""


class CardRefused(PeerError):
    """The card of an external agent is broken, or leads where it must not."""


class SessionError(SynapseError):
    """A session's host cannot be started, reached or used."""


class SessionNotFound(SessionError):
    """No session has that name."""


class HistoryError(SynapseError):
    """What becomes of messages cannot be written down, or not be read."""


class DatabaseNameError(HistoryError, ConfigError):
    """What is set for the database of a team names none."""


class HandoverError(SynapseError):
    """A running agent cannot be taken over by another version of this program."""


class TerminalUnfit(SynapseError):
    """The terminal cannot show the application."""
