"""Dump of a terminal as bytes that recreate it.

The bytes are ordinary control sequences (ECMA-48, xterm ctlseqs), so that later versions and other terminals
understand them. They are for a fresh terminal of the same size, whose replies must be discarded: in mode 2048
it reports its size.

Four things have no sequence and are lost: the character for REP, half of a notification (OSC 99), tab stops
beyond the right edge, and a cursor outside the margins in origin mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache

from synapse_tui.system.dataclass import dataclass

from .cells import (
    WIDE_TAIL,
    begins_wide,
    cell_count,
    cluster_width,
    extends,
    is_special,
    may_cluster,
    may_extend,
    readable,
    split_cells,
)
from .charsets import ASCII
from .events import Modes
from .grid import SavedCursor
from .row import Row
from .screen import (
    ANSI_MODES,
    ANSI_REMEMBERED,
    MOUSE_ENCODINGS,
    PRIVATE_MODES,
    REMEMBERED,
    SCREEN_MODES,
    Screen,
)
from .scrollback import Entry, Joiner, Packed, breaks, pack, unpacked
from .style import BG, LINK_SHIFT, PROTECTED, RENDITION, StyleTable, color_spec, erased, unparse
from .terminal import Terminal

_LINE_END = re.compile(rb"\r\n")
_SGR = lru_cache(maxsize=4096)(unparse)


class Pen:
    """Writes for a terminal with autowrap, clusters (mode 2027) and ASCII on, sending only changes."""

    def __init__(self, table: StyleTable) -> None:
        self.parts: list[str] = []
        self._table = table
        self._style = 0

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts.clear()
        return text

    def assume(self, style: int) -> None:
        self._style = style

    def rendition(self, style: int) -> None:
        changed = style ^ self._style
        if not changed:
            return
        self._style = style
        if changed & RENDITION:
            self.parts.append(f"\x1b[{_SGR(style & RENDITION)}m")
        if changed & PROTECTED:
            self.parts.append(f'\x1b[{1 if style & PROTECTED else 0}"q')
        if changed >> LINK_SHIFT:
            uri, group = self._table.target(style >> LINK_SHIFT)
            self.parts.append(f"\x1b]8;{f'id={group}' if group else ''};{uri}\x1b\\")

    def cells(self, line: Packed) -> None:
        """Write the cells of a line, relying on autowrap for lines longer than a row."""
        text = line.text
        cells = split_cells(text)
        careful = may_cluster(text)
        starts, styles = line.spans[::2], line.spans[1::2]
        for start, end, style in zip((0, *starts), (*starts, len(cells)), (0, *styles), strict=True):
            if end <= start:
                continue
            self.rendition(style)
            if careful:
                self._careful(cells, start, end)
            else:
                self.parts.append(readable(text[start:end]))

    def _careful(self, cells: Sequence[str], start: int, end: int) -> None:
        before, apart = cells[start - 1] if start else "", False
        for x in range(start, end):
            cell = cells[x]
            if cell == WIDE_TAIL:
                continue
            alone = len(cell) == 1 and not is_special(cell)
            if alone and apart:
                self.parts.append(cell)
            else:
                wide = x + 1 < len(cells) and cells[x + 1] == WIDE_TAIL
                self.parts.append(separate(before, cell, 1 + wide))
            before, apart = cell, alone


def separate(before: str, cell: str, width: int) -> str:
    """Return a character so that it neither joins the one before it nor changes its width.

    Without mode 2027 each code point that is not a mark has its own cells, and must be written the same way.
    """
    if len(cell) > 1 and cluster_width(cell) != width:
        return f"\x1b[?2027l{cell}\x1b[?2027h"
    if may_extend(cell[0]) and (before in ("", WIDE_TAIL) or extends(before, cell[0])):
        return f"\x1b[?2027l{cell[0]}\x1b[?2027h{cell[1:]}"
    return cell


def paint_line(pen: Pen, line: Packed, columns: int) -> None:
    """Write a line and the background of the blanks after it. The cursor ends in its last row.

    A row started by a wrap at the bottom of a screen has the background of the current rendition, so the
    blanks after a coloured line are erased even if they have the default colour.
    """
    pen.cells(line)
    if line.fill or any(style & BG for style in line.spans[1::2]):
        cells = split_cells(line.text)
        if len(cells) - breaks(cells, columns)[-1] < columns:
            pen.rendition(erased(line.fill))
            pen.parts.append("\x1b[K")
    pen.rendition(0)


@dataclass(frozen=True, slots=True)
class TerminalSnapshot:
    """A snapshot of all lines of a terminal, which any thread may render."""

    columns: int  # Width of the terminal
    entries: Sequence[Entry]  # Lines of the scrollback, oldest first
    # Lines of the screen; the main screen's, then the alternate screen's if it is shown
    screen: Sequence[Packed]
    table: StyleTable

    def render(self) -> bytes:
        """Return the lines as text and renditions, each self-contained, separated by CR LF.

        There are no other sequences, so a terminal of any width can wrap the lines.
        """
        pen = Pen(self.table)
        lines = []
        for line in self._lines():
            paint_line(pen, line, self.columns)
            lines.append(pen.take())
        while lines and not lines[-1]:
            lines.pop()
        return "\r\n".join(lines).encode()

    def _lines(self) -> Iterator[Packed]:
        for entry in self.entries:
            yield unpacked(entry)[0]
        yield from self.screen


def capture_history(terminal: Terminal) -> TerminalSnapshot:
    screen = terminal.screen
    lines = join_rows(screen.main_buffer.rows, screen.columns)
    if screen.on_alternate:
        lines += join_rows(screen.rows, screen.columns)
    return TerminalSnapshot(screen.columns, screen.scrollback.entries(), lines, screen.table)


def join_rows(rows: Iterable[Row], columns: int) -> list[Packed]:
    joiners: list[Joiner] = []
    for row in rows:
        line = pack(row)
        if row.wrapped and joiners:
            joiners[-1].add(line, columns)
        else:
            joiners.append(Joiner(line, cell_count(line.text)))
    lines = [joiner.line for joiner in joiners]
    while lines and not (lines[-1].text.strip(" ") or lines[-1].fill):
        lines.pop()
    return lines


def newest_lines(history: bytes, size: int) -> bytes:
    """Return the end of a rendered history, at most `size` bytes, cut between two lines."""
    if len(history) <= size:
        return history
    found = _LINE_END.search(history, len(history) - size)
    return history[found.end() :] if found else b""


DEFAULTS = {field.name: field.default for field in fields(Modes)}
LATE = (6, 7, 69, 2026, 2027)  # Private modes that change how the rest of a dump is drawn, so they come last
_SRM = 12  # Local echo off: the only one of these modes that is initially set
_SHIFTS = ("\x0f", "\x0e", "\x1bn", "\x1bo")


def switch(number: int, on: bool) -> str:
    return f"\x1b[?{number}{'h' if on else 'l'}"


def before_text(screen: Screen) -> Iterator[str]:
    if screen.attribute_extent:
        yield f"\x1b[{screen.attribute_extent}*x"
    if screen.level != 4:
        yield f'\x1b[{60 + screen.level};1"p'  # a soft reset, so it must be first
    if screen.eight_bit_replies:
        yield "\x1b G"
    if screen.checksum_flags:
        yield f"\x1b[{screen.checksum_flags}#y"
    for number, on in screen.saved_modes.items():
        yield from _saved_mode(number, on)
    for number in sorted(REMEMBERED):
        if number << 5 in screen.mode:
            yield switch(number, True)
    yield from _titles(screen)
    yield from _colors(screen)


def _saved_mode(number: int, on: bool) -> Iterator[str]:
    if number in SCREEN_MODES:
        change, back = switch(47, on), switch(47, False)
    else:
        change = switch(number, on)
        back = switch(number, bool(DEFAULTS.get(PRIVATE_MODES.get(number, ""), False)))
    yield f"{change}\x1b[?{number}s{back}"


def _titles(screen: Screen) -> Iterator[str]:
    for code, which, stack, name in (
        (1, 1, screen.icon_stack, screen.icon_name),
        (2, 2, screen.title_stack, screen.title),
    ):
        for kept in stack:
            yield f"\x1b]{code};{kept}\x1b\\\x1b[22;{which}t"
        if stack or name:
            yield f"\x1b]{code};{name}\x1b\\"


def _colors(screen: Screen) -> Iterator[str]:
    for number, color in screen.colors.own.items():
        yield f"\x1b]{number};{color_spec(color)}\x1b\\"
    for index, color in screen.colors.palette.items():
        yield f"\x1b]4;{index};{color_spec(color)}\x1b\\"


def renditions(screen: Screen, pen: Pen) -> None:
    for style, parts in zip(screen.saved_styles, screen.saved_parts, strict=True):
        pen.rendition(style)
        pen.parts.append(f"\x1b[{';'.join(map(str, parts))}#{{")
    pen.rendition(0)


def keyboard(stack: Sequence[int]) -> Iterator[str]:
    if stack[0]:
        yield f"\x1b[={stack[0]}u"
    for flags in stack[1:]:
        yield f"\x1b[>{flags}u"


def charsets(codes: Sequence[str], shift: int) -> str:
    """Return designations of G0 to G3 and the active set, relative to the state after a reset."""
    designations = [f"\x1b{mode}{code}" for mode, code in zip("()*+", codes, strict=True) if code != ASCII]
    return "".join(designations) + (_SHIFTS[shift] if shift else "")


def saved_cursor(saved: SavedCursor, columns: int, lines: int, pen: Pen) -> None:
    """Write DECSC, painting a character where a pending wrap needs one; the place is painted over later."""
    if saved == SavedCursor():
        return
    add = pen.parts.append
    pending = saved.x >= columns
    add(switch(6, True) if saved.origin else "")
    add(f"\x1b[{min(saved.y, lines - 1) + 1};{min(saved.x, columns - 1) + 1}H{'x' if pending else ''}")
    add(charsets(saved.charsets, saved.shift))
    pen.rendition(saved.style)
    add("\x1b7")
    pen.rendition(0)
    add(charsets_reset(saved.charsets, saved.shift))
    add(switch(6, False) if saved.origin else "")


def charsets_reset(codes: Sequence[str], shift: int) -> str:
    designations = [f"\x1b{mode}{ASCII}" for mode, code in zip("()*+", codes, strict=True) if code != ASCII]
    return "".join(designations) + (_SHIFTS[0] if shift else "")


def tab_stops(screen: Screen) -> Iterator[str]:
    usual = set(range(8, max(screen.columns, 1024), 8))
    if screen.tabstops == usual:
        return
    kept = {stop for stop in usual if stop >= screen.columns}
    if kept <= screen.tabstops:
        for stop in sorted(usual - kept - screen.tabstops):
            yield f"\x1b[{stop + 1}G\x1b[g"
    else:
        yield "\x1b[3g"
        usual = set()
    for stop in sorted(screen.tabstops - usual):
        if stop < screen.columns:
            yield f"\x1b[{stop + 1}G\x1bH"


def after_text(screen: Screen) -> Iterator[str]:
    modes = screen.modes
    for number, name in PRIVATE_MODES.items():
        value = getattr(modes, name)
        if number not in LATE and value != DEFAULTS[name]:
            yield switch(number, value)
    encodings = [number for number, name in MOUSE_ENCODINGS.items() if name == modes.mouse_encoding]
    for number in (modes.mouse, *encodings):
        yield switch(number, True) if number else ""
    for number in ANSI_REMEMBERED:
        if (number in screen.mode) != (number == _SRM):
            yield f"\x1b[{number}{'h' if number in screen.mode else 'l'}"
    yield f"\x1b[>4;{modes.modify_other_keys}m" if modes.modify_other_keys else ""
    yield f"\x1b[{screen.cursor_shape} q" if screen.cursor_shape else ""


def region(screen: Screen) -> Iterator[str]:
    if screen.modes.margins:
        yield switch(69, True)
    if (screen.left, screen.right) != (0, screen.columns - 1):
        yield f"\x1b[{screen.left + 1};{screen.right + 1}s"
    if (screen.top, screen.bottom) != (0, screen.lines - 1):
        yield f"\x1b[{screen.top + 1};{screen.bottom + 1}r"
    if screen.modes.origin:
        yield switch(6, True)


def drawing(screen: Screen, pen: Pen) -> None:
    """Write how further text is drawn; the cursor does not move."""
    add = pen.parts.append
    if screen.iso_protection:
        add("\x1bV")
        if not screen.style & PROTECTED:
            add("\x1bW")
        pen.assume(screen.style & PROTECTED)
    pen.rendition(screen.style)
    add(charsets(screen.charsets, screen.shift))
    for number, name in ANSI_MODES.items():
        if getattr(screen.modes, name):
            add(f"\x1b[{number}h")
    for number in (7, 2027, 2026):
        value = getattr(screen.modes, PRIVATE_MODES[number])
        if value != DEFAULTS[PRIVATE_MODES[number]]:
            add(switch(number, value))
    if screen.single_shift:
        add("\x1bN" if screen.single_shift == 2 else "\x1bO")


def dump(terminal: Terminal, *, scrollback_lines: int | None = None) -> bytes:
    """Return the screens, the scrollback and all modes of a terminal as bytes for a new one of its size.

    At most the newest `scrollback_lines` rows of the scrollback are included; None includes all but those of
    `dump_restored`. An incomplete sequence comes last, so that the rest of it can follow.
    """
    screen, stream = terminal.screen, terminal.stream
    pen = Pen(screen.table)
    pen.parts += before_text(screen)
    renditions(screen, pen)
    buffer = screen.main_buffer
    _scrollback(screen, pen, scrollback_lines)
    saved_cursor(buffer.saved, screen.columns, screen.lines, pen)
    pen.parts += keyboard(buffer.kitty)
    _rows(buffer.rows, screen.columns, pen, _spoilt(screen, buffer.saved))
    _alternate_screen(screen, pen)
    pen.parts += tab_stops(screen)
    pen.parts += after_text(screen)
    pen.parts += region(screen)
    _cursor(screen, pen)
    drawing(screen, pen)
    return pen.take().encode() + stream.unfinished


def dump_restored(terminal: Terminal) -> bytes:
    """Return the restored rows of a terminal for `Terminal.restore` of a new one, before its `dump`."""
    pen = Pen(terminal.screen.table)
    _lines(pen, map(unpacked, terminal.scrollback.restored_entries()), terminal.columns)
    return pen.take().encode()


def _alternate_screen(screen: Screen, pen: Pen) -> None:
    buffer = screen.alternate_buffer
    blank = all(row.is_blank() and not row.wrapped for row in buffer.rows)
    if not screen.on_alternate and blank and not any(buffer.kitty) and buffer.saved.x == buffer.saved.y == 0:
        return
    pen.parts.append(switch(47, True))
    saved_cursor(buffer.saved, screen.columns, screen.lines, pen)
    pen.parts += keyboard(buffer.kitty)
    _rows(buffer.rows, screen.columns, pen, _spoilt(screen, buffer.saved))
    if not screen.on_alternate:
        pen.parts.append(switch(47, False))


def _scrollback(screen: Screen, pen: Pen, rows: int | None) -> None:
    lines, columns = screen.lines, screen.columns
    back = screen.scrollback
    own = len(back) - back.restored
    entries = [unpacked(entry) for entry in back.entries(own if rows is None else min(own, rows))]
    kept, goes_on = bool(entries), screen.main_buffer.rows[0].wrapped
    if goes_on and not kept:
        entries = [(Packed("x" * columns), False)]
    _lines(pen, entries, columns)
    if not entries:
        return
    pen.parts.append(
        _wrapping(entries[-1][0], pack(screen.main_buffer.rows[0]), columns) if goes_on else "\r\n"
    )
    height = 1 + sum(_height(line, columns) for line, _ in entries)
    pen.parts.append(f"\x1b[{lines}H" + "\n" * (min(height, lines) - 1))
    if goes_on and not kept:
        pen.parts.append("\x1b[3J")


def _lines(pen: Pen, entries: Iterable[tuple[Packed, bool]], columns: int) -> None:
    for index, (line, continued) in enumerate(entries):
        if index and not continued:
            pen.parts.append("\r\n")
        paint_line(pen, line, columns)


def _wrapping(line: Packed, following: Packed, columns: int) -> str:
    size = cell_count(line.text)
    missing = -size % columns if size else columns
    if missing == 1 and begins_wide(following.text):
        return f"{split_cells(following.text)[0]}\r"
    return f"{' ' * missing}x\r"


def _height(line: Packed, columns: int) -> int:
    return max(1, -(-cell_count(line.text) // columns))


def _spoilt(screen: Screen, saved: SavedCursor) -> int:
    return min(saved.y, screen.lines - 1) if saved.x >= screen.columns else -1


def _rows(rows: list[Row], columns: int, pen: Pen, spoilt: int) -> None:
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
    """Whether autowrap starts a new row for a line written after `before` cells."""
    return bool(line.text) and (before == columns or (before == columns - 1 and begins_wide(line.text)))


def _cursor(screen: Screen, pen: Pen) -> None:
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
    if screen.modes.origin:
        x, y = max(0, x - screen.left), max(0, y - screen.top)
    return f"\x1b[{y + 1};{x + 1}H"
