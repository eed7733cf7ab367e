"""`synapse list`: who is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from synapse_tui.addresses import identity_of
from synapse_tui.paths import tilde
from synapse_tui.registry import Record

from .caller import Caller
from .commands import Command
from .options import json_option
from .output import note, show_json
from .tables import show_table

if TYPE_CHECKING:
    from synapse_tui.a2a.external.registry import ExternalAgent

HEADS = ("ID", "TYPE", "NAME", "STATE", "PORT", "FOLDER")


@click.command(name="list", cls=Command)
@click.option("--all", "everywhere", is_flag=True, help="Agents of other projects too.")
@json_option
def command(everywhere: bool, as_json: bool) -> None:
    """List the agents of this project.

    Agents of other projects (--all) are marked by a `*`: they are reached by their exact id. External agents
    are reached by their alias.
    """
    caller = Caller.of()
    records = caller.registry.list()
    project = caller.project_of(records)
    shown = [record for record in records if everywhere or record.project == project]
    externals = _externals(caller)
    if as_json:
        here = [_json(record, project) for record in shown]
        show_json([*here, *map(_external_json, externals)])
        return
    rows = [_row(record, project) for record in shown] + [_external_row(agent) for agent in externals]
    if rows:
        show_table(HEADS, rows, shrinking=("NAME",))
    _explain(len(records) - len(shown), shown)


def _json(record: Record, project: str) -> dict[str, object]:
    identity = identity_of(record.working_dir, record.agent_type, record.name)
    return {**asdict(record), "identity": identity, "here": record.project == project}


def _row(record: Record, project: str) -> tuple[str, ...]:
    mark = "" if record.project == project else " *"
    folder = tilde(record.working_dir)
    return (record.agent_id + mark, record.agent_type, record.name, record.status, str(record.port), folder)


def _externals(caller: Caller) -> Sequence[ExternalAgent]:
    """The external agents; where none was ever added, nothing is loaded for them."""
    if not caller.paths.external.is_dir():
        return ()
    from synapse_tui.a2a.external.registry import ExternalStore

    return ExternalStore(caller.paths.external).list()


def _external_row(agent: ExternalAgent) -> tuple[str, ...]:
    from synapse_tui.a2a.external.untrusted import shown_origin

    return (agent.alias, "external", agent.name, "", "", shown_origin(agent.url))


def _external_json(agent: ExternalAgent) -> dict[str, object]:
    return {
        "agent_id": agent.alias,
        "agent_type": "external",
        "name": agent.name,
        "endpoint": agent.url,
        "external": True,
        "here": False,
    }


def _explain(hidden: int, shown: Sequence[Record]) -> None:
    if not shown:
        note("no agent runs in this project; start one, such as: synapse claude")
    if hidden:
        note(f"{hidden} more in other projects: synapse list --all")
