"""The home folder of the demo."""

from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.cli.demo import PORTS, scratch_project
from synapse_tui.system.language import language
from synapse_tui.system.paths import UserPaths, shipped_profiles


def test_the_agents_of_the_demo_have_ports_of_their_own():
    with scratch_project():
        found = load_profiles(shipped_profiles(), UserPaths.of_environment().profiles)
    assert not found.problems
    assert found.find("dummy").ports == PORTS


def test_the_agents_of_the_demo_speak_as_the_user_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".synapse").mkdir(mode=0o700)
    (tmp_path / ".synapse" / "settings.json").write_text('{"tui": {"language": "ja"}}', encoding="utf-8")
    language.cache_clear()
    try:
        with scratch_project():
            language.cache_clear()  # as in the processes of the agents, which read the settings themselves
            assert language() == "ja"
    finally:
        language.cache_clear()


def test_the_templates_of_the_demo_are_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with scratch_project():
        mine = tmp_path / ".synapse" / "templates"
        mine.mkdir(parents=True)
        (mine / "review.md").write_text("please review")
        found = UserPaths.of_environment().templates
        assert found != mine
        assert [file.read_text() for file in found.glob("*.md")] == ["please review"]
    assert (mine / "review.md").exists()
