"""`synapse profile`: lists, shows, checks, edits and creates the profiles of agents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from synapse_tui.core.errors import ConfigError, ProfileError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_regular
from synapse_tui.system.paths import UserPaths, find_project, shipped_profiles

from .commands import CommandGroup, json_option
from .completion import complete_profiles
from .doctor import (
    OWNERS,
    check_installed,
    confirm_turns,
    doctor_options,
    examine_profile,
    is_profile,
    order_of,
    show_profiles,
)
from .editor import edited, save
from .output import ExitCode, note, note_left_out, say, show, show_json

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.finding import ProfileSet
    from synapse_tui.agents.profiles.profile import Origin, Profile
    from synapse_tui.cli.trials.versions import Glance


@click.group(name="profile", cls=CommandGroup)
def profile_command() -> None:
    """List, show, check, edit and create profiles of agents.

    A profile describes one kind of agent: how to start it, type into it, stop it and read its state. Yours
    are in ~/.synapse/profiles; running sessions use new and changed ones at once.

    Examples:
      synapse profile list
      synapse profile edit codex
    """


@profile_command.command(name="list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List all profiles: whose they are, what they start, and the versions installed and verified.

    Examples:
      synapse profile list
    """
    from synapse_tui.cli.trials.versions import glance

    found = _profiles()
    profiles = list(found.profiles.values())
    looks = glance(profiles, os.environ, Path.cwd())
    if as_json:
        rows = [_entry(profile, look) for profile, look in zip(profiles, looks, strict=True)]
        show_json(
            [
                *rows,
                *(
                    {
                        "profile": file.path.stem,
                        "origin": "project",
                        "trusted": False,
                        "source": str(file.path),
                    }
                    for file in found.untrusted
                    if is_profile(file.path)
                ),
            ]
        )
        return
    show_profiles(found, looks)


def _entry(profile: Profile, look: Glance) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "origin": profile.origin,
        "trusted": True,
        "source": str(profile.source),
        "command": profile.command,
        "args": list(profile.args),
        "installed": look.installed,
        "version": look.version,
        "verified_with": look.proved,
        "remarks": list(look.remarks),
    }


@profile_command.command(name="show")
@click.argument("name", metavar="PROFILE", shell_complete=complete_profiles)
@json_option
def show_command(*, name: str, as_json: bool) -> None:
    """Print the profile in effect with every key; those that its file does not set are marked as default.

    Examples:
      synapse profile show claude
    """
    from synapse_tui.agents.profiles.reader import read_file
    from synapse_tui.agents.profiles.writer import as_values, with_defaults

    profile = _profiles().find(name)
    data = _read(profile.source)
    _profile, top, faults = read_file(profile.source, data, profile.origin, os.environ)
    if faults or top is None:
        raise faults[0]
    order = [rule.name for rule in profile.states]
    if as_json:
        values, defaults = as_values(top)
        show_json(
            {
                "profile": profile.name,
                "origin": profile.origin,
                "source": str(profile.source),
                "values": values,
                "defaults": defaults,
                "states_in_effect": order,
            }
        )
        return
    show(f"# {OWNERS[profile.origin]}: {profile.source}")
    for line in with_defaults(top):
        show(line)
    show(f"# states in effect, in this order: {', '.join(order)}")


@dataclass(frozen=True, slots=True)
class Checked:
    path: Path
    profile: Profile | None  # None if it has faults
    faults: Sequence[ProfileError]


@profile_command.command(name="check")
@click.argument("names", metavar="[PROFILE|FILE]...", nargs=-1, shell_complete=complete_profiles)
@click.option("--doctor", "examines", is_flag=True, help="Then run the agents, as synapse doctor does.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before using turns of your model.")
@json_option
@click.pass_context
def check_command(
    context: click.Context, /, names: tuple[str, ...], *, examines: bool, yes: bool, as_json: bool
) -> None:
    """Check profiles and print all errors, each with its line.

    Without arguments, your own files and those of this project are checked, trusted or not. The exit code
    is 2 if there are errors.

    Examples:
      synapse profile check
      synapse profile check ~/.synapse/profiles/myagent.yaml
      synapse profile check codex --doctor
    """
    checked = [_check(path, origin) for path, origin in _chosen(names)]
    faults = [fault for each in checked for fault in each.faults]
    if as_json and not (examines and not faults):
        show_json(
            [
                {"file": str(each.path), "line": fault.line, "message": fault.reason}
                for each in checked
                for fault in each.faults
            ]
        )
    elif not as_json:
        for fault in faults:
            say(fault.message)
        files = "1 file" if len(checked) == 1 else f"{len(checked)} files"
        note(f"synapse: {files}, " + (f"problems: {len(faults)}" if faults else "no problems"))
    if faults:
        context.exit(ExitCode.USAGE.value)
    profiles = [each.profile for each in checked if each.profile is not None]
    if examines and profiles:
        _examine(context, profiles, yes=yes, as_json=as_json)


def _chosen(names: Sequence[str]) -> Iterator[tuple[Path, Origin]]:
    """Yield the files to check: a name with a slash or a suffix is a file, else it is a profile."""
    user, project = _folders()
    for name in names:
        path = Path(name)
        if os.sep in name or is_profile(path):
            yield path, "user"
            continue
        own = [file for folder in (project, user) for file in _files(folder) if file.stem == name]
        if own:
            yield own[0], "project" if own[0].parent == project else "user"
        else:
            profile = _profiles().find(name)
            yield profile.source, profile.origin
    if not names:
        for folder, origin in ((user, "user"), (project, "project")):
            for path in _files(folder):
                yield path, origin  # type: ignore[misc]


def _check(path: Path, origin: Origin) -> Checked:
    from synapse_tui.agents.profiles.reader import read_profile

    profile, faults = read_profile(path, _read(path), origin, os.environ)
    return Checked(path, profile, sorted(faults, key=lambda fault: fault.line))


def _examine(context: click.Context, profiles: Sequence[Profile], *, yes: bool, as_json: bool) -> None:
    from synapse_tui.cli.trials.runner import ExaminationOrder

    order = ExaminationOrder()
    check_installed(profiles)
    if not yes:
        confirm_turns(profiles, order)
    reports = [examine_profile(profile, order, verbose=False, as_json=as_json) for profile in profiles]
    if as_json:
        show_json([report.json() for report in reports])
    if any(report.failed for report in reports):
        context.exit(ExitCode.UNPROVED.value)


@profile_command.command(name="edit")
@click.argument("name", metavar="PROFILE", shell_complete=complete_profiles)
def edit_command(*, name: str) -> None:
    """Edit your copy of a profile in $VISUAL or $EDITOR; it is checked before it is saved.

    If you have none, it starts as a copy of the shipped one.

    Examples:
      synapse profile edit gemini
    """
    from synapse_tui.agents.profiles.reader import read_profile

    user, project = _folders()
    path = next((file for file in _files(user) if file.stem == name), None)
    if path is not None:
        before, given = _read(path), True
    else:
        profile = _profiles(project=False).find(name)
        before, given = _read(profile.source), profile.origin == "user"
        path = profile.source if given else user / f"{profile.name}.yaml"
    data = edited(
        path,
        before,
        lambda copy, data: read_profile(copy, data, "user", os.environ)[1],
        again=f"synapse profile edit {name}",
    )
    if data is None:
        return
    if given and _read(path) != before:
        raise ConfigError(f"{path} was changed by another program meanwhile", "edit it again")
    save(path, data)
    note(f"synapse: {path} was saved; running sessions use it now")
    if any(file.stem == path.stem for file in _files(project)):
        note(f"synapse: this project has a profile of that name too, which replaces yours: {project}")
    note(f"to test it on the installed agent: synapse doctor {path.stem}")


@profile_command.command(name="new", context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="CMD [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--name", metavar="NAME", default="", help="Name of the profile; by default that of CMD.")
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it there instead of into ~/.synapse/profiles.",
)
@click.option("--force", is_flag=True, help="Replace an existing file or a shipped profile of that name.")
@click.option("--no-doctor", is_flag=True, help="Do not check the proposal by synapse doctor.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: what cannot be seen keeps its default.")
@click.option(
    "--rest",
    metavar="S",
    type=click.FloatRange(0, 3600),
    default=60,
    show_default=True,
    help="Seconds to watch it idle: what it shows then is no sign of work.",
)
@doctor_options
@json_option
def new_command(
    *,
    command: tuple[str, ...],
    name: str,
    output: Path | None,
    force: bool,
    no_doctor: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run an unknown agent, watch it, and write a profile for it.

    CMD runs in a scratch folder. Texts are typed into it, some messages are sent, a permission dialog is
    provoked and denied, and a turn is interrupted. Each rule is printed with the screen that gave it; then
    the profile is checked as by synapse doctor, and written. What could not be seen is reported, and keeps a
    default with which messages are held rather than lost.

    Examples:
      synapse profile new myagent
      synapse profile new --name mine --yes ./agent.py --model small
      synapse profile new --prompt run='Delete {command} with your shell tool' myagent
    """
    from .new_profile import new_profile

    order = order_of(given)
    new_profile(
        command,
        name=name,
        output=output,
        force=force,
        yes=yes,
        order=order,
        proves=not no_doctor,
        as_json=as_json,
    )


def _profiles(*, project: bool = True) -> ProfileSet:
    from synapse_tui.agents.profiles.finding import load_profiles
    from synapse_tui.system.trust import TrustStore

    paths = UserPaths.of_environment()
    paths.check()
    user, folder = _folders()
    found = load_profiles(
        shipped_profiles(),
        user,
        folder if project and folder != user else None,
        trust=TrustStore(paths.trusted),
    )
    note_left_out(found.problems, ())
    return found


def _folders() -> tuple[Path, Path]:
    return UserPaths.of_environment().profiles, find_project(Path.cwd()) / ".synapse" / "profiles"


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if is_profile(path) and path.name[0] != ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}", "check its permissions") from error


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}", "check its name") from error
