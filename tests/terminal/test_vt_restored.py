"""Rows restored from an earlier run: above whatever the program prints, and not the program's to erase."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from synapse_tui.terminal import Terminal, capture_history
from synapse_tui.terminal.dump import dump, dump_restored
from synapse_tui.terminal.row import Row
from synapse_tui.terminal.scrollback import Scrollback
from synapse_tui.terminal.style import StyleTable
from tests.terminal.terminal_kit import rows
from tests.terminal.test_vt_dump import cells, expressible, state
from tests.terminal.test_vt_properties import COLUMNS, LINES, streams, tokens

SHOWN = ["one", "two 漢字 wraps here", "", "four", "five", "six", "last line, long"]
EARLIER = (
    "one\r\n\x1b[31mtwo 漢字 wraps here\x1b[m\r\n\r\n\x1b[44mfour\x1b[K\x1b[m\r\n"
    "five\r\nsix\r\nlast line, long"
).encode()
ROOM = 10_000

resizes = st.tuples(st.integers(1, 30), st.integers(1, 10))
steps = st.lists(resizes | streams, max_size=6)


def restored(columns: int = COLUMNS, lines: int = LINES, scrollback: int = ROOM) -> Terminal:
    terminal = Terminal(columns, lines, scrollback)
    terminal.restore(EARLIER)
    return terminal


def above(terminal: Terminal) -> list[object]:
    """The restored rows, with their looks."""
    back = terminal.scrollback
    return [(cells(terminal, back[index]), back[index].wrapped) for index in range(back.restored)]


def own(terminal: Terminal) -> list[object]:
    """What the program has printed and still has."""
    back, lines = terminal.scrollback, [terminal.line(y) for y in range(terminal.lines)]
    lines = [back[index] for index in range(back.restored, len(back))] + lines
    return [cells(terminal, line) for line in lines]


def play(terminal: Terminal, step: bytes | tuple[int, int]) -> None:
    if isinstance(step, bytes):
        terminal.feed(step)
    else:
        terminal.resize(*step)


def test_they_stand_above_a_blank_screen_with_the_cursor_at_its_top() -> None:
    terminal = restored(30, 4)
    assert [line.text for line in terminal.scrollback] == SHOWN
    assert terminal.scrollback.restored == len(terminal.scrollback)
    assert rows(terminal) == []
    assert (terminal.cursor.x, terminal.cursor.y) == (0, 0)


ERASES = {
    "ED 3": "\x1b[3J",
    "ED 2, ED 3 and home": "\x1b[2J\x1b[3J\x1b[H",
    "RIS": "\x1bc",
    "DECSTR": "\x1b[!p",
    "on the alternate screen": "\x1b[?1049h\x1b[3J\x1b[?1049l",
    "RIS on the alternate screen": "\x1b[?1049h\x1bc",
}


@pytest.mark.parametrize("erase", ERASES.values(), ids=ERASES)
@pytest.mark.parametrize(
    "printed", ["", "a\r\nb", "x\r\n" * 9, "long " * 20], ids=["none", "few", "many", "wrapped"]
)
def test_no_erase_of_the_program_reaches_them(erase: str, printed: str) -> None:
    terminal, untouched = restored(), restored()
    terminal.feed((printed + erase).encode())
    assert above(terminal) == above(untouched)
    if "\x1b[3J" in erase or "\x1bc" in erase:
        assert len(terminal.scrollback) == terminal.scrollback.restored, "its own rows are erased"
    terminal.feed(b"\x1b[m" + b"next\r\n" * 9)
    terminal.resize(30, 8)
    untouched.resize(30, 8)
    assert above(terminal) == above(untouched)


def test_a_program_that_redraws_all_after_a_resize_shows_its_rows_once() -> None:
    terminal = restored()
    for size in ((20, 8), (9, 3), (COLUMNS, LINES)):
        terminal.resize(*size)
        terminal.feed(b"\x1b[2J\x1b[3J\x1b[H" + b"\r\n".join(b"row %d" % number for number in range(9)))
    text = [line.text for line in terminal.scrollback] + rows(terminal)
    assert text[terminal.scrollback.restored :] == [f"row {number}" for number in range(9)]
    assert text.count("one") == text.count("six") == 1


def test_a_taller_screen_does_not_take_them_back() -> None:
    terminal = restored()
    terminal.feed(b"\x1b[5;1Hprompt")
    terminal.resize(COLUMNS, 9)
    assert rows(terminal) == ["", "", "", "", "prompt"]
    terminal.resize(40, 9)
    assert rows(terminal) == ["", "", "", "", "prompt"]


def test_the_first_row_of_the_program_does_not_continue_them() -> None:
    terminal = restored()
    terminal.feed(b"w" * COLUMNS * (LINES + 1) + b"\x1b[3J")
    assert not terminal.line(0).wrapped
    terminal.feed(b"\r\n" * LINES)
    assert not terminal.scrollback[terminal.scrollback.restored].wrapped


def test_their_numbers_stay_when_the_program_erases_its_own() -> None:
    terminal = restored()
    first = terminal.scrolled_total - len(terminal.scrollback)
    terminal.feed(b"x\r\n" * 30 + b"\x1b[3J")
    assert terminal.scrolled_total - len(terminal.scrollback) == first


def test_they_are_the_first_to_go_when_there_is_no_room() -> None:
    terminal = restored(COLUMNS, LINES, 20)
    terminal.feed(b"x\r\n" * 22)
    back = terminal.scrollback
    assert 0 < back.restored < len(above(restored()))
    terminal.feed(b"x\r\n" * 5000)
    assert (back.restored, len(back)) == (0, 20)
    terminal.feed(b"\x1b[3J")
    assert len(back) == 0


def test_the_remaining_ones_are_known_however_many_were_dropped() -> None:
    terminal = Terminal(COLUMNS, LINES, 3000)
    terminal.restore(b"\r\n".join(b"line %d" % number for number in range(3000)))
    terminal.feed(b"x\r\n" * 500)
    left = 3000 - (500 - LINES + 1)
    assert terminal.scrollback.restored == left
    terminal.resize(COLUMNS + 1, LINES)
    assert terminal.scrollback.restored == left
    terminal.feed(b"x\r\n" * 1500)
    assert terminal.scrollback.restored == left - 1500
    terminal.feed(b"\x1b[3J")
    assert [line.text for line in terminal.scrollback] == [
        f"line {number}" for number in range(3000 - left + 1500, 3000)
    ]


def test_a_row_that_would_continue_them_begins_a_line_of_its_own() -> None:
    back = Scrollback(4, 100, StyleTable())
    for wrapped in (False, True):
        row = Row()
        row.append(0, 4, "abcd", 0)
        row.wrapped = wrapped
        back.push(row)
        back.mark_restored()
    assert [(line.text, line.wrapped) for line in back] == [("abcd", False), ("abcd", False)]


@settings(max_examples=100, deadline=None)
@given(steps)
@example([b"\x1b[3J", (30, 10), b"\x1bc", (2, 1), (COLUMNS, LINES)])
@example([b"a" * 100, b"\x1b[3J", (5, 3), (30, 10)])
def test_whatever_a_program_prints_they_stay_and_only_their_width_changes(
    steps: list[bytes | tuple[int, int]],
) -> None:
    terminal, untouched, bare = restored(), restored(), Terminal(COLUMNS, LINES, ROOM)
    for step in steps:
        play(terminal, step)
        play(bare, step)
        if not isinstance(step, bytes):
            play(untouched, step)
        assert above(terminal) == above(untouched)
        assert own(terminal) == own(bare), "the program has the same screen and rows as without them"
        assert terminal.cursor == bare.cursor
        assert terminal.take_replies() == bare.take_replies()


@settings(max_examples=60, deadline=None)
@given(streams, st.lists(tokens, max_size=8).map(lambda parts: "".join(parts).encode()), resizes)
def test_a_dump_keeps_them_apart(data: bytes, following: bytes, size: tuple[int, int]) -> None:
    terminal = restored()
    terminal.feed(data)
    terminal.take_replies()
    if not expressible(terminal):
        return
    other = Terminal(COLUMNS, LINES, ROOM)
    other.restore(dump_restored(terminal))
    other.feed(dump(terminal))
    other.take_replies()
    assert state(other) == state(terminal)
    assert above(other) == above(terminal)
    for each in (terminal, other):
        each.resize(*size)
        each.feed(b"\x18\x1bc\x1b[3J")
    assert above(other) == above(terminal)


def test_a_terminal_without_them_has_no_dump_of_them() -> None:
    terminal = Terminal(COLUMNS, LINES, ROOM)
    terminal.feed(b"x\r\n" * 9)
    assert dump_restored(terminal) == b""
    other = Terminal(COLUMNS, LINES, ROOM)
    other.restore(b"")
    assert (len(other.scrollback), other.cursor.y) == (0, 0)


def test_runs_that_follow_each_other_stay_within_the_scrollback() -> None:
    history, sizes = EARLIER, []
    for _ in range(12):
        terminal = Terminal(COLUMNS, LINES, 60)
        terminal.restore(history)
        terminal.feed(b"new line\r\n" * 9)
        history = capture_history(terminal).render()
        sizes.append(len(history.split(b"\r\n")))
    assert max(sizes) <= 60 + LINES
    assert len(set(sizes[-3:])) == 1
