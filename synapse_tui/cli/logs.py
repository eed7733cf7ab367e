"""`synapse logs`: what an agent wrote."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal

import click

from synapse_tui.addresses import fold, parse_agent_id
from synapse_tui.errors import AgentNotFound, SynapseError
from synapse_tui.recording.log_cast import LogCast
from synapse_tui.recording.log_reader import LogItem, Output, follow_log, read_log
from synapse_tui.recording.transcript import Transcript

from .caller import Caller
from .output import show

BLOCK = 64 * 1024
POLL = 0.2
"""Seconds between two looks at a file that is followed."""
NEWEST = 4_000_000
"""Bytes of the end that the last lines are looked for in; a terminal shows some megabytes a second."""
FEW = 1000
"""Lines that are surely found there."""
ALL = sys.maxsize

Format = Literal["text", "ansi", "asciicast"]


@click.command(name="logs")
@click.argument("agent")
@click.option(
    "-n",
    "--lines",
    metavar="N",
    type=click.IntRange(min=0),
    default=50,
    help="How many last lines. [50]  An asciicast is always whole.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on as the agent writes; Ctrl+C ends.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "ansi", "asciicast"]),
    default="text",
    help="Lines of text, the bytes as they are (they act on your terminal), or a recording to play. [text]",
)
@click.option("--raw", is_flag=True, help="Deprecated: --format ansi.")
def command(agent: str, lines: int, follow: bool, form: Format, raw: bool) -> None:
    """Show the log of AGENT, also of one that has ended.

    Its output is put through a terminal of our own and the text of that is shown, so that nothing in the log
    acts on your terminal.
    """
    path = find_log(Caller.of(), agent)
    try:
        _SHOW["ansi" if raw else form](path, lines, follow)
    except FileNotFoundError:
        raise SynapseError(f"{path} is gone", "the agent may have been started anew") from None
    except PermissionError:
        raise SynapseError(f"{path} cannot be read", "look at its permissions") from None


def _show_text(path: Path, lines: int, follow: bool) -> None:
    newest = NEWEST if lines <= FEW else ALL
    transcript = Transcript()
    if not follow:
        transcript.take(read_log(path, newest))
        _print_last(transcript.said() + transcript.screen(), lines)
        return
    try:
        for number, items in enumerate(_batches(path, newest)):
            transcript.take(items)
            _print_last(transcript.said(), lines if number == 0 else ALL)
    finally:
        _print_last(transcript.screen(), ALL)


def _print_last(said: list[str], lines: int) -> None:
    if said and lines:
        show("\n".join(said[-lines:]))


def _show_bytes(path: Path, lines: int, follow: bool) -> None:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        _seek_lines(file, lines)
        newest = size - file.tell()
    for items in _batches(path, newest) if follow else [read_log(path, newest)]:
        for item in items:
            if isinstance(item, Output):
                sys.stdout.buffer.write(item.data)
        sys.stdout.buffer.flush()


def _show_cast(path: Path, _lines: int, follow: bool) -> None:
    cast = LogCast(path.stem)
    for items in _batches(path, ALL) if follow else [read_log(path, ALL)]:
        for line in cast.lines(items):
            sys.stdout.buffer.write(line.encode())
        sys.stdout.buffer.flush()
    for line in cast.end():
        sys.stdout.buffer.write(line.encode())


_SHOW: MappingProxyType[Format, Callable[[Path, int, bool], None]] = MappingProxyType(
    {"text": _show_text, "ansi": _show_bytes, "asciicast": _show_cast}
)


def _batches(path: Path, newest: int) -> Iterator[Iterable[LogItem]]:
    """What a log that is followed holds, then what is added, without end."""
    batch: list[LogItem] = []
    for item in follow_log(path, newest, lambda: time.sleep(POLL)):
        if item is not None:
            batch.append(item)
            continue
        yield batch
        batch = []


def find_log(caller: Caller, agent: str) -> Path:
    """The log of an agent: of a live one by any address, of one that has ended by id, type and port, or type.

    Raises:
        AgentNotFound: There is no log of that name.
        AmbiguousAddress: Several live agents are meant.
    """
    logs = {path.stem: path for path in _log_files(caller.paths.logs)}
    exact = logs.get(fold(agent)) or logs.get(f"synapse-{fold(agent)}")
    if exact is not None:
        return exact
    try:
        found = caller.find(agent)
    except AgentNotFound as error:
        latest = _latest_of_type(fold(agent), logs)
        if latest is None:
            raise _no_log(agent, list(logs), error) from error
        return latest
    if len(found) != 1:
        raise AgentNotFound("logs are shown of one agent at a time", "name one of them")
    return caller.paths.logs / f"{found[0].agent_id}.log"


def _log_files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix == ".log" and parse_agent_id(path.stem)]
    except OSError:
        return []


def _latest_of_type(kind: str, logs: dict[str, Path]) -> Path | None:
    matching = [path for name, path in logs.items() if (parse_agent_id(name) or ("",))[0] == kind]
    return max(matching, key=lambda path: path.stat().st_mtime, default=None)


def _no_log(agent: str, names: list[str], error: AgentNotFound) -> AgentNotFound:
    hint = f"there are logs of: {', '.join(sorted(names))}" if names else error.hint
    return AgentNotFound(f"there is no log of '{agent}'", hint)


def _seek_lines(file: BinaryIO, lines: int) -> None:
    """Move to the begin of the last `lines` lines, reading no more of the file than needed."""
    end = file.seek(0, 2)
    position = end
    wanted = lines
    while position > 0:
        start = max(0, position - BLOCK)
        file.seek(start)
        block = file.read(position - start)
        if position == end and block.endswith(b"\n"):
            wanted += 1  # the line feed at the very end begins no line
        found = block.count(b"\n")
        if found >= wanted:
            file.seek(start + _after_newline(block, found - wanted))
            return
        wanted -= found
        position = start
    file.seek(0)


def _after_newline(block: bytes, index: int) -> int:
    """Offset after the line feed number `index` of a block, counted from 0."""
    at = -1
    for _ in range(index + 1):
        at = block.index(b"\n", at + 1)
    return at + 1
