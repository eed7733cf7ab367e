"""Changes of size, and the scrollback: kept, bounded, wrapped anew, searched."""

from __future__ import annotations

import random
import re
import time
import tracemalloc

import pytest

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.scrollback import Scrollback, size_of
from synapse_tui.terminal.style import StyleTable
from tests.terminal.terminal_kit import at, fed, look, rows


def all_text(terminal: Terminal) -> list[str]:
    """Logical lines of the scrollback and the screen."""
    lines: list[str] = []
    for line in [*terminal.scrollback, *(terminal.line(y) for y in range(terminal.lines))]:
        if line.wrapped and lines:
            lines[-1] += line.text
        else:
            lines.append(line.text)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def test_a_long_line_is_wrapped_anew() -> None:
    terminal = fed("abcdefghijklmno\r\nx")
    terminal.resize(6, 4)
    assert rows(terminal) == ["abcdef", "ghijkl", "mno", "x"]
    assert at(terminal) == (1, 3)
    terminal.resize(20, 4)
    assert rows(terminal) == ["abcdefghijklmno", "x"]
    assert at(terminal) == (1, 1)


def test_lines_that_no_longer_fit_go_to_the_scrollback_and_come_back() -> None:
    terminal = fed("1\r\n2\r\n3\r\n4")
    terminal.resize(10, 2)
    assert rows(terminal) == ["3", "4"]
    assert [line.text for line in terminal.scrollback] == ["1", "2"]
    terminal.resize(10, 4)
    assert rows(terminal) == ["1", "2", "3", "4"]
    assert at(terminal) == (1, 3)


def test_rows_below_the_cursor_go_first() -> None:
    terminal = fed("1\r\n2\r\n3\r\n4\x1b[2;1H")
    terminal.resize(10, 2)
    assert rows(terminal) == ["1", "2"]
    assert len(terminal.scrollback) == 0


def test_a_line_that_straddles_the_top_is_wrapped_as_one() -> None:
    terminal = fed("abcdefghijklmnopqrst\r\n1\r\n2\r\n3")
    assert [line.text for line in terminal.scrollback] == ["abcdefghij"]
    terminal.resize(20, 5)
    assert rows(terminal) == ["abcdefghijklmnopqrst", "1", "2", "3"]


def test_colors_move_with_the_text() -> None:
    terminal = fed("abcd\x1b[31mefghijkl\x1b[0mmn")
    terminal.resize(5, 4)
    assert rows(terminal) == ["abcde", "fghij", "klmn"]
    assert [look(terminal, 4, 0).fg, look(terminal, 0, 1).fg, look(terminal, 1, 2).fg] == [1, 1, 1]
    assert [look(terminal, 3, 0).fg, look(terminal, 2, 2).fg] == [-1, -1]


def test_the_blank_before_a_wide_character_that_did_not_fit_is_no_text() -> None:
    for wide in ("漢", "⚠️"):
        terminal = fed(f"abcd{wide}x", columns=5)
        terminal.resize(10, 4)
        assert rows(terminal) == [f"abcd{wide}x"]


def test_wide_characters_are_not_torn() -> None:
    terminal = fed("ab漢字漢字")
    terminal.resize(5, 4)
    assert rows(terminal) == ["ab漢", "字漢", "字"]
    terminal.resize(10, 4)
    assert rows(terminal) == ["ab漢字漢字"]
    terminal.resize(1, 8)
    assert [row.strip() for row in rows(terminal) if row.strip()] == ["字", "漢", "字"]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (12, ["abcdefghijK"]),
        (10, ["abcdefghij", "K"]),
        (7, ["abcdefg", "hijK"]),
        (5, ["abcde", "fghij", "K"]),
    ],
)
def test_what_is_written_after_a_pending_wrap_joins_it(columns: int, shown: list[str]) -> None:
    """Alacritty, libvterm and xterm.js agree: a wider screen has room behind the last character."""
    terminal = fed("abcdefghij")
    terminal.resize(columns, 5)
    terminal.feed(b"K")
    assert rows(terminal) == shown


def test_a_pending_wrap_of_the_alternate_screen_ends_where_it_is_cut() -> None:
    terminal = fed("\x1b[?1049habcdefghij")
    terminal.resize(12, 4)
    assert at(terminal) == (10, 0)
    cut = fed("\x1b[?1049habcdefghij")
    cut.resize(5, 4)
    cut.feed(b"K")
    assert rows(cut) == ["abcdK"]


def test_the_alternate_screen_is_cut_and_filled_up() -> None:
    terminal = fed("main\x1b[?1049h\x1b[H1234567890\r\nb\r\nc\r\nd")
    terminal.resize(5, 2)
    assert rows(terminal) == ["c", "d"]
    terminal.resize(10, 4)
    assert rows(terminal) == ["c", "d"]
    terminal.feed(b"\x1b[?1049l")
    assert rows(terminal) == ["main"]


def test_the_margins_and_tab_stops_after_a_resize() -> None:
    terminal = fed("\x1b[2;3r\x1b[?69h\x1b[2;3s")
    terminal.resize(20, 6)
    assert terminal.screen.margins is None
    assert (terminal.screen.left, terminal.screen.right) == (0, 19)
    terminal.feed(b"\r\t\t")
    assert at(terminal)[0] == 16


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (200, 1), (0, 0), (500, 200)])
def test_any_size(size: tuple[int, int]) -> None:
    terminal = fed("abc漢\u0301\r\nx" * 9)
    terminal.resize(*size)
    terminal.feed("漢字ab\r\n\x1b[5;5Hx".encode())
    assert (terminal.columns, terminal.lines) == (max(1, size[0]), max(1, size[1]))
    assert len(terminal.display) == terminal.lines
    terminal.resize(10, 4)


def test_nothing_is_lost_by_going_narrow_and_back() -> None:
    text = "\r\n".join(f"{number} " + "word漢 e\u0301 " * (number % 7) for number in range(60))
    terminal = fed(text, 40, 10, 1000)
    before = all_text(terminal)
    for columns in (13, 7, 80, 40):
        terminal.resize(columns, 10)
        assert [line.replace(" ", "") for line in all_text(terminal)] == [
            line.replace(" ", "") for line in before
        ]
    assert all_text(terminal) == before


def test_many_lines_of_clusters_lose_nothing() -> None:
    terminal = fed("\r\n".join(f"{number} " + "e\u0301漢字" * 40 for number in range(400)), 60, 4, 5000)
    before = all_text(terminal)
    for columns in (33, 60):
        terminal.resize(columns, 4)
        assert all_text(terminal) == before


# The scrollback


def test_scrollback_lines() -> None:
    terminal = fed("".join(f"\x1b[3{number % 8}mline {number}\r\n" for number in range(50)), 20, 4)
    back = terminal.scrollback
    assert len(back) == 47
    assert back[0].text == "line 0"
    assert back[-1].text == "line 46"
    assert back[5].runs()[0][1].fg == 5
    assert sum(count for _, _, count in back[5].runs()) == 20
    with pytest.raises(IndexError):
        back[47]
    assert terminal.scrolled_total == 47


def test_the_scrollback_is_bounded_in_bytes() -> None:
    terminal = Terminal(100, 4, 100_000)
    terminal.screen.scrollback = back = Scrollback(100, 100_000, StyleTable(), max_bytes=50_000)
    terminal.feed(b"".join(b"\x1b[3%dm" % (n % 8) + b"x" * 90 + b"\r\n" for n in range(2000)))
    assert back.memory <= 50_000
    assert 50 < len(back) < 2000
    assert back.total == 1997


@pytest.mark.parametrize("seed", range(8))
def test_the_memory_of_the_scrollback_is_that_of_its_lines(seed: int) -> None:
    source = random.Random(seed)
    terminal = Terminal(20, 4, source.choice((40, 900)))
    back = terminal.scrollback
    back.max_bytes = source.choice((9_000, 1_000_000))
    for _ in range(60):
        line = source.choice((b"plain", b"\x1b[31mred\x1b[m", "漢字 e\u0301".encode(), b"wrapped " * 5, b""))
        terminal.feed(source.choice((line, line + b"\r\n", (line + b"\r\n") * 400)))
        if source.random() < 0.2:
            terminal.resize(source.choice((7, 20, 50)), source.choice((2, 4, 9)))
        if source.random() < 0.1:
            back.keep(source.choice((5, 50)))
        if source.random() < 0.05:
            back.clear()
        assert back.memory == sum(map(size_of, back.entries()))
        assert len(back) <= back.limit
        assert back.memory <= back.max_bytes


def test_backgrounds_to_the_edge_stay() -> None:
    terminal = fed("\x1b[44mab\x1b[K\x1b[0m\r\n" + "\r\n" * 5)
    line = terminal.scrollback[0]
    assert [(text.strip(), style.bg, count) for text, style, count in line.runs()] == [("ab", 4, 10)]


def test_search() -> None:
    terminal = fed("needle\r\nhay\r\na needle and a needle\r\n漢needle\r\ne\u0301needle" + "\r\n" * 9, 12, 4)
    assert list(terminal.scrollback.search("needle")) == [
        (0, 0, 6),
        (2, 2, 8),
        (3, 3, 9),
        (4, 2, 8),
        (5, 1, 7),
    ]
    assert list(terminal.scrollback.search(re.compile("h.y"))) == [(1, 0, 3)]
    assert list(terminal.scrollback.search(re.compile("x*"))) == []


def test_a_line_without_end_is_kept_in_pieces() -> None:
    terminal = fed("x" * 100_000, 10, 4, 50_000)
    assert len(terminal.scrollback) == 10_000 - 4
    assert all(line.text == "x" * 10 for line in list(terminal.scrollback)[::997])
    assert terminal.scrollback[5000].wrapped
    terminal.resize(20, 4)
    assert abs(len(terminal.scrollback) - 4998) < 20


# What it costs: 600 bytes a line of 120 columns, a resize with 10,000 lines within 20 ms


def big(line: str, count: int) -> Terminal:
    terminal = Terminal(120, 40, count)
    data = line.encode() + b"\r\n"
    for _ in range(count // 100 + 1):
        terminal.feed(data * 100)
    return terminal


LINES = {
    "plain": "x" * 119,
    "log": "\x1b[2m12:00:00\x1b[0m \x1b[31;1mERROR\x1b[0m \x1b[38;5;99mmodule\x1b[39m: " + "word " * 16,
    "wide": "漢字" * 29 + "e\u0301",
    "box": "\x1b[34m│\x1b[0m" + "─" * 117 + "\x1b[34m│\x1b[0m",
}


@pytest.mark.parametrize("name", LINES)
def test_memory_of_lines(name: str) -> None:
    tracemalloc.start()
    terminal = big(LINES[name], 2000)
    assert len(terminal.scrollback) == 2000
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used <= 600 * 2000
    assert terminal.scrollback.memory == pytest.approx(used, rel=0.6)


@pytest.mark.parametrize("name", ["log", "wide"])
def test_a_resize_with_ten_thousand_lines_is_quick(name: str) -> None:
    terminal = big(LINES[name], 10_000)
    best = 1.0
    for columns in (100, 120, 60, 120):
        start = time.process_time()
        terminal.resize(columns, 40)
        best = min(best, time.process_time() - start)
    assert best < 0.02
