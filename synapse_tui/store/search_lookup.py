"""In which order SQLite's search indices are read, so that no mixture of words and filters takes long.

Reading an index costs about a microsecond for each text in which a word stands, asking it about one text some
hundred, and looking into a text that is known some ten. So where few tasks pass the filters, or few have one
of the words, their texts are looked into; else the indices are read from their ends, side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, text

FEW = 2000
"""How many texts are looked into rather than reading an index for them."""
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
        parts: The same as parts of the text in the index, all of which stand in it.
    """

    table: str
    match: str
    parts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which documents are chosen, whatever stands in them.

    Attributes:
        low: Their least number.
        high: The number before which they are.
        sql: What they must fulfil besides, on `search_docs`.
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
            kept = self._looked_into([doc for doc, _ in few], self._words)
            return [doc for doc in few if doc[0] in kept][:limit]
        if len(self._words) == 1:
            return self._read_one(limit)
        found: list[Doc] = []
        for numbers in self._in_all():
            found += self._passed(numbers)
            if len(found) >= limit:
                break
        return found[:limit]

    def _few(self) -> list[Doc] | None:
        """The documents that are chosen; None when they are many."""
        query = (
            "SELECT id, task_id FROM search_docs WHERE id >= :low AND id < :high"  # noqa: S608 - ours
            f" AND {self._chosen.sql} ORDER BY id DESC LIMIT :few"
        )
        found = self._docs(query, few=FEW)
        return found if len(found) < FEW else None

    def _read_one(self, limit: int) -> list[Doc]:
        """Read the one index from its end, as far as needed."""
        [words] = self._words
        query = (
            f"SELECT id, task_id FROM {words.table} f CROSS JOIN search_docs ON id = f.rowid"  # noqa: S608
            f" WHERE f.{words.table} MATCH :words AND f.rowid >= :low AND f.rowid < :high"
            f" AND {self._chosen.sql} ORDER BY f.rowid DESC LIMIT :most"
        )
        return self._docs(query, words=words.match, most=limit)

    def _in_all(self) -> Iterator[list[int]]:
        """The numbers of what stands in both indices, some at a time, the newest first."""
        low, high = self._chosen.low, self._chosen.high
        heads = [(self._numbers(each, low, high, FEW), each) for each in self._words]
        (least, first), (_, other) = sorted(heads, key=lambda head: len(head[0]))
        if len(least) < FEW:
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

    def _looked_into(self, numbers: Collection[int], words: Sequence[Words]) -> set[int]:
        """Those documents in whose texts all words stand."""
        kept = set(numbers)
        for each in words:
            values = {f"part{at}": part for at, part in enumerate(each.parts)}
            stands = " AND ".join(f"instr(' ' || body || ' ', :{name})" for name in values)
            query = f"SELECT rowid FROM {each.table} WHERE rowid IN :numbers AND {stands}"  # noqa: S608 - ours
            kept = {row[0] for row in self._among(query, kept, values)}
        return kept

    def _passed(self, numbers: Collection[int]) -> list[Doc]:
        """Those documents that are chosen, the newest first."""
        query = f"SELECT id, task_id FROM search_docs WHERE id IN :numbers AND {self._chosen.sql}"  # noqa: S608
        rows = self._among(query, numbers, self._chosen.values)
        return sorted(((row[0], row[1]) for row in rows), reverse=True)

    def _among(self, query: str, numbers: Collection[int], values: Mapping[str, Any]) -> Iterable[Any]:
        some: BindParameter[Any] = bindparam("numbers", expanding=True)
        asked = list(numbers)
        for at in range(0, len(asked), FEW):
            part = {"numbers": asked[at : at + FEW]}
            yield from self._connection.execute(text(query).bindparams(some), {**values, **part})

    def _docs(self, query: str, **values: object) -> list[Doc]:
        chosen = self._chosen
        told = {"low": chosen.low, "high": chosen.high, **chosen.values, **values}
        return [(row[0], row[1]) for row in self._connection.execute(text(query), told)]
