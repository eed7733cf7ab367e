"""The history as a person reads it: filters, search in any script, counts, removal."""

from __future__ import annotations

import itertools
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, event, text

from synapse_tui.core.errors import HistoryError, TaskNotFound
from synapse_tui.messages import search_sqlite
from synapse_tui.messages.archive import Archive
from synapse_tui.messages.quick import listed_tasks
from synapse_tui.messages.records import Change, TaskQuery, said_once
from synapse_tui.messages.search import Count, folded, terms_of
from synapse_tui.messages.search_sqlite import words_of
from tests.work import work

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Shelf:
    """An archive and the tasks in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.archive = Archive(path, busy=0.5)
        self.count = 0

    def put(self, text: str = "hello", answer: str = "", *, minutes: int = 0, **fields: object) -> str:
        """Write a task as hosts do."""
        self.count += 1
        task_id = str(fields.pop("id", f"{self.count:08d}-0000"))
        made = NOW + timedelta(minutes=minutes or self.count)
        row: dict[str, object] = {
            "id": task_id,
            "agent_name": "synapse-claude-8100",
            "agent_type": "claude",
            "project": "/project",
            "context_id": "c",
            "peer_task_id": "",
            "sender_id": "user",
            "sender_type": "user",
            "sender_endpoint": "",
            "sender_verified": 1,
            "input": text,
            "output": answer,
            "truncated": 0,
            "status": "completed",
            "delivery": "done",
            "reason": "",
            "priority": 3,
            "response_expected": 0,
            "metadata": "{}",
            "owner": "1:1",
            "created_at": stored(made),
            "updated_at": stored(made),
            "submitted_at": stored(made),
            "finished_at": stored(made + timedelta(seconds=10)),
        } | fields
        names = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(f"INSERT INTO tasks ({names}) VALUES ({marks})", row)
        return task_id

    def change(self, task_id: str, **fields: object) -> None:
        names = ", ".join(f"{name} = :{name}" for name in fields)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(f"UPDATE tasks SET {names} WHERE id = :task", fields | {"task": task_id})

    def ask(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query).fetchall()

    def tidy(self) -> None:
        while self.archive.tidy(1):
            pass

    def reopen(self) -> None:
        self.archive.close()
        self.archive = Archive(self.path, busy=0.5)

    def found(self, query: str, **fields: object) -> list[str]:
        wanted = TaskQuery(query=query, **fields)  # type: ignore[arg-type]
        records = self.archive.select(wanted)
        assert listed_tasks(self.path, wanted) == (None if query else records), "commands read the same"
        return [record.task.text for record in records]


def stored(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "history.db")
    yield shelf
    shelf.archive.close()


def test_tasks_are_listed_the_newest_first_by_what_is_asked(shelf: Shelf) -> None:
    shelf.put("one")
    shelf.put("two", agent_name="synapse-codex-8120", agent_type="codex", status="failed")
    shelf.put("three", project="/other", sender_id="synapse-codex-8120")
    shelf.put("an answer that is waited for", sender_id="synapse-claude-8100")
    assert shelf.found("") == ["three", "two", "one"]
    assert shelf.found("", agent="codex") == ["two"]
    assert shelf.found("", agent="synapse-claude-8100") == ["three", "one"]
    assert shelf.found("", states=("failed",)) == ["two"]
    assert shelf.found("", project="/other") == ["three"]
    assert shelf.found("", sender="synapse-codex-8120") == ["three"]
    assert shelf.found("", since=NOW + timedelta(minutes=2)) == ["three", "two"]
    assert shelf.found("", until=NOW + timedelta(minutes=2)) == ["one"]
    assert len(list(shelf.archive.walk(TaskQuery(limit=1)))) == 3


def test_commands_read_only_tables_that_they_know(shelf: Shelf) -> None:
    shelf.put("one", metadata='{"a": 1}', messages='[{"role": "user", "parts": [], "message_id": "m"}]')
    found = listed_tasks(shelf.path, TaskQuery())
    assert found
    assert found == shelf.archive.select(TaskQuery())
    with closing(sqlite3.connect(shelf.path)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = version + 1")
    assert listed_tasks(shelf.path, TaskQuery()) is None
    assert listed_tasks(shelf.path.with_name("none.db"), TaskQuery()) == []
    shelf.path.with_name("broken.db").write_bytes(b"no database" * 1000)
    assert listed_tasks(shelf.path.with_name("broken.db"), TaskQuery()) is None


@pytest.mark.parametrize("query", ["", "text", "の"])
def test_pages_follow_one_another_whatever_comes_meanwhile(shelf: Shelf, query: str) -> None:
    every = [f"text の {number}" for number in range(7)]
    for number in (3, 0, 6, 1, 5, 2, 4):
        shelf.put(every[number], id=f"{number * 77 % 10}", minutes=number + 1)
    shelf.archive.index()
    page = shelf.archive.page(TaskQuery(query=query, limit=3))
    seen = [record.task.text for record in page.items]
    while page.cursor:
        shelf.put(f"text の {len(every)}", minutes=100)
        shelf.archive.index()
        page = shelf.archive.page(TaskQuery(query=query, limit=3, cursor=page.cursor))
        seen += [record.task.text for record in page.items]
    assert seen == every[::-1], "the newest first, in whatever order they were written and indexed"


def test_what_is_looked_up_is_chosen_like_what_is_listed(shelf: Shelf) -> None:
    shelf.put("one of them", minutes=1)
    shelf.put("two of them", minutes=2, status="working", agent_name="synapse-codex-8120", agent_type="codex")
    shelf.put("three of them", minutes=3, project="/other", sender_id="synapse-codex-8120")
    shelf.archive.index()
    with closing(sqlite3.connect(shelf.path)) as connection, connection:
        connection.execute("UPDATE tasks SET status = 'failed' WHERE status = 'working'")
    since, until = NOW + timedelta(minutes=2), NOW + timedelta(minutes=3)
    for fields in (
        {"agent": "codex"},
        {"sender": "synapse-codex-8120"},
        {"states": ("failed", "canceled")},
        {"states": ("working",)},
        {"project": "/other"},
        {"since": since},
        {"until": until},
        {"since": since, "until": until},
    ):
        assert shelf.found("of them", **fields) == shelf.found("", **fields), fields
    assert shelf.archive.index() == 0, "another state is no other text"


@pytest.mark.parametrize(
    ("few", "long", "window"), [(1000, 10**6, 500), (1, 10**6, 1), (6, 10**6, 2), (1000, 40, 2)]
)
def test_every_way_of_reading_the_indices_finds_the_same(
    shelf: Shelf, few: int, long: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_sqlite, "FEW", few)
    monkeypatch.setattr(search_sqlite, "LONG", long)
    monkeypatch.setattr(search_sqlite, "WINDOW", window)
    chance = random.Random(4)
    words, agents = ("parser", "terminal", "日本", "語", "ok"), ("claude", "codex")
    texts: dict[str, tuple[str, str]] = {}
    for number in range(40):
        some = f"{number}: {' '.join(word for word in words if chance.random() < 0.5)}"
        texts[some] = chance.choice(agents), chance.choice(("/a", "/b"))
        agent, project = texts[some]
        before = chance.choice(("", "parser 日本 ok "))  # in the index, and of no use there
        task_id = shelf.put(before + some, agent_name=f"synapse-{agent}-1", agent_type=agent, project=project)
        if before:
            shelf.archive.index()
            shelf.change(task_id, input=some)
    shelf.archive.index()
    for count in (1, 2):
        for asked in itertools.combinations(words, count):
            for agent, project in (("", ""), ("codex", ""), ("claude", "/b")):
                wanted = [
                    some
                    for some, (of, place) in texts.items()
                    if all(word in some for word in asked) and agent in ("", of) and project in ("", place)
                ][::-1]
                query = TaskQuery(query=" ".join(asked), agent=agent, project=project)
                page = shelf.archive.page(replace(query, limit=3))
                assert [each.task.text for each in page.items] == wanted[:3], query
                if page.cursor:
                    page = shelf.archive.page(replace(query, limit=3, cursor=page.cursor))
                    assert [each.task.text for each in page.items] == wanted[3:6], query


def test_tasks_that_are_not_kept_are_never_indexed(shelf: Shelf) -> None:
    shelf.put("a secret", kept=0)
    shelf.put("no secret")
    assert shelf.found("secret") == ["no secret"]
    with closing(sqlite3.connect(shelf.path)) as connection, connection:
        connection.execute("UPDATE tasks SET kept = 0")
    assert shelf.found("secret") == []


def test_a_query_is_ended_by_another_thread(shelf: Shelf) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    begun, ended = threading.Event(), threading.Event()

    def count(connection: Connection, _wanted: TaskQuery) -> list[Count]:
        begun.set()
        connection.execute(text(endless))
        return []

    def interrupt() -> None:
        begun.wait()
        while not ended.is_set():
            shelf.archive.interrupt()

    shelf.archive._dialect.count = count  # type: ignore[assignment]
    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(HistoryError, match="interrupted"):
        shelf.archive.stats(TaskQuery())
    ended.set()
    other.join()
    assert shelf.found("") == [], "the next one is answered"


FORMER = """
CREATE TABLE search_docs (
    id INTEGER PRIMARY KEY, task_id VARCHAR NOT NULL UNIQUE, project VARCHAR NOT NULL,
    agent_name VARCHAR NOT NULL, agent_type VARCHAR NOT NULL, sender_id VARCHAR NOT NULL,
    status VARCHAR NOT NULL);
CREATE TABLE search_stale (
    created_at DATETIME NOT NULL, task_id VARCHAR NOT NULL, PRIMARY KEY (created_at, task_id)) WITHOUT ROWID;
CREATE VIRTUAL TABLE search_long USING fts5(body, tokenize='trigram');
CREATE VIRTUAL TABLE search_short USING fts5(body, tokenize='ascii', prefix='7');
CREATE TRIGGER search_added AFTER INSERT ON tasks BEGIN
    INSERT OR IGNORE INTO search_stale VALUES (new.created_at, new.id); END;
CREATE TRIGGER search_changed AFTER UPDATE OF input, output, kept ON tasks BEGIN
    INSERT OR IGNORE INTO search_stale VALUES (new.created_at, new.id); END;
CREATE TRIGGER search_removed AFTER DELETE ON tasks BEGIN
    INSERT OR IGNORE INTO search_stale VALUES (old.created_at, old.id); END;
CREATE TRIGGER search_moved AFTER UPDATE OF status ON tasks BEGIN
    UPDATE search_docs SET status = new.status WHERE task_id = new.id; END;
INSERT INTO search_stale SELECT created_at, id FROM tasks;
INSERT INTO search_long (rowid, body) SELECT rowid + 1000, input FROM tasks;
"""
"""What hosts of earlier versions make, which hold the texts twice."""
FORMER_NAMES = """SELECT name FROM sqlite_master WHERE name GLOB 'search_long*' OR name GLOB 'search_short*'
    OR name IN ('search_docs', 'search_stale', 'search_added', 'search_changed', 'search_removed')
    OR name = 'search_moved'"""


WASTE = "SELECT name FROM sqlite_master WHERE name GLOB 'search_waste*'"


def test_an_index_of_before_stays_while_another_process_has_the_file_open(shelf: Shelf) -> None:
    shelf.put("the parser")
    with closing(sqlite3.connect(shelf.path)) as other:
        other.executescript(FORMER)
        shelf.reopen()
        assert shelf.found("parse") == ["the parser"]
        shelf.put("another parser")
        assert other.execute("SELECT COUNT(*) FROM search_stale").fetchone() == (2,)
        assert shelf.found("parse") == ["another parser", "the parser"]
    shelf.reopen()
    assert shelf.ask(FORMER_NAMES) == []
    shelf.tidy()
    assert shelf.ask(WASTE) == []
    assert shelf.found("parse") == ["another parser", "the parser"]


def test_who_opens_the_file_while_an_index_of_before_goes_waits(shelf: Shelf) -> None:
    with closing(sqlite3.connect(shelf.path)) as connection:
        connection.executescript(FORMER)
    shelf.archive.close()
    found: list[object] = []

    def open_archive() -> None:
        archive = Archive(shelf.path)
        archive.index()
        found.append(archive.select(TaskQuery(query="parse")))
        archive.close()

    others = [threading.Thread(target=open_archive) for _ in range(6)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert found == [[]] * 6
    shelf.reopen()
    assert shelf.ask(FORMER_NAMES) == []
    shelf.tidy()
    assert shelf.ask(WASTE) == []


def test_what_is_of_no_use_in_the_index_is_removed(shelf: Shelf) -> None:
    for number in range(20):
        shelf.put(f"text {number}")
    shelf.archive.index()
    indexed = "SELECT COUNT(*) FROM search_texts WHERE search_texts MATCH 'text'"
    assert shelf.archive.clean(NOW + timedelta(minutes=9)) == 8
    assert shelf.ask(indexed) == [(20,)], "what is no half of the index stays in it"
    assert len(shelf.found("text")) == 12
    assert shelf.archive.clean(NOW + timedelta(minutes=15)) == 6
    assert shelf.ask(indexed) == [(6,)]
    assert shelf.ask(WASTE) == []
    assert shelf.found("text") == [f"text {number}" for number in range(19, 13, -1)]
    assert shelf.archive.page(TaskQuery(query="text")).left == 0


def test_texts_that_changed_often_are_removed_at_the_next_opening(shelf: Shelf) -> None:
    task_id = shelf.put("the question")
    for number in range(5):
        shelf.change(task_id, output=f"answer {number}")
        assert shelf.found(f'"answer {number}"') == ["the question"]
        assert shelf.found(f'"answer {number - 1}"') == []
        assert shelf.found(f'"answer {number - 1}"', agent="claude") == []
    shelf.reopen()
    assert shelf.found("question") == ["the question"]
    assert shelf.ask(WASTE) != [], "what is large is removed in steps, when there is time"
    shelf.tidy()
    assert shelf.ask(WASTE) == []
    assert shelf.ask("SELECT COUNT(*) FROM search_texts WHERE search_texts MATCH 'question'") == [(1,)]


@pytest.mark.parametrize("agent", ["", "claude"])
@pytest.mark.parametrize(
    "query",
    [
        "日",
        "本",
        "日本",
        "語の",
        "全文検索",
        "検索",
        "の",
        "ｶﾀｶﾅ",
        "カタカナ",
        "🎉",
        "go",
        "C",
        "Parser",
        "arse",
        "ＰＡＲＳＥ",
    ],
)
def test_texts_of_any_length_and_script_are_found(shelf: Shelf, query: str, agent: str) -> None:
    shelf.put("日本語の全文検索、カタカナ 🎉 in Go and C: the parser")
    shelf.put("nothing of this")
    assert shelf.found(query, agent=agent) == ["日本語の全文検索、カタカナ 🎉 in Go and C: the parser"]


@pytest.mark.parametrize("agent", ["", "claude"])
@pytest.mark.parametrize(
    "query", ["検語", "本日", "zz", "q", "parsers", "日本 zz", '"the go"', "pa", "索i", "n日", "++"]
)
def test_what_does_not_stand_there_is_not_found(shelf: Shelf, query: str, agent: str) -> None:
    shelf.put("日本語の全文検索 in go: the parser")
    assert shelf.found(query, agent=agent) == []


def test_all_terms_must_be_found_and_quotes_hold_words_together(shelf: Shelf) -> None:
    shelf.put("fix the parser", "done in 日本")
    shelf.put("the fix of a parser")
    assert shelf.found("parser fix") == ["the fix of a parser", "fix the parser"]
    assert shelf.found('"fix the"') == ["fix the parser"]
    assert shelf.found("parser 日本") == ["fix the parser"]
    assert shelf.found('say "') == []
    assert shelf.found('"') == ["the fix of a parser", "fix the parser"], "no term at all: everything"
    assert shelf.found("parser", agent="codex") == []


def test_one_task_is_found_by_its_beginning(shelf: Shelf) -> None:
    shelf.put("one", id="abcd1111-1")
    shelf.put("two", id="abcd2222-2")
    record, steps = shelf.archive.find("ABCD1")
    assert (record.task.text, record.agent_type, record.project) == ("one", "claude", "/project")
    assert record.finished_at == NOW + timedelta(minutes=1, seconds=10)
    assert steps == []
    for odd in ("abcd", "abc", "", "zzzz9", "%"):
        with pytest.raises(TaskNotFound):
            shelf.archive.find(odd)


def test_what_is_said_twice_is_one_step() -> None:
    begun = datetime(2026, 3, 1, tzinfo=UTC)
    said = [("working", "taken"), ("input", "asks"), ("input", "asks"), ("working", "taken"), ("done", "")]
    changes = [
        Change("x", begun + timedelta(seconds=number), state, "submitted", reason)
        for number, (state, reason) in enumerate(said)
    ]
    assert said_once(changes) == [*changes[:2], *changes[3:]]


def test_tasks_are_counted(shelf: Shelf) -> None:
    assert shelf.archive.stats(TaskQuery())["tasks"] == 0
    shelf.put("one")
    shelf.put("two", status="failed")
    shelf.put("three", agent_name="synapse-codex-8120", agent_type="codex")
    stats = shelf.archive.stats(TaskQuery())
    assert stats["tasks"] == 3
    assert stats["states"] == {"completed": 2, "failed": 1}
    assert stats["agents"]["synapse-claude-8100"] == {"completed": 1, "failed": 1}
    assert stats["mean_seconds"] == 10.0
    assert stats["first"] == (NOW + timedelta(minutes=1)).isoformat()


@given(st.text(max_size=8))
def test_no_query_breaks_the_search(query: str) -> None:
    terms = terms_of(query)
    words = words_of(terms)
    assert bool(words) == bool(terms)
    assert all(each.match and each.parts for each in words)
    assert all(term == folded(term).strip() for term in terms)


def test_a_text_stands_in_one_table_alone(shelf: Shelf) -> None:
    chance = random.Random(1)
    texts = ["".join(chance.choices("ABCDEFGHIJK日本語検索 ", k=3000)) for _ in range(4)]
    shelf.put(texts[0], texts[1])
    shelf.change(shelf.put(texts[2]), output=texts[3])
    shelf.archive.index()
    parts = [each[at : at + 12] for each in texts for at in (0, 1500, 2900)]
    tables = shelf.ask(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    for (table,) in tables:
        held = "".join(
            value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            for row in shelf.ask(f"SELECT * FROM {table}")
            for value in row
        )
        held = folded(held)
        assert all((folded(part) in held) == (table == "tasks") for part in parts), table


FEW, MANY = 120, 1200
COMMON = {"": 1.2, "common": 3.0, "common text": 3.0, "の": 3.0, "needle": 3.0, "nowhere": 3.0}
"""How many times the steps of SQLite a page may take after ten times the tasks, as words stand in more."""


def fill(shelf: Shelf, count: int) -> None:
    shelf.put("needle")
    minutes = "strftime('%Y-%m-%d %H:%M:%f000', created_at, '+' || number || ' minutes')"
    values: dict[str, str] = {
        str(name): str(name) for _, name, *_ in shelf.ask("PRAGMA table_info(tasks)")
    } | {
        "id": "printf('%08d-0001', number)",
        "input": "'common text の ' || number",
        "project": "'/' || (number % 2)",
        "created_at": minutes,
        "updated_at": minutes,
    }
    with closing(sqlite3.connect(shelf.path)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n"
            f" WHERE number < {count})"
            f" INSERT INTO tasks ({', '.join(values)}) SELECT {', '.join(values.values())} FROM tasks, n"
        )
    while shelf.archive.index():
        pass


def work_of(shelf: Shelf, wanted: TaskQuery) -> tuple[int, int]:
    """Tens of steps of SQLite and lines of Python for a page."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_progress_handler(step, 10)

    event.listen(shelf.archive._engine, "checkout", watch)
    least = []
    for _ in range(3):  # some is done once, and some happens at any time, as the collection of garbage
        steps = 0
        with work() as counted:
            page = shelf.archive.page(wanted)
        least.append((steps, counted.lines))
    event.remove(shelf.archive._engine, "checkout", watch)
    assert len(page.items) == {"needle": 1, "nowhere": 0}.get(wanted.query, 20)
    return min(least)[0], min(lines for _, lines in least)


def test_a_page_is_as_much_work_in_a_long_history(tmp_path: Path) -> None:
    """Except with a filter that hardly any task passes, for which the index of all is read."""
    wanted = [TaskQuery(query=query, limit=20) for query in COMMON] + [
        TaskQuery(limit=20, **chosen)
        for chosen in (
            {"agent": "claude"},
            {"agent": "synapse-claude-8100"},
            {"sender": "user"},
            {"project": "/1"},
            {"states": ("completed",)},
            {"since": NOW + timedelta(hours=1)},
        )
    ]
    counted = []
    for count in (FEW, MANY):
        shelf = Shelf(tmp_path / f"{count}.db")
        fill(shelf, count)
        counted.append([work_of(shelf, each) for each in wanted])
        shelf.archive.close()
    for query, (few, few_lines), (many, many_lines) in zip(wanted, *counted, strict=True):
        assert many_lines <= 1.2 * few_lines, query
        assert many <= COMMON[query.query] * few + 10, (
            f"{query}: {few} steps, {many} after ten times the tasks"
        )
