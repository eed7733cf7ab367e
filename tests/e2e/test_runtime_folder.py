"""A session is found by its home folder, whatever becomes of the folder with its socket."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from synapse_tui.sessions.client import ask, request
from tests.command_line import call
from tests.e2e.conftest import Run, alive
from tests.e2e.test_sessions import host_of, sessions
from tests.waiting import PATIENCE


@pytest.fixture
def elsewhere(environ: dict[str, str]) -> Iterator[dict[str, str]]:
    """The environment of another login, cron or sudo."""
    folder = Path(tempfile.mkdtemp(prefix="syn-"))
    yield environ | {"XDG_RUNTIME_DIR": str(folder)}
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def host(run: Run) -> Iterator[psutil.Process]:
    started = run("synapse", "start", "dummy:first")
    assert started.returncode == 0, started.stderr
    process = host_of(run)
    yield process
    run("synapse-tui", "kill")
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def names(run: Run) -> list[str]:
    (session,) = sessions(run)
    agents = session["agents"]
    assert isinstance(agents, list)
    return sorted(agent["name"] for agent in agents)


@pytest.mark.parametrize("parts", ["synapse-tui", "."])
def test_a_session_is_found_when_its_runtime_folder_is_deleted(
    run: Run, host: psutil.Process, runtime: Path, parts: str
) -> None:
    shutil.rmtree(runtime / parts)
    assert host_of(run).pid == host.pid
    second = run("synapse", "start", "dummy:second")
    assert second.returncode == 0, second.stderr
    assert (host_of(run).pid, names(run)) == (host.pid, ["first", "second"])
    ended = run("synapse-tui", "kill", "--json")
    assert [each["pid"] for each in json.loads(ended.stdout)] == [host.pid]
    assert not alive([host])


def test_an_upgrade_goes_on_with_the_new_socket(run: Run, host: psutil.Process, runtime: Path) -> None:
    shutil.rmtree(runtime / "synapse-tui")
    for _ in range(2):  # the second one adopts what the first one handed over
        upgraded = run("synapse-tui", "upgrade")
        assert upgraded.returncode == 0, upgraded.stderr
        assert (host_of(run).pid, names(run)) == (host.pid, ["first"])
    shutil.rmtree(runtime / "synapse-tui")
    assert (host_of(run).pid, names(run)) == (host.pid, ["first"])


def test_another_login_finds_the_session(
    run: Run, host: psutil.Process, elsewhere: dict[str, str], project: Path
) -> None:
    listed = call("synapse-tui", "ls", "--json", environ=elsewhere, folder=project)
    assert [each["pid"] for each in json.loads(listed.out)] == [host.pid]
    started = subprocess.run(
        ["synapse", "start", "dummy:second"],
        env=elsewhere,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert started.returncode == 0, started.stderr
    assert (host_of(run).pid, names(run)) == (host.pid, ["first", "second"])
    ended = call("synapse-tui", "kill", "--all", "--json", environ=elsewhere, folder=project)
    assert [each["pid"] for each in json.loads(ended.out)] == [host.pid]
    assert not alive([host])


@pytest.mark.parametrize("same", [True, False], ids=["same folder", "other folder"])
def test_a_second_host_hands_its_clients_over(
    host: psutil.Process,
    runtime: Path,
    environ: dict[str, str],
    elsewhere: dict[str, str],
    project: Path,
    *,
    same: bool,
) -> None:
    """Versions that know no record start one; so does a client whose start coincides with another."""
    (first,) = runtime.glob("synapse-tui/*.sock")
    env = environ if same else elsewhere
    folder = Path(env["XDG_RUNTIME_DIR"]) / "synapse-tui"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / first.name
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(path))
        listener.listen()
        client.connect(str(path))
        words = ["--socket-fd", str(listener.fileno()), "--project", str(project)]
        second = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "synapse_tui.daemon",
                *words,
                "--folder",
                str(project),
                "--name",
                "p",
            ],
            env=env,
            pass_fds=[listener.fileno()],
            stderr=subprocess.DEVNULL,
        )
        listener.close()
        try:
            assert ask(client, request("info"), timeout=PATIENCE)["pid"] == host.pid
            assert second.wait(PATIENCE) == 0
        finally:
            second.kill()
            second.wait()


def test_a_stopped_host_without_a_socket_is_ended(run: Run, host: psutil.Process, runtime: Path) -> None:
    host.send_signal(signal.SIGSTOP)
    shutil.rmtree(runtime / "synapse-tui")
    started = run("synapse", "start", "dummy")
    assert (started.returncode, started.stdout) == (10, "")
    assert "its socket is gone" in started.stderr
    assert "(does not answer)" in run("synapse-tui", "ls").stdout
    ended = run("synapse-tui", "kill", "--json")
    assert [(each["pid"], each["ended"]) for each in json.loads(ended.stdout)] == [(host.pid, "terminated")]
