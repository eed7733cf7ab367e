"""Output and exit codes of commands: stdout is data, stderr is narration; all exit codes are set here.

JSON is the same everywhere; narration, headings, states and receipts are in the language of the person.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import click

from synapse_tui.core import content, errors
from synapse_tui.system.language import tr

if TYPE_CHECKING:
    from pathlib import Path

    from synapse_tui.system.paths import UserPaths

_JSON = "synapse.json"
_GAP = "  "
_NARROWEST = 8  # minimum width in cells of a truncated column
_IN_A_LINE = str.maketrans("\n\r\t", "   ")
LOG_NAME = "synapse.log"
LOG_BYTES = 5 * 1024 * 1024
"""Size at which the log is rotated to `synapse.log.1`."""
_LOG_VARIABLE = "SYNAPSE_LOG_FILE"
_LOG_OFF = re.compile(rb'"SYNAPSE_LOG_FILE"\s*:\s*("false"|false)')
plain = content.plain


class ExitCode(IntEnum):
    """Exit codes; docs/cli.md has the table."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_RECEIVER = 3
    NOT_TAKEN = 4
    PEER = 5
    TASK_FAILED = 6
    TIMED_OUT = 7
    UNFIT = 8
    NOT_STARTED = 9
    NO_SESSION = 10
    UNPROVED = 11
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
    """An awaited task took longer than the caller was willing to wait."""


def exit_code_for(error: errors.SynapseError) -> ExitCode:
    if isinstance(error, TaskEnded):
        return ExitCode.TASK_FAILED
    if isinstance(error, WaitTimedOut):
        return ExitCode.TIMED_OUT
    # An error reported by a session's host has the exit code of its original class.
    there = getattr(errors, getattr(error, "kind", ""), type(error))
    return next((code for kind, code in _CODES if issubclass(there, kind)), ExitCode.FAILED)


def end_with(context: click.Context, found: Iterable[errors.SynapseError | None]) -> None:
    """Exit with the code of the first error, which has been printed already; return if there is none."""
    first = next(filter(None, found), None)
    if first is not None:
        context.exit(exit_code_for(first).value)


# -- running a command ---


def run_command(command: click.Command, words: Sequence[str], *, name: str, obj: object = None) -> NoReturn:
    """Run a command and exit; errors never show a traceback. `name` is the program's name in messages."""
    _open_closed_streams()
    log_end = begin_log(name, words)
    try:
        code = _run(command, list(words), name, obj)
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        code = _unwritten(error, name)
    log_end(code)
    sys.exit(code)


def _open_closed_streams() -> None:
    # A file opened later must not become one of the three standard streams.
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _unwritten(error: OSError | ValueError, name: str) -> int:
    if os.environ.get("SYNAPSE_DEBUG"):
        raise error
    # Data left in the buffer would raise an error when the interpreter exits.
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
        return _misused(error, words)
    except (KeyboardInterrupt, click.Abort):
        note(f"{name}: interrupted")
        return ExitCode.INTERRUPTED.value
    except errors.SynapseError as error:
        fail(error, name=name, as_json=bool(meta.get(_JSON)))
        return exit_code_for(error).value
    except BrokenPipeError:
        return ExitCode.DONE.value
    except Exception as error:  # the edge of the process: a person gets a sentence
        if os.environ.get("SYNAPSE_DEBUG"):
            raise
        return _unexpected(error, name, as_json=bool(meta.get(_JSON)))
    return ExitCode.DONE.value


def _unexpected(error: Exception, name: str, *, as_json: bool) -> int:
    import logging

    if isinstance(error, FileNotFoundError) and _folder_is_gone():
        gone = errors.ConfigError(
            "the current folder no longer exists", "cd to another folder, then try again"
        )
        fail(gone, name=name, as_json=as_json)
        return exit_code_for(gone).value
    logging.getLogger(__name__).info("%s failed unexpectedly", name, exc_info=error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    fail(errors.SynapseError(text, "set SYNAPSE_DEBUG=1 for a traceback"), name=name, as_json=as_json)
    return ExitCode.FAILED.value


def _misused(error: click.ClickException, words: Sequence[str]) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # whose message is the help
        note(error.format_message())
        return error.exit_code
    # The arguments could not be parsed, so look for --json in them directly.
    if "--json" in words[: words.index("--") if "--" in words else None]:
        message = error.format_message()
        show_json({"error": {"type": type(error).__name__, "message": message, "hint": "see --help"}})
    context = getattr(error, "ctx", None)
    if context is not None:
        note(context.get_usage())
        note(f"Try '{context.command_path} --help' for help.")
        note("")
    note(f"{tr('Error')}: {tr(error.format_message())}")
    return error.exit_code


def _folder_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - only checks that it works
    except OSError:
        return True
    return False


# -- stdout and stderr ---


def fail(error: errors.SynapseError, *, name: str, as_json: bool = False) -> None:
    """Report an error on stderr and, if the output is JSON, on stdout too."""
    if as_json:
        show_json({"error": error_json(error)})
    note(f"{name}: {tr(error.message)}" + (f"\n  {tr(error.hint)}" if error.hint else ""))


def error_json(error: errors.SynapseError) -> dict[str, str]:
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint}


def want_json(context: click.Context) -> None:
    context.meta[_JSON] = True


def note(text: str) -> None:
    """Print a line on stderr, without control sequences."""
    click.echo(plain(_encodable(tr(text))), err=True)


def confirm(question: str, *, default: bool = False, abort: bool = False) -> bool:
    """Ask a question on stderr; `abort` ends the command if the answer is no."""
    return click.confirm(tr(question), default=default, abort=abort, err=True)


def note_left_out(problems: Iterable[errors.ConfigError], untrusted: Iterable[Path]) -> None:
    for problem in problems:
        note(f"synapse: {problem}")
    for path in untrusted:
        note(f"synapse: {path} is ignored until you trust it; read it, then: synapse trust")


def show(text: str) -> None:
    click.echo(_encodable(text))


def say(text: str) -> None:
    """Print a line of ours on stdout, in the language of the person."""
    show(tr(text))


def show_json(value: object) -> None:
    import json

    show(json.dumps(value, ensure_ascii=False, indent=2))


def _encodable(text: str) -> str:
    # A peer may have sent half a surrogate pair, which UTF-8 cannot encode.
    return text.encode("utf-8", "replace").decode()


def is_interactive() -> bool:
    return sys.stdin.isatty()


# -- tables ---


def show_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, shrinking: Collection[str] = ()
) -> None:
    """Print a table without control sequences; wide characters count as two cells.

    Columns whose headers are in `shrinking` are truncated if the terminal is too narrow.
    """
    # A name may contain a line break; a row is one line nevertheless.
    table = [
        tuple(map(tr, heads)),
        *(tuple(plain(cell.translate(_IN_A_LINE)) for cell in row) for row in rows),
    ]
    widths = [max(cells(row[at]) for row in table) for at in range(len(heads))]
    _shrink(widths, [at for at, head in enumerate(heads) if head in shrinking])
    for row in table:
        show(_GAP.join(padded(text, width) for text, width in zip(row, widths, strict=True)).rstrip())


def show_list(
    data: Sequence[object],
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    nothing: str,
    *,
    as_json: bool,
    shrinking: Collection[str] = (),
) -> None:
    """Print data as JSON or as a table; if it is empty, print `nothing` on stderr."""
    if as_json:
        show_json(data)
    elif rows:
        show_table(heads, rows, shrinking=shrinking)
    else:
        note(nothing)


def _shrink(widths: list[int], places: Sequence[int]) -> None:
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - columns() if places else 0
    while over > 0:
        widest = max(places, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            return
        widths[widest] -= 1
        over -= 1


def padded(text: str, width: int) -> str:
    short = cut(text, width)
    return short + " " * (width - cells(short))


def columns() -> int:
    """Return the width available for a row; unlimited if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return sys.maxsize
    import shutil

    return shutil.get_terminal_size().columns


def one_line(text: str, width: int = sys.maxsize) -> str:
    """Return text as one line of at most `width` cells, without control sequences."""
    return cut(" ".join(plain(text).split()), width)


def cut(text: str, width: int) -> str:
    if cells(text) <= width:
        return text
    left = width - 1
    for at, char in enumerate(text):
        left -= cells(char)
        if left < 0:
            return text[:at].rstrip() + "…"
    return text


def cells(text: str) -> int:
    """Return the number of terminal columns text takes (Unicode UAX 11)."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


# -- the log of commands ---


def begin_log(name: str, words: Sequence[str]) -> Callable[[int], None]:
    """Log a command in `~/.synapse/logs/synapse.log` if SYNAPSE_LOG_FILE is set; never fails.

    Only the command and the names of its options are logged, since a message may contain secrets. Returns a
    function to call with the exit code.
    """
    try:
        if _may_log():
            from synapse_tui.system.paths import UserPaths

            return _begin_log(UserPaths.of_environment(), name, words)
    except (OSError, errors.SynapseError):
        pass
    return lambda _code: None


def _may_log() -> bool:
    # Most commands need not import the settings, so search the file for the key first.
    if _LOG_VARIABLE in os.environ:
        return True
    from synapse_tui.system.files import read_regular

    try:
        content = read_regular(os.path.expanduser("~/.synapse/settings.json"))  # noqa: PTH111
    except OSError:
        return False
    return _LOG_VARIABLE.encode() in _LOG_OFF.sub(b"", content)


def _begin_log(paths: UserPaths, name: str, words: Sequence[str]) -> Callable[[int], None]:
    import logging
    import time

    from synapse_tui.settings import load_settings

    # Only the user's settings count: a project cannot enable the log.
    settings = load_settings(
        paths.synapse, paths=paths, environ=os.environ, trusted=lambda _path, _data: False
    )
    if not settings.flag(f"env.{_LOG_VARIABLE}"):
        return lambda _code: None
    handler = logging.FileHandler(_open_log(paths.logs), encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    if logging.lastResort is not None:  # warnings still reach the person
        root.addHandler(logging.lastResort)
    root.setLevel(settings.text("env.SYNAPSE_LOG_LEVEL"))
    log = logging.getLogger(__name__)
    given = words[: words.index("--")] if "--" in words else words
    options = [word.partition("=")[0] for word in given[1:] if word.startswith("--")]
    what = " ".join([name, *given[:1], *options])
    began = time.monotonic()
    log.info("%s in %s", what, "a deleted folder" if _folder_is_gone() else os.getcwd())  # noqa: PTH109
    return lambda code: log.info("%s ended with %d after %.3f s", what, code, time.monotonic() - began)


def _open_log(folder: Path) -> Path:
    from synapse_tui.system.files import private_folder

    path = private_folder(folder) / LOG_NAME
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(f"{LOG_NAME}.1"))
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    return path
