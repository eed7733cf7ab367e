"""A screen that is read bit by bit reads as one that is read at once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.agents.composer import ComposerReader, ScreenText, read_composer
from synapse_tui.terminal import Terminal
from tests.profiles import shipped

CLAUDE = shipped().profiles["claude"]
FRAME = "─" * 40
COMPOSER = f"\x1b[2J\x1b[5;1H{FRAME}\x1b[6;1H❯ \x1b[7;1H{FRAME}\x1b[8;1H  ? for shortcuts\x1b[6;3H"

PIECES = st.sampled_from(
    [
        COMPOSER,
        "\x1b[2mTry it\x1b[0m\x1b[6;3H",
        "\x1b[6;3HTry it",
        "\x1b[6;3H\x1b[2mTry it\x1b[22m\x1b[6;3H",
        "\x1b[6;9H",
        "\x1b[3;1Hworking\x1b[6;3H",
        "\x1b[6;3H\x1b[K",
        "漢字",
        "\r\n" * 3,
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?2026h",
        "\x1b[?2026l",
        "\x1b[10;1H ❯ 1. Yes\r\n   2. No\r\n Esc to cancel",
        "\x1b[2J\x1b[H",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(PIECES, st.sampled_from([None, None, None, (30, 8), (40, 12)])), max_size=12))
def test_what_was_read_before_makes_no_difference(steps):
    terminal = Terminal(40, 12)
    text, reader = ScreenText(), ComposerReader(CLAUDE)
    for data, size in steps:
        terminal.feed(data.encode())
        if size is not None:
            terminal.resize(*size)
        text.take(terminal)
        assert list(text.rows) == list(ScreenText.of(terminal).rows)
        for count in (1, 3, 40):
            assert text.tail(count) == ScreenText.of(terminal).tail(count)
        assert reader.read(terminal, text) == read_composer(terminal, CLAUDE)


def test_it_tells_what_changed():
    terminal = Terminal(20, 4)
    text = ScreenText()
    text.take(terminal)
    terminal.feed(b"one")
    assert text.take(terminal) == (True, True)
    assert text.take(terminal) == (False, False)
    terminal.feed(b"\x1b[1;1H")
    assert text.take(terminal) == (False, True), "the cursor moved"
    terminal.feed(b"\x1b[1mone")
    assert text.take(terminal) == (False, True), "the same text in another style"


def test_a_suggestion_that_becomes_a_draft_of_the_same_words_is_seen():
    terminal = Terminal(40, 12)
    text, reader = ScreenText(), ComposerReader(CLAUDE)
    terminal.feed(f"{COMPOSER}\x1b[2mTry it\x1b[22m\x1b[6;3H".encode())
    text.take(terminal)
    assert reader.read(terminal, text).placeholder
    terminal.feed(b"Try it\x1b[6;3H")
    text.take(terminal)
    assert reader.read(terminal, text).draft == "Try it"


def test_rows_of_another_terminal_are_read_from_the_beginning():
    first, second = Terminal(20, 4), Terminal(20, 4)
    text = ScreenText()
    first.feed(b"first")
    text.take(first)
    text.take(second)
    assert list(text.rows) == []
    second.feed(b"second")
    text.take(second)
    assert text.tail(1) == "second"
