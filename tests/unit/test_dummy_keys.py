"""The dummy's input: keys, text and pastes out of any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.dummy.terminal import Key, KeyDecoder, Paste, Text


def decode(data: bytes, *, paste: bool = True) -> list[Key | Text | Paste]:
    decoder = KeyDecoder(paste=paste)
    return [*decoder.feed(data), *decoder.flush()]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\r", "enter"),
        (b"\n", "ctrl+j"),
        (b"\x1b\r", "alt+enter"),
        (b"\x1b[13;2u", "shift+enter"),
        (b"\x1b[13;2:1u", "shift+enter"),
        (b"\x1b[27;2;13~", "shift+enter"),
        (b"\x1b[13;5u", "ctrl+enter"),
        (b"\x1b", "escape"),
        (b"\x1b[27u", "escape"),
        (b"\x1b[99;5u", "ctrl+c"),
        (b"\x03", "ctrl+c"),
        (b"\x15", "ctrl+u"),
        (b"\x7f", "backspace"),
        (b"\x1b\x7f", "alt+backspace"),
        (b"\x1b[A", "up"),
        (b"\x1bOA", "up"),
        (b"\x1b[1;5C", "ctrl+right"),
        (b"\x1b[3~", "delete"),
        (b"\x1b[Z", "shift+tab"),
        (b"\t", "tab"),
        (b"\x1bb", "alt+b"),
    ],
)
def test_keys(data, name):
    assert decode(data) == [Key(name)]


@pytest.mark.parametrize(
    "data",
    [b"\x1b[?62;c", b"\x1b]11;rgb:0/0/0\x1b\\", b"\x1b[?1u", b"\x1b[13;1:3u", b"\x1b[I", b"\x1bP1$r0m\x1b\\"],
)
def test_replies_and_releases_are_no_keys(data):
    assert decode(data + b"a") == [Text("a")]


def test_escape_waits_for_what_may_follow():
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.waiting
    assert decoder.feed(b"[A") == [Key("up")]
    assert not decoder.waiting
    decoder.feed(b"\x1b")
    assert decoder.flush() == [Key("escape")]
    assert decoder.flush() == []


PIECES = st.lists(
    st.sampled_from([
        b"a", "語".encode(), "👩\u200d💻".encode(), b"\r", b"\x1b[A", b"\x1bOB",
        b"\x1b[13;2u", b"\x1b\r", b"\x15",
        b"\x1b[200~long\r\n\xe8\xaa\x9e \x1b[20 text\x1b[201~", b"\x1b]11;x\x1b\\",
    ]),
    max_size=8,
)  # fmt: skip


def merged(tokens: list[Key | Text | Paste]) -> list[Key | Text | Paste]:
    """Runs of text joined: where they are cut depends on the reads."""
    result: list[Key | Text | Paste] = []
    for token in tokens:
        if result and isinstance(token, Text) and isinstance(result[-1], Text):
            result[-1] = Text(result[-1].text + token.text)
        else:
            result.append(token)
    return result


@given(PIECES, st.data())
def test_tokens_do_not_depend_on_the_reads(pieces, data):
    whole = b"".join(pieces)
    decoder = KeyDecoder()
    expected = merged(KeyDecoder().feed(whole))
    tokens = []
    place = 0
    while place < len(whole):
        size = data.draw(st.integers(1, 7))
        tokens += decoder.feed(whole[place : place + size])
        place += size
    assert merged(tokens) == expected
