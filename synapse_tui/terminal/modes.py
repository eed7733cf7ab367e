"""Modes set by the child, for use outside of the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MouseMode = Literal[0, 9, 1000, 1002, 1003]
MouseEncoding = Literal["x10", "utf8", "sgr", "urxvt", "sgr-pixels"]


@dataclass(slots=True)
class Modes:
    application_cursor: bool = False  # DECCKM (?1): cursor keys send SS3
    application_keypad: bool = False  # DECKPAM/DECNKM (?66): the keypad sends SS3
    bracketed_paste: bool = False  # ?2004
    focus_events: bool = False  # ?1004
    alternate_screen: bool = False  # The alternate screen is shown (?47, ?1047, ?1049)
    alternate_scroll: bool = False  # ?1007: the wheel sends cursor keys on the alternate screen
    synchronized: bool = False  # ?2026: a frame is incomplete
    autowrap: bool = True  # DECAWM (?7)
    origin: bool = False  # DECOM (?6)
    insert: bool = False  # IRM (4)
    newline: bool = False  # LNM (20): Enter sends CR LF
    backarrow: bool = False  # DECBKM (?67): Backspace sends BS instead of DEL
    reverse_video: bool = False  # DECSCNM (?5): default colours are swapped
    reverse_wrap: bool = False  # ?45: backspace moves over the left edge into a wrapped row
    extended_reverse_wrap: bool = False  # ?1045: likewise, into any row and from the top to the bottom
    margins: bool = False  # DECLRMM (?69): left and right margins may be set
    cursor_visible: bool = True  # DECTCEM (?25)
    color_scheme_updates: bool = False  # ?2031: the child wants dark and light reports
    in_band_resize: bool = False  # ?2048: the child wants `CSI 48 t` when the size changes
    grapheme_clusters: bool = True  # ?2027: a cluster is one character; initially on
    mouse: MouseMode = 0  # The mouse events that the child wants
    mouse_encoding: MouseEncoding = "x10"
    kitty_flags: int = 0  # Flags on top of the shown screen's kitty keyboard stack
    modify_other_keys: int = 0  # XTMODKEYS resource 4: 0, 1 or 2
