"""Lists and searches tasks in SQLite: any part of a text of three characters and more, and shorter words too.

SQLite's trigram index (FTS5) finds texts of three characters and more, whatever the script, and nothing
shorter: most Japanese words have two. So there is a second index of pairs of characters outside ASCII, and of
words of one or two ASCII letters. What changes in `tasks` is noted by triggers and put into the indices by
whoever searches, or by a host that has nothing else to do: writing a task costs nothing more.

A document's number is the time at which its task was made, so the newest are found first, in whatever order
they were indexed, by reading an index from its end as far as it is needed. All that tasks are chosen by
stands in `search_docs` too: the tasks themselves, with their texts, are not read for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from .search import MOST, SHORTEST, Count, Found, Wanted, conditions, folded, pattern_of, runs_of
from .search_lookup import Chosen, Lookup, Words

_DROP = tuple(
    f"DROP {kind} IF EXISTS search_{name}"
    for kind, names in (("TRIGGER", "added changed removed"), ("TABLE", "docs stale long short"))
    for name in names.split()
)
_MAKE = (
    """CREATE TABLE search_docs (
        id INTEGER PRIMARY KEY, task_id VARCHAR NOT NULL UNIQUE, project VARCHAR NOT NULL,
        agent_name VARCHAR NOT NULL, agent_type VARCHAR NOT NULL, sender_id VARCHAR NOT NULL,
        status VARCHAR NOT NULL)""",
    """CREATE TABLE search_stale (
        created_at DATETIME NOT NULL, task_id VARCHAR NOT NULL, PRIMARY KEY (created_at, task_id)
        ) WITHOUT ROWID""",
    "CREATE VIRTUAL TABLE search_long USING fts5(body, tokenize='trigram')",
    "CREATE VIRTUAL TABLE search_short USING fts5(body, tokenize='ascii', prefix='7')",
    """CREATE TRIGGER search_added AFTER INSERT ON tasks BEGIN
        INSERT OR IGNORE INTO search_stale VALUES (new.created_at, new.id); END""",
    """CREATE TRIGGER search_changed AFTER UPDATE OF input, output, kept ON tasks
        WHEN old.input IS NOT new.input OR old.output IS NOT new.output OR old.kept IS NOT new.kept BEGIN
        INSERT OR IGNORE INTO search_stale VALUES (new.created_at, new.id); END""",
    """CREATE TRIGGER search_removed AFTER DELETE ON tasks BEGIN
        INSERT OR IGNORE INTO search_stale VALUES (old.created_at, old.id); END""",
    """CREATE TRIGGER search_moved AFTER UPDATE OF status ON tasks WHEN old.status IS NOT new.status BEGIN
        UPDATE search_docs SET status = new.status WHERE task_id = new.id; END""",
    "INSERT INTO search_stale SELECT created_at, id FROM tasks",
)
_NEWEST = "tasks INDEXED BY ix_tasks_newest"
"""Read from its end, whatever is asked for: SQLite would take the project's own index, and sort all of it."""
_END = 2**62
_SECONDS = "(julianday(finished_at) - julianday(submitted_at)) * 86400"


class SqliteDialect:
    """How SQLite lists and searches tasks; see `search.Dialect`."""

    can_search = False

    def prepare(self, connection: Connection) -> None:
        """Make the indices where there are none; an SQLite without FTS5, or before 3.34, cannot have them."""
        found = connection.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'search_moved'")).first()
        try:
            for statement in () if found else (*_DROP, *_MAKE):
                connection.execute(text(statement))
        except OperationalError:
            self.can_search = False
        else:
            self.can_search = True

    def index(self, connection: Connection, most: int) -> int:
        """Put changed tasks into the indices, the newest first."""
        run = connection.execute
        stale = run(
            text(
                "SELECT s.task_id, s.created_at, d.id, t.input, t.output, t.project, t.agent_name,"
                " t.agent_type, t.sender_id, t.status FROM search_stale s"
                " LEFT JOIN search_docs d ON d.task_id = s.task_id"
                " LEFT JOIN tasks t ON t.id = s.task_id AND t.kept"
                " ORDER BY s.created_at DESC, s.task_id DESC LIMIT :most"
            ),
            {"most": most},
        ).all()
        old = [{"doc": row[2]} for row in stale if row[2] is not None]
        for table, name in (("search_long", "rowid"), ("search_short", "rowid"), ("search_docs", "id")):
            if old:
                run(text(f"DELETE FROM {table} WHERE {name} = :doc"), old)  # noqa: S608 - ours
        # By rising numbers: FTS5 writes all that it holds when one comes that is less than the one before.
        docs = [_document(connection, row) for row in reversed(stale) if row[3] is not None]
        if docs:
            run(text("INSERT INTO search_long (rowid, body) VALUES (:doc, :long)"), docs)
            run(text("INSERT INTO search_short (rowid, body) VALUES (:doc, :short)"), docs)
        gone = [{"made": row[1], "task": row[0]} for row in stale]
        if gone:
            run(text("DELETE FROM search_stale WHERE created_at = :made AND task_id = :task"), gone)
        return len(stale)

    def find(self, connection: Connection, wanted: Wanted, terms: Sequence[str]) -> Found:
        """The tasks that are wanted."""
        if terms and self.can_search:
            return self._look_up(connection, wanted, terms)
        chosen, values = conditions(wanted, "created_at", _stored)
        for at, term in enumerate(terms):
            chosen += f" AND (input LIKE :term{at} ESCAPE '\\' OR output LIKE :term{at} ESCAPE '\\')"
            values[f"term{at}"] = pattern_of(term)
        if wanted.after:
            values["made"], _, values["last"] = wanted.after.partition("/")
            chosen += " AND (created_at, id) < (:made, :last)"
        query = (
            f"SELECT id, created_at FROM {_NEWEST} WHERE {chosen}"  # noqa: S608 - ours
            " ORDER BY created_at DESC, id DESC LIMIT :most"
        )
        rows = connection.execute(text(query), values | {"most": wanted.limit}).all()
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
            filtered=bool(wanted.agent or wanted.sender or wanted.states or wanted.project)
            or bool(wanted.since or wanted.until),
        )
        docs = Lookup(connection, words_of(terms), chosen).find(wanted.limit)
        return Found([task for _, task in docs], str(docs[-1][0]) if len(docs) == wanted.limit else "")

    def count(self, connection: Connection, wanted: Wanted) -> Sequence[Count]:
        """How many tasks there are, by agent and state, and how long they took."""
        chosen, values = conditions(wanted, "created_at", _stored)
        query = (
            f"SELECT agent_name, status, COUNT(*), COUNT({_SECONDS}), TOTAL({_SECONDS}),"  # noqa: S608
            f" MIN(created_at), MAX(created_at) FROM {_NEWEST} WHERE {chosen}"
            " GROUP BY agent_name, status ORDER BY agent_name, status"
        )
        rows = connection.execute(text(query), values).all()
        return [
            Count(agent, state, tasks, timed, seconds, _time(first), _time(last))
            for agent, state, tasks, timed, seconds, first, last in rows
        ]

    def interrupt(self, connection: Any) -> None:  # noqa: ANN401 - a DBAPI connection
        """End the query that a connection is at."""
        connection.interrupt()


def words_of(terms: Sequence[str]) -> list[Words]:
    """What is looked up of some terms in which index."""
    long = [term for term in terms if len(term) >= SHORTEST]
    short = [word for term in terms if len(term) < SHORTEST for word in _short_query(term)]
    found = []
    if long:
        found.append(Words("search_long", " ".join(map(_quoted, long)), long))
    if short:
        parts = [f" {word[:-1]}" if word.endswith("*") else f" {word} " for word in short]
        found.append(Words("search_short", " ".join(short), parts))
    return found


def _document(connection: Connection, row: Any) -> dict[str, Any]:  # noqa: ANN401 - a row of `index`
    """Give a task a number, and say what is looked up of it."""
    task_id, made, _, message, answer, *chosen = row
    names = ("project", "agent_name", "agent_type", "sender_id", "status")
    values = dict(zip(names, chosen, strict=True)) | {"task": task_id, "doc": _number(_time(made))}
    put = text(
        "INSERT OR IGNORE INTO search_docs VALUES"
        " (:doc, :task, :project, :agent_name, :agent_type, :sender_id, :status)"
    )
    while not connection.execute(put, values).rowcount:  # several were made in one millisecond
        values["doc"] += 1
    body = folded(f"{message}\n{answer}"[:MOST])
    return {"doc": values["doc"], "long": body, "short": " ".join(sorted(set(_short_words(body))))}


def _number(time: datetime) -> int:
    """The number of a document that was made at a time: milliseconds since the epoch."""
    return int(time.timestamp() * 1000)


def _time(stored: str) -> datetime:
    return datetime.fromisoformat(stored).replace(tzinfo=UTC)


def _stored(time: datetime) -> str:
    """A time as it stands in the database."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _short_words(body: str) -> Iterator[str]:
    """The words of the short index: pairs of characters outside ASCII, the last alone, short ASCII words."""
    for run in runs_of(body):
        if run.isascii():
            if len(run) < SHORTEST:
                yield _name(run)
        else:
            yield from (_name(run[at : at + 2]) for at in range(len(run)))


def _short_query(term: str) -> list[str]:
    """How a term of one or two characters is asked for: one character begins a pair, or stands alone."""
    if term.isascii():
        return [_name(run) for run in runs_of(term)] or [_name(term)]
    return [f"{_name(term)}*" if len(term) == 1 else _name(term)]


@lru_cache(maxsize=65_536)
def _name(word: str) -> str:
    """A word that the index takes as one, whatever its characters are: six digits for each."""
    return "w" + "".join(f"{ord(char):06x}" for char in word)
