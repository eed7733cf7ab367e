"""`synapse logs`: an agent's output."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from synapse_tui.core.addresses import fold, parse_agent_id
from synapse_tui.core.errors import AgentNotFound, InvalidValue, SynapseError
from synapse_tui.daemon.recording.log_reader import LogCast, LogItem, Output, follow_log, read_log
from synapse_tui.system.paths import shipped_profiles

from .caller import Caller
from .commands import Command, json_option
from .completion import complete_agents
from .output import show, show_json

if TYPE_CHECKING:
    from synapse_tui.daemon.recording.transcript import Transcript

BLOCK = 64 * 1024
POLL = 0.2
"""Seconds between checks of a followed file."""
NEWEST = 4_000_000
"""Bytes at the end of the log that are searched for the last lines; parsed at megabytes a second."""
FEW = 1000
"""Lines that fit into `NEWEST` bytes with certainty."""
ALL = sys.maxsize


@click.command(name="logs", cls=Command)
@click.argument("agent", shell_complete=complete_agents)
@click.option(
    "-n",
    "--lines",
    metavar="N",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Number of last lines; an asciicast is always complete.",
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new output until Ctrl+C.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "ansi", "asciicast"]),
    default="text",
    show_default=True,
    help="Lines of text, the raw bytes (they control your terminal), or an asciicast recording.",
)
@click.option("--raw", is_flag=True, help="Deprecated: --format ansi.")
@json_option
def logs_command(agent: str, lines: int, follow: bool, form: str, raw: bool, as_json: bool) -> None:
    """Show the output of AGENT, even after it has ended.

    The output is rendered by a terminal emulator and printed as text, so nothing in it can control your
    terminal.

    Examples:
      synapse logs claude -n 200
      synapse logs claude -f
      synapse logs claude --format asciicast > claude.cast
    """
    form = "ansi" if raw else form
    if as_json and (follow or form != "text"):
        raise InvalidValue("--json cannot be combined with --follow or --format", "leave these out")
    caller = Caller.of()
    path = find_log(caller, agent)
    try:
        if as_json:
            text = _last_lines(path, _transcript(caller, path), lines)
            show_json({"agent_id": path.stem, "file": str(path), "lines": text})
        elif form == "text":
            _show_text(path, _transcript(caller, path), lines=lines, follow=follow)
        elif form == "ansi":
            _show_bytes(path, lines=lines, follow=follow)
        else:
            _show_cast(path, follow=follow)
    except FileNotFoundError:
        raise SynapseError(f"{path} no longer exists", "the agent may have been restarted") from None
    except PermissionError:
        raise SynapseError(f"{path} cannot be read", "check its permissions") from None


def find_log(caller: Caller, agent: str) -> Path:
    folder = caller.paths.logs
    try:
        files = [path for path in folder.iterdir() if path.suffix == ".log" and parse_agent_id(path.stem)]
    except OSError:
        files = []
    logs = {path.stem: path for path in files}
    wanted = fold(agent)
    exact = logs.get(wanted) or logs.get(f"synapse-{wanted}")
    if exact is not None:
        return exact
    try:
        found = caller.find(agent)
    except AgentNotFound as error:
        same_type = [path for name, path in logs.items() if (parse_agent_id(name) or ("",))[0] == wanted]
        if same_type:
            return max(same_type, key=lambda path: path.stat().st_mtime)
        hint = f"existing logs: {', '.join(sorted(logs))}" if logs else error.hint
        raise AgentNotFound(f"no log of '{agent}'", hint) from error
    if len(found) != 1:
        raise AgentNotFound("only one agent's log can be shown at a time", "name one of them")
    return folder / f"{found[0].agent_id}.log"


def _transcript(caller: Caller, log: Path) -> Transcript:
    from synapse_tui.agents.profiles.finding import load_profiles
    from synapse_tui.daemon.recording.transcript import Transcript

    kind = (parse_agent_id(log.stem) or ("",))[0]
    profile = load_profiles(shipped_profiles(), caller.paths.profiles).profiles.get(kind)
    return Transcript(half_blanks=profile is not None and profile.quirks.half_blanks)


def _show_text(path: Path, transcript: Transcript, *, lines: int, follow: bool) -> None:
    if not follow:
        _print_last(_last_lines(path, transcript, lines), lines)
        return
    newest = NEWEST if lines <= FEW else ALL
    try:
        for number, items in enumerate(_batches(path, newest)):
            transcript.take(items)
            _print_last(transcript.said(), lines if number == 0 else ALL)
    finally:
        _print_last(transcript.screen(), ALL)


def _last_lines(path: Path, transcript: Transcript, lines: int) -> list[str]:
    transcript.take(read_log(path, NEWEST if lines <= FEW else ALL))
    return (transcript.said() + transcript.screen())[-lines:] if lines else []


def _print_last(text: list[str], lines: int) -> None:
    if text and lines:
        show("\n".join(text[-lines:]))


def _show_bytes(path: Path, *, lines: int, follow: bool) -> None:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        _seek_lines(file, lines)
        newest = size - file.tell()
    for items in _batches(path, newest) if follow else [read_log(path, newest)]:
        for item in items:
            if isinstance(item, Output):
                sys.stdout.buffer.write(item.data)
        sys.stdout.buffer.flush()


def _show_cast(path: Path, *, follow: bool) -> None:
    cast = LogCast(path.stem)
    for items in _batches(path, ALL) if follow else [read_log(path, ALL)]:
        for line in cast.lines(items):
            sys.stdout.buffer.write(line.encode())
        sys.stdout.buffer.flush()
    for line in cast.end():
        sys.stdout.buffer.write(line.encode())


def _batches(path: Path, newest: int) -> Iterator[Iterable[LogItem]]:
    """Yield the content of a followed log, then each addition, endlessly."""
    batch: list[LogItem] = []
    for item in follow_log(path, newest, lambda: time.sleep(POLL)):
        if item is not None:
            batch.append(item)
            continue
        yield batch
        batch = []


def _seek_lines(file: BinaryIO, lines: int) -> None:
    """Seek to the start of the last `lines` lines, reading no more than needed."""
    end = file.seek(0, 2)
    position = end
    wanted = lines
    while position > 0:
        start = max(0, position - BLOCK)
        file.seek(start)
        block = file.read(position - start)
        if position == end and block.endswith(b"\n"):
            wanted += 1  # the final line feed starts no line
        found = block.count(b"\n")
        if found >= wanted:
            at = -1
            for _ in range(found - wanted + 1):
                at = block.index(b"\n", at + 1)
            file.seek(start + at + 1)
            return
        wanted -= found
        position = start
    file.seek(0)
