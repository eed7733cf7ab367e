"""What a project brings is asked about, and used once it is trusted: profiles, settings and instructions."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.agents.delivery.typed_text import MessageStyle
from synapse_tui.core.errors import UnknownProfile
from synapse_tui.core.model import AgentSpec
from synapse_tui.daemon.project import ProjectFiles
from synapse_tui.settings import Settings, load_settings
from synapse_tui.system.paths import UserPaths
from tests.waiting import PATIENCE, until

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


class Pause:
    """Stops the readings of a module in their threads, after they have read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(f"{module}.load_settings", self._load)

    def _load(self, *args: Any, **options: Any) -> Settings:
        settings = load_settings(*args, **options)
        self.reached.set()
        assert self.go_on.wait(PATIENCE)
        return settings


@pytest.mark.parametrize("by_the_host_first", [False, True])
async def test_two_readings_at_once_lose_no_question(tmp_path, monkeypatch, by_the_host_first):
    """A person reads the files again while the host, which has seen the change too, reads them itself."""
    files = made(tmp_path)
    host = files.new_host(files.folder)
    asks = Pause(monkeypatch, "synapse_tui.daemon.project"), files.read_again
    follows = Pause(monkeypatch, "synapse_tui.host.following"), lambda host: host.following.read_again()
    (first, read), (second, read_too) = (follows, asks) if by_the_host_first else (asks, follows)
    put(files, "settings.json", json.dumps({"tui.layout": "grid"}))
    begun = asyncio.create_task(read(host))
    await until(first.reached.is_set, "the first one")
    other = asyncio.create_task(read_too(host))
    await until(second.reached.is_set, "the second one")
    second.go_on.set()
    if not by_the_host_first:
        await other
    first.go_on.set()
    await asyncio.gather(begun, other)
    assert asked(files) == ["settings.json"]
    assert host.profiles is files.profiles
    await host.following.read_again()
    assert asked(files) == ["settings.json"], "also after the host has read once more"
    files.trust(host)
    await host.following.read_again()
    assert host.settings.text("tui.layout") == "grid"


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
