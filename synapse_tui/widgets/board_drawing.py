"""Draws the board as rows of pieces: the agents, and beside or beneath them the chosen one.

Nothing here knows of a widget; a click finds
the target of the piece it hits (`agent:ID`, `answer:NUMBER`, `key:KEY`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Literal, TypeVar, cast

from rich.cells import cell_len, chop_cells

from synapse_tui.agents.worktrees.line_counts import FolderChange
from synapse_tui.core.wording import since
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import join_rows, tr

from .agent_rows import BESIDE, Line, changed_columns, counts, flat_row, heading, name_column, tall_row
from .board_model import BoardRow
from .fit import ELLIPSIS, Hint, Piece, fill, hint_row, shorten, width_of
from .states import HELD, NOT_STARTED, State
from .text import one_line, plural, wrap_words, wrapped_line

WIDEST = 230  # width from which the timeline has a column of its own
LOW = 32  # lines below which blank lines and all but the dialog are left out
MOST = 100  # cells of a line of text
EDGE = 2  # blank columns at each side
CURSOR = "▏"  # in what is looked for
MOST_WAITING, MOST_FILES = 3, 6
MOST_NAMED = 2  # agents that share a folder; more are counted
LEAST_LIST = 3  # lines of the list above a dialog that needs the room
LEAST_TIMELINE = 7
OPTION_LINES = 2  # an option of more lines is shortened
BAR = 8  # cells of the longest bar of changed lines
Drawn = TypeVar("Drawn")
_RULES = frozenset("─━═╌┄-_ ")

Readiness = Literal["ready", "resting", "changed", "sent", "hidden"]


@dataclass(frozen=True, slots=True)
class DialogOption:
    """An option of a dialog: the key that takes it besides its number, and the agent's own words."""

    key: str
    number: int
    words: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A dialog as the agent shows it; serial and fingerprint bind an answer to it."""

    agent_id: str
    serial: int
    fingerprint: str
    lines: tuple[Line, ...] = ()
    options: tuple[DialogOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits for an agent."""

    way: str  # sender → receiver
    text: str
    status: str
    reason: str = ""
    for_long: bool = False


@dataclass(frozen=True, slots=True)
class Detail:
    """The chosen agent.

    Attributes:
        about: What else is known of it, most important first.
        screen: The last lines of its screen; those above the dialog if it asks.
        shared_with: Agents that work in the same folder, so that its changes may be theirs.
    """

    row: BoardRow
    about: tuple[str, ...] = ()
    screen: tuple[Line, ...] = ()
    asked: Asked | None = None
    waiting: tuple[Waiting, ...] = ()
    change: FolderChange | None = None
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A line of the timeline."""

    when: str
    glyph: str
    colour: str
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class BoardView:
    """All that the board shows."""

    project: str
    rows: Sequence[tuple[BoardRow, State]] = ()
    counts: Mapping[State, int] = field(default_factory=dict)
    chosen: str = ""
    detail: Detail | None = None
    readiness: Readiness = "ready"
    refusal: str = ""
    timeline_events: Sequence[TimelineEvent] = ()
    hints: Sequence[Hint] = ()
    find: str | None = None
    notice: Sequence[Piece] = ()
    empty: str = ""
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Drawing:
    """The drawn lines, and whether the chosen agent's dialog is shown as a whole."""

    lines: list[Line]
    whole: bool


class Memo:
    """The last result of each drawing function, used again for the same arguments."""

    def __init__(self) -> None:
        self._last: dict[object, tuple[tuple[object, ...], object]] = {}

    def __call__(self, work: Callable[..., Drawn], *given: object) -> Drawn:
        last = self._last.get(work)
        if last is None or last[0] != given:
            last = self._last[work] = given, work(*given)
        return cast("Drawn", last[1])


def draw(view: BoardView, width: int, height: int, memo: Memo | None = None) -> Drawing:
    """Draw the board in exactly `width` by `height` cells; with a `memo`, only the parts that changed."""
    memo = memo or Memo()
    head, foot = _head(view, width), _foot(view, width)
    if not view.rows:
        body = _middle(view.empty or tr("nothing matches"), width, height - 2)
        return Drawing([head, *body, foot], whole=False)
    if width >= BESIDE:
        body, whole = _beside(view, width, height - 4, memo)
        lines = [head, _blank(width), *body, _blank(width), foot]
    else:
        gap = 1 if height >= LOW else 0
        body, whole = _beneath(view, width, height - 3 - gap)
        lines = [head, *[_blank(width)] * gap, *body, _blank(width), foot]
    return Drawing(lines, whole)


def _blank(width: int) -> Line:
    return [Piece(" " * width)]


def _middle(text: str, width: int, height: int) -> list[Line]:
    lines = [_blank(width) for _line in range(height)]
    words = wrap_words(text, min(width - 2 * EDGE, MOST), height)
    for y, row in enumerate(words, max(0, (height - len(words)) // 2)):
        left = (width - cell_len(row)) // 2
        lines[y] = fill([Piece(" " * left), Piece(row, "$muted")], [], width)
    return lines


def _head(view: BoardView, width: int) -> Line:
    total = sum(count for state, count in view.counts.items() if state is not NOT_STARTED)
    name = [
        Piece(" " * EDGE),
        Piece(view.project, "bold $ink"),
        Piece(f"   {plural(total, 'agent')}", "$faint"),
    ]
    for words in (True, False):
        right = [*counts(view.counts, words=words), Piece(" " * EDGE)]
        if width_of(name) + width_of(right) + 2 <= width:
            return fill(name, right, width)
    return fill(name[:2], right, width)


def _foot(view: BoardView, width: int) -> Line:
    """Return the hints, whole ones only, the most useful first; a notice takes their end."""
    room = width - 2 * EDGE - width_of(view.notice) - (2 if view.notice else 0)
    left = [Piece(" " * EDGE)]
    if view.find is not None:
        left += [
            Piece("/ ", "bold $accent"),
            Piece(view.find, "$ink", cut="start"),
            Piece(CURSOR, "$accent"),
            Piece("  "),
        ]
        room -= width_of(left) - EDGE
    left += hint_row((hint._replace(target=f"key:{hint.target}") for hint in view.hints), room)
    return fill(left, [*view.notice, Piece(" " * EDGE)] if view.notice else [], width)


# The agents


def _list(view: BoardView, width: int, height: int) -> list[Line]:
    """Return the rows of the agents: two lines each under headings while they fit, else a line each."""
    rows = [row for row, _state in view.rows]
    groups = len({state.heading for _row, state in view.rows})
    roomy = sum(2 if row.what else 1 for row in rows) + 2 * groups - 1 <= height
    names = name_column(rows, width)
    lines: list[Line] = []
    at = 0
    for _head, members in groupby(view.rows, key=lambda each: each[1].heading):
        group = list(members)
        if roomy:
            lines += [_blank(width)] if lines else []
            lines.append(fill(_heading(group), [], width))
        for row, _state in group:
            if roomy:
                drawn = tall_row(row, width - EDGE, frame=view.frame)
                drawn = drawn if row.what or row.change else drawn[:1]
            else:
                drawn = [flat_row(row, width - EDGE, names=names, frame=view.frame)]
            if row.agent_id == view.chosen:
                at = len(lines)
            lines += [_target(row, line, chosen=row.agent_id == view.chosen) for line in drawn]
    return _scrolled(lines, at, width, height)


def _scrolled(lines: list[Line], at: int, width: int, height: int) -> list[Line]:
    """Return as many lines as fit, with line `at` among them, and how many agents are above and below."""
    if len(lines) <= height:
        return lines
    first = max(0, min(at - height + 3, len(lines) - height))
    shown = lines[first : first + height]
    above, below = first, len(lines) - first - height
    if above and height > LEAST_LIST:
        shown[0] = fill([Piece("  "), Piece(tr(f"… {above + 1} more"), "$faint")], [], width)
    if below and height > 1:
        shown[-1] = fill([Piece("  "), Piece(tr(f"… {below + 1} more"), "$faint")], [], width)
    return shown


def _heading(group: Sequence[tuple[BoardRow, State]]) -> Line:
    """Return what all rows of a group are now; nothing if they differ, until they have moved."""
    loudest = min((row.state for row, _state in group), key=lambda state: state.rank)
    same = all(row.state.heading == loudest.heading for row, _state in group)
    return heading(loudest) if same else []


def _target(row: BoardRow, line: Line, *, chosen: bool) -> Line:
    target = f"agent:{row.agent_id}" if row.agent_id else ""
    if not chosen:
        return [Piece(" " * EDGE, "", target), *(_with(piece, piece.style, target) for piece in line)]
    mark = Piece("▌ ", "$accent on $select", target)
    return [mark, *(_with(piece, f"{piece.style} on $select".strip(), target) for piece in line)]


def _with(piece: Piece, style: str, target: str) -> Piece:
    return Piece(piece.text, style, target, piece.tip, piece.cut)


# Beside each other, or one beneath the other


def _beside(view: BoardView, width: int, height: int, memo: Memo) -> tuple[list[Line], bool]:
    left = min(width // 2 - 3, MOST)
    right = width - left - 2 * EDGE
    after = 0
    if width >= WIDEST and view.timeline_events:
        right, after = MOST + 2 * EDGE, width - left - MOST - 5 * EDGE
    agents = BoardView("", view.rows, chosen=view.chosen, frame=view.frame)
    listed = memo(_list, agents, left, height)
    if after == 0 and height + 4 >= LOW and view.timeline_events:
        listed = _with_timeline(view.timeline_events, listed, left, height)
    chosen = BoardView("", detail=view.detail, readiness=view.readiness, refusal=view.refusal)
    panel, whole = memo(_panel, chosen, right, height)
    aside = _timeline(view.timeline_events, after, height) if after else []
    gap, rest = Piece(" " * EDGE), Piece(" " * (width - left - EDGE - right))
    lines = []
    for at in range(height):
        line = [*_at(listed, at, left), gap, *panel[at]]
        lines.append(fill([*line, gap, *_at(aside, at, after)], [], width) if after else [*line, rest])
    return lines, whole


def _at(lines: Sequence[Line], at: int, width: int) -> Line:
    return lines[at] if at < len(lines) else _blank(width)


def _with_timeline(
    timeline_events: Sequence[TimelineEvent], listed: list[Line], width: int, height: int
) -> list[Line]:
    room = height - len(listed) - 2
    if room < LEAST_TIMELINE:
        return listed
    timeline = _timeline(timeline_events, width, min(room, max(LEAST_TIMELINE, height // 3)))
    gap = height - len(listed) - len(timeline)
    return [*listed, *[_blank(width)] * gap, *timeline]


def _timeline(timeline_events: Sequence[TimelineEvent], width: int, height: int) -> list[Line]:
    lines = [fill([Piece("  "), Piece(tr("Lately"), "$faint")], [], width)]
    for event in timeline_events[: height - 1]:
        left = [
            Piece(f"  {event.when}  ", "$faint"),
            Piece(f"{event.glyph} ", f"${event.colour}"),
            Piece(event.who, "$ink", cut="middle"),
            Piece("  "),
            Piece(event.text, "$muted", cut="end"),
            Piece(" "),
        ]
        lines.append(fill(left, [], width))
    return lines


def _panel(view: BoardView, width: int, height: int) -> tuple[list[Line], bool]:
    """Return the chosen agent on a surface of its own."""
    inner = min(width - 2 * EDGE, MOST)
    lines, whole = _detail(view, inner, height - 2, head=True)
    lines = [[], *lines, *[[]] * (height - 1 - len(lines))]
    return [_on("panel", fill([Piece(" " * EDGE), *line], [], width)) for line in lines], whole


def _beneath(view: BoardView, width: int, height: int) -> tuple[list[Line], bool]:
    detail = view.detail
    most = height * 55 // 100
    if detail is not None and detail.asked is not None:  # the dialog needs its room
        inner = width - 2 * EDGE - 4
        needed = sum(
            len(_wrapped(line, inner)) for line in detail.asked.lines if _says(line) and not _is_rule(line)
        )
        most = min(most, height - 3 - needed - len(detail.asked.options))
    listed = _list(view, width, max(most, min(LEAST_LIST, height)))
    room = height - len(listed) - 1
    if room < 4:
        return [*listed, *[_blank(width)] * (height - len(listed))], False
    lines, whole = _detail(view, width - 2 * EDGE, room, head=False)
    below = [fill([Piece(" " * EDGE), *line], [], width) for line in lines]
    body = [*listed, _blank(width), *below]
    return [*body, *[_blank(width)] * (height - len(body))], whole


def _on(ground: str, line: Line) -> Line:
    return [
        piece if " on " in piece.style else _with(piece, f"{piece.style} on ${ground}".strip(), piece.target)
        for piece in line
    ]


# The chosen agent


def _detail(view: BoardView, width: int, height: int, *, head: bool) -> tuple[list[Line], bool]:
    detail = view.detail
    if detail is None:
        return [], False
    top = _who(detail, width) if head else []
    options = _options(view, detail, width)
    room = height - len(top) - len(options) - 2
    asked = detail.asked
    if asked is not None:
        body, whole = _asked_lines(asked, detail.screen, width - 4, room)
        parts = _parts(detail, width, room - len(body))
    else:
        parts = _parts(detail, width, max(0, room - 4))
        body = list(detail.screen[-max(room - len(parts), 1) :])
        if detail.row.agent.failed:
            words = wrap_words(detail.row.agent.failed, width - 4, max(room, 1))
            body = [[Piece(line, "$ink")] for line in words]
        whole = False
    framed = _framed(view, detail, body, width)
    return [*top, *framed, *options, *parts][:height], whole


def _who(detail: Detail, width: int) -> list[Line]:
    row, state = detail.row, detail.row.state
    word = f"{state.word} {since(row.seconds)}"
    first = [
        Piece(f"{state.glyph} ", f"${state.colour}"),
        Piece(row.agent.label, "bold $ink", cut="middle"),
        Piece(f"  {word}", f"${state.colour}"),
    ]
    about = [Piece("  "), Piece(" · ".join(detail.about), "$faint", cut="end")]
    return [fill(first, [], width), fill(about, [], width), []]


def _asked_lines(asked: Asked, above: Sequence[Line], width: int, room: int) -> tuple[list[Line], bool]:
    """Return the dialog's lines that fit, and whether that is all of them.

    Blank lines go first, then the upper ones. What is above the dialog is shown if there is room, and
    between them a rule where the agent draws one.
    """
    said = [at for at, line in enumerate(asked.lines) if _says(line) and not _is_rule(line)]
    own = asked.lines[said[0] : said[-1] + 1] if said else asked.lines  # the frame stands for its own rules
    lines = [part for line in own for part in _wrapped(line, width)]
    if len(lines) > room:
        lines = [line for line in lines if _says(line)]
    whole = len(lines) <= room
    lines = lines[max(0, len(lines) - room) :] if room > 0 else []
    left = room - len(lines) - MOST_WAITING - 2
    before = [_faded(line) for line in above[-left + 1 :]] if left > 2 and above else []
    while before and not _says(before[0]):
        before.pop(0)
    if before:
        rules = any(_says(line) for line in asked.lines[: said[0]]) if said else False
        most = min(width, max(map(width_of, [*before, *lines])))
        before.append([Piece("─" * most, "$line")] if rules else [])
    return [*before, *lines], whole


def _faded(line: Line) -> Line:
    return [replace(piece, style="$muted") for piece in line]


def _says(line: Line) -> bool:
    return any(piece.text.strip() for piece in line)


def _wrapped(line: Line, width: int) -> list[Line]:
    """Wrap a line of an agent's screen: no part of what is answered may be missing. Rules are cut."""
    if width_of(line) <= width:
        return [line]
    if _is_rule(line):
        return [_cropped(line, width)]
    lines: list[Line] = [[]]
    room = width
    for piece in line:
        text = piece.text
        while text:
            part = chop_cells(text, room)[0] if room > 0 else ""
            if part and cell_len(part) <= room:
                lines[-1].append(replace(piece, text=part))
                room -= cell_len(part)
                text = text[len(part) :]
            if text:
                lines.append([])
                room = width
    return lines


def _is_rule(line: Line) -> bool:
    return all(set(piece.text) <= _RULES for piece in line)


def _shortened(line: Line, width: int) -> Line:
    """Cut a line of an agent's screen, and show that it goes on; rules and blanks are cut without that."""
    over = "".join(piece.text for piece in line).rstrip()
    if cell_len(over) <= width or width < 1 or _is_rule(line):
        return _cropped(line, width)
    return [*_cropped(line, width - 1), Piece(ELLIPSIS, "$faint")]


def _cropped(line: Iterable[Piece], width: int) -> Line:
    """Cut a line hard, as a narrower terminal would."""
    out: Line = []
    for piece in line:
        if width <= 0:
            break
        text = chop_cells(piece.text, width)[0] if piece.text else ""
        out.append(replace(piece, text=text))
        width -= cell_len(text)
        if text != piece.text:
            break
    return out


def _framed(view: BoardView, detail: Detail, body: Sequence[Line], width: int) -> list[Line]:
    asks = detail.asked is not None
    edge = "$needs" if asks and view.readiness != "changed" else "$line"
    title, style = tr(" last on its screen "), "$faint"
    if detail.row.agent.external:
        title = tr(" last messages ")
    if detail.row.agent.failed is not None:
        title = tr(" why it did not start ") if detail.row.agent.failed else tr(" is tried again ")
    if asks:
        title = (
            tr(" changed: look again ")
            if view.readiness == "changed"
            else tr(" asks · as on its screen now ")
        )
        style = edge if view.readiness != "changed" else "$muted"
    title = shorten(title, max(width - 4, 0))
    top = [
        Piece("╭─", edge),
        Piece(title, style),
        Piece("─" * max(width - cell_len(title) - 3, 0) + "╮", edge),
    ]
    empty = tr("nothing yet") if detail.row.agent.exit is None else tr("nothing")
    rows = [
        [Piece("│ ", edge), *fill(_shortened(line, width - 4), [], width - 4), Piece(" │", edge)]
        for line in body or [[Piece(empty, "$faint")]]
    ]
    return [top, *rows, [Piece("╰" + "─" * max(width - 2, 0) + "╯", edge)]]


def _options(view: BoardView, detail: Detail, width: int) -> list[Line]:
    asked = detail.asked
    if asked is None:
        return []
    if view.readiness == "hidden":
        return [
            [
                Piece("  "),
                Piece(tr("too long to answer here: "), "$muted"),
                Piece("Enter", "bold $accent"),
                Piece(tr(" opens it"), "$muted"),
            ]
        ]
    if view.readiness == "sent":
        return [[Piece("  "), Piece(tr("answered; it is read now"), "$muted")]]
    ready = view.readiness == "ready"
    lines: list[Line] = []
    for option in asked.options:
        target = f"answer:{option.number}" if ready else ""
        key = Piece(f" {option.key:>2}  {option.number}  ", "bold $needs" if ready else "$faint", target)
        words = _option_words(one_line(option.words), width - key.width - 1)
        lines.append([key, Piece(words[0], "$ink" if ready else "$muted", target)])
        lines += [[Piece(" " * key.width, "", target), Piece(more, "$muted", target)] for more in words[1:]]
    if not asked.options:
        lines.append(
            [Piece("  "), Piece("Enter", "bold $accent"), Piece(tr(" opens it to answer there"), "$muted")]
        )
    if view.refusal:
        lines.append([Piece("  "), Piece(view.refusal, "$fail", cut="end")])
    return lines


def _option_words(words: str, width: int) -> list[str]:
    lines = list(wrapped_line(words, max(width, 2)))
    if len(lines) > OPTION_LINES:
        lines = [*lines[: OPTION_LINES - 1], shorten(join_rows(lines[OPTION_LINES - 1 :]), width)]
    return lines or [""]


def _parts(detail: Detail, width: int, room: int) -> list[Line]:
    """Return what waits for the agent and what it changed, as much as fits."""
    lines: list[Line] = []
    for part in (_waiting(detail, width), _changes(detail, width)):
        if part and len(lines) + 3 <= room:
            lines += [[], *part[: room - len(lines) - 1]]
    return lines


def _waiting(detail: Detail, width: int) -> list[Line]:
    if not detail.waiting:
        return []
    lines: list[Line] = [[Piece(tr("Waiting for it"), "$faint")]]
    for each in detail.waiting[:MOST_WAITING]:
        left = [
            Piece(f"{HELD} ", "$held"),
            Piece(f"{each.way}  ", "$ink"),
            Piece(each.text, "$muted", cut="end"),
            Piece("  "),
        ]
        lines.append(fill(left, [Piece(each.status, "$needs" if each.for_long else "$held")], width))
        if each.reason:
            lines.append(fill([Piece("  "), Piece(each.reason, "$faint", cut="end")], [], width))
    if more := len(detail.waiting) - MOST_WAITING:
        lines += [[Piece(tr(f"  and {more} more"), "$faint")]] if more > 0 else []
    return lines


def _changes(detail: Detail, width: int) -> list[Line]:
    if detail.change is None or not detail.change.files:
        return []
    others = detail.shared_with
    who = ", ".join(others) if len(others) <= MOST_NAMED else tr(f"{len(others)} others")
    shared = tr(f" in its folder, shared with {who}") if others else ""
    lines: list[Line] = [fill([Piece(tr(f"Changes{shared}"), "$faint", cut="end")], [], width)]
    files = detail.change.files
    most = max(added + removed for _path, added, removed in files) or 1
    for path, added, removed in files[:MOST_FILES]:
        green, red = (-(-number * BAR // most) for number in (added, removed))
        bar = [
            Piece(" "),
            Piece("━" * green, "$add"),
            Piece("─" * red, "$del"),
            Piece(" " * (BAR + 1 - green - red)),
        ]
        lines.append(
            fill([Piece(path, "$muted", cut="start")], [*changed_columns(added, removed), *bar], width)
        )
    if len(files) > MOST_FILES:
        lines.append([Piece(tr(f"and {plural(len(files) - MOST_FILES, 'more file')}"), "$faint")])
    return lines
