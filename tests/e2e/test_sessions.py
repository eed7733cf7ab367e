"""Sessions: agents outlive their terminals, and every terminal is given back clean."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import Launch, Ready
from tests.e2e.test_signals import assert_clean
from tests.e2e.tmux_terminal import TmuxTerminal

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(environ: dict[str, str], project: Path) -> Run:
    """Runs a command line beside the application."""

    def call(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env=environ, cwd=cwd or project, capture_output=True, text=True, check=False, timeout=60
        )

    return call


def sessions(run: Run) -> list[dict[str, object]]:
    done = run("synapse-tui", "ls", "--json")
    assert done.returncode == 0, done.stderr
    listed: list[dict[str, object]] = json.loads(done.stdout)
    return listed


def leader(terminal: TmuxTerminal, key: str) -> None:
    terminal.keys("C-]")
    terminal.wait_for("detach")
    terminal.keys(key)


def detach(terminal: TmuxTerminal) -> None:
    leader(terminal, "d")
    terminal.wait_for("[detached from session")
    assert_clean(terminal)


def test_detach_and_attach_show_the_same_screens(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch()
    first, second = agents(terminal, 2)
    terminal.type("日本語 stays")
    terminal.wait_for("日本語 stays")
    terminal.keys("F5")
    terminal.wait_for("layout: columns")
    before = terminal.rows
    detach(terminal)
    (session,) = sessions(run)
    assert session["attached"] is False
    assert run("synapse", "send", second, "hello there", "--response").returncode == 0
    terminal.keys("clear; synapse-tui", "Enter")
    terminal.wait_for("日本語 stays", f"1 {first}")
    assert terminal.rows[0] == before[0]
    assert sessions(run)[0]["attached"] is True


def test_another_size_and_kind_of_terminal(launch: Launch, agents: Ready) -> None:
    terminal = launch()
    agents(terminal, 2)
    detach(terminal)
    small = launch(columns=80, lines=24, term="screen")
    small.wait_for("❯")
    assert len(small.rows) == 24
    assert "38;2;" not in small.ansi, "a terminal without true colour gets none"
    small.resize(100, 30)
    small.wait(lambda: len(small.rows) == 30 and "F10" in small.rows[-1], "the new size")


def test_the_newest_client_takes_over_and_the_other_is_told(launch: Launch, agents: Ready) -> None:
    first = launch()
    agents(first, 2)
    second = launch()
    second.wait_for("❯")
    first.wait_for("taken over by another terminal")
    assert_clean(first)
    second.type("typed here")
    second.wait_for("typed here")


def test_a_second_command_opens_its_agent_in_the_session_with_its_own_environment(
    launch: Launch, agents: Ready, project: Path, environ: dict[str, str]
) -> None:
    terminal = launch("dummy:one")
    agents(terminal, 1)
    folder = project / "below"
    folder.mkdir()
    second = launch(
        "-c", "cd below && exec synapse-tui dummy:two", command=("bash",), MARKER_FOR_TEST="second"
    )
    second.wait_for("2 two")
    terminal.wait_for("taken over")
    agents(second, 2)
    processes = [
        process
        for process in psutil.process_iter()
        if process.name().startswith("python") and "synapse_tui.dummy" in " ".join(process.cmdline())
    ]
    ours = [process for process in processes if process.environ().get("HOME") == environ["HOME"]]
    marked = [process for process in ours if process.environ().get("MARKER_FOR_TEST") == "second"]
    assert len(ours) == 2
    assert [process.cwd() for process in marked] == [str(folder)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_client_that_is_killed_leaves_agents_and_a_clean_terminal(
    launch: Launch, agents: Ready, run: Run, number: signal.Signals
) -> None:
    terminal = launch()
    agents(terminal, 2)
    terminal.kill_command(number)
    assert_clean(terminal)
    (session,) = sessions(run)
    assert [agent["state"] for agent in session["agents"]] == ["READY", "READY"]  # type: ignore[attr-defined]
    assert session["attached"] is False


def test_quit_stops_everything(launch: Launch, agents: Ready, run: Run, home: Path) -> None:
    terminal = launch()
    agents(terminal, 2)
    (session,) = sessions(run)
    leader(terminal, "q")
    terminal.wait_for("Leave synapse-tui?")
    terminal.keys("y")
    terminal.wait_for("all agents are stopped")
    assert_clean(terminal)
    assert sessions(run) == []
    terminal.wait(lambda: not psutil.pid_exists(int(str(session["pid"]))), "the host to end")
    assert not list((home / ".a2a" / "registry").glob("synapse-*.json"))


def test_kill_names_and_ends_a_session(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch()
    agents(terminal, 2)
    assert run("synapse-tui", "kill", "no-such").returncode == 10
    done = run("synapse-tui", "kill")
    assert done.returncode == 0, done.stderr
    terminal.wait_for("all agents are stopped")
    assert_clean(terminal)
    again = run("synapse-tui", "kill")
    assert again.returncode == 10
    assert "no session" in again.stderr


def test_further_sessions_have_names(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch("dummy")
    agents(terminal, 1)
    other = launch("dummy", "--new", "review")
    other.wait_for("❯")
    assert [session["session"] for session in sessions(run)] == ["project", "review"]
    detach(other)
    other.keys("clear; synapse-tui attach review", "Enter")
    other.wait_for("❯")
    refused = run("synapse-tui", "dummy", "--new", "bad name")
    assert refused.returncode in (2, 8)


def test_a_host_that_is_killed_leaves_a_clean_terminal_and_the_next_start_works(
    launch: Launch, agents: Ready, run: Run
) -> None:
    terminal = launch()
    agents(terminal, 2)
    (session,) = sessions(run)
    host = psutil.Process(int(str(session["pid"])))
    children = host.children(recursive=True)
    host.kill()
    terminal.wait_for("the host of session 'project' ended")
    assert_clean(terminal)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert sessions(run) == []
    terminal.keys("clear; synapse-tui dummy", "Enter")
    terminal.wait_for("❯")


def test_starts_at_the_same_moment_make_one_session(launch: Launch, run: Run) -> None:
    terminals = [launch("dummy") for _ in range(3)]
    terminals[0].wait(lambda: [len(s["agents"]) for s in sessions(run)] == [3], "one session of three agents")  # type: ignore[arg-type]
    terminals[0].wait(
        lambda: sum("taken over" in terminal.screen for terminal in terminals) == 2, "two told clients"
    )


def test_the_socket_is_ours_alone(launch: Launch, agents: Ready, run: Run) -> None:
    terminal = launch()
    agents(terminal, 2)
    (session,) = sessions(run)
    path = Path(str(session["socket"]))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(path)) < 104


def test_errors_of_the_command_line_are_told_before_the_screen_is_taken(launch: Launch) -> None:
    terminal = launch("no-such-agent")
    terminal.wait_for("there is no profile 'no-such-agent'")
    assert_clean(terminal)
    assert not re.search(r"Traceback", terminal.screen)
