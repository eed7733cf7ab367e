"""The whole application with the real agents, offline, against a fake model that logs what was submitted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.tmux_terminal import TmuxTerminal
from tests.lab.fake_model import CLOSED

LOG = os.environ.get("SYNAPSE_LAB_LOG", "")
SLOW = 90.0

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]


def submitted(text: str) -> list[dict[str, object]]:
    """Requests of the model log whose last user text contains a text, without an agent's side requests."""
    path = Path(LOG)
    entries = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [
        entry
        for entry in entries
        if text in str(entry.get("last_user", "")) and entry.get("prompt") and not entry.get("tool_result")
    ]


def states() -> dict[str, str]:
    done = subprocess.run(["synapse", "list", "--json"], capture_output=True, text=True, check=False)
    content = json.loads(done.stdout or "[]")
    agents = content["agents"] if isinstance(content, dict) else content
    return {str(agent["agent_type"]): str(agent["status"]) for agent in agents}


def instructed(agent: str) -> bool:
    """Whether an agent has answered what it is told when its conversation begins."""
    words = ["synapse", "instructions", "show", agent, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    sent = json.loads(done.stdout).get("sent") if done.returncode == 0 else None
    return sent is not None and sent["status"] == "completed"


def wait(condition: Callable[[], bool], what: str, timeout: float = SLOW) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}; states {states()}"
        time.sleep(0.1)


@pytest.fixture
def app(request: pytest.FixtureRequest) -> Iterator[TmuxTerminal]:
    agents: list[str] = getattr(request, "param", ["claude", "codex", "gemini"])
    for agent in agents:
        if shutil.which(agent) is None:
            pytest.skip(f"{agent} is not installed in the lab")
    terminal = TmuxTerminal(["synapse-tui", *agents], cwd=Path.cwd(), environ=dict(os.environ))
    try:
        wait(lambda: all(instructed(agent) for agent in agents), "all agents instructed")
        wait(lambda: all(states().get(agent) == "READY" for agent in agents), "all agents ready")
        yield terminal
    finally:
        print(terminal.screen)
        terminal.close()
        subprocess.run(["synapse-tui", "kill", "--all", "--yes"], capture_output=True, check=False)


def state_is(agent: str, state: str) -> Callable[[], bool]:
    return lambda: states().get(agent) == state


def test_a_mention_reaches_the_other_agent_exactly_once(app: TmuxTerminal) -> None:
    app.keys("C-]", "1")
    app.type("@codex hello from the pane")
    app.wait_for("hello from the pane")
    app.keys("Enter")
    wait(lambda: bool(submitted("hello from the pane")), "the message in the model log")
    wait(state_is("codex", "READY"), "codex to be ready again")
    time.sleep(2)  # a second copy would come now
    assert len(submitted("hello from the pane")) == 1
    assert "@codex" not in app.screen.split("❯")[-1]


def test_a_file_mention_reaches_the_agent(app: TmuxTerminal) -> None:
    app.keys("C-]", "1")
    for character in "@README.md":
        app.type(character)
    app.wait_for("@README.md")
    for word in (" what", " is", " this "):
        time.sleep(0.5)  # Claude looks files up while one types; its popup must be gone before Enter
        app.type(word)
    app.wait_for("@README.md what is this")
    time.sleep(1)
    app.keys("Enter")
    wait(lambda: bool(submitted("what is this")), "the prompt in the model log")
    assert "README.md" in str(submitted("what is this")[0]["last_user"])


def test_a_message_waits_while_half_a_line_is_typed(app: TmuxTerminal) -> None:
    app.keys("C-]", "1")
    app.type("half a line")
    app.wait_for("half a line")
    subprocess.run(["synapse", "send", "claude", "wait your turn", "--no-response"], check=True)
    time.sleep(4)
    assert not submitted("wait your turn")
    assert "half a line" in app.screen
    app.type(" is whole now")
    app.keys("Enter")
    wait(lambda: bool(submitted("half a line is whole now")), "the draft as it was typed")
    wait(lambda: bool(submitted("wait your turn")), "the message after it")
    assert len(submitted("wait your turn")) == 1
    assert all(
        "wait your turn" not in str(entry["last_user"]) for entry in submitted("half a line is whole now")
    )


def test_a_message_waits_while_a_dialog_is_open(app: TmuxTerminal, tmp_path: Path) -> None:
    marker = tmp_path / "made-by-dialog"
    subprocess.run(["synapse", "send", "claude", f"%%run:touch {marker}%%", "--no-response"], check=True)
    wait(state_is("claude", "WAITING"), "the dialog")
    subprocess.run(["synapse", "send", "claude", "after the dialog", "--no-response"], check=True)
    time.sleep(4)
    assert state_is("claude", "WAITING")()
    assert not marker.exists()
    assert not submitted("after the dialog")
    app.keys("C-]", "1")
    app.keys("Escape")
    wait(lambda: bool(submitted("after the dialog")), "the message after the dialog")
    assert not marker.exists()


@pytest.mark.parametrize(
    "app",
    [["claude"], ["codex"], ["gemini"], ["opencode"], ["copilot"]],
    indirect=True,
    ids=lambda value: value[0],
)
def test_priority_5_closes_a_stream_and_the_agent_answers_afterwards(app: TmuxTerminal) -> None:
    (agent,) = states()
    subprocess.run(["synapse", "send", agent, f"count for {agent} %%slow:30%%", "--no-response"], check=True)
    wait(lambda: bool(submitted(f"count for {agent}")), "the slow turn")
    wait(state_is(agent, "PROCESSING"), "the agent at work")
    time.sleep(2)

    def interrupts() -> int:
        return Path(LOG).read_text().count(CLOSED)

    before = interrupts()
    began = time.monotonic()
    subprocess.run(
        ["synapse", "send", agent, f"stop {agent} and say done", "--priority", "5", "--no-response"],
        check=True,
    )
    wait(lambda: interrupts() > before, "the model's stream to be closed", 10)
    seconds = time.monotonic() - began
    wait(lambda: bool(submitted(f"stop {agent} and say done")), "the message after the interrupt")
    wait(state_is(agent, "READY"), "the agent to be ready")
    print(f"{agent}: stream closed {seconds:.2f} s after the start of synapse send")
    assert seconds < 2.5


@pytest.mark.parametrize(
    "app",
    [["claude", "codex"], ["gemini", "opencode"], ["copilot"]],
    indirect=True,
    ids="-".join,
)
def test_agents_live_through_detach_attach_and_resize(app: TmuxTerminal) -> None:
    agents = sorted(states())
    mark = uuid.uuid4().hex[:8]  # the log may be that of an earlier run
    before = {agent: process_of(agent) for agent in agents}
    app.keys("C-]")
    app.wait_for("detach")
    app.keys("d")
    app.wait_for("detached from session")
    for agent in agents:
        subprocess.run(["synapse", "send", agent, f"unseen {mark} by {agent}", "--no-response"], check=True)
        wait(lambda agent=agent: bool(submitted(f"unseen {mark} by {agent}")), "a message while detached")  # type: ignore[misc]
    app.resize(90, 30)
    app.keys("clear; synapse-tui", "Enter")
    app.wait_for("^] menu")
    for columns, lines in ((140, 45), (80, 24), (120, 40)):
        app.resize(columns, lines)
        app.wait(lambda lines=lines: len(app.rows) == lines and "^] menu" in app.rows[-1], "the new size")  # type: ignore[misc]
    for place, agent in enumerate(agents, 1):
        app.keys("C-]", str(place))
        wait(state_is(agent, "READY"), f"{agent} to be ready")
        subprocess.run(["synapse", "send", agent, f"seen {mark} by {agent}", "--no-response"], check=True)
        wait(lambda agent=agent: bool(submitted(f"seen {mark} by {agent}")), "a message after the attach")  # type: ignore[misc]
        assert len(submitted(f"unseen {mark} by {agent}")) == 1
    assert {agent: process_of(agent) for agent in agents} == before


def process_of(agent: str) -> str:
    done = subprocess.run(["synapse", "list", "--json"], capture_output=True, text=True, check=True)
    content = json.loads(done.stdout)
    (found,) = (entry for entry in content if entry["agent_type"] == agent)
    return f"{found['agent_id']} {found['pid']} {found['started_at']}"
