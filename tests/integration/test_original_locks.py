"""File safety beside the original synapse-a2a, which keeps its locks in the same file of a project."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synapse_tui.sessions.registry import RegistryEntry
from synapse_tui.system.process_times import process_start
from tests.integration.shell_kit import Result, Shell

CLAUDE, CODEX = "synapse-claude-8100", "synapse-codex-8120"
OTHER = "synapse-gemini-8110"
"""An agent of the original."""


class Original:
    """What the commands of the original do to its database, in statements that mean the same.

    Args:
        project: Folder of the project.
    """

    def __init__(self, project: Path) -> None:
        self.project = project
        self.file = project / ".synapse" / "file_safety.db"

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.file, timeout=10)) as database, database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS file_locks (id INTEGER PRIMARY KEY AUTOINCREMENT,"
                " file_path TEXT NOT NULL UNIQUE, agent_name TEXT NOT NULL, agent_id TEXT, agent_type TEXT,"
                " pid INTEGER, task_id TEXT, locked_at DATETIME DEFAULT CURRENT_TIMESTAMP,"
                " expires_at DATETIME NOT NULL, intent TEXT)"
            )
            database.execute(
                "CREATE TABLE IF NOT EXISTS file_modifications (id INTEGER PRIMARY KEY AUTOINCREMENT,"
                " task_id TEXT NOT NULL, agent_name TEXT NOT NULL, file_path TEXT NOT NULL,"
                " change_type TEXT NOT NULL, affected_lines TEXT, intent TEXT, timestamp TEXT NOT NULL,"
                " metadata TEXT)"
            )
            known = {row[1] for row in database.execute("PRAGMA table_info(file_locks)")}
            for column in {"agent_id", "agent_type", "pid"} - known:
                database.execute(f"ALTER TABLE file_locks ADD COLUMN {column}")
            for index in ("agent_type", "pid", "agent_id"):
                database.execute(f"CREATE INDEX IF NOT EXISTS idx_locks_{index} ON file_locks ({index})")
            database.execute(
                "CREATE INDEX IF NOT EXISTS idx_mods_file_path ON file_modifications (file_path)"
            )
            self._clean(database)
            yield database

    def _clean(self, database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM file_locks WHERE expires_at < ?", (_iso(),))

    def lock(self, file: str, agent_id: str, pid: int | None, *, minutes: int = 5) -> str:
        path, until = str(self.project / file), _iso(minutes)
        with self.opened() as database:
            for number, process in database.execute("SELECT id, pid FROM file_locks WHERE pid IS NOT NULL"):
                if not _runs(process):
                    database.execute("DELETE FROM file_locks WHERE id = ?", (number,))
            held = database.execute(
                "SELECT agent_id, agent_name FROM file_locks WHERE file_path = ?", (path,)
            ).fetchone()
            if held is None:
                database.execute(
                    "INSERT INTO file_locks (file_path, agent_name, agent_id, agent_type, pid, task_id,"
                    " expires_at, intent) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (path, agent_id, agent_id, agent_id.split("-")[1], pid, None, until, None),
                )
            elif (held[0] or held[1]) == agent_id:
                database.execute(
                    "UPDATE file_locks SET expires_at = ?, intent = ?, task_id = ?, pid = ?, agent_id = ?,"
                    " agent_type = ? WHERE file_path = ?",
                    (until, None, None, pid, agent_id, None, path),
                )
            return agent_id if held is None else str(held[0] or held[1])

    def unlock(self, file: str, agent_id: str) -> bool:
        with self.opened() as database:
            where = (str(self.project / file), agent_id)
            ended = database.execute("DELETE FROM file_locks WHERE file_path = ? AND agent_name = ?", where)
            return ended.rowcount > 0

    def locks(self) -> dict[str, tuple[str, str, int | None]]:
        with self.opened() as database:
            rows = database.execute("SELECT file_path, agent_id, agent_type, pid FROM file_locks")
            return {str(Path(path).relative_to(self.project)): tuple(who) for path, *who in rows}

    def record(self, file: str, agent_id: str) -> None:
        with self.opened() as database:
            database.execute(
                "INSERT INTO file_modifications (task_id, agent_name, file_path, change_type, intent,"
                " affected_lines, metadata, timestamp) VALUES ('t9', ?, ?, 'MODIFY', NULL, NULL, NULL, ?)",
                (agent_id, str(self.project / file), _iso()),
            )

    def history(self, file: str) -> list[str]:
        with self.opened() as database:
            database.execute("DELETE FROM file_modifications WHERE timestamp < ?", (_iso(-30 * 24 * 60),))
            query = "SELECT agent_name FROM file_modifications WHERE file_path = ? ORDER BY timestamp DESC"
            return [name for (name,) in database.execute(query, (str(self.project / file),))]


def _iso(minutes: int = 0) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def original(shell: Shell) -> Original:
    return Original(shell.folder)


def live(shell: Shell, agent_id: str, pid: int) -> None:
    kind, port = agent_id.split("-")[1], int(agent_id.rpartition("-")[2])
    folder = str(shell.folder)
    started = process_start(pid) or 0.0
    shell.registry.register(
        RegistryEntry(
            agent_id,
            kind,
            port,
            f"http://127.0.0.1:{port}",
            pid,
            pid_started=started,
            working_dir=folder,
            project=folder,
        )
    )


async def locks(shell: Shell) -> list[tuple[object, object]]:
    found = await shell.run("file-safety", "locks", "--json")
    assert found.code == 0, found.err
    return [(lock["file_path"], lock["agent_name"]) for lock in json.loads(found.out)]


async def lock(shell: Shell, file: str, agent_id: str) -> Result:
    return await shell.run("file-safety", "lock", file, "--agent", agent_id)


def broken(original: Original) -> list[Path]:
    return list(original.file.parent.glob("*.broken-*"))


async def test_locks_of_the_original_are_listed_and_respected(shell: Shell, original: Original) -> None:
    original.lock("a.py", OTHER, os.getpid())
    assert await locks(shell) == [("a.py", OTHER)]
    refused = await lock(shell, "a.py", CODEX)
    assert (refused.code, f"locked by {OTHER}" in refused.out) == (4, True), refused.err
    assert (await shell.run("file-safety", "cleanup")).code == 0
    assert original.locks() == {"a.py": (OTHER, "gemini", os.getpid())}
    assert broken(original) == []
    assert original.unlock("a.py", OTHER)
    assert (await lock(shell, "a.py", CODEX)).code == 0


async def test_our_live_locks_are_respected_by_the_original(shell: Shell, original: Original) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "600")
    live(shell, CLAUDE, process.pid)
    assert (await lock(shell, "a.py", CLAUDE)).code == 0
    assert (await lock(shell, "b.py", "user")).code == 0
    held = {"a.py": (CLAUDE, "claude", process.pid), "b.py": ("user", None, None)}
    assert original.locks() == held
    assert [original.lock(file, OTHER, os.getpid()) for file in held] == [CLAUDE, "user"]
    assert await locks(shell) == [("a.py", CLAUDE), ("b.py", "user")]
    process.kill()
    await process.wait()
    assert original.lock("a.py", OTHER, os.getpid()) == OTHER, "its process is gone, so the lock is free"
    assert ("a.py", OTHER) in await locks(shell)
    assert (await shell.run("file-safety", "unlock", "b.py")).code == 0
    assert original.lock("b.py", OTHER, os.getpid()) == OTHER


@pytest.mark.parametrize("first", ["ours", "original"])
async def test_locks_end_with_processes_and_leases_for_both(
    shell: Shell, original: Original, first: str
) -> None:
    if first == "ours":
        assert (await lock(shell, "own.py", "user")).code == 0
    process = await asyncio.create_subprocess_exec("sleep", "600")
    original.lock("a.py", OTHER, process.pid)
    original.lock("b.py", OTHER, None, minutes=0)
    assert "b.py" not in dict(await locks(shell)), "its lease has ended"
    assert (await lock(shell, "a.py", CODEX)).code == 4
    process.kill()
    await process.wait()
    assert (await lock(shell, "a.py", CODEX)).code == 0


async def test_a_file_of_an_earlier_version_is_shared_from_now_on(shell: Shell, original: Original) -> None:
    now = datetime.now(UTC)
    written = (f"{now:%Y-%m-%d %H:%M:%S.%f}", f"{now + timedelta(minutes=5):%Y-%m-%d %H:%M:%S.%f}")
    process = f"{os.getpid()}:{process_start(os.getpid()):.2f}"
    with closing(sqlite3.connect(original.file)) as database, database:
        database.executescript(EARLIER)
    with original.opened():
        pass  # it adds its own columns
    with closing(sqlite3.connect(original.file)) as database, database:
        names = "id, file_path, agent_name, task_id, locked_at, expires_at, intent, process, call"
        database.execute(
            f"INSERT INTO file_locks ({names}) VALUES (7, 'src/a.py', ?, 't1', ?, ?, 'rename', ?, '')",
            (CLAUDE, *written, process),
        )
        database.execute(
            "INSERT INTO file_modifications VALUES (9, 't1', ?, 'src/a.py', 'MODIFY', '3', '', ?, '{}', '')",
            (CLAUDE, written[0]),
        )
    assert await locks(shell) == [("src/a.py", CLAUDE)]
    assert original.lock("src/a.py", OTHER, os.getpid()) == CLAUDE
    assert original.locks() == {"src/a.py": (CLAUDE, "claude", os.getpid())}
    assert original.history("src/a.py") == [CLAUDE]
    found = json.loads((await shell.run("file-safety", "history", "src/a.py", "--json")).out)
    assert [(each["id"], each["file_path"], each["affected_lines"]) for each in found] == [
        (9, "src/a.py", "3")
    ]


EARLIER = """
CREATE TABLE schema_version (id INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (1, 2);
CREATE TABLE file_locks (
    id INTEGER NOT NULL PRIMARY KEY, file_path VARCHAR NOT NULL UNIQUE, agent_name VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL, locked_at DATETIME NOT NULL, expires_at DATETIME NOT NULL,
    intent VARCHAR NOT NULL, process VARCHAR NOT NULL, call VARCHAR NOT NULL,
    file_name VARCHAR NOT NULL DEFAULT ''
);
CREATE TABLE file_modifications (
    id INTEGER NOT NULL PRIMARY KEY, task_id VARCHAR NOT NULL, agent_name VARCHAR NOT NULL,
    file_path VARCHAR NOT NULL, change_type VARCHAR NOT NULL, affected_lines VARCHAR NOT NULL,
    intent VARCHAR NOT NULL, timestamp DATETIME NOT NULL, metadata JSON NOT NULL,
    file_name VARCHAR NOT NULL DEFAULT ''
);
"""


async def test_a_healthy_database_is_never_renamed(shell: Shell, original: Original) -> None:
    with closing(sqlite3.connect(original.file)) as database, database:
        database.execute("CREATE TABLE places (url)")
    before = original.file.read_bytes()
    refused = await shell.run("file-safety", "locks")
    assert (refused.code, "is no database of synapse-tui" in refused.err) == (1, True), refused.err
    assert (original.file.read_bytes(), broken(original)) == (before, [])


async def test_a_broken_database_is_renamed_with_a_word(shell: Shell, original: Original) -> None:
    original.file.write_bytes(b"no database at all" * 100)
    listed = await shell.run("file-safety", "locks")
    (moved,) = broken(original)
    assert (listed.code, str(moved) in listed.err) == (0, True), listed.err


async def test_the_original_renews_a_lock_of_ours(shell: Shell, original: Original) -> None:
    one, two = [await asyncio.create_subprocess_exec("sleep", "600") for _ in range(2)]
    live(shell, CLAUDE, one.pid)
    await lock(shell, "a.py", CLAUDE)
    assert original.lock("a.py", CLAUDE, two.pid) == CLAUDE
    one.kill()
    await one.wait()
    assert (await lock(shell, "a.py", CODEX)).code == 4, "the process that renewed it lives"
    two.kill()
    await two.wait()
    assert (await lock(shell, "a.py", CODEX)).code == 0


async def test_changes_of_files_are_seen_by_both(shell: Shell, original: Original) -> None:
    original.record("a.py", OTHER)
    assert (await shell.run("file-safety", "record", "a.py", "--agent", CODEX)).code == 0
    assert original.history("a.py") == [CODEX, OTHER]
    found = json.loads((await shell.run("file-safety", "history", "a.py", "--json")).out)
    assert [each["agent_name"] for each in found] == [CODEX, OTHER]
    assert (found[1]["intent"], found[1]["affected_lines"]) == ("", "")


async def test_a_file_is_one_whatever_links_lead_to_it(shell: Shell, original: Original) -> None:
    (shell.folder / "src").mkdir()
    (shell.folder / "link").symlink_to("src")
    original.lock("link/a.py", OTHER, os.getpid())
    assert (await lock(shell, "src/a.py", CODEX)).code == 4
    assert await locks(shell) == [("src/a.py", OTHER)]
    assert (await shell.run("file-safety", "unlock", "src/a.py", "--force")).code == 0
    assert original.locks() == {}
