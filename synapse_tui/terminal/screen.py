"""The screen: modes, the main and the alternate buffer, resets, size, and pyte's interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import get_args

import pyte.screens

from .cells import cluster_width
from .charsets import code_of, pyte_map
from .damage import DamageTracker
from .events import Bell, MouseEncoding, MouseMode, ScreenSwitched
from .grid import SavedCursor, fresh_buffer, since_level
from .reports import Reports
from .row import Line, Row, packed_style
from .scrollback import fit_alternate, reflow
from .style import LINK_SHIFT, REVERSE, erased

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_KEYBOARD_LOCKED = 2  # KAM
ANSI_MODES = {4: "insert", 20: "newline"}
_LAST_ANSI = 31  # ECMA-48 defines no greater number; pyte's private modes are shifted beyond it
ANSI_REMEMBERED = (2, 12)  # KAM and SRM: stored and reported only
PRIVATE_MODES = {
    1: "application_cursor",
    5: "reverse_video",
    6: "origin",
    7: "autowrap",
    25: "cursor_visible",
    45: "reverse_wrap",
    66: "application_keypad",
    67: "backarrow",
    69: "margins",
    1004: "focus_events",
    1007: "alternate_scroll",
    1045: "extended_reverse_wrap",
    2004: "bracketed_paste",
    2026: "synchronized",
    2027: "grapheme_clusters",
    2031: "color_scheme_updates",
    2048: "in_band_resize",
}
MOUSE_MODES: tuple[MouseMode, ...] = tuple(mode for mode in get_args(MouseMode) if mode)
MOUSE_ENCODINGS: dict[int, MouseEncoding] = {1005: "utf8", 1006: "sgr", 1015: "urxvt", 1016: "sgr-pixels"}
SCREEN_MODES = (47, 1047, 1049)
_COLUMNS_132, _ALLOW_132, _MARGINS = 3, 40, 69
REMEMBERED = frozenset(
    (
        *(2, _COLUMNS_132, 4, 12, 18, 19, 30, 35, _ALLOW_132, 41, 42, 44, 46, 80),
        *(1001, 1010, 1011, 1034, 1035, 1036, 1037, 1039, 1040, 1041, 1042, 1043, 1044, 1046, 1048),
        *(1050, 1051, 1052, 1053, 1060, 1061, 1070, 2001, 2002, 2003, 2005, 2006, 8452),
    )
)
"""Private modes without an effect here that are still stored, saved and reported."""
_RESET_FOR_GOOD = frozenset((1, 3, 5, 7, 10, 11, 13, 14, 15, 16, 17, 18, 19))
"""ANSI modes that xterm reports as permanently reset."""
_CONDITIONAL = frozenset((_COLUMNS_132, _MARGINS))  # Private modes available only in some states
_FIXED = {8: 4, 14: 3}
"""Private modes that xterm reports as permanently reset (4) or set (3): DECARM, cursor blink control."""
KITTY_STACK = 16  # Entries of a kitty keyboard stack; beyond it the oldest is dropped
_KITTY_FLAGS = 0b11111
_OTHER_KEYS = 4


class BufferLine(Line):
    __slots__ = ("_screen",)

    def __init__(self, row: Row, screen: Screen) -> None:
        super().__init__(row, screen.table, screen.columns)
        self._screen = screen

    def __getitem__(self, x: int) -> pyte.screens.Char:
        char = super().__getitem__(x)
        return char._replace(reverse=not char.reverse) if self._screen.modes.reverse_video else char

    def __setitem__(self, x: int, char: pyte.screens.Char) -> None:
        """Set a cell; a wide character also takes the next cell, which is empty in pyte."""
        if not 0 <= x < len(self):
            raise IndexError(f"column {x} is not on the screen, which has {len(self)}")
        row, screen, style = self._row, self._screen, packed_style(char)
        if self._screen.modes.reverse_video:
            style ^= REVERSE
        if not char.data and x and row.cell(x)[0] == "":
            return
        text = CONTROLS.sub("", char.data) or " "
        cells = [text, ""][: cluster_width(text)]
        if x + len(cells) > len(self):
            cells = [" "]
        row.split(x, x + len(cells), len(self))
        row.put(x, cells, [style] * len(cells), len(self))
        row.wide = row.wide or len("".join(cells)) != len(cells) or "" in cells
        row.stamp = screen.tick


class BufferView(Mapping[int, BufferLine]):
    """`screen.buffer` as in pyte: rows by number, cells by column."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def __getitem__(self, y: int) -> BufferLine:
        return BufferLine(self._screen.rows[y], self._screen)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._screen.lines))

    def __len__(self) -> int:
        return self._screen.lines


class CursorProxy(pyte.screens.Cursor):
    """`screen.cursor` as in pyte; assignments move the screen's cursor."""

    __slots__ = ("_screen",)

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    @property
    def x(self) -> int:
        return min(self._screen.x, self._screen.columns)

    @x.setter
    def x(self, value: int) -> None:
        self._screen.x = value

    @property
    def y(self) -> int:
        return self._screen.y

    @y.setter
    def y(self, value: int) -> None:
        self._screen.y = value

    @property
    def hidden(self) -> bool:
        return not self._screen.modes.cursor_visible

    @hidden.setter
    def hidden(self, value: bool) -> None:
        self._screen.modes.cursor_visible = not value

    @property
    def attrs(self) -> pyte.screens.Char:
        return self._screen.char(" ", self._screen.style)

    @attrs.setter
    def attrs(self, char: pyte.screens.Char) -> None:
        self._screen.style = packed_style(char)


class Screen(Reports):
    """A screen that can be driven by pyte's stream or by `Stream`."""

    def switch_screen(self, mode: int, alternate: bool) -> None:
        """Show the alternate or the main screen (xterm ctlseqs).

        Mode 47 only switches. 1047 erases the alternate screen on leaving it. 1049 erases it on entering and
        saves and restores the main screen's cursor.
        """
        if alternate:
            if mode == 1049:
                self.decsc()
            if not self.on_alternate:
                if not self.alternate_buffer.rows:
                    self.alternate_buffer.rows = [Row(0, self.tick) for _ in range(self.lines)]
                self._show(alternate=True)
            if mode == 1049:
                self.settle()
                self._blank_alternate()
            return
        if self.on_alternate:
            if mode == 1047:
                self.settle()
                self._blank_alternate()
            self._show(alternate=False)
        if mode == 1049:
            self.decrc()

    def _blank_alternate(self) -> None:
        fill = erased(self.style)
        for row in self.alternate_buffer.rows:
            row.clear(fill)
            row.wrapped = False
            row.stamp = self.tick

    def _show(self, *, alternate: bool) -> None:
        self.buffer_shown = self.alternate_buffer if alternate else self.main_buffer
        self.rows = self.buffer_shown.rows
        self.modes.alternate_screen = alternate
        self.modes.kitty_flags = self.buffer_shown.kitty[-1]
        self.touch_all()
        self.emit(ScreenSwitched(alternate))

    # Margins

    @property
    def margins(self) -> pyte.screens.Margins | None:
        if self.top == 0 and self.bottom == self.lines - 1:
            return None
        return pyte.screens.Margins(self.top, self.bottom)

    @margins.setter
    def margins(self, value: pyte.screens.Margins | None) -> None:
        self.top, self.bottom = (0, self.lines - 1) if value is None else (value.top, value.bottom)

    def set_margins(self, top: int | None = None, bottom: int | None = None) -> None:
        """DECSTBM: first and last row of the scrolling region, from 1; the cursor goes home."""
        first = (top or 1) - 1
        last = min(bottom or self.lines, self.lines) - 1
        if first < last:
            self.top, self.bottom = first, last
            self.cursor_position()

    def set_side_margins(self, left: int = 0, right: int = 0) -> None:
        """DECSLRM: first and last column of the region, from 1; the cursor goes home."""
        first = (left or 1) - 1
        last = min(right or self.columns, self.columns) - 1
        if first < last:
            self.left, self.right = first, last
            self.update_simple()
            self.cursor_position()

    def save_cursor_or_side_margins(self, *parameters: int) -> None:
        """CSI s: DECSLRM in mode 69, otherwise SCOSC."""
        if self.modes.margins:
            self.set_side_margins(*parameters[:2])
        elif not parameters:
            self.decsc()

    # Resets

    def full_reset(self) -> None:
        alternate = self.on_alternate
        self.reset()
        self.clear_scrollback()
        if alternate:
            self.emit(ScreenSwitched(False))

    def reset_modes(self) -> None:
        """Show the main screen and reset what a program may have set; keeps text, scrollback and title."""
        self.settle()
        if self.on_alternate:
            self._show(alternate=False)
            if self.buffer_shown.saved != SavedCursor():
                self.decrc()
        self.reset_settings()
        for buffer in (self.main_buffer, self.alternate_buffer):
            blank = fresh_buffer()
            buffer.saved, buffer.kitty = blank.saved, blank.kitty
        self.touch_all()

    def soft_reset(self) -> None:
        """DECSTR (DEC STD 070 D.6 and xterm's `ReallyReset`)."""
        modes = self.modes
        modes.cursor_visible = modes.autowrap = True
        modes.application_cursor = modes.application_keypad = modes.insert = modes.margins = False
        modes.reverse_wrap = modes.extended_reverse_wrap = False
        modes.modify_other_keys = 0
        self.mode |= {7 << 5, 25 << 5}
        self.mode -= {1 << 5, 66 << 5, 4, 69 << 5, 45 << 5, 1045 << 5}
        self.set_origin(False)
        self.mode.discard(_KEYBOARD_LOCKED)
        self.style = 0
        self.iso_protection = False
        self.cursor_shape = self.checksum_flags = 0
        if self.colors.palette:
            self.colors.palette.clear()
            self.touch_all()
        self.settle()
        self.reset_margins()
        self.reset_charsets()
        self.buffer_shown.saved = SavedCursor()

    def set_conformance(self, level: int = 0, replies: int = 0) -> None:
        """DECSCL: soft reset, then set the conformance level and 7 or 8-bit replies."""
        if 61 <= level <= 64:
            self.soft_reset()
            self.level = level - 60
            if level > 61 and replies <= 2:
                self.eight_bit_replies = replies != 1

    # Size

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Change the size, rewrapping the main screen and cropping or padding the alternate one.

        With a pending wrap the cursor stays after the last character, so the next text continues there, on
        the same row if it fits.
        """
        lines, columns = max(1, lines or self.lines), max(1, columns or self.columns)
        if (lines, columns) == (self.lines, self.columns):
            return
        pending, was = self.x >= self.columns, self.columns
        self.settle()
        if self.on_alternate:
            self._fit_alternate(self.y, lines, columns)
            saved = self.main_buffer.saved
            x, y = self._reflow_main(min(saved.x, self.columns - 1), saved.y, lines, columns)
            self.main_buffer.saved = saved._replace(x=x, y=y)
        else:
            if self.alternate_buffer.rows:
                self._fit_alternate(0, lines, columns)
            self.x, self.y = self._reflow_main(self.x, self.y, lines, columns)
        self.rows = self.buffer_shown.rows
        self.columns, self.lines = columns, lines
        self.x, self.y = min(self.x, columns - 1), min(max(self.y, 0), lines - 1)
        if pending and (columns >= was or not self.on_alternate):
            self.x += 1
        self.reset_margins()
        self.update_simple()
        self.touch_all()
        if self.modes.in_band_resize:
            self.report_size_in_band()

    def _fit_alternate(self, y: int, lines: int, columns: int) -> None:
        old, new = (self.columns, self.lines), (columns, lines)
        rows, up = fit_alternate(self.alternate_buffer.rows, y, old, new)
        self.alternate_buffer.rows = rows
        if self.on_alternate:
            self.y -= up

    def _reflow_main(self, x: int, y: int, lines: int, columns: int) -> tuple[int, int]:
        old, new = (self.columns, self.lines), (columns, lines)
        self.main_buffer.rows, place = reflow(self.main_buffer.rows, self.scrollback, (x, y), old, new)
        return place

    def report_size_in_band(self) -> None:
        """Report the size in cells and pixels (mode 2048): `CSI 48 ; rows ; columns ; h ; w t`."""
        width, height = self.cell_pixels
        self.reply(f"\x1b[48;{self.lines};{self.columns};{self.lines * height};{self.columns * width}t")

    def set_mode(self, *modes: int, private: bool = False, **_more: object) -> None:
        """SM, DECSET. Also accepts pyte's numbering of private modes: shifted, without `private`."""
        for number in modes:
            self._switch_numbered(number, True, private)

    def reset_mode(self, *modes: int, private: bool = False, **_more: object) -> None:
        for number in modes:
            self._switch_numbered(number, False, private)

    def _switch_numbered(self, number: int, on: bool, private: bool) -> None:
        shifted = not private and number > _LAST_ANSI and number % 32 == 0
        self.switch_mode(number >> 5 if shifted else number, on, private=private or shifted)

    def set_ansi_mode(self, *modes: int) -> None:
        """SM as sent by a child, where pyte's shifted numbers are not valid."""
        self.set_mode(*[number for number in modes if number <= _LAST_ANSI])

    def reset_ansi_mode(self, *modes: int) -> None:
        self.reset_mode(*[number for number in modes if number <= _LAST_ANSI])

    def set_private_mode(self, *modes: int) -> None:
        self.set_mode(*modes, private=True)

    def reset_private_mode(self, *modes: int) -> None:
        self.reset_mode(*modes, private=True)

    def switch_mode(self, number: int, on: bool, *, private: bool) -> None:
        if private and number in _CONDITIONAL and not self._switchable(number):
            return
        name = (PRIVATE_MODES if private else ANSI_MODES).get(number)
        if name is not None:
            setattr(self.modes, name, on)
        elif not (self._switch_other(number, on) if private else number in ANSI_REMEMBERED):
            return
        key = number << 5 if private else number
        (self.mode.add if on else self.mode.discard)(key)
        effect = _EFFECTS.get(key)
        if effect is not None:
            effect(self, on)

    def _switchable(self, number: int) -> bool:
        """Whether DECLRMM (needs level 4) or DECCOLM (needs xterm's mode 40) is available."""
        if number == _MARGINS:
            return self.level >= 4
        return _ALLOW_132 << 5 in self.mode

    def _switch_other(self, number: int, on: bool) -> bool:
        """Switch a private mode that is not a flag in `Modes`. Returns whether it is known."""
        if number in MOUSE_ENCODINGS:
            self._switch_mouse_encoding(number, on)
        elif number in SCREEN_MODES:
            self.switch_screen(number, on)
        else:
            for mode in MOUSE_MODES:
                if mode == number:
                    self.modes.mouse = mode if on else 0
                    self.mode.difference_update(other << 5 for other in MOUSE_MODES)
                    return True
            return number in REMEMBERED
        return True

    def _switch_mouse_encoding(self, number: int, on: bool) -> None:
        """Set an encoding, replacing the others; resetting an inactive one does nothing (xterm)."""
        if on:
            self.modes.mouse_encoding = MOUSE_ENCODINGS[number]
            self.mode.difference_update(other << 5 for other in MOUSE_ENCODINGS)
        elif self.modes.mouse_encoding == MOUSE_ENCODINGS[number]:
            self.modes.mouse_encoding = "x10"

    # Side effects of modes

    def after_insert(self, _on: bool) -> None:
        self.update_simple()

    def after_origin(self, _on: bool) -> None:
        self.cursor_position()

    def after_reverse_video(self, _on: bool) -> None:
        self.touch_all()

    def after_margins(self, on: bool) -> None:
        if not on:
            self.settle()
            self.left, self.right = 0, self.columns - 1
            self.update_simple()

    def after_132_columns(self, _on: bool) -> None:
        """DECCOLM: erase the screen, reset margins, cursor home. The owner of the pane sets the size."""
        self.erase_in_display(2)
        self.modes.margins = False
        self.mode.discard(_MARGINS << 5)
        self.reset_margins()
        self.update_simple()
        self.cursor_position()

    def after_cursor_mode(self, on: bool) -> None:
        (self.decsc if on else self.decrc)()

    def after_in_band_resize(self, on: bool) -> None:
        if on:
            self.report_size_in_band()

    def keypad_application(self) -> None:
        self.switch_mode(66, True, private=True)

    def keypad_numeric(self) -> None:
        self.switch_mode(66, False, private=True)

    # Mode queries, saved modes

    def ansi_mode_state(self, number: int) -> int:
        """The DECRQM answer for an ANSI mode: 0 unknown, 1 set, 2 reset, 4 permanently reset."""
        if number in ANSI_MODES or number in ANSI_REMEMBERED:
            return 1 if number in self.mode else 2
        return 4 if number in _RESET_FOR_GOOD else 0

    def private_mode_state(self, number: int) -> int:
        """The DECRQM answer for a DEC mode: as for ANSI modes, and 3 permanently set."""
        if number in _FIXED:
            return _FIXED[number]
        if number == _MARGINS and self.level < 4:
            return 0
        known = number in PRIVATE_MODES or number in REMEMBERED
        if known or number in MOUSE_MODES or number in MOUSE_ENCODINGS or number in SCREEN_MODES:
            return 1 if self.mode_is_set(number) else 2
        return 0

    def mode_is_set(self, number: int) -> bool:
        name = PRIVATE_MODES.get(number)
        if name is not None:
            return bool(getattr(self.modes, name))
        if number in MOUSE_ENCODINGS:
            return self.modes.mouse_encoding == MOUSE_ENCODINGS[number]
        if number in SCREEN_MODES:
            return self.on_alternate
        return number << 5 in self.mode

    @since_level(3)
    def request_mode(self, number: int = 0) -> None:
        self.reply(f"\x1b[{number};{self.ansi_mode_state(number)}$y")

    @since_level(3)
    def request_private_mode(self, number: int = 0) -> None:
        self.reply(f"\x1b[?{number};{self.private_mode_state(number)}$y")

    def save_modes(self, *modes: int) -> None:
        for number in modes:
            if number == 1048:
                self.decsc()
            elif self.private_mode_state(number):
                self.saved_modes[number] = self.mode_is_set(number)

    def restore_modes(self, *modes: int) -> None:
        for number in modes:
            if number == 1048:
                self.decrc()
            elif number in self.saved_modes:
                on = self.saved_modes[number]
                if number in SCREEN_MODES:
                    self.switch_screen(47, on)
                else:
                    self.switch_mode(number, on, private=True)

    def push_keyboard(self, flags: int = 0) -> None:
        stack = self.buffer_shown.kitty
        stack.append(flags & _KITTY_FLAGS)
        del stack[:-KITTY_STACK]
        self.modes.kitty_flags = stack[-1]

    def pop_keyboard(self, count: int | None = None) -> None:
        """CSI < count u; popping more entries than exist resets all flags."""
        stack = self.buffer_shown.kitty
        del stack[max(0, len(stack) - (count or 1)) :]
        if not stack:
            stack.append(0)
        self.modes.kitty_flags = stack[-1]

    def set_keyboard(self, flags: int = 0, how: int = 1) -> None:
        """CSI = flags ; how u: replace (1), add (2) or remove (3) flags on top of the stack."""
        stack = self.buffer_shown.kitty
        flags &= _KITTY_FLAGS
        if how in (0, 1):
            stack[-1] = flags
        elif how == 2:
            stack[-1] |= flags
        elif how == 3:
            stack[-1] &= ~flags
        self.modes.kitty_flags = stack[-1]

    def report_keyboard(self, _mode: int = 0) -> None:
        self.reply(f"\x1b[?{self.modes.kitty_flags}u")

    def set_key_modifiers(self, resource: int | None = None, value: int = 0) -> None:
        """XTMODKEYS (CSI > resource ; value m); only modifyOtherKeys (4) has an effect."""
        if resource is None:
            self.modes.modify_other_keys = 0
        elif resource == _OTHER_KEYS:
            self.modes.modify_other_keys = value if value in (1, 2) else 0

    def disable_key_modifiers(self, resource: int = 2) -> None:
        if resource == _OTHER_KEYS:
            self.modes.modify_other_keys = 0

    def report_key_modifiers(self, *resources: int) -> None:
        for resource in resources:
            if resource == _OTHER_KEYS:
                self.reply(f"\x1b[>{_OTHER_KEYS};{self.modes.modify_other_keys}m")

    def __init__(self, columns: int, lines: int, scrollback: int = 0) -> None:
        self._dirty: set[int] = set()
        self.savepoints: list[tuple[SavedCursor, bool]] = []  # type: ignore[assignment]  # pyte's have its own
        self._changes = DamageTracker(self, scrolls=False)
        super().__init__(columns, lines, scrollback)
        self.cursor = CursorProxy(self)
        self.buffer = BufferView(self)  # type: ignore[assignment]  # reads like pyte's dictionaries

    @property
    def display(self) -> list[str]:
        return [row.content(self.columns) for row in self.rows]

    @property
    def dirty(self) -> set[int]:  # type: ignore[override]  # pyte's painters modify the set
        """Rows to redraw; the painter clears the set."""
        self._dirty.update(self._changes.take().rows)
        return self._dirty

    @property
    def default_char(self) -> pyte.screens.Char:
        return pyte.screens.Char(" ", reverse=self.modes.reverse_video)

    @property
    def charset(self) -> int:
        return self.shift

    @charset.setter
    def charset(self, number: int) -> None:
        self.lock_shift(number)

    @property
    def g0_charset(self) -> str:
        return pyte_map(self.charsets[0])

    @g0_charset.setter
    def g0_charset(self, mapping: str) -> None:
        self.define_charset(code_of(mapping), "(")

    @property
    def g1_charset(self) -> str:
        return pyte_map(self.charsets[1])

    @g1_charset.setter
    def g1_charset(self, mapping: str) -> None:
        self.define_charset(code_of(mapping), ")")

    def save_cursor(self) -> None:
        """Push the cursor onto pyte's stack; DECSC of a child has a single slot."""
        here = SavedCursor(self.x, self.y, self.style, tuple(self.charsets), self.shift, self.modes.origin)
        self.savepoints.append((here, self.modes.autowrap))

    def restore_cursor(self) -> None:
        if not self.savepoints:
            self.set_origin(False)
            self.cursor_position()
            return
        saved, autowrap = self.savepoints.pop()
        self.style, self.charsets, self.shift = saved.style, list(saved.charsets), saved.shift
        self.select_charset()
        for number, on in ((6, saved.origin), (7, autowrap)):
            if on:
                self.switch_mode(number, True, private=True)
        self.x = min(saved.x, self.columns - 1)
        self.y = max(self.top, min(saved.y, self.bottom))

    def draw(self, data: str) -> None:
        """Write text at the cursor, dropping control characters (`Stream` passes none)."""
        text = CONTROLS.sub("", data)
        if text:
            super().draw(text)

    def bell(self, *_args: object) -> None:
        self.emit(Bell())

    def select_graphic_rendition(self, *attrs: int) -> None:
        self.render(";".join(map(str, attrs)))

    def render(self, parameters: str) -> None:
        keep, add = self.sgr.change(parameters)
        self.style = self.style & keep | add

    def char(self, text: str, style: int) -> pyte.screens.Char:
        return Line.char(text, self.table.style(style & ((1 << LINK_SHIFT) - 1)))

    def write_process_input(self, data: str) -> None:
        """Pyte's hook: the reply to the child."""

    def debug(self, *args: object, **kwargs: object) -> None:
        """Pyte's hook: an unknown sequence."""


_EFFECTS: Mapping[int, Callable[[Screen, bool], None]] = MappingProxyType(
    {
        4: Screen.after_insert,
        _COLUMNS_132 << 5: Screen.after_132_columns,
        5 << 5: Screen.after_reverse_video,
        6 << 5: Screen.after_origin,
        69 << 5: Screen.after_margins,
        1048 << 5: Screen.after_cursor_mode,
        2048 << 5: Screen.after_in_band_resize,
    }
)
