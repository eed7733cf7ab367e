"""What a command says and how it ends: stdout is data, stderr is narration; all exit codes are given here."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import click

from synapse_tui import content, errors

from . import log_file

if TYPE_CHECKING:
    from pathlib import Path

_JSON = "synapse.json"
plain = content.plain


class ExitCode(IntEnum):
    """How a command ended; documented in docs/cli.md."""

    DONE = 0
    FAILED = 1
    """Something that no other code is for."""
    USAGE = 2
    """Wrong arguments, settings or profiles."""
    NO_RECEIVER = 3
    """The address means nobody, more than one, or an agent that has ended."""
    NOT_TAKEN = 4
    """The message is too large or otherwise not acceptable."""
    PEER = 5
    """The agent's server cannot be reached or refused."""
    TASK_FAILED = 6
    """The awaited task failed, was rejected or canceled."""
    TIMED_OUT = 7
    """The awaited task goes on."""
    UNFIT = 8
    """The terminal cannot show the application."""
    NOT_STARTED = 9
    """An agent cannot be started."""
    NO_SESSION = 10
    """There is no such session, or its host cannot be used."""
    UNPROVED = 11
    """`synapse doctor` found something that does not hold."""
    INTERRUPTED = 130


_CODES: tuple[tuple[type[errors.SynapseError], ExitCode], ...] = (
    (errors.ConfigError, ExitCode.USAGE),
    (errors.SpawnError, ExitCode.NOT_STARTED),
    (errors.AddressError, ExitCode.NO_RECEIVER),
    (errors.MessageError, ExitCode.NOT_TAKEN),
    (errors.PeerError, ExitCode.PEER),
    (errors.SessionError, ExitCode.NO_SESSION),
    (errors.TerminalUnfit, ExitCode.UNFIT),
)


class TaskEnded(errors.SynapseError):
    """An awaited task ended without a result."""


class WaitTimedOut(errors.SynapseError):
    """An awaited task took longer than the caller would wait."""


def exit_code_for(error: errors.SynapseError) -> ExitCode:
    """The exit code of an error."""
    if isinstance(error, TaskEnded):
        return ExitCode.TASK_FAILED
    if isinstance(error, WaitTimedOut):
        return ExitCode.TIMED_OUT
    # An error that a session's host found counts as what it was there.
    there = getattr(errors, getattr(error, "kind", ""), type(error))
    return next((code for kind, code in _CODES if issubclass(there, kind)), ExitCode.FAILED)


def end_with(context: click.Context, found: Iterable[errors.SynapseError | None]) -> None:
    """End a command with the exit code of the first error, which was told; go on where there is none."""
    first = next(filter(None, found), None)
    if first is not None:
        context.exit(exit_code_for(first).value)


def run_command(command: click.Command, words: Sequence[str], *, name: str, obj: object = None) -> NoReturn:
    """Run a command and end the process; no error shows a traceback.

    Args:
        command: The command.
        words: Its arguments.
        name: What it is called in messages.
        obj: Handed to the command as `context.obj`.
    """
    _open_what_is_closed()
    ended = log_file.begin(name, words)
    try:
        code = _run(command, list(words), name, obj)
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        code = _unwritten(error, name)
    ended(code)
    sys.exit(code)


def _open_what_is_closed() -> None:
    """See that there are three standard streams: a file opened later must not become one of them."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _unwritten(error: OSError | ValueError, name: str) -> int:
    """Standard output takes nothing more, or broke in the midst of an error; gives the exit code."""
    if os.environ.get("SYNAPSE_DEBUG"):
        raise error
    # What is left in the buffer would be an error at the interpreter's end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError | ValueError):
        return ExitCode.DONE.value
    with contextlib.suppress(OSError):
        note(f"{name}: standard output cannot be written: {error.strerror}")
    return ExitCode.FAILED.value


def _run(command: click.Command, words: list[str], name: str, obj: object) -> int:
    meta: dict[str, Any] = {}
    try:
        with command.make_context(name, words, obj=obj) as context:
            meta = context.meta
            command.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return _misused(error, as_json=_wants_json(words))
    except (KeyboardInterrupt, click.Abort):
        note(f"{name}: interrupted")
        return ExitCode.INTERRUPTED.value
    except errors.SynapseError as error:
        fail(error, name=name, as_json=bool(meta.get(_JSON)))
        return exit_code_for(error).value
    except BrokenPipeError:
        return ExitCode.DONE.value
    except Exception as error:
        # The edge of the process: a person is told in a sentence.
        if os.environ.get("SYNAPSE_DEBUG"):
            raise
        return _unforeseen(error, name, as_json=bool(meta.get(_JSON)))
    return ExitCode.DONE.value


def _unforeseen(error: Exception, name: str, *, as_json: bool) -> int:
    """Tell of an error that no command expects; gives the exit code."""
    import logging

    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        gone = errors.ConfigError(
            "the current folder does not exist any more", "change to another one with cd, then try again"
        )
        fail(gone, name=name, as_json=as_json)
        return exit_code_for(gone).value
    logging.getLogger(__name__).info("%s failed in a way that nobody expected", name, exc_info=error)
    odd = errors.SynapseError(_words_of(error), "set SYNAPSE_DEBUG=1 to see where")
    fail(odd, name=name, as_json=as_json)
    return ExitCode.FAILED.value


def _words_of(error: Exception) -> str:
    """What an error says that is not one of ours; of one of the system what it says, and of which file."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"


def _misused(error: click.ClickException, *, as_json: bool) -> int:
    """Tell of words that make no sense; gives the exit code."""
    if as_json:
        message = error.format_message()
        show_json({"error": {"type": type(error).__name__, "message": message, "hint": "--help explains it"}})
    error.show()
    return error.exit_code


def _wants_json(words: Sequence[str]) -> bool:
    """Whether the words ask for JSON, also where they could not be read."""
    return "--json" in words[: words.index("--") if "--" in words else None]


def _folder_is_gone() -> bool:
    """Whether the current folder was removed under this process: whatever needs it fails."""
    try:
        os.getcwd()  # noqa: PTH109 - it is asked whether that works
    except OSError:
        return True
    return False


def fail(error: errors.SynapseError, *, name: str, as_json: bool = False) -> None:
    """Tell of an error: on stderr for people and, when the data is JSON, on stdout for programs."""
    if as_json:
        show_json({"error": error_json(error)})
    note(f"{name}: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))


def error_json(error: errors.SynapseError) -> dict[str, str]:
    """An error as data."""
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint}


def want_json(context: click.Context) -> None:
    """Note that this command's data is JSON, errors included."""
    context.meta[_JSON] = True


def note(text: str) -> None:
    """Say something to the person, on stderr; what stands in it does not act on the terminal."""
    click.echo(plain(_sound(text)), err=True)


def note_left_out(problems: Iterable[errors.ConfigError], untrusted: Iterable[Path]) -> None:
    """Say on stderr what of the settings could not be used."""
    for problem in problems:
        note(f"synapse: {problem}")
    for path in untrusted:
        note(f"synapse: {path} is left out: it has not been trusted; read it, then: synapse trust")


def show(text: str) -> None:
    """Put data on stdout."""
    click.echo(_sound(text))


def show_json(value: object) -> None:
    """Put data on stdout as JSON."""
    import json

    show(json.dumps(value, ensure_ascii=False, indent=2))


def _sound(text: str) -> str:
    """Text that UTF-8 can carry; a peer may have sent half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
