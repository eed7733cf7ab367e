"""Lists and searches tasks in PostgreSQL: `pg_trgm` for three characters and more, arrays for shorter words.

Trigrams do not find words of one or two characters, and most Japanese words have two. So an indexed array,
which every PostgreSQL supports, holds pairs of characters outside ASCII, these characters themselves, and
short ASCII words. Without `pg_trgm`, longer ASCII words are found by scanning texts, newest first. Triggers
record changes of `tasks`, as in SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from synapse_tui.messages.storage.naming import Naming

from .records import Page, TaskQuery
from .search import (
    MOST,
    SHORTEST,
    Count,
    conditions,
    folded,
    pattern_of,
    runs_of,
)

_STALE = """SELECT created_at, task_id FROM search_stale ORDER BY created_at DESC, task_id DESC
    LIMIT :most FOR UPDATE SKIP LOCKED"""
_CHANGED = """SELECT id, created_at, left(input, :longest), left(output, :longest) FROM tasks
    WHERE id = ANY(:ids) AND kept"""
_PUT = """INSERT INTO search_docs (task_id, created_at, body, short_words) VALUES (:id, :made, :body, :words)
    ON CONFLICT (task_id) DO UPDATE SET body = excluded.body, short_words = excluded.short_words"""
_SECONDS = "extract(epoch FROM finished_at - submitted_at)"
_INTERRUPT = 1.0
"""Seconds for the server to cancel a query."""


class PostgresDialect:
    def __init__(self, naming: Naming) -> None:
        self.can_search = True
        self._naming = naming

    def prepare(self, connection: Connection) -> None:
        """Do nothing: the tables are created with all others."""

    def index(self, connection: Connection, most: int) -> int:
        """Index changed tasks, newest first; safe to run concurrently."""
        run = connection.execute
        ids = [row[1] for row in run(text(_STALE), {"most": most})]
        if not ids:
            return 0
        run(text("DELETE FROM search_stale WHERE task_id = ANY(:ids)"), {"ids": ids})
        rows = run(text(_CHANGED), {"ids": ids, "longest": MOST}).all()
        gone = set(ids) - {row[0] for row in rows}
        run(text("DELETE FROM search_docs WHERE task_id = ANY(:ids)"), {"ids": list(gone)})
        found = [{"id": row[0], "made": row[1], **_document(f"{row[2]}\n{row[3]}"[:MOST])} for row in rows]
        if found:
            run(text(_PUT), found)
        return len(ids)

    def tidy(self, connection: Connection, most: int) -> int:  # noqa: ARG002 - a Dialect
        """Do nothing: removals take effect at once."""
        return 0

    def left(self, connection: Connection) -> int:
        return int(connection.execute(text("SELECT count(*) FROM search_stale")).scalar() or 0)

    def find(self, connection: Connection, wanted: TaskQuery, terms: Sequence[str]) -> Page[str]:
        chosen, values = self._chosen(connection, wanted, "t.")
        source, made = "tasks t", "t.created_at"
        if terms:
            source, made = "search_docs f JOIN tasks t ON t.id = f.task_id", "f.created_at"
            spoken, more = _spoken(terms)
            chosen, values = f"{chosen} AND {spoken}", values | more
        last = "f.task_id" if terms else "t.id"
        if wanted.cursor:
            at, _, values["last"] = wanted.cursor.partition("/")
            values["made"] = datetime.fromisoformat(at)
            chosen += f" AND ({made}, {last}) < (:made, :last)"
        query = (
            f"SELECT {last}, {made} FROM {source} WHERE {chosen}"  # noqa: S608 - ours
            f" ORDER BY {made} DESC, {last} DESC LIMIT :most"
        )
        rows = connection.execute(text(query), values | {"most": wanted.limit}).all()
        after = f"{rows[-1][1].isoformat()}/{rows[-1][0]}" if len(rows) == wanted.limit else ""
        return Page([str(row[0]) for row in rows], after)

    def count(self, connection: Connection, wanted: TaskQuery) -> Sequence[Count]:
        chosen, values = self._chosen(connection, wanted, "")
        query = (
            f"SELECT agent_name, status, count(*), count({_SECONDS}),"  # noqa: S608 - ours
            f" coalesce(sum({_SECONDS}), 0)::float8, min(created_at), max(created_at)"
            f" FROM tasks WHERE {chosen} GROUP BY agent_name, status ORDER BY agent_name, status"
        )
        return [Count(*row) for row in connection.execute(text(query), values).all()]

    def interrupt(self, connection: Any) -> None:  # noqa: ANN401 - a DBAPI connection
        import psycopg  # noqa: PLC0415 - an extra

        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=_INTERRUPT)

    def _chosen(self, connection: Connection, wanted: TaskQuery, of: str) -> tuple[str, dict[str, Any]]:
        agent, _, machine = wanted.agent.partition("@")
        chosen, values = conditions(
            replace(wanted, agent=agent, project=""), f"{of}created_at", lambda time: time, of=of
        )
        if machine:
            chosen += f" AND starts_with({of}project, :machine)"
            values["machine"] = f"{machine}:"
        if wanted.project:
            shared = {"name": self._naming.shared_project(wanted.project)}
            rows = connection.execute(text("SELECT project FROM projects WHERE repository = :name"), shared)
            values["projects"] = sorted({self._naming.project(wanted.project), *(row[0] for row in rows)})
            chosen += f" AND {of}project = ANY(:projects)"
        return chosen, values


def _spoken(terms: Sequence[str]) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {}
    found: list[str] = []
    words = sorted({word for term in terms for word in _wanted(term)})
    if words:
        found.append("f.short_words @> CAST(:words AS text[])")
        values["words"] = words
    for at, term in enumerate(terms):
        if len(term) >= SHORTEST or not _wanted(term):
            found.append(f"f.body LIKE :term{at}")
            values[f"term{at}"] = pattern_of(term)
    return " AND ".join(found), values


def _document(content: str) -> dict[str, Any]:
    body = folded(content)
    return {"body": body, "words": sorted(set(_short_words(body)))}


def _short_words(body: str) -> Iterator[str]:
    for run in runs_of(body):
        if not run.isascii():
            yield from run
            yield from (run[at : at + 2] for at in range(len(run) - 1))
        elif len(run) < SHORTEST:
            yield run


def _wanted(term: str) -> list[str]:
    found: list[str] = []
    for run in runs_of(term):
        if not run.isascii():
            found += [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]
        elif len(term) < SHORTEST:
            found.append(run)
    return found
