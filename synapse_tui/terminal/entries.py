"""A logical line as the scrollback keeps it: in as little memory as its text allows."""

from __future__ import annotations

from sys import getsizeof

from .packed import Packed

Entry = str | tuple[str | bytes, tuple[int, ...], int, bool]
"""A line of ASCII in the default style as its text. Any other as text (UTF-8 where that is smaller), spans,
fill, and whether it goes on from the entry before, which had become too long."""

EMPTY_SIZE = getsizeof("") + 20
"""Memory of an entry that is an empty string, with its places in the lists."""

_FEW = 64
"""Style changes of a line, starts and styles, that are taken to be those of other lines too."""
_SMALL = 256
"""Up to here Python has each number once."""


def unpacked(entry: Entry) -> tuple[Packed, bool]:
    """A line as it is kept, and whether it goes on from the one before."""
    if isinstance(entry, str):
        return Packed(entry), False
    text, spans, fill, continued = entry
    return Packed(text if isinstance(text, str) else text.decode(), spans, fill), continued


def text_of(entry: Entry) -> str:
    """The coded text of a line as it is kept."""
    text = entry if isinstance(entry, str) else entry[0]
    return text if isinstance(text, str) else text.decode()


def holds(entry: Entry, char: str) -> bool:
    """Whether the coded text of a line as it is kept has an ASCII character."""
    text = entry if isinstance(entry, str) else entry[0]
    return char in text if isinstance(text, str) else char.encode() in text


def size_of(entry: Entry) -> int:
    """Memory of an entry, about: object headers and references; numbers of its own where it has many."""
    if isinstance(entry, str):
        return EMPTY_SIZE + len(entry)
    text, spans = entry[:2]
    if len(spans) <= _FEW:
        return 164 + getsizeof(text) + 16 * len(spans)
    return 164 + getsizeof(text) + 8 * len(spans) + 44 * len({value for value in spans if value > _SMALL})


def smaller(text: str) -> str | bytes:
    """A text as it is or in UTF-8, whichever takes less memory."""
    encoded = text.encode()
    return encoded if len(encoded) + 33 < getsizeof(text) else text
