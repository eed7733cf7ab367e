"""Settings files that several change at the same time."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import TrustStore
from synapse_tui.errors import ConfigError
from synapse_tui.paths import UserPaths
from synapse_tui.settings import files as editing
from synapse_tui.settings.files import SettingsFile, SettingsFiles, turn_at
from tests.waiting import PATIENCE


@pytest.fixture
def files(tmp_path: Path) -> SettingsFiles:
    paths = UserPaths(tmp_path)
    return SettingsFiles(
        tmp_path / "project", paths=paths, environ={}, trust=TrustStore(paths.trusted), types=lambda: ()
    )


def test_two_who_change_a_file_at_once_are_both_heard(files: SettingsFiles) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(file: SettingsFile) -> None:
        reading.set()
        go_on.wait(PATIENCE)
        file.put("tui.layout", "grid")

    first = threading.Thread(target=files.change, args=("user", slow))
    first.start()
    assert reading.wait(PATIENCE)
    second = threading.Thread(target=files.change, args=("user", lambda file: file.put("tui.sidebar", True)))
    second.start()
    second.join(0.1)  # one who did not wait would be done by now, and lost
    go_on.set()
    first.join(PATIENCE)
    second.join(PATIENCE)
    written = json.loads(files.path("user").read_text())
    assert written == {"tui": {"layout": "grid", "sidebar": True}}


def test_one_who_never_finishes_is_told(files: SettingsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "PATIENCE", 0.0)
    files.paths.synapse.mkdir()
    with turn_at(files.paths.synapse), pytest.raises(ConfigError, match="another process is writing"):
        files.change("user", lambda file: file.put("tui.layout", "grid"))
    assert not files.path("user").exists()
