"""The files of the settings as people see and change them: one writer for commands and application."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol, TypeVar

from synapse_tui.errors import ConfigError, InvalidValue
from synapse_tui.files import check_safe, private_folder
from synapse_tui.paths import UserPaths, make_project_folder

from .editing import SettingsFile, turn_at
from .layers import Settings, load_settings, read_layer
from .schema import SCHEMA, Setting, find_setting, nearest_key

Layer = Literal["user", "project", "local"]
LAYERS: tuple[Layer, ...] = ("user", "project", "local")
"""The files, the last one wins."""
_NAMES: Mapping[Layer, str] = MappingProxyType(
    {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}
)
MASK = "********"
_SECRETS = ("_KEYS", "_KEY", "_URL", "_TOKEN", "_SECRET")

Untrusted = TypeVar("Untrusted")


class Trust(Protocol[Untrusted]):
    """Which contents of a project's files the person has trusted (`agents.profiles.trust.TrustStore`)."""

    def check(self, path: Path, data: bytes) -> Untrusted | None:
        """None when this content is trusted; else what is to be trusted."""

    def trusts(self, path: Path, data: bytes) -> bool:
        """Whether this content is trusted."""

    def trust(self, files: list[Untrusted]) -> None:
        """Trust these contents; raises OSError."""


@dataclass(frozen=True, slots=True)
class LayerView:
    """What one file says.

    Attributes:
        layer: Which one.
        path: Where it is.
        values: Its values by key, those that can be used.
        trusted: Whether it counts: the user's own does, one of a project once it was trusted.
        problems: What is wrong with it.
    """

    layer: Layer
    path: Path
    values: Mapping[str, object]
    trusted: bool
    problems: tuple[ConfigError, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A change that was written.

    Attributes:
        path: The file.
        trouble: Why it could not be noted as trusted; empty when it was, or needs not.
    """

    path: Path
    trouble: str = ""


class SettingsFiles:
    """The files that count in a project.

    Args:
        project: Folder of the project.
        paths: Folders of the user.
        environ: Variables that override the files.
        trust: Which contents of the project's files are trusted.
        types: Tells the names of the profiles, for `instructions.<type>`.
        may_trust: Whether a person makes the changes: what an agent changes waits until one has looked at it.
        held: Tells what holds in a process that goes on (`last` of `load_settings`); None for nothing yet.
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
        """Those that there are: the home folder is no project."""
        return LAYERS if self.project / ".synapse" != self.paths.synapse else ("user",)

    def path(self, layer: Layer) -> Path:
        """The file of a layer.

        Raises:
            ConfigError: It is one of a project, and this folder is none.
        """
        if layer not in self.layers:
            raise ConfigError("your home folder is no project", "use --user, or change to a project's folder")
        folder = self.paths.synapse if layer == "user" else self.project / ".synapse"
        return folder / _NAMES[layer]

    def load(self) -> Settings:
        """The settings that hold."""
        return load_settings(
            self.project,
            paths=self.paths,
            environ=self.environ,
            trusted=self._trust.trusts,
            types=self.types(),
            last=self._held(),
        )

    def view(self, layer: Layer) -> LayerView:
        """What one file says, whether it counts or not."""
        path = self.path(layer)
        data, values, problems = read_layer(path, own=layer == "user", types=self.types())
        trusted = layer == "user" or not data or self._trust.trusts(path, data)
        return LayerView(layer, path, values, trusted, problems)

    def setting(self, key: str) -> Setting:
        """The setting of a key.

        Raises:
            InvalidValue: There is none.
        """
        found = find_setting(key, self.types())
        if found is None:
            near = nearest_key(key, self.types())
            if any(each.startswith(f"{key}.") for each in SCHEMA):
                raise InvalidValue(
                    f"'{key}' is a group of settings", f"'synapse config show {key}' shows them"
                )
            hint = f"did you mean '{near}'? 'synapse config keys' lists all"
            raise InvalidValue(
                f"there is no setting '{key}'", hint if near else "'synapse config keys' lists all"
            )
        return found

    def change(self, layer: Layer, change: Callable[[SettingsFile], object]) -> Written:
        """Change the file of a layer; one that was trusted, or is new, stays trusted.

        Raises:
            ConfigError: It cannot be read, is broken, or cannot be written.
        """
        path = self.path(layer)
        if layer == "user":
            check_safe(path)
        self._make_folder(layer)
        with turn_at(path.parent):
            file = SettingsFile(path)
            known = not file.data or self._trust.trusts(path, file.data)
            change(file)
            data = file.save()
        return Written(path, self._keep_trust(path, data) if layer != "user" and known else "")

    def _keep_trust(self, path: Path, data: bytes) -> str:
        """Trust a project's file that its own user has changed; an agent's changes wait for a person."""
        untrusted = self._trust.check(path, data)
        if untrusted is None or not self._may_trust:
            return ""
        try:
            self._trust.trust([untrusted])
        except OSError as error:
            return f"{path} could not be noted as trusted: {error.strerror}"
        return ""

    def _make_folder(self, layer: Layer) -> None:
        try:
            if layer == "user":
                private_folder(self.paths.synapse)
            else:
                make_project_folder(self.project)
        except OSError as error:
            raise ConfigError(
                f"{self.path(layer).parent} cannot be made: {error.strerror or error}",
                "check its permissions",
            ) from error


def check_place(setting: Setting, layer: Layer) -> None:
    """Make sure that a file may set a setting.

    Raises:
        ConfigError: It is one of a project, which may not.
    """
    if layer != "user" and not setting.project:
        raise ConfigError(f"'{setting.key}' cannot be set by a project", "set it in your own file: --user")


def in_order(keys: Collection[str]) -> list[str]:
    """Keys in the order of the schema; those of `instructions.<type>` come last."""
    places = {key: place for place, key in enumerate(SCHEMA)}
    return sorted(keys, key=lambda key: (places.get(key, len(places)), key))


def is_secret(key: str) -> bool:
    """Whether the value of a setting is shown to nobody."""
    return key.startswith("env.") and key.endswith(_SECRETS)


def shown(key: str, value: object) -> object:
    """A value as a file would hold it; a secret is not shown."""
    setting = find_setting(key)
    if is_secret(key) and value:
        return MASK
    return setting.written(value) if setting is not None else value
