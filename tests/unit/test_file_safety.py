"""Names of files, touched lines, and locks and modifications in a database."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import ScalarResult

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.locks import (
    ChangeType,
    FileKeys,
    Holder,
    Modification,
    ModificationQuery,
)
from synapse_tui.hooks.changed_lines import lines_of_texts
from synapse_tui.hooks.lock_database import LockDatabase
from synapse_tui.messages.quick import held_locks

CLAUDE = Holder("synapse-claude-8100", "task-1", "10:1")
CODEX = Holder("synapse-codex-8120", "", "20:1")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def goes(self, **span: float) -> None:
        self.now += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gone() -> set[str]:
    return set()


@pytest.fixture
def safety(tmp_path: Path, clock: Clock, gone: set[str]) -> Iterator[LockDatabase]:
    store = LockDatabase(tmp_path / ".synapse/file_safety.db", alive=lambda who: who not in gone, clock=clock)
    yield store
    store.close()


# -- names of files ---


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    return folder


def test_every_way_to_write_a_file_leads_to_one_key(project: Path) -> None:
    keys = FileKeys(project, folds_case=False)
    (project / "link").symlink_to(project / "src")
    (project / "src/a.py").touch()
    (project / "b.py").symlink_to("src/a.py")
    (project.parent / "away").symlink_to(project)
    ways = [
        keys.key("src/a.py"),
        keys.key("./src/../src/a.py"),
        keys.key(project / "src/a.py"),
        keys.key("link/a.py"),
        keys.key("b.py"),
        keys.key(project.parent / "away/src/a.py"),
        keys.key("a.py", project / "src"),
        keys.key("../src/a.py", project / "link"),
    ]
    assert set(ways) == {"src/a.py"}
    assert keys.path("src/a.py") == project / "src/a.py"


def test_files_that_do_not_exist_or_lie_elsewhere_have_keys(project: Path) -> None:
    keys = FileKeys(project, folds_case=False)
    assert keys.key("new/one.txt") == "new/one.txt"
    assert keys.key("../other.txt") == str(project.parent / "other.txt")
    assert keys.key("~/notes") == os.path.realpath(Path("~/notes").expanduser())


def test_forms_and_cases_of_letters_are_one_where_the_file_system_says_so(project: Path) -> None:
    keys = FileKeys(project, folds_case=True)
    assert keys.key("SRC/Ａ.py") == keys.key("src/ａ.py")
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert FileKeys(project, folds_case=False).key(composed) == FileKeys(project, folds_case=False).key(
        decomposed
    )
    assert FileKeys(project, folds_case=False).key("A") != FileKeys(project, folds_case=False).key("a")


def test_a_file_is_found_in_the_case_of_its_folders(project: Path) -> None:
    keys = FileKeys(project, folds_case=True)
    (project / "Docs").mkdir()
    (project / "Docs/Read.ME").touch()
    assert keys.spelled(keys.key("Docs/Read.ME")) == project / "Docs/Read.ME"
    assert keys.spelled(keys.key("Docs/New.py")) == project / "Docs/new.py"
    assert FileKeys(project, folds_case=False).spelled("Src/x") == project / "Src/x"


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_is_no_name_of_a_file_is_refused(project: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        FileKeys(project).key(name)


# -- lines ---


@pytest.mark.parametrize(
    ("before", "after", "touched"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", "2"),
        ("", "a\nb\n", "1-2"),
        ("a\nb\nc\nd\n", "a\nd\n", "2"),
        ("a\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\nE\nF\n", "1,5-6"),
        ("same\n", "same\n", ""),
        ("a\nb\n", "a\n", "2"),
    ],
)
def test_touched_lines_of_texts(before: str, after: str, touched: str) -> None:
    assert lines_of_texts(before, after) == touched


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_lines_that_are_not_named_are_those_of_before(old: list[str], new: list[str]) -> None:
    named = lines_of_texts("\n".join(old), "\n".join(new))
    assert (named == "") == (old == new or "\n".join(old) == "\n".join(new))
    touched = {
        n
        for part in named.split(",")
        if part
        for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)
    }
    kept = [line for at, line in enumerate(new, 1) if at not in touched]
    rest = iter(old)
    assert all(line in rest for line in kept)


# -- locks ---


def test_a_lock_is_of_one_agent(safety: LockDatabase) -> None:
    taken = safety.acquire_locks(["a.py"], CLAUDE, intent="refactor")
    assert taken.allowed
    refused = safety.acquire_locks(["a.py"], CODEX)
    assert not refused.allowed
    assert refused.reason == "locked by synapse-claude-8100"
    assert safety.acquire_locks(["a.py"], CLAUDE).allowed
    [lock] = safety.locks()
    assert (lock.file, lock.agent_id, lock.task_id, lock.intent) == (
        "a.py",
        "synapse-claude-8100",
        "task-1",
        "refactor",
    )


def test_only_its_holder_gives_a_lock_back(safety: LockDatabase) -> None:
    safety.acquire_locks(["a.py"], CLAUDE)
    assert not safety.release_lock("a.py", CODEX.agent_id)
    assert safety.release_lock("a.py", CLAUDE.agent_id)
    assert not safety.release_lock("a.py", CLAUDE.agent_id)
    assert safety.acquire_locks(["a.py"], CODEX).allowed


def test_several_locks_are_taken_together_or_not_at_all(safety: LockDatabase) -> None:
    safety.acquire_locks(["b"], CODEX)
    refused = safety.acquire_locks(["a", "b", "c"], CLAUDE)
    assert not refused.allowed
    assert [lock.file for lock in safety.locks()] == ["b"]
    assert safety.acquire_locks(["a", "c", "a"], CLAUDE).allowed
    assert [lock.file for lock in safety.locks(CLAUDE.agent_id)] == ["a", "c"]
    assert safety.acquire_locks([], CLAUDE).allowed


def test_several_locks_are_given_back_together(safety: LockDatabase) -> None:
    call = Holder(CLAUDE.agent_id, call="1")
    safety.acquire_locks(["a", "b"], call)
    safety.acquire_locks(["c"], CODEX)
    safety.acquire_locks(["d"], CLAUDE)
    assert safety.release_locks(["a", "c", "d", "gone"], CLAUDE.agent_id, call="1") == ["a"]
    assert safety.release_locks([], CLAUDE.agent_id) == []
    assert safety.release_locks(["d", "b", "c"], CLAUDE.agent_id) == ["b", "d"]
    assert [lock.file for lock in safety.locks()] == ["c"]


def test_no_other_locks_are_read_when_one_is_taken_or_released(
    safety: LockDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    read = ScalarResult.all

    def count(result: ScalarResult[Any]) -> Sequence[Any]:
        rows = read(result)
        counts.append(len(rows))
        return rows

    safety.acquire_locks([f"/p/file {number}" for number in range(100)], CLAUDE)
    monkeypatch.setattr(ScalarResult, "all", count)
    for holder in (CLAUDE, CODEX):
        assert safety.acquire_locks(["/p/mine"], holder).allowed
        assert safety.release_lock("/p/mine", holder.agent_id)
    assert safety.acquire_locks(["/p/mine"], CODEX).allowed
    assert safety.break_lock("/p/mine")
    assert max(counts) == 1


def test_a_lock_ends_with_its_lease_unless_it_is_renewed(safety: LockDatabase, clock: Clock) -> None:
    worker = Holder(CLAUDE.agent_id, call="1")
    safety.acquire_locks(["a"], worker)
    safety.acquire_locks(["b"], worker)
    safety.acquire_locks(["c"], CLAUDE)
    clock.goes(minutes=4)
    assert safety.renew(CLAUDE.agent_id) == 2
    clock.goes(minutes=4)
    assert not safety.acquire_locks(["a"], CODEX).allowed
    clock.goes(minutes=2)
    assert safety.acquire_locks(["a"], CODEX).allowed
    assert [lock.file for lock in safety.locks()] == ["a"]
    assert safety.renew(CLAUDE.agent_id) == 0


ODD_TIMES = [
    "{:%Y-%m-%d %H:%M:%S}",
    "{:%Y-%m-%dT%H:%M:%S}",
    "{:%Y-%m-%dT%H:%M:%S}.123",
    "{:%Y-%m-%dT%H:%M:%S}.123+00:00",
    "{:%Y-%m-%d %H:%M:%S}.123456+00:00",
    "{:%Y-%m-%dT%H:%M:%S}Z",
    "{:%Y-%m-%dT%H:%M:%S}+0000",
    "{:%Y-%m-%d %H:%M:%S} UTC",
    "{:%Y%m%dT%H%M%S}",
    "{:%s}",
    "{:%s}.5",
]


def written(form: str, when: datetime) -> str:
    return form.replace("%s", "").format(int(when.timestamp())) if "%s" in form else form.format(when)


def put_lock(tmp_path: Path, file: str, expires: str, locked: str = "2026-05-01 10:00:00") -> None:
    """A row as another program or a hand writes it."""
    with closing(sqlite3.connect(tmp_path / ".synapse/file_safety.db")) as connection, connection:
        connection.execute(
            "INSERT INTO file_locks (file_path, agent_name, task_id, locked_at, expires_at)"
            " VALUES (?, 'synapse-claude-8100', '', ?, ?)",
            (file, locked, expires),
        )


@pytest.mark.parametrize("form", [*ODD_TIMES, "soon", "", "9" * 400, "{:%Y-%m-%d}"])
def test_a_lock_whose_time_others_wrote_ends_and_is_removed(
    safety: LockDatabase, clock: Clock, tmp_path: Path, form: str
) -> None:
    safety.locks()
    for file in ("a", "b"):
        put_lock(tmp_path, str(tmp_path / file), written(form, clock.now - timedelta(minutes=1)))
    a = str(tmp_path / "a")
    assert safety.acquire_locks([a], CODEX).allowed
    assert [(lock.file, lock.agent_id) for lock in safety.locks()] == [(a, CODEX.agent_id)]
    put_lock(tmp_path, str(tmp_path / "c"), written(form, clock.now - timedelta(minutes=1)))
    assert safety.cleanup(clock.now)[1] == 1
    with closing(sqlite3.connect(tmp_path / ".synapse/file_safety.db")) as connection:
        assert connection.execute("SELECT file_path FROM file_locks").fetchall() == [(a,)]


@pytest.mark.parametrize("form", ODD_TIMES)
def test_a_lock_whose_time_others_wrote_holds_until_then(
    safety: LockDatabase, clock: Clock, tmp_path: Path, form: str
) -> None:
    safety.locks()
    file, end = str(tmp_path / "a"), clock.now + timedelta(minutes=3)
    put_lock(tmp_path, file, written(form, end))
    assert not safety.acquire_locks([file], CODEX).allowed
    (lock,) = safety.locks()
    assert abs(lock.expires_at - end) < timedelta(seconds=1)
    with closing(sqlite3.connect(tmp_path / ".synapse/file_safety.db")) as connection, connection:
        connection.execute("UPDATE file_locks SET call = '1', expires_at = ?", (written(form, end),))
    assert safety.renew(CLAUDE.agent_id) == 1
    clock.goes(minutes=4)
    assert not safety.acquire_locks([file], CODEX).allowed, "its lease was renewed"
    clock.goes(minutes=2)
    assert safety.acquire_locks([file], CODEX).allowed


@pytest.mark.parametrize("form", ODD_TIMES)
def test_what_reads_locks_without_the_database_reads_the_same_times(
    safety: LockDatabase, tmp_path: Path, form: str
) -> None:
    safety.locks()
    now = datetime.now(UTC)
    put_lock(tmp_path, str(tmp_path / "a"), written(form, now + timedelta(hours=2)))
    put_lock(tmp_path, str(tmp_path / "b"), written(form, now - timedelta(hours=2)))
    found = held_locks(tmp_path / ".synapse/file_safety.db", FileKeys(tmp_path), alive=bool)
    assert [lock.file for lock in found or ()] == ["a"]


@pytest.mark.parametrize("form", ODD_TIMES)
def test_changes_whose_times_others_wrote_are_found_and_removed_by_time(
    safety: LockDatabase, clock: Clock, tmp_path: Path, form: str
) -> None:
    safety.record_modification(change(clock, "f"))
    clock.goes(hours=-1)  # on the same day, where text compares wrongly

    def rewrite() -> None:
        with closing(sqlite3.connect(tmp_path / ".synapse/file_safety.db")) as connection, connection:
            connection.execute("UPDATE file_modifications SET timestamp = ?", (written(form, clock.now),))

    rewrite()
    asked = [clock.now - timedelta(minutes=1), clock.now + timedelta(minutes=1)]
    found = [len(safety.modifications(ModificationQuery(since=since))) for since in asked]
    assert found == [1, 0]
    rewrite()
    assert [safety.cleanup(before)[0] for before in asked] == [0, 1]


def test_the_locks_of_a_process_that_is_gone_are_free(safety: LockDatabase, gone: set[str]) -> None:
    safety.acquire_locks(["a"], CLAUDE)
    gone.add(CLAUDE.process)
    assert safety.locks() == []
    assert safety.acquire_locks(["a"], CODEX).allowed


def test_a_tool_call_ends_its_own_lock_only(safety: LockDatabase) -> None:
    first, second = Holder("a-1", call="1"), Holder("a-1", call="2")
    safety.acquire_locks(["f"], first)
    safety.acquire_locks(["f"], second)
    assert not safety.release_lock("f", "a-1", call="1")
    safety.acquire_locks(["g"], first)
    safety.acquire_locks(["h"], Holder("a-1"))
    assert safety.release_agent("a-1", calls_only=True) == ["f", "g"]
    assert safety.release_agent("a-1") == ["h"]


def test_a_lock_that_was_asked_for_outlives_the_tools_that_write_the_file(safety: LockDatabase) -> None:
    call = Holder("a-1", call="1")
    safety.acquire_locks(["f"], Holder("a-1"))
    safety.acquire_locks(["f"], call)
    assert not safety.release_lock("f", "a-1", call="1")
    assert safety.release_agent("a-1", calls_only=True) == []
    safety.acquire_locks(["g"], call)
    safety.acquire_locks(["g"], Holder("a-1"))
    assert not safety.release_lock("g", "a-1", call="1")
    assert [lock.file for lock in safety.locks("a-1")] == ["f", "g"]


def test_a_person_takes_a_lock_from_whoever_holds_it(safety: LockDatabase, clock: Clock) -> None:
    person = Holder("user")
    assert safety.steal_lock("a", person) is None
    safety.release_agent("user")
    safety.acquire_locks(["a"], CLAUDE, intent="rename")
    clock.goes(minutes=1)
    before = safety.steal_lock("a", person, intent="by hand")
    assert before is not None
    assert (before.agent_id, before.intent) == (CLAUDE.agent_id, "rename")
    [lock] = safety.locks()
    assert (lock.agent_id, lock.intent, lock.locked_at) == ("user", "by hand", clock.now)
    assert safety.acquire_locks(["a"], CLAUDE).reason == "locked by user"
    assert not safety.release_lock("a", CLAUDE.agent_id)
    assert safety.steal_lock("a", person) is None
    clock.goes(minutes=6)
    assert safety.acquire_locks(["a"], CLAUDE).allowed


# -- modifications ---


def change(clock: Clock, file: str, agent: str = CLAUDE.agent_id, **fields: object) -> Modification:
    values = {"change": ChangeType.MODIFY, "task_id": "t", "time": clock.now} | fields
    return Modification(file=file, agent_id=agent, **values)  # type: ignore[arg-type]


def test_modifications_are_told_the_newest_first(safety: LockDatabase, clock: Clock) -> None:
    safety.record_modification(change(clock, "a", lines="1-3", metadata={"tool": "Edit"}))
    clock.goes(minutes=1)
    safety.record_modification(change(clock, "a", CODEX.agent_id, change=ChangeType.DELETE))
    safety.record_modification(change(clock, "b"))
    every = safety.modifications()
    assert [(each.file, each.change) for each in every] == [
        ("b", ChangeType.MODIFY),
        ("a", ChangeType.DELETE),
        ("a", ChangeType.MODIFY),
    ]
    assert (every[2].lines, every[2].metadata) == ("1-3", {"tool": "Edit"})
    assert every[2].time == clock.now - timedelta(minutes=1)
    of = safety.modifications
    assert len(of(ModificationQuery(file="a"))) == 2
    assert [each.file for each in of(ModificationQuery(agent_id=CODEX.agent_id))] == ["a"]
    assert [each.file for each in of(ModificationQuery(but=CODEX.agent_id, since=clock.now))] == ["b"]
    assert [each.id for each in of(ModificationQuery(after=every[1].id))] == [every[0].id]
    assert len(of(ModificationQuery(limit=1))) == 1


def test_old_modifications_and_dead_locks_are_removed(
    safety: LockDatabase, clock: Clock, gone: set[str]
) -> None:
    for number in range(1200):
        if number % 400 == 0:
            clock.goes(days=1)
            safety.record_modification(change(clock, f"f{number}"))
    safety.acquire_locks(["x"], CLAUDE)
    safety.acquire_locks(["y"], CODEX)
    gone.add(CLAUDE.process)
    assert safety.cleanup(clock.now - timedelta(hours=30)) == (1, 1)
    assert len(safety.modifications()) == 2


# -- the file ---


@pytest.mark.parametrize("kind", ["text", "database"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "places.sqlite"
    if kind == "database":
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE places (url)")
            other.commit()
    else:
        path.write_bytes(b"root:x:0:0:root:/root:/bin/bash\n" * 100)
    path.chmod(0o644)
    tmp_path.chmod(0o755)
    before = path.read_bytes()
    with pytest.raises(HistoryError, match=r"places\.sqlite is no database of synapse-tui"):
        LockDatabase(path, alive=lambda _: True)
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["places.sqlite"]


def test_a_folder_that_is_not_ours_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "locks.db"
    for _ in range(2):
        store = LockDatabase(path, alive=lambda _: True)
        assert store.acquire_locks(["a"], CLAUDE).allowed
        store.close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_the_original_uses_too_is_not_read_before_it_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "file_safety.db"
    with closing(LockDatabase(path, alive=lambda _: True)) as safety:
        assert safety.acquire_locks(["a.py"], Holder("synapse-claude-8100")).allowed
        found = held_locks(path, FileKeys(tmp_path), alive=lambda _: True)
        assert found == safety.locks()
    earlier = tmp_path / "earlier.db"
    with closing(sqlite3.connect(earlier)) as database, database:
        database.execute(
            "CREATE TABLE file_locks (id INTEGER PRIMARY KEY, file_path, file_name, agent_name, intent,"
            " locked_at, expires_at, process, call, task_id VARCHAR NOT NULL)"
        )
        assert held_locks(earlier, FileKeys(tmp_path), alive=lambda _: True) == []
        database.execute("ALTER TABLE file_locks ADD COLUMN pid INTEGER")
    assert held_locks(earlier, FileKeys(tmp_path), alive=lambda _: True) is None
