"""Decoding of keys: legacy (xterm, rxvt, Linux console), modifyOtherKeys and kitty."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from synapse_tui.terminal.input import (
    CURSOR_FINALS,
    FUNCTION_FINALS,
    KEYPAD_FINALS,
    KEYPAD_TEXT,
    KITTY_NAMES,
    TILDE_NUMBERS,
    KeyEvent,
    KeyKind,
)

UNKNOWN: Final = KeyEvent("")  # the event of an unknown sequence

_CSI = re.compile(rb"\x1b\[(?P<params>[\d:;]*)(?P<final>[A-Za-z~^@$])", re.ASCII)
_SS3 = re.compile(rb"\x1bO(?P<modifiers>[1-9]?)(?P<final>[A-Za-z])", re.ASCII)
_LINUX = re.compile(rb"\x1b\[\[(?P<final>[A-E])")

_FINALS = {
    **{final: name for name, final in CURSOR_FINALS.items()},
    **{final: name for name, final in FUNCTION_FINALS.items()},
}
_NUMBERS = {
    **{number: name for name, number in TILDE_NUMBERS.items()},
    1: "home",
    4: "end",
    7: "home",
    8: "end",
    11: "f1",
    12: "f2",
    13: "f3",
    14: "f4",
    57427: "kp_begin",
}
_SS3_KEYS = {**_FINALS, **{final: name for name, final in KEYPAD_FINALS.items()}, "I": "tab"}
_RXVT_ARROWS = {"a": "up", "b": "down", "c": "right", "d": "left"}
_RXVT_FINALS = {"~": 0, "$": 1, "^": 4, "@": 5}
_KINDS: Final[dict[str, KeyKind]] = {"1": "press", "2": "repeat", "3": "release"}
_SPECIAL_CODES = {9: "tab", 13: "enter", 27: "escape", 8: "backspace", 127: "backspace", 32: "space"}
_CONTROL_KEYS = {
    0: "space",
    **{code: chr(code + 0x60) for code in range(1, 27)},
    **dict(zip(range(28, 32), "\\]^_", strict=True)),
}
_PLAIN_CONTROLS = {9: "tab", 13: "enter", 27: "escape", 127: "backspace"}


def decode_key(raw: bytes) -> KeyEvent:
    if raw[:1] == b"\x1b" and len(raw) > 1:
        return _decode_escape(raw)
    return decode_character(raw)


def decode_character(raw: bytes) -> KeyEvent:
    """Decode a UTF-8 or control character; an invalid one types U+FFFD."""
    code = raw[0] if len(raw) == 1 else -1
    if code in _PLAIN_CONTROLS:
        return KeyEvent(_PLAIN_CONTROLS[code])
    if code in _CONTROL_KEYS:
        return KeyEvent(_CONTROL_KEYS[code], ctrl=True)
    return KeyEvent.of_text(raw.decode("utf-8", "replace")[:1])


def _decode_escape(raw: bytes) -> KeyEvent:
    if match := _LINUX.fullmatch(raw):
        return KeyEvent(f"f{match['final'][0] - 0x40}")
    if match := _CSI.fullmatch(raw):
        return _decode_csi(match["params"].decode(), match["final"].decode())
    if match := _SS3.fullmatch(raw):
        return _decode_ss3(int(match["modifiers"] or b"1") - 1, match["final"].decode())
    if raw[1:2] in {b"[", b"O"} and len(raw) > 2:
        return UNKNOWN
    inner = decode_key(raw[1:])
    return replace(inner, alt=True, text="") if inner != UNKNOWN else inner


def _decode_ss3(modifiers: int, final: str) -> KeyEvent:
    if final in _RXVT_ARROWS:
        return KeyEvent(_RXVT_ARROWS[final], ctrl=True)
    name = _SS3_KEYS.get(final)
    if name is None:
        return UNKNOWN
    return _with_modifiers(KeyEvent(name, _keypad_text(name) if not modifiers else ""), modifiers)


def _decode_csi(params: str, final: str) -> KeyEvent:
    fields = [field.split(":") for field in params.split(";")]
    number, modifiers, kind = _number(fields, 0, 0, 1), _number(fields, 1, 0, 1) - 1, _kind(fields)
    if final == "u":
        return _decode_kitty(fields, modifiers, kind)
    if final == "~" and number == 27 and len(fields) == 3:
        return _decode_other_key(_number(fields, 2, 0, 0), modifiers)
    if final == "Z":
        return _with_modifiers(KeyEvent("tab", shift=True), modifiers | 1)
    if final in _RXVT_ARROWS:
        return KeyEvent(_RXVT_ARROWS[final], shift=True)
    if final in _RXVT_FINALS:
        name = _NUMBERS.get(number, "")
        modifiers |= _RXVT_FINALS[final]
    else:
        name = _FINALS.get(final, "")
    return replace(_with_modifiers(KeyEvent(name), modifiers), kind=kind) if name else UNKNOWN


def _decode_kitty(fields: list[list[str]], modifiers: int, kind: KeyKind) -> KeyEvent:
    """Decode `CSI key:shifted:base ; modifiers:event ; text u` (kitty keyboard protocol, "An overview")."""
    number = _number(fields, 0, 0, 0)
    name = KITTY_NAMES.get(number) or _character(number)
    event = KeyEvent(
        name,
        kind=kind,
        shifted=_character(_number(fields, 0, 1, 0)),
        base=_character(_number(fields, 0, 2, 0)),
    )
    event = _with_modifiers(event, modifiers)
    if len(fields) > 2:
        return replace(event, text="".join(_character(_int(code)) for code in fields[2]))
    return replace(event, text="" if kind == "release" else _implied_text(event))


def _implied_text(event: KeyEvent) -> str:
    if event.modified:
        return ""
    if event.key == "space":
        return " "
    if len(event.key) != 1:
        return _keypad_text(event.key)
    return (event.shifted or event.key.upper()) if event.shift else event.key


def _decode_other_key(code: int, modifiers: int) -> KeyEvent:
    """Decode `CSI 27 ; modifiers ; code ~` (xterm ctlseqs, modifyOtherKeys)."""
    if code in _SPECIAL_CODES:
        event = KeyEvent(_SPECIAL_CODES[code])
        event = replace(event, text=" ") if code == 32 else event
    elif _character(code):
        event = KeyEvent.of_text(_character(code))
    else:
        return UNKNOWN
    event = _with_modifiers(event, modifiers)
    return replace(event, text="") if event.modified else event


def _with_modifiers(event: KeyEvent, bits: int) -> KeyEvent:
    if bits <= 0:
        return event
    return replace(
        event,
        shift=event.shift or bool(bits & 1),
        alt=bool(bits & 2),
        ctrl=bool(bits & 4),
        super=bool(bits & 8),
        hyper=bool(bits & 16),
        meta=bool(bits & 32),
        caps_lock=bool(bits & 64),
        num_lock=bool(bits & 128),
    )


def _keypad_text(name: str) -> str:
    text = KEYPAD_TEXT.get(name, "")
    return text if text.isprintable() else ""


def _kind(fields: list[list[str]]) -> KeyKind:
    value = fields[1][1] if len(fields) > 1 and len(fields[1]) > 1 else "1"
    return _KINDS.get(value, "press")


def _number(fields: list[list[str]], field: int, part: int, default: int) -> int:
    if field < len(fields) and part < len(fields[field]) and fields[field][part]:
        return _int(fields[field][part])
    return default


def _int(digits: str) -> int:
    return int(digits) if digits and len(digits) <= 7 else 0


def _character(code: int) -> str:
    if (
        code < 32
        or 0x7F <= code < 0xA0
        or 0xD800 <= code < 0xE000
        or 57344 <= code <= 63743
        or code > 0x10FFFF
    ):
        return ""
    return chr(code)
