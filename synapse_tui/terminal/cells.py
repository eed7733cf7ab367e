"""Cells in one string: the coding of compact rows and of the scrollback.

The string has one character per cell. `WIDE_TAIL` is the right half of a wide character, and each further
code point of a cluster is preceded by `JOIN`. Both are control characters, so they never occur in a cell.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from wcwidth import wcwidth
from wcwidth.table_vs16 import VS16_NARROW_TO_WIDE
from wcwidth.table_wide import WIDE_EASTASIAN
from wcwidth.table_zero import ZERO_WIDTH

WIDE_TAIL = "\0"
JOIN = "\1"

_CELL = re.compile(f"[\\s\\S](?:{JOIN}[\\s\\S])*")
_WIDE_FIRST = re.compile(f"[^{WIDE_TAIL}](?:{JOIN}[\\s\\S])*{WIDE_TAIL}")


def cell_count(text: str) -> int:
    return len(text) - 2 * text.count(JOIN)


def split_cells(text: str) -> Sequence[str]:
    """Split a coded text into cells; clusters are whole, right halves of wide characters are `WIDE_TAIL`."""
    return [cell.replace(JOIN, "") for cell in _CELL.findall(text)] if JOIN in text else text


def places(text: str, columns: Iterable[int]) -> list[int]:
    """Return where cells of a coded text start; `columns` may include the column after the last cell."""
    first, *parts = map(len, text.split(JOIN))
    found, end, index, last = [], first, 0, len(parts)
    for column in columns:
        while end <= column and index < last:
            end += parts[index] - 1
            index += 1
        found.append(column + 2 * index)
    return found


def cut_cells(text: str, start: int, end: int) -> str:
    """Return the cells from `start` to `end`; halves of wide characters become blanks."""
    first, last = places(text, (start, end)) if JOIN in text else (start, end)
    part = text[first:last]
    if part.startswith(WIDE_TAIL):
        part = " " + part[1:]
    if part and text[last : last + 1] == WIDE_TAIL:
        begin = places(part, (end - start - 1,))[0]
        part = part[:begin] + " "
    return part


def begins_wide(text: str) -> bool:
    return _WIDE_FIRST.match(text) is not None


def join_cells(cells: Sequence[str]) -> str:
    """Return the coded text of cells; the right half of a wide character may be empty or `WIDE_TAIL`."""
    if isinstance(cells, str):
        return cells
    text = "".join(cells)
    if len(text) == len(cells) and "" not in cells:
        return text
    return "".join([cell if len(cell) == 1 else JOIN.join(cell) or WIDE_TAIL for cell in cells])


def bases(text: str) -> str:
    """Return a coded text with only the first code point of each cluster, indexable by column."""
    if JOIN not in text:
        return text
    first, *rest = text.split(JOIN)
    return first + "".join([part[1:] for part in rest])


def readable(text: str) -> str:
    return text.replace(WIDE_TAIL, "").replace(JOIN, "") if WIDE_TAIL in text or JOIN in text else text


Ranges = list[tuple[int, int]]

ZWJ = "\u200d"
VS15 = "\ufe0e"
VS16 = "\ufe0f"
MAX_CLUSTER = 32  # Maximum code points per cell; the rest is dropped

_FIRST, _LAST = 0xA0, 0x10FFFF
_SKIN_TONES = (0x1F3FB, 0x1F3FF)
_REGIONAL = (0x1F1E6, 0x1F1FF)
_PICTOGRAPHS = ((0xA9, 0xA9), (0xAE, 0xAE), (0x203C, 0x2BFF), (0x3030, 0x303D), (0x1F000, 0x1FAFF))
"""Characters that may follow a zero width joiner: the blocks of Extended_Pictographic."""
_INDIC = (
    (0x900, 0xDFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x1B00, 0x1BFF),
    (0xA980, 0xABFF),
    (0x11000, 0x11FFF),
)
"""Blocks of scripts in which a virama joins the consonants on both sides."""


def _optional(module: str, name: str) -> Ranges:
    """Return a table that older versions of `wcwidth` lack."""
    try:
        table = getattr(importlib.import_module(f"wcwidth.{module}"), name)
    except (ImportError, AttributeError):
        return []
    return _newest(table) if isinstance(table, Mapping) else sorted(table)


def _newest(tables: Mapping[str, Iterable[tuple[int, int]]]) -> Ranges:
    return sorted(tables[list(tables)[-1]])


def _without(ranges: Ranges, holes: Ranges) -> Ranges:
    result = []
    for first, last in ranges:
        at = first
        for low, high in holes:
            if high < at or low > last:
                continue
            if low > at:
                result.append((at, low - 1))
            at = high + 1
        if at <= last:
            result.append((at, last))
    return result


def _class(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


def _members(ranges: Iterable[tuple[int, int]]) -> frozenset[str]:
    return frozenset(chr(code) for first, last in ranges for code in range(first, last + 1))


_WIDE_ALL = _newest(WIDE_EASTASIAN)
_EXTENDERS = sorted([*_without(_newest(ZERO_WIDTH), [(0, _FIRST - 1)]), _SKIN_TONES])
_WIDE = _without(_WIDE_ALL, sorted([*_EXTENDERS, _REGIONAL]))
_NARROW = [(0x20, 0x7E), *_without([(_FIRST, _LAST)], sorted([*_EXTENDERS, *_WIDE_ALL, _REGIONAL]))]
_WIDENED = _members(_newest(VS16_NARROW_TO_WIDE))
_NARROWED = _members(_optional("table_vs15", "VS15_WIDE_TO_NARROW"))
_SPACING = _members(_optional("table_mc", "CATEGORY_MC"))
_JOINERS = [*_optional("table_grapheme", "ISC_VIRAMA"), *_optional("table_grapheme", "ISC_INVISIBLE_STACKER")]
_VIRAMAS = "".join(sorted(_members(_JOINERS))) or "\u094d"

_N, _W, _X, _R = _class(_NARROW), _class(_WIDE), _class(_EXTENDERS), _class([_REGIONAL])
EXTENDERS = _X  # Characters that belong to the one before them, as the content of a character class
MARKS = re.compile(f"(?:(?![{_class([_SKIN_TONES])}])[{EXTENDERS}])+")
"""Extenders that take no cell without a character before them."""

all_narrow = re.compile(f"[{_N}]+").fullmatch
"""Matches text of independent characters, each one cell wide."""

_FOLLOWING = (
    f"[{_X}]"
    f"|(?<={ZWJ})[{_class(_PICTOGRAPHS)}]"
    f"|(?:(?<=[{_VIRAMAS}])|(?<=[{_VIRAMAS}]{ZWJ}))(?![{_X}])[{_class(_INDIC)}]"
)
CLUSTER = f"(?:[{_R}]{{2}}|[^{_X}])(?:{_FOLLOWING}){{0,{MAX_CLUSTER - 1}}}"
SEGMENTS = re.compile(
    f"([{_N}]+)(?![{_X}])"  # 1: narrow characters, not the base of a cluster
    f"|([{_W}]+)(?![{_X}])"  # 1: narrow characters, not the base of a cluster
    f"|({CLUSTER})"  # 2: wide characters, likewise
    "|([\\s\\S])"  # 4: an extender without its base
)

_SPECIAL = re.compile(f"[{_X}{_R}{_VIRAMAS}]")


_CLASSIFIED = 0x20000


def make_classes() -> bytes:
    """Return what the compiled core asks of each character below U+20000; the bits are named there."""
    table = bytearray(_CLASSIFIED)
    viramas = [(ord(char), ord(char)) for char in _VIRAMAS]
    classes = (_NARROW, _WIDE, _EXTENDERS, [_REGIONAL], viramas, _PICTOGRAPHS, _INDIC)
    for number, ranges in enumerate(classes):
        with_bit = bytes(value | 1 << number for value in range(256))
        for first, last in ranges:
            table[first : last + 1] = table[first : last + 1].translate(with_bit)
    return bytes(table)


@lru_cache(maxsize=4096)
def is_special(char: str) -> bool:
    """Whether a character creates clusters: a mark, a joiner, a regional indicator."""
    return char == JOIN or _SPECIAL.match(char) is not None


def may_cluster(text: str) -> bool:
    """Whether a coded text may have clusters; otherwise each code point is a character in any mode."""
    return not text.isascii() and any(map(is_special, set(text)))


@lru_cache(maxsize=1)
def legacy_segments() -> re.Pattern[str]:
    """Groups as in `SEGMENTS`, without clusters (mode 2027 reset): 1 narrow, 2 wide, 3 anything else."""
    return re.compile(f"([{_N}]+)|([{_W}]+)|([\\s\\S])")


@lru_cache(maxsize=4096)
def char_width(char: str) -> int:
    return max(0, wcwidth(char))


@lru_cache(maxsize=4096)
def cluster_width(cluster: str) -> int:
    """Return the cells of a cluster: those of its widest code point, with exceptions.

    A variation selector can change the width; a spacing mark or a second consonant makes it two. A skin tone
    alone keeps an emoji as narrow as its text form: `wcwidth`, opencode and Copilot agree on this.
    """
    base, selector = cluster[0], cluster[1:2]
    if selector == VS16 and base in _WIDENED:
        return 2
    if selector == VS15 and base in _NARROWED:
        return 1
    if base in _WIDENED and all(_is_in(char, _SKIN_TONES) for char in cluster[1:]):
        return char_width(base)
    widest = max(1, *map(char_width, cluster))
    return 2 if widest == 1 and _has_second_half(cluster) else widest


def narrowed(cluster: str) -> str:
    """Return what remains of a wide character when its second cell is overwritten.

    Many programs treat a character widened by U+FE0F as narrow and continue after its first cell: then the
    character without the selector remains. For any other character a blank remains.
    """
    text = cluster.replace(VS16, "")
    return text if VS16 in cluster and text and cluster_width(text) == 1 else " "


def _has_second_half(cluster: str) -> bool:
    return any(
        mark in _SPACING or (before in _VIRAMAS and char_width(mark) == 1)
        for before, mark in pairwise(cluster.replace(ZWJ, ""))
    )


def _is_in(char: str, *ranges: tuple[int, int]) -> bool:
    code = ord(char)
    return any(first <= code <= last for first, last in ranges)


@lru_cache(maxsize=4096)
def may_extend(char: str) -> bool:
    return _is_extender(char) or _is_in(char, _REGIONAL, *_PICTOGRAPHS, *_INDIC)


def joins_next(char: str) -> bool:
    """Whether the next character may extend a cluster that ends in this one."""
    return char == ZWJ or char in _VIRAMAS or _is_in(char, _REGIONAL)


def _is_extender(char: str) -> bool:
    return char_width(char) == 0 or _is_in(char, _SKIN_TONES)


def extends(cluster: str, char: str) -> bool:
    if _is_extender(char):
        return True
    if len(cluster) >= MAX_CLUSTER:
        return False
    if cluster[-1] == ZWJ and _is_in(char, *_PICTOGRAPHS):
        return True
    if cluster.rstrip(ZWJ)[-1:] in _VIRAMAS and len(cluster) > 1:
        return _is_in(char, *_INDIC)
    return len(cluster) == 1 and _is_in(char, _REGIONAL) and _is_in(cluster, _REGIONAL)


def last_cluster(text: str) -> str:
    *_, match = SEGMENTS.finditer(text, max(0, len(text) - 2 * MAX_CLUSTER))
    return match.group() if match.lastindex == 3 else match.group()[-1]


def encode(text: str) -> str:
    return SEGMENTS.sub(_encode_match, text)


def _encode_match(match: re.Match[str]) -> str:
    kind, text = match.lastindex, match.group()
    if kind == 1:
        return text
    if kind == 2:
        return encode_wide(text)
    if kind == 3:
        return encode_cluster(text)
    return encode_wide(text) if match.start() == 0 and char_width(text) == 2 else ""


@lru_cache(maxsize=4096)
def encode_wide(text: str) -> str:
    return WIDE_TAIL.join(text) + WIDE_TAIL


@lru_cache(maxsize=4096)
def encode_cluster(cluster: str) -> str:
    return JOIN.join(cluster) + WIDE_TAIL * (cluster_width(cluster) - 1)
