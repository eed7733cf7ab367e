"""Nothing that another user can have written is run, and nothing of ours is ever open to others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from synapse_tui.core.events import EventBus, Notice
from synapse_tui.host.peers import PeerWatch
from synapse_tui.sessions.registry import Registry
from tests.integration.shell_kit import SYNAPSE, Shell
from tests.waiting import until

TUI = (sys.executable, "-c", "from synapse_tui.cli.tui import main; main()")
OWNED_BY_US = (".synapse", ".synapse/profiles", ".synapse/profiles/dummy.yaml", ".synapse/settings.json")
PLANTED = """\
name: dummy
command: sh
args: [-c, 'touch "$HOME/owned"; sleep 600']
description: planted
"""
PATIENCE = 60.0


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    shell = Shell.scratch(tmp_path, apart=True)
    with tempfile.TemporaryDirectory(prefix="synapse-", dir="/tmp") as runtime:
        shell.environ["XDG_RUNTIME_DIR"] = runtime
        yield shell
        for path in shell.home.rglob("*"):  # what a test has opened to others would be refused here too
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        await shell.run("kill", "--all", program=TUI)
        await shell.end()


def plant(home: Path) -> Path:
    """Put a profile there that runs something else under the name of the built-in agent."""
    folder = home / ".synapse" / "profiles"
    folder.mkdir(parents=True, mode=0o700)
    (home / ".synapse").chmod(0o700)
    file = folder / "dummy.yaml"
    file.write_text(PLANTED)
    file.chmod(0o600)
    (home / ".synapse" / "settings.json").write_text("{}")
    (home / ".synapse" / "settings.json").chmod(0o600)
    return file


def folders_open_to_others(home: Path) -> set[str]:
    found = set()
    for name in (".synapse", ".a2a"):
        for root, _folders, _files in os.walk(home / name):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IMODE(os.lstat(root).st_mode) & 0o077:
                    found.add(os.path.relpath(root, home))
    return found


async def test_the_first_start_opens_nothing_to_others_at_any_moment(shell: Shell) -> None:
    program = ("/bin/sh", "-c", 'umask 000; exec "$@"', "sh", *SYNAPSE)
    starting = await shell.start("start", "dummy", program=program)
    seen: set[str] = set()
    ended = asyncio.ensure_future(starting.communicate())
    while not ended.done():
        seen |= await asyncio.to_thread(folders_open_to_others, shell.home)
    out, err = await ended
    assert starting.returncode == 0, err.decode()
    assert b"synapse-dummy-" in out
    assert (shell.home / ".synapse" / "logs").is_dir()
    assert (shell.home / ".a2a" / "registry").is_dir()
    assert seen | folders_open_to_others(shell.home) == set()


@pytest.mark.parametrize("name", OWNED_BY_US)
async def test_what_others_can_write_to_runs_nothing(shell: Shell, name: str) -> None:
    plant(shell.home)
    path = shell.home / name
    path.chmod(path.stat().st_mode & 0o777 | 0o022)
    mode = stat.S_IMODE(path.stat().st_mode)
    result = await shell.run("start", "dummy")
    assert result.code != 0
    assert str(path) in result.err
    assert f"{mode:04o}" in result.err
    assert f"chmod go-w {path}" in result.err
    assert not (shell.home / "owned").exists()
    assert not (shell.home / ".a2a").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("name", OWNED_BY_US)
async def test_what_belongs_to_another_user_runs_nothing(shell: Shell, name: str) -> None:
    plant(shell.home)
    path = shell.home / name
    os.chown(path, 65534, -1)
    result = await shell.run("start", "dummy")
    assert result.code != 0
    assert f"{path} is not used: it belongs to another user" in result.err
    assert not (shell.home / "owned").exists()
    os.chown(path, 0, -1)


async def test_a_running_host_opens_no_agent_of_what_became_open(shell: Shell) -> None:
    assert (await shell.run("start", "dummy")).code == 0
    plant_folder = shell.home / ".synapse" / "profiles"
    plant_folder.mkdir(mode=0o700)
    plant_folder.chmod(0o777)
    result = await shell.run("start", "shell")
    assert result.code != 0
    assert f"chmod go-w {plant_folder}" in result.err
    listed = await shell.run("list")  # what runs goes on
    assert "synapse-dummy-" in listed.out
    assert "synapse-shell-" not in listed.out


async def test_a_registry_that_others_can_write_to_is_not_believed(shell: Shell) -> None:
    registry = shell.home / ".a2a" / "registry"
    registry.mkdir(parents=True)
    registry.chmod(0o777)
    for words in (("list",), ("send", "dummy", "hello")):
        result = await shell.run(*words)
        assert result.code != 0
        assert f"chmod go-w {registry}" in result.err


async def test_keys_are_not_made_in_a_file_that_others_can_write_to(shell: Shell) -> None:
    plant(shell.home)
    path = shell.home / ".synapse" / "settings.json"
    path.chmod(0o666)
    result = await shell.run("auth", "setup", "ci")
    assert result.code != 0
    assert f"chmod go-w {path}" in result.err
    assert path.read_text() == "{}"
    assert (await shell.run("config", "set", "tui.layout", "grid", "--user")).code != 0
    assert path.read_text() == "{}"


async def test_a_home_that_is_made_is_closed_with_its_parents(shell: Shell) -> None:
    missing = shell.home / "deep" / "home"
    shell.environ["HOME"] = str(missing)
    program = ("/bin/sh", "-c", 'umask 000; exec "$@"', "sh", *SYNAPSE)
    started = await shell.run("start", "dummy", program=program)
    assert started.code == 0, started.err
    assert [stat.S_IMODE(path.stat().st_mode) for path in (missing, missing.parent)] == [0o700, 0o700]


async def test_an_unreadable_registry_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "registry"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    events = EventBus()
    notices: list[str] = []
    events.subscribe(lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
    watch = PeerWatch(Registry(folder), events)
    monkeypatch.setattr("synapse_tui.host.peers.INTERVAL", 0.01)
    looked = 0

    async def look() -> None:
        nonlocal looked
        looked += 1
        await PeerWatch.look(watch)

    monkeypatch.setattr(watch, "look", look)
    watch.start()
    try:
        await until(lambda: looked > 5)
    finally:
        await watch.stop()
    (notice,) = notices
    assert "the registry cannot be read" in notice
    assert "chmod go-w" in notice
