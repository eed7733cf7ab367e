"""Full-text search over tasks: the query language and the interface to a database's search.

Comparison ignores case, width and compatibility forms. `database.dialect_of` selects the implementation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from synapse_tui.system.dataclass import dataclass

from .records import Page, TaskQuery

if TYPE_CHECKING:
    from sqlalchemy import Connection


__all__ = ["Count", "SearchDialect", "conditions", "folded", "runs_of", "terms_of"]

_TERM = re.compile(r'"([^"]*)"|(\S+)')


def folded(value: str) -> str:
    """Normalize case, width and compatibility forms for comparison."""
    return unicodedata.normalize("NFKC", value).casefold()


def terms_of(query: str) -> list[str]:
    """Split a query into terms, words or quoted phrases, all of which must match."""
    found = (quoted or word.strip('"') for quoted, word in _TERM.findall(query))
    return [term for each in found if (term := folded(each).strip())]


MOST = 100_000
"""Indexed characters per task."""
SHORTEST = 3
"""Minimum length of a text in a trigram index."""

_RUN = re.compile(r"[^\x00-\x7f\s]+|[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Count:
    agent: str
    state: str
    tasks: int
    timed: int  # those both submitted and ended
    seconds: float  # their total duration
    first: datetime  # earliest creation, aware
    last: datetime  # latest creation, aware


class SearchDialect(Protocol):
    can_search: bool
    """Whether the index can be used; otherwise texts are scanned. False until `prepare`."""

    def prepare(self, connection: Connection) -> None:
        """Create the index if missing; existing tasks are indexed later."""

    def index(self, connection: Connection, most: int) -> int:
        """Index changed tasks, newest first."""

    def tidy(self, connection: Connection, most: int) -> int:
        """Remove obsolete parts of the index; takes about as long as indexing that many tasks."""

    def left(self, connection: Connection) -> int:
        """Return the number of changed tasks that are not indexed yet."""

    def find(self, connection: Connection, wanted: TaskQuery, terms: Sequence[str]) -> Page[str]:
        """Return the ids of the matching tasks."""

    def count(self, connection: Connection, wanted: TaskQuery) -> Sequence[Count]:
        """Count tasks by agent and state, ignoring search terms."""

    def interrupt(self, connection: Any) -> None:  # noqa: ANN401 - a DBAPI connection
        """Abort the running query of a driver connection, from another thread."""


def indexed(message: str, answer: str) -> str:
    """Return the indexed text of a task: the folded beginning of its message and answer."""
    return folded(f"{message}\n{answer}"[:MOST])


def runs_of(value: str) -> list[str]:
    return _RUN.findall(value)


def pattern_of(term: str) -> str:
    """Return a `LIKE` pattern that finds a term anywhere, with wildcards escaped."""
    escaped = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def conditions(
    wanted: TaskQuery, made: str, time: Callable[[datetime], object], *, of: str = ""
) -> tuple[str, dict[str, Any]]:
    """Return the filter as an SQL condition with parameters, without search terms.

    Tasks that stand for a sender's own answers are excluded.
    """
    parts = [f"{of}sender_id != {of}agent_name"]
    values: dict[str, Any] = {}
    for name, part, value in (
        ("agent", f"({of}agent_name = :agent OR {of}agent_type = :agent)", wanted.agent),
        ("sender", f"{of}sender_id = :sender", wanted.sender),
        ("project", f"{of}project = :project", wanted.project),
        ("since", f"{made} >= :since", wanted.since and time(wanted.since)),
        ("until", f"{made} < :until", wanted.until and time(wanted.until)),
    ):
        if value:
            parts.append(part)
            values[name] = value
    if wanted.states:
        values |= {f"state{at}": state for at, state in enumerate(wanted.states)}
        parts.append(f"{of}status IN ({', '.join(f':state{at}' for at in range(len(wanted.states)))})")
    return " AND ".join(parts), values
