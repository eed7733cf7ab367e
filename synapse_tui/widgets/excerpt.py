"""A line of a text around the words that were searched for, which are made visible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from synapse_tui.messages.search import folded

from .text import one_line, shorten

AROUND = 200
"""How many characters before and after the words are looked at."""
HEAD = 2000
"""How many characters of a text are looked at where the words are not found as they are written."""
BEFORE = 0.3
"""How much of the line may stand before the words."""

Run = tuple[str, bool]
"""Some text, and whether it is what was searched for."""


def stands_in(text: str, terms: Sequence[str]) -> bool:
    """Whether one of the terms stands in a text, whatever its case and, at its beginning, its width."""
    plain = text.casefold()
    return any(term in plain or term in folded(text[:HEAD]) for term in terms)


def excerpt(text: str, terms: Sequence[str], width: int) -> list[Run]:
    """The part of a text in which terms stand, as one line.

    Args:
        text: The text.
        terms: Folded, as of `store.words.terms_of`; may be empty.
        width: Cells there are.
    """
    line = one_line(_around(text, terms))
    hits = list(_hits(line, terms))
    start = 0
    if hits and cell_len(line[: hits[0][1]]) > width - 2:
        room, start = int(width * BEFORE), hits[0][0]
        while start > 0 and cell_len(line[start - 1 : hits[0][0]]) < room:
            start -= 1
    lead = "…" if start else ""
    shown = shorten(lead + line[start:], width)
    return list(_runs(shown, [(a - start + len(lead), b - start + len(lead)) for a, b in hits]))


def _around(text: str, terms: Sequence[str]) -> str:
    """The part of a long text that is looked at."""
    if len(text) <= HEAD:
        return text
    plain = text.casefold()
    found = min((at for term in terms if (at := plain.find(term)) >= 0), default=-1)
    if found < HEAD // 2:
        return text[:HEAD]
    return "…" + text[max(0, found - AROUND) : found + 2 * AROUND]


def _hits(line: str, terms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where terms stand in a line, in order, none over another."""
    plain: list[str] = []
    places: list[int] = []
    for at, char in enumerate(line):
        for each in folded(char):
            plain.append(each)
            places.append(at)
    whole, end = "".join(plain), 0
    found = [(at, at + len(term)) for term in terms for at in _all(whole, term)]
    for first, last in sorted(found, key=lambda hit: (hit[0], -hit[1])):
        if first >= end:
            yield places[first], places[last - 1] + 1
            end = last


def _all(whole: str, term: str) -> Iterator[int]:
    at = whole.find(term)
    while at >= 0:
        yield at
        at = whole.find(term, at + len(term))


def _runs(line: str, hits: Sequence[tuple[int, int]]) -> Iterator[Run]:
    done = 0
    for first, last in hits:
        if line[done:first]:
            yield line[done:first], False
        if line[first:last]:
            yield line[first:last], True
        done = max(done, last)
    if line[done:]:
        yield line[done:], False
