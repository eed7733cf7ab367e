"""Rows of clickable pieces of text: the base of tabs, titles and the status bar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from synapse_tui.dataclass import dataclass

from .error_handling import FaultTolerant
from .fit import Piece, fill


class PieceWidget(FaultTolerant, Widget):
    """Draws lines of pieces, whose styles are computed once."""

    _base: Style | None = None  # the style for which `_looks` was computed
    _looks: dict[str, RichStyle]

    def strip_of(self, pieces: Iterable[tuple[str, str]]) -> Strip:
        """Draw a line of texts and their styles, as in Textual's markup."""
        base = self.visual_style
        if base != self._base:
            self._base, self._looks = base, {}
        return Strip(Segment(text, self._look(base, style)) for text, style in pieces)

    def _look(self, base: Style, style: str) -> RichStyle:
        look = self._looks.get(style)
        if look is None:
            look = self._looks[style] = (base + self._get_style(style)).rich_style
        return look

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._base = None


class SegmentBar(PieceWidget, can_focus=False):
    """Draws pieces from the left and the right of a row; subclasses implement `pieces`."""

    DEFAULT_CSS = """
    SegmentBar {
        height: 1; width: 1fr; background: $ground; color: $ink; text-wrap: nowrap; text-overflow: clip;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Pressed(Message):
        bar: SegmentBar
        target: str
        button: int

        @property
        def control(self) -> SegmentBar:
            return self.bar

    hovered: reactive[str] = reactive("")  # target under the pointer

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        raise NotImplementedError

    def render(self) -> Content:
        return Content.assemble(*((piece.text, self._style(piece)) for piece in self._row()))

    def render_line(self, y: int) -> Strip:
        if y:
            return Strip.blank(self.size.width)
        return self.strip_of((piece.text, self._style(piece)) for piece in self._row())

    def _row(self) -> list[Piece]:
        width = self.size.width
        return fill(*self.pieces(width), width)

    def _style(self, piece: Piece) -> str:
        if piece.target and piece.target == self.hovered:
            return f"{piece.style} underline".strip()
        return piece.style

    def target_at(self, x: int) -> Piece | None:
        for piece in self._row():
            if x < piece.width:
                return piece if piece.target else None
            x -= piece.width
        return None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        piece = self.target_at(event.x)
        self.hovered = piece.target if piece else ""
        self.tooltip = Content(piece.tip) if piece and piece.tip else None

    def on_leave(self) -> None:
        self.hovered = ""

    def on_click(self, event: events.Click) -> None:
        piece = self.target_at(event.x)
        if piece is not None:
            event.stop()
            self.post_message(self.Pressed(self, piece.target, event.button))


class Section(SegmentBar):
    DEFAULT_CSS = "Section { background: $panel; margin-top: 1; } Section:first-of-type { margin-top: 0; }"

    count: reactive[str] = reactive("")
    counted: reactive[Sequence[Piece]] = reactive(())  # in place of `count`

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._title = title

    def pieces(self, _width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        return [Piece(f" {self._title}", "bold $ink")], [*self.counted, Piece(f"{self.count} ", "$faint")]
