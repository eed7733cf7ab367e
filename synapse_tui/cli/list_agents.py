"""`synapse list`: who is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from synapse_tui.registry import Record

from .caller import Caller
from .output import note, show_json, show_table, want_json

HEADS = ("ID", "TYPE", "NAME", "STATE", "PORT", "FOLDER")


@click.command(name="list")
@click.option("--all", "everywhere", is_flag=True, help="Agents of other projects too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, everywhere: bool, as_json: bool) -> None:
    """List the agents of this project.

    Agents of other projects (--all) are marked by a `*`: they are reached by their exact id.
    """
    if as_json:
        want_json(context)
    caller = Caller.of()
    records = caller.registry.list()
    project = caller.project_of(records)
    shown = [record for record in records if everywhere or record.project == project]
    if as_json:
        show_json([{**asdict(record), "here": record.project == project} for record in shown])
        return
    if shown:
        show_table(HEADS, [_row(record, project) for record in shown])
    _explain(len(records) - len(shown), shown)


def _row(record: Record, project: str) -> tuple[str, ...]:
    mark = "" if record.project == project else " *"
    folder = _home(record.working_dir)
    return (record.agent_id + mark, record.agent_type, record.name, record.status, str(record.port), folder)


def _home(folder: str) -> str:
    """A folder as people write it."""
    home = str(Path.home())
    return "~" + folder[len(home) :] if folder == home or folder.startswith(home + "/") else folder


def _explain(hidden: int, shown: Sequence[Record]) -> None:
    if not shown:
        note("no agent runs in this project; start one, such as: synapse claude")
    if hidden:
        note(f"{hidden} more in other projects: synapse list --all")
