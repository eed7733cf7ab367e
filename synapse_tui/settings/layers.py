"""Layers of settings: default < user < project < project, local < environment; each value has an origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.errors import ConfigError
from synapse_tui.paths import UserPaths

from .schema import SCHEMA, Setting, find_setting, nearest_key

Trusted = Callable[[Path, bytes], bool]
"""Tells whether the user has trusted this content of a project's file."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that hold, and what was wrong with the files they came from.

    Attributes:
        values: A value for every key of the schema, and for further `instructions.<type>` that are set.
        origins: For each of them where its value came from: `default`, a file's path or `environment`.
        problems: What could not be used, each a sentence with file and key.
        untrusted: Files of the project that were left out because the user has not trusted them.
        doubtful: Keys that keep callers out and may have been set in a way that could not be read.
    """

    values: Mapping[str, object]
    origins: Mapping[str, str]
    problems: tuple[ConfigError, ...] = ()
    untrusted: tuple[Path, ...] = ()
    doubtful: frozenset[str] = frozenset()

    def text(self, key: str) -> str:
        """A text or choice."""
        return str(self.values[key])

    def flag(self, key: str) -> bool:
        """A boolean."""
        return bool(self.values[key])

    def number(self, key: str) -> int:
        """A whole number."""
        return int(str(self.values[key]))

    def words(self, key: str) -> list[str]:
        """A list of texts."""
        value = self.values[key]
        return [str(item) for item in value] if isinstance(value, list) else []


def load_settings(
    project: Path,
    *,
    paths: UserPaths,
    environ: Mapping[str, str],
    trusted: Trusted,
    types: Collection[str] = (),
) -> Settings:
    """Read all layers; a broken file is reported and the others still count.

    Args:
        project: Folder of the project.
        paths: Folders of the user.
        environ: The environment; only variables of the schema's `env.` keys are read.
        trusted: Asked for every file of the project.
        types: Names of the profiles, for `instructions.<type>`; empty for any.
    """
    values: dict[str, object] = {key: setting.default for key, setting in SCHEMA.items()}
    origins = dict.fromkeys(SCHEMA, "default")
    problems: list[ConfigError] = []
    untrusted: list[Path] = []
    doubtful: set[str] = set()
    folder = project / ".synapse"
    files = [(paths.synapse / "settings.json", True)]
    if folder != paths.synapse:  # in the home folder they are the same, and no project's
        files += [(folder / "settings.json", False), (folder / "settings.local.json", False)]
    for path, own in files:
        known = len(problems)
        data = _read(path, problems)
        if data is not None and not own and not trusted(path, data):
            untrusted.append(path)
        elif data is not None:
            for setting, value in _entries(path, data, own=own, types=types, problems=problems):
                values[setting.key], origins[setting.key] = value, str(path)
        if own and len(problems) > known:
            doubtful |= {key for key in _guards_in(data) if origins[key] == "default"}
    variables = dict(_variables(environ, problems))
    values |= variables
    origins |= dict.fromkeys(variables, "environment")
    doubtful |= {key for key in _guards_in(None) if key.removeprefix("env.") in environ}
    return Settings(
        values, origins, tuple(problems), tuple(untrusted), frozenset(doubtful - variables.keys())
    )


def _guards_in(data: bytes | None) -> list[str]:
    """The settings that keep callers out and that a broken file names.

    Args:
        data: The file; None when nothing of it is known.
    """
    names = {key: key.rpartition(".")[2].encode() for key, setting in SCHEMA.items() if setting.guard}
    return [key for key, name in names.items() if data is None or name in data]


def check_file(path: Path, *, own: bool, types: Collection[str] = ()) -> list[ConfigError]:
    """What is wrong with one file of settings.

    Args:
        path: The file.
        own: Whether it is the user's own, which may set what a project may not.
        types: Names of the profiles, for `instructions.<type>`; empty for any.
    """
    data, _values, problems = read_layer(path, own=own, types=types)
    if data is None and not problems:
        return [ConfigError(f"{path} does not exist", "check its name")]
    return list(problems)


def read_layer(
    path: Path, *, own: bool, types: Collection[str] = ()
) -> tuple[bytes | None, dict[str, object], tuple[ConfigError, ...]]:
    """What one file of settings holds, by itself.

    Args:
        path: The file.
        own: Whether it is the user's own, which may set what a project may not.
        types: Names of the profiles, for `instructions.<type>`; empty for any.

    Returns:
        Its bytes, None where there is none or it cannot be read; its values by key; what is wrong with it.
    """
    problems: list[ConfigError] = []
    data = _read(path, problems)
    entries = _entries(path, data or b"{}", own=own, types=types, problems=problems)
    values = {setting.key: value for setting, value in entries}
    return data, values, tuple(problems)


def _read(path: Path, problems: list[ConfigError]) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(ConfigError(f"{path} cannot be read: {error.strerror}", "check its permissions"))
        return None


def _entries(
    path: Path, data: bytes, *, own: bool, types: Collection[str], problems: list[ConfigError]
) -> Iterator[tuple[Setting, object]]:
    try:
        content = json.loads(data)
    except ValueError as error:
        problems.append(ConfigError(f"{path} is no valid JSON: {error}", "correct the file; it was left out"))
        return
    if not isinstance(content, dict):
        problems.append(ConfigError(f"{path} must hold a JSON object", "correct the file; it was left out"))
        return
    for key, value in _flatten(content, ""):
        setting = find_setting(key, types)
        if setting is None:
            near = nearest_key(key, types)
            hint = f"did you mean '{near}'?" if near else "remove it"
            problems.append(ConfigError(f"{path}: unknown setting '{key}'", hint))
        elif not own and not setting.project:
            problems.append(
                ConfigError(
                    f"{path}: '{key}' cannot be set by a project", "set it in ~/.synapse/settings.json"
                )
            )
        else:
            try:
                yield setting, setting.convert(value)
            except ValueError as error:
                problems.append(ConfigError(f"{path}: '{key}' {error}", "the value was left out"))


def _variables(environ: Mapping[str, str], problems: list[ConfigError]) -> Iterator[tuple[str, object]]:
    """The settings that the environment gives, by key."""
    for key, setting in SCHEMA.items():
        variable = key.removeprefix("env.")
        if variable != key and variable in environ:
            try:
                yield key, setting.convert(environ[variable])
            except ValueError as error:
                problems.append(ConfigError(f"the variable {variable} {error}", "the value was left out"))


def _flatten(content: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in content.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and not (key in SCHEMA and SCHEMA[key].kind == "table"):
            yield from _flatten(value, f"{key}.")
        else:
            yield key, value
