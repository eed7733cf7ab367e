"""One settings file as it is edited: dotted keys in, the rest of the document stays as it is."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from synapse_tui.errors import ConfigError
from synapse_tui.files import read_regular, write_advice, write_private

from .kinds import TABLES
from .schema import Setting, find_setting

_NOTHING = object()
PATIENCE = 2.0
"""Seconds that somebody else is waited for who writes settings; it takes them milliseconds."""


@contextmanager
def turn_at(folder: Path) -> Iterator[None]:
    """Have the settings in a folder for oneself, from reading one to writing it back: others wait.

    Where the file system has no locks nobody waits.

    Args:
        folder: That of the file.

    Raises:
        ConfigError: Another process does not finish, or there is no such folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}", "check its permissions") from error
    try:
        end = time.monotonic() + PATIENCE
        while _is_taken(descriptor):
            if time.monotonic() > end:
                raise ConfigError(f"another process is writing settings in {folder}", "try it again")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    """Take the turn, unless another has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


class SettingsFile:
    """A settings file that is read, changed and written back; the order of its keys stays.

    Args:
        path: The file; one that is missing is an empty object.

    Raises:
        ConfigError: It cannot be read, or holds no JSON object: it is never overwritten then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = read_regular(path)
        except FileNotFoundError:
            self.data = b""
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
        self._content = parse(path, self.data)
        self._text = b""

    def put(self, key: str, value: object) -> None:
        """Set a dotted key, in place of any way in which the file spells it.

        Args:
            key: The key.
            value: In the setting's kind; below `env` it is written as the text of a variable.

        Raises:
            ConfigError: A table is needed where a plain value stands.
        """
        self.remove(key)
        *tables, name = key.split(".")
        content = self._content
        for at, table in enumerate(tables):
            inner = content.setdefault(table, {})
            if not isinstance(inner, dict):
                where = ".".join(tables[: at + 1])
                raise ConfigError(
                    f"{self.path}: '{where}' holds a value where a table belongs",
                    "correct the file: synapse config edit",
                )
            content = inner
        setting = find_setting(key)
        content[name] = setting.written(value) if setting is not None else value

    def remove(self, key: str) -> bool:
        """Take a dotted key out, and the tables that are empty then; gives whether it was there."""
        return _remove(self._content, key.split("."))

    def replace(self, data: bytes) -> None:
        """Take another document in its place, which stays as it was written.

        Raises:
            ConfigError: It is none.
        """
        self._content = parse(self.path, data)
        self._text = data

    def text(self) -> bytes:
        """The file as it would be written."""
        return self._text or (json.dumps(self._content, ensure_ascii=False, indent=2) + "\n").encode()

    def save(self) -> bytes:
        """Write it back in one step, and give what was written; its folder must exist.

        Raises:
            ConfigError: It cannot be written; the old content is still there.
        """
        data = self.text()
        try:
            # A link stays a link: people keep such files among their dotfiles.
            write_private(self.path.resolve(), data)
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written: {error.strerror}", write_advice(error)
            ) from error
        return data


def parse(path: Path, data: bytes) -> dict[str, Any]:
    """The object in a settings file.

    Raises:
        ConfigError: It is no JSON, or no object.
    """
    try:
        content = json.loads(data) if data.strip() else {}
    except ValueError as error:
        raise ConfigError(f"{path} is no valid JSON: {error}", "correct it: synapse config edit") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold a JSON object", "correct it: synapse config edit")
    return content


def value_of(setting: Setting, words: tuple[str, ...]) -> object:
    """What the words of a command line mean for a setting.

    Args:
        setting: What is set.
        words: A list takes one word for each item, or one that is JSON; a table one that is JSON.

    Raises:
        ConfigError: They are no value of its kind.
    """
    word = " ".join(words)
    raw: object = word
    if setting.kind in ("list", "words", "keys"):
        raw = _json(word) if len(words) == 1 and word.startswith("[") else list(words)
    elif setting.kind in TABLES:
        raw = _json(word)
    try:
        return setting.accept(raw)
    except ValueError as error:
        raise ConfigError(f"'{setting.key}' {error}", f"its meaning: {setting.help}") from error


def _json(word: str) -> object:
    try:
        return json.loads(word)
    except ValueError as error:
        raise ConfigError(f"the value is no valid JSON: {error}", "quote it for the shell: '...'") from error


def _remove(content: dict[str, Any], names: list[str]) -> bool:
    """Take out every spelling of a key: `{"a": {"b": 1}}` and `{"a.b": 1}`."""
    found = content.pop(".".join(names), _NOTHING) is not _NOTHING
    for at in range(1, len(names)):
        table = ".".join(names[:at])
        inner = content.get(table)
        if isinstance(inner, dict) and _remove(inner, names[at:]):
            found = True
            if not inner:
                del content[table]
    return found
