"""Fits lines into cells: how text is cut, and rows of pieces that fill a width.

Sentences lose their end, at a word; names their middle, since what tells them apart is often last; paths
their beginning. Cells are counted, not characters, and a wide character is never halved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len, chop_cells
from textual.content import Content

from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

Cut = Literal["end", "middle", "start"]
ELLIPSIS = "…"
WAY_OUT = "Esc"
LEAVE = "escape"  # the target of a way out, whichever key it has


def shorten(text: str, width: int, cut: Cut = "end") -> str:
    """Return the text in at most `width` cells, shortened at that place."""
    if cell_len(text) <= width:
        return text
    if width < 2:
        return ELLIPSIS[: max(width, 0)]
    if cut == "start":
        return ELLIPSIS + _tail(text, width - 1)
    if cut == "middle":
        return _ends(text, width, (width - 1) // 2)
    head = _head(text, width - 1)
    if text[len(head)] != " ":
        word = head.rpartition(" ")[0]
        head = word if cell_len(word) > width * 2 // 3 else head
    return head.rstrip(" ,.;:") + ELLIPSIS


@lru_cache(maxsize=512)  # bars measure many widths whenever a spinner turns
def distinct(names: tuple[str, ...], width: int) -> Sequence[str]:
    """Shorten names so that different ones remain distinct: `dum…190`, `dum…191`."""
    for tail in range((width - 1) // 2, width):
        found = [name if cell_len(name) <= width else _ends(name, width, tail) for name in names]
        if len(set(found)) == len(set(names)):
            return found
    return [shorten(name, width, "middle") for name in names]


def pad(text: str, width: int, cut: Cut = "end") -> str:
    """Return the text in exactly `width` cells."""
    short = shorten(text, width, cut)
    return short + " " * (width - cell_len(short))


def _head(text: str, width: int) -> str:
    return chop_cells(text, width)[0] if width > 0 else ""


def _tail(text: str, width: int) -> str:
    start = len(text)
    while start and (width := width - cell_len(text[start - 1])) >= 0:
        start -= 1
    while start < len(text) and not cell_len(text[start]):  # a mark without the character it belongs to
        start += 1
    return text[start:]


def _ends(text: str, width: int, tail: int) -> str:
    end = _tail(text, tail)
    return _head(text, width - 1 - cell_len(end)) + ELLIPSIS + end


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a row."""

    text: str  # plain text, never parsed as markup
    style: str = ""  # a Textual style with theme variables (`bold $ink on $raised`)
    target: str = ""  # identifies what a click does; empty if not clickable
    tip: str = ""
    cut: Cut | None = None  # where it is shortened if the row is too narrow; None: never

    @property
    def width(self) -> int:
        return cell_len(self.text)

    def within(self, width: int) -> Piece:
        text = shorten(self.text, width, self.cut or "end")
        return self if text == self.text else Piece(text, self.style, self.target, self.tip, self.cut)


class Hint(NamedTuple):
    """A key that may be pressed, what it does, and the target of a click."""

    key: str
    word: str
    target: str = ""

    @property
    def leads_out(self) -> bool:
        return self.key == WAY_OUT or self.target == LEAVE

    @property
    def pieces(self) -> list[Piece]:
        key = [Piece(self.key, "bold $accent", self.target), Piece(" ", "$muted", self.target)]
        return [*(key if self.key else ()), Piece(tr(self.word), "$muted", self.target)]


def hint_row(hints: Iterable[Hint], width: int, gap: int = 2) -> list[Piece]:
    """Return the hints that fit, whole ones only, beginning with the first; the way out in any case."""
    kept = list(hints)
    while kept and width_of(row := _side_by_side(kept, gap)) > width:
        others = [at for at, hint in enumerate(kept) if not hint.leads_out]
        del kept[others[-1] if others else -1]
    return row if kept else []


def _side_by_side(hints: Iterable[Hint], gap: int) -> list[Piece]:
    row: list[Piece] = []
    for hint in hints:
        row += [*([Piece(" " * gap)] if row else []), *hint.pieces]
    return row


def width_of(pieces: Iterable[Piece]) -> int:
    return sum(piece.width for piece in pieces)


def fill(left: Sequence[Piece], right: Sequence[Piece], width: int) -> list[Piece]:
    """Return a row of exactly `width` cells, with blanks between left and right.

    Pieces with a `cut` give way, the last one first; then the end of the left side.
    """
    over = width_of(left) + width_of(right) - width
    if over > 0:
        row = _narrowed([*left, *right], over)
        left, right = row[: len(left)], row[len(left) :]
        right = right if width_of(right) <= width else []
        left = cropped(left, width - width_of(right))
    gap = width - width_of(left) - width_of(right)
    return [*left, Piece(" " * gap), *right] if gap else [*left, *right]


def _narrowed(pieces: Sequence[Piece], over: int) -> list[Piece]:
    row = list(pieces)
    for at in range(len(row) - 1, -1, -1):
        piece = row[at]
        if over > 0 and piece.cut:
            row[at] = piece.within(max(piece.width - over, 1))
            over -= piece.width - row[at].width
    return row


def cropped(pieces: Sequence[Piece], width: int) -> Sequence[Piece]:
    """Return the pieces that fit, with the last one shortened."""
    fitting: list[Piece] = []
    for piece in pieces:
        if piece.width > width:
            last = piece.within(width)
            return [*fitting, last] if last.text else fitting
        fitting.append(piece)
        width -= piece.width
    return fitting


def line(width: int, left: Sequence[Piece], right: Sequence[Piece] = (), base: str = "") -> Content:
    """Return a row of exactly `width` cells as content, on the `base` style."""
    content = Content.assemble(*((piece.text, piece.style) for piece in fill(left, right, width)))
    return content.stylize_before(base) if base else content
