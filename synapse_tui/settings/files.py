"""Viewing and changing settings files; used by the commands and the application alike."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from synapse_tui.core.errors import ConfigError, InvalidValue
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import (
    check_safe,
    lock_exclusively,
    private_folder,
    read_advice,
    read_regular,
    write_advice,
    write_private,
)
from synapse_tui.system.language import tr
from synapse_tui.system.paths import UserPaths, make_project_folder

from .layers import Settings, load_settings, read_layer
from .schema import AREAS, ENV, NOTHING, SCHEMA, TABLES, Setting, find_setting, nearest_key

LOCK_TIMEOUT = 2.0
"""Seconds to wait for another process that is writing settings, which takes milliseconds."""


@contextmanager
def turn_at(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on the settings in a folder, if its file system has locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}", "check its permissions") from error
    try:
        try:
            lock_exclusively(descriptor, LOCK_TIMEOUT)
        except TimeoutError:
            raise ConfigError(f"another process is writing settings in {folder}", "try it again") from None
        yield
    finally:
        os.close(descriptor)


class SettingsFile:
    """A settings file that is read, changed and written back; anything but a JSON object is an error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = read_regular(path)
        except FileNotFoundError:
            self.data = b""
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}", read_advice(error)) from error
        self._content = parse(path, self.data)
        self._text = b""

    def put(self, key: str, value: object) -> None:
        """Set a dotted key, replacing any other spelling of it; below `env` it is written as text."""
        self.remove(key)
        *tables, name = key.split(".")
        content = self._content
        for at, table in enumerate(tables):
            inner = content.setdefault(table, {})
            if not isinstance(inner, dict):
                where = ".".join(tables[: at + 1])
                raise ConfigError(
                    f"{self.path}: '{where}' must be a table",
                    "correct the file: synapse config edit",
                )
            content = inner
        setting = find_setting(key)
        content[name] = setting.written(value) if setting is not None else value

    def remove(self, key: str) -> bool:
        """Remove a dotted key and any tables that become empty; return whether it was present."""
        return _remove(self._content, key.split("."))

    def replace(self, data: bytes) -> None:
        """Replace the whole document; the given text is written unchanged."""
        self._content = parse(self.path, data)
        self._text = data

    def text(self) -> bytes:
        return self._text or (json.dumps(self._content, ensure_ascii=False, indent=2) + "\n").encode()

    def save(self) -> bytes:
        """Write the file atomically and return its content; the folder must exist."""
        data = self.text()
        try:
            # Follow symbolic links, because people link such files to their dotfiles.
            write_private(self.path.resolve(), data)
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written: {error.strerror}", write_advice(error)
            ) from error
        return data


def parse(path: Path, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON: {error}", "correct it: synapse config edit") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must contain a JSON object", "correct it: synapse config edit")
    return content


def value_of(setting: Setting, words: tuple[str, ...]) -> object:
    """Convert command-line words to a setting's value; a table, or a list that begins with `[`, is JSON."""
    word = " ".join(words)
    raw: object = word
    if setting.kind in ("list", "words", "keys"):
        raw = _json(word) if len(words) == 1 and word.startswith("[") else list(words)
    elif setting.kind in TABLES:
        raw = _json(word)
    try:
        return setting.accept(raw)
    except ValueError as error:
        raise ConfigError(f"setting '{setting.key}' {error}", setting.help) from error


def _json(word: str) -> object:
    try:
        return json.loads(word)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the value is not valid JSON: {error}", "quote it for the shell: '...'") from error


def _remove(content: dict[str, Any], names: list[str]) -> bool:
    found = content.pop(".".join(names), _NOTHING) is not _NOTHING
    for at in range(1, len(names)):
        table = ".".join(names[:at])
        inner = content.get(table)
        if isinstance(inner, dict) and _remove(inner, names[at:]):
            found = True
            if not inner:
                del content[table]
    return found


Layer = Literal["user", "project", "local"]
LAYERS: tuple[Layer, ...] = ("user", "project", "local")
"""In rising precedence."""
_NAMES: Mapping[Layer, str] = MappingProxyType(
    {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}
)
MASK = "********"
_SECRETS = ("_KEYS", "_KEY", "_URL", "_TOKEN", "_SECRET")

Untrusted = TypeVar("Untrusted")


class Trust(Protocol[Untrusted]):
    """The trusted contents of a project's files (`agents.profiles.trust.TrustStore`)."""

    def check(self, path: Path, data: bytes) -> Untrusted | None:
        """Return None if this content is trusted, else an object to pass to `trust`."""

    def trusts(self, path: Path, data: bytes) -> bool:
        """Return whether this content is trusted."""

    def trust(self, files: list[Untrusted]) -> None:
        """Trust these contents; raises OSError."""


@dataclass(frozen=True, slots=True)
class LayerView:
    """The content of one settings file.

    Attributes:
        values: Valid values by key.
        trusted: Whether the file is in effect: always for the user's own, for a project's file once trusted.
        problems: Errors in the file.
    """

    layer: Layer
    path: Path
    values: Mapping[str, object]
    trusted: bool
    problems: tuple[ConfigError, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A change that was written; `trouble` says why its content could not be recorded as trusted."""

    path: Path
    trouble: str = ""


class SettingsFiles:
    """The settings files of a project.

    Args:
        project: Folder of the project.
        paths: Folders of the user.
        environ: Variables that override the files.
        trust: Trusted contents of the project's files.
        types: Returns the names of the profiles, for `instructions.<type>`.
        may_trust: Whether a person makes the changes; those of an agent wait until a person has seen them,
            and it may not change the user's own file, which is in effect at once.
        held: Returns a running process's settings now in effect (`last` of `load_settings`), or None.
    """

    def __init__(
        self,
        project: Path,
        *,
        paths: UserPaths,
        environ: Mapping[str, str],
        trust: Trust[Untrusted],
        types: Callable[[], Collection[str]],
        may_trust: bool = True,
        held: Callable[[], Settings | None] = lambda: None,
    ) -> None:
        self.project = project
        self.paths = paths
        self.environ = environ
        self.types = types
        self._trust = trust
        self._may_trust = may_trust
        self._held = held

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The available layers; the home folder is not a project."""
        return LAYERS if self.project / ".synapse" != self.paths.synapse else ("user",)

    def path(self, layer: Layer) -> Path:
        if layer not in self.layers:
            raise ConfigError(
                "your home folder is not a project", "use --user, or change to a project's folder"
            )
        folder = self.paths.synapse if layer == "user" else self.project / ".synapse"
        return folder / _NAMES[layer]

    def load(self) -> Settings:
        return load_settings(
            self.project,
            paths=self.paths,
            environ=self.environ,
            trusted=self._trust.trusts,
            types=self.types(),
            last=self._held(),
        )

    def view(self, layer: Layer) -> LayerView:
        """Return the content of one file, whether or not it is in effect."""
        path = self.path(layer)
        data, values, problems = read_layer(path, own=layer == "user", types=self.types())
        trusted = layer == "user" or not data or self._trust.trusts(path, data)
        return LayerView(layer, path, values, trusted, problems)

    def setting(self, key: str) -> Setting:
        found = find_setting(key, self.types())
        if found is None:
            near = nearest_key(key, self.types())
            if any(each.startswith(f"{key}.") for each in SCHEMA):
                raise InvalidValue(
                    f"'{key}' is a group of settings", f"'synapse config show {key}' shows them"
                )
            hint = f"did you mean '{near}'? 'synapse config keys' lists all"
            raise InvalidValue(
                f"no setting named '{key}'", hint if near else "'synapse config keys' lists all"
            )
        return found

    def change(self, layer: Layer, change: Callable[[SettingsFile], object]) -> Written:
        """Change the file of a layer; a file that was trusted, or is new, stays trusted."""
        path = self.path(layer)
        self.check_may_change(layer)
        if layer == "user":
            check_safe(path)
        self._make_folder(layer)
        with turn_at(path.parent):
            file = SettingsFile(path)
            known = not file.data or self._trust.trusts(path, file.data)
            change(file)
            data = file.save()
        return Written(path, self._keep_trust(path, data) if layer != "user" and known else "")

    def check_may_change(self, layer: Layer) -> None:
        """Check that the caller is a person or, for an agent, that its change needs a person's trust."""
        if layer == "user" and not self._may_trust:
            raise agents_may_not()

    def _keep_trust(self, path: Path, data: bytes) -> str:
        untrusted = self._trust.check(path, data)
        if untrusted is None or not self._may_trust:
            return ""
        try:
            self._trust.trust([untrusted])
        except OSError as error:
            return tr(f"{path} could not be recorded as trusted: {error.strerror}")
        return ""

    def _make_folder(self, layer: Layer) -> None:
        try:
            if layer == "user":
                private_folder(self.paths.synapse)
            else:
                make_project_folder(self.project)
        except OSError as error:
            raise ConfigError(
                f"{self.path(layer).parent} cannot be created: {error.strerror or error}",
                "check its permissions",
            ) from error


def agents_may_not() -> ConfigError:
    return ConfigError(
        "agents cannot change the user's own settings",
        "ask the user, or use --project: that has an effect once the user trusts it",
    )


def check_place(setting: Setting, layer: Layer) -> None:
    if layer != "user" and not setting.project:
        raise ConfigError(f"'{setting.key}' cannot be set by a project", "set it in your own file: --user")


def in_order(keys: Collection[str]) -> list[str]:
    """Sort keys in schema order; those of `instructions.<type>` come last."""
    places = {key: place for place, key in enumerate(SCHEMA)}
    return sorted(keys, key=lambda key: (places.get(key, len(places)), key))


def is_secret(key: str) -> bool:
    return key.startswith("env.") and key.endswith(_SECRETS)


def shown(key: str, value: object) -> object:
    """Return a value as a file would contain it; secrets are masked."""
    setting = find_setting(key)
    if is_secret(key) and value:
        return MASK
    return setting.written(value) if setting is not None else value


Origin = Literal["default", "user", "project", "local", "environment", "now"]

LAYER_WORDS: Mapping[Origin, str] = {
    "default": tr("default"),
    "user": tr("your file"),
    "project": tr("project file"),
    "local": tr("local file"),
    "environment": tr("environment"),
    "now": tr("for now"),
}
"""Display names of origins."""
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """One setting with its current value.

    Attributes:
        value: The value in effect.
        origin: The layer that it comes from.
        given: Valid values of the files, whether or not they are in effect.
        kept: Why the value is a file's earlier one; empty if it is current.
    """

    setting: Setting
    value: object
    origin: Origin
    given: Mapping[Layer, object]
    kept: str = ""

    @property
    def key(self) -> str:
        return self.setting.key

    @property
    def words(self) -> tuple[str, str, str]:
        """The setting's sentence: what precedes the value, the value, what follows."""
        return self.setting.around(value_text(self.setting, self.value))

    @property
    def variable(self) -> str:
        """The environment variable that also sets it; empty for none."""
        return self.key.removeprefix(ENV) if self.key.startswith(ENV) else ""

    @property
    def best_layer(self) -> Layer:
        """The file that a change most likely belongs in: the one in effect, else the user's own."""
        return next((layer for layer in LAYERS if layer == self.origin), "user")


@dataclass(frozen=True, slots=True)
class Survey:
    """All settings of a project, by area; with `demo`, those of the demo."""

    entries: tuple[SettingEntry, ...]
    files: Mapping[Layer, LayerView]
    problems: tuple[ConfigError, ...]
    demo: bool = False

    def find(self, key: str) -> SettingEntry | None:
        return next((entry for entry in self.entries if entry.key == key), None)

    def with_now(self, key: str, value: object) -> Survey:
        """Return it with the value that a setting has for now, which no file keeps."""
        entry = self.find(key)
        if entry is None or entry.value == value:
            return self
        now = replace(entry, value=value, origin="now", kept="")
        return replace(self, entries=tuple(now if each is entry else each for each in self.entries))

    def name(self, layer: Layer) -> str:
        """Return a file's path relative to the project, or abbreviated with `~`."""
        place = self.files[layer].path
        if self.demo and layer == "user":
            return tr("the settings of the demo")
        return f"~/.synapse/{place.name}" if layer == "user" else f".synapse/{place.name}"

    def shorter(self, text: str) -> str:
        for layer, view in self.files.items():
            text = text.replace(str(view.path), self.name(layer))
        return text

    def places(self, setting: Setting) -> list[Layer]:
        """Return the files that may set a setting."""
        return [layer for layer in self.files if layer == "user" or setting.project]

    def obstacle(self, entry: SettingEntry, layer: Layer) -> str:
        """Return why a value given by a file is not in effect; empty if it is."""
        if entry.origin == "environment":
            return tr(f"${entry.variable} in the environment overrides all files")
        view = self.files[layer]
        if not view.trusted:
            return tr(f"{self.name(layer)} has no effect until you trust it")
        later = list(self.files)[list(self.files).index(layer) + 1 :]
        winner = next((each for each in reversed(later) if self._counts(entry, each)), None)
        if winner is not None:
            return tr(f"{self.name(winner)} overrides it: {value_text(entry.setting, entry.value)}")
        return ""

    def _counts(self, entry: SettingEntry, layer: Layer) -> bool:
        if entry.kept and entry.origin == layer:
            return True
        return layer in entry.given and self.files[layer].trusted


def survey(files: SettingsFiles) -> Survey:
    settings = files.load()
    views = {layer: files.view(layer) for layer in files.layers}
    origins: dict[str, Origin] = {"default": "default", "environment": "environment"}
    for layer, view in views.items():
        origins[str(view.path)] = layer
    types = [f"instructions.{name}" for name in files.types()]
    entries = []
    for key in in_order({*settings.values, *types}):
        setting = find_setting(key)
        if setting is None:
            continue
        given = {layer: view.values[key] for layer, view in views.items() if key in view.values}
        origin = origins.get(settings.origins.get(key, "default"), "default")
        value = settings.values.get(key, setting.default)
        kept = ""
        giver: Layer | None = next((each for each in views if each == origin), None)
        if giver is not None and given.get(giver, _NOTHING) != value:
            kept = _why_kept(settings, views[giver])
        entries.append(SettingEntry(setting, value, origin, given, kept))
    # A file view repeats problems of the settings, but without naming the value still in effect.
    problems = [*(each for view in views.values() for each in view.problems), *settings.problems]
    unique = {problem.message: problem for problem in problems}
    entries.sort(key=lambda entry: AREAS.index(entry.setting.area))
    return Survey(tuple(entries), views, tuple(unique.values()))


def _why_kept(settings: Settings, view: LayerView) -> str:
    if view.path in settings.broken:
        return tr("the file cannot be read")
    if view.path in settings.untrusted:
        return tr("the file is not trusted yet")
    return tr("its new value is invalid")


def value_text(setting: Setting, value: object) -> str:
    """Format a value on one line; secrets are masked."""
    if is_secret(setting.key) and value:
        return str(shown(setting.key, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "; ".join(value_lines(value)) or NOTHING
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return str(value) or NOTHING


def value_lines(value: object) -> list[str]:
    """Format a list or table as editable lines: one item or `name = value` each."""
    if isinstance(value, Mapping):
        return [
            f"{name} = {', '.join(each) if isinstance(each, list) else each}" for name, each in value.items()
        ]
    return list(map(str, value)) if isinstance(value, list) else [str(value)]


def read_lines(setting: Setting, text: str) -> object:
    """Parse the output of `value_lines` into a value as a file would contain it; raises ValueError."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if setting.kind not in TABLES:
        return lines
    table: dict[str, str] = {}
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise ValueError(f"'{line}' must have the form NAME = VALUE")
        if name in table:
            raise ValueError(f"'{name}' is repeated")
        table[name] = value
    return table
