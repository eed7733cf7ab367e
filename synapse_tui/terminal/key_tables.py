"""Names and numbers of keys: kitty's words, and what xterm and kitty send for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CURSOR_FINALS: Final[Mapping[str, str]] = MappingProxyType(
    {"up": "A", "down": "B", "right": "C", "left": "D", "kp_begin": "E", "end": "F", "home": "H"}
)
"""Keys that send `CSI x`, and `SS3 x` with DECCKM (xterm ctlseqs, "PC-Style Function Keys")."""

FUNCTION_FINALS: Final[Mapping[str, str]] = MappingProxyType({"f1": "P", "f2": "Q", "f3": "R", "f4": "S"})
"""Keys that send `SS3 x`, and `CSI 1 ; m x` with modifiers."""

TILDE_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "insert": 2,
        "delete": 3,
        "page_up": 5,
        "page_down": 6,
        **{f"f{n}": code for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)},
        **{f"f{n}": code for n, code in zip(range(13, 21), (25, 26, 28, 29, 31, 32, 33, 34), strict=True)},
    }
)
"""Keys that send `CSI n ~` (VT220; F13 to F20 as xterm and rxvt number them)."""

_KITTY_LOCKS = ("caps_lock", "scroll_lock", "num_lock", "print_screen", "pause", "menu")
_KITTY_NAMES = (
    " ".join(f"f{n}" for n in range(13, 36))
    + " "
    + " ".join(f"kp_{n}" for n in range(10))
    + " kp_decimal kp_divide kp_multiply kp_subtract kp_add kp_enter kp_equal kp_separator"
    " kp_left kp_right kp_up kp_down kp_page_up kp_page_down kp_home kp_end kp_insert kp_delete kp_begin"
    " media_play media_pause media_play_pause media_reverse media_stop media_fast_forward media_rewind"
    " media_track_next media_track_previous media_record lower_volume raise_volume mute_volume"
    " left_shift left_control left_alt left_super left_hyper left_meta"
    " right_shift right_control right_alt right_super right_hyper right_meta"
    " iso_level3_shift iso_level5_shift"
).split()

KITTY_NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "escape": 27,
        "enter": 13,
        "tab": 9,
        "backspace": 127,
        "space": 32,
        **{name: 57358 + index for index, name in enumerate(_KITTY_LOCKS)},
        **{name: 57376 + index for index, name in enumerate(_KITTY_NAMES)},
    }
)
"""Numbers of the keys that kitty sends as `CSI n u` (kitty protocol "Functional key definitions")."""

KITTY_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {number: name for name, number in KITTY_NUMBERS.items()}
)
"""The way back from `KITTY_NUMBERS`."""

MODIFIER_KEYS: Final = frozenset(
    name
    for name in KITTY_NUMBERS
    if name.startswith(("left_", "right_", "iso_level")) or name.endswith("_lock")
)
"""Keys that only change others; reported by kitty's flag 8 alone."""

KEYPAD_TEXT: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{f"kp_{n}": str(n) for n in range(10)},
        "kp_decimal": ".",
        "kp_divide": "/",
        "kp_multiply": "*",
        "kp_subtract": "-",
        "kp_add": "+",
        "kp_enter": "\r",
        "kp_equal": "=",
        "kp_separator": ",",
    }
)
"""What a key of the numeric keypad types."""

KEYPAD_FINALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{f"kp_{n}": chr(ord("p") + n) for n in range(10)},
        "kp_decimal": "n",
        "kp_divide": "o",
        "kp_multiply": "j",
        "kp_subtract": "m",
        "kp_add": "k",
        "kp_enter": "M",
        "kp_equal": "X",
        "kp_separator": "l",
    }
)
"""What it sends as `SS3 x` in application mode (VT100, xterm ctlseqs "VT220-Style Function Keys")."""

CONTROL_CODES: Final[Mapping[str, int]] = MappingProxyType(
    {
        **{chr(code + 0x60): code for code in range(1, 27)},
        **dict(zip(("space", "@", "2"), (0, 0, 0), strict=True)),
        **dict(zip("[\\]^_", range(27, 32), strict=True)),
        **dict(zip("34567", range(27, 32), strict=True)),
        "~": 30,
        "/": 31,
        "?": 127,
        "8": 127,
    }
)
"""What Ctrl makes of a key in the legacy encoding (kitty protocol "Legacy ctrl mapping of ASCII keys")."""

PLAIN_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"kp_{name}": name
        for name in ("left", "right", "up", "down", "page_up", "page_down", "home", "end", "insert", "delete")
    }
)
"""Keys of the keypad without num lock, and what they are where the keypad is not told apart."""
