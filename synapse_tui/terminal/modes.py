"""The modes that a child has set, as those outside of the core need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MouseMode = Literal[0, 9, 1000, 1002, 1003]
MouseEncoding = Literal["x10", "utf8", "sgr", "urxvt", "sgr-pixels"]


@dataclass(slots=True)
class Modes:
    """Modes of a terminal; written by its screen, read by encoders and views.

    Attributes:
        application_cursor: DECCKM (?1): cursor keys send SS3.
        application_keypad: DECKPAM/DECNKM (?66): the keypad sends SS3.
        bracketed_paste: ?2004.
        focus_events: ?1004.
        alternate_screen: The alternate screen is shown (?47, ?1047, ?1049).
        alternate_scroll: ?1007: the wheel sends cursor keys on the alternate screen.
        synchronized: ?2026: the child is in the middle of a frame.
        autowrap: DECAWM (?7).
        origin: DECOM (?6).
        insert: IRM (4).
        newline: LNM (20): Enter sends CR LF.
        backarrow: DECBKM (?67): Backspace sends BS instead of DEL.
        reverse_video: DECSCNM (?5): default colours are swapped.
        reverse_wrap: ?45: backspace goes over the left edge into the row that wrapped here.
        extended_reverse_wrap: ?1045: likewise, through any rows and from the top to the bottom.
        margins: DECLRMM (?69): left and right margins may be set.
        cursor_visible: DECTCEM (?25).
        color_scheme_updates: ?2031: the child wants to hear of dark and light.
        in_band_resize: ?2048: the child wants `CSI 48 t` at a change of size.
        grapheme_clusters: ?2027: a cluster is one character; on from the start.
        mouse: Which mouse events the child wants.
        mouse_encoding: How it wants them.
        kitty_flags: Flags on top of the shown screen's kitty keyboard stack.
        modify_other_keys: XTMODKEYS resource 4: 0, 1 or 2.
    """

    application_cursor: bool = False
    application_keypad: bool = False
    bracketed_paste: bool = False
    focus_events: bool = False
    alternate_screen: bool = False
    alternate_scroll: bool = False
    synchronized: bool = False
    autowrap: bool = True
    origin: bool = False
    insert: bool = False
    newline: bool = False
    backarrow: bool = False
    reverse_video: bool = False
    reverse_wrap: bool = False
    extended_reverse_wrap: bool = False
    margins: bool = False
    cursor_visible: bool = True
    color_scheme_updates: bool = False
    in_band_resize: bool = False
    grapheme_clusters: bool = True
    mouse: MouseMode = 0
    mouse_encoding: MouseEncoding = "x10"
    kitty_flags: int = 0
    modify_other_keys: int = 0
