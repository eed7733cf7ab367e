"""The files of the settings as the command line sees and changes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from synapse_tui.agents.profiles.finding import TrustStore
from synapse_tui.errors import ConfigError
from synapse_tui.paths import UserPaths, find_project
from synapse_tui.settings import Setting, Settings, load_settings
from synapse_tui.settings.files import Layer, SettingsFile, SettingsFiles, in_order
from synapse_tui.settings.layers import check_file

from .caller import Caller
from .group import profile_names
from .output import note

LAYERS: Mapping[Layer, str] = MappingProxyType(
    {
        "user": "your own file, ~/.synapse/settings.json (the default)",
        "project": "the project's file, .synapse/settings.json, for everybody who works on it",
        "local": "your own file of this project, .synapse/settings.local.json, which git ignores",
    }
)


class Layers:
    """The layers that count in a folder.

    Args:
        caller: Who runs the command.
        project: Folder of the project.
    """

    def __init__(self, caller: Caller, project: Path) -> None:
        self.project = project
        self.paths: UserPaths = caller.paths
        self._files = SettingsFiles(
            project,
            paths=caller.paths,
            environ=os.environ,
            trust=TrustStore(caller.paths.trusted),
            types=profile_names,
            may_trust=not caller.agent_id,
        )

    @classmethod
    def here(cls) -> Layers:
        """Those of the current folder."""
        caller = Caller.of()
        return cls(caller, find_project(caller.folder))

    def path(self, layer: Layer) -> Path:
        """The file of a layer."""
        return self._files.path(layer)

    def load(self) -> Settings:
        """The settings that hold."""
        return self._files.load()

    def setting(self, key: str) -> Setting:
        """The setting of a key.

        Raises:
            InvalidValue: There is none.
        """
        return self._files.setting(key)

    def matching(self, settings: Settings, keys: Sequence[str]) -> list[str]:
        """The keys that are meant, in the order of the schema; all for none.

        Raises:
            InvalidValue: One means nothing.
        """
        known = in_order(settings.values)
        if not keys:
            return known
        found: list[str] = []
        for wanted in keys:
            below = [key for key in known if key.startswith(f"{wanted.removesuffix('.')}.")]
            found += below or [self.setting(wanted).key]
        return [key for key in dict.fromkeys(found) if key in settings.values]

    def change(self, layer: Layer, change: Callable[[SettingsFile], object]) -> Path:
        """Change the file of a layer; one that was trusted, or is new, stays trusted.

        Returns:
            The file.

        Raises:
            ConfigError: It cannot be read, is broken, or cannot be written.
        """
        written = self._files.change(layer, change)
        if written.trouble:
            note(f"synapse: {written.trouble}")
        return written.path

    def problems(self, files: Sequence[Path]) -> list[ConfigError]:
        """What is wrong with files, or with all that count here, whether they are trusted or not.

        Raises:
            ConfigError: A file that is named does not exist.
        """
        types = profile_names()
        if files:
            own = self.paths.settings
            return [
                problem
                for path in files
                for problem in check_file(path, own=path.resolve() == own.resolve(), types=types)
            ]
        settings = load_settings(
            self.project, paths=self.paths, environ=os.environ, trusted=lambda _path, _data: True, types=types
        )
        return list(settings.problems)
