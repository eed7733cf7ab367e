"""Selecting by cells: wide characters, words, wrapped lines, output under the selection."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import Terminal
from synapse_tui.widgets.scroll_mode import Selection, Unit
from synapse_tui.widgets.viewport import Point, Viewport


@pytest.fixture
def terminal():
    return Terminal(10, 4, 100)


def select(
    terminal: Terminal, start: tuple[int, int], end: tuple[int, int], unit: Unit = Unit.CELL
) -> Selection:
    viewport = Viewport(terminal)
    selection = Selection(viewport, Point(viewport.top + start[0], start[1]), unit)
    selection.extend(Point(viewport.top + end[0], end[1]))
    return selection


def shown(viewport: Viewport) -> list[str]:
    found = (viewport.shown(row) for row in range(viewport.height))
    return [line.text.rstrip() for line in found if line is not None]


def test_both_ends_belong_to_the_selection(terminal):
    terminal.feed(b"abcdef")
    assert select(terminal, (0, 1), (0, 3)).text == "bcd"
    assert select(terminal, (0, 3), (0, 1)).text == "bcd"


def test_wide_characters_are_taken_whole_from_either_half(terminal):
    terminal.feed("a漢字b".encode())
    assert select(terminal, (0, 2), (0, 3)).text == "漢字"
    assert select(terminal, (0, 2), (0, 2)).text == "漢"
    assert select(terminal, (0, 4), (0, 2)).columns(select(terminal, (0, 0), (0, 0)).start.line, 10) == (1, 5)


def test_wrapped_rows_are_one_line_and_trailing_blanks_are_dropped(terminal):
    terminal.feed(b"0123456789abc   \r\nnext  ")
    assert select(terminal, (0, 5), (2, 9)).text == "56789abc\nnext"


def test_a_double_click_selects_a_word_over_the_wrap(terminal):
    terminal.feed(b"see path/to/file.py, ok")
    assert select(terminal, (1, 2), (1, 2), Unit.WORD).text == "path/to/file.py"
    assert select(terminal, (0, 3), (0, 3), Unit.WORD).text == ""


def test_a_triple_click_selects_the_logical_line(terminal):
    terminal.feed(b"0123456789abc\r\nnext")
    assert select(terminal, (1, 0), (1, 0), Unit.LINE).text == "0123456789abc"


def test_a_selection_by_words_grows_by_words_in_both_directions(terminal):
    terminal.feed(b"one two b")
    assert select(terminal, (0, 5), (0, 1), Unit.WORD).text == "one two"


def test_lines_keep_their_place_while_output_pushes_them_up(terminal):
    terminal.feed(b"a\r\nb\r\nc\r\nd")
    viewport = Viewport(terminal)
    selection = Selection(viewport, Point(viewport.top + 1, 0))
    selection.extend(Point(viewport.top + 1, 0))
    terminal.feed(b"\r\ne\r\nf\r\ng")
    viewport.absorb()
    assert selection.text == "b"
    assert not selection.changed()


def test_a_scrolled_view_stays_on_restored_rows_when_the_program_erases_its_own(terminal):
    terminal.restore(b"\r\n".join(b"earlier %d" % number for number in range(9)))
    terminal.feed(b"x\r\n" * 12)
    viewport = Viewport(terminal)
    viewport.absorb()
    viewport.scroll_to(len(terminal.scrollback) - 1)
    before = shown(viewport)
    assert before[0] == "earlier 1"
    terminal.feed(b"\x1b[2J\x1b[3J\x1b[Hy")
    viewport.absorb()
    assert shown(viewport) == before
    viewport.scroll_to(2)
    terminal.feed(b"\x1b[Hz")
    assert list(viewport.absorb()) == [2]


def test_rows_that_move_into_a_scrolled_view_are_drawn_again(terminal):
    terminal.restore(b"a\r\nb\r\nc")
    terminal.feed(b"1\r\n2\r\n3\r\n4\r\n5")
    viewport = Viewport(terminal)
    viewport.absorb()
    viewport.scroll_to(3)
    terminal.feed(b"\x1b[3J")
    assert set(viewport.absorb()) >= {2, 3}
    assert shown(viewport) == ["b", "c", "2", "3"]


def test_output_under_the_selection_is_noticed(terminal):
    terminal.feed(b"abc\r\ndef")
    selection = select(terminal, (0, 0), (0, 2))
    terminal.feed(b"\x1b[4;1Hother")
    assert not selection.changed()
    terminal.feed(b"\x1b[1;2Hx")
    assert selection.changed()
