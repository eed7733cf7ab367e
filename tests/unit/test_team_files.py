"""The files of teams: what they become, what is wrong with them, whose they are, how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.agents.teams.files import MOST, Teams, nameable, team_text
from synapse_tui.core.errors import ConfigError, TeamError
from synapse_tui.core.model import AgentSpec
from synapse_tui.system.paths import UserPaths
from tests.profiles import shipped
from tests.worktree_kit import ENVIRON

WHOLE = """\
about: One writes,
  one reviews
layout: columns
agents:
  - kind: claude
    name: writer
    folder: api
    worktree: true
    args: [--model, "x y"]
    role: |
      You write.
      Then you stop.
    task: begin
  - kind: codex
    role_file: roles/reviewer.md
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".synapse" / "teams" / "roles").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return folder


@pytest.fixture
def teams(project: Path, tmp_path: Path) -> Teams:
    return Teams(project, UserPaths(tmp_path / "home"))


def put(project: Path, text: str, name: str = "mine.yaml") -> Path:
    path = project / ".synapse" / "teams" / name
    path.write_text(text)
    return path


def test_what_a_file_becomes(teams: Teams, project: Path) -> None:
    path = put(project, WHOLE)
    role = put(project, "You review.\n", "roles/reviewer.md")
    team = teams.find("mine")
    writer = AgentSpec(
        "claude",
        "writer",
        project / "api",
        ("--model", "x y"),
        prompt="begin",
        worktree=True,
        role="You write.\nThen you stop.",
    )
    assert team.agents == (writer, AgentSpec("codex", cwd=project, role="You review."))
    assert (team.about, team.layout, team.origin) == ("One writes, one reviews", "columns", "project")
    assert [each.path for each in team.untrusted] == [path, role]


def test_a_change_of_any_of_its_files_asks_again(teams: Teams, project: Path) -> None:
    path = put(project, WHOLE)
    role = put(project, "You review.\n", "roles/reviewer.md")
    teams.trust(teams.find("mine"))
    assert not teams.find("mine").untrusted
    role.write_text("You delete.\n")
    (changed,) = teams.find("mine").untrusted
    assert (changed.path, changed.content, changed.changed) == (role, "You delete.\n", True)
    path.write_text(WHOLE.replace("begin", "rm -rf ~"))
    assert len(teams.find("mine").untrusted) == 2


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("agents:\n  - kind: claude\n    nmae: x\n", 3, "unknown key 'agents[0].nmae': did you mean 'name'?"),
        ("agents:\n  - name: x\n", 2, "an agent needs a 'kind', such as claude"),
        ("layout: colums\nagents:\n  - kind: claude\n", 1, "'layout' must be 'columns' perhaps"),
        ("agents:\n- {kind: a, name: x}\n- {kind: b, name: X}\n", 3, "already addresses another agent"),
        ("agents:\n- {kind: a, name: all}\n", 2, "it has a meaning in addresses"),
        ("agents:\n- {kind: a, worktree: maybe}\n", 2, "must be true or false"),
        ("agents:\n- {kind: a, role: x, role_file: y.md}\n", 2, "cannot be given beside 'role'"),
        ("agents:\n- {kind: a, role_file: ../../x}\n", 2, "must be a file beside the team's, or below"),
        ("agents:\n- {kind: a, role_file: /etc/passwd}\n", 2, "must be a file beside the team's, or below"),
        ("agents:\n- {kind: a, role_file: none.md}\n", 2, "cannot be read"),
        ("agents:\n- {kind: a, command: [rm]}\n", 2, "unknown key 'agents[0].command'"),
        ("agents: []\n", 1, f"must name 1 to {MOST} agents"),
        ("about: x\n", 1, f"must name 1 to {MOST} agents"),
        ("agents: claude\n", 1, "must be a list of mappings"),
        ("agents: [claude]\n", 1, "'agents[0]' must be a mapping"),
        ("- claude\n", 1, "the file must hold one mapping"),
        ("agents: [\n", 2, "invalid YAML"),
        ("", 0, "the file must hold one mapping"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    teams: Teams, project: Path, text: str, line: int, said: str
) -> None:
    path = put(project, text)
    with pytest.raises(TeamError) as raised:
        teams.find("mine")
    assert raised.value.message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert said in raised.value.message
    assert "nothing was started" in raised.value.hint


def test_all_faults_are_said_in_their_order(teams: Teams, project: Path) -> None:
    path = put(project, "agents:\n- {kind: a, x: 1}\n- just text\n- {name: b}\nlayout: none\n")
    with pytest.raises(TeamError) as raised:
        teams.find("mine")
    assert [line.partition(": ")[0] for line in raised.value.message.splitlines()] == [
        f"{path}:{line}" for line in (2, 3, 4, 5)
    ]


def test_the_projects_come_before_ones_own_and_those_before_the_examples(
    teams: Teams, project: Path, tmp_path: Path
) -> None:
    assert teams.names() == ["pair", "review", "swarm"]
    assert teams.find("review").origin == "shipped"
    teams.save("review", "agents: [{kind: dummy}]\n", user=True)
    own = teams.find("review")
    assert (own.origin, own.path.parent) == ("user", tmp_path / "home" / ".synapse" / "teams")
    assert not own.untrusted
    put(project, "agents: [{kind: shell}]\n", "review.yml")
    assert teams.find("review").agents[0].profile == "shell"
    assert teams.find("review").untrusted
    put(project, "", ".hidden.yaml")
    put(project, "", "notes.txt")
    assert teams.names() == ["pair", "review", "swarm"]


@pytest.mark.parametrize("name", ["../review", "a/b", "", ".x", "-x", "a b"])
def test_a_name_leads_to_no_other_folder(teams: Teams, name: str) -> None:
    with pytest.raises(ConfigError, match="no name of a team"):
        teams.find(name)


def test_an_unknown_one_names_those_there_are(teams: Teams) -> None:
    with pytest.raises(ConfigError, match="there are: pair, review, swarm"):
        teams.find("reviw")


@pytest.mark.parametrize("name", ["pair", "review", "swarm"])
def test_the_examples_are_valid(teams: Teams, name: str) -> None:
    team = teams.find(name)
    assert team.about
    assert {spec.profile for spec in team.agents} <= {*shipped().profiles}
    assert all(spec.role for spec in team.agents)
    assert not team.untrusted


def test_what_is_written_is_read_again(teams: Teams, project: Path) -> None:
    agents = [
        AgentSpec("claude", "翻訳", project, role="日本語: 'x'\n  second: \"line\"\n\n# third"),
        AgentSpec("codex", cwd=project / "api", args=("--flag", "true", "", "a: b"), worktree=True),
        AgentSpec("gemini", "yes", Path("/elsewhere"), role="- no list\ttab "),
    ]
    path = teams.save("mine", team_text(agents, "grid", project, ENVIRON))
    team = teams.find("mine")
    assert list(team.agents) == [
        *agents[:2],
        AgentSpec("gemini", "yes", Path("/elsewhere"), role="- no list\ttab"),
    ]
    assert team.layout == "grid"
    assert path == project / ".synapse" / "teams" / "mine.yaml"
    teams.save("other", team_text(agents[:1], "custom", project, ENVIRON))
    assert teams.find("other").layout == ""


def test_nothing_is_overwritten_unasked_or_written_through_a_link(
    teams: Teams, project: Path, tmp_path: Path
) -> None:
    path = put(project, "agents: [{kind: shell}]\n", "mine.yml")
    with pytest.raises(ConfigError, match="exists already"):
        teams.save("mine", "agents: [{kind: dummy}]\n")
    assert teams.find("mine").agents[0].profile == "shell"
    assert teams.save("mine", "agents: [{kind: dummy}]\n", replace=True) == path
    assert teams.find("mine").agents[0].profile == "dummy"
    folder = project / ".synapse" / "teams"
    folder.rename(tmp_path / "aside")
    (tmp_path / "target").mkdir()
    folder.symlink_to(tmp_path / "target")
    with pytest.raises(ConfigError, match="is a link"):
        teams.save("mine", "agents: [{kind: dummy}]\n")
    assert not list((tmp_path / "target").iterdir())


def test_programs_without_a_profile_are_in_no_team() -> None:
    named, program = AgentSpec("claude", "ann"), AgentSpec("bot", "bob", command=("./bot",))
    assert nameable([program, named]) == [named]
    with pytest.raises(ConfigError, match="no agent runs that a team can name"):
        nameable([program])
