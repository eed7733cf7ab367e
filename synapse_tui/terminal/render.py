"""Rows as what draws them on an outer terminal: nothing in their text acts on it, and no cell is shifted.

A cluster on whose width the agent's terminal and the outer terminal disagree would move all that follows.
So the outer cursor is put where the next cell is after every cluster of doubtful width.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache

from .cells import JOIN, WIDE_TAIL, cell_count, readable, split_cells
from .row import Line
from .style import RGB, Style

# C0, DEL, C1, surrogates, line separators and the bidirectional controls, which would reorder the outer row.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb]"
)
# Characters whose width no terminal doubts. All others are drawn one by one, each at its own column.
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
"""One of the others in the coding of `cells.py`: `split` gives what is beyond doubt and these by turns."""
_UNSAFE_LINK = re.compile(r"[^\x21-\x7e\u00a1-\U0010ffff]")
_MAX_LINK = 2083


class _ToColumn(dict[int, str]):
    """CHA to columns from 0, each made once."""

    def __missing__(self, column: int) -> str:
        made = self[column] = f"\x1b[{column + 1}G"
        return made


_TO_COLUMN = _ToColumn()


def clean(text: str) -> str:
    """Return a text without characters that act on a terminal or reorder its row."""
    return _UNSAFE.sub("", text)


def cells(line: Line) -> list[str]:
    """Return the text of each cell of a line; the second cell of a wide character is empty."""
    out: list[str] = []
    for text, _, _ in line.coded_runs():
        if text.isascii() and text.isprintable():
            out += text
        else:
            out += ["" if cell == WIDE_TAIL else clean(cell) or " " for cell in split_cells(text)]
    return out


def parts(text: str) -> Iterator[tuple[str, int, bool]]:
    """Cut a coded text: text, its cells, and whether it is one character of doubtful width."""
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
    """Draw a coded text from `column` on; the cursor ends behind it, whatever the outer terminal's widths."""
    return text if text.isascii() and text.isprintable() else _drawn(text, column)


@lru_cache(maxsize=2048)
def _drawn(text: str, column: int) -> str:
    """What draws a text with other characters; of rows that did not change it is known."""
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
            # Its cells are cleared first: a terminal that draws it narrow would leave what was in the second.
            out += (sure, " " * width, to[start], character, to[column])
    out.append(found[-1])
    return "".join(out).replace(WIDE_TAIL, "")


def attribute_parameters(style: Style) -> list[str]:
    """Return the SGR parameters of what is simply on or off (ECMA-48 8.3.117, xterm ctlseqs)."""
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
    """The SGR parameters of an underline (0 to 5, as in `Style`) and its colour.

    Terminals without direct colours misread `4:3`; those that know it know direct colours too.
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
    """Return a hyperlink's address if it is fit for OSC 8: no blanks, no controls, not overlong."""
    if not link or len(link) > _MAX_LINK or _UNSAFE_LINK.search(link):
        return None
    return link


def link_start(link: str) -> str:
    """Return the OSC 8 sequence that begins a hyperlink; what leads to one address is one link."""
    return f"\x1b]8;id=s{zlib.crc32(link.encode()):x};{link}\x1b\\"
