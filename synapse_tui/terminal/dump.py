"""A terminal as the bytes that make another one like it.

The bytes are ordinary control sequences (ECMA-48, xterm ctlseqs), so that a later version of this program, or
another terminal, understands them. They are meant for a fresh terminal of the same size. What it answers to
them must be thrown away: in mode 2048 it tells its size.

Four things have no sequence and are not kept: what REP would repeat, half of a notification (OSC 99), tab
stops beyond the right edge, and a cursor that stands outside of the margins in origin mode.
"""

from __future__ import annotations

from . import dump_modes
from .cells import begins_wide, cell_count, split_cells
from .dump_text import Pen, paint_line, separate
from .entries import unpacked
from .packed import Packed, pack
from .row import Row
from .screen import Screen
from .state import SavedCursor
from .style import erased
from .terminal import Terminal


def dump(terminal: Terminal, *, scrollback_lines: int | None = None) -> bytes:
    """The screens, the scrollback and all modes of a terminal.

    Args:
        terminal: The terminal; it stays as it is.
        scrollback_lines: So many rows of the scrollback at most, the newest ones; None for all.

    Returns:
        Bytes for `Terminal.feed` of a new terminal with the same columns and lines. They end in what the
        terminal was fed of a sequence that is not complete yet, so that the rest of it may follow.
    """
    screen, stream = terminal.screen, terminal.stream
    pen = Pen(screen.table)
    pen.parts += dump_modes.before_text(screen)
    dump_modes.renditions(screen, pen)
    _main_screen(screen, pen, scrollback_lines)
    _alternate_screen(screen, pen)
    pen.parts += dump_modes.tab_stops(screen)
    pen.parts += dump_modes.after_text(screen)
    pen.parts += dump_modes.region(screen)
    _cursor(screen, pen)
    dump_modes.drawing(screen, pen)
    return pen.take().encode() + stream.unfinished


def _main_screen(screen: Screen, pen: Pen, scrollback_lines: int | None) -> None:
    buffer = screen.main_buffer
    _scrollback(screen, pen, scrollback_lines)
    dump_modes.saved_cursor(buffer.saved, screen.columns, screen.lines, pen)
    pen.parts += dump_modes.keyboard(buffer.kitty)
    _rows(buffer.rows, screen.columns, pen, _spoilt(screen, buffer.saved))


def _alternate_screen(screen: Screen, pen: Pen) -> None:
    buffer = screen.alternate_buffer
    blank = all(row.is_blank() and not row.wrapped for row in buffer.rows)
    if not screen.on_alternate and blank and not any(buffer.kitty) and buffer.saved.x == buffer.saved.y == 0:
        return
    pen.parts.append(dump_modes.switch(47, True))
    dump_modes.saved_cursor(buffer.saved, screen.columns, screen.lines, pen)
    pen.parts += dump_modes.keyboard(buffer.kitty)
    _rows(buffer.rows, screen.columns, pen, _spoilt(screen, buffer.saved))
    if not screen.on_alternate:
        pen.parts.append(dump_modes.switch(47, False))


def _scrollback(screen: Screen, pen: Pen, rows: int | None) -> None:
    """Write the lines and scroll them off; the first row of the screen may go on from the last of them."""
    lines, columns = screen.lines, screen.columns
    entries = [unpacked(entry) for entry in screen.scrollback.entries(rows)]
    kept, goes_on = bool(entries), screen.main_buffer.rows[0].wrapped
    if goes_on and not kept:
        entries = [(Packed("x" * columns), False)]
    for index, (line, continued) in enumerate(entries):
        if index and not continued:
            pen.parts.append("\r\n")
        paint_line(pen, line, columns)
    if not entries:
        return
    pen.parts.append(
        _wrapping(entries[-1][0], pack(screen.main_buffer.rows[0]), columns) if goes_on else "\r\n"
    )
    height = 1 + sum(_height(line, columns) for line, _ in entries)
    pen.parts.append(f"\x1b[{lines}H" + "\n" * (min(height, lines) - 1))
    if goes_on and not kept:
        pen.parts.append("\x1b[3J")


def _wrapping(line: Packed, following: Packed, columns: int) -> str:
    """Blanks up to the right edge and a character that wraps there, which is painted over later."""
    size = cell_count(line.text)
    missing = -size % columns if size else columns
    if missing == 1 and begins_wide(following.text):
        return f"{split_cells(following.text)[0]}\r"
    return f"{' ' * missing}x\r"


def _height(line: Packed, columns: int) -> int:
    return max(1, -(-cell_count(line.text) // columns))


def _spoilt(screen: Screen, saved: SavedCursor) -> int:
    """The row in which `saved_cursor` wrote; -1 for none."""
    return min(saved.y, screen.lines - 1) if saved.x >= screen.columns else -1


def _rows(rows: list[Row], columns: int, pen: Pen, spoilt: int) -> None:
    """Paint a screen that is blank but for at most one character.

    Args:
        rows: The rows.
        columns: Their width.
        pen: Writes.
        spoilt: The row with that character; -1 for none.
    """
    lines = [pack(row) for row in rows]
    sizes = [cell_count(line.text) for line in lines]
    wraps = [
        y > 0 and row.wrapped and _wraps_by_itself(sizes[y - 1], line, columns)
        for y, (row, line) in enumerate(zip(rows, lines, strict=True))
    ]
    to_wipe = {spoilt, 0} if rows[0].wrapped else {spoilt}
    for y, row in enumerate(rows):
        if y and row.wrapped and not wraps[y]:
            to_wipe |= {y - 1, y}
            pen.parts.append(f"\x1b[{y};{columns}Hxx")
    for y, (line, size) in enumerate(zip(lines, sizes, strict=True)):
        if not wraps[y]:
            pen.parts.append(f"\x1b[{y + 1}H")
        pen.cells(line)
        if size < columns and (y in to_wipe or line.fill):
            pen.rendition(erased(line.fill))
            pen.parts.append(f"\x1b[{columns - size}X")
        pen.rendition(0)


def _wraps_by_itself(before: int, line: Packed, columns: int) -> bool:
    """Whether a row begins in the next one when it is written behind one of `before` cells."""
    return bool(line.text) and (before == columns or (before == columns - 1 and begins_wide(line.text)))


def _cursor(screen: Screen, pen: Pen) -> None:
    """Put the cursor in its place; after a wrap or a joiner that is pending the last character again."""
    x, y, row = screen.column, screen.y, screen.rows[screen.y]
    pending = screen.x >= screen.columns
    if pending or (screen.joining and x):
        at = x if pending else x - 1
        at -= row.cell(at)[0] == "" and at > 0
        wide = at + 1 < screen.columns and row.cell(at + 1)[0] == ""
        text, style = row.cell(at)
        pen.parts.append(_place(screen, at, y))
        pen.rendition(style)
        pen.parts.append(separate("", text or " ", 1 + wide))
        pen.rendition(0)
    if not pending:
        pen.parts.append(_place(screen, x, y))


def _place(screen: Screen, x: int, y: int) -> str:
    """CUP, which counts from the margins in origin mode."""
    if screen.modes.origin:
        x, y = max(0, x - screen.left), max(0, y - screen.top)
    return f"\x1b[{y + 1};{x + 1}H"
