"""Where spools lie, what is made for them, and what is removed again."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from synapse_tui.paths import FOLDER, IGNORED, find_project, make_project_folder, remove_project_folder
from synapse_tui.spool.folder import AgentPlace, SpoolFolder, new_spool, remove_abandoned


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def spool_of(temporary: Path, cwd: Path, project: Path | None = None, *, sandboxed: bool = True) -> Path:
    place = AgentPlace(
        "synapse-codex-8120",
        cwd,
        project or cwd,
        temporary.parent / "home",
        sandboxed,
        {"TMPDIR": str(temporary)},
    )
    return new_spool(place).path


def repository(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return tmp_path / "work"


def test_a_sandboxed_agents_spool_lies_in_its_repository_and_leaves_no_trace_in_it(
    tmp_path: Path, temporary: Path
) -> None:
    work = repository(tmp_path)
    spool = spool_of(temporary, work)
    assert spool.parent == work / FOLDER / "spool"
    assert (work / FOLDER / ".gitignore").read_bytes() == IGNORED
    for folder in (spool, spool.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert spool_of(temporary, work) != spool, "no two agents share one"


def test_of_others_nothing_is_made_in_the_repository(tmp_path: Path, temporary: Path) -> None:
    work = repository(tmp_path)
    assert spool_of(temporary, work, sandboxed=False).parent == temporary
    assert not (work / FOLDER).exists()
    (work / FOLDER).mkdir()
    assert spool_of(temporary, work, sandboxed=False).parent == work / FOLDER / "spool"


@pytest.mark.parametrize("git", [True, False])
def test_what_a_project_is_never_changes_by_a_spool(tmp_path: Path, temporary: Path, git: bool) -> None:
    work = repository(tmp_path) if git else tmp_path / "work"
    below = work / "below"
    below.mkdir(parents=True)
    before = find_project(below), find_project(work)
    assert spool_of(temporary, below, work if git else below).parent == temporary
    spool_of(temporary, work)
    assert (find_project(below), find_project(work)) == before


def test_a_spool_for_temporary_files_cannot_be_guessed_and_is_private(
    tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "plain").mkdir()
    spools = {spool_of(temporary, tmp_path / "plain") for _ in range(3)}
    assert len(spools) == 3
    for spool in spools:
        assert spool.name.startswith(f"synapse-spool-{os.getuid()}-synapse-codex-8120-")
        assert len(spool.name.rpartition("-")[2]) == 16
        assert stat.S_IMODE(spool.stat().st_mode) == 0o700


def test_in_the_home_folder_the_users_own_settings_are_left_alone(tmp_path: Path, temporary: Path) -> None:
    home = tmp_path / "home"
    (home / FOLDER).mkdir(parents=True)
    (home / ".git").mkdir()
    assert spool_of(temporary, home).parent == temporary
    assert not list((home / FOLDER).iterdir())


@pytest.mark.parametrize("what", ["link", "file", "linked spool"])
def test_a_cloned_repository_cannot_lead_the_spool_elsewhere(
    tmp_path: Path, temporary: Path, what: str
) -> None:
    work = repository(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if what == "link":
        (work / FOLDER).symlink_to(elsewhere)
    elif what == "file":
        (work / FOLDER).write_text("")
    else:
        (work / FOLDER).mkdir()
        (work / FOLDER / "spool").symlink_to(elsewhere)
    assert spool_of(temporary, work).parent == temporary
    assert not list(elsewhere.iterdir())


def test_an_edited_gitignore_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    ignore = tmp_path / FOLDER / ".gitignore"
    ignore.write_text("mine\n")
    make_project_folder(tmp_path)
    assert ignore.read_text() == "mine\n"
    remove_project_folder(tmp_path / FOLDER)
    assert ignore.exists()


def test_no_part_of_a_gitignore_is_left_on_a_full_disk(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            make_project_folder(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (make_project_folder(tmp_path) / ".gitignore").read_bytes() == IGNORED


@pytest.mark.parametrize("other", ["", "profiles", ".gitkeep"])
def test_a_project_folder_goes_only_with_nothing_but_ours_in_it(tmp_path: Path, other: str) -> None:
    folder = make_project_folder(tmp_path)
    if other:
        (folder / other).mkdir()
    remove_project_folder(folder)
    assert folder.exists() == bool(other)
    if other:
        assert (folder / ".gitignore").read_bytes() == IGNORED


def test_spools_of_killed_hosts_are_removed_and_those_of_live_ones_are_not(
    tmp_path: Path, temporary: Path
) -> None:
    work = repository(tmp_path)
    prefix = f"synapse-spool-{os.getuid()}-"
    for parent, start in ((temporary, prefix), (work / FOLDER / "spool", "")):
        parent.mkdir(parents=True, exist_ok=True)
        live, left = (SpoolFolder.create(parent / f"{start}{name}") for name in ("live", "left"))
        (left.path / f"{'0' * 32}.request").write_bytes(b"")
        left.leave()
        (parent / f".{start}being-made").mkdir()
        (parent / f".{start}half-made").mkdir()
        os.utime(parent / f".{start}half-made", (0, 0))
        remove_abandoned(parent)
        kept = {live.path.name, f".{start}being-made"}
        assert {path.name for path in parent.iterdir()} == kept
        live.leave()


def test_in_a_folder_for_temporary_files_only_our_own_spools_are_touched(temporary: Path) -> None:
    prefix = f"synapse-spool-{os.getuid()}-"
    (temporary / "synapse-spool-notes").mkdir()
    (temporary / "other").mkdir()
    (temporary / f"{prefix}link").symlink_to(temporary / "other")
    (temporary / f"{prefix}file").write_text("")
    remove_abandoned(temporary)
    remove_abandoned(temporary / "none")
    assert len(list(temporary.iterdir())) == 4
