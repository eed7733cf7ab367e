"""Full-text search over tasks, whatever the database: what a query means, and what a database does with it.

A text is compared without regard to case, width and forms of letters. `database.dialect_of` gives the
dialect of a database.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from .records import Wanted

if TYPE_CHECKING:
    from sqlalchemy import Connection


__all__ = ["Count", "Dialect", "Found", "Wanted", "conditions", "folded", "runs_of", "terms_of"]

_TERM = re.compile(r'"([^"]*)"|(\S+)')


def folded(value: str) -> str:
    """A text as it is compared: without regard to case, width and forms of letters."""
    return unicodedata.normalize("NFKC", value).casefold()


def terms_of(query: str) -> list[str]:
    """The terms of a query, all of which must be found: words, or several in quotes."""
    found = (quoted or word.strip('"') for quoted, word in _TERM.findall(query))
    return [term for each in found if (term := folded(each).strip())]


MOST = 100_000
"""Characters of a task that are indexed."""
SHORTEST = 3
"""The shortest text that an index of trigrams finds."""

_RUN = re.compile(r"[^\x00-\x7f\s]+|[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of the tasks that are wanted, the newest first, and where the next page begins; empty for none."""

    ids: Sequence[str]
    after: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many tasks of an agent are in a state."""

    agent: str
    state: str
    tasks: int  # how many
    timed: int  # how many of them have both been submitted and ended
    seconds: float  # how long these took, together
    first: datetime  # when the first of them was made, aware
    last: datetime  # when the last of them was made, aware


class Dialect(Protocol):
    """How a database lists and searches tasks."""

    can_search: bool
    """Whether words are looked up; else each text is read. False until `prepare`."""

    def prepare(self, connection: Connection) -> None:
        """Make the index where there is none; what is there already is indexed by and by."""

    def index(self, connection: Connection, most: int) -> int:
        """Put changed tasks into the index, the newest first."""

    def tidy(self, connection: Connection, most: int) -> int:
        """Remove what is of no use any more to the index, in about the time in which tasks are indexed."""

    def left(self, connection: Connection) -> int:
        """How many changed tasks are not in the index yet."""

    def find(self, connection: Connection, wanted: Wanted, terms: Sequence[str]) -> Found:
        """The tasks that are wanted."""

    def count(self, connection: Connection, wanted: Wanted) -> Sequence[Count]:
        """How many tasks there are, by agent and state, whatever their words."""

    def interrupt(self, connection: Any) -> None:  # noqa: ANN401 - a DBAPI connection
        """End the query that a connection of the driver is at; called from another thread."""


def indexed(message: str, answer: str) -> str:
    """What is looked up of a task: so much of its message and answer, folded."""
    return folded(f"{message}\n{answer}"[:MOST])


def runs_of(value: str) -> list[str]:
    return _RUN.findall(value)


def pattern_of(term: str) -> str:
    """What `LIKE` finds a term by anywhere in a text, with a backslash before what is no pattern."""
    escaped = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def conditions(
    wanted: Wanted, made: str, time: Callable[[datetime], object], *, of: str = ""
) -> tuple[str, dict[str, Any]]:
    """What a task must fulfil besides its words, as SQL with its parameters.

    What stands for the sender's own answers is none.
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
