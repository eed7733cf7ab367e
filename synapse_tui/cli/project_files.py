"""`synapse init`, `reset` and `trust`: the files of `.synapse`."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.core.errors import ConfigError, InvalidValue
from synapse_tui.settings import SCHEMA
from synapse_tui.settings.files import agents_may_not, parse
from synapse_tui.settings.layers import check_file, entries_of
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import private_folder, read_regular, write_advice, write_private
from synapse_tui.system.language import tr
from synapse_tui.system.paths import IGNORED, find_project, make_project_folder

from .caller import Caller
from .commands import Command, json_option, one_of
from .output import confirm, is_interactive, note, plain, show, show_json, show_table

if TYPE_CHECKING:
    from synapse_tui.system.trust import TrustStore, UntrustedFile

SETTINGS = "settings.json"
EMPTY = b"{}\n"
_scope_options = one_of(
    "scope",
    ("--project", "project", "The project's .synapse (the default)."),
    ("--user", "user", "Your own, ~/.synapse, for all projects."),
)
_dry_run_option = click.option("--dry-run", is_flag=True, help="Only print what would be done.")


_ACTIONS = {"write": "write", "replace": "replace", "keep": "leave"}
"""What a person reads of each action."""


@dataclass(frozen=True, slots=True)
class FileAction:
    """An action on a file: `write`, `replace` (renames the old one to the backup) or `keep`."""

    action: str
    path: Path
    why: str = ""
    data: bytes = b""
    backup: Path | None = None

    def as_json(self) -> Mapping[str, object]:
        backup = {"backup": str(self.backup)} if self.backup else {}
        return {"action": self.action, "path": str(self.path), "why": self.why} | backup

    def carry_out(self) -> None:
        """Write the file; an existing one is never lost."""
        if self.backup is not None:
            self.path.rename(self.backup)
        elif os.path.lexists(self.path):
            if read_regular(self.path) == self.data:
                return
            raise FileExistsError(f"{self.path} was just created by another process")
        try:
            write_private(self.path, self.data)
        except BaseException:
            if self.backup is not None:
                self.backup.rename(self.path)
            raise


class Scaffold:
    """The files that init and reset write: the settings and, in a project, a .gitignore."""

    def __init__(self, caller: Caller, scope: str | None) -> None:
        self.caller = caller
        self.scope = scope or "project"
        self.project = find_project(caller.folder)
        self.folder = (caller.paths.home if self.scope == "user" else self.project) / ".synapse"
        if self.scope == "user":
            return
        if self.folder == caller.paths.synapse:
            raise ConfigError(
                "your home folder is not a project",
                "use --user, or mark the project first: mkdir .synapse in its folder",
            )
        if self.project == Path(self.project.anchor):
            raise ConfigError("the root of the file system is not a project", "change to a project's folder")
        if self.project != caller.folder:
            note(f"synapse: the project is {self.project}")

    def to_init(self) -> list[FileAction]:
        files = {SETTINGS: EMPTY} | ({".gitignore": IGNORED} if self.scope == "project" else {})
        return [
            FileAction("keep", path, "exists")
            if os.path.lexists(path)
            else FileAction("write", path, data=data)
            for path, data in ((self.folder / name, data) for name, data in files.items())
        ]

    def to_reset(self) -> list[FileAction]:
        steps = []
        for step in self.to_init():
            if step.action == "write":
                steps.append(step)
                continue
            is_settings = step.path.name == SETTINGS
            guards = self._guards() if is_settings else {}
            data = _settings_of(guards) if is_settings else IGNORED
            if not step.path.is_symlink() and _regular(step.path) == data:
                steps.append(FileAction("keep", step.path, "unchanged"))
            else:
                steps.append(
                    FileAction(
                        "replace",
                        step.path,
                        "edited; access settings are kept" if guards else "edited",
                        data,
                        backup=_unused(step.path),
                    )
                )
        return steps

    def _guards(self) -> Mapping[str, object]:
        """Return the user's settings that restrict callers; a reset must not remove these restrictions."""
        path = self.folder / SETTINGS
        if self.scope != "user" or not path.exists():
            return {}
        entries = entries_of(parse(path, _regular(path)))
        return {key: value for key, value in entries if key in SCHEMA and SCHEMA[key].guard}

    def carry_out(self, steps: Sequence[FileAction]) -> None:
        """Write the files; settings written by a person are trusted, those of an agent need approval."""
        path = self.folder
        if self.scope == "user" and self.caller.acting_agent:
            raise agents_may_not()
        try:
            if self.scope == "user":
                private_folder(self.folder)
            else:
                make_project_folder(self.project)
            for step in steps:
                path = step.path
                if step.action != "keep":
                    step.carry_out()
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be written: {error.strerror or error}", write_advice(error)
            ) from error
        for step in steps if self.scope == "project" else ():
            if step.action != "keep" and step.path.name == SETTINGS:
                self._trust(step)

    def _trust(self, step: FileAction) -> None:
        from synapse_tui.system.trust import TrustStore

        if self.caller.acting_agent:
            note("synapse: they have no effect until the user trusts them (synapse trust, or in synapse-tui)")
            return
        store = TrustStore(self.caller.paths.trusted)
        file = store.check(step.path, step.data)
        try:
            if file is not None:
                store.trust([file])
        except OSError as error:
            note(f"synapse: the file could not be recorded as trusted: {error.strerror}")

    def show(self, steps: Sequence[FileAction], *, as_json: bool, dry_run: bool) -> None:
        if as_json:
            show_json(
                {
                    "scope": self.scope,
                    "folder": str(self.folder),
                    "dry_run": dry_run,
                    "steps": [step.as_json() for step in steps],
                }
            )
            return
        rows = []
        for step in steps:
            backup = tr(f"backup: {step.backup.name}") if step.backup else ""
            name = f"{'~/' if self.scope == 'user' else ''}{step.path.relative_to(self.folder.parent)}"
            why = "; ".join(part for part in (tr(step.why), backup) if part)
            rows.append((tr(_ACTIONS[step.action]), name, why))
        heads = ("WHAT", "FILE", "WHY") if any(why for _what, _name, why in rows) else ("WHAT", "FILE")
        show_table(heads, [row[: len(heads)] for row in rows])


@click.command(name="init", cls=Command)
@_scope_options
@_dry_run_option
@click.option("--yes", "-y", is_flag=True, hidden=True, help="No effect: init asks nothing.")
@click.option("--no-input", is_flag=True, hidden=True, help="No effect: init asks nothing.")
@json_option
def init_command(*, scope: str | None, dry_run: bool, as_json: bool, **_former: bool) -> None:
    """Write a settings file and a .gitignore into .synapse.

    The project is the nearest folder with .synapse, else the root of the git repository, else the current
    folder. Existing files are not changed.

    Examples:
      synapse init
      synapse init --user
    """
    scaffold = Scaffold(Caller.of(), scope)
    steps = scaffold.to_init()
    if not dry_run:
        scaffold.carry_out(steps)
    scaffold.show(steps, as_json=as_json, dry_run=dry_run)
    if dry_run:
        note("synapse: nothing was changed")
    elif steps[0].action == "write":
        note(f"synapse: {SETTINGS} is empty; `synapse config keys` lists the settings")
    elif faults := check_file(scaffold.folder / SETTINGS, own=scaffold.scope == "user"):
        note(f"synapse: problems in {SETTINGS}: {len(faults)}; `synapse config validate` shows them")


@click.command(name="reset", cls=Command)
@_scope_options
@_dry_run_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
def reset_command(*, scope: str | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Restore the files that `synapse init` writes; edited ones are kept as backups.

    API keys in your own settings are kept.

    Examples:
      synapse reset --dry-run
      synapse reset --yes
    """
    scaffold = Scaffold(Caller.of(), scope)
    if not scaffold.folder.is_dir():
        raise ConfigError(f"{scaffold.folder} does not exist", "synapse init creates it")
    steps = scaffold.to_reset()
    changes = [step for step in steps if step.action != "keep"]
    if dry_run or not changes:
        scaffold.show(steps, as_json=as_json, dry_run=dry_run)
        note("synapse: nothing was changed" if changes else "synapse: nothing to restore")
        return
    if not yes:
        if as_json or not is_interactive():
            raise ConfigError("nothing is reset without confirmation", "--yes confirms, --dry-run only shows")
        scaffold.show(steps, as_json=False, dry_run=True)
        if not confirm("Reset these files?"):
            note("synapse: nothing was changed")
            return
    scaffold.carry_out(steps)
    scaffold.show(steps, as_json=as_json, dry_run=False)


def _regular(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}", "move it elsewhere") from error


def _settings_of(entries: Mapping[str, object]) -> bytes:
    content: dict[str, Any] = {}
    for key, value in entries.items():
        *tables, name = key.split(".")
        place = content
        for table in tables:
            place = place.setdefault(table, {})
        place[name] = value
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()


def _unused(path: Path) -> Path:
    names = itertools.chain([f"{path.name}.bak"], (f"{path.name}.bak{at}" for at in itertools.count(2)))
    return next(found for name in names if not os.path.lexists(found := path.with_name(name)))


# -- trust ---


@click.command(name="trust", cls=Command)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option("--list", "only_list", is_flag=True, help="Only list the untrusted files.")
@click.option("--yes", "-y", "agreed", is_flag=True, help="Trust them without printing them or asking.")
@json_option
def trust_command(files: tuple[str, ...], *, only_list: bool, agreed: bool, as_json: bool) -> None:
    """Show the files in this project's .synapse and trust them.

    Settings, profiles and texts of a project are used only after the user has trusted their exact content.
    Without FILE, all untrusted files are shown for confirmation, as at the start of the application.

    Examples:
      synapse trust
      synapse trust .synapse/delegate.md --yes
    """
    from synapse_tui.daemon.project import ProjectFiles
    from synapse_tui.system.trust import TrustStore

    caller = Caller.of()
    if caller.acting_agent and not only_list:
        raise InvalidValue(
            f"agents cannot trust files, and this command runs inside {caller.acting_agent}",
            "run it in your own shell",
        )
    project = find_project(caller.folder)
    store = TrustStore(caller.paths.trusted)
    if files:
        waiting = _named(project, files, store)
    else:
        waiting = ProjectFiles(project, caller.paths).profiles.untrusted
    if only_list or not waiting:
        _show_files(waiting, trusted=False, as_json=as_json)
        return
    if not agreed and not agrees(waiting, as_json=as_json):
        note("synapse: nothing was trusted")
        return
    try:
        store.trust(waiting)
    except OSError as error:
        raise ConfigError(
            f"{caller.paths.trusted} cannot be written: {error.strerror or error}", write_advice(error)
        ) from error
    _show_files(waiting, trusted=True, as_json=as_json)


def _named(project: Path, files: Sequence[str], store: TrustStore) -> Sequence[UntrustedFile]:
    found: dict[Path, UntrustedFile] = {}
    for name in files:
        path = _path_of(project, name)
        try:
            file = store.check(path, read_regular(path))
        except OSError as error:
            raise InvalidValue(
                f"{name} cannot be read: {error.strerror or error}",
                "synapse trust --list names the files that are not trusted",
            ) from error
        if file is None:
            note(f"synapse: {path} is trusted already")
        else:
            found[file.path] = file
    return list(found.values())


def _path_of(project: Path, name: str) -> Path:
    folder = project / ".synapse"
    here = Path(name).absolute()
    path = here if here.exists() else folder / name
    if ".." in path.parts or not path.is_relative_to(folder):
        raise InvalidValue(f"{name} is not in {folder}", "only files in it need trust")
    return path


def agrees(files: Sequence[UntrustedFile], *, as_json: bool) -> bool:
    """Show files in full and ask whether to trust them."""
    if as_json or not is_interactive():
        raise ConfigError("nothing is trusted without confirmation", "--yes confirms, --list only shows")
    for file in files:
        show(f"== {file.path}{_changed(file)} ==\n{plain(file.content).rstrip()}\n")
    if len(files) == 1:
        return confirm("Trust this file? It can start programs and instruct agents")
    return confirm(f"Trust these {len(files)} files? They can start programs and instruct agents")


def _show_files(files: Sequence[UntrustedFile], *, trusted: bool, as_json: bool) -> None:
    if as_json:
        show_json(
            [
                {"path": str(file.path), "digest": file.digest, "changed": file.changed, "trusted": trusted}
                for file in files
            ]
        )
        return
    for file in files:
        show(f"{file.path}{'' if trusted else _changed(file)}")
    if trusted:
        note("synapse: trusted; running sessions use them now")
    elif not files:
        note("synapse: no untrusted files")


def _changed(file: UntrustedFile) -> str:
    return tr(" (changed since you trusted it)") if file.changed else ""
