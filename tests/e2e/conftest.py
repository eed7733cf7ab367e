"""Fixtures of the end-to-end tests: a scratch home and the installed application in a tmux pane."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from synapse_tui.system.paths import shipped_profiles
from tests.command_line import call
from tests.e2e.tmux_terminal import TmuxTerminal
from tests.ports import free_ports
from tests.waiting import wait_until

Launch = Callable[..., TmuxTerminal]
Ready = Callable[[TmuxTerminal, int], list[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]
"""Runs a command; one that starts no process in this process."""


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def wait_for_end(*processes: psutil.Process) -> None:
    """Wait until processes have ended; whoever their parent is by then may take note of it late."""
    wait_until(lambda: not alive(processes), lambda: f"the end of {alive(processes)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/e2e/"):
            item.add_marker("e2e")
            if "launch" in getattr(item, "fixturenames", ()):
                item.add_marker("tmux")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A scratch home folder, with ports for the built-in agent that no other program on this machine uses."""
    folder = tmp_path / "home"
    profiles = folder / ".synapse" / "profiles"
    profiles.mkdir(parents=True)
    first = free_ports(21)
    shipped = (shipped_profiles() / "dummy.yaml").read_text()
    profile, count = re.subn(r"(?m)^ports:.*$", f"ports: {first}-{first + 20}", shipped)
    assert count == 1
    (profiles / "dummy.yaml").write_text(profile)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A folder for the sockets of sessions; its path is short, as sockets want it."""
    folder = Path(tempfile.mkdtemp(prefix="syn-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def environ(home: Path, tmp_path: Path, runtime: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(runtime),
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "SYNAPSE_AGENT_ID": "",  # whoever runs the tests
        "SYNAPSE_DUMMY_LOG": str(tmp_path / "dummy.jsonl"),
        "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", ""),
    }


@pytest.fixture
def run(environ: dict[str, str], project: Path) -> Run:
    def run(program: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        if program not in ("synapse", "synapse-tui") or words[0] in ("start", "spawn"):
            return subprocess.run(
                (program, *words),
                env=environ,
                cwd=cwd or project,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        result = call(program, *words, environ=environ, folder=cwd or project)
        return subprocess.CompletedProcess((program, *words), result.code, result.out, result.err)

    return run


@pytest.fixture
def launch(project: Path, environ: dict[str, str], run: Run) -> Iterator[Launch]:
    """Start `synapse-tui` with arguments in a pane; all panes are closed at the end."""
    opened: list[TmuxTerminal] = []

    def start(
        *arguments: str,
        columns: int = 120,
        lines: int = 40,
        term: str = "tmux-256color",
        command: Sequence[str] = ("synapse-tui",),
        **extra: str,
    ) -> TmuxTerminal:
        terminal = TmuxTerminal(
            [*command, *arguments],
            cwd=project,
            environ=environ | extra,
            columns=columns,
            lines=lines,
            term=term,
        )
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.close()
    run("synapse-tui", "kill", "--all", "--yes")


@pytest.fixture
def dummy_log(environ: dict[str, str]) -> Callable[..., list[dict[str, object]]]:
    """Reads what all dummies were given, optionally of one kind of event."""

    def read(event: str = "") -> list[dict[str, object]]:
        path = Path(environ["SYNAPSE_DUMMY_LOG"])
        lines = path.read_text().splitlines() if path.exists() else []
        entries: list[dict[str, object]] = [json.loads(line) for line in lines]
        return [entry for entry in entries if event in ("", entry["event"])]

    return read


@pytest.fixture
def agents(home: Path) -> Callable[[TmuxTerminal, int], list[str]]:
    """Waits until so many agents are ready and gives their addresses (`dummy-8190`) by port.

    Ports are read from the registry: other programs on this machine may hold the first ones.
    """
    registry = home / ".a2a" / "registry"

    def records() -> list[dict[str, object]]:
        with contextlib.suppress(OSError, ValueError):
            return [json.loads(path.read_text()) for path in registry.glob("synapse-*.json")]
        return []

    def ready(terminal: TmuxTerminal, count: int) -> list[str]:
        terminal.wait(
            lambda: sum(record["status"] == "READY" for record in records()) == count, f"{count} ready agents"
        )
        terminal.wait_for("❯")
        return [f"dummy-{port}" for port in sorted(int(str(record["port"])) for record in records())]

    return ready
