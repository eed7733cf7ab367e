"""Setting, resetting, saving and asking for modes (SM, RM, DECSET, DECRST, XTSAVE, XTRESTORE, DECRQM)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import get_args

from .buffers import Buffers
from .levels import since_level
from .modes import MouseEncoding, MouseMode

ANSI_MODES = {4: "insert", 20: "newline"}
_LAST_ANSI = 31
"""No mode of ECMA-48 has a greater number; the private ones of pyte are shifted beyond it."""
ANSI_REMEMBERED = (2, 12)
"""KAM and SRM: kept and reported only."""
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
"""Private modes without an effect of their own here that are still kept, saved and reported."""
_RESET_FOR_GOOD = frozenset((1, 3, 5, 7, 10, 11, 13, 14, 15, 16, 17, 18, 19))
"""ANSI modes of ECMA-48 that xterm reports as permanently reset."""
_CONDITIONAL = frozenset((_COLUMNS_132, _MARGINS))
"""Private modes that are there at times only."""
_FIXED = {8: 4, 14: 3}
"""Private modes that xterm reports as reset (4) or set (3) for good: DECARM, a way to blink the cursor."""


class ModeOps(Buffers):
    """Modes."""

    def set_mode(self, *modes: int, private: bool = False, **_more: object) -> None:
        """SM, DECSET; also as pyte numbers private modes: shifted, and then without `private`."""
        for number in modes:
            self._switch_numbered(number, True, private)

    def reset_mode(self, *modes: int, private: bool = False, **_more: object) -> None:
        """RM, DECRST, numbered likewise."""
        for number in modes:
            self._switch_numbered(number, False, private)

    def _switch_numbered(self, number: int, on: bool, private: bool) -> None:
        shifted = not private and number > _LAST_ANSI and number % 32 == 0
        self.switch_mode(number >> 5 if shifted else number, on, private=private or shifted)

    def set_ansi_mode(self, *modes: int) -> None:
        """SM; what a child sends is not numbered as pyte does."""
        self.set_mode(*[number for number in modes if number <= _LAST_ANSI])

    def reset_ansi_mode(self, *modes: int) -> None:
        """RM."""
        self.reset_mode(*[number for number in modes if number <= _LAST_ANSI])

    def set_private_mode(self, *modes: int) -> None:
        """DECSET."""
        self.set_mode(*modes, private=True)

    def reset_private_mode(self, *modes: int) -> None:
        """DECRST."""
        self.reset_mode(*modes, private=True)

    def switch_mode(self, number: int, on: bool, *, private: bool) -> None:
        """Set or reset one mode; one that is not known does nothing."""
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
        """Whether DECLRMM (of level 4) or DECCOLM (in xterm's mode 40) is there now."""
        if number == _MARGINS:
            return self.level >= 4
        return _ALLOW_132 << 5 in self.mode

    def _switch_other(self, number: int, on: bool) -> bool:
        """A private mode that is no yes or no of `Modes`; whether it is known."""
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
        """The encodings exclude one another, and resetting one that is not in use does nothing (xterm)."""
        if on:
            self.modes.mouse_encoding = MOUSE_ENCODINGS[number]
            self.mode.difference_update(other << 5 for other in MOUSE_ENCODINGS)
        elif self.modes.mouse_encoding == MOUSE_ENCODINGS[number]:
            self.modes.mouse_encoding = "x10"

    # What follows from a mode

    def after_insert(self, _on: bool) -> None:
        """IRM: text needs room."""
        self.update_simple()

    def after_origin(self, _on: bool) -> None:
        """DECOM: the cursor goes home."""
        self.cursor_position()

    def after_reverse_video(self, _on: bool) -> None:
        """DECSCNM: every cell looks different."""
        self.touch_all()

    def after_margins(self, on: bool) -> None:
        """DECLRMM: without it there are no side margins."""
        if not on:
            self.settle()
            self.left, self.right = 0, self.columns - 1
            self.update_simple()

    def after_132_columns(self, _on: bool) -> None:
        """DECCOLM: erase the screen, no margins, the cursor home; the size is for the pane's owner to set."""
        self.erase_in_display(2)
        self.modes.margins = False
        self.mode.discard(_MARGINS << 5)
        self.reset_margins()
        self.update_simple()
        self.cursor_position()

    def after_cursor_mode(self, on: bool) -> None:
        """Mode 1048: DECSC and DECRC."""
        (self.decsc if on else self.decrc)()

    def after_in_band_resize(self, on: bool) -> None:
        """Mode 2048: the size is told at once."""
        if on:
            self.report_size_in_band()

    def keypad_application(self) -> None:
        """DECKPAM (ESC =)."""
        self.switch_mode(66, True, private=True)

    def keypad_numeric(self) -> None:
        """DECKPNM (ESC >)."""
        self.switch_mode(66, False, private=True)

    # Asking, saving

    def ansi_mode_state(self, number: int) -> int:
        """What DECRQM answers for an ANSI mode: 0 unknown, 1 set, 2 reset, 4 reset for good."""
        if number in ANSI_MODES or number in ANSI_REMEMBERED:
            return 1 if number in self.mode else 2
        return 4 if number in _RESET_FOR_GOOD else 0

    def private_mode_state(self, number: int) -> int:
        """What DECRQM answers for a DEC mode: 0 not known, 1 set, 2 reset, 3 and 4 likewise for good."""
        if number in _FIXED:
            return _FIXED[number]
        if number == _MARGINS and self.level < 4:
            return 0
        known = number in PRIVATE_MODES or number in REMEMBERED
        if known or number in MOUSE_MODES or number in MOUSE_ENCODINGS or number in SCREEN_MODES:
            return 1 if self.mode_is_set(number) else 2
        return 0

    def mode_is_set(self, number: int) -> bool:
        """Whether a private mode is set."""
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
        """DECRQM of an ANSI mode."""
        self.reply(f"\x1b[{number};{self.ansi_mode_state(number)}$y")

    @since_level(3)
    def request_private_mode(self, number: int = 0) -> None:
        """DECRQM of a DEC mode."""
        self.reply(f"\x1b[?{number};{self.private_mode_state(number)}$y")

    def save_modes(self, *modes: int) -> None:
        """XTSAVE."""
        for number in modes:
            if number == 1048:
                self.decsc()
            elif self.private_mode_state(number):
                self.saved_modes[number] = self.mode_is_set(number)

    def restore_modes(self, *modes: int) -> None:
        """XTRESTORE."""
        for number in modes:
            if number == 1048:
                self.decrc()
            elif number in self.saved_modes:
                self._restore_mode(number, self.saved_modes[number])

    def _restore_mode(self, number: int, on: bool) -> None:
        if number in SCREEN_MODES:
            self.switch_screen(47, on)
        else:
            self.switch_mode(number, on, private=True)


_EFFECTS: Mapping[int, Callable[[ModeOps, bool], None]] = MappingProxyType(
    {
        4: ModeOps.after_insert,
        _COLUMNS_132 << 5: ModeOps.after_132_columns,
        5 << 5: ModeOps.after_reverse_video,
        6 << 5: ModeOps.after_origin,
        69 << 5: ModeOps.after_margins,
        1048 << 5: ModeOps.after_cursor_mode,
        2048 << 5: ModeOps.after_in_band_resize,
    }
)
