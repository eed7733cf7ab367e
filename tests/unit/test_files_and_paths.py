"""Private files and the project's folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import os
import pwd
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from synapse_tui.a2a.external.registry import ExternalAgent, ExternalStore
from synapse_tui.agents.profiles.profile import TranscriptLines, TranscriptRules
from synapse_tui.agents.transcript import _newest
from synapse_tui.core.errors import ConfigError, SessionError, UnsafePath
from synapse_tui.hooks.changed_lines import take
from synapse_tui.messages.conversations import import_files
from synapse_tui.sessions.client import locked
from synapse_tui.sessions.places import place_of
from synapse_tui.sessions.spool.files import HOST_FILE, is_abandoned
from synapse_tui.system.files import (
    check_safe,
    is_open,
    private_folder,
    read_own,
    read_regular,
    write_advice,
    write_private,
)
from synapse_tui.system.paths import UserPaths, find_project
from synapse_tui.workspace import WorkspaceStore
from tests.odd_files import KINDS, put_odd


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


def test_folders_are_private_from_the_first_moment_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (folder, *folder.parents[:2])] == [0o700] * 3


def test_a_folder_that_others_can_write_to_is_refused_and_not_tightened(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o757)
    with pytest.raises(UnsafePath, match="other users can write to it"):
        private_folder(folder / "inner")
    with pytest.raises(UnsafePath) as caught:
        private_folder(folder)
    assert caught.value.hint.endswith(f"chmod go-w {folder}")
    assert folder.stat().st_mode & 0o777 == 0o757


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, below one that everybody may write to."""
    above = tmp_path / "homes"
    home = above / "me"
    (home / ".synapse" / "profiles").mkdir(parents=True)
    above.chmod(0o777)
    monkeypatch.setenv("HOME", str(home))
    return home


def test_what_is_above_the_home_folder_is_the_administrators(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".synapse" / "profiles" / "x.yaml"
    check_safe(file)
    file.write_bytes(b"x")
    assert read_own(file) == b"x"
    link = tmp_path / "homes" / "link"
    link.symlink_to(home)
    monkeypatch.setenv("HOME", str(link))
    check_safe(link / ".synapse")
    check_safe(home / ".synapse")
    monkeypatch.setenv("HOME", "/nowhere")
    with pytest.raises(UnsafePath):
        check_safe(file)


@pytest.mark.parametrize("name", ["", ".synapse", ".synapse/profiles", ".synapse/profiles/x.yaml"])
def test_each_folder_from_home_down_to_a_file_counts(home: Path, name: str) -> None:
    file = home / ".synapse" / "profiles" / "x.yaml"
    file.write_bytes(b"x")
    (home / name).chmod(0o702)
    with pytest.raises(UnsafePath, match="mode 0702") as caught:
        read_own(file)
    assert caught.value.filename == str(home / name)
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.EPERM


def test_a_sticky_home_may_be_open(home: Path) -> None:
    home.chmod(0o1777)
    check_safe(home / ".synapse")


def test_links_are_followed_and_what_they_lead_to_counts(home: Path) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_bytes(b"{}")
    link = home / ".synapse" / "settings.json"
    link.symlink_to("../dotfiles/./settings.json")
    assert read_own(link) == b"{}"
    dotfiles.chmod(0o777)
    with pytest.raises(UnsafePath):
        read_own(link)
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(UnsafePath, match="loop of links"):
        check_safe(link)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_what_another_user_has_put_there_is_refused(home: Path) -> None:
    folder = home / ".synapse" / "profiles"
    real = home / "clone"
    real.mkdir()
    folder.rmdir()
    folder.symlink_to(real)  # what it leads to is the user's own, and says what a stranger wants
    check_safe(folder)
    os.chown(folder, 65534, -1, follow_symlinks=False)
    with pytest.raises(UnsafePath, match="belongs to another user") as caught:
        check_safe(folder / "x.yaml")
    assert "sudo chown" in caught.value.hint


@pytest.mark.parametrize(
    ("user", "uid", "group", "gid", "members", "fit"),
    [
        ("ann", 1000, "ann", 1000, [], True),
        ("ann", 1000, "ann", 1000, ["ann"], True),
        ("ann", 1001, "ann", 1007, [], True),
        ("ann", 1000, "ann", 1000, ["ann", "bob"], False),
        ("ann", 1000, "staff", 20, [], False),
        ("ann", 1000, "root", 0, [], True),
        ("ann", 1000, "wheel", 0, ["root", "bob"], False),
        ("", 1000, "", 1000, [], True),
        ("", 1000, "", 1001, [], False),
        ("", 1000, "others", 1000, ["bob"], False),
    ],
)
def test_a_group_may_write_that_is_the_users_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: str,
    uid: int,
    group: str,
    gid: int,
    members: list[str],
    fit: bool,
) -> None:
    def of_user(_uid: int) -> pwd.struct_passwd:
        if not user:
            raise KeyError(_uid)
        primary = gid if group in (user, "staff") else uid
        return pwd.struct_passwd((user, "x", uid, primary, "", "/", "/bin/sh"))

    def of_group(_gid: int) -> grp.struct_group:
        if not group:
            raise KeyError(_gid)
        return grp.struct_group((group, "x", gid, members))

    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(pwd, "getpwuid", of_user)
    monkeypatch.setattr(grp, "getgrgid", of_group)
    status = list(tmp_path.stat())
    for mode, expected in ((0o100664, not fit), (0o40770, not fit), (0o100644, False), (0o100666, True)):
        status[0], status[4], status[5] = mode, uid, gid
        assert is_open(os.stat_result(status)) is expected


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


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_others_can_put_there_hold_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    odd = tmp_path / "odd"
    put_odd(odd, kind)
    with pytest.raises(OSError, match="it is"):
        read_regular(odd)
    assert (take(odd).text is None) == (kind != "long")
    put_odd(tmp_path / "spool" / HOST_FILE, kind)
    assert is_abandoned(tmp_path / "spool") in (True, False)
    transcript = TranscriptRules(f"{tmp_path}/odd", TranscriptLines({}, "a"), TranscriptLines({}, "a"))
    found = _newest(transcript, since=0.0, cwd=tmp_path, environ={})
    assert found == ([odd] if kind == "long" else [])
    store = WorkspaceStore(tmp_path / "workspaces", "key")
    put_odd(tmp_path / "workspaces" / "key" / "workspace.json", kind)
    assert store.load() is None
    assert store.problem


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a file for ever, as an agent could."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_whoever_holds_a_lock_of_ours_is_not_waited_for_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("synapse_tui.system.files.LOCK_TIMEOUT", 0.05)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    store = ExternalStore(private_folder(tmp_path / "external"))
    store.put(ExternalAgent("docs", "https://docs.example/"))
    place = place_of(tmp_path / "project", "main", environ=os.environ)
    with locked(place):
        pass
    earlier = private_folder(tmp_path / "talks") / "docs.jsonl"
    earlier.write_bytes(b"")

    def start() -> None:
        with locked(place):
            raise AssertionError("another process holds it")

    with ThreadPoolExecutor() as pool:
        with held(store.folder / ".external.lock"):
            for wanted in (
                pool.submit(store.put, ExternalAgent("docs", "https://docs.example/")),
                pool.submit(store.remove, "docs"),
                pool.submit(store.touch, "docs", "2026-01-02T03:04:05"),
            ):
                with pytest.raises(ConfigError, match="another process"):
                    wanted.result(timeout=5)
        with held(place.lock), pytest.raises(SessionError, match=r"another process .* session 'main'"):
            pool.submit(start).result(timeout=5)
        with held(earlier):
            pool.submit(import_files, earlier.parent, "p", print).result(timeout=5)
    assert earlier.exists()
    assert "a conversation was not imported: another process holds the lock" in caplog.text
    assert [each.alias for each in store.list()] == ["docs"]
