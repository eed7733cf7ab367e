"""What a hook tells, whatever agent it is of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from synapse_tui.file_safety import ChangeType


class Dialect(StrEnum):
    """In whose words a hook speaks."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    COPILOT = "copilot"


class HookKind(StrEnum):
    """What happened."""

    START = "start"
    """A conversation began: the hooks are alive."""
    PRE = "pre"
    """A tool is about to run; the permission dialog comes after this."""
    POST = "post"
    """A tool has run."""
    FAILED = "failed"
    """A tool was run and failed, or was not run."""
    PROMPT = "prompt"
    """A prompt was submitted."""
    ASKED = "asked"
    """A dialog waits for a person."""
    IDLE = "idle"
    """The turn is over."""
    INTERRUPTED = "interrupted"
    """The turn was stopped."""
    END = "end"
    """The conversation is over."""


@dataclass(frozen=True, slots=True)
class FileWrite:
    """A file that a tool writes.

    Attributes:
        path: As the agent named it; a relative one counts from the event's folder.
        change: What the tool says that it does; whether the file was there decides between CREATE and MODIFY.
        lines: The lines that were touched, where the agent tells them after the tool; else empty.
    """

    path: str
    change: ChangeType = ChangeType.MODIFY
    lines: str = ""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What a hook tells.

    Attributes:
        kind: What happened.
        dialect: In whose words.
        folder: Where the agent works; relative paths count from there.
        tool: The tool, as the agent calls it; empty for an event of none.
        call: Which call of it; `deed` where the agent gives none.
        deed: What the call does, in short: a dialog names no call, but the same tool and arguments.
        writes: The files that the tool writes, as far as its arguments name them.
        reads: The files that the tool reads, as far as its arguments name them.
        shell: The command line of a shell tool: what it writes is not known; empty for other tools.
        prompt: The prompt that was submitted.
    """

    kind: HookKind
    dialect: Dialect
    folder: Path
    tool: str = ""
    call: str = ""
    deed: str = ""
    writes: tuple[FileWrite, ...] = ()
    reads: tuple[str, ...] = ()
    shell: str = ""
    prompt: str = ""
