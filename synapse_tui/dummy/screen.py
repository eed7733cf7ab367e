"""The transcript as rows: what was said so far, wrapped to the width of the terminal."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from typing import Literal

from .widths import clip, printable, width, wrap

BlockKind = Literal["user", "agent", "tool", "output", "note", "raw"]

KEPT_BLOCKS = 500

_LIMITS = {"user": 12, "output": 200}
"""Rows that are shown of a block, by its kind."""


class Style:
    """Character attributes; without colour, those that are left tell things apart just as well."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def accent(self, text: str) -> str:
        """The agent's own colour."""
        return self._sgr("36", text)

    def warn(self, text: str) -> str:
        """For what asks for attention."""
        return self._sgr("33", text)

    def bold(self, text: str) -> str:
        """Strong."""
        return f"\x1b[1m{text}\x1b[22m"

    def dim(self, text: str) -> str:
        """Weak."""
        return f"\x1b[2m{text}\x1b[22m" if text else ""

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[39m" if self._color else text


@dataclass(slots=True)
class Block:
    """Something in the transcript.

    Attributes:
        kind: Who it is from.
        text: What it says.
        closed: Whether nothing more will be added to it.
    """

    kind: BlockKind
    text: str
    closed: bool = True


_MARKS = {"user": "> ", "agent": "● ", "tool": "● ", "output": "  ⎿  ", "note": "  ", "raw": ""}


class Transcript:
    """All blocks, and how many of their rows are on the screen for good.

    Args:
        style: How marks are drawn.
        name: The agent's name, for the banner.
    """

    def __init__(self, style: Style, name: str) -> None:
        self._style = style
        self._name = name
        self._blocks: deque[Block] = deque(maxlen=KEPT_BLOCKS)
        self._waiting: deque[Block] = deque()
        self._banner = True
        self._rows_out = 0

    def add(self, kind: BlockKind, text: str, *, closed: bool = True) -> Block:
        """Put something at the end; what stood there open is closed."""
        self.close()
        block = Block(kind, text, closed)
        self._blocks.append(block)
        self._waiting.append(block)
        return block

    def close(self) -> None:
        """Nothing more is added to the last block."""
        if self._blocks:
            self._blocks[-1].closed = True

    def clear(self) -> None:
        """Forget everything but the banner."""
        self._blocks.clear()
        self.replay()

    def replay(self) -> None:
        """Give out all rows again: the screen is empty."""
        self._waiting = deque(self._blocks)
        self._banner = True
        self._rows_out = 0

    def take(self, columns: int) -> tuple[list[str], list[str]]:
        """Rows that are new since the last call.

        Args:
            columns: Width of the terminal; a change needs `replay`.

        Returns:
            Rows that are finished, and the last row of a block that still grows.
        """
        finished = banner(self._style, self._name, columns) if self._banner else []
        self._banner = False
        while self._waiting:
            block = self._waiting[0]
            rows = self._rows(block, columns)
            if not block.closed:
                finished += rows[self._rows_out : -1]
                self._rows_out = max(len(rows) - 1, self._rows_out)
                return finished, rows[-1:]
            finished += rows[self._rows_out :]
            self._rows_out = 0
            self._waiting.popleft()
        return finished, []

    def _rows(self, block: Block, columns: int) -> list[str]:
        mark = _MARKS[block.kind]
        if block.kind == "raw":
            return block.text.split("\n")
        indent = " " * width(mark)
        rows = _wrapped(block.text, columns - len(indent), _LIMITS.get(block.kind, 0))
        drawn = [self._drawn(block.kind, row) for row in rows]
        marked = self._mark(block.kind, mark)
        body = [f"{marked if index == 0 else indent}{row}" for index, row in enumerate(drawn)]
        return body if block.kind == "output" else ["", *body]

    def _mark(self, kind: BlockKind, mark: str) -> str:
        return self._style.accent(mark) if kind == "agent" else self._style.dim(mark)

    def _drawn(self, kind: BlockKind, row: str) -> str:
        if kind == "tool":
            return self._style.bold(row)
        return self._style.dim(row) if kind in ("user", "note", "output") else row


def _wrapped(text: str, cells: int, limit: int) -> list[str]:
    """Rows of a text; with a limit only so many, the last of which then tells how much there is."""
    start = printable(text[: cells * limit] if limit else text)
    rows = wrap(start, cells)
    if not limit or (len(rows) <= limit and cells * limit >= len(text)):
        return rows
    return [*rows[: limit - 1], f"… {text.count(chr(10)) + 1} lines in all"]


def banner(style: Style, name: str, columns: int) -> list[str]:
    """The first rows: who this is, where it works, how to get help."""
    lines = [
        (f"✻ {name}", "· scripted agent, no model"),
        ("  /help", "for things to try"),
        ("  cwd", _home(os.getcwd())),  # noqa: PTH109 - pathlib would double the start time
    ]
    if columns < 44:
        return [style.accent(clip(f"✻ {name} · /help", columns))]
    inner = min(columns - 4, 56)
    rows = [style.dim(f"╭{'─' * (inner + 2)}╮")]
    for strong, weak in lines:
        note = clip(weak, inner - width(strong) - 1)
        space = " " * (inner - width(strong) - 1 - width(note))
        shown = style.accent(style.bold(strong)) if strong.startswith("✻") else style.dim(strong)
        rows.append(f"{style.dim('│')} {shown} {style.dim(note)}{space} {style.dim('│')}")
    rows.append(style.dim(f"╰{'─' * (inner + 2)}╯"))
    return rows


def _home(path: str) -> str:
    home = os.environ.get("HOME", "")
    return "~" + path[len(home) :] if home and (path + "/").startswith(home.rstrip("/") + "/") else path
