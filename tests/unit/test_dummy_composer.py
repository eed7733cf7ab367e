"""The dummy's composer: editing, wide characters, pastes, history, rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.dummy.composer import Composer
from synapse_tui.dummy.widths import width


def typed(*parts: str) -> Composer:
    """A composer after text and `<key>`s."""
    composer = Composer()
    for part in parts:
        if part.startswith("<"):
            assert composer.press(part.strip("<>"))
        else:
            composer.insert(part)
    return composer


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["hello"], "hello"),
        (["helo", "<left>", "l"], "hello"),
        (["日本", "<backspace>", "語"], "日語"),
        (["👩\u200d💻x", "<backspace>", "<backspace>"], ""),
        (["e", "\u0301", "<backspace>"], ""),
        (["one two", "<ctrl+w>"], "one "),
        (["one two", "<alt+backspace>"], "one "),
        (["a\nb", "<ctrl+u>"], ""),
        (["abc", "<home>", "<delete>"], "bc"),
        (["abc", "<ctrl+a>", "<right>", "<ctrl+k>"], "a"),
        (["ab\ncd", "<up>", "X"], "abX\ncd"),
        (["日本\nabcd", "<left>", "<left>", "<up>", "X"], "日X本\nabcd"),
        (["ab\ncd", "<up>", "<down>", "X"], "ab\ncdX"),
        (["a\tb\x07\x1b"], "a\tb"),
    ],
)
def test_editing(parts, text):
    assert typed(*parts).text == text


def test_history_brings_back_what_was_sent_pastes_too():
    composer = Composer()
    composer.insert("first")
    composer.take()
    composer.paste("p" * 2000)
    composer.take()
    composer.press("up")
    assert composer.shown == "[Pasted text #1]"
    composer.press("up")
    assert composer.text == "first"
    composer.press("up")
    assert composer.text == "first"
    composer.press("down")
    composer.press("down")
    assert composer.empty


@pytest.mark.parametrize(
    ("parts", "cells", "rows", "cursor"),
    [
        ([], 10, [""], (0, 0)),
        (["abc"], 10, ["abc"], (3, 0)),
        (["a\nb\n"], 10, ["a", "b", ""], (0, 2)),
        (["abcdefgh"], 4, ["abcd", "efgh", ""], (0, 2)),
        (["abcdefgh", "<left>"], 4, ["abcd", "efgh"], (3, 1)),
        (["日本語"], 5, ["日本", "語"], (2, 1)),
        (["日本語", "<left>"], 5, ["日本", "語"], (0, 1)),
        (["abcd\nx", "<up>", "<end>"], 4, ["abcd", "", "x"], (0, 1)),
        (["a\tb"], 10, ["a    b"], (6, 0)),
    ],
)
def test_rows_and_cursor(parts, cells, rows, cursor):
    layout = typed(*parts).layout(cells)
    assert (layout.rows, (layout.x, layout.y)) == (rows, cursor)


KEYS = ["left", "right", "home", "end", "backspace", "delete", "up", "down", "ctrl+w", "ctrl+k"]


@given(
    st.lists(
        st.one_of(st.sampled_from(KEYS).map("<{}>".format), st.text("ab 日e\u0301\n", min_size=1, max_size=6))
    ),
    st.integers(2, 12),
)
def test_rows_hold_the_text_and_the_cursor(parts, cells):
    composer = typed(*parts)
    layout = composer.layout(cells)
    assert "".join(layout.rows) == composer.text.replace("\n", "")
    assert all(width(row) <= cells for row in layout.rows)
    assert 0 <= layout.y < len(layout.rows)
    assert 0 <= layout.x < cells
    assert layout.x <= width(layout.rows[layout.y])
