"""Installed agents, their versions, and gaps in their profiles; no agent is started."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.pty.spawn import find_command

TIMEOUT = 20.0  # Seconds for a command to print its version
AT_ONCE = 2
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-+][\w.+-]*\w)?")


@dataclass(frozen=True, slots=True)
class Glance:
    agent: str
    installed: bool
    version: str  # The version printed by the command; empty for none
    proved: str  # The version that the profile was last verified with
    remarks: tuple[str, ...] = ()  # Gaps of the profile, a few words each


def glance(profiles: Sequence[Profile], environ: Mapping[str, str], folder: Path) -> list[Glance]:
    def look(profile: Profile) -> Glance:
        installed = find_command(profile.command, env=environ, cwd=folder) is not None
        version = installed_version(profile, environ, folder) if installed else ""
        remarks = remarks_on(profile, installed=installed, version=version)
        return Glance(profile.name, installed, version, profile.doctor.version, remarks)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(look, profiles))


def installed_version(profile: Profile, environ: Mapping[str, str], folder: Path) -> str:
    if not profile.doctor.version_args:
        return ""
    command = find_command(profile.command, env=environ, cwd=folder)
    if command is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - the agent's own command
            [command, *profile.doctor.version_args],
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    if done.returncode:
        return ""  # an error may name any version, such as that of Python
    return read_version(f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}")


def read_version(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else ""


def remarks_on(profile: Profile, *, installed: bool, version: str) -> tuple[str, ...]:
    remarks: list[str] = []
    if not installed:
        return (f"not installed: {profile.install}" if profile.install else "not installed",)
    if not profile.receives:
        return ("does not accept messages",)
    proved = profile.doctor.version
    if version and proved and version != proved:
        remarks.append("not the version the profile was verified with")
    elif version and not proved and not profile.doctor.free:
        remarks.append("never verified")
    missing = [name for name in ("composer", "dialogs", "states") if _lacks(profile, name)]
    if missing:
        remarks.append(f"profile lacks {', '.join(missing)}")
    return tuple(remarks)


def _lacks(profile: Profile, name: str) -> bool:
    if name == "states":
        # Without any there are only rules that every profile has, and rules based on silence.
        return all(
            rule.silence is not None or rule.active is not None or rule.dialog or rule.status
            for rule in profile.states
        )
    return not getattr(profile, name)
