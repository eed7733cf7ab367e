"""`synapse trust`: lets files of the project count, once a person has read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from synapse_tui.content import plain
from synapse_tui.errors import ConfigError, InvalidValue
from synapse_tui.files import read_regular, write_advice
from synapse_tui.paths import find_project

from .caller import Caller
from .commands import Command
from .options import json_option
from .output import note, show, show_json
from .scaffolding import asks

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.finding import TrustStore, UntrustedFile


@click.command(name="trust", cls=Command)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option("--list", "only_list", is_flag=True, help="Only print which files wait to be trusted.")
@click.option("--yes", "-y", "agreed", is_flag=True, help="Trust them without printing them or asking.")
@json_option
def command(files: tuple[str, ...], *, only_list: bool, agreed: bool, as_json: bool) -> None:
    """Show files of this project's .synapse, and let them count.

    Settings, profiles and texts of a project are used only once a person has trusted their very content.
    Without FILE all that wait are shown and asked about, as the application does at its start.
    """
    from synapse_tui.agents.profiles.finding import TrustStore

    caller = Caller.of()
    if caller.agent_id and not only_list:
        raise InvalidValue(
            f"files are for the person to trust, not for {caller.agent_id}", "run it in a shell of your own"
        )
    project = find_project(caller.folder)
    store = TrustStore(caller.paths.trusted)
    waiting = _named(project, files, store) if files else _waiting(project, caller)
    if only_list or not waiting:
        _show(waiting, trusted=False, as_json=as_json)
        return
    if not agreed and not _agrees(waiting, as_json=as_json):
        note("synapse: nothing was trusted")
        return
    try:
        store.trust(waiting)
    except OSError as error:
        raise ConfigError(
            f"{caller.paths.trusted} cannot be written: {error.strerror or error}", write_advice(error)
        ) from error
    _show(waiting, trusted=True, as_json=as_json)


def _waiting(project: Path, caller: Caller) -> Sequence[UntrustedFile]:
    """The files of the project that would be used, if they were trusted."""
    from synapse_tui.daemon.project import ProjectFiles

    return ProjectFiles(project, caller.paths).profiles.untrusted


def _named(project: Path, files: Sequence[str], store: TrustStore) -> Sequence[UntrustedFile]:
    """Those of the named files that are not trusted.

    Raises:
        InvalidValue: One is no file of the project's `.synapse`, or cannot be read.
    """
    found: dict[Path, UntrustedFile] = {}
    for name in files:
        path = _path_of(project, name)
        try:
            file = store.check(path, read_regular(path))
        except OSError as error:
            raise InvalidValue(
                f"{name} cannot be read: {error.strerror or error}",
                "synapse trust --list names the files that wait to be trusted",
            ) from error
        if file is None:
            note(f"synapse: {path} is trusted already")
        else:
            found[file.path] = file
    return list(found.values())


def _path_of(project: Path, name: str) -> Path:
    """A file as it was typed: from the current folder, or from `.synapse`.

    Raises:
        InvalidValue: It does not lie in `.synapse`.
    """
    folder = project / ".synapse"
    here = Path(name).absolute()
    path = here if here.exists() else folder / name
    if ".." in path.parts or not path.is_relative_to(folder):
        raise InvalidValue(f"{name} is no file of {folder}", "other files need not be trusted")
    return path


def _agrees(files: Sequence[UntrustedFile], *, as_json: bool) -> bool:
    """Whether the person, who has seen the files, wants them to count.

    Raises:
        ConfigError: Nobody is there to answer.
    """
    if as_json or not asks():
        raise ConfigError("nothing is trusted unasked", "--yes trusts what waits, --list shows what that is")
    for file in files:
        show(f"== {file.path}{_changed(file)} ==\n{plain(file.content).rstrip()}\n")
    count = "this file" if len(files) == 1 else f"these {len(files)} files"
    return click.confirm(f"Trust {count}? They can start programs and instruct agents", err=True)


def _show(files: Sequence[UntrustedFile], *, trusted: bool, as_json: bool) -> None:
    if as_json:
        show_json(
            [
                {
                    "path": str(file.path),
                    "digest": file.digest,
                    "changed": file.changed,
                    "trusted": trusted,
                }
                for file in files
            ]
        )
        return
    for file in files:
        show(f"{file.path}{'' if trusted else _changed(file)}")
    if trusted:
        note("synapse: trusted; running sessions follow")
    elif not files:
        note("synapse: no file waits to be trusted")


def _changed(file: UntrustedFile) -> str:
    return " (changed since you trusted it)" if file.changed else ""
