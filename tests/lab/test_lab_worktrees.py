"""Five real agents in worktrees of a repository: two conflict, and a person merges all in the application."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.tmux_terminal import TmuxTerminal
from tests.lab.host_kit import need_agents
from tests.lab.test_lab_app import instructed, states, submitted, wait

AGENTS = ("claude", "codex", "gemini", "opencode", "copilot")
START = 240.0  # seconds until five have loaded
QUIET = 2.0  # seconds that a dialog must be there before it takes a key
PICTURES = os.environ.get("SYNAPSE_LAB_PICTURES", "")
"""Folder for what the screen shows at each step."""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1200),
]


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def listed() -> dict[str, dict[str, object]]:
    words = ["synapse", "worktree", "list", "--json"]
    found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {str(each["name"]): each for each in found}


class Person:
    """Someone at the keyboard, who gives each agent its task and answers what it asks."""

    def __init__(self, app: TmuxTerminal, project: Path) -> None:
        self.app = app
        self.project = project
        self._pictures = 0

    def tree(self, agent: str) -> Path:
        return self.project.with_name(f"{self.project.name}.worktrees") / agent

    def picture(self, name: str) -> None:
        if PICTURES:
            self._pictures += 1
            Path(PICTURES, f"{self._pictures:02}-{name}.txt").write_text(self.app.ansi)

    def pane(self, agent: str) -> None:
        self.app.keys("C-]", str(AGENTS.index(agent) + 1))
        self.app.wait_for(f"━ {AGENTS.index(agent) + 1} {agent}")

    def allow_until(self, done: Callable[[], bool], what: str, *agents: str, timeout: float = 120.0) -> None:
        """Allow what agents ask, until something is done."""
        deadline = time.monotonic() + timeout
        while not done():
            assert time.monotonic() < deadline, f"waited for {what}; {states()}\n{self.app.screen}"
            for agent in agents:
                if states().get(agent) == "WAITING":
                    self.pane(agent)
                    time.sleep(QUIET)
                    if states().get(agent) == "WAITING":
                        self.picture(f"asks-{agent}")
                        refuses = "❯ No" in self.app.screen  # what Claude suggests where it cannot check
                        self.app.keys(*(["Down"] if refuses else []), "Enter")
            time.sleep(0.3)

    def give(self, agent: str, task: str, done: Callable[[], bool]) -> None:
        subprocess.run(["synapse", "send", agent, task, "--no-response"], check=True)
        self.allow_until(done, f"the work of {agent}", agent)
        self.allow_until(lambda: states().get(agent) == "READY", f"{agent} to rest", agent)

    def look(self, agent: str) -> None:
        self.pane(agent)
        self.app.keys("C-]", "g")
        self.app.wait_for("Changes in the folder of", "→ ", timeout=30)

    def leave(self) -> None:
        self.app.keys("Escape")
        self.app.wait_gone("Changes in the folder of")

    def merge(self, agent: str, outcome: str) -> None:
        self.look(agent)
        self.app.keys("m")
        self.app.wait_for("As one commit")
        self.picture(f"merge-{agent}")
        self.app.keys("Enter")
        self.app.wait_for(outcome, timeout=30)
        self.picture(f"merged-{agent}")


@pytest.fixture
def person() -> Iterator[Person]:
    need_agents(*AGENTS)
    project = Path.cwd()
    for key, value in (("user.name", "lab"), ("user.email", "lab@example.invalid")):
        git(project, "config", key, value)  # Gemini's shell does not read the user's own configuration
    words = ["synapse-tui", *AGENTS, "--worktree"]
    app = TmuxTerminal(words, cwd=project, environ=dict(os.environ), columns=140, lines=45)
    try:
        person = Person(app, project)
        wait(lambda: set(states()) == set(AGENTS), "all agents", START)
        person.allow_until(
            lambda: all(states().get(agent) == "READY" and instructed(agent) for agent in AGENTS),
            "all agents ready and instructed",
            *AGENTS,
            timeout=START,
        )
        yield person
    finally:
        print(app.screen)
        app.close()
        subprocess.run(["synapse-tui", "kill", "--all", "--yes"], capture_output=True, check=False)


def test_five_agents_two_of_which_conflict_are_merged(person: Person) -> None:
    project, app = person.project, person.app
    branch = git(project, "branch", "--show-current").strip()
    before = git(project, "rev-parse", "HEAD")
    assert {name: tree["path"] for name, tree in listed().items()} == {
        name: str(person.tree(name)) for name in AGENTS
    }
    person.picture("ready")

    # Each writes by tools of its own; Codex has only its shell where it does not know the model
    mark = uuid.uuid4().hex[:8]
    for agent in ("claude", "gemini", "copilot"):
        made = person.tree(agent) / f"{agent}.txt"
        person.give(agent, f"%%write:{made.name}:{agent} {mark}%%", made.exists)
    lines = ("*** Begin Patch", "*** Update File: README.md", "@@", "-# test project", "+# codex project")
    patch = "\n".join((*lines, "*** End Patch"))
    changed = person.tree("codex") / "README.md"
    person.give(
        "codex", f"%%run:apply_patch <<'EOF'\n{patch}\nEOF%%", lambda: "codex project" in changed.read_text()
    )
    other = person.tree("opencode") / "README.md"
    person.give(
        "opencode",
        "%%run:sed -i 's/test project/opencode project/' README.md%%",
        lambda: "opencode project" in other.read_text(),
    )
    assert not git(project, "status", "--porcelain", "--untracked-files=all").replace("?? .synapse", "")

    # Those whose sandbox lets them commit do; opencode leaves it to the person, like codex, which cannot
    for agent in ("claude", "gemini", "copilot"):
        person.give(
            agent,
            f"%%run:git add -A && git commit -qm 'Work of {agent}'%%",
            lambda agent=agent: f"Work of {agent}" in git(person.tree(agent), "log", "-1", "--format=%s"),  # type: ignore[misc]
        )

    # Before anything is merged, the command line and the view of changes name both, and the file
    found = listed()
    assert found["codex"]["conflicts"] == [{"with": "opencode", "files": ["README.md"]}]
    assert found["opencode"]["conflicts"] == [{"with": "codex", "files": ["README.md"]}]
    assert not any(found[agent]["conflicts"] for agent in ("claude", "gemini", "copilot"))
    for agent, rival in (("codex", "opencode"), ("opencode", "codex")):
        person.look(agent)
        app.wait_for(f"will conflict with {rival} in README.md")
        person.picture(f"forecast-{agent}")
        person.leave()
    assert git(project, "rev-parse", "HEAD") == before

    # The person commits what codex cannot, and merges all
    person.look("codex")
    app.keys("c")
    app.wait_for("What is uncommitted is committed as")
    app.keys("Enter")
    app.wait_for("the work of codex is committed", timeout=30)
    person.picture("committed-codex")
    for agent in ("claude", "codex", "gemini", "copilot"):
        person.merge(agent, f"{branch} has the work of {agent} now")
    person.merge("opencode", "opencode was asked to resolve conflicts in README.md")
    wait(lambda: bool(submitted("conflicts in README.md. Resolve")), "the message in the model's log")
    wait(lambda: states().get("opencode") == "READY", "opencode to rest")
    person.picture("asked-opencode")
    person.give(
        "opencode",
        "%%run:echo '# codex and opencode project' > README.md && git commit -qam 'Both'%%",
        lambda: git(person.tree("opencode"), "log", "-1", "--format=%s") == "Both\n",
    )
    person.merge("opencode", f"{branch} has the work of opencode now")

    assert (project / "README.md").read_text() == "# codex and opencode project\n"
    for agent in ("claude", "gemini", "copilot"):
        assert (project / f"{agent}.txt").read_text().strip() == f"{agent} {mark}"
    assert git(project, "branch", "--show-current").strip() == branch
    assert "<<<<<<<" not in git(project, "show", "HEAD")
