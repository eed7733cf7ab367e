"""Lines are fitted into cells: what is cut, and where; no character is halved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from synapse_tui.widgets.fit import Hint, Piece, distinct, fill, hint_row, line, shorten, width_of


@pytest.mark.parametrize(
    ("text", "width", "cut", "shown"),
    [
        ("release-notes-writer", 13, "middle", "releas…writer"),
        ("the notes of 0.9 are in CHANGELOG", 20, "end", "the notes of 0.9…"),
        ("the notes of 0.9 are", 18, "end", "the notes of 0.9…"),
        ("wonderfulness", 8, "end", "wonderf…"),
        ("src/cart/totals.py", 12, "start", "…t/totals.py"),
        ("翻訳", 3, "middle", "翻…"),
        ("翻訳機", 4, "start", "…機"),
        ("ab", 1, "end", "…"),
        ("ab", 0, "end", ""),
    ],
)
def test_each_kind_of_text_is_cut_at_its_own_place(text, width, cut, shown):
    assert shorten(text, width, cut) == shown


def test_names_that_differ_at_the_end_stay_different():
    assert distinct(("dummy-8190", "dummy-8191", "bob"), 8) == ["dumm…190", "dumm…191", "bob"]
    assert distinct(("翻訳者一号", "翻訳者二号"), 7) == ["翻…一号", "翻…二号"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, "Enter open  m message  / find  Esc back"),
        (38, "Enter open  m message  Esc back"),
        (20, "Enter open  Esc back"),
        (19, "Esc back"),
        (7, ""),
    ],
)
def test_a_row_of_hints_keeps_the_way_out(width, shown):
    words = ["Enter open", "m message", "/ find", "Esc back"]
    row = hint_row([Hint(*each.split(" ", 1)) for each in words], width)
    assert "".join(piece.text for piece in row) == shown


def test_a_way_out_is_one_whichever_key_it_has():
    row = hint_row([Hint("Enter", "send your line", "enter"), Hint("^] .", "end the tour", "escape")], 20)
    assert "".join(piece.text for piece in row) == "^] . end the tour"


pieces = st.lists(
    st.builds(
        Piece,
        st.text(st.sampled_from("ab 翻é\u0301"), max_size=12),
        cut=st.sampled_from([None, "end", "middle", "start"]),
    ),
    max_size=5,
)


@given(pieces, pieces, st.integers(0, 60))
def test_a_row_has_exactly_its_width(left, right, width):
    assert width_of(fill(left, right, width)) == width
    assert line(width, left, right).cell_length == width


def test_what_may_be_cut_gives_way_before_anything_is_left_out():
    left = [Piece("▲ "), Piece("release-notes-writer", cut="middle"), Piece("  claude")]
    row = "".join(piece.text for piece in fill(left, [Piece(" 0:19")], 28))
    assert row == "▲ releas…writer  claude 0:19"
    assert cell_len(row) == 28
