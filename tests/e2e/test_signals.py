"""However an application in the foreground ends, the terminal is clean and nobody is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
from functools import partial
from pathlib import Path

import psutil
import pytest

from synapse_tui.system.process_times import process_start
from tests.e2e.conftest import Launch, Ready, wait_for_end
from tests.e2e.tmux_terminal import TmuxTerminal


@pytest.fixture
def launch(launch: Launch) -> Launch:
    return partial(launch, command=("synapse-tui", "--foreground"))


def grow(terminal: TmuxTerminal) -> None:
    """Make the window larger: tmux then leaves rows of the alternate screen unless they are erased."""
    terminal.resize(120, 40)
    terminal.wait(lambda: len(max(terminal.rows, key=len)) > 100, "the larger size")


def descendants(pid: int) -> list[psutil.Process]:
    """All processes below one, with the start time that tells them from later ones."""
    return psutil.Process(pid).children(recursive=True)


def assert_clean(terminal: TmuxTerminal) -> None:
    """The shell is back, and a command typed there echoes and prints as in a fresh terminal."""
    terminal.wait(lambda: terminal.command_pid is None, "the application to end")
    terminal.wait(lambda: terminal.flag("alternate_on") == "0", "the main screen")
    for flag in ("mouse_any_flag", "keypad_cursor_flag", "keypad_flag"):
        assert terminal.flag(flag) == "0", flag
    assert terminal.flag("cursor_flag") == "1"
    assert terminal.flag("wrap_flag") == "1"
    terminal.keys("stty -a", "Enter")
    terminal.wait_for("isig icanon iexten echo ", "opost ")
    assert "Traceback" not in terminal.screen
    assert "❯" not in terminal.screen, "no row of an agent is left"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(launch: Launch, agents: Ready, number: signal.Signals) -> None:
    terminal = launch(columns=80, lines=24)
    agents(terminal, 2)
    grow(terminal)
    pid = terminal.command_pid
    assert pid is not None
    children = descendants(pid)
    assert children
    terminal.kill_command(number)
    assert_clean(terminal)
    wait_for_end(*children)


def test_kill_9_leaves_no_child_and_the_next_start_cleans_the_registry(
    launch: Launch, agents: Ready, home: Path, environ: dict[str, str]
) -> None:
    terminal = launch()
    agents(terminal, 2)
    pid = terminal.command_pid
    assert pid is not None
    registry = home / ".a2a" / "registry"
    terminal.wait(lambda: len(list(registry.glob("synapse-*.json"))) == 2, "two records")
    children = descendants(pid)
    terminal.kill_command(signal.SIGKILL)
    wait_for_end(*children)
    terminal.wait(lambda: process_start(pid) is None, "the end of all threads of the host")
    hosts = {json.loads(path.read_text())["host"] for path in registry.glob("synapse-*.json")}
    assert [host.partition(":")[0] for host in hosts] == [str(pid)]
    listed = subprocess.run(
        ["synapse", "list", "--json"], env=environ, capture_output=True, text=True, check=True
    )
    assert json.loads(listed.stdout) in ([], {"agents": []})
    assert not list(registry.glob("synapse-*.json"))


def test_quit_asks_and_ends_everything(launch: Launch, agents: Ready, home: Path) -> None:
    terminal = launch()
    agents(terminal, 2)
    terminal.keys("C-]", "q")
    terminal.wait_for("Quit synapse-tui?")
    terminal.keys("Escape")
    terminal.wait_gone("Quit synapse-tui?")
    terminal.keys("C-]", "q")
    terminal.wait_for("Quit synapse-tui?")
    terminal.keys("Enter")
    terminal.wait_gone("Quit synapse-tui?")
    agents(terminal, 2)
    terminal.keys("C-]", "q")
    terminal.wait_for("Quit synapse-tui?")
    terminal.keys("y")
    assert_clean(terminal)
    assert not list((home / ".a2a" / "registry").glob("synapse-*.json"))


def test_a_terminal_that_goes_away_ends_it(launch: Launch, agents: Ready) -> None:
    terminal = launch()
    agents(terminal, 2)
    pid = terminal.command_pid
    assert pid is not None
    processes = [psutil.Process(pid), *descendants(pid)]
    terminal.close()
    wait_for_end(*processes)


CRASH = """
import asyncio, os, sys, synapse_tui.host.host as host
load = host.Host.load_servers
def crash():
    raise SystemError("a defect that nobody caught")
def broken():
    raise SystemExit("the loop itself was torn down")
def load_servers(self):
    load(self)
    look(asyncio.get_running_loop())
def look(loop):
    if os.path.exists(sys.argv[1]):
        loop.call_soon(crash)
        loop.call_later(1.0, broken)
    else:
        loop.call_later(0.05, look, loop)
host.Host.load_servers = load_servers
from synapse_tui.cli.tui import main
main(["--foreground", "dummy", "dummy"])
"""


def test_a_crash_leaves_a_clean_terminal_and_no_child(
    launch: Launch, agents: Ready, tmp_path: Path, home: Path
) -> None:
    script = tmp_path / "crash.py"
    script.write_text(CRASH)
    terminal = launch(command=["python", str(script), str(tmp_path / "fail")])
    agents(terminal, 2)
    pid = terminal.command_pid
    assert pid is not None
    children = descendants(pid)
    (tmp_path / "fail").touch()
    terminal.wait(lambda: terminal.flag("alternate_on") == "0", "the crash")
    assert_clean(terminal)
    wait_for_end(*children)
    log = (home / ".synapse" / "logs" / "synapse-tui.log").read_text()
    assert "a defect that nobody caught" in log
