"""Teams: opened after consent, shown, saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Launch, Run
from tests.waiting import wait_until
from tests.worktree_kit import git, make_repository

TEAM = """\
about: Two that try it
layout: columns
agents:
  - kind: dummy
    name: ann
    role: You are the first.
    task: begin now
  - {kind: dummy, name: bob, worktree: true}
  - {kind: nothing-of-that-name}
"""
Log = Callable[..., list[dict[str, object]]]


@pytest.fixture
def team(project: Path) -> Path:
    git(project, "init", "-q")
    make_repository(project)
    path = project / ".synapse" / "teams" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(TEAM)
    return path


def agents(run: Run) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(run("synapse", "list", "--json").stdout)
    return sorted(listed, key=lambda agent: str(agent["name"]))


def test_a_team_of_the_project_is_shown_and_opened_after_consent_alone(
    launch: Launch, run: Run, team: Path, dummy_log: Log, project: Path
) -> None:
    refusing = launch("--team", "mine")
    refusing.wait_for("Two that try it", "nothing-of-that-name would not start", "role: You are the first.")
    refusing.wait_for("kind: dummy", "Trust this file? It can start programs")
    refusing.keys("n", "Enter")
    refusing.wait_for("was not opened", "nothing was trusted and nothing started")
    assert json.loads(run("synapse-tui", "ls", "--json").stdout) == []
    terminal = launch("--team", "mine")
    terminal.wait_for("Trust this file?")
    terminal.keys("y", "Enter")
    wait_until(lambda: [each["status"] for each in agents(run)] == ["READY"] * 2, "two ready agents")
    terminal.wait_for("nothing-of-that-name did not start")
    wait_until(lambda: len(dummy_log("submit")) == 2, "role and task")
    assert [str(entry["text"]).partition("] ")[2] or entry["text"] for entry in dummy_log("submit")] == [
        "You are the first.",
        "begin now",
    ]
    listed = json.loads(run("synapse", "list", "--json").stdout)
    folders = {each["name"]: each["working_dir"] for each in listed}
    assert folders == {"ann": str(project), "bob": str(project.with_name("project.worktrees") / "bob")}
    rows = [row for row in terminal.rows if "ann" in row and "bob" in row]
    assert rows, "both are shown, beside each other"
    saved = run("synapse", "team", "save", "again")
    assert saved.returncode == 0, saved.stderr
    assert (team.parent / "again.yaml").read_text() == (
        "layout: columns\n"
        "agents:\n"
        "- kind: dummy\n  name: ann\n  role: You are the first.\n"
        "- kind: dummy\n  name: bob\n  worktree: true\n"
    )
    shown = json.loads(run("synapse", "team", "show", "again", "--json").stdout)
    assert shown["trusted"], "the person who runs it saved it"
    assert run("synapse", "team", "save", "again").returncode == 2
    assert run("synapse", "team", "save", "again", "--force").returncode == 0


def test_in_the_background_nothing_starts_before_it_is_trusted_and_names_in_use_are_reported(
    run: Run, team: Path, launch: Launch
) -> None:
    refused = run("synapse", "start", "--team", "mine")
    assert refused.returncode == 2
    assert "'synapse team show mine' shows what it starts" in refused.stderr
    assert f"synapse trust {team}" in refused.stderr
    assert json.loads(run("synapse-tui", "ls", "--json").stdout) == []
    assert run("synapse", "trust", str(team), "--yes").returncode == 0
    started = run("synapse", "start", "--team", "mine", "--json")
    assert started.returncode == 2, "of the one that cannot be"
    assert "there is no profile 'nothing-of-that-name'" in started.stderr
    assert [agent["name"] for agent in agents(run)] == ["ann", "bob"]
    again = run("synapse", "start", "--team", "mine")
    assert "'ann' already addresses another agent" in again.stderr
    assert [agent["name"] for agent in agents(run)] == ["ann", "bob"]
    team.write_text(TEAM.replace("begin now", "rm -rf"))
    assert "is not trusted" in run("synapse", "start", "--team", "mine").stderr


def test_a_broken_file_starts_nothing(run: Run, team: Path) -> None:
    team.write_text(TEAM.replace("worktree: true", "worktre: true"))
    for words in (("start", "--team", "mine"), ("team", "show", "mine")):
        result = run("synapse", *words)
        assert result.returncode == 2
        assert f"{team}:8: unknown key 'agents[1].worktre': did you mean 'worktree'?" in result.stderr
    listed = run("synapse", "team", "list")
    assert listed.returncode == 0
    assert [row.split()[0] for row in listed.stdout.splitlines()] == [
        "TEAM",
        "mine",
        "pair",
        "review",
        "swarm",
    ]
    assert json.loads(run("synapse-tui", "ls", "--json").stdout) == []


def test_a_team_of_which_none_can_start_says_why_of_each(launch: Launch, run: Run, team: Path) -> None:
    team.write_text(
        "agents:\n"
        "- {kind: nothing-of-that-name, name: ann}\n"
        "- {kind: nothing-of-that-name, name: bob}\n"
        "- {kind: dummy, name: cleo, folder: missing}\n"
    )
    terminal = launch("--team", "mine", columns=300)
    terminal.wait_for("Trust this file? It can start programs")
    terminal.keys("y", "Enter")
    terminal.wait_for("ann, bob did not start: there is no profile 'nothing-of-that-name'")
    terminal.wait_for("; cleo did not start: the working folder")
    assert terminal.screen.count("did not start: there is no profile") == 1
    assert json.loads(run("synapse-tui", "ls", "--json").stdout) == []
