"""Tokenizer of the outer terminal's input: keys, pastes, mouse, focus, replies.

Pure: bytes in, tokens out, in linear time, however the bytes are split. Incomplete input is stored; the
caller waits `delay` seconds for more and then calls `timeout()`. A reply or a paste is never mistaken for
keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal.input import (
    CURSOR_FINALS,
    FUNCTION_FINALS,
    KEYPAD_FINALS,
    KEYPAD_TEXT,
    KITTY_NAMES,
    PASTE_END,
    PASTE_START,
    TILDE_NUMBERS,
    KeyEvent,
    KeyKind,
    MouseEvent,
    MouseKind,
)

UNKNOWN: Final = KeyEvent("")  # the event of an unknown sequence

_CSI_PARTS = re.compile(rb"\x1b\[(?P<params>[\d:;]*)(?P<final>[A-Za-z~^@$])", re.ASCII)
_SS3_PARTS = re.compile(rb"\x1bO(?P<modifiers>[1-9]?)(?P<final>[A-Za-z])", re.ASCII)
_LINUX_PARTS = re.compile(rb"\x1b\[\[(?P<final>[A-E])")

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
    if match := _LINUX_PARTS.fullmatch(raw):
        return KeyEvent(f"f{match['final'][0] - 0x40}")
    if match := _CSI_PARTS.fullmatch(raw):
        return _decode_csi(match["params"].decode(), match["final"].decode())
    if match := _SS3_PARTS.fullmatch(raw):
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
    name = KITTY_NAMES.get(number) or _character_of(number)
    event = KeyEvent(
        name,
        kind=kind,
        shifted=_character_of(_number(fields, 0, 1, 0)),
        base=_character_of(_number(fields, 0, 2, 0)),
    )
    event = _with_modifiers(event, modifiers)
    if len(fields) > 2:
        return replace(event, text="".join(_character_of(_int(code)) for code in fields[2]))
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
    elif _character_of(code):
        event = KeyEvent.of_text(_character_of(code))
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


def _character_of(code: int) -> str:
    if (
        code < 32
        or 0x7F <= code < 0xA0
        or 0xD800 <= code < 0xE000
        or 57344 <= code <= 63743
        or code > 0x10FFFF
    ):
        return ""
    return chr(code)


MAX_SEQUENCE: Final = 4096  # longest CSI sequence, in bytes

Kind = Literal["key", "paste", "sgr", "x10", "focus_in", "focus_out", "string", "reply", "drop"]


class TokenPiece(NamedTuple):
    length: int  # in bytes; 0 for the start of a `string`
    kind: Kind  # `paste` is the start mark of a paste, `drop` is ignored


ESC: Final = 0x1B
_CSI = re.compile(rb"\x1b\[(?:<[\d;-]*[Mm]|[0-?]*[ -/]*[@-~])")  # mouse coordinates can be negative
_CSI_START = re.compile(rb"\x1b\[(?:<[\d;-]*|[0-?]*[ -/]*)")
_RXVT = re.compile(rb"\x1b\[\d{1,2}\$")
_LINUX = re.compile(rb"\x1b\[\[(?:[A-E]|\Z)")
_X10 = re.compile(rb"\x1b\[M(?:[\x20-\xff]{3}|[\x20-\xff]{0,2}\Z)")
_SS3 = re.compile(rb"\x1bO[1-9]?(?:[A-FHIMPQRSXa-dj-y]|\Z)")
_STRING = re.compile(rb"\x1b(?:\][\dlL]|P[\d>!$+|]|_[ -~])")
_KEY_CSI = re.compile(
    rb"\x1b\[(?:[\d:;]*[A-HPQSZa-du~]"
    rb"|\d+[\^@]"
    rb"|(?:1;(?:[2-9]|1[0-6]))?R)"  # F3; any other `R` is a cursor position
)
_SGR_MOUSE = re.compile(rb"\x1b\[<-?\d+;-?\d+;-?\d+[Mm]")
_LEADS = (b"[", b"O", b"]", b"P", b"_")


def first_piece(data: bytes, *, final: bool) -> TokenPiece | None:
    if data[0] != ESC:
        return _character(data, final=final)
    if len(data) == 1:
        return TokenPiece(1, "key") if final else None
    lead = data[1:2]
    if lead == b"\x1b":
        return _double_escape(data, final=final)
    if lead in _LEADS:
        if len(data) == 2:
            return TokenPiece(2, "key") if final else None  # Alt with the character
        if lead == b"[":
            return _csi(data, final=final)
        if lead == b"O":
            return _open_ended(_SS3.match(data), data, 3, final=final)
        return TokenPiece(0, "string") if _STRING.match(data) else TokenPiece(2, "key")
    inner = _character(data[1:5], final=final)
    return TokenPiece(inner.length + 1, "key") if inner else None


def _open_ended(match: re.Match[bytes] | None, data: bytes, least: int, *, final: bool) -> TokenPiece | None:
    """Match a key whose pattern also matches its own prefix at the end of the data."""
    if match is None:
        return TokenPiece(2, "key")
    if match.end() == len(data) and (match.end() < least or data[-1:].isdigit() or data.endswith(b"[[")):
        return TokenPiece(2, "key") if final else None
    return TokenPiece(match.end(), "key")


def _character(data: bytes, *, final: bool) -> TokenPiece | None:
    """Match one UTF-8 character (RFC 3629); only the first byte if it is invalid."""
    lead = data[0]
    length = 1 if lead < 0xC2 or lead > 0xF4 else 2 + (lead >= 0xE0) + (lead >= 0xF0)
    rest = data[1:length]
    if any(byte & 0xC0 != 0x80 for byte in rest):
        return TokenPiece(1, "key")
    if len(rest) == length - 1:
        return TokenPiece(length, "key")
    return TokenPiece(len(data), "key") if final else None


def _double_escape(data: bytes, *, final: bool) -> TokenPiece | None:
    """ESC before a key is Alt (rxvt, iTerm2); before anything else it is the Escape key."""
    if len(data) == 2:
        return TokenPiece(1, "key") if final else None
    if data[2:3] not in {b"[", b"O"}:
        return TokenPiece(1, "key")
    inner = first_piece(data[1:], final=final)
    if inner is None:
        return None
    return (
        TokenPiece(inner.length + 1, "key")
        if inner.kind == "key" and inner.length > 2
        else TokenPiece(1, "key")
    )


def _csi(data: bytes, *, final: bool) -> TokenPiece | None:
    if data.startswith(b"\x1b[["):
        return _open_ended(_LINUX.match(data), data, 4, final=final)
    if data.startswith(b"\x1b[M"):
        return _x10(data, final=final)
    if match := _RXVT.match(data):
        return TokenPiece(match.end(), "key")
    if match := _CSI.match(data):
        return TokenPiece(match.end(), _csi_kind(match[0]))
    return _broken_csi(data, final=final)


def _x10(data: bytes, *, final: bool) -> TokenPiece | None:
    match = _X10.match(data)
    if match is None:
        return TokenPiece(3, "drop")
    if match.end() == 6:
        return TokenPiece(6, "x10")
    return TokenPiece(match.end(), "drop") if final else None


def _csi_kind(sequence: bytes) -> Kind:
    known = _WHOLE.get(sequence)
    if known:
        return known
    if _KEY_CSI.fullmatch(sequence):
        return "key"
    return "sgr" if _SGR_MOUSE.fullmatch(sequence) else "reply"


_WHOLE: Final[dict[bytes, Kind]] = {
    PASTE_START: "paste",
    PASTE_END: "drop",
    b"\x1b[I": "focus_in",
    b"\x1b[O": "focus_out",
}


def _broken_csi(data: bytes, *, final: bool) -> TokenPiece | None:
    """A CSI sequence without its end: incomplete, or aborted by an invalid byte."""
    match = _CSI_START.match(data)
    end = match.end() if match else 2
    if end > MAX_SEQUENCE:
        return TokenPiece(end, "drop")
    if end == len(data) and not final:
        return None
    private = data[2:3] in {b"?", b">", b"<", b"="}
    return TokenPiece(end, "drop" if private else "key")


_SGR = re.compile(rb"\x1b\[<(-?\d+);(-?\d+);(-?\d+)([Mm])")
_WHEELS: Final[tuple[MouseKind, ...]] = ("wheel_up", "wheel_down", "wheel_left", "wheel_right")


def decode_mouse(raw: bytes) -> MouseEvent | None:
    if match := _SGR.fullmatch(raw):
        code, x, y = (int(field) for field in match.groups()[:3])
        return _event(code, x - 1, y - 1, released=match[4] == b"m")
    code, x, y = (byte - 32 for byte in raw[3:6])
    return _event(code, x - 1, y - 1, released=code & 0b11 == 3 and not code & 0b1110_0000)


def _event(code: int, x: int, y: int, *, released: bool) -> MouseEvent | None:
    if x < 0 or y < 0:
        return None
    low = code & 0b11
    kind: MouseKind = "release" if released else "press"
    if code & 128:
        button = 8 + low
    elif code & 64:
        kind, button = _WHEELS[low], 0
    else:
        button = 0 if low == 3 else low + 1
    if code & 32 or (kind == "press" and not button):
        kind = "move"
    return MouseEvent(x, y, button, kind, shift=bool(code & 4), alt=bool(code & 8), ctrl=bool(code & 16))


@dataclass(frozen=True, slots=True)
class KeyToken:
    event: KeyEvent  # without key and text if it is unknown
    raw: bytes


@dataclass(frozen=True, slots=True)
class TextToken:
    """Several keys read at once, each typing one UTF-8 character."""

    text: str

    def singly(self) -> list[KeyToken]:
        return [KeyToken(KeyEvent.of_text(character), character.encode()) for character in self.text]


@dataclass(frozen=True, slots=True)
class PasteToken:
    """A complete bracketed paste, with LF line ends."""

    text: str


@dataclass(frozen=True, slots=True)
class MouseToken:
    """A mouse report, in cells from 0."""

    event: MouseEvent


@dataclass(frozen=True, slots=True)
class FocusToken:
    """The terminal's window gained or lost focus."""

    focused: bool


@dataclass(frozen=True, slots=True)
class ReplyToken:
    """The terminal's answer to a query; never a key."""

    raw: bytes


Token = KeyToken | TextToken | PasteToken | MouseToken | FocusToken | ReplyToken


ESCAPE_DELAY: Final = 0.03  # seconds after which a lone ESC is the Escape key
SEQUENCE_DELAY: Final = 0.15  # seconds to wait for the rest of a sequence or a character
STRING_DELAY: Final = 1.0  # seconds to wait for the rest of a reply
PASTE_DELAY: Final = 10.0  # seconds without input after which a paste ends: the terminal is lost
# longest reply, in bytes; longer ones are skipped to their end
MAX_STRING: Final = 16 * 1024 * 1024

_NEAR = 64
# UTF-8 characters (RFC 3629 section 4) except C0, DEL and C1: too many to be typed between two reads, and few
# enough that other events get their turn.
_RUN = re.compile(
    rb"(?:[\x20-\x7e]|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]"
    rb"|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}){16,4096}"
)
_STRING_END = re.compile(rb"[\x07\x18\x1a\x1b]")


class Tokenizer:
    def __init__(self) -> None:
        self._data = bytearray()
        self._scanned = 0
        self._inside: TokenPiece | None = None  # the open paste or string

    @property
    def delay(self) -> float | None:
        """Seconds to wait for more input before `timeout()` must be called; None if nothing is pending."""
        if self._inside:
            return PASTE_DELAY if self._inside.kind == "paste" else STRING_DELAY
        if not self._data:
            return None
        return ESCAPE_DELAY if bytes(self._data[:3]) in {b"\x1b", b"\x1b\x1b"} else SEQUENCE_DELAY

    def feed(self, data: bytes) -> list[Token]:
        self._data += data
        return list(self._tokens(final=False))

    def timeout(self) -> list[Token]:
        """Return the tokens of pending input when nothing follows; an incomplete reply is dropped."""
        tokens: list[Token] = []
        if self._inside:
            if self._inside.kind == "paste":
                tokens.append(_paste_token(self._data))
            self._close(len(self._data))
        return tokens + list(self._tokens(final=True))

    def _tokens(self, *, final: bool) -> Iterator[Token]:
        start = 0
        while self._inside or start < len(self._data):
            if self._inside:
                token = self._paste() if self._inside.kind == "paste" else self._string()
                if self._inside:
                    return
                if token:
                    yield token
                continue
            if run := _RUN.match(self._data, start):
                yield TextToken(bytes(self._data[start : run.end()]).decode())
                start = run.end()
                continue
            piece = self._piece(start, final=final)
            if piece is None:
                break
            begin, start = start, start + piece.length
            if piece.kind in {"paste", "string"}:
                del self._data[:start]
                self._inside, self._scanned, start = piece, 2 if piece.kind == "string" else 0, 0
            else:
                yield from _tokens_of(piece, bytes(self._data[begin:start]))
        del self._data[:start]

    def _piece(self, start: int, *, final: bool) -> TokenPiece | None:
        """Return the next piece. Checks a few bytes first, so that a flood of keys takes linear time."""
        near = bytes(self._data[start : start + _NEAR])
        whole = len(near) == len(self._data) - start
        piece = first_piece(near, final=final and whole)
        if piece is not None or whole:
            return piece
        return first_piece(bytes(self._data[start : start + 2 * MAX_SEQUENCE]), final=final)

    def _paste(self) -> PasteToken | None:
        end = self._data.find(PASTE_END, self._scanned)
        if end < 0:
            self._scanned = max(0, len(self._data) - len(PASTE_END) + 1)
            return None
        token = _paste_token(self._data[:end])
        self._close(end + len(PASTE_END))
        return token

    def _string(self) -> ReplyToken | None:
        """Match a control string (ECMA-48 section 5.6), ended by ST, or by BEL as xterm allows for OSC."""
        while match := _STRING_END.search(self._data, self._scanned):
            at, self._scanned = match.start(), match.end()
            mark = self._data[at]
            if mark == 0x07 and self._data[1:2] != b"]":
                continue
            if mark != 0x1B:
                return self._end_string(match.end(), whole=mark == 0x07)
            if match.end() == len(self._data):
                self._scanned = at
                return None
            if self._data[match.end()] == 0x5C:
                return self._end_string(match.end() + 1, whole=True)
            return self._end_string(at, whole=False)
        self._scanned = len(self._data)
        if self._scanned > MAX_STRING:
            del self._data[2:]
            self._scanned = 2
            self._inside = TokenPiece(0, "drop")
        return None

    def _end_string(self, length: int, *, whole: bool) -> ReplyToken | None:
        keep = whole and self._inside == TokenPiece(0, "string")
        token = ReplyToken(bytes(self._data[:length])) if keep else None
        self._close(length)
        return token

    def _close(self, length: int) -> None:
        del self._data[:length]
        self._inside = None


def _paste_token(data: bytearray) -> PasteToken:
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return PasteToken(text.replace("\x00", ""))


def _tokens_of(piece: TokenPiece, raw: bytes) -> list[Token]:
    if piece.kind == "key":
        return _keys(raw)
    if piece.kind in {"sgr", "x10"}:
        event = decode_mouse(raw)
        return [MouseToken(event)] if event else []
    if piece.kind in {"focus_in", "focus_out"}:
        return [FocusToken(piece.kind == "focus_in")]
    return [ReplyToken(raw)] if piece.kind == "reply" else []


def _keys(raw: bytes) -> list[Token]:
    event = decode_key(raw)
    first = KeyToken(replace(event, text=event.text[:1]), raw)
    return [first, *(KeyToken(KeyEvent("", character), b"") for character in event.text[1:])]
