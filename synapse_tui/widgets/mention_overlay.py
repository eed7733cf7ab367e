"""The overlay shown in a pane while `@agent message` is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Offset, Size
from textual.message import Message
from textual.widget import Widget

from synapse_tui.addresses import Address, Completion
from synapse_tui.dataclass import dataclass
from synapse_tui.mention import MentionView
from synapse_tui.model import DEFAULT_PRIORITY, INTERRUPT_PRIORITY

from .fit import shorten
from .text import one_line, wrap_at_cursor, wrap_words

WIDEST = 64
NARROWEST = 12
_FRAME = 4  # columns of the frame, including a blank on each side
_TEXT_ROWS = 6
_CHOICES = 5
_ADDRESS_KEYS = "Tab completes · Esc back"
_MESSAGE_KEYS = "Enter sends · Alt+Enter new line · Esc back"
_CHOICE_KEYS = "Tab ↑ ↓ choose one · Esc back"
_REFUSED_KEYS = "Esc back · Ctrl+C discards it"
_PROBLEM_ROWS = 2


@dataclass(frozen=True, slots=True)
class DrawnMention:
    lines: tuple[Content, ...]  # including the frame, all equally wide
    size: Size  # in cells
    cursor: Offset  # position of the cursor inside
    choices: dict[int, int]  # line number to index of the completion on it


def draw_mention(view: MentionView, width: int, height: int) -> DrawnMention:
    width = max(min(width, WIDEST), NARROWEST)
    inner = width - _FRAME
    rest = max(1, height - 2)
    words = wrap_words(one_line(view.problem), inner, min(_PROBLEM_ROWS, rest - 1))
    problem = [Content.styled(row, "$fail") for row in words]
    rest -= len(problem)
    typed, style = (view.text, "$ink") if view.composing else (view.address, "bold $accent")
    rows, cursor = wrap_at_cursor(typed, view.cursor, inner)
    first = max(0, min(cursor.y - _TEXT_ROWS // 2, len(rows) - _TEXT_ROWS))
    shown = rows[first : first + _TEXT_ROWS][: max(rest, 1)]
    first += max(0, cursor.y - first - len(shown) + 1)
    shown = rows[first : first + len(shown)]
    body = [Content.styled(row, style) for row in shown]
    if view.composing and not typed:
        body = [Content.styled(shorten("message…", inner), "$faint")]
    choices = _choices(view, rest - len(body), inner)
    lines = [_top(view, width)]
    lines += [_framed(row, inner) for row in (*body, *problem)]
    numbers = {len(lines) + number: index for number, (index, _) in enumerate(choices)}
    lines += [_framed(row, inner) for _, row in choices]
    lines.append(_edge("╰", _keys(view), "╯", width, "$muted"))
    return DrawnMention(
        tuple(lines), Size(width, len(lines)), Offset(2 + cursor.x, 1 + cursor.y - first), numbers
    )


def place_mention(pane: Size, anchor: Offset, height: int, *, above: bool | None = None) -> tuple[int, bool]:
    """Return the first row of the overlay and whether it is above the cursor's line."""
    over, under = anchor.y, pane.height - anchor.y - 1
    if above is None or height > (over if above else under):
        above = height > under and over > under
    height = min(height, pane.height)
    row = anchor.y - height if above else anchor.y + 1
    return max(0, min(row, pane.height - height)), above


def room_for_mention(pane: Size, anchor: Offset) -> int:
    """Return how many rows the overlay may use without covering the cursor's line."""
    return max(anchor.y, pane.height - anchor.y - 1, min(3, pane.height))


def _keys(view: MentionView) -> str:
    if not view.composing:
        return _ADDRESS_KEYS
    if view.completions and not view.target:
        return _CHOICE_KEYS
    return _REFUSED_KEYS if view.problem else _MESSAGE_KEYS


def _top(view: MentionView, width: int) -> Content:
    title = (
        "message an agent" if not view.composing else f"→ {view.target}" if view.target else "→ which one?"
    )
    if view.priority != DEFAULT_PRIORITY:
        note = "!5 interrupts" if view.priority == INTERRUPT_PRIORITY else f"priority {view.priority}"
        title += f" · {note}"
    return _edge("╭", title, "╮", width, "bold $accent")


def _edge(left: str, title: str, right: str, width: int, style: str) -> Content:
    title = shorten(one_line(title), width - 6)
    fill = width - 5 - cell_len(title)
    return Content.assemble((f"{left}─ ", "$accent"), (title, style), (f" {'─' * fill}{right}", "$accent"))


def _framed(row: Content, inner: int) -> Content:
    blank = " " * max(0, inner - row.cell_length)
    return Content.assemble(("│ ", "$accent"), row, (f"{blank} │", "$accent"))


def _choices(view: MentionView, rows: int, inner: int) -> list[tuple[int, Content]]:
    count = min(rows, _CHOICES, len(view.completions))
    if count <= 0:
        return []
    first = max(0, min(view.selected - count // 2, len(view.completions) - count))
    indices = range(first, first + count)
    return [(index, _choice(view.completions[index], index == view.selected, inner)) for index in indices]


def _choice(completion: Completion, selected: bool, inner: int) -> Content:
    name = shorten(f"{'›' if selected else ' '} {one_line(completion.text)}", inner)
    about = _targets_text(completion.targets)
    room = inner - cell_len(name) - 2
    about = shorten(one_line(about), room) if room > 3 else ""
    gap = " " * (inner - cell_len(name) - cell_len(about))
    if selected:
        return Content.styled(f"{name}{gap}{about}", "bold $ink on $select")
    return Content.assemble((name, "$ink"), gap, (about, "$faint"))


def _targets_text(targets: Sequence[Address]) -> str:
    if len(targets) != 1:
        return f"{len(targets)} agents"
    return "external agent" if targets[0].external else targets[0].agent_id


class MentionOverlay(Widget, can_focus=False):
    """Shows the mention being typed at the pane's cursor; the pane keeps the focus."""

    DEFAULT_CSS = """
    MentionOverlay {
        position: absolute; display: none; width: 12; height: 3; overflow: hidden;
        background: $panel; color: $ink; text-wrap: nowrap;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Chosen(Message):
        index: int

    def __init__(self) -> None:
        super().__init__()
        self.drawn: DrawnMention | None = None
        # whether the pane was resized since the last paint, so the user may not have seen the overlay
        self.stale = False
        self._view: MentionView | None = None
        self._above: bool | None = None
        self._place = Offset(0, 0)

    @property
    def cursor(self) -> Offset | None:
        """The cursor's cell in the pane; None while the overlay is hidden."""
        return self._place + self.drawn.cursor if self.drawn is not None else None

    def show(self, view: MentionView | None, pane: Size, anchor: Offset) -> None:
        self._view = view
        if view is None:
            self.stale = False
        if view is None or not pane:
            self.drawn = self._above = None
            self.display = False
            return
        self.drawn = draw_mention(view, pane.width, room_for_mention(pane, anchor))
        width, height = self.drawn.size
        row, self._above = place_mention(pane, anchor, height, above=self._above)
        self._place = Offset(max(0, min(anchor.x - 2, pane.width - width)), row)
        self.styles.width, self.styles.height = width, height
        self.styles.offset = (self._place.x, self._place.y)
        self.display = True
        self.refresh()

    def place_again(self, pane: Size, anchor: Offset) -> None:
        """Reposition the overlay after a resize; it is stale until painted."""
        if self._view is not None:
            self.stale = True
            self._above = None
            self.show(self._view, pane, anchor)

    def render(self) -> Content:
        self.stale = False
        return Content("\n").join(self.drawn.lines) if self.drawn is not None else Content("")

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        index = self.drawn.choices.get(event.y) if self.drawn is not None else None
        if index is not None:
            self.post_message(self.Chosen(index))
