"""What a theme looks like: a row for each kind of state, and a change."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from synapse_tui.system.language import tr

from .fit import Piece, line
from .states import DONE, ENDED, HOLDS, NEEDS_YOU, READY, WORKING, State

_ROWS: Sequence[tuple[State, str, str, str]] = (
    (NEEDS_YOU, "alice", tr("wants to run rm -rf build"), "0:19"),
    (ENDED, "bob", tr("exited with status 1"), "5:02"),
    (DONE, "carol", tr("3 tests added"), "2:10"),
    (HOLDS, "dave", tr("2 messages wait"), "0:40"),
    (WORKING, "erin", tr("edits parser.py"), "0:44"),
    (READY, "frank", "", "3 h"),
)
_CODE = (
    Piece("  52 ", "$faint"),
    *(Piece("def ", "$code-key"), Piece("total", "$code-name"), Piece("(self) -> Money:", "$ink", cut="end")),
)
HEIGHT = len(_ROWS) + 6


class ThemePreview(Static):
    DEFAULT_CSS = f"ThemePreview {{ height: {HEIGHT}; width: 1fr; }}"

    def render(self) -> Content:
        width = max(self.size.width - 4, 1)
        rows = [_state_row(*row, width, chosen=not at) for at, row in enumerate(_ROWS)]
        changes = [_changed(sign, text, width) for sign, text in (("del", "0"), ("add", "Money(0)"))]
        framed = [
            Content.assemble(("│ ", "$line"), row, (" │", "$line"))
            for row in [*rows, line(width, []), line(width, _CODE), *changes]
        ]
        title = tr(" preview ")
        top = (("╭─", "$line"), (title, "$faint"), ("─" * max(width - cell_len(title) + 1, 0) + "╮", "$line"))
        bottom = Content.styled(f"╰{'─' * (width + 2)}╯", "$line")
        return Content("\n").join([Content.assemble(*top), *framed, bottom])


def _state_row(state: State, name: str, what: str, since: str, width: int, *, chosen: bool) -> Content:
    bold = "bold $ink" if state.calls else "$ink"
    left = [
        Piece("▌ " if chosen else "  ", "$accent"),
        Piece(f"{state.glyph} ", f"${state.colour}"),
        Piece(f"{name:<7}", bold),
        Piece(what, "$ink" if state.calls else "$muted", cut="end"),
    ]
    time = Piece(f" {since}", f"${state.colour}" if state is NEEDS_YOU else "$faint")
    return line(width, left, [time], "on $select" if chosen else "")


def _changed(kind: str, value: str, width: int) -> Content:
    sign = "+" if kind == "add" else "\N{MINUS SIGN}"
    code = [Piece("return ", "$code-key"), Piece(value, "$ink", cut="end")]
    return line(
        width, [Piece("  53 ", "$faint"), Piece(f"{sign} ", f"${kind}"), *code], (), f"on ${kind}-ground"
    )
