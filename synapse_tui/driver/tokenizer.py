"""Bytes of the outer terminal to tokens: keys, whole pastes, mouse, focus, replies.

Pure: bytes in, tokens out, in linear time, wherever the bytes are split. What is not yet whole is kept; the
caller waits `delay` seconds for more and then calls `timeout()`. A reply or a paste is never taken for keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from synapse_tui.terminal.input import PASTE_END, KeyEvent

from .decode import decode_key
from .mouse import decode_mouse
from .scan import MAX_SEQUENCE, Piece, first_piece
from .tokens import FocusToken, KeyToken, MouseToken, PasteToken, ReplyToken, TextToken, Token

ESCAPE_DELAY: Final = 0.03
"""Seconds after which a lone ESC is the Escape key."""
SEQUENCE_DELAY: Final = 0.15
"""Seconds to wait for the rest of a sequence or a character."""
STRING_DELAY: Final = 1.0
"""Seconds to wait for the rest of a reply."""
PASTE_DELAY: Final = 10.0
"""Seconds without a byte after which a paste counts as over: its terminal is lost."""
MAX_STRING: Final = 16 * 1024 * 1024
"""Longest reply that is kept, in bytes; a longer one is skipped up to its end."""

_NEAR = 64
# Characters in UTF-8 (RFC 3629 section 4) but for the controls C0, DEL and C1; so few that a keyboard cannot
# have typed them between two reads, and so many at most that other events still get their turn.
_RUN = re.compile(
    rb"(?:[\x20-\x7e]|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]"
    rb"|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}){16,4096}"
)
_STRING_END = re.compile(rb"[\x07\x18\x1a\x1b]")


class Tokenizer:
    """Holds what is pending between two reads.

    Args:
        escape_delay: Seconds after which a lone ESC is the Escape key.
    """

    def __init__(self, escape_delay: float = ESCAPE_DELAY) -> None:
        self._escape_delay = escape_delay
        self._data = bytearray()
        self._scanned = 0
        self._inside: Piece | None = None  # the paste or the string that is open

    @property
    def delay(self) -> float | None:
        """Seconds to wait for more before `timeout()` must be called; None when nothing is pending."""
        if self._inside:
            return PASTE_DELAY if self._inside.kind == "paste" else STRING_DELAY
        if not self._data:
            return None
        return self._escape_delay if bytes(self._data[:3]) in {b"\x1b", b"\x1b\x1b"} else SEQUENCE_DELAY

    def feed(self, data: bytes) -> list[Token]:
        """Take bytes.

        Args:
            data: What was read.

        Returns:
            The tokens that are whole by now.
        """
        self._data += data
        return list(self._tokens(final=False))

    def timeout(self) -> list[Token]:
        """The tokens that the pending bytes are when nothing follows them; a part of a reply is none."""
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

    def _piece(self, start: int, *, final: bool) -> Piece | None:
        """The next piece; looks at a few bytes first, so that a flood of keys takes linear time."""
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
        """A control string (ECMA-48 section 5.6); ended by ST, or by BEL as xterm allows for OSC."""
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
            self._inside = Piece(0, "drop")
        return None

    def _end_string(self, length: int, *, whole: bool) -> ReplyToken | None:
        keep = whole and self._inside == Piece(0, "string")
        token = ReplyToken(bytes(self._data[:length])) if keep else None
        self._close(length)
        return token

    def _close(self, length: int) -> None:
        del self._data[:length]
        self._inside = None


def _paste_token(data: bytearray) -> PasteToken:
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return PasteToken(text.replace("\x00", ""))


def _tokens_of(piece: Piece, raw: bytes) -> list[Token]:
    if piece.kind == "key":
        return _keys(raw)
    if piece.kind in {"sgr", "x10"}:
        event = decode_mouse(raw)
        return [MouseToken(event)] if event else []
    if piece.kind in {"focus_in", "focus_out"}:
        return [FocusToken(piece.kind == "focus_in")]
    return [ReplyToken(raw)] if piece.kind == "reply" else []


def _keys(raw: bytes) -> list[Token]:
    """The key; a text of several characters (an input method's) becomes a key for each."""
    event = decode_key(raw)
    first = KeyToken(replace(event, text=event.text[:1]), raw)
    return [first, *(KeyToken(KeyEvent("", character), b"") for character in event.text[1:])]
