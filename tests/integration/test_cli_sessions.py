"""`synapse-tui ls` and its like, beside hosts that hang."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from synapse_tui.cli import sessions
from synapse_tui.cli.output import run_command
from synapse_tui.sessions.wire import encode

PATIENCE = 30.0


class Host:
    """Listens as a host does, and answers when it is let.

    Args:
        path: Its socket.
        gate: All that pass it are let at once.
    """

    def __init__(self, path: Path, gate: threading.Barrier | None) -> None:
        self._path, self._gate = path, gate
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asked, _ = self._listener.accept()
        with asked:
            asked.recv(65536)
            if self._gate is None:
                asked.recv(65536)  # until the other side gives up
                return
            self._gate.wait(PATIENCE)
            answer = {"is": "info", "session": self._path.stem, "project": "/p", "agents": []}
            asked.sendall(encode(answer))
            asked.recv(65536)

    def close(self) -> None:
        self._listener.close()
        self._thread.join(PATIENCE)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for sockets, whose names may not be long."""
    with tempfile.TemporaryDirectory(prefix="synapse-", dir="/tmp") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        folder = Path(name) / "synapse-tui"
        folder.mkdir(mode=0o700)
        yield folder


def test_hosts_are_asked_at_the_same_time(runtime: Path) -> None:
    """Each answers only when all were asked."""
    gate = threading.Barrier(3)
    with ExitStack() as stack:
        for name in ("a", "b", "c"):
            stack.callback(Host(runtime / f"{name}.sock", gate).close)
        running = sessions.running_sessions(timeout=PATIENCE)
    assert [(each.place.name, str(each.place.project)) for each in running] == [(n, "/p") for n in "abc"]


def test_a_host_that_hangs_is_told_as_such(runtime: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as stack:
        for name, gate in (("fine", threading.Barrier(1)), ("hung", None)):
            stack.callback(Host(runtime / f"{name}.sock", gate).close)
        with pytest.raises(SystemExit) as ended:
            run_command(sessions.ls, ["--json"], name="synapse-tui ls")
    assert ended.value.code == 0
    found = {each["key"]: each for each in json.loads(capsys.readouterr().out)}
    assert (found["fine"]["project"], found["hung"]["project"]) == ("/p", "?")


def test_a_socket_at_which_nobody_listens_is_taken_away(runtime: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(runtime / "gone.sock"))
    listener.close()
    assert sessions.running_sessions() == []
    assert not (runtime / "gone.sock").exists()
