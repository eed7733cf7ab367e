"""Which function a control sequence calls, and with how many parameters at most."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from .screen import Screen

Handler = Callable[..., None]
MANY = 64
PARAMETER_LIMIT = 99_999

CONTROL_SEQUENCES: dict[str, tuple[Handler, int]] = {
    "@": (Screen.insert_characters, 1),
    "A": (Screen.cursor_up, 1),
    "B": (Screen.cursor_down, 1),
    "C": (Screen.cursor_forward, 1),
    "D": (Screen.cursor_back, 1),
    "E": (Screen.cursor_down1, 1),
    "F": (Screen.cursor_up1, 1),
    "G": (Screen.cursor_to_column, 1),
    "H": (Screen.cursor_position, 2),
    "I": (Screen.tab_forward, 1),
    "J": (Screen.erase_in_display, 1),
    "K": (Screen.erase_in_line, 1),
    "L": (Screen.insert_lines, 1),
    "M": (Screen.delete_lines, 1),
    "P": (Screen.delete_characters, 1),
    "S": (Screen.scroll_up, 1),
    "T": (Screen.scroll_down_or_track, MANY),
    "X": (Screen.erase_characters, 1),
    "Z": (Screen.tab_back, 1),
    "^": (Screen.scroll_down, 1),
    "`": (Screen.cursor_to_column, 1),
    "a": (Screen.column_relative, 1),
    "b": (Screen.repeat, 1),
    "c": (Screen.report_device_attributes, 1),
    "d": (Screen.cursor_to_line, 1),
    "e": (Screen.line_relative, 1),
    "f": (Screen.cursor_position, 2),
    "g": (Screen.clear_tab_stop, 1),
    "h": (Screen.set_ansi_mode, MANY),
    "j": (Screen.column_back, 1),
    "k": (Screen.line_back, 1),
    "l": (Screen.reset_ansi_mode, MANY),
    "n": (Screen.report_device_status, 1),
    "r": (Screen.set_margins, 2),
    "s": (Screen.save_cursor_or_side_margins, MANY),
    "t": (Screen.window_operation, 3),
    "u": (Screen.decrc, MANY),
    "?J": (Screen.selective_erase_in_display, 1),
    "?K": (Screen.selective_erase_in_line, 1),
    "?W": (Screen.reset_tab_stops, 1),
    "?h": (Screen.set_private_mode, MANY),
    "?l": (Screen.reset_private_mode, MANY),
    "?m": (Screen.report_key_modifiers, MANY),
    "?n": (Screen.report_private_status, 2),
    "?r": (Screen.restore_modes, MANY),
    "?s": (Screen.save_modes, MANY),
    "?u": (Screen.report_keyboard, 1),
    ">c": (Screen.report_secondary_attributes, 1),
    ">m": (Screen.set_key_modifiers, 2),
    ">n": (Screen.disable_key_modifiers, 1),
    ">q": (Screen.report_version, 1),
    ">u": (Screen.push_keyboard, 1),
    "<u": (Screen.pop_keyboard, 1),
    "=c": (Screen.report_tertiary_attributes, 1),
    "=u": (Screen.set_keyboard, 2),
    " @": (Screen.shift_left, 1),
    " A": (Screen.shift_right, 1),
    " q": (Screen.set_cursor_style, 1),
    "!p": (Screen.soft_reset, 0),
    '"p': (Screen.set_conformance, 2),
    '"q': (Screen.protect, 1),
    '"v': (Screen.report_displayed_extent, 0),
    "#p": (Screen.push_rendition, MANY),
    "#q": (Screen.pop_rendition, 0),
    "#{": (Screen.push_rendition, MANY),
    "#}": (Screen.pop_rendition, 0),
    "#y": (Screen.select_checksum, 1),
    "#|": (Screen.report_area_rendition, 4),
    "$p": (Screen.request_mode, 1),
    "$r": (Screen.change_attributes, MANY),
    "$t": (Screen.reverse_attributes, MANY),
    "$v": (Screen.copy_area, 8),
    "$w": (Screen.report_presentation_state, 1),
    "$x": (Screen.fill_area, 5),
    "$z": (Screen.erase_area, 4),
    "${": (Screen.selective_erase_area, 4),
    "?$p": (Screen.request_private_mode, 1),
    "'}": (Screen.insert_columns, 1),
    "'~": (Screen.delete_columns, 1),
    "*x": (Screen.select_attribute_extent, 1),
    "*y": (Screen.report_checksum, 6),
}
"""Prefix, intermediates and final to a function of the screen."""

ESCAPES: dict[str, Handler] = {
    "6": Screen.back_index,
    "7": Screen.decsc,
    "8": Screen.decrc,
    "9": Screen.forward_index,
    "=": Screen.keypad_application,
    ">": Screen.keypad_numeric,
    "D": Screen.index,
    "E": Screen.next_line,
    "H": Screen.set_tab_stop,
    "M": Screen.reverse_index,
    "N": lambda screen: screen.shift_once(2),
    "O": lambda screen: screen.shift_once(3),
    "V": Screen.start_protected_area,
    "W": Screen.end_protected_area,
    "Z": Screen.report_device_attributes,
    "c": Screen.full_reset,
    "n": lambda screen: screen.lock_shift(2),
    "o": lambda screen: screen.lock_shift(3),
}
"""Final of an escape sequence to a function of the screen."""

CONTROLS: dict[str, Handler] = {
    "\x07": Screen.bell,
    "\b": Screen.backspace,
    "\t": Screen.tab,
    "\n": Screen.linefeed,
    "\x0b": Screen.linefeed,
    "\x0c": Screen.linefeed,
    "\r": Screen.carriage_return,
    "\x0e": Screen.shift_out,
    "\x0f": Screen.shift_in,
}


Call = tuple[Handler, tuple[int, ...]]
"""A function of the screen and its parameters."""


def bound(screen: Screen, handler: Handler) -> Handler:
    """A function of the screen as this one has it: a class derived from ours may have its own."""
    own = getattr(screen, handler.__name__, None)
    return partial(handler, screen) if own is None else cast("Handler", own)


def numbers_of(parameters: str) -> tuple[int, ...]:
    """The parameters of a control sequence; those left out are 0."""
    return tuple(min(int(part), PARAMETER_LIMIT) if part else 0 for part in parameters.split(";"))


def call_of(prefix: str, parameters: str, intermediates: str, final: str) -> Call | None:
    """What a control sequence calls; None when it is unknown or malformed.

    Args:
        prefix: One of `<=>?`, or nothing.
        parameters: Digits, `;` and `:`.
        intermediates: Characters from space to `/`.
        final: The last character.
    """
    found = CONTROL_SEQUENCES.get(prefix + intermediates + final)
    if found is None or ":" in parameters:
        return None
    handler, most = found
    if not parameters:
        return handler, ()
    return handler, numbers_of(parameters)[:most]


def escape_sequence(screen: Screen, intermediates: str, final: str) -> None:
    """Do what ESC, intermediates and a final say (ECMA-35); without intermediates it is one of `ESCAPES`."""
    if intermediates == "#":
        if final == "8":
            screen.alignment_display()
    elif intermediates == " ":
        if final in "FG":
            screen.eight_bit_replies = final == "G"
    elif intermediates != "%":
        screen.define_charset(intermediates[1:] + final, intermediates[0])
