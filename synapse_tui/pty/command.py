"""Whether a command can be started where it is meant to: looked at before any process is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from synapse_tui.errors import CommandNotFound, FolderUnusable, SpawnError


def find_command(command: str, *, env: Mapping[str, str], cwd: Path) -> Path | None:
    """The file that a command names, as execvp(3) would find it in a child's environment and folder.

    Args:
        command: A name, looked up on `env["PATH"]`, or a path, taken relative to `cwd`.
        env: Environment of the child.
        cwd: Working folder of the child.

    Returns:
        An absolute path of an executable file; None when there is none.
    """
    if not command or "\0" in command:
        return None
    if "/" in command:
        candidate = cwd / command
        return candidate if _executable(candidate) else None
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        candidate = cwd / folder / command
        if _executable(candidate):
            return candidate
    return None


def check_folder(cwd: Path) -> None:
    """Make sure that a program can work in a folder.

    Raises:
        FolderUnusable: It is missing, no folder, or may not be read or entered.
    """
    if not cwd.exists():
        raise FolderUnusable(f"the working folder {cwd} does not exist", "create it or choose another one")
    if not cwd.is_dir():
        raise FolderUnusable(f"{cwd} is a file, not a folder", "choose a folder to work in")
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise FolderUnusable(
            f"the working folder {cwd} cannot be read", "check its permissions or choose another one"
        )


def resolve_command(command: str, *, env: Mapping[str, str], cwd: Path) -> Path:
    """The file that a command names, or the error that tells why there is none.

    Raises:
        CommandNotFound: Nothing of that name is on PATH.
        SpawnError: The path names no file, or one that may not be executed.
    """
    found = find_command(command, env=env, cwd=cwd)
    if found is not None:
        return found
    if "/" not in command:
        raise CommandNotFound(command, command)
    path = cwd / command
    if path.is_file():
        raise SpawnError(f"{path} is not executable", f"make it so with: chmod +x {path}")
    raise SpawnError(f"there is no program {path}", "check the command of the profile")


def _executable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False
