"""`synapse instructions`: the instructions that agents get about each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from synapse_tui.a2a import calls
from synapse_tui.core.addresses import Address
from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.model import TaskState
from synapse_tui.core.wording import standing

from .caller import Caller
from .commands import CommandGroup, json_option
from .completion import complete_agents
from .output import note, plain, show, show_json
from .sending import receipt


@click.group(name="instructions", cls=CommandGroup)
def instructions_command() -> None:
    """Show or send the instructions for agents, sent when a conversation begins.

    Examples:
      synapse instructions show claude
      synapse instructions send claude
    """


@instructions_command.command(name="show")
@click.argument("agent", required=False, default="", shell_complete=complete_agents)
@click.option("--type", "agent_type", metavar="T", default="", help="Show what an agent of type T would get.")
@click.option(
    "--now", is_flag=True, help="Show what would be sent now, even if instructions were sent before."
)
@json_option
def show_command(*, agent: str, agent_type: str, now: bool, as_json: bool) -> None:
    """Print the instructions that AGENT got or would get; standard error lists their files.

    Examples:
      synapse instructions show claude --now
      synapse instructions show --type gemini
    """
    caller = Caller.of()
    if agent_type and agent:
        raise InvalidValue("AGENT and --type cannot be combined", "give one of them")
    if agent_type:
        answer: Mapping[str, Any] = of_type(caller, agent_type)
        who = f"an agent of type {agent_type}"
    else:
        target = _meant(caller, agent)
        who = target.agent_id
        answer = caller.client().call(target.endpoint, calls.instructions(now=now))
    for line in _narration(who, answer):
        note(f"synapse: {line}")
    if as_json:
        show_json({"agent": who if not agent_type else "", **answer})
    elif answer["text"]:
        show(plain(str(answer["text"])))


@instructions_command.command(name="send")
@click.argument("agent", shell_complete=complete_agents)
@json_option
def send_command(*, agent: str, as_json: bool) -> None:
    """Send AGENT its instructions again, as they are now.

    Examples:
      synapse instructions send claude
    """
    caller = Caller.of()
    target = caller.find_one(agent)
    task, faults = caller.client().call(target.endpoint, calls.send_instructions(), sender_id=caller.agent_id)
    for fault in faults:
        note(f"synapse: left out: {fault}")
    if as_json:
        about = {"task_id": task.task_id, "status": task.state.value, "delivery": task.delivery}
        show_json({"target": target.agent_id, **about, "reason": task.reason, "faults": faults})
    else:
        show(receipt(target.agent_id, task))


def of_type(caller: Caller, agent_type: str) -> Mapping[str, Any]:
    from synapse_tui.agents.environment import installed_command
    from synapse_tui.agents.instructions import InstructionTexts, TextFolders, compose, placeholders
    from synapse_tui.agents.profiles.finding import load_profiles
    from synapse_tui.settings import load_settings
    from synapse_tui.system.paths import shipped_profiles
    from synapse_tui.system.trust import TrustStore

    records = caller.registry.list()
    project = Path(caller.project_of(records))
    folder, trust = project / ".synapse", TrustStore(caller.paths.trusted)
    found = load_profiles(shipped_profiles(), caller.paths.profiles, folder / "profiles", trust=trust)
    profile = found.find(agent_type)
    settings = load_settings(
        project, paths=caller.paths, environ=os.environ, trusted=trust.trusts, types=found.profiles
    )
    for problem in settings.problems:
        note(f"synapse: {problem}")
    port = profile.ports[0]
    own = Address(
        f"synapse-{profile.name}-{port}",
        profile.name,
        "",
        port,
        f"http://127.0.0.1:{port}",
        working_dir=str(project),
    )
    others = [record.address(str(project)) for record in records if record.agent_id != own.agent_id]
    everyone = [own, *others]
    composed = compose(
        InstructionTexts.of(settings, profile.name),
        placeholders(own, everyone, project=project, command=installed_command()),
        TextFolders(folder, caller.paths.synapse, trust.trusts),
    )
    return {
        "text": composed.text,
        "files": [str(file.path) for file in composed.files],
        "faults": [str(fault) for fault in composed.faults],
        "wanted": profile.instructions and profile.receives,
        "told": False,
        "sent": None,
    }


def _meant(caller: Caller, agent: str) -> Address:
    if agent or caller.agent_id:
        return caller.find_one(agent or caller.agent_id)
    here = caller.here()
    if len(here) != 1:
        raise InvalidValue("name an agent", "synapse instructions show AGENT, or --type claude for a type")
    return here[0]


def _narration(who: str, answer: Mapping[str, Any]) -> list[str]:
    sent, text = answer.get("sent"), str(answer["text"])
    if isinstance(sent, dict):
        at = datetime.fromisoformat(str(sent["at"])).astimezone()
        state = standing(TaskState(sent["status"]), str(sent["delivery"]))
        about = f"sent to {who} at {at:%Y-%m-%d %H:%M:%S} (task {str(sent['task_id'])[:8]}, {state})"
    elif not text:
        about = f"no instructions for {who}"
    elif answer.get("told"):
        about = f"{who} already has instructions; now it would get"
    elif answer.get("wanted"):
        about = f"{who} would get"
    else:
        about = f"{who} gets none by default (its profile); `synapse instructions send` would send"
    size = f": {len(text):,} characters" if text else ""
    lines = [about + size, *(f"from {path}" for path in answer.get("files", ()))]
    return [*lines, *(f"left out: {fault}" for fault in answer.get("faults", ()))]
