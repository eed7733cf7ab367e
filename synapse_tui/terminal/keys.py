"""Keys to bytes: what a terminal sends to its child for a key, in the modes that the child has set.

Three encodings: legacy (xterm's, with DECCKM and DECPAM), modifyOtherKeys (xterm) and the kitty keyboard
protocol (https://sw.kovidgoyal.net/kitty/keyboard-protocol/). Kitty's flags win over modifyOtherKeys, as in
the terminals that know both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .key_tables import (
    CONTROL_CODES,
    CURSOR_FINALS,
    FUNCTION_FINALS,
    KEYPAD_FINALS,
    KEYPAD_TEXT,
    KITTY_NUMBERS,
    MODIFIER_KEYS,
    PLAIN_NAMES,
    TILDE_NUMBERS,
)
from .modes import Modes

KeyKind = Literal["press", "repeat", "release"]

KITTY_DISAMBIGUATE = 1
KITTY_EVENT_TYPES = 2
KITTY_ALTERNATE_KEYS = 4
KITTY_ALL_KEYS = 8
KITTY_TEXT = 16

NEWLINE = b"\x1b\r"
"""What Alt+Enter sends, and what coding agents take as a new line of the draft."""

_ENHANCED = re.compile(rb"\x1b\[(?:[\d:;]*u|27;\d+;\d+~|[\d;]*:[\d:;]*[A-Za-z~]|[PQRS]|\[[A-E])", re.ASCII)
_RELEASE_SILENT = frozenset({"enter", "tab", "backspace"})


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """One key that was pressed, repeated or released.

    Attributes:
        key: The key in kitty's words (`enter`, `page_up`, `f1`, `kp_5`, `space`, `left_shift`), or the
            character it types without Shift (`a`, `1`, `ä`); empty when the text has no key (an input method)
            or is unknown.
        text: What it types; empty when it types nothing (with Ctrl, Alt or Super held).
        shift: Whether Shift is held; so on.
        kind: What happened to it.
        shifted: The character it types with Shift, when the terminal told it.
        base: The key at the same place of a US keyboard, when it differs and the terminal told it.
    """

    key: str
    text: str = ""
    shift: bool = False
    alt: bool = False
    ctrl: bool = False
    super: bool = False
    kind: KeyKind = "press"
    hyper: bool = False
    meta: bool = False
    caps_lock: bool = False
    num_lock: bool = False
    shifted: str = ""
    base: str = ""

    @classmethod
    def of_text(cls, character: str) -> KeyEvent:
        """The event of a typed character.

        Args:
            character: One code point.
        """
        if character == " ":
            return cls("space", " ")
        lower = character.lower()
        if lower != character and len(lower) == 1:
            return cls(lower, character, shift=True, shifted=character)
        return cls(character, character)

    @property
    def modified(self) -> bool:
        """Whether Ctrl, Alt, Super, Hyper or Meta is held: the key then types no text."""
        return self.alt or self.ctrl or self.super or self.hyper or self.meta

    @property
    def modifiers(self) -> int:
        """The held modifiers as kitty's bits: Shift 1, Alt 2, Ctrl 4, Super 8, Hyper 16, Meta 32."""
        held = (self.shift, self.alt, self.ctrl, self.super, self.hyper, self.meta)
        return sum(bit << index for index, bit in enumerate(held))


def encode_key(event: KeyEvent, modes: Modes, *, shift_enter: bytes = NEWLINE) -> bytes:
    """The bytes a child is sent for a key.

    Args:
        event: The key.
        modes: The child's modes.
        shift_enter: What Shift+Enter sends to a child that asked for no protocol that could tell it from
            Enter.

    Returns:
        The bytes; empty when the child is to hear nothing (a release it did not ask for).
    """
    if modes.kitty_flags:
        return _kitty(event, modes, shift_enter)
    if event.kind == "release" or event.key in MODIFIER_KEYS:
        return b""
    if modes.modify_other_keys and (number := _other_key(event, modes.modify_other_keys)):
        return b"\x1b[27;%d;%d~" % (event.modifiers + 1, number)
    return _legacy(event, modes, shift_enter)


def encode_input(event: KeyEvent, raw: bytes, modes: Modes, *, shift_enter: bytes = NEWLINE) -> bytes:
    """The bytes a child is sent for a key that came from an outer terminal.

    Between a legacy terminal and a legacy child the bytes pass unchanged, also those of keys that nobody
    knows.

    Args:
        event: The key as it was understood.
        raw: The bytes that it was; empty when it came otherwise.
        modes: The child's modes.
        shift_enter: As for `encode_key`.
    """
    unknown = not event.key and not event.text
    legacy_child = not modes.kitty_flags and not modes.modify_other_keys
    if unknown or (legacy_child and raw and not _ENHANCED.fullmatch(raw) and not _moded(event, raw, modes)):
        return raw
    return encode_key(event, modes, shift_enter=shift_enter)


def _moded(event: KeyEvent, raw: bytes, modes: Modes) -> bool:
    """Whether the child's modes change the key, so that the outer terminal's bytes may be wrong for it."""
    return (
        (event.key in CURSOR_FINALS and len(raw) == 3 and raw[2:].isupper())
        or event.key in KEYPAD_TEXT
        or (event.key == "backspace" and modes.backarrow)
        or (event.key == "enter" and modes.newline)
    )


def _legacy(event: KeyEvent, modes: Modes, shift_enter: bytes) -> bytes:
    """Legacy encoding (xterm "PC-Style Function Keys"; kitty "Legacy key event encoding")."""
    if event.key in KEYPAD_TEXT:
        return _legacy_keypad(event, modes)
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


def _legacy_keypad(event: KeyEvent, modes: Modes) -> bytes:
    application = modes.application_keypad and not event.num_lock
    if application and not event.modified:
        return b"\x1bO" + KEYPAD_FINALS[event.key].encode()
    return (b"\x1b" if event.alt else b"") + KEYPAD_TEXT[event.key].encode()


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
    """The character that the key would type if no other modifier than Shift were held."""
    if event.text:
        return event.text
    if event.key == "space":
        return " "
    if event.shift:
        return event.shifted or event.key.upper()
    return event.key


def _other_key(event: KeyEvent, level: int) -> int:
    """The code for `CSI 27 ; modifiers ; code ~`, or 0 when the key stays legacy (xterm, modifyOtherKeys)."""
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
    """Whether the legacy encoding says it all: Alt alone, and Ctrl where it makes a control code."""
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
    """Whether flags 2 and 4 alone make this event need a sequence of kitty's."""
    alternates = (event.shifted if event.shift else "") or event.base
    return bool(flags & KITTY_EVENT_TYPES and event.kind != "press") or bool(
        flags & KITTY_ALTERNATE_KEYS and alternates
    )


def _kitty_sequence(event: KeyEvent, flags: int) -> bytes:
    """`CSI key:shifted:base ; modifiers:event ; text u` with all that is not needed left out."""
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
    if flags & KITTY_ALL_KEYS:  # locks would make plain keys unreadable for programs that did not ask for all
        bits += 64 * event.caps_lock + 128 * event.num_lock
    if flags & KITTY_EVENT_TYPES and event.kind != "press":
        return f"{bits + 1}:{2 if event.kind == 'repeat' else 3}"
    return str(bits + 1) if bits else ""
