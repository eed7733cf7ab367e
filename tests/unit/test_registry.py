"""The registry: records that live, records that are stale, and files that are none."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from synapse_tui.sessions.registry import Registry, RegistryEntry, is_live
from synapse_tui.system.paths import own_command, tilde, with_tilde
from synapse_tui.system.process_times import pid_namespace, process_start
from tests.work import work


def record(port: int = 8100, kind: str = "claude", **fields: object) -> RegistryEntry:
    base = RegistryEntry(
        f"synapse-{kind}-{port}", kind, port, f"http://127.0.0.1:{port}", os.getpid(), working_dir="/p"
    )
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".a2a" / "registry"


@pytest.fixture
def registry(folder: Path) -> Registry:
    return Registry(folder)


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def write(folder: Path, name: str, content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_what_is_registered_is_listed(registry: Registry) -> None:
    written = registry.register(
        record(name="alice", command=("claude", "--x"), aliases=("ClaudeCode",), project="/p")
    )
    assert registry.list() == [written]
    assert registry.get("synapse-claude-8100") == written
    assert written.pid_started == process_start(os.getpid())


def test_files_and_folder_are_private(registry: Registry, folder: Path) -> None:
    registry.register(record())
    assert stat.S_IMODE((folder / "synapse-claude-8100.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / ".registry.lock").stat().st_mode) == 0o600


def test_fields_of_other_programs_survive_an_update(registry: Registry, folder: Path) -> None:
    path = write(
        folder,
        "synapse-claude-8100.json",
        {"agent_id": "synapse-claude-8100", "port": 8100, "pid": os.getpid(), "role": "reviewer"},
    )
    registry.update("synapse-claude-8100", status="READY")
    assert json.loads(path.read_text())["role"] == "reviewer"


def test_remove_with_a_pid_spares_the_record_of_another_process(registry: Registry) -> None:
    registry.register(record())
    assert registry.remove("synapse-claude-8100", pid=1) is False
    assert registry.remove("synapse-claude-8100", pid=os.getpid()) is True
    assert list(registry.list()) == []


def test_list_removes_the_record_of_a_dead_process(registry: Registry, folder: Path, dead_pid: int) -> None:
    registry.register(record(pid=dead_pid))
    registry.register(record(8101))
    assert [each.port for each in registry.list()] == [8101]
    assert not (folder / "synapse-claude-8100.json").exists()


def test_a_pid_that_was_given_to_another_process_is_stale(registry: Registry) -> None:
    registry.register(record(pid_started=(process_start(os.getpid()) or 0) - 100))
    assert list(registry.list()) == []


def test_a_zombie_is_no_live_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(process.pid) is None
    process.wait()


def test_processes_of_another_namespace_cannot_be_judged(registry: Registry, dead_pid: int) -> None:
    own = registry.register(record())
    assert own.pid_namespace == pid_namespace()
    elsewhere = registry.register(record(8101, pid=dead_pid, pid_namespace="pid:[1]"))
    dead = registry.register(record(8102, pid=dead_pid))
    assert [is_live(each) for each in (own, elsewhere, dead)] == [True, bool(pid_namespace()), False]
    assert elsewhere in registry.list()
    assert is_live(replace(own, pid_namespace="")), "a record of an earlier version"


def test_discard_spares_a_record_that_was_written_since(registry: Registry, dead_pid: int) -> None:
    old = registry.register(record(pid=dead_pid))
    new = registry.register(record())
    registry.discard(old)
    assert registry.list() == [new]


def test_a_record_of_the_original_is_read(registry: Registry, folder: Path) -> None:
    write(
        folder,
        "synapse-codex-8120.json",
        {
            "agent_id": "synapse-codex-8120",
            "agent_type": "codex",
            "port": 8120,
            "status": "IDLE",
            "status_updated_at": 1770000000.5,
            "pid": os.getpid(),
            "working_dir": "/home/me/api",
            "endpoint": "http://localhost:8120",
            "uds_path": "/tmp/synapse-a2a/synapse-codex-8120.sock",
        },
    )
    [found] = registry.list()
    assert found.agent_type == "codex"
    assert found.endpoint == "http://localhost:8120"
    assert found.status == "IDLE"
    assert found.project == found.working_dir == "/home/me/api"


BASE = {"agent_id": "synapse-x-1", "port": 1, "pid": os.getpid()}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"text"',
        "[" * 60_000,
        "\x00\xff",
        {},
        {**BASE, "pid": 0},
        {**BASE, "pid": -1},
        {**BASE, "pid": True},
        {**BASE, "pid": "12"},
        {**BASE, "pid": 10**20},
        {**BASE, "port": 0},
        {**BASE, "port": 65536},
        {**BASE, "port": None},
        {**BASE, "agent_id": "synapse-y-1"},
        {**BASE, "agent_id": "../../etc/passwd"},
        {**BASE, "agent_id": 7},
        {**BASE, "endpoint": "file:///etc/passwd"},
        {**BASE, "endpoint": "http://127.0.0.1:1/ \n"},
    ],
)
def test_a_broken_file_is_skipped_and_the_others_are_listed(
    registry: Registry, folder: Path, content: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(folder, "synapse-x-1.json", content)
    good = registry.register(record())
    assert registry.list() == [good]
    assert path.exists(), "what is not ours is not removed"
    assert "synapse-x-1.json" in caplog.text


def test_odd_fields_fall_back(registry: Registry, folder: Path) -> None:
    write(
        folder, "synapse-x-1.json", {**BASE, "name": 5, "command": "x", "pid_started": "soon", "status": None}
    )
    [found] = registry.list()
    assert (found.name, found.command, found.status, found.agent_type) == ("", (), "UNKNOWN", "x")
    assert found.endpoint == "http://127.0.0.1:1"


def test_control_characters_are_taken_out(registry: Registry, folder: Path) -> None:
    write(folder, "synapse-x-1.json", {**BASE, "name": "a\x1b]0;b\x07\x9bc\n", "working_dir": "/x\x1b[2J"})
    [found] = registry.list()
    assert (found.name, tilde(found.working_dir)) == ("a]0;bc", "/x [2J")


def test_a_fifo_does_not_block(registry: Registry, folder: Path) -> None:
    folder.mkdir(parents=True)
    os.mkfifo(folder / "synapse-x-1.json")
    (folder / "synapse-y-2.json").mkdir()
    assert list(registry.list()) == []


def test_a_huge_file_is_not_read(registry: Registry, folder: Path) -> None:
    write(folder, "synapse-x-1.json", {**BASE, "name": "x" * 100_000})
    assert list(registry.list()) == []


def test_an_id_that_leaves_the_folder_is_refused(registry: Registry) -> None:
    with pytest.raises(ValueError, match="not valid"):
        registry.register(record(agent_id="../x"))
    assert registry.get("../x") is None


def test_many_writers_leave_whole_records(registry: Registry, folder: Path) -> None:
    registry.register(record())
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: registry.update("synapse-claude-8100", status=f"S{n}"), range(80)))
    assert all(results)
    assert len(registry.list()) == 1
    assert sorted(path.name for path in folder.iterdir()) == [".registry.lock", "synapse-claude-8100.json"]


@pytest.mark.parametrize("alive", [True, False])
def test_a_scan_is_as_much_work_for_each_of_many_agents(tmp_path: Path, alive: bool) -> None:
    counted = []
    for count in (20, 200):
        many = Registry(tmp_path / str(count), live=lambda _record: alive)
        for port in range(8000, 8000 + count):
            many.register(record(port))
        with work() as scanned:  # also of comparisons, which dataclasses make up
            assert sum(map(len, many.scan())) == count
        counted.append(scanned.lines)
    assert counted[1] < 11 * counted[0]


def test_a_lock_that_is_held_for_ever_is_an_error(
    registry: Registry, folder: Path, monkeypatch: pytest.MonkeyPatch, dead_pid: int
) -> None:
    registry.register(record(pid=dead_pid))
    monkeypatch.setattr("synapse_tui.sessions.registry.LOCK_TIMEOUT", 0.05)
    with (folder / ".registry.lock").open("r+b") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="locked"):
            registry.register(record())
        assert list(registry.list()) == [], "what is only in the way of a clean-up does not matter"


def test_a_harmed_record_is_restored_and_that_of_another_live_process_left(
    registry: Registry, folder: Path
) -> None:
    ours = registry.register(record(working_dir="/odd\nname"))
    assert not registry.restore(ours), "nothing was wrong"
    path = folder / f"{ours.agent_id}.json"
    path.write_bytes(b"{")
    assert registry.restore(ours)
    with subprocess.Popen(["sleep", "1000"]) as other:
        theirs = registry.register(
            replace(ours, pid=other.pid, pid_started=0.0, pid_namespace="another system")
        )
        assert not registry.restore(ours)
        assert registry.get(ours.agent_id) == theirs
        registry.register(replace(ours, pid=other.pid, pid_started=0.0, endpoint="http://localhost:6666"))
        assert registry.restore(ours), "nobody else here has its port"
        other.kill()
    found = registry.get(ours.agent_id)
    assert found
    assert found.pid == os.getpid()
    path.unlink()
    folder.joinpath(".registry.lock").unlink()
    folder.rmdir()
    assert registry.restore(ours)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [each.pid for each in registry.list()] == [os.getpid()]


@pytest.mark.parametrize("path", ["/a\nb", "/a\x1b[1mb", "/\udce9", "/a\u2028b", "/テスト"])
def test_a_folder_is_recorded_as_it_is(registry: Registry, path: str) -> None:
    made = registry.register(replace(record(), working_dir=path, project=path))
    (found,) = registry.list()
    assert found.working_dir == found.project == made.working_dir == path
    assert found.address(path).local


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git failed in /home/me/code: no", "git failed in ~/code: no"),
        ("'/home/me' and /home/me/a", "'~' and ~/a"),
        ("/home/men, /x/home/me/a and /home/me.old", "/home/men, /x/home/me/a and /home/me.old"),
    ],
)
def test_the_home_folder_is_short_in_a_text(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert with_tilde(text) == shown


def test_a_command_that_path_does_not_find_is_called_by_its_path(monkeypatch, tmp_path):
    folder = tmp_path / "a b" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "synapse-tui"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/usr/bin")
    assert own_command("synapse-tui") == f"'{folder}/synapse-tui'"
    monkeypatch.setenv("PATH", str(folder))
    assert own_command("synapse-tui") == "synapse-tui"
