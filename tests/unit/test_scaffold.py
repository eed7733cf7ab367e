"""The files of `.synapse`: which of them are as shipped, and a line in files of agents."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from synapse_tui.errors import ConfigError
from synapse_tui.paths import IGNORED, UserPaths
from synapse_tui.scaffold import NoteFile, Scaffold, Scope, Standing, shipped
from synapse_tui.scaffold.files import Step, carry_out
from synapse_tui.scaffold.notes import LINE
from synapse_tui.scaffold.shipped import TEXTS, shipped_hashes, shipped_text, standing_of

FILES = ("settings.json", *TEXTS)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def scaffold(project: Path, scope: Scope = "project") -> Scaffold:
    return Scaffold(scope, project, UserPaths(project.parent / "home"))


def do(made: Scaffold, steps: list[Step]) -> list[str]:
    made.make_folder()
    done: list[Step] = []
    carry_out(steps, done.append)
    return [f"{step.action} {step.path.name}" for step in done]


def test_the_hash_of_every_shipped_text_is_known() -> None:
    """Whoever changes a text adds its new hash to scaffold/shipped.json: unedited files are renewed by it."""
    for name in TEXTS:
        digest = hashlib.sha256(shipped_text(name)).hexdigest()
        assert digest in shipped_hashes()[name], f"add {digest} to {name}"


def test_all_files_are_written_once(project: Path) -> None:
    made = scaffold(project)
    assert do(made, made.to_init()) == [f"write {name}" for name in (*FILES, ".gitignore")]
    folder = project / ".synapse"
    for name in TEXTS:
        assert (folder / name).read_bytes() == shipped_text(name)
    assert (folder / ".gitignore").read_bytes() == IGNORED
    assert {standing_of(folder / name) for name in FILES} == {Standing.SHIPPED}
    assert do(made, made.to_init()) == []


@pytest.mark.parametrize("scope", ["user", "project"])
def test_new_settings_set_nothing(project: Path, scope: Scope) -> None:
    """Defaults in a project's file would win over what a person sets later."""
    made = scaffold(project, scope)
    do(made, made.to_init())
    assert json.loads((made.folder / "settings.json").read_text()) == {}
    assert not made.faults()


def test_what_was_edited_stays_and_an_old_text_is_renewed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scaffold(project)
    do(made, made.to_init())
    old = hashlib.sha256(b"of old").hexdigest()
    monkeypatch.setattr(shipped, "shipped_hashes", lambda: {name: [old] for name in TEXTS})
    (made.folder / "default.md").write_bytes(b"of old")
    (made.folder / "gemini.md").write_bytes(b"mine")
    (made.folder / "delegate.md").unlink()
    assert do(made, made.to_init()) == ["renew default.md", "write delegate.md"]
    assert (made.folder / "gemini.md").read_bytes() == b"mine"


def test_what_was_edited_is_kept_beside_what_is_put_back(project: Path) -> None:
    made = scaffold(project)
    do(made, made.to_init())
    for text in (b"first", b"second"):
        (made.folder / "default.md").write_bytes(text)
        assert do(made, made.to_reset()) == ["replace default.md"]
    assert (made.folder / "default.md.bak").read_bytes() == b"first"
    assert (made.folder / "default.md.bak2").read_bytes() == b"second"
    assert (made.folder / "default.md").read_bytes() == shipped_text("default.md")
    assert do(made, made.to_reset()) == []


def test_to_put_settings_back_opens_no_door(project: Path) -> None:
    made = scaffold(project, "user")
    made.make_folder()
    path = made.folder / "settings.json"
    path.write_text(
        '{"env.SYNAPSE_AUTH_ENABLED": true, "env": {"SYNAPSE_API_KEYS": "ci=a"}, "tui.layout": "grid"}'
    )
    assert do(made, made.to_reset())[0] == "replace settings.json"
    content = json.loads(path.read_text())
    assert (content["env"]["SYNAPSE_AUTH_ENABLED"], content["env"]["SYNAPSE_API_KEYS"]) == (True, "ci=a")
    assert "tui" not in content
    path.write_text('{"env": {"SYNAPSE_AUTH_ENABLED": tr')
    with pytest.raises(ConfigError, match="no valid JSON"):
        made.to_reset()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_that_is_none_is_refused(project: Path, kind: str) -> None:
    (project / ".synapse").symlink_to(project.parent) if kind == "link" else (project / ".synapse").touch()
    with pytest.raises(ConfigError, match="is a link" if kind == "link" else "is no folder"):
        scaffold(project)


def test_a_link_is_never_written_through(project: Path) -> None:
    target = project.parent / "target"
    target.write_text("precious")
    (project / ".synapse").mkdir()
    (project / ".synapse/default.md").symlink_to(target)
    (project / "CLAUDE.md").symlink_to(target)
    made = scaffold(project)
    do(made, made.to_init())
    do(made, made.to_reset())
    assert do(made, list(made.notes(wanted=True))) == ["add a line GEMINI.md"]
    assert target.read_text() == "precious"
    assert (project / ".synapse/default.md.bak").is_symlink()


def test_a_text_that_cannot_be_written_is_not_lost(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scaffold(project)
    do(made, made.to_init())
    (made.folder / "default.md").write_bytes(b"mine")

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("synapse_tui.scaffold.files.write_private", full)
    with pytest.raises(ConfigError, match="No space left"):
        carry_out(made.to_reset(), lambda step: None)
    assert (made.folder / "default.md").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "before", [b"# Mine\n", b"# Mine", b"# Mine\n\n", b"a\r\nb\r\n", b"a\r\nb", "日本語".encode(), b"\n"]
)
def test_the_line_comes_and_goes_byte_for_byte(project: Path, before: bytes) -> None:
    path = project / "CLAUDE.md"
    path.write_bytes(before)
    path.chmod(0o644)
    note = NoteFile(path, project)
    assert not note.noted
    note.write(note.with_line())
    again = NoteFile(path, project)
    assert again.as_shipped
    assert again.with_line() == path.read_bytes()
    assert path.read_bytes().startswith(before)
    path.write_bytes(path.read_bytes().replace(b"other coding agents", b"others"))
    older = NoteFile(path, project)
    assert (older.noted, older.as_shipped) == (True, False)
    assert LINE in older.with_line()
    again.write(again.without_line())
    assert (path.read_bytes() if path.exists() else b"\n") == before
    assert not path.exists() or path.stat().st_mode & 0o777 == 0o644


def test_a_file_that_holds_only_the_line_goes_with_it(project: Path) -> None:
    made = scaffold(project)
    assert do(made, list(made.notes(wanted=True))) == ["add a line CLAUDE.md", "add a line GEMINI.md"]
    assert do(made, list(made.notes(wanted=True))) == []
    assert do(made, list(made.notes(wanted=False))) == [
        "remove the line CLAUDE.md",
        "remove the line GEMINI.md",
    ]
    assert not (project / "CLAUDE.md").exists()
    assert not list(scaffold(project, "user").notes(wanted=True))


@pytest.mark.parametrize("content", [b"a\0b", None])
def test_what_takes_no_line_is_left_alone(project: Path, content: bytes | None) -> None:
    path = project / "CLAUDE.md"
    path.mkdir() if content is None else path.write_bytes(content)
    step = next(iter(scaffold(project).notes(wanted=True)))
    assert (step.action, step.changes) == ("keep", False)
    assert "no file of text" in step.why


def test_what_appeared_since_it_was_looked_at_is_not_overwritten(project: Path) -> None:
    made = scaffold(project)
    steps = made.to_init()
    made.make_folder()
    (made.folder / "gemini.md").write_bytes(b"mine")
    with pytest.raises(ConfigError, match="made a moment ago"):
        carry_out(steps, lambda step: None)
    assert (made.folder / "gemini.md").read_bytes() == b"mine"
