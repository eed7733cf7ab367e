"""Rows of clickable pieces of text: the base of tabs, titles, the status bar, the board and overlays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual import events
from textual.content import Content
from textual.geometry import Offset
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from synapse_tui.system.dataclass import dataclass

from .error_handling import FaultTolerant
from .fit import Hint, Piece, fill, hint_row


class PieceWidget(FaultTolerant, Widget):
    """Draws lines of pieces, whose styles are computed once, and marks the one under the pointer.

    A click is for what was drawn under the pointer when the button went down, whatever has come there since.
    """

    HOVER: ClassVar[str] = "on $raised"
    ALLOW_SELECT: ClassVar[bool] = False

    hovered: reactive[str] = reactive("")  # target under the pointer
    _base: Style | None = None  # the style for which `_looks` was computed
    _looks: dict[str, RichStyle]
    _drawn: dict[int, Sequence[Piece]] | None = None
    pressed: str = ""  # target under the pointer when the button went down

    def lines(self) -> Sequence[Sequence[Piece]]:
        raise NotImplementedError

    def render(self) -> Content:
        lines = (
            Content.assemble(*((each.text, self._style(each)) for each in line)) for line in self.lines()
        )
        return Content("\n").join(lines)

    def render_line(self, y: int) -> Strip:
        lines = self.lines()
        if self._drawn is None:
            self._drawn = {}
        self._drawn[y] = lines[y] if y < len(lines) else ()
        if y >= len(lines):
            return Strip.blank(self.size.width)
        base = self.visual_style
        if base != self._base:
            self._base, self._looks = base, {}
        return Strip(Segment(each.text, self._look(base, self._style(each))) for each in lines[y])

    def _look(self, base: Style, style: str) -> RichStyle:
        look = self._looks.get(style)
        if look is None:
            look = self._looks[style] = (base + self._get_style(style)).rich_style
        return look

    def _style(self, piece: Piece) -> str:
        if piece.target and piece.target == self.hovered:
            return f"{piece.style} {self.HOVER}".strip()
        return piece.style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._base = None

    def piece_at(self, x: int, y: int = 0) -> Piece | None:
        """Return the piece that is drawn there, if it can be clicked."""
        lines = dict(enumerate(self.lines())) if self._drawn is None else self._drawn
        for piece in lines.get(y, ()):
            if x < piece.width:
                return piece if piece.target else None
            x -= piece.width
        return None

    def target_at(self, x: int, y: int = 0) -> str:
        piece = self.piece_at(x, y)
        return piece.target if piece is not None else ""

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.hovered = self.target_at(event.x, event.y)

    def on_leave(self) -> None:
        self.hovered = ""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.pressed = self.target_at(event.x, event.y)


class SegmentBar(PieceWidget, can_focus=False):
    """Draws pieces from the left and the right of a row; subclasses implement `pieces`."""

    DEFAULT_CSS = """
    SegmentBar {
        height: 1; width: 1fr; background: $ground; color: $ink; text-wrap: nowrap; text-overflow: clip;
    }
    """
    HOVER = "underline"

    @dataclass
    class Pressed(Message):
        bar: SegmentBar
        target: str
        button: int

        @property
        def control(self) -> SegmentBar:
            return self.bar

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        raise NotImplementedError

    def lines(self) -> Sequence[Sequence[Piece]]:
        width = self.size.width
        return [fill(*self.pieces(width), width)]

    def on_mouse_move(self, event: events.MouseMove) -> None:
        piece = self.piece_at(event.x)
        self.tooltip = Content(piece.tip) if piece and piece.tip else None

    def on_click(self, event: events.Click) -> None:
        if self.pressed:
            event.stop()
            self.post_message(self.Pressed(self, self.pressed, event.button))


class HintBar(SegmentBar):
    """Keys that may be pressed, and what they do; each can be clicked."""

    shown: reactive[Sequence[Hint]] = reactive(())
    GAP: ClassVar[int] = 2
    EDGE: ClassVar[int] = 0

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        return [Piece(" " * self.EDGE), *hint_row(self.shown, width - self.EDGE, self.GAP)], ()


class PaneOverlay(PieceWidget, can_focus=False):
    """Lies over a part of a pane; the pane keeps the focus. A click posts `Pressed` with its target."""

    DEFAULT_CSS = """
    PaneOverlay {
        position: absolute; display: none; width: 12; height: 3; overflow: hidden;
        background: $panel; color: $ink; text-wrap: nowrap;
    }
    """

    @dataclass
    class Pressed(Message):
        overlay: PaneOverlay
        target: str

        @property
        def control(self) -> PaneOverlay:
            return self.overlay

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[Sequence[Piece]] = ()

    def lines(self) -> Sequence[Sequence[Piece]]:
        return self._lines

    def lay(self, lines: Sequence[Sequence[Piece]], width: int, at: Offset) -> None:
        """Show lines at a place of the pane; none hide the overlay."""
        if lines != self._lines or not self.display:
            self._lines = lines
            self.refresh()
        if lines:
            self.styles.width, self.styles.height = width, len(lines)
            self.styles.offset = (at.x, at.y)
        self.display = bool(lines)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        event.stop()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if self.pressed:
            self.post_message(self.Pressed(self, self.pressed))


class Section(SegmentBar):
    DEFAULT_CSS = "Section { background: $panel; margin-top: 1; } Section:first-of-type { margin-top: 0; }"

    count: reactive[str] = reactive("")
    counted: reactive[Sequence[Piece]] = reactive(())  # in place of `count`

    def __init__(self, title: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._title = title

    def pieces(self, _width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        return [Piece(f" {self._title}", "bold $ink")], [*self.counted, Piece(f"{self.count} ", "$faint")]
