"""What the help of a command says beside its text and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from synapse_tui.cli.output import ExitCode


@dataclass(frozen=True, slots=True)
class Page:
    """The manual of one command.

    Attributes:
        examples: Lines that can be typed as they are, and what each does.
        arguments: What stands for each argument; by its name in the usage.
        codes: Exit codes beside 0, 1, 2 and 130, which every command can have.
        see: Commands that belong to it.
    """

    examples: Mapping[str, str]
    arguments: Mapping[str, str] = field(default_factory=dict)
    codes: tuple[ExitCode, ...] = ()
    see: tuple[str, ...] = ()


MEANINGS: Mapping[ExitCode, str] = MappingProxyType(
    {
        ExitCode.DONE: "done",
        ExitCode.FAILED: "an error that no other code is for",
        ExitCode.USAGE: "wrong arguments, settings or profiles",
        ExitCode.NO_RECEIVER: "the address means nobody, more than one, or an agent that has ended",
        ExitCode.NOT_TAKEN: "the message cannot be sent (empty, too long, no UTF-8), no such message waits, "
        "or another agent holds the file",
        ExitCode.PEER: "the agent's server cannot be reached, or refused",
        ExitCode.TASK_FAILED: "the awaited task failed, was rejected or canceled; "
        "a watch gave up or was ended",
        ExitCode.TIMED_OUT: "the time to wait is over; the task goes on",
        ExitCode.UNFIT: "the terminal cannot show the application",
        ExitCode.NOT_STARTED: "an agent cannot be started",
        ExitCode.NO_SESSION: "there is no such session, or its host cannot be used",
        ExitCode.UNPROVED: "`synapse doctor` found something that does not hold",
        ExitCode.INTERRUPTED: "interrupted by Ctrl+C",
    }
)
"""What every exit code means; the table in docs/cli.md is the same."""
