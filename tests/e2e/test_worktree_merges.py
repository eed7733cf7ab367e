"""Five agents in worktrees of one repository: two conflict, and a person merges all in the application."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.conftest import Launch, Ready
from tests.e2e.tmux_terminal import TmuxTerminal
from tests.waiting import wait_until
from tests.worktree_kit import commit, git, make_repository

TASKS = {
    "alice": "sed -i s/one/ALICE/ a.py",
    "bob": "sed -i s/one/BOB/ a.py && git commit -qam 'Work of bob'",
    "carol": "sed -i s/three/CAROL/ b.py",
    "dave": "mkdir docs && echo dave > docs/new.md",
    "erin": "git rm -q old.py && git commit -qm 'Work of erin'",
}


def test_five_agents_two_of_which_conflict_are_merged(launch: Launch, agents: Ready, project: Path) -> None:
    make_repository(project)
    commit(project, old_py="old\n")
    terminal = launch(*(f"dummy:{name}" for name in TASKS), "--worktree", columns=140, lines=40)
    agents(terminal, len(TASKS))
    trees = {name: project.with_name(f"{project.name}.worktrees") / name for name in TASKS}
    before = git(project, "rev-parse", "main")
    for number, (name, command) in enumerate(TASKS.items(), 1):
        give(terminal, number, name, f"{command}; touch done.log")
    for name, tree in trees.items():
        wait_until((tree / "done.log").exists, f"the work of {name}")

    # Before anything is merged, both are named, with the file
    for number, other in ((1, "bob"), (2, "alice")):
        look(terminal, number)
        terminal.wait_for(f"will conflict with {other} in a.py")
        terminal.keys("Escape")
        terminal.wait_gone("Changes in the folder of")
    assert git(project, "rev-parse", "main") == before

    for number, name in enumerate(TASKS, 1):
        if name != "bob":
            merge(terminal, number, f"main has the work of {name} now")
    merge(terminal, 2, "bob was asked to resolve conflicts in a.py")
    terminal.keys("C-]", "2")
    terminal.wait_for("conflicts in a.py. Resolve")
    give(terminal, 2, "bob", "printf 'ALICE and BOB\\ntwo\\nthree\\n' > a.py && git commit -qam both")
    wait_until(lambda: "both" in git(trees["bob"], "log", "-1", "--format=%s"), "the resolution")
    merge(terminal, 2, "main has the work of bob now")

    assert (project / "a.py").read_text() == "ALICE and BOB\ntwo\nthree\n"
    assert (project / "b.py").read_text() == "one\ntwo\nCAROL\n"
    assert (project / "docs" / "new.md").read_text() == "dave\n"
    assert not (project / "old.py").exists()
    assert not git(project, "status", "--porcelain", "--", "a.py", "b.py", "docs")
    assert "main" in terminal.screen


def give(terminal: TmuxTerminal, number: int, name: str, command: str) -> None:
    """Give an agent a task in its pane."""
    terminal.keys("C-]", str(number))
    terminal.wait_for(f"━ {number} {name}")
    terminal.type(f"%%do:{command}%%")
    terminal.keys("Enter")


def look(terminal: TmuxTerminal, number: int) -> None:
    terminal.keys("C-]", str(number))
    terminal.keys("C-]", "g")
    terminal.wait_for("Changes in the folder of", "→ main")


def merge(terminal: TmuxTerminal, number: int, outcome: str) -> None:
    look(terminal, number)
    terminal.keys("m")
    terminal.wait_for("As one commit")
    terminal.keys("Enter")
    terminal.wait_for(outcome)
