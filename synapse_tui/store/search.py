"""Full-text search over tasks: any part of a text of three characters and more, and shorter words too.

SQLite's trigram index (FTS5) finds texts of three characters and more, whatever the script, and nothing
shorter: most Japanese words have two. So there is a second index of pairs of characters outside ASCII, and of
words of one or two ASCII letters. What changes in `tasks` is noted by triggers and put into the indices by
whoever searches, or by a host that has nothing else to do: writing a task costs nothing more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

MOST = 100_000
"""Characters of a task that are indexed."""
CHUNK = 500
"""Tasks that are indexed in one transaction: others wait for the lock meanwhile."""
SHORTEST = 3
"""The shortest text that the trigram index finds."""

_MAKE = (
    """CREATE TABLE IF NOT EXISTS search_docs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, task_id VARCHAR NOT NULL UNIQUE)""",
    "CREATE TABLE IF NOT EXISTS search_stale (task_id VARCHAR NOT NULL PRIMARY KEY) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_long USING fts5(body, tokenize='trigram')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_short USING fts5(body, tokenize='ascii', prefix='7')",
    """CREATE TRIGGER IF NOT EXISTS search_added AFTER INSERT ON tasks BEGIN
        INSERT OR IGNORE INTO search_stale VALUES (new.id); END""",
    """CREATE TRIGGER IF NOT EXISTS search_changed AFTER UPDATE OF input, output ON tasks
        WHEN old.input IS NOT new.input OR old.output IS NOT new.output BEGIN
        INSERT OR IGNORE INTO search_stale VALUES (new.id); END""",
    """CREATE TRIGGER IF NOT EXISTS search_removed AFTER DELETE ON tasks BEGIN
        INSERT OR IGNORE INTO search_stale VALUES (old.id); END""",
)
_TERM = re.compile(r'"([^"]*)"|(\S+)')
_RUN = re.compile(r"[^\x00-\x7f\s]+|[a-z0-9]+")


def make_index(connection: Connection) -> bool:
    """Make the indices where they are not; what is there already is indexed by and by.

    Returns:
        Whether this SQLite can search them.
    """
    found = connection.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'search_removed'")).first()
    if found is not None:
        return True
    try:
        for statement in _MAKE:
            connection.execute(text(statement))
    except OperationalError:  # an SQLite without FTS5, or before 3.34
        return False
    connection.execute(text("INSERT OR IGNORE INTO search_stale SELECT id FROM tasks"))
    return True


def index_some(connection: Connection, most: int = CHUNK) -> int:
    """Put changed tasks into the indices.

    Args:
        connection: In a transaction.
        most: How many at most.

    Returns:
        How many were; fewer than `most` when no more are left.
    """
    run = connection.execute
    stale = [str(row[0]) for row in run(text("SELECT task_id FROM search_stale LIMIT :most"), {"most": most})]
    for task_id in stale:
        one = {"id": task_id}
        old = run(text("SELECT id FROM search_docs WHERE task_id = :id"), one).scalar()
        if old is not None:
            for table in ("search_long", "search_short"):
                run(text(f"DELETE FROM {table} WHERE rowid = :old"), {"old": old})  # noqa: S608 - ours
            run(text("DELETE FROM search_docs WHERE id = :old"), {"old": old})
        row = run(text("SELECT input, output FROM tasks WHERE id = :id"), one).first()
        if row is not None:
            body = folded(f"{row[0]}\n{row[1]}"[:MOST])
            run(text("INSERT INTO search_docs (task_id) VALUES (:id)"), one)
            doc = run(text("SELECT id FROM search_docs WHERE task_id = :id"), one).scalar()
            words = {"doc": doc, "body": body}
            run(text("INSERT INTO search_long (rowid, body) VALUES (:doc, :body)"), words)
            words["body"] = " ".join(sorted(set(_short_words(body))))
            run(text("INSERT INTO search_short (rowid, body) VALUES (:doc, :body)"), words)
        run(text("DELETE FROM search_stale WHERE task_id = :id"), one)
    return len(stale)


def folded(value: str) -> str:
    """A text as it is compared: without regard to case, width and forms of letters."""
    return unicodedata.normalize("NFKC", value).casefold()


def terms_of(query: str) -> list[str]:
    """The terms of a query, all of which must be found: words, or several in quotes."""
    found = (quoted or word.strip('"') for quoted, word in _TERM.findall(query))
    return [term for each in found if (term := folded(each).strip())]


def source(terms: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The documents in which all terms stand, as what follows SQL's `FROM`, with its parameters.

    The index is read from its end and only as far as it is needed (`ORDER BY f.rowid DESC LIMIT`): a word
    that stands in every text is found as fast as a rare one.

    Args:
        terms: What must be found; at least one.
    """
    long = " ".join(_quoted(term) for term in terms if len(term) >= SHORTEST)
    short = " ".join(word for term in terms if len(term) < SHORTEST for word in _short_query(term))
    values = {name: words for name, words in (("long", long), ("short", short)) if words}
    first, *rest = values
    found = [f"f.search_{first} MATCH :{first}"]
    found += [f"f.rowid IN (SELECT rowid FROM search_{name}(:{name}))" for name in rest]  # noqa: S608 - ours
    joined = "CROSS JOIN search_docs d ON d.id = f.rowid CROSS JOIN tasks ON tasks.id = d.task_id"
    return f"search_{first} f {joined} AND {' AND '.join(found)}", values


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _short_words(body: str) -> Iterator[str]:
    """The words of the short index: pairs of characters outside ASCII, the last alone, short ASCII words."""
    for run in _RUN.findall(body):
        if run.isascii():
            if len(run) < SHORTEST:
                yield _name(run)
        else:
            yield from (_name(run[at : at + 2]) for at in range(len(run)))


def _short_query(term: str) -> list[str]:
    """How a term of one or two characters is asked for: one character begins a pair, or stands alone."""
    if term.isascii():
        return [_name(run) for run in _RUN.findall(term)] or [_name(term)]
    return [f"{_name(term)}*" if len(term) == 1 else _name(term)]


def _name(word: str) -> str:
    """A word that the index takes as one, whatever its characters are: six digits for each."""
    return "w" + "".join(f"{ord(char):06x}" for char in word)
