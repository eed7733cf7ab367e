"""UTF-8: what is well formed as RFC 3629 has it, what is not as xterm replaces it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from synapse_tui.terminal.stream import Utf8Decoder
from tests.terminal.terminal_kit import fed, rows

BYTES = b" A\x80\x9b\xa0\xbf\xc0\xc3\xe0\xe3\xed\xf0\xf4\xf5\xf8\xfc\xfe\xff"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xc3\xa9\xe3\x81\x82\xf0\x9f\x91\x8d", "\u00e9\u3042\U0001f44d"),
        (b"\xc2!\xe0!\xe0\xa0!", "\ufffd!\ufffd!\ufffd!"),
        (b"\xc2\xc3\xa9\xe0\xc3\xa9", "\ufffd\u00e9\ufffd\u00e9"),
        (b"\xc0\x80\xc1\xbf", "\ufffd\ufffd"),
        (b"\xe0\x80\x80\xe0\x9f\xbf", "\ufffd\ufffd"),
        (b"\xf0\x80\x80\x80\xf0\x8f\xbf\xbf", "\ufffd\ufffd"),
        (b"\xed\xa0\x80\xed\xbf\xbf", "\ufffd\ufffd"),
        (b"\xf7\xbf\xbf\xbf\xf8\x88\x80\x80\x80", "\ufffd\ufffd"),
        (b"\x80\x80\xfe\xffa", "\ufffd\ufffd\ufffd\ufffda"),
    ],
)
def test_decoding(data: bytes, shown: str) -> None:
    """xterm, ptydata.c `decodeUtf8`: overlong forms, surrogates and too great numbers are one character."""
    assert Utf8Decoder().decode(data, final=True) == shown
    assert "".join(rows(fed(data, columns=40))) == shown


@given(strategies.binary(max_size=40))
def test_what_is_well_formed_is_as_python_has_it(data: bytes) -> None:
    try:
        expected = data.decode()
    except UnicodeDecodeError:
        expected = Utf8Decoder().decode(data, final=True)
        assert "\ufffd" in expected
    assert Utf8Decoder().decode(data, final=True) == expected


@given(strategies.lists(strategies.lists(strategies.sampled_from(BYTES), max_size=6).map(bytes), max_size=8))
def test_pieces_are_as_the_whole(pieces: list[bytes]) -> None:
    decoder = Utf8Decoder()
    text = "".join(decoder.decode(piece) for piece in pieces) + decoder.decode(b"", final=True)
    assert text == Utf8Decoder().decode(b"".join(pieces), final=True)


def test_the_bytes_of_an_open_character_are_kept() -> None:
    decoder = Utf8Decoder()
    assert decoder.decode(b"a\xe3\x81") == "a"
    assert decoder.getstate()[0] == b"\xe3\x81"
    assert decoder.decode(b"\x82") == "\u3042"
