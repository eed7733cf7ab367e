"""A row made of pieces, some of which can be clicked; tabs, titles and the status bar are such rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from .error_handling import FaultTolerant
from .text import shorten


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text in one style.

    Attributes:
        text: Plain text; never read as markup.
        style: A style in Textual's words, with theme variables (`bold $ink on $raised`).
        target: What a click on it means; empty when it means nothing.
        tip: What the pointer over it tells.
    """

    text: str
    style: str = ""
    target: str = ""
    tip: str = ""

    @property
    def width(self) -> int:
        """Cells it takes."""
        return cell_len(self.text)


def width_of(pieces: Sequence[Piece]) -> int:
    """Cells that pieces take together."""
    return sum(piece.width for piece in pieces)


class SegmentBar(FaultTolerant, Widget, can_focus=False):
    """Draws pieces from the left and from the right of one row; subclasses say which by `pieces`."""

    DEFAULT_CSS = """
    SegmentBar {
        height: 1; width: 1fr; background: $chrome; color: $ink; text-wrap: nowrap; text-overflow: clip;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Pressed(Message):
        """A piece with a target was clicked."""

        bar: SegmentBar
        target: str
        button: int

        @property
        def control(self) -> SegmentBar:
            """The bar."""
            return self.bar

    _base: Style | None = None
    """Style of the bar that `_looks` were made for."""
    _looks: dict[str, RichStyle]

    hovered: var[str] = var("")
    """Target under the pointer."""

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """What to draw.

        Args:
            width: Cells of the row.

        Returns:
            Pieces at the left, and pieces at the right; those at the left are cut when both do not fit.
        """
        raise NotImplementedError

    def render(self) -> Content:
        """The row."""
        return Content.assemble(*((piece.text, self._style(piece)) for piece in self._row()))

    def render_line(self, y: int) -> Strip:
        """The row past Textual's text layout, which costs ten times as much: a spinner turns in it."""
        if y:
            return Strip.blank(self.size.width)
        base = self.visual_style
        if base != self._base:
            self._base, self._looks = base, {}
        return Strip(Segment(piece.text, self._look(base, self._style(piece))) for piece in self._row())

    def _look(self, base: Style, style: str) -> RichStyle:
        look = self._looks.get(style)
        if look is None:
            look = self._looks[style] = (base + self._get_style(style)).rich_style
        return look

    def notify_style_update(self) -> None:
        """The theme may have other colours."""
        super().notify_style_update()
        self._base = None

    def _row(self) -> list[Piece]:
        width = self.size.width
        left, right = self.pieces(width)
        right = list(right) if width_of(right) <= width else []
        room = width - width_of(right)
        row = list(cut(left, room))
        gap = room - width_of(row)
        return [*row, Piece(" " * gap), *right] if gap else [*row, *right]

    def _style(self, piece: Piece) -> str:
        if piece.target and piece.target == self.hovered:
            return f"{piece.style} underline".strip()
        return piece.style

    def target_at(self, x: int) -> Piece | None:
        """The clickable piece at a column of the row, or None."""
        for piece in self._row():
            if x < piece.width:
                return piece if piece.target else None
            x -= piece.width
        return None

    def watch_hovered(self) -> None:
        """Draw the piece under the pointer anew."""
        self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark what a click would do."""
        piece = self.target_at(event.x)
        self.hovered = piece.target if piece else ""
        self.tooltip = Content(piece.tip) if piece and piece.tip else None

    def on_leave(self) -> None:
        """Nothing is under the pointer any more."""
        self.hovered = ""

    def on_click(self, event: events.Click) -> None:
        """Tell that a piece was clicked; other clicks are for whatever stands around the bar."""
        piece = self.target_at(event.x)
        if piece is not None:
            event.stop()
            self.post_message(self.Pressed(self, piece.target, event.button))


def cut(pieces: Sequence[Piece], width: int) -> Sequence[Piece]:
    """The pieces that fit a width, the last one shortened."""
    kept: list[Piece] = []
    for piece in pieces:
        if piece.width > width:
            text = shorten(piece.text, width)
            if text:
                kept.append(Piece(text, piece.style, piece.target, piece.tip))
            break
        kept.append(piece)
        width -= piece.width
    return kept


class Section(SegmentBar):
    """A title at the left and a few words at the right."""

    DEFAULT_CSS = "Section { background: $dialog; margin-top: 1; } Section:first-of-type { margin-top: 0; }"

    count: var[str] = var("")

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._title = title

    def watch_count(self) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, _width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """The title, and the count."""
        return [Piece(f" {self._title}", "bold $hot")], [Piece(f"{self.count} ", "$ink-muted")]
