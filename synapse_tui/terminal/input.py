"""Encoding of input for the child: keys, mouse, pastes and focus, in the modes that the child has set.

Three keyboard encodings: legacy (xterm's, with DECCKM and DECPAM), modifyOtherKeys (xterm) and the kitty
keyboard protocol (https://sw.kovidgoyal.net/kitty/keyboard-protocol/). Kitty's flags take precedence over
modifyOtherKeys, as in terminals that support both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from synapse_tui.system.dataclass import dataclass

from .events import Modes

CURSOR_FINALS: Final[Mapping[str, str]] = MappingProxyType(
    {"up": "A", "down": "B", "right": "C", "left": "D", "kp_begin": "E", "end": "F", "home": "H"}
)
"""Keys that send `CSI x`, or `SS3 x` with DECCKM (xterm ctlseqs, "PC-Style Function Keys")."""

FUNCTION_FINALS: Final[Mapping[str, str]] = MappingProxyType({"f1": "P", "f2": "Q", "f3": "R", "f4": "S"})
"""Keys that send `SS3 x`, or `CSI 1 ; m x` with modifiers."""

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
"""Keys that send `CSI n ~` (VT220; F13 to F20 as in xterm and rxvt)."""

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
"""Keys that kitty encodes as `CSI n u` (kitty protocol "Functional key definitions")."""

KITTY_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {number: name for name, number in KITTY_NUMBERS.items()}
)

MODIFIER_KEYS: Final = frozenset(
    name
    for name in KITTY_NUMBERS
    if name.startswith(("left_", "right_", "iso_level")) or name.endswith("_lock")
)
"""Keys reported only with kitty's flag 8."""

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
"""Final of `SS3 x` in application mode (VT100, xterm ctlseqs "VT220-Style Function Keys")."""

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
"""Ctrl in the legacy encoding (kitty protocol "Legacy ctrl mapping of ASCII keys")."""

PLAIN_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"kp_{name}": name
        for name in ("left", "right", "up", "down", "page_up", "page_down", "home", "end", "insert", "delete")
    }
)
"""Keypad keys without num lock → the keys they equal in encodings that ignore the keypad."""


KeyKind = Literal["press", "repeat", "release"]

KITTY_DISAMBIGUATE = 1
KITTY_EVENT_TYPES = 2
KITTY_ALTERNATE_KEYS = 4
KITTY_ALL_KEYS = 8
KITTY_TEXT = 16

NEWLINE = b"\x1b\r"  # Sent for Alt+Enter; coding agents insert a line break

_ENHANCED = re.compile(rb"\x1b\[(?:[\d:;]*u|27;\d+;\d+~|[\d;]*:[\d:;]*[A-Za-z~]|[PQRS]|\[[A-E])", re.ASCII)
_RELEASE_SILENT = frozenset({"enter", "tab", "backspace"})


@dataclass(frozen=True, slots=True)
class KeyEvent:
    # Kitty's name of the key (`enter`, `page_up`, `f1`, `kp_5`, `space`, `left_shift`), or the character it
    # types without Shift (`a`, `1`, `ä`); empty if it is unknown or the text comes from an input method
    key: str
    text: str = ""  # The text it types; empty with Ctrl, Alt or Super held
    shift: bool = False
    alt: bool = False
    ctrl: bool = False
    super: bool = False
    kind: KeyKind = "press"
    hyper: bool = False
    meta: bool = False
    caps_lock: bool = False
    num_lock: bool = False
    shifted: str = ""  # The character with Shift, if the terminal reported it
    # The key at this position of a US keyboard, if it differs and the terminal reported it
    base: str = ""

    @classmethod
    def of_text(cls, character: str) -> KeyEvent:
        if character == " ":
            return cls("space", " ")
        lower = character.lower()
        if lower != character and len(lower) == 1:
            return cls(lower, character, shift=True, shifted=character)
        return cls(character, character)

    @property
    def modified(self) -> bool:
        return self.alt or self.ctrl or self.super or self.hyper or self.meta

    @property
    def modifiers(self) -> int:
        """Kitty's modifier bits: Shift 1, Alt 2, Ctrl 4, Super 8, Hyper 16, Meta 32."""
        held = (self.shift, self.alt, self.ctrl, self.super, self.hyper, self.meta)
        return sum(bit << index for index, bit in enumerate(held))


def encode_key(event: KeyEvent, modes: Modes, *, shift_enter: bytes = NEWLINE) -> bytes:
    """Return the bytes to send to the child for a key; empty if it is not to be sent.

    `shift_enter` is sent to a child without any protocol that distinguishes Shift+Enter from Enter. Releases
    are not sent unless the child asked for them.
    """
    if modes.kitty_flags:
        return _kitty(event, modes, shift_enter)
    if event.kind == "release" or event.key in MODIFIER_KEYS:
        return b""
    if modes.modify_other_keys and (number := _other_key(event, modes.modify_other_keys)):
        return b"\x1b[27;%d;%d~" % (event.modifiers + 1, number)
    return _legacy(event, modes, shift_enter)


def encode_input(event: KeyEvent, raw: bytes, modes: Modes, *, shift_enter: bytes = NEWLINE) -> bytes:
    """Return the bytes to send to the child for a key from an outer terminal.

    Between a legacy terminal and a legacy child bytes pass unchanged, including those of unknown keys. `raw`
    is empty for a key from another source; `shift_enter` is as for `encode_key`.
    """
    unknown = not event.key and not event.text
    legacy_child = not modes.kitty_flags and not modes.modify_other_keys
    if unknown or (legacy_child and raw and not _ENHANCED.fullmatch(raw) and not _moded(event, raw, modes)):
        return raw
    return encode_key(event, modes, shift_enter=shift_enter)


def _moded(event: KeyEvent, raw: bytes, modes: Modes) -> bool:
    return (
        (event.key in CURSOR_FINALS and len(raw) == 3 and raw[2:].isupper())
        or event.key in KEYPAD_TEXT
        or (event.key == "backspace" and modes.backarrow)
        or (event.key == "enter" and modes.newline)
    )


def _legacy(event: KeyEvent, modes: Modes, shift_enter: bytes) -> bytes:
    """Legacy encoding (xterm "PC-Style Function Keys"; kitty "Legacy key event encoding")."""
    if event.key in KEYPAD_TEXT:
        application = modes.application_keypad and not event.num_lock
        if application and not event.modified:
            return b"\x1bO" + KEYPAD_FINALS[event.key].encode()
        return (b"\x1b" if event.alt else b"") + KEYPAD_TEXT[event.key].encode()
    key = PLAIN_NAMES.get(event.key, event.key)
    if (sequence := _legacy_function(key, event.modifiers & 0xF, modes)) is not None:
        return sequence
    if key in _LEGACY_SPECIAL:
        return _legacy_special(key, event, modes, shift_enter)
    if key in KITTY_NUMBERS and key != "space":
        return b"\x1b[29~" if key == "menu" else b""
    return _legacy_text(event)


def _legacy_function(key: str, modifiers: int, modes: Modes) -> bytes | None:
    number = TILDE_NUMBERS.get(key)
    if number is not None:
        return b"\x1b[%d;%d~" % (number, modifiers + 1) if modifiers else b"\x1b[%d~" % number
    final = CURSOR_FINALS.get(key) or FUNCTION_FINALS.get(key)
    if final is None:
        return None
    if modifiers:
        return f"\x1b[1;{modifiers + 1}{final}".encode()
    application = modes.application_cursor or key in FUNCTION_FINALS
    return f"\x1b{'O' if application else '['}{final}".encode()


_LEGACY_SPECIAL = frozenset({"enter", "escape", "backspace", "tab"})


def _legacy_special(key: str, event: KeyEvent, modes: Modes, shift_enter: bytes) -> bytes:
    prefix = b"\x1b" if event.alt else b""
    if key == "enter":
        if event.shift and not event.modified:
            return shift_enter
        return prefix + (b"\r\n" if modes.newline else b"\r")
    if key == "tab":
        return prefix + (b"\x1b[Z" if event.shift else b"\t")
    if key == "backspace":
        return prefix + (b"\x08" if event.ctrl != modes.backarrow else b"\x7f")
    return prefix + b"\x1b"


def _legacy_text(event: KeyEvent) -> bytes:
    if not event.modified:
        return (event.text or event.key.replace("space", " ")).encode("utf-8", "replace")
    if event.super or event.hyper or event.meta:
        return b""
    prefix = b"\x1b" if event.alt else b""
    if event.ctrl and (code := _control_code(event)) is not None:
        return prefix + bytes([code])
    return prefix + _typed(event).encode("utf-8", "replace")


def _control_code(event: KeyEvent) -> int | None:
    shifted = event.shifted if event.shift else ""
    known = (CONTROL_CODES[name] for name in (shifted, event.key, event.base) if name in CONTROL_CODES)
    return next(known, None)


def _typed(event: KeyEvent) -> str:
    if event.text:
        return event.text
    if event.key == "space":
        return " "
    if event.shift:
        return event.shifted or event.key.upper()
    return event.key


def _other_key(event: KeyEvent, level: int) -> int:
    """Return the code for `CSI 27 ; modifiers ; code ~`, or 0 for legacy keys (xterm, modifyOtherKeys)."""
    key = event.key
    if event.modifiers == 0 or key in KEYPAD_TEXT:
        return 0
    if key in _LEGACY_SPECIAL:
        wanted = _other_special(event, level)
        return KITTY_NUMBERS[key] if wanted else 0
    if (key in KITTY_NUMBERS and key != "space") or len(_typed(event)) != 1:
        return 0
    if not event.modified:
        return 32 if key == "space" and level > 1 else 0
    if level == 1 and _well_known(event):
        return 0
    return ord(_typed(event))


def _other_special(event: KeyEvent, level: int) -> bool:
    if level > 1:
        return event.key != "backspace" or event.modified
    only_alt = event.alt and not event.ctrl
    return (
        event.key in {"enter", "tab"} and not only_alt and not (event.key == "tab" and event.modifiers == 1)
    )


def _well_known(event: KeyEvent) -> bool:
    if event.super or event.hyper or event.meta:
        return False
    if not event.ctrl:
        return True
    return not event.shift and _control_code(event) is not None and event.key not in {"i", "m", "["}


def _kitty(event: KeyEvent, modes: Modes, shift_enter: bytes) -> bytes:
    flags = modes.kitty_flags
    if event.kind == "release" and not flags & KITTY_EVENT_TYPES:
        return b""
    if flags & KITTY_ALL_KEYS:
        return _kitty_sequence(event, flags)
    if event.key in MODIFIER_KEYS:
        return b""
    if event.key in _RELEASE_SILENT and not event.modifiers:
        return b"" if event.kind == "release" else _legacy(event, modes, shift_enter)
    if event.text and not event.modified and event.kind != "release":
        return event.text.encode("utf-8", "replace")
    if not flags & KITTY_DISAMBIGUATE and not _says_more(event, flags):
        return _legacy(event, modes, shift_enter)
    return _kitty_sequence(event, flags)


def _says_more(event: KeyEvent, flags: int) -> bool:
    alternates = (event.shifted if event.shift else "") or event.base
    return bool(flags & KITTY_EVENT_TYPES and event.kind != "press") or bool(
        flags & KITTY_ALTERNATE_KEYS and alternates
    )


def _kitty_sequence(event: KeyEvent, flags: int) -> bytes:
    """Return `CSI key:shifted:base ; modifiers:event ; text u`, omitting what is not needed."""
    number, final = _kitty_number(event, flags)
    key = str(number)
    if final == "u" and flags & KITTY_ALTERNATE_KEYS:
        key += _alternates(event)
    modifiers = _kitty_modifiers(event, flags)
    text = ""
    if flags & KITTY_ALL_KEYS and flags & KITTY_TEXT and event.kind != "release":
        text = ":".join(str(ord(character)) for character in event.text if ord(character) >= 32)
    if text:
        return f"\x1b[{key};{modifiers};{text}{final}".encode()
    if modifiers:
        return f"\x1b[{key};{modifiers}{final}".encode()
    return f"\x1b[{'' if key == '1' and final not in 'u~' else key}{final}".encode()


def _kitty_number(event: KeyEvent, flags: int) -> tuple[int, str]:
    key = (
        event.key if flags & (KITTY_DISAMBIGUATE | KITTY_ALL_KEYS) else PLAIN_NAMES.get(event.key, event.key)
    )
    if key == "f3":  # `CSI R` is a cursor position report
        return 13, "~"
    if (final := CURSOR_FINALS.get(key) or FUNCTION_FINALS.get(key)) is not None:
        return 1, final
    if key in TILDE_NUMBERS and key not in KITTY_NUMBERS:
        return TILDE_NUMBERS[key], "~"
    return KITTY_NUMBERS.get(key) or (ord(key[0]) if key else 0), "u"


def _alternates(event: KeyEvent) -> str:
    shifted = str(ord(event.shifted)) if event.shift and len(event.shifted) == 1 else ""
    if len(event.base) == 1 and event.base != event.key:
        return f":{shifted}:{ord(event.base)}"
    return f":{shifted}" if shifted else ""


def _kitty_modifiers(event: KeyEvent, flags: int) -> str:
    bits = event.modifiers
    if flags & KITTY_ALL_KEYS:  # lock bits would break plain keys in programs that did not ask for all keys
        bits += 64 * event.caps_lock + 128 * event.num_lock
    if flags & KITTY_EVENT_TYPES and event.kind != "press":
        return f"{bits + 1}:{2 if event.kind == 'repeat' else 3}"
    return str(bits + 1) if bits else ""


MouseKind = Literal["press", "release", "move", "wheel_up", "wheel_down", "wheel_left", "wheel_right"]

_WHEEL = {"wheel_up": 64, "wheel_down": 65, "wheel_left": 66, "wheel_right": 67}
_WHEEL_ROWS = 3
_ONE_BYTE_LIMIT = 222
_TWO_BYTE_LIMIT = 2014


@dataclass(frozen=True, slots=True)
class MouseEvent:
    x: int  # Column of the cell, from 0
    y: int  # Row of the cell, from 0
    # 1 left, 2 middle, 3 right, 8 to 11 extra; 0 for none (a move without a button, a wheel)
    button: int = 0
    kind: MouseKind = "press"
    shift: bool = False
    alt: bool = False
    ctrl: bool = False


def encode_mouse(event: MouseEvent, modes: Modes, *, cell_size: tuple[int, int] = (8, 16)) -> bytes:
    """Return the report to send to the child for a mouse event.

    With ?1007 the wheel sends cursor keys on the alternate screen. Empty if the child did not ask for the
    event, or its encoding cannot express the position. `cell_size` is in pixels (?1016), as in size reports.
    """
    if not modes.mouse:
        return _alternate_scroll(event, modes)
    if not _wanted(event, modes.mouse):
        return b""
    code = _button_code(event)
    if modes.mouse != 9:
        code += 4 * event.shift + 8 * event.alt + 16 * event.ctrl
    return _encode(event, code, modes, cell_size)


def _wanted(event: MouseEvent, mode: int) -> bool:
    if mode == 9:
        return event.kind == "press" and 1 <= event.button <= 3
    if event.kind == "move":
        return mode == 1003 or (mode == 1002 and event.button > 0)
    return True


def _button_code(event: MouseEvent) -> int:
    if event.kind in _WHEEL:
        return _WHEEL[event.kind]
    move = 32 if event.kind == "move" else 0
    if event.button >= 8:
        return 128 + event.button - 8 + move
    return (event.button - 1 if event.button else 3) + move


def _encode(event: MouseEvent, code: int, modes: Modes, cell_size: tuple[int, int]) -> bytes:
    x, y = event.x + 1, event.y + 1
    if modes.mouse_encoding in {"sgr", "sgr-pixels"}:
        if modes.mouse_encoding == "sgr-pixels":
            width, height = cell_size
            x, y = event.x * width + width // 2 + 1, event.y * height + height // 2 + 1
        return f"\x1b[<{code};{x};{y}{'m' if event.kind == 'release' else 'M'}".encode()
    if event.kind == "release":
        code = code & ~0b11 & 0x3F | 3  # these encodings do not report which button was released
    if modes.mouse_encoding == "urxvt":
        return f"\x1b[{code + 32};{x};{y}M".encode()
    limit = _TWO_BYTE_LIMIT if modes.mouse_encoding == "utf8" else _ONE_BYTE_LIMIT
    if max(event.x, event.y) > limit:
        return b""
    encoding = "utf-8" if modes.mouse_encoding == "utf8" else "latin-1"
    return b"\x1b[M" + f"{chr(code + 32)}{chr(x + 32)}{chr(y + 32)}".encode(encoding)


def _alternate_scroll(event: MouseEvent, modes: Modes) -> bytes:
    if not (modes.alternate_scroll and modes.alternate_screen) or event.kind not in {
        "wheel_up",
        "wheel_down",
    }:
        return b""
    final = "A" if event.kind == "wheel_up" else "B"
    return f"\x1b{'O' if modes.application_cursor else '['}{final}".encode() * _WHEEL_ROWS


PASTE_START: Final = b"\x1b[200~"
PASTE_END: Final = b"\x1b[201~"

_END_MARKS = re.compile("\x1b\\[20[01]~|\x9b20[01]~")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def encode_paste(text: str, modes: Modes) -> bytes:
    """Return the bytes to send to the child for a pasted text.

    Control characters except tab and line ends are removed, so that no text can end the paste and act as keys
    (xterm's default, `allowPasteControls`). Line ends (LF, CR LF, CR) become CR, as terminals send them. With
    ?2004 the text is enclosed in `CSI 200 ~` and `CSI 201 ~`.
    """
    clean = _CONTROLS.sub("", _END_MARKS.sub("", text))
    data = clean.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "replace")
    return PASTE_START + data + PASTE_END if modes.bracketed_paste else data


def encode_focus(focused: bool, modes: Modes) -> bytes:
    """Return the focus report for the child; empty unless it asked for it (?1004)."""
    if not modes.focus_events:
        return b""
    return b"\x1b[I" if focused else b"\x1b[O"
