"""Sessions in trouble: hosts that are stuck, clients that talk nonsense, agents that exit at once."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import call
from tests.e2e.conftest import Launch, Ready, Run
from tests.e2e.test_sessions import alive, host_of, programs_of, sessions
from tests.e2e.tmux_terminal import TmuxTerminal
from tests.waiting import wait_until


def test_what_an_agent_showed_when_it_exited_is_still_to_be_seen(launch: Launch, run: Run) -> None:
    terminal = launch(command=("bash", "--norc"))
    started = run("synapse", "start", "dummy", "--", "--no-such-option")
    assert started.returncode == 0, started.stderr
    terminal.wait(lambda: "ended" in run("synapse-tui", "ls").stdout, "the end of the agent")
    assert len(sessions(run)) == 1, "looking ends nothing"
    terminal.keys("synapse-tui", "Enter")
    terminal.wait_for("--no-such-option", "exited")


def test_a_host_that_is_stuck_is_told(
    run: Run, environ: dict[str, str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("synapse", "start", "dummy").returncode == 0
    host = host_of(run)
    monkeypatch.setattr("synapse_tui.sessions.client.START_SECONDS", 1.0)
    host.send_signal(signal.SIGSTOP)
    try:
        started = call("synapse", "start", "dummy", environ=environ, folder=project)
        assert (started.code, started.out) == (10, "")
        assert "does not answer" in started.err
        assert "(does not answer)" in run("synapse-tui", "ls").stdout
    finally:
        host.send_signal(signal.SIGCONT)
    assert len(sessions(run)) == 1
    assert run("synapse-tui", "kill").returncode == 0


def test_a_client_reports_soon_that_a_stopped_host_is_silent(run: Run, launch: Launch) -> None:
    assert run("synapse", "start", "dummy").returncode == 0
    host = host_of(run)
    host.send_signal(signal.SIGSTOP)
    try:
        terminal = launch(command=("bash", "--norc"))
        terminal.keys("synapse-tui", "Enter")
        terminal.wait_for("does not answer: it is starting, busy or stopped")
        terminal.keys("C-c")
        terminal.keys("echo rc=$?", "Enter")
        terminal.wait_for("rc=130")
    finally:
        host.send_signal(signal.SIGCONT)
    assert len(sessions(run)) == 1


def unread(terminal: TmuxTerminal) -> int:
    """Bytes that were typed and that no program has read yet."""
    descriptor = os.open(terminal.flag("pane_tty"), os.O_RDONLY | os.O_NOCTTY)
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("leaving", [("C-]", "d"), ("C-c",)])
def test_a_client_whose_host_is_stopped_says_so_and_is_left_by_its_keys(
    run: Run, launch: Launch, leaving: tuple[str, ...]
) -> None:
    terminal = launch(command=("bash", "--norc"))
    terminal.keys("synapse-tui dummy", "Enter")
    terminal.wait_for("❯")
    host = host_of(run)
    host.send_signal(signal.SIGSTOP)
    try:
        terminal.keys("h", "i")
        terminal.wait_for("does not answer; leave it: ^] d, Ctrl+C")
        terminal.keys(*leaving)
        terminal.wait_for("the host does not answer")
        terminal.keys("echo rc=$?", "Enter")
        terminal.wait_for("rc=10")
    finally:
        host.send_signal(signal.SIGCONT)
    assert len(sessions(run)) == 1


def test_a_host_that_answers_again_draws_again_and_has_lost_no_key(
    run: Run, launch: Launch, agents: Ready, dummy_log: Callable[..., list[dict[str, object]]]
) -> None:
    terminal = launch("dummy")
    agents(terminal, 1)
    host = host_of(run)
    host.send_signal(signal.SIGSTOP)
    try:
        terminal.keys("o", "n")
        terminal.wait_for("does not answer; leave it")
        terminal.keys("e")
        wait_until(lambda: not unread(terminal), "the client to read it")
    finally:
        host.send_signal(signal.SIGCONT)
    terminal.wait(lambda: "does not answer" not in terminal.screen, "the application to be drawn again")
    terminal.wait_for("❯ one")
    terminal.keys("Enter")
    wait_until(lambda: [each["text"] for each in dummy_log("submit")] == ["one"], "the prompt")


def test_a_host_that_is_ending_is_not_listed_and_the_next_waits_for_it(
    launch: Launch, agents: Ready, run: Run, runtime: Path
) -> None:
    terminal = launch("dummy", "--", "--stubborn")
    agents(terminal, 1)
    host = host_of(run)
    programs = programs_of(run)
    terminal.keys("C-]", "q")
    terminal.wait_for("Leave synapse-tui?")
    terminal.keys("y")
    terminal.wait(lambda: sessions(run) == [], "the session to be listed no more")
    assert alive(programs), "its agents have not ended yet"
    assert list(runtime.glob("synapse-tui/*.sock")), "nobody else may begin"
    assert "all agents are stopped" not in terminal.screen
    assert run("synapse", "start", "dummy").returncode == 0
    assert not alive(programs)
    assert host_of(run).pid != host.pid
    terminal.wait_for("all agents are stopped")


def test_only_its_agents_keep_a_sessions_project_in_use(run: Run, project: Path) -> None:
    started = run("synapse", "start", "dummy")
    assert started.returncode == 0, started.stderr
    host = host_of(run)
    children = host.children(recursive=True)
    processes = [host, *(child for child in children if "synapse_tui.dummy" not in child.cmdline())]
    assert len(processes) == len(children), "all but the agent"
    assert [process.cwd() for process in processes] == ["/"] * len(processes)
    held = [file.path for process in processes for file in process.open_files()]
    assert not [path for path in held if Path(path).is_relative_to(project)], "it could not be unmounted"
    assert run("synapse-tui", "kill").returncode == 0


def test_nonsense_is_refused(run: Run, runtime: Path) -> None:
    assert run("synapse", "start", "dummy").returncode == 0
    (path,) = runtime.glob("synapse-tui/*.sock")
    for nonsense in (b"[" * 100_000 + b"\n", b"\x00\xff\n", b"[1]\n"):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(str(path))
            client.sendall(nonsense)
            assert b"do not understand each other" in client.recv(65536)
    assert run("synapse-tui", "kill").returncode == 0


def test_more_clients_than_descriptors(
    environ: dict[str, str], project: Path, run: Run, runtime: Path
) -> None:
    done = subprocess.run(
        ["bash", "-c", "ulimit -n 100 && synapse start dummy"],
        env=environ,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    (path,) = runtime.glob("synapse-tui/*.sock")
    (log,) = Path(environ["HOME"]).glob(".synapse/logs/host-*.log")
    code = (  # some are accepted, the others wait for that
        "import socket, sys, time\n"
        "clients = [socket.socket(socket.AF_UNIX) for _ in range(110)]\n"
        "for client in clients: client.connect(sys.argv[1])\n"
        "print('connected', flush=True)\n"
        "time.sleep(1.5)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    assert len(sessions(run)) == 1
    assert log.stat().st_size < 20_000
    assert run("synapse-tui", "kill").returncode == 0


def test_agents_have_the_umask_of_the_shell_that_started_the_session(
    environ: dict[str, str], project: Path, run: Run
) -> None:
    """The host keeps its own files private; what agents create is as in a terminal."""
    made = project / "made"
    script = f"umask 027 && synapse start -- sh -c 'umask > {made}.new && mv {made}.new {made} && sleep 600'"
    subprocess.run(
        ["bash", "-c", script], env=environ, cwd=project, check=True, capture_output=True, timeout=60
    )
    wait_until(made.exists, "the file")
    assert made.read_text().strip() == "0027"
    assert made.stat().st_mode & 0o777 == 0o640
    (log,) = Path(environ["HOME"]).glob(".synapse/logs/host-*.log")
    assert log.stat().st_mode & 0o777 == 0o600
    assert run("synapse-tui", "kill").returncode == 0
