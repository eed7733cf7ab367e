"""Lists and searches tasks in SQLite: any part of a text of three characters and more, and shorter words too.

SQLite's trigram index (FTS5) finds texts of three characters and more, whatever the script, and nothing
shorter: most Japanese words have two. So there is a second index of pairs of characters outside ASCII, and of
words of one or two ASCII letters. What changes in `tasks` is noted by triggers and put into the indices by
whoever searches, or by a host that has nothing else to do: writing a task costs nothing more.

A document's number is the time at which its task was made, so the newest are found first, in whatever order
they were indexed, by reading an index from its end as far as it is needed. All that tasks are chosen by
stands in `search_documents` too: the tasks themselves, with their texts, are not read for that.

The indices hold no texts, which stand in `tasks` alone, and SQLite before 3.43 cannot remove a document from
such an index. So nothing is removed: a text that has changed is a new document, and numbers in the indices
that have no task in `search_documents` are passed over. When they are more than half, by the length of their
texts, the indices are made anew.

Indices that are of no use any more get another name, and are emptied in small steps: removing so much at once
would keep writers waiting for seconds.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, Connection, Engine, bindparam, text
from sqlalchemy.exc import OperationalError

from synapse_tui.database.backend import READS

from .quick import NEWEST, listing, stored
from .search import SHORTEST, Count, Found, Wanted, conditions, indexed, runs_of

FEW = 2000
"""How many texts are looked into rather than reading an index for them."""
LONG = 1_000_000
"""How many characters these have at most, together."""
WINDOW = 500
"""How far an index is read before the other one is looked at; twice as far each time."""

Doc = tuple[int, str]
"""Number of a document, and its task."""


@dataclass(frozen=True, slots=True)
class Words:
    """What is looked up in one index."""

    table: str  # the index
    match: str  # the words as FTS5 is asked for them
    parts: Sequence[re.Pattern[str]]  # what stands in the folded text then, all of it


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which documents are chosen, whatever stands in them."""

    low: int  # their least number
    high: int  # the number before which they are
    sql: str  # what they must fulfil besides, on `search_documents`
    values: Mapping[str, Any]  # the parameters of that
    filtered: bool  # whether that may leave few


class Lookup:
    """Finds documents, the newest first."""

    def __init__(self, connection: Connection, words: Sequence[Words], chosen: Chosen) -> None:
        self._connection = connection
        self._words = words
        self._chosen = chosen

    def find(self, limit: int) -> list[Doc]:
        """The newest documents in which all stands, so many at most."""
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
        """The documents that are chosen; None when they are many, or long."""
        query = (
            "SELECT id, task_id, size FROM search_documents WHERE id >= :low AND id < :high"  # noqa: S608 - ours
            f" AND task_id IS NOT NULL AND {self._chosen.sql} ORDER BY id DESC LIMIT :few"
        )
        rows = self._run(query, few=FEW)
        if len(rows) == FEW or sum(row[2] for row in rows) > LONG:
            return None
        return [(row[0], row[1]) for row in rows]

    def _looked_through(self, docs: Sequence[Doc], limit: int) -> list[Doc]:
        """Those documents in which all stands, so many at most."""
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
        heads = [(self._numbers(each, low, high, FEW), each) for each in self._words]
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
        """The numbers of the documents in which words stand, the newest first; -1 is for all."""
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
        parts = [part for each in words for part in each.parts]
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


log = logging.getLogger(__name__)

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
    # The last one: where it is, the others are.
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
"""Hosts of earlier versions make these, beside those of today: indices that hold the texts, too."""
_IS_FORMER = "SELECT 1 FROM sqlite_master WHERE name IN ('search_docs', 'search_long', 'search_short')"
_WASTE = tuple(f"search_waste_{name}" for name in (*_INDICES, *_FORMER_INDICES))
_BLOCKS = 25
"""How many blocks of an index of 4 kB are removed in the time in which a task is indexed."""
_HEAD = 10
"""The last of the rows that FTS5 itself needs of an index, whatever it holds."""
_WASTED = "SELECT TOTAL(CASE WHEN task_id IS NULL THEN size ELSE -size END) > 0 FROM search_documents"
_NOWHERE = re.compile("(?!)")
_STEP = 16
"""How many documents, of several tasks or of one that has changed, one millisecond has numbers for; with more
each entry of the indices would be longer. What has none takes the next free number, among later ones."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_END = 2**62
_SECONDS = "(julianday(finished_at) - julianday(submitted_at)) * 86400"


class SqliteDialect:
    """How SQLite lists and searches tasks; see `search.Dialect`."""

    can_search = False

    def __init__(self) -> None:
        self._removed = False
        """Whether documents of removed tasks were met since it was last asked how many there are."""

    def prepare(self, connection: Connection) -> None:
        """Make the indices where there are none; an SQLite without FTS5, or before 3.34, cannot have them."""
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
        """Make the indices anew where most of what they hold is of no use; whether they were."""
        self._removed = False
        if wasted := bool(connection.execute(text(_WASTED)).scalar()):
            self._make(connection)
        return wasted

    def left(self, connection: Connection) -> int:
        """How many tasks are not in the indices yet."""
        if not self.can_search:
            return 0
        return int(connection.execute(text("SELECT COUNT(*) FROM search_pending")).scalar() or 0)

    def index(self, connection: Connection, most: int) -> int:
        """Put changed tasks into the indices, the newest first."""
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
        # By rising numbers: FTS5 writes all that it holds when one comes that is less than the one before.
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
        """Remove some of what indices hold that are of no use any more."""
        run = connection.exec_driver_sql
        tables = {row[0] for row in run("SELECT name FROM sqlite_master WHERE name GLOB 'search_waste_*'")}
        for name in tables.intersection(_WASTE):
            try:
                for part, rows in ((f"{name}_content", most), (f"{name}_data", most * _BLOCKS)):
                    some = f"SELECT id FROM {part} WHERE id > {_HEAD} LIMIT {rows}"  # noqa: S608 - ours
                    if part in tables and run(f"DELETE FROM {part} WHERE id IN ({some})").rowcount:  # noqa: S608
                        return most
            except (
                OperationalError
            ) as error:  # some builds of SQLite let no other connection write these tables
                log.debug("%s is removed at once: %s", name, error)
            run(f"DROP TABLE {name}")
            return most
        return 0

    def find(self, connection: Connection, wanted: Wanted, terms: Sequence[str]) -> Found:
        if terms and self.can_search:
            return self._look_up(connection, wanted, terms)
        query, values = listing(wanted, terms)
        rows = connection.execute(text(query), values).all()
        after = f"{rows[-1][1]}/{rows[-1][0]}" if len(rows) == wanted.limit else ""
        return Found([str(row[0]) for row in rows], after)

    def _look_up(self, connection: Connection, wanted: Wanted, terms: Sequence[str]) -> Found:
        filters = replace(wanted, since=None, until=None)
        sql, values = conditions(filters, "id", _number)
        chosen = Chosen(
            _number(wanted.since) if wanted.since else 0,
            min(_number(wanted.until) if wanted.until else _END, int(wanted.after or _END)),
            sql,
            values,
            filtered=bool(wanted.agent or wanted.sender or wanted.states or wanted.project),
        )
        docs = Lookup(connection, words_of(terms), chosen).find(wanted.limit)
        return Found([task for _, task in docs], str(docs[-1][0]) if len(docs) == wanted.limit else "")

    def count(self, connection: Connection, wanted: Wanted) -> Sequence[Count]:
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
    """Remove the tables of a search, but of the indices themselves only the names: `tidy` does the rest."""
    for statement in drop:
        run(statement)
    tables = {row[0] for row in run("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    for name in indices:
        if f"search_{name}" in tables:
            run(f"DROP TABLE IF EXISTS search_waste_{name}")
            run(f"ALTER TABLE search_{name} RENAME TO search_waste_{name}")


def drop_former(engine: Engine) -> None:
    """Remove the indices of versions that held the texts twice, unless another process may use them."""
    with engine.execution_options(**{READS: True}).connect() as connection:
        if connection.execute(text(_IS_FORMER)).first() is None:
            return
    lent = engine.raw_connection()
    driver: Any = lent.driver_connection
    try:
        # Every connection to a file in WAL mode holds a shared lock on it as long as it is open, so this
        # fails where there is another one, and who opens the file meanwhile waits.
        driver.execute("PRAGMA busy_timeout = 0")
        driver.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        driver.execute("BEGIN IMMEDIATE")
        _discard(driver.execute, _FORMER_DROP, _FORMER_INDICES)
        driver.execute("COMMIT")
    except sqlite3.Error as error:
        log.debug("the former search index stays: %s", error)
    finally:
        lent.invalidate()  # gives its locks back for certain


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
    while not connection.execute(put, values).rowcount:  # it has changed, or others were made at that moment
        values["doc"] += 1
    return {"doc": values["doc"], "long": body, "short": " ".join(sorted(set(_short_words(body))))}


def _number(time: datetime) -> int:
    """The number of the first document that was made at a time: milliseconds since the epoch, in steps."""
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
    """How a term of one or two characters is asked for, and what stands in a text then.

    One character outside ASCII begins a pair, or stands alone; a word in ASCII is a whole one.
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
