"""Rows for an outer terminal: text without control functions, every cell in its column.

A cluster whose width the agent's terminal and the outer terminal disagree on would shift the rest of its row,
so the outer cursor is repositioned after every cluster of ambiguous width.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache

from .cells import JOIN, WIDE_TAIL, cell_count, readable, split_cells
from .row import Line
from .style import RGB, Style

# C0, DEL, C1, surrogates, line separators and the bidirectional controls, which would reorder the row.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb]"
)
# Characters of unambiguous width. All others are drawn one by one, each at its own column.
_NARROW = (
    " -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0373\u0376\u0377\u037b-\u037e\u0384-\u0482\u048a-\u052f"
    "\u2500-\u259f\u2800-\u28ff"
)
_WIDE = "\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"
_DOUBTFUL = re.compile(
    f"([\\s\\S](?:{JOIN}[\\s\\S])+{WIDE_TAIL}*"
    f"|[^{_NARROW}{_WIDE}{WIDE_TAIL}{JOIN}]{WIDE_TAIL}*"
    f"|[{_WIDE}](?!{WIDE_TAIL}))"
)
"""Any other character, in the coding of `cells.py`: `split` alternates unambiguous text and these."""
_UNSAFE_LINK = re.compile(r"[\x00-\x20\x7f-\xa0]")
_MAX_LINK = 2083


class _ToColumn(dict[int, str]):
    def __missing__(self, column: int) -> str:
        made = self[column] = f"\x1b[{column + 1}G"
        return made


_TO_COLUMN = _ToColumn()


def clean(text: str) -> str:
    return _UNSAFE.sub("", text)


def cells(line: Line) -> list[str]:
    out: list[str] = []
    for text, _, _ in line.coded_runs():
        if text.isascii() and text.isprintable():
            out += text
        else:
            out += ["" if cell == WIDE_TAIL else clean(cell) or " " for cell in split_cells(text)]
    return out


def parts(text: str) -> Iterator[tuple[str, int, bool]]:
    """Split a coded text into text, its cells, and whether it is one character of ambiguous width."""
    for index, part in enumerate(_DOUBTFUL.split(text)):
        if index % 2:
            yield (*_doubtful(part), True)
        elif part:
            yield readable(part), len(part), False


@lru_cache(maxsize=8192)
def _doubtful(coded: str) -> tuple[str, int]:
    width = cell_count(coded)
    return clean(readable(coded)) or " " * width, width


def draw_text(text: str, column: int) -> str:
    """Draw a coded text from `column`; the cursor ends after it, whatever the outer terminal's widths."""
    return text if text.isascii() and text.isprintable() else _drawn(text, column)


@lru_cache(maxsize=2048)
def _drawn(text: str, column: int) -> str:
    out: list[str] = []
    to = _TO_COLUMN
    found = _DOUBTFUL.split(text)
    for sure, doubtful in zip(found[::2], found[1::2], strict=False):
        character, width = _doubtful(doubtful)
        start = column + len(sure)
        column = start + width
        if width == 1:
            out += (sure, character, to[column])
        else:
            # Clear its cells first: a terminal that draws it narrow would leave the old second cell.
            out += (sure, " " * width, to[start], character, to[column])
    out.append(found[-1])
    return "".join(out).replace(WIDE_TAIL, "")


def attribute_parameters(style: Style) -> list[str]:
    """Return the SGR parameters of boolean attributes (ECMA-48 8.3.117, xterm ctlseqs)."""
    flags = (
        (style.bold, "1"),
        (style.dim, "2"),
        (style.italic, "3"),
        (style.blink, "5"),
        (style.hidden, "8"),
        (style.strike, "9"),
        (style.overline, "53"),
    )
    return [parameter for on, parameter in flags if on]


def underline_parameters(style: Style, underline: int, *, direct: bool) -> tuple[str, ...]:
    """Return the SGR parameters of an underline (0 to 5, as in `Style`) and its colour.

    Terminals without direct colours misread `4:3`; those that support it support direct colours too.
    """
    if not underline:
        return ()
    if not direct:
        return ("21",) if underline == 2 else ("4",)
    shape = "4" if underline == 1 else f"4:{underline}"
    code = style.underline_color
    if code < 0:
        return (shape,)
    if code & RGB:
        return (shape, f"58:2::{code >> 16 & 255}:{code >> 8 & 255}:{code & 255}")
    return (shape, f"58:5:{code}")


def clean_link(link: str | None) -> str | None:
    """Return a hyperlink's URI if it is valid for OSC 8: no blanks, no controls, not too long."""
    if not link or len(link) > _MAX_LINK or _UNSAFE_LINK.search(link):
        return None
    return link


def link_start(link: str) -> str:
    """Return the OSC 8 sequence that starts a hyperlink; equal URIs are one link."""
    return f"\x1b]8;id=s{zlib.crc32(link.encode()):x};{link}\x1b\\"
