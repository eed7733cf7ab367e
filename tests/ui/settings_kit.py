"""Settings in files of a test, as the settings screen and the settings' scenes need them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from synapse_tui.settings import Settings
from synapse_tui.settings.files import SettingsFiles
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore

TYPES = ("claude", "codex", "copilot", "dummy", "gemini", "opencode", "shell")


class Files:
    """A home folder and a project of their own.

    Args:
        folder: Where they are made.
        environ: Variables that win over the files.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self.project = folder / "parser"
        self.paths = UserPaths(folder / "home")
        self.environ = dict(environ or {})
        self.held: Settings | None = None
        """What holds in the host, where that is more than the files say."""
        self.project.mkdir()
        self.user = self.paths.synapse / "settings.json"
        self.shared = self.project / ".synapse/settings.json"
        self.local = self.project / ".synapse/settings.local.json"

    def __call__(self) -> SettingsFiles:
        return SettingsFiles(
            self.project,
            paths=self.paths,
            environ=self.environ,
            trust=TrustStore(self.paths.trusted),
            types=lambda: TYPES,
            held=lambda: self.held,
        )

    def write(self, path: Path, content: object, *, trusted: bool = True) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(data)
        untrusted = TrustStore(self.paths.trusted).check(path, data)
        if trusted and untrusted is not None and path != self.user:
            TrustStore(self.paths.trusted).trust([untrusted])

    def read(self, path: Path) -> object:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
