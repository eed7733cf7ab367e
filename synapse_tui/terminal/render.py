"""Rows as what draws them on an outer terminal: nothing in their text acts on it, and no cell is shifted.

A cluster on whose width the agent's terminal and the outer terminal disagree would move all that follows.
So the outer cursor is put where the next cell is after every cluster of doubtful width.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, repeat

from .line import Line
from .style import RGB, Style
from .width import may_cluster

# C0, DEL, C1, surrogates, line separators and the bidirectional controls, which would reorder the outer row.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb]"
)
# Characters whose width no terminal doubts. All others are drawn one by one, each at its own column.
_SURELY_NARROW = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0373\u0376\u0377\u037b-\u037e\u0384-\u0482\u048a-\u052f"
    "\u2500-\u259f\u2800-\u28ff]*"
)
_SURELY_WIDE = re.compile(
    "[\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60]*"
)
_UNSAFE_LINK = re.compile(r"[^\x21-\x7e\u00a1-\U0010ffff]")
_MAX_LINK = 2083
_END_LINK = "\x1b]8;;\x1b\\"

Unit = tuple[str, int, int]
"""Text, its cells, and the cells of each of its characters: 0 when it is one cluster of doubtful width."""


def clean(text: str) -> str:
    """Return a text without characters that act on a terminal or reorder its row."""
    return _UNSAFE.sub("", text)


def clusters(line: Line, start: int, count: int) -> list[tuple[str, int]]:
    """Return what the cells of a part of a line hold, and how wide each is; the widths add up to `count`.

    Args:
        line: The line.
        start: First column.
        count: Cells.
    """
    out: list[tuple[str, int]] = []
    end = start + count
    x = start
    while x < end:
        text, width = line.cell(x).text, 1
        while x + width < end and not line.cell(x + width).text:
            width += 1
        out.append((clean(text) or " " * width, width))
        x += width
    return out


def cells(line: Line) -> list[str]:
    """Return the text of each cell of a line; the second cell of a wide character is empty."""
    out: list[str] = []
    for text, _, count in line.runs():
        if len(text) == count and text.isascii():
            out += text
            continue
        for cluster, width in clusters(line, len(out), count):
            out += [cluster] + [""] * (width - 1)
    return out


def sure_unit(text: str, count: int) -> int:
    """Return the cells of each character of a run where that is beyond doubt for all of them, else 0.

    Args:
        text: The text of the run.
        count: Its cells.
    """
    if text.isprintable():
        if len(text) == count:
            return 1 if text.isascii() or _SURELY_NARROW.fullmatch(text) else 0
        if len(text) * 2 == count and _SURELY_WIDE.fullmatch(text):
            return 2
    return 0


def units(line: Line, start: int, text: str, count: int) -> Iterator[Unit]:
    """Cut a run of a line where the width of its characters changes or is in doubt.

    Args:
        line: The line.
        start: First column of the run.
        text: Its text.
        count: Its cells.
    """
    if sure := sure_unit(text, count):
        yield text, count, sure
        return
    # As many characters as cells, none of which can be part of a cluster: each has a cell of its own.
    single = len(text) == count and text.isprintable() and not may_cluster(text)
    for unit, group in groupby(zip(text, repeat(1)) if single else clusters(line, start, count), key=_unit):
        if unit:
            joined = "".join(cluster for cluster, _ in group)
            yield joined, len(joined) * unit, unit
        else:
            for cluster, width in group:
                yield cluster, width, 0


def _unit(cluster: tuple[str, int]) -> int:
    """Return the width of each character where it is beyond doubt, else 0."""
    text, width = cluster
    if len(text) != 1:
        return 0
    if width == 1:
        return 1 if _SURELY_NARROW.fullmatch(text) else 0
    return 2 if _SURELY_WIDE.fullmatch(text) else 0


def cut_unit(unit: Unit, first: int, last: int) -> Iterator[Unit]:
    """Yield the cells of a unit from `first` up to `last`; halves of characters are blanks."""
    text, count, each = unit
    if last - first == count:
        yield unit
    elif each == 1:
        yield text[first:last], last - first, 1
    elif not each:
        yield " " * (last - first), last - first, 1
    else:
        yield from _cut_wide(text, first, last)


def _cut_wide(text: str, first: int, last: int) -> Iterator[Unit]:
    if first % 2:
        yield " ", 1, 1
    whole = text[(first + 1) // 2 : last // 2]
    if whole:
        yield whole, 2 * len(whole), 2
    if last % 2:
        yield " ", 1, 1


def placed(text: str, count: int, end: int) -> str:
    """Return what draws a doubtful cluster and leaves the cursor in column `end`, from 0, in any case."""
    if count == 1:
        return f"{text}\x1b[{end + 1}G"
    # Both cells are cleared first: a terminal that draws it narrow would leave what was in the second.
    return f"{' ' * count}\x1b[{end - count + 1}G{text}\x1b[{end + 1}G"


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
    """Return the SGR parameters of an underline and its colour.

    Args:
        style: Has the colour.
        underline: 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed.
        direct: Whether the outer terminal knows direct colours. Older ones misread `4:3`; those that know it
            know direct colours too.
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


@lru_cache(maxsize=8192)
def rendition(style: Style, inverted: bool) -> str:
    """Return the SGR sequence of a style in direct colours; it resets first, so that it stands alone.

    Args:
        style: How the cells look.
        inverted: Whether the whole screen is reversed (DECSCNM).
    """
    parameters = [
        "0",
        *attribute_parameters(style),
        *underline_parameters(style, style.underline, direct=True),
    ]
    if style.reverse != inverted:
        parameters.append("7")
    parameters += _color(style.fg, 30)
    parameters += _color(style.bg, 40)
    return f"\x1b[{';'.join(parameters)}m"


def _color(code: int, base: int) -> list[str]:
    """The parameters of a colour; semicolons, for not every terminal knows ITU T.416's colons."""
    if code < 0:
        return []
    if code & RGB:
        return [f"{base + 8};2;{code >> 16 & 255};{code >> 8 & 255};{code & 255}"]
    if code < 16:
        return [str(base + code if code < 8 else base + 52 + code)]
    return [f"{base + 8};5;{code}"]


def draw_line(line: Line, columns: int, *, inverted: bool = False) -> str:
    """Return what draws a line, the cursor being in the first column; it ends with plain attributes.

    Args:
        line: The line.
        columns: Cells to draw; the line is cut there, and halves of wide characters are blanks.
        inverted: Whether the whole screen is reversed (DECSCNM).
    """
    out: list[str] = []
    column = 0
    for text, style, count in line.runs():
        if column >= columns:
            break
        link = clean_link(style.link)
        out.append(rendition(style, inverted) + (link_start(link) if link else ""))
        out.append(_draw_units(units(line, column, text, count), column, columns))
        out.append(_END_LINK if link else "")
        column += count
    return "".join(out) + "\x1b[0m"


def _draw_units(run: Iterable[Unit], column: int, columns: int) -> str:
    """What draws units from a column on, up to a width."""
    out: list[str] = []
    for unit in run:
        for text, count, each in cut_unit(unit, 0, min(unit[1], columns - column)):
            column += count
            out.append(text if each else placed(text, count, column))
        if column >= columns:
            break
    return "".join(out)
