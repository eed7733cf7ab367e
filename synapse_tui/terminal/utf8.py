"""UTF-8 as xterm decodes it: a malformed character is one replacement character, however it is cut."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_ERRORS = "synapse-tui-utf8"
_LONGEST = 6


class Utf8Decoder(codecs.BufferedIncrementalDecoder):
    """Decodes pieces of UTF-8; the first bytes of a character are kept until the others come.

    Overlong forms, surrogates and what is beyond Unicode are read to their end and replaced by one U+FFFD
    (xterm's `decodeUtf8` without the resource `utf8Weblike`; so does libvterm).
    """

    def _buffer_decode(self, data: Buffer, _errors: str, final: bool) -> tuple[str, int]:
        raw = bytes(data)
        end = len(raw) if final else _whole(raw)
        return raw[:end].decode("utf-8", _ERRORS), end


def _length(lead: int) -> int:
    """Bytes of the character that a byte starts, up to the six of RFC 2279; 1 for one that starts none."""
    return 1 if lead < 0xC0 or lead > 0xFD else 8 - (lead ^ 0xFF).bit_length()


def _whole(data: bytes) -> int:
    """Where the last character ends that is complete."""
    end = len(data)
    for at in range(end - 1, max(end - _LONGEST, -1), -1):
        byte = data[at]
        if byte >= 0xC0:
            return at if at + _length(byte) > end else end
        if byte < 0x80:
            break
    return end


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace a malformed character with all the bytes that it claims."""
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start + 1
    end = min(error.start + _length(data[error.start]), len(data))
    while at < end and 0x80 <= data[at] < 0xC0:
        at += 1
    return "\ufffd", at


codecs.register_error(_ERRORS, _replace)
