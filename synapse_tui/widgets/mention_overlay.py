"""The overlay shown in a pane while `@agent message` is typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual.geometry import Offset, Size
from textual.strip import Strip

from synapse_tui.core.addresses import Address
from synapse_tui.core.model import DEFAULT_PRIORITY, INTERRUPT_PRIORITY
from synapse_tui.messages.mention import MentionView
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .fit import Hint, Piece, fill, hint_row, pad, shorten
from .segment_bar import PaneOverlay
from .states import ENDED_SEEN
from .text import TypedRows, one_line, wrap_words
from .views import AgentView

WIDEST = 64
NARROWEST = 12
_FRAME = 4  # columns of the edge and of the blanks beside the text
_LEAST_NAME, _KIND = 10, 8  # cells for names before they are shortened, and for the type
_TEXT_ROWS = 6
_CHOICES = 5
_BACK = Hint("Esc", "back", "escape")
_ADDRESS_KEYS = (Hint("Tab", "completes", "tab"), _BACK)
_NEW_LINE = Hint("Ctrl+J", "new line", "ctrl+j")
_MESSAGE_KEYS = (Hint("Enter", "sends", "enter"), _NEW_LINE, _BACK)
_LATER_KEYS = (Hint("Enter", "keeps it", "enter"), _NEW_LINE, _BACK)
_CHOICE_KEYS = (Hint("Tab ↑ ↓", "choose one", "tab"), _BACK)
_REFUSED_KEYS = (_BACK, Hint("Ctrl+C", "discards it", "ctrl+c"))
_PROBLEM_ROWS = 2


@dataclass(frozen=True, slots=True)
class DrawnMention:
    # including the edge, all equally wide; a choice's target is its index, that of a hint its key
    lines: Sequence[Sequence[Piece]]
    size: Size  # in cells
    cursor: Offset  # position of the cursor inside


Find = Callable[[str], AgentView | None]


def _nowhere(_agent_id: str) -> AgentView | None:
    return None


def draw_mention(
    view: MentionView, width: int, height: int, wrapping: TypedRows | None = None, find: Find = _nowhere
) -> DrawnMention:
    """Draw a mention; `wrapping` is what it was wrapped with before, `find` returns agents by their ids."""
    width = max(min(width, WIDEST), NARROWEST)
    inner = width - _FRAME
    rest = max(1, height - 2)
    words = wrap_words(one_line(view.problem), inner, min(_PROBLEM_ROWS, rest - 1))
    problem = [[Piece(row, "$fail")] for row in words]
    rest -= len(problem)
    typed, style = (view.text, "$ink") if view.composing else (view.address, "bold $accent")
    rows = wrapping or TypedRows()
    known, cursor = rows.around(typed, view.cursor, inner, _TEXT_ROWS)
    first = max(0, min(cursor.y - _TEXT_ROWS // 2, known - _TEXT_ROWS))
    count = min(known - first, _TEXT_ROWS, max(rest, 1))
    first += max(0, cursor.y - first - count + 1)
    body = [[Piece(rows[row].rstrip(" "), style)] for row in range(first, first + count)]
    if view.composing and not typed:
        body = [[Piece(shorten(tr("message…"), inner), "$faint")]]
    choices = _choices(view, rest - len(body), inner, find)
    keys = hint_row(_keys(view), inner)
    lines = [_framed(row, inner) for row in (_title(view, find), *body, *problem, *choices, keys)]
    return DrawnMention(lines, Size(width, len(lines)), Offset(2 + cursor.x, 1 + cursor.y - first))


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


def _keys(view: MentionView) -> Sequence[Hint]:
    if not view.composing:
        return _ADDRESS_KEYS if view.completions else (_BACK,)
    if view.completions and not view.target:
        return _CHOICE_KEYS
    if view.problem:
        return _REFUSED_KEYS
    return _LATER_KEYS if view.keeps else _MESSAGE_KEYS


def _title(view: MentionView, find: Find) -> list[Piece]:
    about: list[Piece] = []
    if not view.composing:
        title = tr("message an agent")
    elif view.target:
        title = f"→ {view.target}"
        here = len(view.targets) == 1 and not view.problem
        about = _about(view.target, view.targets, find) if here else []
    elif view.completions and all(completion.targets for completion in view.completions):
        title = tr("→ which one?")
    else:  # no agent has the address: the choices are what to do
        title = f"→ {view.address.removeprefix('@')}"
    if view.priority != DEFAULT_PRIORITY:
        note = tr("!5 interrupts") if view.priority == INTERRUPT_PRIORITY else tr(f"priority {view.priority}")
        title += f" · {note}"
    return [Piece(one_line(title), "bold $accent", cut="end"), *about]


def _framed(row: Sequence[Piece], inner: int) -> list[Piece]:
    return [Piece("▌ ", "$accent"), *fill(row, (), inner), Piece("  ")]


def _choices(view: MentionView, rows: int, inner: int, find: Find) -> list[list[Piece]]:
    count = min(rows, _CHOICES, len(view.completions))
    if count <= 0:
        return []
    first = max(0, min(view.selected - count // 2, len(view.completions) - count))
    names = [one_line(completion.text) for completion in view.completions if completion.targets]
    widest = min(max(map(cell_len, names), default=0), max(_LEAST_NAME, inner // 2))
    return [_choice(view, index, inner, widest, find) for index in range(first, first + count)]


def _choice(view: MentionView, index: int, inner: int, widest: int, find: Find) -> list[Piece]:
    completion, selected = view.completions[index], index == view.selected
    name = one_line(completion.text)
    if completion.targets:  # otherwise it is what to do, in words
        name = pad(name, min(widest, inner - 2), "middle")
    ground = " on $select" if selected else ""
    row = [Piece(f"{'›' if selected else ' '} {name}", "bold $ink" if selected else "$ink", cut="end")]
    row += _about(completion.text, completion.targets, find)
    return [
        Piece(each.text, f"{each.style}{ground}".strip(), str(index), cut=each.cut)
        for each in fill(row, (), inner)
    ]


def _about(name: str, targets: Sequence[Address], find: Find) -> list[Piece]:
    """Return the kind and the state of the receiver, as columns; of several, how many they are."""
    if len(targets) != 1:
        return [Piece(tr(f"  {len(targets)} agents"), "$faint", cut="end")] if targets else []
    (target,) = targets
    if target.external:
        return [Piece(tr("  external agent"), "$faint", cut="end")]
    kind = "" if name.startswith(target.agent_type) else target.agent_type
    row = [Piece(f"  {pad(kind, _KIND)}", "$faint", cut="end")]
    agent = find(target.agent_id)
    mark = agent.mark if agent is not None else None if target.live else ENDED_SEEN
    if mark is None:
        return [*row, Piece(tr("  elsewhere"), "$faint", cut="end")]
    return [*row, Piece(f"  {mark.glyph} {mark.word}", f"${mark.colour}", cut="end")]


class MentionOverlay(PaneOverlay):
    """Shows the mention being typed at the pane's cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: DrawnMention | None = None
        # whether the pane was resized since the last paint, so the user may not have seen the overlay
        self.stale = False
        self._view: MentionView | None = None
        self._wrapping = TypedRows()
        self._above: bool | None = None
        self._place = Offset(0, 0)
        self.find: Find = _nowhere

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
            self.lay((), 0, self._place)
            return
        self.drawn = draw_mention(view, pane.width, room_for_mention(pane, anchor), self._wrapping, self.find)
        width, height = self.drawn.size
        row, self._above = place_mention(pane, anchor, height, above=self._above)
        self._place = Offset(max(0, min(anchor.x - 2, pane.width - width)), row)
        self.lay(self.drawn.lines, width, self._place)

    def place_again(self, pane: Size, anchor: Offset) -> None:
        """Reposition the overlay after a resize; it is stale until painted."""
        if self._view is not None:
            self.stale = True
            self._above = None
            self.show(self._view, pane, anchor)

    def render_line(self, y: int) -> Strip:
        self.stale = False
        return super().render_line(y)
