"""The files of the settings as the command line sees and changes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from synapse_tui.agents.profiles.trust import TrustStore
from synapse_tui.errors import ConfigError, InvalidValue
from synapse_tui.files import private_folder
from synapse_tui.paths import UserPaths, find_project
from synapse_tui.project_folder import make_project_folder
from synapse_tui.settings import SCHEMA, Setting, Settings, load_settings
from synapse_tui.settings.editing import SettingsFile
from synapse_tui.settings.layers import check_file
from synapse_tui.settings.schema import find_setting, nearest_key

from .caller import Caller
from .group import profile_names
from .output import note

LAYERS: Mapping[str, str] = MappingProxyType(
    {
        "user": "your own file, ~/.synapse/settings.json (the default)",
        "project": "the project's file, .synapse/settings.json, for everybody who works on it",
        "local": "your own file of this project, .synapse/settings.local.json, which git ignores",
    }
)
_NAMES: Mapping[str, str] = MappingProxyType(
    {"user": "settings.json", "project": "settings.json", "local": "settings.local.json"}
)
_MASK = "********"
_SECRETS = ("_KEYS", "_KEY", "_URL", "_TOKEN", "_SECRET")


class Layers:
    """The layers that count in a folder.

    Args:
        caller: Who runs the command.
        project: Folder of the project.
    """

    def __init__(self, caller: Caller, project: Path) -> None:
        self._caller = caller
        self.project = project
        self.paths: UserPaths = caller.paths
        self._trust = TrustStore(caller.paths.trusted)

    @classmethod
    def here(cls) -> Layers:
        """Those of the current folder."""
        caller = Caller.of()
        return cls(caller, find_project(caller.folder))

    def path(self, layer: str) -> Path:
        """The file of a layer."""
        folder = self.paths.synapse if layer == "user" else self.project / ".synapse"
        if layer != "user" and folder == self.paths.synapse:
            raise ConfigError("your home folder is no project", "use --user, or change to a project's folder")
        return folder / _NAMES[layer]

    def load(self) -> Settings:
        """The settings that hold."""
        return load_settings(
            self.project,
            paths=self.paths,
            environ=os.environ,
            trusted=lambda path, data: self._trust.check(path, data) is None,
            types=profile_names(),
        )

    def setting(self, key: str) -> Setting:
        """The setting of a key.

        Raises:
            InvalidValue: There is none.
        """
        found = find_setting(key, profile_names())
        if found is None:
            near = nearest_key(key, profile_names())
            hint = f"did you mean '{near}'? 'synapse config keys' lists all"
            raise InvalidValue(
                f"there is no setting '{key}'", hint if near else "'synapse config keys' lists all"
            )
        return found

    def matching(self, settings: Settings, keys: Sequence[str]) -> list[str]:
        """The keys that are meant, in the order of the schema; all for none.

        Raises:
            InvalidValue: One means nothing.
        """
        known = sorted(
            settings.values, key=lambda key: (list(SCHEMA).index(key) if key in SCHEMA else len(SCHEMA), key)
        )
        if not keys:
            return known
        found: list[str] = []
        for wanted in keys:
            below = [key for key in known if key.startswith(f"{wanted.removesuffix('.')}.")]
            found += below or [self.setting(wanted).key]
        return [key for key in dict.fromkeys(found) if key in settings.values]

    def change(self, layer: str, change: Callable[[SettingsFile], object]) -> Path:
        """Change the file of a layer; one that was trusted, or is new, stays trusted.

        Returns:
            The file.

        Raises:
            ConfigError: It cannot be read, is broken, or cannot be written.
        """
        path = self.path(layer)
        self._make_folder(layer)
        file = SettingsFile(path)
        known = not file.data or self._trust.check(path, file.data) is None
        change(file)
        data = file.save()
        if layer != "user":
            self.keep_trust(path, data, known=known)
        return path

    def keep_trust(self, path: Path, data: bytes, *, known: bool) -> None:
        """Trust a project's file that its own user has changed; an agent's changes wait for a person."""
        untrusted = self._trust.check(path, data)
        if untrusted is None or not known or self._caller.agent_id:
            return
        try:
            self._trust.trust([untrusted])
        except OSError as error:
            note(f"synapse: {path} could not be noted as trusted: {error.strerror}")

    def _make_folder(self, layer: str) -> None:
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

    def problems(self, files: Sequence[Path]) -> list[ConfigError]:
        """What is wrong with files, or with all that count here, whether they are trusted or not.

        Raises:
            ConfigError: A file that is named does not exist.
        """
        types = profile_names()
        if files:
            own = self.paths.synapse / "settings.json"
            return [
                problem
                for path in files
                for problem in check_file(path, own=path.resolve() == own.resolve(), types=types)
            ]
        settings = load_settings(
            self.project, paths=self.paths, environ=os.environ, trusted=lambda _path, _data: True, types=types
        )
        return list(settings.problems)


def shown(key: str, value: object) -> object:
    """A value as it may be shown: secrets are not."""
    secret = key.startswith("env.") and key.endswith(_SECRETS) and bool(value)
    return _MASK if secret else value
