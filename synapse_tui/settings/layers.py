"""Layers of settings: default < user < project < project, local < environment; each value has an origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType

from synapse_tui.core.errors import ConfigError, UnsafePath
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import read_advice, read_own, read_regular
from synapse_tui.system.paths import UserPaths

from .schema import ENV, SCHEMA, TABLES, Setting, find_setting, nearest_key

Trusted = Callable[[Path, bytes], bool]
"""Whether the user has trusted this content of a project's file."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in effect, and the problems of the files they came from.

    Attributes:
        values: A value for every key of the schema, and for each further `instructions.<type>` that is set.
        origins: Where each value came from: `default`, a file's path or `environment`.
        problems: Errors, each a sentence with file and key.
        untrusted: Project files that were ignored because the user has not trusted them.
        doubtful: Guard settings that may have been set in a part of a file that could not be read.
        given: The values from each file, used as a fallback if the file cannot be read later.
        broken: Files that could not be read at all.
    """

    values: Mapping[str, object]
    origins: Mapping[str, str]
    problems: tuple[ConfigError, ...] = ()
    untrusted: tuple[Path, ...] = ()
    doubtful: frozenset[str] = frozenset()
    given: Mapping[Path, Mapping[str, object]] = field(default_factory=lambda: MappingProxyType({}))
    broken: tuple[Path, ...] = ()

    def is_default(self, key: str) -> bool:
        """Whether no file or variable sets the key."""
        return self.origins.get(key, "default") == "default"

    def text(self, key: str) -> str:
        return str(self.values[key])

    def flag(self, key: str) -> bool:
        return bool(self.values[key])

    def number(self, key: str) -> int:
        return int(str(self.values[key]))

    def table(self, key: str) -> Mapping[str, object]:
        value = self.values[key]
        return value if isinstance(value, Mapping) else {}

    def words(self, key: str) -> list[str]:
        value = self.values[key]
        return [str(item) for item in value] if isinstance(value, list) else []


def load_settings(
    project: Path,
    *,
    paths: UserPaths,
    environ: Mapping[str, str],
    trusted: Trusted,
    types: Collection[str] = (),
    last: Settings | None = None,
) -> Settings:
    """Read all layers; an invalid file is reported and does not affect the others.

    Args:
        project: Folder of the project.
        paths: Folders of the user.
        environ: The environment; only variables of the schema's `env.` keys are read.
        trusted: Called for every file of the project.
        types: Names of the profiles, for `instructions.<type>`; empty allows any.
        last: The previous settings of a running process. Files that are now invalid or untrusted keep their
            last good content, and invalid values their last good value, except for guard settings.
    """
    reading = _Reading(trusted, types, last.given if last is not None else {})
    values: dict[str, object] = {key: setting.default for key, setting in SCHEMA.items()}
    origins = dict.fromkeys(SCHEMA, "default")
    for path, own in settings_files(project, paths):
        given = reading.read(path, own=own)
        values |= given
        origins |= dict.fromkeys(given, str(path))
    variables = dict(_variables(environ, reading.problems))
    values |= variables
    origins |= dict.fromkeys(variables, "environment")
    doubtful = reading.doubtful | {key for key in _guards_in(None) if key.removeprefix(ENV) in environ}
    return Settings(
        values,
        origins,
        tuple(reading.problems),
        tuple(reading.untrusted),
        frozenset(doubtful - variables.keys()),
        reading.given,
        tuple(reading.broken),
    )


def settings_files(project: Path, paths: UserPaths) -> list[tuple[Path, bool]]:
    """Return the files in rising precedence, and whether each is the user's own."""
    folder = project / ".synapse"
    files = [(paths.settings, True)]
    if folder != paths.synapse:  # in the home folder both would be the same file, which belongs to no project
        files += [(folder / "settings.json", False), (folder / "settings.local.json", False)]
    return files


class _Reading:
    """Reads the files of one project once; `before` has the last good values of each file."""

    def __init__(
        self, trusted: Trusted, types: Collection[str], before: Mapping[Path, Mapping[str, object]]
    ) -> None:
        self.given: dict[Path, Mapping[str, object]] = {}
        self.problems: list[ConfigError] = []
        self.untrusted: list[Path] = []
        self.broken: list[Path] = []
        self.doubtful: set[str] = set()
        self._trusted = trusted
        self._types = types
        self._before = before

    def read(self, path: Path, *, own: bool) -> Mapping[str, object]:
        known = len(self.problems)
        data = _read(path, self.problems, own=own)
        missing = data is None and len(self.problems) == known
        given: Mapping[str, object] = {}
        if data is not None and not own and not self._trusted(path, data):
            self.untrusted.append(path)
            given = self._before.get(path, {})
        elif not missing:
            given = self._values(path, data, own=own)
        if own and len(self.problems) > known:
            self.doubtful |= self._doubt(path, data, given)
        if given:
            self.given[path] = given
        return given

    def _values(self, path: Path, data: bytes | None, *, own: bool) -> Mapping[str, object]:
        before = self._before.get(path, {})
        known = path in self._before
        content = _parse(path, data, self.problems, known=known) if data is not None else None
        if content is None:
            self.broken.append(path)
            return before
        kept = {key: value for key, value in before.items() if key not in _guards_in(None)}
        entries = _entries(path, content, own=own, types=self._types, problems=self.problems, before=kept)
        return {setting.key: value for setting, value in entries}

    def _doubt(self, path: Path, data: bytes | None, given: Mapping[str, object]) -> set[str]:
        named = set(_guards_in(data))
        if path not in self.broken:
            return named - given.keys()
        return named | (set(_guards_in(None)) & given.keys())


def _guards_in(data: bytes | None) -> list[str]:
    """Return the guard settings named in a broken file; all of them if its content is unknown (None)."""
    names = {key: key.rpartition(".")[2].encode() for key, setting in SCHEMA.items() if setting.guard}
    return [key for key, name in names.items() if data is None or name in data]


def check_file(path: Path, *, own: bool, types: Collection[str] = ()) -> list[ConfigError]:
    """Return the errors in one settings file; `own` is the user's, which may set more than a project's."""
    data, _values, problems = read_layer(path, own=own, types=types)
    if data is None and not problems:
        return [ConfigError(f"{path} does not exist", "check its name")]
    return list(problems)


def read_layer(
    path: Path, *, own: bool, types: Collection[str] = ()
) -> tuple[bytes | None, dict[str, object], tuple[ConfigError, ...]]:
    """Read one file by itself: its bytes (None if missing or unreadable), values by key, and errors."""
    problems: list[ConfigError] = []
    data = _read(path, problems, own=own)
    content = _parse(path, data, problems) or {} if data is not None else {}
    entries = _entries(path, content, own=own, types=types, problems=problems)
    values = {setting.key: value for setting, value in entries}
    return data, values, tuple(problems)


def _read(path: Path, problems: list[ConfigError], *, own: bool) -> bytes | None:
    try:
        return (read_own if own else read_regular)(path)
    except FileNotFoundError:
        return None
    except UnsafePath as error:
        problems.append(error)
        return None
    except OSError as error:
        problems.append(ConfigError(f"{path} cannot be read: {error.strerror}", read_advice(error)))
        return None


def _parse(
    path: Path, data: bytes, problems: list[ConfigError], *, known: bool = False
) -> dict[str, object] | None:
    hint = f"correct the file; {'its previous values stay in effect' if known else 'it was ignored'}"
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        problems.append(ConfigError(f"{path} is not valid JSON: {error}", hint))
        return None
    if not isinstance(content, dict):
        problems.append(ConfigError(f"{path} must contain a JSON object", hint))
        return None
    return content


def _entries(
    path: Path,
    content: Mapping[str, object],
    *,
    own: bool,
    types: Collection[str],
    problems: list[ConfigError],
    before: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[tuple[Setting, object]]:
    for key, value in entries_of(content):
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
                found = setting.convert(value)
                if fault := setting.fault(found):
                    problems.append(
                        ConfigError(f"{path}: setting '{key}' {fault}", "no other value is used instead")
                    )
                yield setting, found
            except ValueError as error:
                hint = "the previous value stays in effect" if key in before else "the value was ignored"
                problems.append(ConfigError(f"{path}: setting '{key}' {error}", hint))
                if key in before:
                    yield setting, before[key]


def _variables(environ: Mapping[str, str], problems: list[ConfigError]) -> Iterator[tuple[str, object]]:
    for key, setting in SCHEMA.items():
        variable = key.removeprefix(ENV)
        if variable != key and variable in environ:
            try:
                found = setting.convert(environ[variable])
                if fault := setting.fault(found):
                    problems.append(
                        ConfigError(f"the variable {variable} {fault}", "no other value is used instead")
                    )
                yield key, found
            except ValueError as error:
                problems.append(ConfigError(f"the variable {variable} {error}", "the value was ignored"))


_LONGEST_TABLE = 200
"""Characters of the longest key of a table that is looked into; those of known ones have far fewer."""


def entries_of(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the entries of a settings file by dotted key, each prefixed with `prefix`."""
    for name, value in content.items():
        key = f"{prefix}{name}"
        known = key in SCHEMA and SCHEMA[key].kind in TABLES
        if isinstance(value, dict) and len(key) <= _LONGEST_TABLE and not known:
            yield from entries_of(value, f"{key}.")
        else:
            yield key, value
