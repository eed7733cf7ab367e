"""`synapse reset`: the files of `.synapse` as they were shipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from synapse_tui.errors import ConfigError

from .caller import Caller
from .commands import Command
from .options import json_option
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

if TYPE_CHECKING:
    from synapse_tui.scaffold import Scaffold
    from synapse_tui.scaffold.files import Step


@click.command(name="reset", cls=Command)
@scope_options
@dry_run_option
@click.option("--yes", "-y", "agreed", is_flag=True, help="Do not ask.")
@json_option
def command(*, scope: str | None, dry_run: bool, agreed: bool, as_json: bool) -> None:
    """Put the files that `synapse init` writes back, as they are shipped.

    A file that was edited is kept beside it, as NAME.bak. Keys of callers, and whether they are demanded,
    stay as they are (`synapse auth`), and so does settings.local.json. The line in CLAUDE.md and GEMINI.md
    is taken out.
    """
    caller = Caller.of()
    scaffold = scaffold_of(caller, scope)
    if not scaffold.folder.is_dir():
        raise ConfigError(f"there is no {scaffold.folder}", "synapse init makes it")
    tell_place(scaffold, caller)
    steps = [*scaffold.to_reset(), *scaffold.notes(wanted=False)]
    if dry_run:
        show_steps(scaffold, steps, as_json=as_json, dry_run=True)
        note("synapse: nothing was changed")
        return
    if not any(step.changes for step in steps):
        show_steps(scaffold, steps, as_json=as_json, dry_run=False)
        note("synapse: there is nothing to put back")
        return
    if not agreed and not _agrees(scaffold, steps, as_json=as_json):
        note("synapse: nothing was changed")
        return
    carry_out(scaffold, caller, steps)
    if agreed:
        show_steps(scaffold, steps, as_json=as_json, dry_run=False)
    note("synapse: done")


def _agrees(scaffold: Scaffold, steps: Sequence[Step], *, as_json: bool) -> bool:
    """Whether the person wants it done, who has seen what it is.

    Raises:
        ConfigError: Nobody is there to answer.
    """
    if as_json or not asks():
        raise ConfigError("nothing is put back unasked", "--yes does it, --dry-run tells what would be done")
    show_steps(scaffold, steps, as_json=False, dry_run=True)
    return click.confirm("Go on?", default=False, err=True)
