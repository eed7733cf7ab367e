"""What a file is beside the shipped one of its name: the same, one of an older version, or a person's own."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from synapse_tui.errors import ConfigError
from synapse_tui.instructions.files import read_file, shipped_texts
from synapse_tui.settings import SCHEMA
from synapse_tui.settings.files import parse
from synapse_tui.settings.layers import entries_of

SETTINGS = "settings.json"
TEXTS = ("default.md", "gemini.md", "delegate.md", "file-safety.md")
"""The texts that are written for a person to edit; all of them are used in the package itself too."""
_ONCE_WRITTEN = frozenset(
    f"instructions.{name}" for name in ("default", "claude", "gemini", "codex", "opencode", "copilot")
)
"""Settings that older versions wrote with their defaults, among others."""


class Standing(StrEnum):
    """How a file stands to the shipped one."""

    MISSING = "missing"
    SHIPPED = "as shipped"
    OLD = "as an older version shipped it"
    EDITED = "edited"
    LINK = "a link"
    ODD = "no regular file"
    """A folder, a pipe, or what cannot be read."""


def shipped_text(name: str) -> bytes:
    """The shipped text of that name, byte for byte."""
    return (shipped_texts() / name).read_bytes()


def shipped_hashes() -> Mapping[str, Sequence[str]]:
    """SHA-256 of each text as any version has shipped it, by name."""
    path = Path(__file__).parent / "shipped.json"
    content: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return content


def standing_of(path: Path) -> Standing:
    """How a file stands to the shipped one of its name."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return Standing.MISSING
    except OSError:
        return Standing.ODD
    if stat.S_ISLNK(mode):
        return Standing.LINK
    try:
        data = read_file(path)
    except OSError:
        return Standing.ODD
    return _of_settings(path, data) if path.name == SETTINGS else _of_text(path.name, data)


def _of_text(name: str, data: bytes) -> Standing:
    if data == shipped_text(name):
        return Standing.SHIPPED
    known = hashlib.sha256(data).hexdigest() in shipped_hashes()[name]
    return Standing.OLD if known else Standing.EDITED


def _of_settings(path: Path, data: bytes) -> Standing:
    try:
        entries = dict(entries_of(parse(path, data)))
    except ConfigError:
        return Standing.EDITED
    if not entries:
        return Standing.SHIPPED
    # In a project, defaults that nobody chose win over what each person has set.
    defaults = all(is_default(key, value) for key, value in entries.items())
    return Standing.OLD if defaults and entries.keys() >= _ONCE_WRITTEN else Standing.EDITED


def is_default(key: str, value: object) -> bool:
    """Whether an entry of a file sets a setting to what it is without the entry."""
    setting = SCHEMA.get(key)
    try:
        return setting is not None and setting.convert(value) == setting.default
    except ValueError:
        return False
