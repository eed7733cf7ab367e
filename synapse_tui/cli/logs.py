"""`synapse logs`: what an agent wrote."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from synapse_tui.addresses import fold, parse_agent_id
from synapse_tui.errors import AgentNotFound, SynapseError

from .caller import Caller
from .escapes import EscapeStripper

BLOCK = 64 * 1024
POLL = 0.2
"""Seconds between two looks at a file that is followed."""


@click.command(name="logs")
@click.argument("agent")
@click.option(
    "-n", "--lines", metavar="N", type=click.IntRange(min=0), default=50, help="How many last lines. [50]"
)
@click.option("-f", "--follow", is_flag=True, help="Go on as the agent writes; Ctrl+C ends.")
@click.option("--raw", is_flag=True, help="Keep escape sequences; they act on your terminal.")
def command(agent: str, lines: int, follow: bool, raw: bool) -> None:
    """Show the log of AGENT, also of one that has ended.

    Escape sequences are taken out, so that nothing in the log acts on your terminal.
    """
    path = find_log(Caller.of(), agent)
    strip = _as_it_is if raw else EscapeStripper().feed
    try:
        with path.open("rb") as file:
            _seek_lines(file, lines)
            for block in _blocks(file, path, follow=follow):
                sys.stdout.buffer.write(strip(block))
                sys.stdout.buffer.flush()
    except FileNotFoundError:
        raise SynapseError(f"{path} is gone", "the agent may have been started anew") from None
    except PermissionError:
        raise SynapseError(f"{path} cannot be read", "look at its permissions") from None


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


def _as_it_is(data: bytes) -> bytes:
    return data


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


def _blocks(file: BinaryIO, path: Path, *, follow: bool) -> Iterator[bytes]:
    while True:
        block = file.read(BLOCK)
        if block:
            yield block
        elif not follow:
            return
        else:
            if path.stat().st_size < file.tell():
                file.seek(0)  # it was begun anew
            time.sleep(POLL)
