"""Gemini CLI takes hooks from extensions only: ours has a folder of its own; the user was asked for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

NAME = "synapse"


def extension_folder(home: Path) -> Path:
    """Where the extension lies."""
    return home / ".gemini" / "extensions" / NAME


def write_extension(home: Path, files: Mapping[str, object]) -> Path:
    """Write the extension; it does nothing in a Gemini that is not hosted.

    Args:
        home: The user's home folder.
        files: Its files as JSON, by their names below its folder.

    Raises:
        OSError: It cannot be written.
    """
    folder = extension_folder(home)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return folder


def has_extension(home: Path, files: Mapping[str, object]) -> bool:
    """Whether the extension is there as we write it now."""
    folder = extension_folder(home)
    try:
        return all(json.loads((folder / name).read_bytes()) == content for name, content in files.items())
    except (OSError, ValueError):
        return False


def remove_extension(home: Path) -> bool:
    """Remove the extension; gives whether it was there.

    Raises:
        OSError: It cannot be removed.
    """
    folder = extension_folder(home)
    if not (folder / "gemini-extension.json").exists():
        return False
    shutil.rmtree(folder)
    return True
