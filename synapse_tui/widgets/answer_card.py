"""What lies over a pane's composer: a message that was written there and sent, then its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len
from textual.geometry import Offset, Size

from synapse_tui.core.wording import since
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .fit import Hint, Piece, fill, hint_row, shorten, width_of
from .segment_bar import PaneOverlay
from .states import Mark
from .text import markdown_line, one_line, rewrapped, said, wrapped

CARD_WIDTH = 64
TEXT_ROWS = 6  # most rows of the answer
MOST_ROWS = 40  # rows of a paragraph that are looked at, which may be short
LEAST_ROWS = 2  # rows over the composer below which the pane's title reports the answer instead
ROOMY = 12  # rows over the composer from which a blank one separates text and keys
LEAST_STATUS = 20  # cells that remain for what became of a sent message
_PROMPT = "❯ "
_INDENT = 4
_EDGE = 1
OPENS = "last"
_NO_LETTERS = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer as a pane shows it.

    Attributes:
        agent_id: The agent that answers.
        name: What that is called.
        verb: What it does: `answers you`, `asks you`.
        text: The whole answer.
        composed: Whether it was written to be read alone, and not taken from what a turn wrote.
        since: When it came, on the clock of the main screen.
        earlier: Number of answers under this one.
    """

    task_id: str
    agent_id: str
    mark: Mark
    name: str
    verb: str
    text: str
    since: float
    earlier: int = 0
    composed: bool = False

    @property
    def paragraphs(self) -> Sequence[str]:
        """Return what may be shown, without tool calls."""
        return (not self.composed and said(self.text)) or (self.text,)

    @property
    def words(self) -> str:
        return f"{self.name} {self.verb}" + (f" +{self.earlier}" if self.earlier else "")


def draw_card(
    view: AnswerView, keys: Sequence[Hint], room: Size, age: float, *, folded: bool = False
) -> Sequence[tuple[Sequence[Piece], Sequence[Piece]]]:
    """Return the rows of a card, left and right sides, for the columns and rows over the composer.

    A folded one has one row, which opens the answer.
    """
    width = min(room.width, CARD_WIDTH)
    most = min(TEXT_ROWS, max(1, room.height * 2 // 3 - 2))
    edge = Piece("▌", f"${view.mark.colour}")
    lines = _lines(view, width - _INDENT - 1, most)
    keys_row = [edge, Piece(" "), *_key_row(keys, width - _EDGE - 1)]
    right = [Piece(f" {since(age)} ", "$faint")]
    name = shorten(one_line(view.name), max(4, width - width_of(right) - cell_len(view.verb) - 9), "middle")
    head = [edge, Piece(f" {view.mark.glyph} ", f"${view.mark.colour}"), Piece(name, "bold $ink")]
    more = [Piece(f" +{view.earlier}", "$muted")] if view.earlier else []
    if folded or room.height <= LEAST_ROWS:
        words = f" {one_line(_plain(view.paragraphs[-1], 1))}"
        row = [*head, *more, Piece(words, "$ink", cut="end")]
        return [(row, right)] if folded else [(row, right), (keys_row, ())]
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


def _lines(view: AnswerView, width: int, most: int) -> Sequence[str]:
    """Wrap the last paragraph, after those before it that fit as well."""
    # A card is drawn with each frame of its pane: only what may be shown is looked at.
    shown = view.paragraphs[-most - 1 :]
    rows = (paragraph.split("\n", MOST_ROWS)[:MOST_ROWS] for paragraph in shown)
    texts = [_plain(rewrapped("\n".join(row), width), most) for row in rows]

    def from_the(first: int) -> Sequence[str]:
        return wrapped(("… " if first else "") + "\n\n".join(texts[first:]), width)

    first = len(texts) - 1
    while first and len(from_the(first - 1)) <= most:
        first -= 1
    return from_the(first)


def _plain(text: str, most: int) -> str:
    """Return a text without the marks of Markdown; of a long one more than so many lines."""
    lines = ("".join(words for words, _style in markdown_line(line, "", "")) for line in text.splitlines())
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
        if len(kept) > most:
            break
    return "\n".join(kept)


def _key_row(keys: Sequence[Hint], width: int) -> list[Piece]:
    """Return the hints that fit; the middle ones are left out first."""
    wanted = list(keys)
    while wanted and sum(width_of(hint.pieces) + 2 for hint in wanted) - 2 > width:
        del wanted[len(wanted) // 2]
    return hint_row(wanted, width)


class AnswerCard(PaneOverlay):
    """Shows an answer over the composer's upper edge; its hints can be clicked. Never covers the composer.

    It folds to one row once the agent writes where it lies.
    """

    def __init__(self) -> None:
        super().__init__()
        self.view: AnswerView | None = None
        self.folded = False
        self._keys: Sequence[Hint] = ()
        self._age = 0.0
        self._room = Size(0, 0)
        self._folded: set[tuple[str, str]] = set()  # messages and answers that were folded under others
        # the pane's shape, the rows of its draft, and the words of its rows
        self._seen: tuple[object, int, frozenset[str]] | None = None
        self._wrote = False  # whether the agent wrote while the card was hidden, as around a dialog

    def show(self, view: AnswerView | None, keys: Sequence[Hint], age: float) -> None:
        before = self.view
        if view is None:
            self._folded.clear()
            self.folded, self._seen, self._wrote = False, None, False
        elif before is None or (view.task_id, view.text) != (before.task_id, before.text):
            if before is not None and self.folded:
                self._folded.add((before.task_id, before.text))
            # What was written over a card that is let go lies over those under it, too.
            older = before is not None and view.since < before.since and self.folded
            self.folded = older or (view.task_id, view.text) in self._folded
            self._seen, self._wrote = None, False
        self.view, self._keys, self._age = view, keys, age
        self.place(self._room)

    def place(self, room: Size) -> None:
        """Draw the card for the columns and rows over the composer; hide it if there are too few."""
        self._room = room
        width = min(room.width, CARD_WIDTH)
        rows: list[list[Piece]] = []
        if self.view is not None and room.height >= LEAST_ROWS:
            drawn = draw_card(self.view, self._keys, room, self._age, folded=self.folded)
            rows = [fill(*row, width) for row in drawn]
            if self.folded:
                tip = tr("Read the answer")
                rows = [[replace(piece, target=OPENS, tip=tip) for piece in row] for row in rows]
        self.lay(rows, width, Offset(0, room.height - len(rows)))

    def over(self, rows: Sequence[str], shape: object, draft: int, *, writes: bool) -> None:
        """Note the rows of the screen; fold if the agent, which writes, has put words under the card.

        What only moves there, or counts, is not new. With another shape of the pane, or other rows of the
        draft while the card is in view, all rows may be drawn anew.
        """
        if not self.display:
            self._wrote = self._wrote or writes
            return
        wrote, self._wrote = self._wrote, False
        words = [_NO_LETTERS.sub("", row) for row in rows]
        before, self._seen = self._seen, (shape, draft, frozenset(words))
        if before is None or before[0] != shape or not (wrote or (writes and before[1] == draft)):
            return
        under = words[max(0, self._room.height - len(self.lines())) : self._room.height]
        if any(set(under) - before[2] - {""}):
            self.folded = True
            self.place(self._room)


class SentLine(PaneOverlay):
    """Shows a message that was written in the pane, in a blank row, until its answer is there."""

    DEFAULT_CSS = "SentLine { background: $pane-ground; }"

    def __init__(self) -> None:
        super().__init__()
        self.message = ""
        self._status = ""

    def show(self, message: str, status: str) -> None:
        self.message, self._status = message, status

    def place(self, row: int | None, width: int) -> None:
        """Draw the line in a row; None hides it."""
        if row is None or not self.message:
            self.lay((), width, Offset(0, 0))
            return
        status = Piece(f" {shorten(self._status, max(LEAST_STATUS, width * 2 // 3))} ", "$faint", "last")
        message = shorten(self.message, max(0, width - status.width - len(_PROMPT)))
        self.lay([fill([Piece(_PROMPT + message, "$faint", "last")], [status], width)], width, Offset(0, row))
