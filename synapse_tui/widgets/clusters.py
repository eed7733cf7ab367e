"""Text of cells, one cluster at a time, free of anything that acts on an outer terminal."""

from __future__ import annotations

import re

from synapse_tui.terminal import Line

# C0, DEL, C1, surrogates, line separators and the bidirectional controls, which would reorder the outer row.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb]"
)


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
