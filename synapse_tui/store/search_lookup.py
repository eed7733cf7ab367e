"""In which order SQLite's search indices are read, so that no mixture of words and filters takes long.

Reading an index costs about a microsecond for each text in which a word stands, asking it about one text some
hundred, and looking into a text that is known some ten, and more the longer it is: it is read from its task
and folded. So where few tasks pass the filters, or few have one of the words, their texts are looked into,
unless these are long; else the indices are read from their ends, side by side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, text

from .search import indexed

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
    """What is looked up in one index.

    Attributes:
        table: The index.
        match: The words as FTS5 is asked for them.
        parts: What stands in the folded text then, all of it.
    """

    table: str
    match: str
    parts: Sequence[re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which documents are chosen, whatever stands in them.

    Attributes:
        low: Their least number.
        high: The number before which they are.
        sql: What they must fulfil besides, on `search_documents`.
        values: The parameters of that.
        filtered: Whether that may leave few.
    """

    low: int
    high: int
    sql: str
    values: Mapping[str, Any]
    filtered: bool


class Lookup:
    """Finds documents, the newest first.

    Args:
        connection: For reading.
        words: What is looked up in each index, at least in one.
        chosen: Which documents may be found.
    """

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
        """Read the one index from its end, as far as needed."""
        [words] = self._words
        query = (
            f"SELECT id, task_id FROM {words.table} f CROSS JOIN search_documents ON id = f.rowid"  # noqa: S608
            f" WHERE f.{words.table} MATCH :words AND f.rowid >= :low AND f.rowid < :high"
            f" AND task_id IS NOT NULL AND {self._chosen.sql} ORDER BY f.rowid DESC LIMIT :most"
        )
        return [(row[0], row[1]) for row in self._run(query, words=words.match, most=limit)]

    def _in_all(self) -> Iterator[list[int]]:
        """The numbers of what stands in both indices, some at a time, the newest first."""
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
        """Whether documents are too long, together, to be looked into."""
        query = "SELECT size FROM search_documents WHERE id IN :numbers AND task_id IS NOT NULL"
        size: int = sum(row[0] for row in self._among(query, numbers, {}))
        return size > LONG

    def _looked_into(self, numbers: Collection[int], words: Sequence[Words]) -> set[int]:
        """Those documents in whose texts all words stand."""
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
        """Those documents that are chosen, the newest first."""
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
        told = {"low": chosen.low, "high": chosen.high, **chosen.values, **values}
        return self._connection.execute(text(query), told).all()
