"""`synapse logs`: what an agent wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from synapse_tui.addresses import fold, parse_agent_id
from synapse_tui.errors import AgentNotFound, InvalidValue, SynapseError
from synapse_tui.paths import shipped_profiles

from .caller import Caller
from .commands import Command
from .completing import complete_agents
from .options import json_option
from .output import show_json

if TYPE_CHECKING:
    from synapse_tui.recording.transcript import Transcript


@click.command(name="logs", cls=Command)
@click.argument("agent", shell_complete=complete_agents)
@click.option(
    "-n",
    "--lines",
    metavar="N",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="How many last lines; an asciicast is always whole.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on as the agent writes; Ctrl+C ends.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "ansi", "asciicast"]),
    default="text",
    show_default=True,
    help="Lines of text, the bytes as they are (they act on your terminal), or an asciicast recording.",
)
@click.option("--raw", is_flag=True, help="Deprecated: --format ansi.")
@json_option
def command(agent: str, lines: int, follow: bool, form: str, raw: bool, as_json: bool) -> None:
    """Show the log of AGENT, also of one that has ended.

    Its output is put through a terminal of our own and the text of that is shown, so that nothing in the log
    acts on your terminal.
    """
    form = "ansi" if raw else form
    if as_json and (follow or form != "text"):
        raise InvalidValue("--json is for lines of text that are there", "leave --follow and --format out")
    caller = Caller.of()
    path = find_log(caller, agent)
    from .log_output import last_lines, show_bytes, show_cast, show_text

    try:
        if as_json:
            said = last_lines(path, _transcript(caller, path), lines)
            show_json({"agent_id": path.stem, "file": str(path), "lines": said})
        elif form == "text":
            show_text(path, _transcript(caller, path), lines=lines, follow=follow)
        elif form == "ansi":
            show_bytes(path, lines=lines, follow=follow)
        else:
            show_cast(path, follow=follow)
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


def _transcript(caller: Caller, log: Path) -> Transcript:
    """What takes the text out of a log, told how that agent writes."""
    from synapse_tui.agents.profiles.finding import load_profiles
    from synapse_tui.recording.transcript import Transcript

    kind = (parse_agent_id(log.stem) or ("",))[0]
    profile = load_profiles(shipped_profiles(), caller.paths.profiles).profiles.get(kind)
    return Transcript(half_blanks=profile is not None and profile.quirks.half_blanks)


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
