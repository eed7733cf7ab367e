"""Selecting by cells: wide characters, words, wrapped lines, output under the selection."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

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


def clicked(text: str, at: str) -> str:
    """Return what a double click on the first `at` in a text selects."""
    terminal = Terminal(100, 4, 100)
    terminal.feed(text.encode())
    column = cell_len(text[: text.index(at)])
    return select(terminal, (0, column), (0, column), Unit.WORD).text


@pytest.mark.parametrize(
    ("text", "at", "word"),
    [
        ("（slice 4 5b5fcc0715）：整合原本", "5b5", "5b5fcc0715"),
        ("（slice 4 5b5fcc0715）：整合原本", "合", "整合原本"),
        ("（slice 4 5b5fcc0715）：整合原本", "）", "）"),
        ("「名前」、次のデータ・一覧", "デ", "次のデータ"),
        ("a→b done… “quoted”—then", "b", "b"),
        ("a→b done… “quoted”—then", "done", "done"),
        ("a→b done… “quoted”—then", "quo", "quoted"),
        ("naïve e\u0301te\u0301 x", "te", "e\u0301te\u0301"),
        ("│main✔ok", "main", "main"),
        ("key=value-1, next", "val", "key=value-1"),
    ],
)
def test_a_double_click_ends_words_by_the_class_of_their_characters(text, at, word):
    assert clicked(text, at) == word


@pytest.mark.parametrize(
    ("text", "at", "whole"),
    [
        (
            "see https://a.org/Foo_(bar)?x=1&y=[2],3;z#top.",
            "bar",
            "https://a.org/Foo_(bar)?x=1&y=[2],3;z#top",
        ),
        ("(https://a.org/b), and", "org", "https://a.org/b"),
        ("[text](https://a.org/b) and", "a.org", "https://a.org/b"),
        ("[text](https://a.org/b) and", "text", "text"),
        ("詳細はhttps://a.org/日本（参考）", "a.org", "https://a.org/日本"),
        ("<http://localhost:8100/>", "local", "http://localhost:8100/"),
        ("Read(src/app.py) done", "app", "src/app.py"),
        ("app/(shop)/[id]/page.tsx:12:5: no", "shop", "app/(shop)/[id]/page.tsx:12:5"),
        ("in ~/My\\ Files/a.txt.", "Files", "~/My\\ Files/a.txt"),
        ("cat '/tmp/My Files (1)/a.txt' | b", "(1", "/tmp/My Files (1)/a.txt"),
        ('"/a" or "/b"', "or", "or"),
        ("「/設計/図.md」を開く", "図", "/設計/図.md"),
        ("+++ b/docs/keys.md", "keys", "b/docs/keys.md"),
    ],
)
def test_a_double_click_selects_a_url_or_a_path_whole(text, at, whole):
    assert clicked(text, at) == whole


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
