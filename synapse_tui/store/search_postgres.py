"""Search in PostgreSQL: texts of three characters and more by `pg_trgm` where it is there, and short words.

Trigrams find no word of one or two characters, and most Japanese words have two: pairs of characters outside
ASCII, the characters themselves and short ASCII words stand in an array with an index of its own, which every
PostgreSQL has. What remains where `pg_trgm` is missing are longer words in ASCII: for them texts are read, the
newest first and no further than needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from synapse_tui.store.search import MOST, SHORTEST, folded, runs_of

TRIGRAMS = "CREATE INDEX ix_search_docs_body ON search_docs USING gin (body gin_trgm_ops)"
_HAS = """SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm')
    AND to_regclass('synapse.ix_search_docs_body') IS NULL"""
_SOME = "SELECT task_id FROM search_stale ORDER BY task_id LIMIT :most FOR UPDATE SKIP LOCKED"


class PostgresSearch:
    """The search tables of PostgreSQL."""

    order = "f.id DESC"

    def make(self, connection: Connection) -> bool:
        """Make the index of trigrams, where the extension was installed since the tables were made."""
        if connection.execute(text(_HAS)).scalar():
            try:
                with connection.begin_nested():
                    connection.execute(text(TRIGRAMS))
            except DBAPIError:
                return True  # another user owns the table: it is searched as before
        return True

    def index(self, connection: Connection, most: int) -> int:
        """Put changed tasks into the table; several may do so at the same time."""
        run = connection.execute
        stale = [str(row[0]) for row in run(text(_SOME), {"most": most})]
        if not stale:
            return 0
        ids = {"ids": stale}
        run(text("DELETE FROM search_stale WHERE task_id = ANY(:ids)"), ids)
        run(text("DELETE FROM search_docs WHERE task_id = ANY(:ids)"), ids)
        rows = run(
            text("SELECT id, input, output FROM tasks WHERE id = ANY(:ids) ORDER BY updated_at, id"), ids
        )
        found = [{"id": row[0], **_document(f"{row[1]}\n{row[2]}"[:MOST])} for row in rows]
        if found:
            run(
                text(
                    "INSERT INTO search_docs (task_id, body, short_words) VALUES (:id, :body, :words)"
                    " ON CONFLICT (task_id) DO UPDATE SET body = excluded.body, short_words = excluded.short_words"
                ),
                found,
            )
        return len(stale)

    def source(self, terms: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """The tasks in which all terms stand."""
        conditions: list[str] = []
        values: dict[str, Any] = {}
        words = sorted({word for term in terms for word in _wanted(term)})
        if words:
            conditions.append("f.short_words @> CAST(:words AS text[])")
            values["words"] = words
        for number, term in enumerate(terms):
            if len(term) >= SHORTEST or not _wanted(term):
                conditions.append(f"f.body LIKE :term{number}")
                values[f"term{number}"] = f"%{_like(term)}%"
        joined = "search_docs f JOIN tasks ON tasks.id = f.task_id"
        return f"{joined} AND {' AND '.join(conditions)}", values


def _document(content: str) -> dict[str, Any]:
    body = folded(content).replace("\0", " ")
    return {"body": body, "words": sorted(set(_short_words(body)))}


def _short_words(body: str) -> Iterator[str]:
    """Single characters and pairs outside ASCII, and words of one or two ASCII letters."""
    for run in runs_of(body):
        if not run.isascii():
            yield from run
            yield from (run[at : at + 2] for at in range(len(run) - 1))
        elif len(run) < SHORTEST:
            yield run


def _wanted(term: str) -> list[str]:
    """The short words that stand in every text with that term."""
    found: list[str] = []
    for run in runs_of(term):
        if not run.isascii():
            found += [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]
        elif len(term) < SHORTEST:
            found.append(run)
    return found


def _like(term: str) -> str:
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
