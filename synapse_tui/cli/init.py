"""`synapse init`: the files of `.synapse` that a person edits."""

from __future__ import annotations

import click

from .caller import Caller
from .commands import Command
from .options import json_option, one_of
from .output import note
from .scaffolding import (
    asks,
    carry_out,
    dry_run_option,
    scaffold_of,
    scope_options,
    show_steps,
    tell_place,
)


@click.command(name="init", cls=Command)
@scope_options
@dry_run_option
@one_of(
    "agreed",
    ("--yes -y", True, "Answer every question with yes."),
    ("--no-input", False, "Ask nothing: what needs a yes is not done."),
)
@json_option
def command(*, scope: str | None, dry_run: bool, agreed: bool | None, as_json: bool) -> None:
    """Write settings and instructions into .synapse, to be edited.

    The project is the nearest folder with .synapse, else the root of the git repository, else the current
    folder. A file that is there stays, unless it is an older version's and nobody has edited it. With your
    consent CLAUDE.md and GEMINI.md of the project get a line that tells of the other agents; `synapse reset`
    takes it out again.
    """
    caller = Caller.of()
    scaffold = scaffold_of(caller, scope)
    steps = scaffold.to_init()
    lines = list(scaffold.notes(wanted=True))
    due = any(step.changes for step in lines)
    tell_place(scaffold, caller)
    if dry_run:
        show_steps(scaffold, [*steps, *([] if agreed is False else lines)], as_json=as_json, dry_run=True)
        asked = "; lines for CLAUDE.md and GEMINI.md are asked about first" if due and agreed is None else ""
        note(f"synapse: nothing was changed{asked}")
        return
    wanted = lines if due and _consents(agreed) else []
    carry_out(scaffold, caller, [*steps, *wanted])
    show_steps(scaffold, [*steps, *wanted], as_json=as_json, dry_run=False)
    if due and not wanted and agreed is None and not asks():
        note("synapse: CLAUDE.md and GEMINI.md are as they were; --yes adds a line to them")
    if any(step.changes and step.path.name == "settings.json" for step in steps):
        note("synapse: settings.json sets nothing yet; synapse config keys lists the settings")
    faults = scaffold.faults()
    if faults:
        note(f"synapse: {len(faults)} in settings.json cannot be used: synapse config validate tells what")


def _consents(agreed: bool | None) -> bool:
    """Whether the person wants a line in files that are not ours."""
    if agreed is not None or not asks():
        return bool(agreed)
    question = "Add a line to CLAUDE.md and GEMINI.md of this project, which tells of the other agents?"
    return click.confirm(question, default=False, err=True)
