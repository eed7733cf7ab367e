"""What `synapse init` and `synapse reset` share: the place, the report, and trust in what a person wrote."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from synapse_tui.paths import find_project

from .caller import Caller
from .options import one_of
from .output import note, show_json
from .tables import show_table

if TYPE_CHECKING:
    from synapse_tui.scaffold import Scaffold, Scope
    from synapse_tui.scaffold.files import Step

scope_options = one_of(
    "scope",
    ("--project", "project", "The project's .synapse (the default)."),
    ("--user", "user", "Your own, ~/.synapse, for all projects."),
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only print what would be done.")


def scaffold_of(caller: Caller, scope: str | None) -> Scaffold:
    """The files that are meant.

    Raises:
        ConfigError: There can be none.
    """
    from synapse_tui.scaffold import Scaffold

    chosen: Scope = "user" if scope == "user" else "project"
    return Scaffold(chosen, find_project(caller.folder), caller.paths)


def asks() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()


def tell_place(scaffold: Scaffold, caller: Caller) -> None:
    """Say which folder is the project, where that is not the current one."""
    if scaffold.scope == "project" and scaffold.project != caller.folder:
        note(f"synapse: the project is {scaffold.project}")


def show_steps(scaffold: Scaffold, steps: Sequence[Step], *, as_json: bool, dry_run: bool) -> None:
    """Print what was done, or would be."""
    if as_json:
        show_json(
            {
                "scope": scaffold.scope,
                "folder": str(scaffold.folder),
                "dry_run": dry_run,
                "steps": [step.as_json() for step in steps],
            }
        )
        return
    rows = [(step.action, _named(step.path, scaffold), _about(step)) for step in steps]
    show_table(("WHAT", "FILE", "WHY"), rows)


def _named(path: Path, scaffold: Scaffold) -> str:
    """A path as short as it is clear."""
    base = scaffold.folder.parent
    name = str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
    return f"~/{name}" if scaffold.scope == "user" else name


def _about(step: Step) -> str:
    backup = f"the old one is {step.backup.name}" if step.backup else ""
    return "; ".join(part for part in (step.why, backup) if part)


def carry_out(scaffold: Scaffold, caller: Caller, steps: Sequence[Step]) -> None:
    """Do what is to be done, and trust what was written, also when it does not come to its end.

    Raises:
        ConfigError: A step cannot be done.
    """
    from synapse_tui.scaffold import files

    scaffold.make_folder()
    done: list[Step] = []
    try:
        files.carry_out(steps, done.append)
    finally:
        if scaffold.scope == "project":
            _trust_written(caller, done)


def _trust_written(caller: Caller, steps: Sequence[Step]) -> None:
    """Trust the project's files that a person has just had written; what an agent writes waits for one."""
    from synapse_tui.agents.profiles.finding import TrustStore, UntrustedFile

    folder_steps = [step for step in steps if step.note is None and step.path.name != ".gitignore"]
    if caller.agent_id:
        if folder_steps:
            note("synapse: they count once a person has trusted them: synapse trust, or synapse-tui asks")
        return
    store = TrustStore(caller.paths.trusted)
    found = (store.check(step.path, step.data or b"") for step in folder_steps)
    untrusted = [file for file in found if isinstance(file, UntrustedFile)]
    try:
        if untrusted:
            store.trust(untrusted)
    except OSError as error:
        note(f"synapse: they could not be noted as trusted: {error.strerror}")
