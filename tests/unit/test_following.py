"""A running host follows the files of its settings."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.core.events import EventBus, Notice, SettingsChanged
from synapse_tui.host import following
from synapse_tui.host.following import ProfileFiles, SettingsFollower
from synapse_tui.settings import file_watch as watch
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.trust import TrustStore
from tests.integration.session_rig import until


@dataclass
class Followed:
    """A follower in folders of its own, and what it has told."""

    follower: SettingsFollower
    paths: UserPaths
    project: Path
    changes: list[SettingsChanged] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def layout(self) -> str:
        return self.follower.settings.text("tui.layout")

    def write(self, content: object, path: Path | None = None) -> Path:
        file = path or self.paths.synapse / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name("partial")
        partial.write_text(content if isinstance(content, str) else json.dumps(content))
        return partial.replace(file)

    @property
    def of_project(self) -> Path:
        return self.project / ".synapse/settings.json"

    def trust(self, path: Path) -> None:
        store = TrustStore(self.paths.trusted)
        found = store.check(path, path.read_bytes())
        assert found is not None
        store.trust([found])

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(holds)


@pytest.fixture(params=[True, False], ids=["inotify", "looking"])
async def followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Followed]:
    monkeypatch.setattr(watch, "LOOK", 0.02)
    monkeypatch.setattr(watch, "SETTLE", 0.005)
    monkeypatch.setattr(following, "PATIENCE", 0.05)
    paths, project, events = UserPaths(tmp_path / "home"), tmp_path / "project", EventBus()
    paths.home.mkdir()
    project.mkdir()
    settings = load_settings(project, paths=paths, environ={}, trusted=lambda *_: False)
    follower = SettingsFollower(
        settings,
        project=project,
        paths=paths,
        environ={"SYNAPSE_LOG_LEVEL": "ERROR"},
        events=events,
        profile_files=ProfileFiles(
            [paths.profiles, project / ".synapse/profiles"],
            lambda last: load_profiles(
                project / "none",
                paths.profiles,
                project / ".synapse/profiles",
                trust=TrustStore(paths.trusted),
                environ={},
                last=last,
            ),
        ),
        native=request.param,
    )
    made = Followed(follower, paths, project)

    def heard(event: object) -> None:
        if isinstance(event, SettingsChanged):
            made.changes.append(event)
        elif isinstance(event, Notice):
            made.notices.append(event.text)

    events.subscribe(heard)
    follower.start()
    await made.until(lambda: "SYNAPSE_LOG_LEVEL" in str(made.changes))
    made.changes.clear()
    follower.load()
    yield made
    await follower.stop()


async def test_a_file_that_appears_changes_and_goes_is_followed(followed: Followed) -> None:
    file = followed.write({"tui.layout": "grid", "env": {"SYNAPSE_LOG_LEVEL": "DEBUG"}})
    await followed.until(lambda: followed.layout == "grid")
    assert followed.changes == [SettingsChanged(("tui.layout",))], "the environment wins"
    replaced = followed.write({"tui.layout": "main"}, file.with_name("new.json"))
    replaced.replace(file)
    await followed.until(lambda: followed.layout == "main")
    file.unlink()
    await followed.until(lambda: followed.layout == "tabs")
    (file.parent / "settings.json").symlink_to(followed.write({"tui.layout": "grid"}, followed.project / "s"))
    await followed.until(lambda: followed.layout == "grid")
    followed.write({"tui.layout": "columns"}, followed.project / "s")
    await followed.until(lambda: followed.layout == "columns")
    assert not followed.notices


def commands(followed: Followed) -> dict[str, str]:
    return {name: profile.command for name, profile in followed.follower.profiles.profiles.items()}


async def test_profiles_that_come_change_and_go_are_followed(followed: Followed) -> None:
    file = followed.write("command: one", followed.paths.profiles / "aider.yaml")
    await followed.until(lambda: commands(followed) == {"aider": "one"})
    followed.write("command: two", file)
    await followed.until(lambda: commands(followed) == {"aider": "two"})
    followed.write({"instructions": {"aider": "mine.md"}})
    await followed.until(lambda: "instructions.aider" in str(followed.changes))
    linked = followed.write("command: three", followed.project / "dotfiles" / "other.yaml")
    (followed.paths.profiles / "other.yaml").symlink_to(linked)
    await followed.until(lambda: commands(followed) == {"aider": "two", "other": "three"})
    followed.write("command: four", linked)
    await followed.until(lambda: commands(followed)["other"] == "four")
    file.unlink()
    await followed.until(lambda: commands(followed) == {"other": "four"})


async def test_a_broken_profile_goes_on_as_it_was_and_is_told_once(followed: Followed) -> None:
    file = followed.write("command: one", followed.paths.profiles / "aider.yaml")
    await followed.until(lambda: commands(followed) == {"aider": "one"})
    followed.write("command: two\ncolour: red\n", file)
    await followed.until(lambda: len(followed.notices) == 1)
    assert commands(followed) == {"aider": "one"}
    assert followed.notices[0].startswith(f"{file}:2: ")
    assert "color" in followed.notices[0]
    assert "its previous values stay in effect" in followed.notices[0]
    new = followed.write("command: [", followed.paths.profiles / "new.yaml")
    await followed.until(lambda: len(followed.notices) == 2)
    assert followed.notices[1].startswith(str(new))
    assert "stay in effect" not in followed.notices[1]
    followed.write("command: two\ncolor: red\n", file)
    await followed.until(lambda: commands(followed) == {"aider": "two"})
    assert len(followed.notices) == 2


async def test_a_profile_of_the_project_counts_as_far_as_it_is_trusted(followed: Followed) -> None:
    file = followed.write("command: one", followed.project / ".synapse/profiles/aider.yaml")
    await followed.until(lambda: len(followed.notices) == 1)
    assert (commands(followed), "once you have seen it" in followed.notices[0]) == ({}, True)
    followed.trust(file)
    await followed.until(lambda: commands(followed) == {"aider": "one"})
    followed.write("command: two", file)
    await followed.until(lambda: len(followed.notices) == 2)
    assert commands(followed) == {"aider": "one"}
    followed.trust(file)
    await followed.until(lambda: commands(followed) == {"aider": "two"})
    file.unlink()
    await followed.until(lambda: commands(followed) == {})


async def test_a_folder_that_goes_takes_its_settings_along(followed: Followed) -> None:
    followed.write({"tui.layout": "grid"})
    await followed.until(lambda: followed.layout == "grid")
    followed.paths.synapse.rename(followed.paths.home / "away")
    await followed.until(lambda: followed.layout == "tabs")
    (followed.paths.home / "away").rename(followed.paths.synapse)
    await followed.until(lambda: followed.layout == "grid")


async def test_a_broken_file_gives_what_it_gave_and_is_told_once(followed: Followed) -> None:
    followed.write({"tui": {"layout": "grid", "sidebar": True}})
    await followed.until(lambda: followed.layout == "grid")
    followed.write('{"tui": {"layout": "ma')
    await followed.until(lambda: len(followed.notices) == 1)
    assert "not valid JSON" in followed.notices[0]
    assert "its previous values stay in effect" in followed.notices[0]
    assert str(followed.paths.synapse / "settings.json") in followed.notices[0]
    followed.write({"a2a.flow": "oneway"}, followed.of_project)
    followed.trust(followed.of_project)
    await followed.until(lambda: followed.follower.settings.text("a2a.flow") == "oneway")
    assert followed.layout == "grid"
    assert len([text for text in followed.notices if "not valid JSON" in text]) == 1
    followed.write({"tui": {"layout": "main", "sidebar": "perhaps"}})
    await followed.until(lambda: followed.layout == "main")
    assert followed.follower.settings.flag("tui.sidebar")
    await followed.until(lambda: "must be true or false" in followed.notices[-1])


async def test_a_file_of_the_project_counts_as_far_as_it_is_trusted(followed: Followed) -> None:
    followed.write({"tui.layout": "grid"}, followed.of_project)
    await followed.until(lambda: len(followed.notices) == 1)
    assert "once you have seen it" in followed.notices[0]
    assert followed.layout == "tabs"
    followed.trust(followed.of_project)
    await followed.until(lambda: followed.layout == "grid")
    followed.write({"tui.layout": "main"}, followed.of_project)
    await followed.until(lambda: len(followed.notices) == 2)
    assert followed.layout == "grid", "what was trusted still holds"
    followed.of_project.unlink()
    await followed.until(lambda: followed.layout == "tabs")


async def test_what_needs_a_restart_is_told(followed: Followed) -> None:
    followed.write({"a2a.card": "v1", "a2a.rate_limit": 7})
    await followed.until(lambda: bool(followed.changes))
    (change,) = followed.changes
    assert change == SettingsChanged(("a2a.card", "a2a.rate_limit"), ("a2a.card",))
    assert not followed.notices, "the application says it"
    followed.write({"a2a.rate_limit": 7})
    await followed.until(lambda: len(followed.changes) == 2)
    assert followed.changes[1] == SettingsChanged(("a2a.card",)), "the session began with this value"


@pytest.mark.parametrize("bad", ['{"env": {"SYNAPSE_AUTH_ENABLED": "perhaps"}}', '{"env": {', "", "[]"])
async def test_a_guard_that_cannot_be_read_is_in_doubt(followed: Followed, bad: str) -> None:
    followed.write({"env": {"SYNAPSE_AUTH_ENABLED": "true", "SYNAPSE_API_KEYS": "ci=secret"}})
    await followed.until(lambda: followed.follower.settings.flag("env.SYNAPSE_AUTH_ENABLED"))
    assert not followed.follower.settings.doubtful
    followed.write(bad)
    await followed.until(lambda: "env.SYNAPSE_AUTH_ENABLED" in followed.follower.settings.doubtful)
    followed.write({})
    await followed.until(lambda: not followed.follower.settings.doubtful)
    assert not followed.follower.settings.flag("env.SYNAPSE_AUTH_ENABLED")


async def test_a_change_that_nothing_tells_of_is_found_by_looking(followed: Followed) -> None:
    file = followed.write({"tui.layout": "grid"})
    await followed.until(lambda: followed.layout == "grid")
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.pwrite(descriptor, b'{"tui.layout": "main"}', 0)  # not closed: the kernel is silent
        await followed.follower.look()
        assert followed.layout == "main"
    finally:
        os.close(descriptor)


async def test_a_change_is_read_though_the_one_who_looked_has_gone(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on, load = threading.Event(), threading.Event(), followed.follower._load

    def slow() -> object:
        began.set()
        goes_on.wait(30)
        return load()

    monkeypatch.setattr(followed.follower, "_load", slow)
    followed.write({"tui.layout": "grid"})
    looking = asyncio.create_task(followed.follower.look())
    await followed.until(began.is_set)
    looking.cancel()
    goes_on.set()
    await followed.until(lambda: followed.layout == "grid")
