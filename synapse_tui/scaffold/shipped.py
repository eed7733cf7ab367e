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
from synapse_tui.settings import SCHEMA, Setting
from synapse_tui.settings.editing import parse
from synapse_tui.settings.layers import entries_of

SETTINGS = "settings.json"
TEXTS = ("default.md", "gemini.md", "delegate.md", "file-safety.md")
"""The texts that are written for a person to edit; all of them are used in the package itself too."""
_ENV = tuple(
    f"env.SYNAPSE_{name}"
    for name in (
        "HISTORY_ENABLED",
        "FILE_SAFETY_ENABLED",
        "FILE_SAFETY_DB_PATH",
        "FILE_SAFETY_RETENTION_DAYS",
        "LOG_LEVEL",
        "LOG_FILE",
    )
)
_OF_THE_TEAM = ("env.SYNAPSE_FILE_SAFETY_ENABLED", "env.SYNAPSE_FILE_SAFETY_RETENTION_DAYS")
_BOTH = (
    "instructions.default",
    "instructions.claude",
    "instructions.gemini",
    "instructions.codex",
    "instructions.opencode",
    "instructions.copilot",
    "a2a.flow",
    "delegation.enabled",
)
_OF_THE_PERSON = ("a2a.message_format", "tui.agents", "tui.layout", "tui.theme", "tui.leader", "tui.sidebar")


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


def settings_worth_showing(*, own: bool) -> list[Setting]:
    """The settings that a new file shows with their defaults.

    Args:
        own: Whether it is the person's own file. A project's one leaves out what is for each person to
            decide: what stands there wins over everybody's own file. Neither has guards: where a file names
            one and is broken, nobody is let in, and `synapse auth` writes them where they are wanted.
    """
    keys = (*_ENV, *_BOTH, *_OF_THE_PERSON) if own else (*_OF_THE_TEAM, *_BOTH)
    return [SCHEMA[key] for key in keys]


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
    """Settings are as shipped as long as they say nothing but defaults, in whatever form."""
    try:
        content = parse(path, data)
    except ConfigError:
        return Standing.EDITED
    return Standing.SHIPPED if all(is_default(*entry) for entry in entries_of(content)) else Standing.EDITED


def is_default(key: str, value: object) -> bool:
    """Whether an entry of a file sets a setting to what it is without the entry."""
    setting = SCHEMA.get(key)
    try:
        return setting is not None and setting.convert(value) == setting.default
    except ValueError:
        return False
