"""Editing a file in $VISUAL or $EDITOR: a copy is edited and checked, and only then replaces the file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from synapse_tui.core.errors import ConfigError, ProfileError
from synapse_tui.system.files import private_folder, write_advice, write_private
from synapse_tui.system.paths import UserPaths

from .output import confirm, note


def edited(
    path: Path,
    before: bytes,
    faults_of: Callable[[Path, bytes], Sequence[ConfigError]],
    *,
    again: str,
    environ: Mapping[str, str] = os.environ,
) -> bytes | None:
    """Let the user edit a copy of a file until it has no faults.

    Returns:
        The new content; None if it was not changed.

    Raises:
        ConfigError: The editor cannot be run, or the user gave up on a copy with faults (`again` is the
            command to start over with).
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="synapse-") as folder:
        copy = Path(folder) / path.name
        write_private(copy, before)
        while True:
            _run(editor_of(environ), copy)
            data = copy.read_bytes()
            if data == before:
                note(f"synapse: {path} is unchanged")
                return None
            faults = faults_of(copy, data)
            for fault in faults:
                # that of a profile is about files in use
                hint = "" if isinstance(fault, ProfileError) else f"; {fault.hint}"
                note(f"synapse: {fault.message.replace(str(copy), path.name)}{hint}")
            if not faults:
                return data
            if not _again():
                raise ConfigError(f"{path} was not changed; problems: {len(faults)}", again)


def editor_of(environ: Mapping[str, str]) -> list[str]:
    line = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"$VISUAL or $EDITOR is not a command: {error}", "set it to an editor") from error


def _run(editor: list[str], copy: Path) -> None:
    import subprocess

    try:
        ended = subprocess.run(  # noqa: S603 - the user's own editor; its result is checked like any file
            [*editor, str(copy)], check=False, umask=0o077
        )
    except OSError as error:
        raise ConfigError(
            f"the editor '{editor[0]}' cannot be run: {error.strerror}", "set EDITOR"
        ) from error
    if ended.returncode:
        raise ConfigError(f"the editor exited with status {ended.returncode}", "the file is unchanged")


def _again() -> bool:
    try:
        return confirm("Edit it again? Otherwise the file stays unchanged", default=True)
    except click.Abort:  # not interactive
        click.echo(err=True)
        return False


def save(path: Path, data: bytes) -> None:
    """Write a profile; hosts that run take it at once."""
    try:
        if path.parent == UserPaths.of_environment().profiles:
            private_folder(path.parent)
        write_private(path, data)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror or error}", write_advice(error)
        ) from error
