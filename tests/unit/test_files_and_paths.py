"""Private files and the project's folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from synapse_tui.errors import ConfigError
from synapse_tui.files import private_folder, write_advice, write_private
from synapse_tui.paths import UserPaths, find_project, shipped_profiles


def test_a_private_file_is_replaced_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    path = folder / "file"
    write_private(path, b"one")
    write_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in folder.iterdir()] == ["file"]


def test_a_folder_of_ours_that_others_can_read_is_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "loose"
    folder.mkdir(mode=0o755)
    private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_private(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_project_is_the_nearest_marked_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".synapse").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    repository = home / "repository"
    deep = repository / "package" / "deep"
    deep.mkdir(parents=True)
    assert find_project(deep) == deep
    (repository / ".git").mkdir()
    assert find_project(deep) == repository
    (repository / "package" / ".synapse").mkdir()
    assert find_project(deep) == repository / "package"
    link = tmp_path / "link"
    link.symlink_to(deep)
    assert find_project(link) == repository / "package"


def test_profiles_are_shipped() -> None:
    names = {path.stem for path in shipped_profiles().glob("*.yaml")}
    assert {"claude", "codex", "gemini", "opencode", "copilot", "dummy", "shell"} <= names


@pytest.mark.parametrize("home", ["", "/", "//", "relative", "/proc/..", "/dev/null"])
def test_what_is_no_home_folder_is_refused(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    with pytest.raises(ConfigError, match="home folder") as caught:
        UserPaths.of_environment()
    assert "set HOME" in caught.value.hint
    with pytest.raises(ConfigError):
        find_project(Path.cwd())


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "make room"), (errno.EDQUOT, "make room"), (errno.EACCES, "permissions")],
)
def test_a_full_disk_is_not_a_matter_of_permissions(number: int, advice: str) -> None:
    assert advice in write_advice(OSError(number, os.strerror(number)))
