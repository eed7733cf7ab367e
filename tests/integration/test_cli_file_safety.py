"""`synapse file-safety` as a process, on a home folder and a project of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from synapse_tui.sessions.registry import RegistryEntry
from synapse_tui.system.process_times import process_name, process_start
from tests.integration.shell_kit import SYNAPSE, Shell

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"


def live(shell: Shell, agent_id: str, kind: str, pid: int = 0, *, receives: bool = True) -> None:
    pid = pid or os.getpid()
    port = int(agent_id.rpartition("-")[2])
    record = RegistryEntry(
        agent_id,
        kind,
        port,
        f"http://127.0.0.1:{port}",
        pid,
        pid_started=process_start(pid) or 0.0,
        working_dir=str(shell.folder),
        project=str(shell.folder),
        receives=receives,
    )
    shell.registry.register(record)


def inside(shell: Shell, agent_id: str) -> None:
    shell.environ["SYNAPSE_AGENT_ID"] = agent_id


async def test_a_file_is_locked_listed_and_given_back(shell: Shell) -> None:
    taken = await shell.run("file-safety", "lock", "src/../a.py", "b.py", "--intent", "rename")
    assert taken.code == 0, taken.err
    assert "a.py" in taken.out
    locks = json.loads((await shell.run("file-safety", "locks", "--json")).out)
    assert [(lock["file_path"], lock["agent_name"], lock["intent"]) for lock in locks] == [
        ("a.py", "user", "rename"),
        ("b.py", "user", "rename"),
    ]
    assert (await shell.run("file-safety", "unlock", "a.py")).out == "a.py\n"
    again = await shell.run("file-safety", "unlock", "a.py")
    assert (again.code, "was not locked by user" in again.err) == (4, True)
    assert (await shell.run("file-safety", "unlock", "--all")).out == "b.py\n"
    assert "user held no locks" in (await shell.run("file-safety", "unlock", "--all")).err
    assert (
        "FILES and --all cannot be combined"
        in (await shell.run("file-safety", "unlock", "--all", "a.py")).err
    )
    database = shell.folder / ".synapse/file_safety.db"
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert "*.db" in (shell.folder / ".synapse/.gitignore").read_text()


async def test_an_agent_is_told_who_holds_a_file(shell: Shell) -> None:
    live(shell, CLAUDE, "claude")
    live(shell, CODEX, "codex")
    inside(shell, CLAUDE)
    assert (await shell.run("file-safety", "lock", "a.py", "--agent", "claude")).code == 0
    inside(shell, CODEX)
    refused = await shell.run("file-safety", "lock", "a.py")
    assert refused.code == 4
    assert re.fullmatch(rf"a.py: locked by {CLAUDE} 0:\d\d ago, expires in \d:\d\d", refused.out.strip())
    data = (await shell.run("file-safety", "lock", "a.py", "--json")).json
    assert (data["allowed"], data["reason"]) == (False, f"locked by {CLAUDE}")
    stolen = await shell.run("file-safety", "unlock", "a.py", "--force")
    assert (stolen.code, "cannot release the locks of others" in stolen.err) == (2, True)
    other = await shell.run("file-safety", "lock", "b.py", "--agent", "claude")
    assert (other.code, f"runs inside {CODEX}" in other.err) == (2, True)
    live(shell, "synapse-shell-8150", "shell", receives=False)
    for person in ("", "synapse-shell-8150"):
        inside(shell, person)
        assert (await shell.run("file-safety", "unlock", "a.py", "--force")).code == 0
        inside(shell, CLAUDE)
        assert (await shell.run("file-safety", "lock", "a.py")).code == 0


async def test_a_lock_is_awaited(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    live(shell, CLAUDE, "claude")
    inside(shell, CLAUDE)
    assert (await shell.run("file-safety", "lock", "a.py")).code == 0
    inside(shell, "")
    late = await shell.run("file-safety", "lock", "a.py", "--wait", "0.01")
    assert (late.code, f"a.py: locked by {CLAUDE}" in late.out) == (4, True)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            unlock = [*SYNAPSE, "file-safety", "unlock", "a.py", "--force"]
            subprocess.run(unlock, env=shell.environ, cwd=shell.folder, check=True, capture_output=True)

    monkeypatch.setattr("synapse_tui.cli.file_safety.sleep", sleep)
    taken = await shell.run("file-safety", "lock", "a.py", "--wait", "600")
    assert (taken.code, len(slept)) == (0, 2)
    assert taken.err.count(f"waiting for a.py: locked by {CLAUDE}") == 1
    locks = json.loads((await shell.run("file-safety", "locks", "--json")).out)
    assert [lock["agent_name"] for lock in locks] == ["user"]


async def test_the_lock_of_an_agent_that_was_killed_is_free(shell: Shell) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "60")
    live(shell, CLAUDE, "claude", process.pid)
    assert (await shell.run("file-safety", "lock", "a.py", "--agent", CLAUDE)).code == 0
    refused = await shell.run("file-safety", "lock", "a.py", "--agent", CODEX)
    assert refused.code == 4
    process.kill()
    await process.wait()
    assert (await shell.run("file-safety", "lock", "a.py", "--agent", CODEX)).code == 0


@pytest.mark.parametrize("name", ["", ".", "src", ".."])
async def test_a_folder_is_no_file(shell: Shell, name: str) -> None:
    (shell.folder / "src").mkdir()
    for command in ("lock", "record"):
        result = await shell.run("file-safety", command, name)
        assert (result.code, "is a folder" in result.err) == (2, True), result.err
    assert (await shell.run("file-safety", "locks", "--json")).out == "[]\n"


async def test_changes_are_recorded_and_found_again(shell: Shell) -> None:
    words = ("--change", "create", "--lines", "1-3,7", "--intent", "first", "--task", "t1")
    assert (await shell.run("file-safety", "record", "ファイル.py", *words)).code == 0
    assert (await shell.run("file-safety", "record", "b.py", "--agent", CODEX)).code == 0
    [one] = json.loads((await shell.run("file-safety", "history", "ファイル.py", "--json")).out)
    assert (one["change_type"], one["affected_lines"], one["intent"], one["task_id"]) == (
        "CREATE",
        "1-3,7",
        "first",
        "t1",
    )
    recent = json.loads((await shell.run("file-safety", "recent", "--json")).out)
    assert [each["file_path"] for each in recent] == ["b.py", "ファイル.py"]
    assert recent[0]["task_id"].startswith("local-")
    for lines in ("many", "7-3", "0", "2,0-4"):
        odd = await shell.run("file-safety", "record", "a", "--lines", lines)
        assert (odd.code, "is not valid" in odd.err) == (2, True)
    odd = await shell.run("file-safety", "recent", "--hours", "nan")
    assert (odd.code, "not a number" in odd.err) == (2, True)
    assert "removed 2 changes" in (await shell.run("file-safety", "cleanup", "--days", "0")).out


async def test_status_and_debug_tell_how_it_stands(shell: Shell) -> None:
    assert (await shell.run("file-safety", "status")).out.startswith("file safety is off")
    assert not (shell.folder / ".synapse/file_safety.db").exists()
    shell.environ["SYNAPSE_FILE_SAFETY_ENABLED"] = "true"
    shell.environ["SYNAPSE_FILE_SAFETY_DB_PATH"] = str(shell.home / "other.db")
    await shell.run("file-safety", "lock", "a")
    found = (await shell.run("file-safety", "status", "--json")).json
    assert (found["enabled"], found["database"], found["locks"]) == (True, str(shell.home / "other.db"), 1)
    facts = (await shell.run("file-safety", "debug", "--json")).json
    assert (facts["integrity"], facts["journal_mode"]) == ("ok", "wal")


async def test_an_agent_whose_process_has_ended_holds_no_lock(shell: Shell) -> None:
    live(shell, CLAUDE, "claude")
    record = shell.registry.get(CLAUDE)
    assert record is not None
    ended = dataclasses.replace(record, pid=None, pid_started=0.0, host=process_name(os.getpid()))
    shell.registry.register(ended)
    taken = await shell.run("file-safety", "lock", "a.py", "--agent", CLAUDE)
    assert taken.code != 0
    assert f"{CLAUDE} has ended" in taken.err
    given = await shell.run("file-safety", "unlock", "--all", "--agent", CLAUDE)
    assert f"{CLAUDE} held no locks" in given.err


SANDBOX = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


def has_sandbox() -> bool:
    try:
        return subprocess.run([*SANDBOX, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not has_sandbox(), reason="this machine does not let programs make a pid namespace")
async def test_a_sandbox_that_hides_processes_frees_no_lock(tmp_path: Path) -> None:
    shell = Shell.scratch(tmp_path)
    live(shell, CLAUDE, "claude")
    assert (await shell.run("file-safety", "lock", "a.py", "--agent", CLAUDE)).code == 0
    inside(shell, CLAUDE)
    await shell.run("file-safety", "lock", "b.py", program=(*SANDBOX, *SYNAPSE))
    locks = json.loads((await shell.run("file-safety", "locks", "--json")).out)
    assert [lock["file_path"] for lock in locks] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("word", "holder"),
    [
        (CLAUDE, CLAUDE),
        ("claude", CLAUDE),
        ("claude-8100", CLAUDE),
        ("@Claude", CLAUDE),
        ("gemini", "gemini"),
        ("synapse-gemini-8110", "synapse-gemini-8110"),
        ("user", "user"),
    ],
)
async def test_a_second_word_that_names_an_agent_is_the_holder(shell: Shell, word: str, holder: str) -> None:
    """As in the documents of synapse-a2a; a type counts whether an agent of it runs or not."""
    live(shell, CLAUDE, "claude")
    taken = await shell.run("file-safety", "lock", "a.py", word, "--intent", "rename", "--task-id", "t1")
    assert taken.code == 0, taken.err
    (lock,) = json.loads((await shell.run("file-safety", "locks", "--json")).out)
    assert (lock["file_path"], lock["agent_name"], lock["task_id"]) == ("a.py", holder, "t1")
    assert (await shell.run("file-safety", "lock", "a.py", CODEX)).code == 4
    assert (await shell.run("file-safety", "unlock", "a.py", "codex")).code == 4
    given = await shell.run("file-safety", "unlock", "a.py", word)
    assert (given.code, given.out) == (0, "a.py\n"), given.err
    noted = await shell.run("file-safety", "record", "a.py", word, "task-123", "--type", "create")
    assert noted.code == 0, noted.err
    (change,) = json.loads((await shell.run("file-safety", "history", "a.py", "--json")).out)
    assert (change["agent_name"], change["task_id"], change["change_type"]) == (holder, "task-123", "CREATE")


async def test_a_word_that_names_a_file_is_a_file(shell: Shell) -> None:
    live(shell, CLAUDE, "claude")
    (shell.folder / "claude").touch()
    assert (await shell.run("file-safety", "lock", "a.py", "claude")).code == 0
    assert (await shell.run("file-safety", "lock", "b.py", "c.py", "codex")).code == 0
    assert (await shell.run("file-safety", "lock", "d.py", "./codex")).code == 0
    assert (await shell.run("file-safety", "lock", "e.py", "gemini", "--agent", "claude")).code == 0
    locks = json.loads((await shell.run("file-safety", "locks", "--json")).out)
    assert {lock["file_path"] for lock in locks} == {
        *("a.py", "claude", "b.py", "c.py", "codex", "d.py", "e.py", "gemini"),
    }
    forced = await shell.run("file-safety", "unlock", "a.py", "./codex", "--force")
    assert (forced.code, forced.out) == (0, "a.py\ncodex\n"), "both are locked: they are files"
    odd = await shell.run("file-safety", "record", "a.py", "nobody-known", "t")
    assert (odd.code, "no agent answers to '@nobody-known'" in odd.err) == (3, True)


async def test_a_row_is_one_line_whatever_a_file_is_called(shell: Shell) -> None:
    await shell.run("file-safety", "lock", "a\n\tb\x1b[31m.py")
    head, row = (await shell.run("file-safety", "locks")).out.splitlines()
    assert (row[: row.index("user")], row.index("user")) == ("a  b[31m.py  ", head.index("AGENT"))


async def test_an_agent_is_no_holder_for_another(shell: Shell) -> None:
    live(shell, CLAUDE, "claude")
    inside(shell, CLAUDE)
    assert (await shell.run("file-safety", "lock", "a.py", "claude")).code == 0
    refused = await shell.run("file-safety", "lock", "b.py", "codex")
    assert (refused.code, "runs inside" in refused.err) == (2, True)
