"""The card over a pane's composer: an answer to a message that was written in that pane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from synapse_tui.dataclass import dataclass

from .fit import Piece, fill, shorten, width_of
from .states import Mark
from .text import markdown_line, one_line, since, wrapped

WIDEST = 64
TEXT_ROWS = 6  # most rows of the answer
LEAST_ROWS = 2  # rows over the composer below which the pane's title reports the answer instead
ROOMY = 12  # rows over the composer from which a blank one separates text and keys
_INDENT = 4
_EDGE = 1


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer as a pane shows it.

    Attributes:
        name: The agent that answers.
        verb: What it does: `answers you`, `asks you`.
        text: The whole answer.
        since: When it came, on the clock of the main screen.
        earlier: Number of answers under this one.
    """

    task_id: str
    mark: Mark
    name: str
    verb: str
    text: str
    since: float
    earlier: int = 0

    @property
    def words(self) -> str:
        return f"{self.name} {self.verb}" + (f" +{self.earlier}" if self.earlier else "")


@dataclass(frozen=True, slots=True)
class CardKey:
    key: str
    word: str
    action: str


def draw_card(
    view: AnswerView, keys: Sequence[CardKey], room: Size, age: float
) -> Sequence[tuple[Sequence[Piece], Sequence[Piece]]]:
    """Return the rows of a card, left and right sides, for the columns and rows over the composer."""
    width = min(room.width, WIDEST)
    most = min(TEXT_ROWS, max(1, room.height * 2 // 3 - 2))
    edge = Piece("▌", f"${view.mark.colour}")
    lines = wrapped(_plain(view.text, most), width - _INDENT - 1)
    keys_row = [edge, *_key_pieces(keys, width - _EDGE)]
    right = [Piece(f" {since(age)} ", "$faint")]
    name = shorten(one_line(view.name), max(4, width - width_of(right) - cell_len(view.verb) - 9), "middle")
    head = [edge, Piece(f" {view.mark.glyph} ", f"${view.mark.colour}"), Piece(name, "bold $ink")]
    more = [Piece(f" +{view.earlier}", "$muted")] if view.earlier else []
    if room.height <= LEAST_ROWS:
        said = Piece(f" {one_line(_plain(view.text, 1))}", "$ink", cut="end")
        return [([*head, *more, said], right), (keys_row, ())]
    shown = list(lines[:most])
    if len(lines) > most:
        while len(shown) > 1 and not shown[-1]:
            shown.pop()
        shown[-1] = shorten(f"{shown[-1]} …", width - _INDENT - 1)
    blank = [([edge], ())] if room.height >= ROOMY else []
    return [
        ([*head, Piece(f" {view.verb}", "$muted"), *more], right),
        *(([edge, Piece(" " * (_INDENT - _EDGE)), Piece(line, "$ink")], ()) for line in shown),
        *blank,
        (keys_row, ()),
    ]


def _plain(text: str, most: int) -> str:
    """Return an answer without the marks of Markdown; of a long one more than so many lines."""
    lines = ("".join(words for words, _style in markdown_line(line, "", "")) for line in text.splitlines())
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
        if len(kept) > most:
            break
    return "\n".join(kept)


def _key_pieces(keys: Sequence[CardKey], width: int) -> list[Piece]:
    """Return the hints that fit, whole ones only; the middle ones are left out first."""
    wanted = list(keys)
    while wanted and 1 + sum(cell_len(f"{each.key} {each.word}") + 2 for each in wanted) - 2 > width:
        del wanted[len(wanted) // 2]
    pieces = [Piece(" ")]
    for each in wanted:
        gap = [Piece("  ")] if len(pieces) > 1 else []
        key = Piece(each.key, "bold $accent", each.action)
        pieces += [*gap, key, Piece(f" {each.word}", "$muted", each.action)]
    return pieces


class AnswerCard(Widget, can_focus=False):
    """Shows an answer over the composer's upper edge; its hints can be clicked. Never covers the composer."""

    DEFAULT_CSS = """
    AnswerCard {
        position: absolute; display: none; width: 12; height: 3; overflow: hidden;
        background: $panel; color: $ink; text-wrap: nowrap;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    hovered: reactive[str] = reactive("")  # action under the pointer

    @dataclass
    class Chosen(Message):
        action: str

    def __init__(self) -> None:
        super().__init__()
        self.view: AnswerView | None = None
        self._keys: Sequence[CardKey] = ()
        self._age = 0.0
        self._room = Size(0, 0)
        self._rows: Sequence[Sequence[Piece]] = ()

    def show(self, view: AnswerView | None, keys: Sequence[CardKey], age: float) -> None:
        self.view, self._keys, self._age = view, keys, age
        self.place(self._room)

    def place(self, room: Size) -> None:
        """Draw the card for the columns and rows over the composer; hide it if there are too few."""
        self._room = room
        if self.view is None or room.height < LEAST_ROWS:
            self._rows, self.display = (), False
            return
        width = min(room.width, WIDEST)
        drawn = draw_card(self.view, self._keys, room, self._age)
        rows = [fill(left, right, width) for left, right in drawn]
        if rows != self._rows or not self.display:
            self._rows = rows
            self.refresh()
        self.styles.width, self.styles.height = width, len(rows)
        self.styles.offset = (0, room.height - len(rows))
        self.display = True

    def render(self) -> Content:
        lines = (Content.assemble(*((piece.text, self._style(piece)) for piece in row)) for row in self._rows)
        return Content("\n").join(lines)

    def _style(self, piece: Piece) -> str:
        return f"{piece.style} on $raised" if piece.target and piece.target == self.hovered else piece.style

    def _action_at(self, x: int, y: int) -> str:
        for piece in self._rows[y] if 0 <= y < len(self._rows) else ():
            if x < piece.width:
                return piece.target
            x -= piece.width
        return ""

    def on_mouse_move(self, event: events.MouseMove) -> None:
        event.stop()
        self.hovered = self._action_at(event.x, event.y)

    def on_leave(self) -> None:
        self.hovered = ""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        action = self._action_at(event.x, event.y)
        if action:
            self.post_message(self.Chosen(action))
