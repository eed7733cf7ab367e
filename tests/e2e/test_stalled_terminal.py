"""A terminal that stops reading stops neither the agents nor HTTP."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

Log = Callable[..., list[dict[str, object]]]


def answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        url = f"http://127.0.0.1:{port}/status"
        with urllib.request.urlopen(url, timeout=2) as response:
            return json.load(response)["status"] in ("READY", "PROCESSING")
    return False


@pytest.fixture(params=["session", "foreground"])
def unread_terminal(request: pytest.FixtureRequest, environ: dict[str, str], project: Path) -> Iterator[int]:
    """Process id of the application on a terminal that nobody reads from."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(project)
        words = [
            "synapse-tui",
            *(["--foreground"] if request.param == "foreground" else []),
            "dummy",
            "dummy",
        ]
        os.execvpe("synapse-tui", words, environ | {"TERM": "xterm-256color"})
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 180, 0, 0))
    yield pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, "the application to end although nobody reads")
    os.close(master)
    subprocess.run(
        ["synapse-tui", "kill", "--all", "--yes"], env=environ, cwd=project, check=True, capture_output=True
    )


def fill(pid: int) -> None:
    """Fill what the terminal of a process holds, so that the next write to it waits for a reader."""
    descriptor = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(descriptor, b" " * 65536):
            pass
    os.close(descriptor)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds the terminal in /proc")
@pytest.mark.parametrize("unread_terminal", ["session"], indirect=True)
def test_the_client_ends_although_its_host_does_not_answer_either(unread_terminal: int, home: Path) -> None:
    registry = home / ".a2a" / "registry"
    wait_until(lambda: len(list(registry.glob("synapse-*.json"))) == 2, "two records")
    agent = json.loads(next(registry.glob("synapse-*.json")).read_text())["pid"]
    host = psutil.Process(agent).ppid()
    os.kill(host, signal.SIGSTOP)
    try:
        fill(unread_terminal)
        os.kill(unread_terminal, signal.SIGTERM)
        ended = wait_until(lambda: os.waitid(os.P_PID, unread_terminal, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        assert (ended.si_code, ended.si_status) == (os.CLD_EXITED, 10)
    finally:
        os.kill(host, signal.SIGCONT)


def test_agents_and_http_go_on(
    unread_terminal: int, home: Path, environ: dict[str, str], project: Path, dummy_log: Log
) -> None:
    registry = home / ".a2a" / "registry"
    wait_until(lambda: len(list(registry.glob("synapse-*.json"))) == 2, "two records")
    first, second = sorted(int(path.stem.rpartition("-")[2]) for path in registry.glob("synapse-*.json"))
    wait_until(lambda: answers(first) and answers(second), "both servers")
    for number in range(3):
        text = f"message {number} %%flood:1%%"
        subprocess.run(
            ["synapse", "send", f"synapse-dummy-{first}", text, "--no-response"],
            env=environ,
            check=True,
            cwd=project,
        )
    wait_until(lambda: len(dummy_log("turn-end")) == 3, "three turns of an agent that floods")
    wait_until(lambda: answers(second), "the other agent's server")
