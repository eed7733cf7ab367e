"""Rows of agents as the board and the sidebar draw them, fitted to a width.

What is left out first, where room is short: the number of files, the changes, the word, the kind. Never the
glyph, the name, what the agent asks or does, and since when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from synapse_tui.agents.worktrees.line_counts import FolderChange
from synapse_tui.core.wording import since
from synapse_tui.system.language import tr

from .board_model import BoardRow
from .fit import Piece, fill, pad, shorten, width_of
from .states import DONE, HELD, HOLDS, NEEDS_YOU, READY, STARTING, State, spinning

CHANGES_FROM = 44  # cells of a row of two lines from which it shows changed lines
FILES_FROM = 62  # and the number of files
ONE_LINE_CHANGES_FROM = 72
ONE_LINE_WORD_FROM = 56
LONGEST_NAME = 16  # cells of a name in rows of one line
LONGEST_NAME_NARROW = 12  # and below `BESIDE`
BESIDE = 104  # width from which the board shows the chosen agent beside the rows
WORD = 11  # cells of the word of a state in rows of one line
TIME = 5  # cells of a duration

Line = list[Piece]


def heading(state: State) -> Line:
    return [Piece("  "), Piece(state.heading, f"${state.colour}" if state.calls else "$faint")]


def counts(agents: Mapping[State, int], *, words: bool = True) -> Line:
    """Return how many agents are in which state: `▲ 2 need you  ◆ 1 done`; calm ones are not counted."""
    shown: dict[str, tuple[State, int]] = {}
    for state, count in agents.items():
        if state.rank != READY.rank:
            word = state.short
            shown[word] = (state, shown.get(word, (state, 0))[1] + count)
    pieces: Line = []
    for word, (state, count) in shown.items():
        style = f"bold ${state.colour}" if state.calls else f"${state.colour}"
        gap = "  " if pieces else ""
        said = tr("need you") if state is NEEDS_YOU and count > 1 else word
        said = tr("holding") if state is HOLDS else said  # they are agents: each may hold several messages
        pieces.append(
            Piece(f"{gap}{state.glyph} {count} {said}" if words else f"{gap}{state.glyph} {count}", style)
        )
    return pieces


def tall_row(row: BoardRow, width: int, *, frame: int = 0) -> list[Line]:
    """Return glyph, name, kind and since when; beneath, what the agent asks or does, and what it changed."""
    right = [*_held(row), _since(row), Piece(" ")]
    glyph = _glyph(row, frame)
    room = width - width_of(right) - glyph.width - 1
    name = Piece(shorten(row.agent.label, room, "middle"), _name_style(row))
    kind = f"  {row.agent.agent_type}"
    left = [glyph, name]
    if name.width + cell_len(kind) <= room and row.agent.agent_type != row.agent.label:
        left.append(Piece(kind, "$faint"))
    first = fill(left, right, width)
    small = changed(row.change, files=width >= FILES_FROM) if width >= CHANGES_FROM else []
    what = Piece(row.what, _what_style(row), cut="end")
    second = fill([Piece("  "), what, Piece(" ")], [*small, Piece(" ")], width)
    return [first, second]


def flat_row(row: BoardRow, width: int, *, names: int, frame: int = 0) -> Line:
    """Return an agent in a line, in columns; `names` is the width of the column of names."""
    word = [Piece(pad(row.state.short, WORD), _word_style(row))] if width >= ONE_LINE_WORD_FROM else []
    left = [
        _glyph(row, frame),
        Piece(pad(shorten(row.agent.label, names, "middle"), names + 2), _name_style(row)),
        *word,
        Piece(row.what, _what_style(row), cut="end"),
        Piece(" "),
    ]
    held = _held(row)
    small = changed(row.change) if width >= ONE_LINE_CHANGES_FROM else []
    return fill(left, [*held, *small, _since(row), Piece(" ")], width)


def name_column(rows: Sequence[BoardRow], width: int) -> int:
    most = LONGEST_NAME if width >= BESIDE else LONGEST_NAME_NARROW
    return min(max((cell_len(row.agent.label) for row in rows), default=0), most)


def changed(change: FolderChange | None, *, files: bool = False) -> Line:
    """Return the changed lines in columns, with their signs; nothing for nothing."""
    if change is None or not change.files:
        return []
    columns = changed_columns(change.added, change.removed)
    count = len(change.files)
    words, plural = tr(f"{count} file{'s' if count > 1 else ''}"), tr(f"{count} files")
    # Numbers stand beneath each other, whether or not there is a letter more after some of them.
    many = f"{' ' * (5 - len(str(count)))}{pad(words, cell_len(plural))}"
    return [*columns, Piece(many, "$faint")] if files else columns


def changed_columns(added: int, removed: int) -> Line:
    minus = _signed("\N{MINUS SIGN}", removed)  # as wide as the plus sign
    return [Piece(f"{_signed('+', added):>5}", "$add"), Piece(f"{minus:>5}", "$del")]


def _signed(sign: str, number: int) -> str:
    return f"{sign}{number}" if number else ""


def _glyph(row: BoardRow, frame: int) -> Piece:
    return Piece(f"{spinning(row.state, frame)} ", f"${row.state.colour}")


def _name_style(row: BoardRow) -> str:
    return "bold $ink" if row.state.rank <= HOLDS.rank else "$ink"


def _what_style(row: BoardRow) -> str:
    return "$ink" if row.state.calls else "$muted"


def _word_style(row: BoardRow) -> str:
    return f"${row.state.colour}" if row.state.calls else "$faint"


def _held(row: BoardRow) -> Line:
    """Return the answers that wait in its pane, and the messages that it holds."""
    agent = row.agent
    answers = [Piece(f"{DONE.glyph}{agent.answers:<2} ", "$done")] if agent.answers else []
    held = [Piece(f"{HELD}{agent.held:<2} ", "$needs" if agent.held_long else "$held")] if agent.held else []
    return [*answers, *held]


def _since(row: BoardRow) -> Piece:
    text = "" if row.state is STARTING and not row.seconds else since(row.seconds)
    return Piece(f"{text:>{TIME}}", f"${row.state.colour}" if row.state.rank == 0 else "$faint")
