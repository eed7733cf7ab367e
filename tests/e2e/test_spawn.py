"""Agents that are opened with a task, by a person and by agents as far as the settings allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import Run
from tests.waiting import wait_until
from tests.worktree_kit import make_repository


@pytest.fixture
def host(run: Run, project: Path) -> Iterator[None]:
    """A host with the agent ann, which runs what it is told to."""
    (project / ".git").rmdir()
    make_repository(project)
    started = run("synapse", "start", "dummy:ann")
    assert started.returncode == 0, started.stderr
    yield
    run("synapse-tui", "kill", "--all", "--yes")


def names(run: Run) -> dict[str, dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(run("synapse", "list", "--json").stdout)
    return {str(each["name"]): each for each in listed}


def told(run: Run, agent: str, command: str) -> str:
    """Let an agent run a command; return what it printed, as the agent shows it."""
    result = run("synapse", "send", agent, f"%%do:{command}%%", "--response")
    assert result.returncode == 0, result.stderr
    return " ".join(result.stdout.split())


def allow(run: Run, **settings: int) -> None:
    for key, value in {"by_agents": "allow", **settings}.items():
        assert run("synapse", "config", "set", f"spawn.{key}", str(value)).returncode == 0


@pytest.mark.usefixtures("host")
def test_a_person_opens_an_agent_with_a_task_and_gets_its_answer(run: Run, project: Path) -> None:
    waited = run("synapse", "spawn", "dummy", "--name", "bob", "--worktree", "--task", "say this", "--wait")
    assert waited.returncode == 0, waited.stderr
    assert "say this" in waited.stdout
    bob = names(run)["bob"]
    assert f"opened {bob['agent_id']}" in waited.stderr
    assert bob["working_dir"] == str(project.with_name("project.worktrees") / "bob")
    data = json.loads(run("synapse", "spawn", "dummy:cleo", "--task", "and that", "--json").stdout)
    assert data["agent_id"] == data["target"] == names(run)["cleo"]["agent_id"]
    assert "and that" in run("synapse", "result", str(data["task_id"]), "--wait-timeout", "60").stdout
    alone = run("synapse", "spawn", "dummy:dan")
    assert alone.stdout == f"{names(run)['dan']['agent_id']}\n"
    status = json.loads(run("synapse", "status", "dan", "--json").stdout)
    assert status["opened_by"] == []
    refused = run("synapse", "spawn", "dummy:dan", "--task", "x")
    assert refused.returncode == 2
    assert "already addresses another agent" in refused.stderr
    assert run("synapse", "spawn", "nothing", "--task", "x").returncode == 2
    assert "give one with --task" in run("synapse", "spawn", "dummy", "--wait").stderr
    assert set(names(run)) == {"ann", "bob", "cleo", "dan"}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("command", ["spawn dummy:bob", "start dummy:bob", "spawn dummy:bob --task hello"])
def test_an_agent_opens_none_unless_that_is_allowed(run: Run, command: str) -> None:
    said = told(run, "ann", f"synapse {command}")
    ann = names(run)["ann"]["agent_id"]
    assert f"{ann} may not open agents" in said
    assert "synapse config set spawn.by_agents allow" in said
    assert set(names(run)) == {"ann"}
    allow(run)
    told(run, "ann", f"synapse {command}")
    assert set(names(run)) == {"ann", "bob"}
    status = json.loads(run("synapse", "status", "bob", "--json").stdout)
    assert status["opened_by"] == [ann]


@pytest.mark.usefixtures("host")
def test_not_even_if_it_hides_that_it_is_one(run: Run) -> None:
    terminal = """python3 -c 'import pty; pty.spawn(["synapse-tui", "dummy:bob"])'"""
    assert "may not open agents in a terminal" in told(run, "ann", terminal)
    hidden = "env -u SYNAPSE_AGENT_ID -u SYNAPSE_TOKEN SYNAPSE_AGENT_ID= synapse"
    assert "may not open agents" in told(run, "ann", f"{hidden} start dummy:bob")
    assert set(names(run)) == {"ann"}


@pytest.mark.usefixtures("host")
def test_the_task_is_the_agents_and_so_is_the_answer(run: Run) -> None:
    allow(run)
    said = told(run, "ann", "synapse spawn dummy:bob --task 'count the files' --wait")
    assert "count the files" in said
    ann, bob = (str(names(run)[name]["agent_id"]) for name in ("ann", "bob"))
    history = json.loads(run("synapse", "history", "list", "--agent", bob, "--json").stdout)
    assert [each["sender"] for each in history if each["input"] == "count the files"] == [ann]


@pytest.mark.usefixtures("host")
def test_how_many_and_how_deep_has_limits_that_outlive_the_host(run: Run) -> None:
    allow(run, limit=2, depth=1)
    told(run, "ann", "synapse spawn dummy:bob")
    wait_until(lambda: names(run)["bob"]["status"] == "READY", "bob")
    assert "since an agent opened it" in told(run, "bob", "synapse spawn dummy:deep")
    told(run, "ann", "synapse spawn dummy:cleo")
    assert "2 of 2 run" in told(run, "ann", "synapse spawn dummy:dan")
    assert set(names(run)) == {"ann", "bob", "cleo"}
    (listed,) = json.loads(run("synapse-tui", "ls", "--json").stdout)
    upgraded = run("synapse-tui", "upgrade")
    assert upgraded.returncode == 0, upgraded.stderr
    assert "since an agent opened it" in told(run, "bob", "synapse spawn dummy:deep")
    allow(run, limit=3, depth=2)
    told(run, "bob", "synapse spawn dummy:deep")
    ann, bob = (str(names(run)[name]["agent_id"]) for name in ("ann", "bob"))
    assert json.loads(run("synapse", "status", "deep", "--json").stdout)["opened_by"] == [bob, ann]
    run("synapse", "stop", "cleo")
    told(run, "ann", "synapse spawn dummy:again")
    assert set(names(run)) == {"ann", "bob", "deep", "again"}
    assert psutil.pid_exists(listed["pid"])


@pytest.mark.usefixtures("host")
def test_a_person_in_the_pane_of_a_shell_is_a_person(run: Run) -> None:
    command = "synapse start dummy:bob; exec sleep 60"
    assert run("synapse", "start", "shell:pane", "--", "-c", command).returncode == 0
    wait_until(lambda: "bob" in names(run), "what was typed in the shell")
    wait_until(lambda: names(run)["bob"]["status"] == "READY", "bob")
    assert json.loads(run("synapse", "status", "bob", "--json").stdout)["opened_by"] == []


@pytest.mark.usefixtures("host")
def test_an_agent_does_not_allow_itself_to_open_others_but_a_person_in_a_shell_may(
    run: Run, project: Path
) -> None:
    said = told(run, "ann", "synapse config set spawn.by_agents allow")
    assert "agents cannot change the user's own settings" in said
    assert run("synapse", "config", "get", "spawn.by_agents").stdout == "deny\n"
    team = project / ".synapse" / "teams" / "mine.yaml"
    team.parent.mkdir(parents=True, exist_ok=True)
    team.write_text("agents: [{kind: dummy}]\n")
    command = f"synapse config set spawn.by_agents allow; synapse trust {team} --yes; exec sleep 60"
    assert run("synapse", "start", "shell:pane", "--", "-c", command).returncode == 0
    wait_until(lambda: run("synapse", "config", "get", "spawn.by_agents").stdout == "allow\n", "the setting")
    wait_until(lambda: "mine.yaml" not in run("synapse", "trust", "--list").stdout, "the trust")
