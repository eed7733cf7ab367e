"""`synapse-tui ls` and its like, beside hosts that hang."""

from __future__ import annotations

import json
import shlex
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import click
import pytest

from synapse_tui.cli import agents as agents_cli
from synapse_tui.cli import sessions, tui
from synapse_tui.cli.output import run_command
from synapse_tui.sessions.places import home_key
from synapse_tui.sessions.wire import encode
from synapse_tui.system.paths import UserPaths

PATIENCE = 30.0


class Host:
    """Listens as a host does, and answers when it is let.

    Args:
        path: Its socket.
        gate: All that pass it answer at once; None never to answer.
        answers: What it answers to requests but `info`; a host that is killed listens no more.
    """

    def __init__(
        self, path: Path, gate: threading.Barrier | None = None, **answers: dict[str, object]
    ) -> None:
        self._path, self._gate = path, gate
        agents = [{"agent_id": f"synapse-dummy-819{n}", "name": "", "state": "READY"} for n in (0, 1)]
        info = {"is": "info", "session": path.stem.partition("-")[0], "project": "/p", "agents": agents}
        self._answers = {"info": info} | answers
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                asked, _ = self._listener.accept()
                with asked:
                    self._answer(asked)

    def _answer(self, asked: socket.socket) -> None:
        words = asked.recv(65536)
        if not words:  # only to see whether somebody listens
            return
        do = json.loads(words)["do"]
        if self._gate is None:
            asked.recv(65536)  # until the other side gives up
            return
        if do == "info":
            self._gate.wait(PATIENCE)
        if do == "kill":
            self._path.unlink()
        asked.sendall(encode(self._answers[do]))

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="synapse-", dir="/tmp") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        folder = Path(name) / "synapse-tui"
        folder.mkdir(mode=0o700)
        yield folder


def socket_of(runtime: Path, key: str) -> Path:
    return runtime / f"{key}-{home_key(UserPaths.of_environment().home)}.sock"


def code_of(command: click.Command, *words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run_command(command, list(words), name="synapse")
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_hosts_are_asked_at_the_same_time(runtime: Path) -> None:
    """Each answers only when all were asked."""
    gate = threading.Barrier(3)
    with ExitStack() as stack:
        for name in ("a", "b", "c"):
            stack.callback(Host(socket_of(runtime, name), gate).close)
        running = sessions.running_sessions(timeout=PATIENCE)
    assert [(each.place.name, str(each.place.project)) for each in running] == [(n, "/p") for n in "abc"]


def test_a_host_that_hangs_is_told_as_such(runtime: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as stack:
        for name, gate in (("fine", threading.Barrier(1)), ("hung", None)):
            stack.callback(Host(socket_of(runtime, name), gate).close)
        assert code_of(sessions.ls_command, "--json") == 0
    found = {each["key"]: each for each in json.loads(capsys.readouterr().out)}
    assert (found["fine"]["project"], found["hung"]["project"]) == ("/p", "?")


def test_the_list_says_the_states_of_agents_as_the_application_does(
    runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        stack.callback(Host(socket_of(runtime, "fine"), threading.Barrier(1)).close)
        assert code_of(sessions.ls_command) == 0
    words = capsys.readouterr().out.split()
    assert "ready" in words or "ready," in words
    assert not any("READY" in word for word in words)


def test_a_socket_at_which_nobody_listens_is_taken_away(runtime: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(socket_of(runtime, "gone")))
    listener.close()
    assert sessions.running_sessions() == []
    assert not socket_of(runtime, "gone").exists()


def test_what_was_ended_is_told_as_json_with_what_was_not(
    runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: dict[str, object] = {"is": "stopped", "kept": {"synapse-dummy-8190": 3}}
    refusal: dict[str, object] = {"is": "error", "kind": "AgentNotFound", "text": "it is gone", "hint": ""}
    with ExitStack() as stack:
        stack.callback(Host(socket_of(runtime, "fine"), threading.Barrier(1), stop=stopped).close)
        assert code_of(agents_cli.stop_command, "synapse-dummy-8190", "--json") == 0
        assert json.loads(capsys.readouterr().out) == [{"agent_id": "synapse-dummy-8190", "kept": 3}]
    socket_of(runtime, "fine").unlink()
    with ExitStack() as stack:
        stack.callback(Host(socket_of(runtime, "other"), threading.Barrier(1), stop=refusal).close)
        assert code_of(agents_cli.stop_command, "synapse-dummy-8191", "--json") == 3
        (told,) = json.loads(capsys.readouterr().out)
        assert told["agent_id"] == "synapse-dummy-8191"
        assert told["error"]["message"] == "it is gone"


def test_sessions_are_stopped_though_one_hangs(
    runtime: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "ANSWER_SECONDS", 2.0)
    with ExitStack() as stack:
        stack.callback(Host(socket_of(runtime, "fine"), threading.Barrier(1), kill={"is": "done"}).close)
        stack.callback(Host(socket_of(runtime, "hung"), None).close)
        assert code_of(sessions.kill_command, "--all", "--json") == 10
    told = {each["key"]: each for each in json.loads(capsys.readouterr().out)}
    assert "error" not in told["fine"]
    assert "does not answer" in told["hung"]["error"]["message"]


@pytest.mark.parametrize("word", ["claud", "claud:alice", "nobody"])
def test_no_host_is_started_for_a_profile_that_there_is_not(
    word: str,
    runtime: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert code_of(agents_cli.start_command, word) == 2
    told = capsys.readouterr().err
    assert f"there is no profile '{word.partition(':')[0]}'" in told
    assert ("did you mean 'claude'?" if "claud" in word else "known profiles: ") in told
    assert (list(runtime.iterdir()), list(tmp_path.iterdir())) == ([], [])


def test_a_home_is_a_folder_and_not_only_its_path(tmp_path: Path) -> None:
    """As in containers, where the same path is another folder."""
    home = tmp_path / "root"
    home.mkdir()
    (tmp_path / "linked").symlink_to(home)
    first = home_key(home)
    assert home_key(tmp_path / "linked") == first
    home.rename(tmp_path / "elsewhere")
    home.mkdir()
    assert home_key(home) != first


@pytest.mark.parametrize("word", ["dummy:x", "dummy@~/api", "./agent"])
def test_a_new_session_has_its_name_before_its_agents(
    word: str, runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(tui.command, "--new", word) == 2
    assert f"synapse-tui --new NAME {shlex.quote(word)}" in capsys.readouterr().err
    assert list(runtime.iterdir()) == []


def test_several_agents_are_stopped_or_none(runtime: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = ["synapse-dummy-8190", "synapse-dummy-8191"]
    stopped: dict[str, object] = {"is": "stopped", "kept": {ids[0]: 1, ids[1]: 2}}
    with ExitStack() as stack:
        stack.callback(Host(socket_of(runtime, "fine"), threading.Barrier(1), stop=stopped).close)
        assert code_of(agents_cli.stop_command, ids[1], "synapse-dummy-9999", "--json") == 3
        told = capsys.readouterr()
        assert "synapse-dummy-9999" in json.loads(told.out)["error"]["message"], "and no list of the stopped"
        assert code_of(agents_cli.stop_command, ids[1], ids[0], "@" + ids[1], "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"agent_id": ids[1], "kept": 2},
        {"agent_id": ids[0], "kept": 1},
    ]


def test_what_could_not_be_ended_with_an_agent_is_named(
    runtime: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_id = "synapse-dummy-8190"
    stopped: dict[str, object] = {"is": "stopped", "kept": {}, "left": {agent_id: ["1234 sudo", "1235 vim"]}}
    for words in ((), ("--json",)):
        with ExitStack() as stack:
            stack.callback(Host(socket_of(runtime, "fine"), threading.Barrier(1), stop=stopped).close)
            assert code_of(agents_cli.stop_command, agent_id, *words) == 0
        (socket_of(runtime, "fine")).unlink()
        told = capsys.readouterr()
        if words:
            assert json.loads(told.out) == [
                {"agent_id": agent_id, "kept": 0, "left": ["1234 sudo", "1235 vim"]}
            ]
        else:
            assert "1234 sudo, 1235 vim" in told.err
