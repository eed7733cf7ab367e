"""Lists and searches tasks in SQLite: an FTS5 trigram index, and a second index for shorter words.

SQLite's trigram index finds texts of three characters and more in any script, but most Japanese words have
two. The second index holds pairs of characters outside ASCII, and ASCII words of one or two letters. Triggers
record changes of `tasks`; searches and idle hosts index them, so writing a task costs no more.

A document's number is the creation time of its task, so reading an index backwards gives the newest first, in
whatever order they were indexed. `search_documents` repeats all columns used to filter, so `tasks` with its
texts is not read.

The indices do not store the texts, and SQLite before 3.43 cannot delete from such an index. A changed text
becomes a new document, and numbers that are not in `search_documents` are skipped. When they are the larger
half, by length of text, the indices are rebuilt.

Obsolete indices are renamed and emptied in small steps: dropping them at once would block writers for
seconds.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, Connection, Engine, bindparam, text
from sqlalchemy.exc import OperationalError

from synapse_tui.messages.storage.backend import READS
from synapse_tui.system.dataclass import dataclass

from .quick import NEWEST, listing, stored
from .records import Page, TaskQuery
from .search import SHORTEST, Count, conditions, indexed, runs_of

log = logging.getLogger(__name__)

FEW = 2000
"""Maximum texts to scan instead of reading an index."""
LONG = 1_000_000
"""Their maximum total length in characters."""
WINDOW = 500
"""Entries of one index to read before switching to the other; doubles each time."""

Doc = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Words:
    table: str
    match: str  # FTS5 query
    parts: Sequence[re.Pattern[str]]  # all must match the folded text


@dataclass(frozen=True, slots=True)
class Chosen:
    low: int  # lowest number, inclusive
    high: int  # highest number, exclusive
    sql: str  # further condition on `search_documents`
    values: Mapping[str, Any]
    filtered: bool  # whether the condition may be selective


class Lookup:
    def __init__(self, connection: Connection, words: Sequence[Words], chosen: Chosen) -> None:
        self._connection = connection
        self._words = words
        self._chosen = chosen

    def find(self, limit: int) -> list[Doc]:
        if self._chosen.filtered and (few := self._few()) is not None:
            return self._looked_through(few, limit)
        if len(self._words) == 1:
            return self._read_one(limit)
        found: list[Doc] = []
        for numbers in self._in_all():
            found += self._passed(numbers)
            if len(found) >= limit:
                break
        return found[:limit]

    def _few(self) -> list[Doc] | None:
        """Return the documents that pass the filter; None if they are many or long."""
        query = (
            "SELECT id, task_id, size FROM search_documents WHERE id >= :low AND id < :high"  # noqa: S608 - ours
            f" AND task_id IS NOT NULL AND {self._chosen.sql} ORDER BY id DESC LIMIT :few"
        )
        rows = self._run(query, few=FEW)
        if len(rows) == FEW or sum(row[2] for row in rows) > LONG:
            return None
        return [(row[0], row[1]) for row in rows]

    def _looked_through(self, docs: Sequence[Doc], limit: int) -> list[Doc]:
        found: list[Doc] = []
        for at in range(0, len(docs), WINDOW):
            some = docs[at : at + WINDOW]
            stands = self._looked_into([number for number, _ in some], self._words)
            found += [doc for doc in some if doc[0] in stands]
            if len(found) >= limit:
                break
        return found[:limit]

    def _read_one(self, limit: int) -> list[Doc]:
        [words] = self._words
        query = (
            f"SELECT id, task_id FROM {words.table} f CROSS JOIN search_documents ON id = f.rowid"  # noqa: S608
            f" WHERE f.{words.table} MATCH :words AND f.rowid >= :low AND f.rowid < :high"
            f" AND task_id IS NOT NULL AND {self._chosen.sql} ORDER BY f.rowid DESC LIMIT :most"
        )
        return [(row[0], row[1]) for row in self._run(query, words=words.match, most=limit)]

    def _in_all(self) -> Iterator[list[int]]:
        low, high = self._chosen.low, self._chosen.high
        heads = [(self._numbers(word, low, high, FEW), word) for word in self._words]
        (least, first), (_, other) = sorted(heads, key=lambda head: len(head[0]))
        if len(least) < FEW and not self._long(least):
            kept = self._looked_into(least, [other])
            yield [number for number in least if number in kept]
            return
        size = WINDOW
        while window := self._numbers(first, low, high, size):
            kept = set(self._numbers(other, window[-1], high))
            yield [number for number in window if number in kept]
            high, size = window[-1], 2 * size

    def _numbers(self, words: Words, low: int, high: int, most: int = -1) -> list[int]:
        """Return numbers of documents with the words, newest first; -1 for all."""
        query = (
            f"SELECT rowid FROM {words.table} WHERE {words.table} MATCH :words"  # noqa: S608 - ours
            " AND rowid >= :low AND rowid < :high ORDER BY rowid DESC LIMIT :most"
        )
        values = {"words": words.match, "low": low, "high": high, "most": most}
        return [row[0] for row in self._connection.execute(text(query), values)]

    def _long(self, numbers: Collection[int]) -> bool:
        query = "SELECT size FROM search_documents WHERE id IN :numbers AND task_id IS NOT NULL"
        size: int = sum(row[0] for row in self._among(query, numbers, {}))
        return size > LONG

    def _looked_into(self, numbers: Collection[int], words: Sequence[Words]) -> set[int]:
        parts = [part for word in words for part in word.parts]
        query = (
            "SELECT d.id, t.input, t.output FROM search_documents d JOIN tasks t ON t.id = d.task_id"
            " WHERE d.id IN :numbers AND t.kept"
        )
        stands = set()
        for number, message, answer in self._among(query, numbers, {}):
            body = indexed(message, answer)
            if all(part.search(body) for part in parts):
                stands.add(number)
        return stands

    def _passed(self, numbers: Collection[int]) -> list[Doc]:
        query = (
            "SELECT id, task_id FROM search_documents WHERE id IN :numbers"  # noqa: S608 - ours
            f" AND task_id IS NOT NULL AND {self._chosen.sql}"
        )
        rows = self._among(query, numbers, self._chosen.values)
        return sorted(((row[0], row[1]) for row in rows), reverse=True)

    def _among(self, query: str, numbers: Collection[int], values: Mapping[str, Any]) -> Iterable[Any]:
        some: BindParameter[Any] = bindparam("numbers", expanding=True)
        asked = list(numbers)
        for at in range(0, len(asked), FEW):
            part = {"numbers": asked[at : at + FEW]}
            yield from self._connection.execute(text(query).bindparams(some), {**values, **part})

    def _run(self, query: str, **values: object) -> Sequence[Any]:
        chosen = self._chosen
        parameters = {"low": chosen.low, "high": chosen.high, **chosen.values, **values}
        return self._connection.execute(text(query), parameters).all()


_TRIGGERS = "added changed removed moved"
_DROP = (
    *(f"DROP TRIGGER IF EXISTS search_document_{name}" for name in _TRIGGERS.split()),
    "DROP TABLE IF EXISTS search_documents",
    "DROP TABLE IF EXISTS search_pending",
)
_INDICES = ("texts", "words")
_MAKE = (
    """CREATE TABLE search_documents (
        id INTEGER PRIMARY KEY, task_id VARCHAR UNIQUE, size INTEGER NOT NULL, project VARCHAR NOT NULL,
        agent_name VARCHAR NOT NULL, agent_type VARCHAR NOT NULL, sender_id VARCHAR NOT NULL,
        status VARCHAR NOT NULL)""",
    """CREATE TABLE search_pending (
        created_at DATETIME NOT NULL, task_id VARCHAR NOT NULL, PRIMARY KEY (created_at, task_id)
        ) WITHOUT ROWID""",
    "CREATE VIRTUAL TABLE search_texts USING fts5(body, content='', columnsize=0, tokenize='trigram')",
    "CREATE VIRTUAL TABLE search_words USING fts5(w, content='', columnsize=0, tokenize='ascii', prefix='7')",
    """CREATE TRIGGER search_document_added AFTER INSERT ON tasks BEGIN
        INSERT OR IGNORE INTO search_pending VALUES (new.created_at, new.id); END""",
    """CREATE TRIGGER search_document_changed AFTER UPDATE OF input, output, kept ON tasks
        WHEN old.input IS NOT new.input OR old.output IS NOT new.output OR old.kept IS NOT new.kept BEGIN
        INSERT OR IGNORE INTO search_pending VALUES (new.created_at, new.id); END""",
    """CREATE TRIGGER search_document_removed AFTER DELETE ON tasks BEGIN
        INSERT OR IGNORE INTO search_pending VALUES (old.created_at, old.id); END""",
    "INSERT INTO search_pending SELECT created_at, id FROM tasks",
    # Created last, so its presence implies the others.
    """CREATE TRIGGER search_document_moved AFTER UPDATE OF status ON tasks
        WHEN old.status IS NOT new.status BEGIN
        UPDATE search_documents SET status = new.status WHERE task_id = new.id; END""",
)
_FORMER_DROP = (
    *(f"DROP TRIGGER IF EXISTS search_{name}" for name in _TRIGGERS.split()),
    "DROP TABLE IF EXISTS search_docs",
    "DROP TABLE IF EXISTS search_stale",
)
_FORMER_INDICES = ("long", "short")
"""Created by hosts of earlier versions beside the current ones; these indices store the texts."""
_IS_FORMER = "SELECT 1 FROM sqlite_master WHERE name IN ('search_docs', 'search_long', 'search_short')"
_WASTE = tuple(f"search_waste_{name}" for name in (*_INDICES, *_FORMER_INDICES))
_BLOCKS = 25
"""Index blocks of 4 kB removed in the time of indexing one task."""
_HEAD = 10
"""Id of the last row that FTS5 needs in any index."""
_WASTED = "SELECT TOTAL(CASE WHEN task_id IS NULL THEN size ELSE -size END) > 0 FROM search_documents"
_NOWHERE = re.compile("(?!)")
_STEP = 16
"""Document numbers per millisecond; more would make each index entry longer. Further documents take the next
free number."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END = 2**62
_SECONDS = "(julianday(finished_at) - julianday(submitted_at)) * 86400"


class SqliteDialect:
    can_search = False

    def __init__(self) -> None:
        self._removed = False
        """Whether documents of removed tasks were found since they were last counted."""

    def prepare(self, connection: Connection) -> None:
        """Create the indices if missing, which needs FTS5 and SQLite 3.34."""
        made = "SELECT 1 FROM sqlite_master WHERE name = 'search_document_moved'"
        if connection.execute(text(made)).first():
            self._make_anew(connection)
            self.can_search = True
            return
        try:
            self._make(connection)
        except OperationalError:
            self.can_search = False
        else:
            self.can_search = True

    def _make(self, connection: Connection) -> None:
        _discard(connection.exec_driver_sql, _DROP, _INDICES)
        for statement in _MAKE:
            connection.execute(text(statement))

    def _make_anew(self, connection: Connection) -> bool:
        """Rebuild the indices if most entries are obsolete; returns whether it did."""
        self._removed = False
        if wasted := bool(connection.execute(text(_WASTED)).scalar()):
            self._make(connection)
        return wasted

    def left(self, connection: Connection) -> int:
        if not self.can_search:
            return 0
        return int(connection.execute(text("SELECT COUNT(*) FROM search_pending")).scalar() or 0)

    def index(self, connection: Connection, most: int) -> int:
        run = connection.execute
        pending = run(
            text(
                "SELECT p.task_id, p.created_at, d.id, t.input, t.output, t.project, t.agent_name,"
                " t.agent_type, t.sender_id, t.status FROM search_pending p"
                " LEFT JOIN search_documents d ON d.task_id = p.task_id"
                " LEFT JOIN tasks t ON t.id = p.task_id AND t.kept"
                " ORDER BY p.created_at DESC, p.task_id DESC LIMIT :most"
            ),
            {"most": most},
        ).all()
        if old := [{"doc": row[2]} for row in pending if row[2] is not None]:
            run(text("UPDATE search_documents SET task_id = NULL WHERE id = :doc"), old)
        self._removed |= any(row[2] is not None and row[3] is None for row in pending)
        # Ascending, since FTS5 flushes its buffer whenever a number is lower than the previous one.
        docs = [_document(connection, row) for row in reversed(pending) if row[3] is not None]
        if docs:
            run(text("INSERT INTO search_texts (rowid, body) VALUES (:doc, :long)"), docs)
            run(text("INSERT INTO search_words (rowid, w) VALUES (:doc, :short)"), docs)
        gone = [{"made": row[1], "task": row[0]} for row in pending]
        if gone:
            run(text("DELETE FROM search_pending WHERE created_at = :made AND task_id = :task"), gone)
        if self._removed and len(pending) < most and self._make_anew(connection):
            return len(pending) + self.index(connection, most - len(pending))
        return len(pending)

    def tidy(self, connection: Connection, most: int) -> int:
        run = connection.exec_driver_sql
        tables = {row[0] for row in run("SELECT name FROM sqlite_master WHERE name GLOB 'search_waste_*'")}
        for name in tables.intersection(_WASTE):
            try:
                for part, rows in ((f"{name}_content", most), (f"{name}_data", most * _BLOCKS)):
                    some = f"SELECT id FROM {part} WHERE id > {_HEAD} LIMIT {rows}"  # noqa: S608 - ours
                    if part in tables and run(f"DELETE FROM {part} WHERE id IN ({some})").rowcount:  # noqa: S608
                        return most
            except OperationalError as error:  # some builds let no other connection write these tables
                log.debug("%s is removed at once: %s", name, error)
            run(f"DROP TABLE {name}")
            return most
        return 0

    def find(self, connection: Connection, wanted: TaskQuery, terms: Sequence[str]) -> Page[str]:
        if terms and self.can_search:
            return self._look_up(connection, wanted, terms)
        query, values = listing(wanted, terms)
        rows = connection.execute(text(query), values).all()
        after = f"{rows[-1][1]}/{rows[-1][0]}" if len(rows) == wanted.limit else ""
        return Page([str(row[0]) for row in rows], after)

    def _look_up(self, connection: Connection, wanted: TaskQuery, terms: Sequence[str]) -> Page[str]:
        filters = replace(wanted, since=None, until=None)
        sql, values = conditions(filters, "id", _number)
        chosen = Chosen(
            _number(wanted.since) if wanted.since else 0,
            min(_number(wanted.until) if wanted.until else _END, int(wanted.cursor or _END)),
            sql,
            values,
            filtered=bool(wanted.agent or wanted.sender or wanted.states or wanted.project),
        )
        docs = Lookup(connection, words_of(terms), chosen).find(wanted.limit)
        return Page([task for _, task in docs], str(docs[-1][0]) if len(docs) == wanted.limit else "")

    def count(self, connection: Connection, wanted: TaskQuery) -> Sequence[Count]:
        chosen, values = conditions(wanted, "created_at", stored)
        query = (
            f"SELECT agent_name, status, COUNT(*), COUNT({_SECONDS}), TOTAL({_SECONDS}),"  # noqa: S608
            f" MIN(created_at), MAX(created_at) FROM {NEWEST} WHERE {chosen}"
            " GROUP BY agent_name, status ORDER BY agent_name, status"
        )
        rows = connection.execute(text(query), values).all()
        return [
            Count(agent, state, tasks, timed, seconds, _time(first), _time(last))
            for agent, state, tasks, timed, seconds, first, last in rows
        ]

    def interrupt(self, connection: Any) -> None:  # noqa: ANN401 - a DBAPI connection
        connection.interrupt()


def _discard(run: Callable[[str], Any], drop: Sequence[str], indices: Sequence[str]) -> None:
    """Drop the tables of a search, but only rename its indices, which `tidy` empties."""
    for statement in drop:
        run(statement)
    tables = {row[0] for row in run("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    for name in indices:
        if f"search_{name}" in tables:
            run(f"DROP TABLE IF EXISTS search_waste_{name}")
            run(f"ALTER TABLE search_{name} RENAME TO search_waste_{name}")


def drop_former(engine: Engine) -> None:
    """Drop the indices of versions that stored texts twice, unless another process may use them."""
    with engine.execution_options(**{READS: True}).connect() as connection:
        if connection.execute(text(_IS_FORMER)).first() is None:
            return
    lent = engine.raw_connection()
    driver: Any = lent.driver_connection
    try:
        # Every open connection in WAL mode holds a shared lock, so this fails if there is another one, and
        # whoever opens the file meanwhile waits.
        driver.execute("PRAGMA busy_timeout = 0")
        driver.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        driver.execute("BEGIN IMMEDIATE")
        _discard(driver.execute, _FORMER_DROP, _FORMER_INDICES)
        driver.execute("COMMIT")
    except sqlite3.Error as error:
        log.debug("the former search index stays: %s", error)
    finally:
        lent.invalidate()  # certainly releases its locks


def words_of(terms: Sequence[str]) -> list[Words]:
    long = [term for term in terms if len(term) >= SHORTEST]
    short = [found for term in terms if len(term) < SHORTEST for found in _short_query(term)]
    found = []
    if long:
        parts = [re.compile(re.escape(term)) for term in long]
        found.append(Words("search_texts", " ".join(map(_quoted, long)), parts))
    if short:
        match = " ".join(word for word, _ in short)
        found.append(Words("search_words", match, [part for _, part in short]))
    return found


def _document(connection: Connection, row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row of `index`
    task_id, made, _, message, answer, *chosen = row
    names = ("project", "agent_name", "agent_type", "sender_id", "status")
    body = indexed(message, answer)
    values = dict(zip(names, chosen, strict=True))
    values |= {"task": task_id, "doc": _number(_time(made)), "size": len(body)}
    put = text(
        "INSERT OR IGNORE INTO search_documents VALUES"
        " (:doc, :task, :size, :project, :agent_name, :agent_type, :sender_id, :status)"
    )
    while not connection.execute(put, values).rowcount:  # the number is taken
        values["doc"] += 1
    return {"doc": values["doc"], "long": body, "short": " ".join(sorted(set(_short_words(body))))}


def _number(time: datetime) -> int:
    """Return the first document number of a time: milliseconds since the epoch, times `_STEP`."""
    return (time - _EPOCH) // timedelta(milliseconds=1) * _STEP


def _time(stored: str) -> datetime:
    return datetime.fromisoformat(stored).replace(tzinfo=UTC)


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _short_words(body: str) -> Iterator[str]:
    for run in runs_of(body):
        if run.isascii():
            if len(run) < SHORTEST:
                yield _name(run)
        else:
            yield from (_name(run[at : at + 2]) for at in range(len(run)))


def _short_query(term: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the queries for a term of one or two characters, and the pattern to verify each.

    One character outside ASCII starts a pair or is alone; an ASCII word must be complete.
    """
    if term.isascii():
        words = [(_name(run), re.compile(f"(?<![a-z0-9]){run}(?![a-z0-9])")) for run in runs_of(term)]
        return words or [(_name(term), _NOWHERE)]
    if len(term) == 1:
        return [(f"{_name(term)}*", re.compile(re.escape(term)))]
    return [(_name(term), re.compile(re.escape(term)) if runs_of(term) == [term] else _NOWHERE)]


@lru_cache(maxsize=65_536)
def _name(word: str) -> str:
    return "w" + "".join(f"{ord(char):06x}" for char in word)
