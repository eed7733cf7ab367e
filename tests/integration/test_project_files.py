"""What a project brings is asked about, and used once it is trusted: profiles, settings and instructions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synapse_tui.agents.delivery.typed_text import MessageStyle
from synapse_tui.daemon.project import ProjectFiles
from synapse_tui.errors import UnknownProfile
from synapse_tui.model import AgentSpec
from synapse_tui.paths import UserPaths
from tests.waiting import until

PROFILE = "command: /bin/cat\n"
TABLE = "| kind | keywords | agent |\n|-|-|-|\n| t | test | codex |\n"


def made(folder: Path) -> ProjectFiles:
    project = folder / "project"
    (project / ".synapse" / "profiles").mkdir(parents=True)
    return ProjectFiles(project, UserPaths(folder / "home"), {})


def put(files: ProjectFiles, name: str, content: str) -> Path:
    path = files.folder / ".synapse" / name
    path.write_text(content)
    return path


def asked(files: ProjectFiles) -> list[str]:
    return sorted(file.path.name for file in files.profiles.untrusted)


async def test_texts_that_agents_would_be_told_are_asked_about(tmp_path):
    files = made(tmp_path)
    for name in ("default.md", "claude.md", "delegate.md", "file-safety.md", "notes.md", "nobody.md"):
        put(files, name, TABLE)
    (files.folder / ".synapse" / "codex.md").mkdir()
    host = files.new_host(files.folder)
    await files.read_again(host)
    assert asked(files) == ["claude.md", "default.md", "delegate.md"]
    assert host.profiles is files.profiles
    files.trust(host)
    assert not host.profiles.untrusted
    put(files, "default.md", "changed")
    await files.read_again(host)
    (question,) = host.profiles.untrusted
    assert (question.path.name, question.content, question.changed) == ("default.md", "changed", True)


async def test_the_files_that_the_settings_name_are_asked_about(tmp_path):
    files = made(tmp_path)
    files.paths.synapse.mkdir(parents=True)
    content = {
        "instructions": {"default": "team.md", "claude": "mine.md"},
        "env.SYNAPSE_FILE_SAFETY_ENABLED": 1,
    }
    (files.paths.synapse / "settings.json").write_text(json.dumps(content))
    for name in ("default.md", "team.md", "mine.md", "claude.md", "file-safety.md"):
        put(files, name, "text")
    files.load()
    assert asked(files) == ["file-safety.md", "mine.md", "team.md"]


async def test_a_profile_that_was_trusted_can_be_opened_at_once(tmp_path):
    files = made(tmp_path)
    put(files, "profiles/cat.yaml", PROFILE)
    put(files, "cat.md", "you are a cat")
    (files.paths.synapse).mkdir(parents=True)
    (files.paths.synapse / "settings.json").write_text(
        '{"instructions.cat": "cat.md", "instructions.dog": "x"}'
    )
    files.load()
    assert asked(files) == ["cat.yaml"]
    (problem,) = files.settings.problems
    assert "instructions.dog" in problem.message
    host = files.new_host(files.folder)
    with pytest.raises(UnknownProfile):
        host.check(AgentSpec("cat"), {"PATH": "/bin"})
    files.trust(host)
    assert host.check(AgentSpec("cat"), {"PATH": "/bin"})[0].command == "/bin/cat"
    assert asked(files) == ["cat.md"], "now that there is such a type"


async def test_a_running_host_lives_by_the_settings_that_are_trusted(tmp_path):
    files = made(tmp_path)
    host = files.new_host(files.folder)
    await host.start()
    try:
        wanted = {"a2a": {"message_format": "plain", "info": "inbox"}, "tui.layout": "grid"}
        put(files, "settings.json", json.dumps(wanted))
        await files.read_again(host)
        await until(lambda: asked(files) == ["settings.json"])
        assert host.settings.text("tui.layout") == "tabs"
        files.trust(host)
        await until(lambda: host.settings.text("tui.layout") == "grid")
        assert files.settings is host.settings
        assert host._factory.style == MessageStyle(plain=True, info_to_inbox=True)
    finally:
        await host.stop()
