"""Files of messages: where they are written, what they are called, and what they never do."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import unicodedata
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.agents.delivery import incoming
from synapse_tui.agents.delivery.incoming import Upload, receive, remove_old, safe_name, text_with_files
from synapse_tui.core.content import Part
from synapse_tui.core.errors import MessageError, MessageTooLarge

TASK = "0123456789abcdef"
FOLDER = ".synapse/files/01234567"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder.resolve()


def content(part: Part) -> bytes:
    return Path(part.path).read_bytes()


def mode(part: Part) -> int:
    return stat.S_IMODE(Path(part.path).stat().st_mode)


def git(project: Path, *words: str) -> str:
    command = ("git", "-C", str(project), *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


async def test_files_are_private_named_in_the_text_and_never_overwritten(project):
    parts: list[Part | Upload] = [
        Part(text="look at these"),
        Upload(b"one", "plan.md", "text/markdown"),
        Upload(b"two", "plan.md"),
    ]
    found = await receive(parts, project, TASK)
    again = await receive([Upload(b"three", "plan.md")], project, TASK)
    names = [Path(part.path).name for part in (*found[1:], *again)]
    assert names == ["plan.md", "plan-2.md", "plan-3.md"]
    assert [content(part) for part in (*found[1:], *again)] == [b"one", b"two", b"three"]
    assert {mode(part) for part in found[1:]} == {0o600}
    for folder in (".synapse", ".synapse/files", FOLDER):
        assert stat.S_IMODE((project / folder).stat().st_mode) == 0o700
    assert found[1].name == "plan.md"
    assert text_with_files(found, project) == (
        f"look at these\nAttached file: {FOLDER}/plan.md (text/markdown)\nAttached file: {FOLDER}/plan-2.md"
    )


async def test_version_control_leaves_them_out(project):
    git(project, "init", "-q")
    (project / ".synapse").mkdir(mode=0o700)
    (project / ".synapse" / ".gitignore").write_text("# the user's own\n")
    await receive([Upload(b"x", "x.txt")], project, TASK)
    seen = git(project, "status", "--porcelain", "--untracked-files=all")
    assert seen.split() == ["??", ".synapse/.gitignore"]


async def test_they_are_named_from_the_working_folder(project):
    inside = project / "src" / "deep"
    inside.mkdir(parents=True)
    found = await receive([Upload(b"x", "x.txt")], inside, TASK)
    assert text_with_files(found, inside) == f"Attached file: ../../{FOLDER}/x.txt"
    assert (inside / text_with_files(found, inside).partition(": ")[2]).read_bytes() == b"x"
    assert not (inside / ".synapse").exists(), "that would make a project of it"


HOSTILE = [
    ("../../etc/passwd", "passwd"),
    ("..\\..\\boot.ini", "boot.ini"),
    ("/", "file"),
    ("..", "file"),
    ("", "file"),
    (".bashrc", "bashrc"),
    ("-rf.txt", "rf.txt"),
    ("a\x00b\x1b[31m.txt", "a_b_31m.txt"),
    ("$(rm x)`@!.txt", "rm_x_.txt"),
    ("evil\u202egnp.exe", "evil_gnp.exe"),
    ("計画 書.txt", "計画_書.txt"),
    (unicodedata.normalize("NFD", "é.txt"), "é.txt"),
    ("half \ud83d.txt", "half_.txt"),
    (".gitignore", "gitignore"),
    ("CLAUDE.md", "received-CLAUDE.md"),
    ("agents.override.md", "received-agents.override.md"),
    ("agenda.md", "agenda.md"),
]


@pytest.mark.parametrize(("name", "expected"), HOSTILE)
async def test_names_are_only_names(project, name, expected):
    (found,) = await receive([Upload(b"x", name)], project, TASK)
    assert found.path == str(project / FOLDER / expected)


def test_a_name_without_suffix_gets_that_of_its_type():
    assert safe_name("shot", "image/png") == "shot.png"
    assert safe_name("", "application/json") == "file.json"
    assert safe_name("notes.txt", "image/png") == "notes.txt"
    assert safe_name("x", "no/such-type") == "x"


@given(st.text(), st.text())
def test_any_name_is_one_visible_component_of_moderate_length(name, media_type):
    safe = safe_name(name, media_type)
    assert safe not in (".", "..")
    assert safe == os.path.basename(safe)  # noqa: PTH119 - of a text
    assert 0 < len(safe.encode()) <= 170
    assert not safe.startswith((".", "-"))
    assert not set(safe) & set(" \t\n/\\@$`'\"!*?<>|&;()[]{}~#\x00")


async def test_long_data_becomes_a_file_and_short_data_a_text(project):
    short, long = Part("data", data={"key": "wert"}), Part("data", data=["x" * 5000])
    found = await receive([short, long], project, TASK)
    assert found[0] == short
    assert json.loads(content(found[1])) == long.data
    text = text_with_files(found, project)
    assert text.splitlines() == [
        'Attached data: {"key": "wert"}',
        f"Attached file: {FOLDER}/data.json (application/json)",
    ]
    assert await receive([long], project, TASK, typed=False) == (long,), "an answer is not typed"


async def test_what_has_no_file_touches_nothing(project):
    parts = (Part(text="hello"), Part("url", "https://example.org/x"), Part("data", data=1))
    assert await receive(parts, project, TASK) == parts
    assert not (project / ".synapse").exists()
    assert text_with_files(parts, project).splitlines()[1:] == [
        "Attached URL: https://example.org/x",
        "Attached data: 1",
    ]


@pytest.mark.parametrize("place", [".synapse", ".synapse/files", FOLDER])
async def test_no_link_is_followed(project, tmp_path, place):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / place).parent.mkdir(parents=True, exist_ok=True)
    (project / place).symlink_to(elsewhere)
    with pytest.raises(MessageError, match="cannot be written"):
        await receive([Upload(b"x", "x.txt")], project, TASK)
    assert not list(elsewhere.iterdir())


async def test_a_link_in_the_place_of_a_file_is_no_way_out(project, tmp_path):
    (project / FOLDER).mkdir(parents=True)
    target = tmp_path / "target"
    (project / FOLDER / "x.txt").symlink_to(target)
    (found,) = await receive([Upload(b"x", "x.txt")], project, TASK)
    assert Path(found.path).name == "x-2.txt"
    assert not target.exists()


async def test_too_many_and_too_large_ones_are_refused(project, monkeypatch):
    monkeypatch.setattr(incoming, "MAX_FILES", 2)
    monkeypatch.setattr(incoming, "MAX_BYTES", 10)
    monkeypatch.setattr(incoming, "MAX_KEPT_BYTES", 25)
    with pytest.raises(MessageTooLarge, match="3 files"):
        await receive([Upload(b"")] * 3, project, TASK)
    with pytest.raises(MessageTooLarge, match="11 bytes"):
        await receive([Upload(b"x" * 11)], project, TASK)
    await receive([Upload(b"x" * 5)] * 2, project, TASK)
    await receive([Upload(b"x" * 5)] * 2, project, "another-task")
    with pytest.raises(MessageTooLarge, match="remove some"):
        await receive([Upload(b"x" * 6)], project, TASK)


async def test_of_a_message_that_cannot_be_written_whole_nothing_stays(project, monkeypatch):
    write = Upload.write_to

    def full(upload: Upload, target: IO[bytes]) -> None:
        if upload.content == b"two":
            raise OSError(28, "No space left on device")
        write(upload, target)

    monkeypatch.setattr(Upload, "write_to", full)
    with pytest.raises(MessageError, match="No space left"):
        await receive([Upload(b"one", "1"), Upload(b"two", "2")], project, TASK)
    assert not list((project / FOLDER).iterdir())


async def test_old_ones_are_removed_and_links_are_not_entered(project, tmp_path):
    for task in ("old-task", "new-task"):
        await receive([Upload(b"x", "x.txt")], project, task)
    kept = project / ".synapse" / "files"
    other = tmp_path / "other"
    other.mkdir()
    (kept / "link").symlink_to(other)
    for name in ("old-task", "link"):
        os.utime(kept / name, (1000, 1000), follow_symlinks=False)
    assert remove_old(project, before=2000) == 1
    assert sorted(path.name for path in kept.iterdir()) == [".gitignore", "link", "new-task"]
    assert other.is_dir()
    assert remove_old(tmp_path, before=2000) == 0
