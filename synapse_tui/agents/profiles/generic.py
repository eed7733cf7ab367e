"""The profile of a program that was started by its command line."""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Sequence
from pathlib import Path

from synapse_tui.core.errors import ProfileError, SpawnError
from synapse_tui.core.model import AgentState

from .finding import ProfileSet
from .profile import Interrupt, Profile, StateRule
from .programs import Program, read_command

_FILE = Path(__file__).parent / "generic.yaml"
_CTRL_C = Interrupt(keys=(b"\x03",))
_BY_OUTPUT = (
    StateRule("a command runs", AgentState.PROCESSING, command=True),
    StateRule("output rests", AgentState.READY, silence=1.0),
    StateRule("output flows", AgentState.PROCESSING, active=1.0),
)


def profile_of(profiles: ProfileSet, command: Sequence[str]) -> Profile:
    """Return the profile that describes the program, with its command replaced, or the generic one.

    A profile describes a program by its name, an alias or the program of its own command line.
    """
    program = read_command(command)
    known = None if program.runs_text else _described(profiles, program)
    first, *rest = program.words
    if known is not None:
        own = read_command((known.command, *known.args)).args
        return dataclasses.replace(known, command=first, args=(*rest, *own))
    generic = _generic()
    if program.runs_text:
        generic = dataclasses.replace(
            generic,
            receives=False,
            asks=False,
            startup=dataclasses.replace(generic.startup, prompt=program.prompts),
            dialogs=(),
            composer=None,
            states=_BY_OUTPUT,
            interrupt=_CTRL_C,
        )
    return dataclasses.replace(
        generic, name=program.name, display=program.name, command=first, args=tuple(rest)
    )


def not_found(profiles: ProfileSet, command: Sequence[str], cwd: Path) -> SpawnError:
    """Describe a command that cannot be run, with the closest profile and how to install it."""
    word = command[0]
    path = cwd / word
    if "/" in word and path.is_file():
        return SpawnError(f"{path} is not executable", f"make it so with: chmod +x {path}")
    where = f"there is no program {path}" if "/" in word else f"'{word}' is not on PATH"
    name = read_command(command).name
    names = {
        each: profile for profile in profiles.profiles.values() for each in (profile.name, *profile.aliases)
    }
    near = difflib.get_close_matches(name, names, 1)
    if not near:
        return SpawnError(where, "check the command, or install it")
    profile = names[near[0]]
    if near[0] == name and profile.install:
        return SpawnError(where, f"install it with: {profile.install}")
    install = f" It is installed with: {profile.install}" if profile.install else ""
    return SpawnError(where, f"did you mean the agent '{profile.name}'?{install}")


def _described(profiles: ProfileSet, program: Program) -> Profile | None:
    found = [each for each in profiles.profiles.values() if each.receives]
    for profile in found:
        if program.name == profile.name or program.name in profile.aliases:
            return profile
    return next(
        (each for each in found if read_command((each.command, *each.args)).name == program.name), None
    )


@functools.cache
def _generic() -> Profile:
    from .reader import read_profile  # noqa: PLC0415 - YAML is slow to import

    profile, problems = read_profile(_FILE, _FILE.read_bytes(), "shipped", {})
    if profile is None:
        raise ProfileError(_FILE, problems[0].line, problems[0].reason)
    return profile
