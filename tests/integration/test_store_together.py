"""Two hosts and commands write the same files at once: nobody is told that a database is locked."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from synapse_tui.core.events import EventBus
from synapse_tui.core.locks import ChangeType, Holder, Modification
from synapse_tui.core.model import DeliveryState, MessageRequest, Sender, TaskState
from synapse_tui.hooks.lock_database import LockDatabase
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.records import AgentKey, TaskQuery
from synapse_tui.messages.storage.sqlite import open_engine
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.system.process_times import is_alive, process_name

MESSAGES = 25
ROUNDS = 10


async def be_a_host(folder: Path, number: int) -> None:
    """Write messages as a host does, each on the disk before Enter and in the end, and take locks."""
    told: list[str] = []
    history = History(
        folder / "history.db",
        owner=process_name(os.getpid()),
        alive=is_alive,
        notify=lambda text, _: told.append(text),
    )
    safety = await asyncio.to_thread(LockDatabase, folder / "safety.db", alive=is_alive)
    key = AgentKey(f"/project{number}", f"synapse-dummy-{number}", "dummy")
    journal = AgentJournal(history, key)
    book = TaskStore(key.agent_id, "context", EventBus(), journal=journal)
    outbox = Outbox(book)
    await journal.waiting("context")
    for count in range(MESSAGES):
        task = book.create(MessageRequest(f"message {count}", Sender("user", "user")))
        outbox.put(task)
        await journal.flush()
        book.change(task.id, delivery=DeliveryState.SUBMITTING)
        await journal.flush()
        outbox.take(task.id)
        book.change(task.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
        await asyncio.to_thread(lock_something, safety, key.agent_id, count)
    await journal.flush()
    await history.close()
    safety.close()
    print("\n".join(told))


def be_commands(folder: Path) -> None:
    """Open both databases, search, lock, note, remove: each time anew, as commands do."""
    for count in range(ROUNDS):
        archive = Archive(folder / "history.db")
        archive.select(TaskQuery(query="message"))
        archive.close()
        safety = LockDatabase(folder / "safety.db", alive=is_alive)
        lock_something(safety, "user", count)
        safety.close()


def lock_something(safety: LockDatabase, who: str, count: int) -> None:
    from datetime import UTC, datetime

    file = f"f{count % 3}"
    if safety.acquire_locks([file], Holder(who)).allowed:
        safety.record_modification(Modification(file, ChangeType.MODIFY, who, "t", datetime.now(UTC)))
        safety.release_lock(file, who)


def test_two_hosts_and_commands_write_at_once(tmp_path: Path) -> None:
    """The files are made by all of them at the same moment, too."""
    words = (("host", "1"), ("host", "2"), ("commands", "3"))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.integration.test_store_together", str(tmp_path), *each],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for each in words
    ]
    while len(list(tmp_path.glob("ready-*"))) < len(words):
        time.sleep(0.01)
    (tmp_path / "go").touch()
    said = [process.communicate()[0].strip() for process in started]
    assert said == ["", "", ""]
    assert [process.returncode for process in started] == [0, 0, 0]
    with closing(sqlite3.connect(tmp_path / "history.db")) as connection:
        (found,) = connection.execute("SELECT count(*) FROM tasks WHERE finished_at IS NOT NULL").fetchone()
        assert found == 2 * MESSAGES
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(sqlite3.connect(tmp_path / "safety.db")) as connection:
        assert connection.execute("SELECT count(*) FROM file_locks").fetchone() == (0,)


if __name__ == "__main__":
    place, what, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    (place / f"ready-{name}").touch()
    while not (place / "go").exists():
        time.sleep(0.001)
    if what == "host":
        asyncio.run(be_a_host(place, int(name)))
    else:
        be_commands(place)


INSERT = """
import sys
from pathlib import Path
from synapse_tui.messages.storage.sqlite import open_engine
engine, _ = open_engine(Path(sys.argv[1]), steps=())
with engine.begin() as connection:
    connection.exec_driver_sql("INSERT INTO notes VALUES ('of another process')")
engine.dispose()
"""


def test_a_file_that_is_opened_twice_keeps_its_log_when_another_process_leaves(tmp_path: Path) -> None:
    file = tmp_path / "private" / "notes.db"
    first, _ = open_engine(file, steps=())
    with first.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (text)")
    second, _ = open_engine(file, steps=())
    subprocess.run([sys.executable, "-c", INSERT, str(file)], check=True, timeout=60)
    assert file.with_name("notes.db-wal").exists(), "it was removed below two that use it"
    with first.begin() as connection:
        connection.exec_driver_sql("INSERT INTO notes VALUES ('of this one')")
    first.dispose()
    second.dispose()
    with closing(sqlite3.connect(file)) as database:
        texts = {text for (text,) in database.execute("SELECT text FROM notes")}
    assert texts == {"of another process", "of this one"}
