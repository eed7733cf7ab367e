"""`synapse config edit`: a copy is edited and checked, and only then takes the file's place."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from synapse_tui.errors import ConfigError
from synapse_tui.files import write_private
from synapse_tui.settings.files import Layer, SettingsFile, parse
from synapse_tui.settings.layers import check_file

from .group import profile_names
from .output import note
from .settings_layers import Layers

EMPTY = b"{\n}\n"


def edit(layers: Layers, layer: Layer, environ: Mapping[str, str] = os.environ) -> None:
    """Let the user edit the file of a layer.

    Raises:
        ConfigError: The editor cannot be run or failed; the file is as it was.
    """
    path = layers.path(layer)
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        before = b""
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
    with tempfile.TemporaryDirectory(prefix="synapse-") as folder:
        copy = Path(folder) / path.name
        write_private(copy, before or EMPTY)
        while True:
            _run(editor_of(environ), copy)
            data = copy.read_bytes()
            if data == (before or EMPTY):
                note(f"synapse: {path} is as it was")
                return
            faults = _faults(copy, data, own=layer == "user")
            for fault in faults:
                note(f"synapse: {fault.message.replace(str(copy), path.name)}; {fault.hint}")
            if not faults or not _again():
                break
        if faults:
            raise ConfigError(f"{path} is as it was: {len(faults)} to correct", "synapse config edit")
        layers.change(layer, lambda file: _replace(file, before, data))
    note(f"synapse: {path} was changed")


def _replace(file: SettingsFile, before: bytes, data: bytes) -> None:
    """Put what was edited in the place of the file, unless somebody else has changed that meanwhile.

    Raises:
        ConfigError: Somebody has; what was edited is kept in a file of its own.
    """
    if file.data == before:
        file.replace(data)
        return
    descriptor, kept = tempfile.mkstemp(prefix="synapse-", suffix=".json")
    with os.fdopen(descriptor, "wb") as copy:
        copy.write(data)
    raise ConfigError(
        f"{file.path} was changed by somebody else meanwhile, and is as they left it",
        f"what you wrote is in {kept}",
    )


def editor_of(environ: Mapping[str, str]) -> list[str]:
    """The user's editor.

    Raises:
        ConfigError: It is no command line.
    """
    line = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"$VISUAL or $EDITOR is no command: {error}", "set it to an editor") from error
    return words


def _run(editor: list[str], copy: Path) -> None:
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own editor; what it writes is checked as the file is
            [*editor, str(copy)], check=False, umask=0o077
        )
    except OSError as error:
        raise ConfigError(
            f"the editor '{editor[0]}' cannot be run: {error.strerror}", "set EDITOR"
        ) from error
    if ended.returncode:
        raise ConfigError(f"the editor ended with status {ended.returncode}", "the file is as it was")


def _again() -> bool:
    """Whether the user would correct it; nobody answers where nobody is there."""
    try:
        return click.confirm("Edit it again? Otherwise it stays as it was", default=True, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def _faults(copy: Path, data: bytes, *, own: bool) -> list[ConfigError]:
    try:
        parse(copy, data)
    except ConfigError as error:
        return [error]
    return check_file(copy, own=own, types=profile_names())
