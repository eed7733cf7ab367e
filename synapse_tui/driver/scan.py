"""Where the first piece of the outer terminal's bytes ends, and what it is (ECMA-48 section 5.4)."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from synapse_tui.terminal.input import PASTE_END, PASTE_START

MAX_SEQUENCE: Final = 4096
"""Longest CSI sequence, in bytes."""

Kind = Literal["key", "paste", "sgr", "x10", "focus_in", "focus_out", "string", "reply", "drop"]


class Piece(NamedTuple):
    """A piece that is whole.

    Attributes:
        length: Its length in bytes; 0 for the beginning of a `string`.
        kind: What it is; `paste` is the mark where one begins, `drop` means nothing.
    """

    length: int
    kind: Kind


ESC: Final = 0x1B
_CSI = re.compile(rb"\x1b\[(?:<[\d;-]*[Mm]|[0-?]*[ -/]*[@-~])")  # some mice have negative coordinates
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
_SGR = re.compile(rb"\x1b\[<-?\d+;-?\d+;-?\d+[Mm]")
_LEADS = (b"[", b"O", b"]", b"P", b"_")


def first_piece(data: bytes, *, final: bool) -> Piece | None:
    """Measure the piece that the data begins with.

    Args:
        data: At least one byte; not within a paste or a string.
        final: Whether nothing more will follow, so that an unfinished piece is taken for what it can be.

    Returns:
        The piece, or None when more bytes must come first; never None when final.
    """
    if data[0] != ESC:
        return _character(data, final=final)
    if len(data) == 1:
        return Piece(1, "key") if final else None
    lead = data[1:2]
    if lead == b"\x1b":
        return _double_escape(data, final=final)
    if lead in _LEADS:
        if len(data) == 2:
            return Piece(2, "key") if final else None  # Alt with the character
        return _sequence(data, lead, final=final)
    inner = _character(data[1:5], final=final)
    return Piece(inner.length + 1, "key") if inner else None


def _sequence(data: bytes, lead: bytes, *, final: bool) -> Piece | None:
    if lead == b"[":
        return _csi(data, final=final)
    if lead == b"O":
        return _open_ended(_SS3.match(data), data, 3, final=final)
    return Piece(0, "string") if _STRING.match(data) else Piece(2, "key")


def _open_ended(match: re.Match[bytes] | None, data: bytes, least: int, *, final: bool) -> Piece | None:
    """A key whose pattern also matches its own beginning at the end of the data."""
    if match is None:
        return Piece(2, "key")
    if match.end() == len(data) and (match.end() < least or data[-1:].isdigit() or data.endswith(b"[[")):
        return Piece(2, "key") if final else None
    return Piece(match.end(), "key")


def _character(data: bytes, *, final: bool) -> Piece | None:
    """One character in UTF-8 (RFC 3629); the first byte alone when it is broken."""
    lead = data[0]
    length = 1 if lead < 0xC2 or lead > 0xF4 else 2 + (lead >= 0xE0) + (lead >= 0xF0)
    rest = data[1:length]
    if any(byte & 0xC0 != 0x80 for byte in rest):
        return Piece(1, "key")
    if len(rest) == length - 1:
        return Piece(length, "key")
    return Piece(len(data), "key") if final else None


def _double_escape(data: bytes, *, final: bool) -> Piece | None:
    """ESC before a key means Alt (rxvt, iTerm2); before all else it is the Escape key."""
    if len(data) == 2:
        return Piece(1, "key") if final else None
    if data[2:3] not in {b"[", b"O"}:
        return Piece(1, "key")
    inner = first_piece(data[1:], final=final)
    if inner is None:
        return None
    return Piece(inner.length + 1, "key") if inner.kind == "key" and inner.length > 2 else Piece(1, "key")


def _csi(data: bytes, *, final: bool) -> Piece | None:
    if data.startswith(b"\x1b[["):
        return _open_ended(_LINUX.match(data), data, 4, final=final)
    if data.startswith(b"\x1b[M"):
        return _x10(data, final=final)
    if match := _RXVT.match(data):
        return Piece(match.end(), "key")
    if match := _CSI.match(data):
        return Piece(match.end(), _csi_kind(match[0]))
    return _broken_csi(data, final=final)


def _x10(data: bytes, *, final: bool) -> Piece | None:
    match = _X10.match(data)
    if match is None:
        return Piece(3, "drop")
    if match.end() == 6:
        return Piece(6, "x10")
    return Piece(match.end(), "drop") if final else None


def _csi_kind(sequence: bytes) -> Kind:
    known = _WHOLE.get(sequence)
    if known:
        return known
    if _KEY_CSI.fullmatch(sequence):
        return "key"
    return "sgr" if _SGR.fullmatch(sequence) else "reply"


_WHOLE: Final[dict[bytes, Kind]] = {
    PASTE_START: "paste",
    PASTE_END: "drop",
    b"\x1b[I": "focus_in",
    b"\x1b[O": "focus_out",
}


def _broken_csi(data: bytes, *, final: bool) -> Piece | None:
    """A CSI sequence without its end: unfinished, or cut off by a byte that cannot stand in one."""
    match = _CSI_START.match(data)
    end = match.end() if match else 2
    if end > MAX_SEQUENCE:
        return Piece(end, "drop")
    if end == len(data) and not final:
        return None
    private = data[2:3] in {b"?", b">", b"<", b"="}
    return Piece(end, "drop" if private else "key")
