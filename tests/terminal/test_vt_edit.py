"""Erasing, inserting, deleting and protecting cells."""

from __future__ import annotations

import pytest

from tests.terminal.terminal_kit import at, fed, look, rows

FULL = "abcdefghij\r\nklmnopqrst\r\nuvwxyzABCD\r\nEFGHIJKLMN\x1b[2;4H"
"""All 10 by 4 cells, the cursor in column 3 of row 1."""
A, K, U, E = "abcdefghij", "klmnopqrst", "uvwxyzABCD", "EFGHIJKLMN"

EDITS = [
    ("EL 0, ECMA-48 8.3.41", "\x1b[K", [A, "klm", U, E]),
    ("EL 1", "\x1b[1K", [A, "    opqrst", U, E]),
    ("EL 2", "\x1b[2K", [A, "", U, E]),
    ("EL with an unknown parameter", "\x1b[5K", [A, K, U, E]),
    ("ED 0, ECMA-48 8.3.39", "\x1b[J", [A, "klm"]),
    ("ED 1", "\x1b[1J", ["", "    opqrst", U, E]),
    ("ED 2", "\x1b[2J", []),
    ("ED 3 leaves the screen, xterm ctlseqs", "\x1b[3J", [A, K, U, E]),
    ("ED with an unknown parameter", "\x1b[22J", [A, K, U, E]),
    ("ECH, ECMA-48 8.3.38", "\x1b[3X", [A, "klm   qrst", U, E]),
    ("ECH over the edge", "\x1b[99X", [A, "klm", U, E]),
    ("ICH, ECMA-48 8.3.64", "\x1b[2@", [A, "klm  nopqr", U, E]),
    ("ICH over the edge", "\x1b[99@", [A, "klm", U, E]),
    ("DCH, ECMA-48 8.3.26", "\x1b[2P", [A, "klmpqrst", U, E]),
    ("DCH over the edge", "\x1b[99P", [A, "klm", U, E]),
    ("IL, ECMA-48 8.3.67", "\x1b[L", [A, "", K, U]),
    ("IL over the bottom", "\x1b[99L", [A]),
    ("DL, ECMA-48 8.3.32", "\x1b[M", [A, U, E]),
    ("DL over the bottom", "\x1b[99M", [A]),
    ("SU, ECMA-48 8.3.147", "\x1b[S", [K, U, E]),
    ("SU over the bottom", "\x1b[99S", []),
    ("SD, ECMA-48 8.3.113", "\x1b[T", ["", A, K, U]),
    ("SD by the final of ECMA-48's first edition, xterm", "\x1b[^", ["", A, K, U]),
    ("highlight tracking is no SD, xterm ctlseqs", "\x1b[1;2;3;4;5T", [A, K, U, E]),
    ("SL, ECMA-48 8.3.121", "\x1b[2 @", [A[2:], K[2:], U[2:], E[2:]]),
    ("SR, ECMA-48 8.3.135", "\x1b[2 A", ["  abcdefgh", "  klmnopqr", "  uvwxyzAB", "  EFGHIJKL"]),
    ("DECIC, DEC STD 070", "\x1b[1'}", ["abc defghi", "klm nopqrs", "uvw xyzABC", "EFG HIJKLM"]),
    ("DECDC, DEC STD 070", "\x1b[1'~", ["abcefghij", "klmopqrst", "uvwyzABCD", "EFGIJKLMN"]),
    ("DECALN, DEC STD 070 D-19", "\x1b#8", ["E" * 10] * 4),
    ("IRM, ECMA-48 7.2.10", "\x1b[4hXY\x1b[4l", [A, "klmXYnopqr", U, E]),
]


@pytest.mark.parametrize(("data", "shown"), [case[1:] for case in EDITS], ids=[case[0] for case in EDITS])
def test_edit(data: str, shown: list[str]) -> None:
    assert rows(fed(FULL + data)) == shown


def test_il_and_dl_move_the_cursor_to_the_left_and_do_nothing_outside_the_margins() -> None:
    """DEC STD 070 5-63."""
    assert at(fed(FULL + "\x1b[L")) == (0, 1)
    assert at(fed(FULL + "\x1b[M")) == (0, 1)
    outside = fed(FULL + "\x1b[3;4r\x1b[2;4H\x1b[L\x1b[M")
    assert rows(outside) == [A, K, U, E]
    assert at(outside) == (3, 1)


def test_il_and_dl_stay_inside_the_margins() -> None:
    assert rows(fed(FULL + "\x1b[2;3r\x1b[2;1H\x1b[L")) == [A, "", K, E]
    assert rows(fed(FULL + "\x1b[2;3r\x1b[2;1H\x1b[M")) == [A, U, "", E]


def test_side_margins_bound_insertion_deletion_and_lines() -> None:
    """VT420, xterm ctlseqs DECSLRM."""
    margins = FULL + "\x1b[?69h\x1b[3;6s\x1b[2;4H"
    assert rows(fed(margins + "\x1b[@"))[1] == "klm noqrst"
    assert rows(fed(margins + "\x1b[P"))[1] == "klmop qrst"
    assert rows(fed(margins + "\x1b[L")) == [A, "kl    qrst", "uvmnopABCD", "EFwxyzKLMN"]
    assert rows(fed(margins + "\x1b[M")) == [A, "klwxyzqrst", "uvGHIJABCD", "EF    KLMN"]
    assert rows(fed(margins + "\x1b[2;9H\x1b[@"))[1] == K, "outside the margins"


def test_text_wraps_at_the_right_margin() -> None:
    assert rows(fed("\x1b[?69h\x1b[3;6s\x1b[1;3Habcdef")) == ["  abcd", "  ef"]
    assert rows(fed("\x1b[?69h\x1b[3;6s\x1b[1;8Habcde")) == ["       abc", "  de"]


def test_decbi_and_decfi_scroll_sideways_at_the_margins() -> None:
    """VT420, DEC STD 070."""
    assert rows(fed(FULL + "\x1b[2;1H\x1b6"))[1] == " klmnopqrs"
    assert rows(fed(FULL + "\x1b[2;10H\x1b9"))[1] == "lmnopqrst"
    assert at(fed(FULL + "\x1b6")) == (2, 1)
    assert at(fed(FULL + "\x1b9")) == (4, 1)


# Back colour erase: xterm, terminfo bce


@pytest.mark.parametrize(
    ("data", "cells"),
    [
        ("\x1b[44m\x1b[K", [(9, 1)]),
        ("\x1b[44m\x1b[1K", [(0, 1)]),
        ("\x1b[44m\x1b[2K", [(0, 1), (9, 1)]),
        ("\x1b[44m\x1b[J", [(9, 1), (0, 3)]),
        ("\x1b[44m\x1b[2J", [(0, 0), (9, 3)]),
        ("\x1b[44m\x1b[3X", [(5, 1)]),
        ("\x1b[44m\x1b[@", [(3, 1)]),
        ("\x1b[44m\x1b[P", [(9, 1)]),
        ("\x1b[44m\x1b[L", [(0, 1)]),
        ("\x1b[44m\x1b[M", [(0, 3)]),
        ("\x1b[44m\x1b[S", [(0, 3)]),
        ("\x1b[44m\x1b[T", [(0, 0)]),
        ("\x1b[44m\x1b[4;1H\n", [(0, 3), (9, 3)]),
        ("\x1b[44m\x1b[1;1H\x1bM", [(0, 0), (9, 0)]),
    ],
)
def test_erasing_leaves_the_background(data: str, cells: list[tuple[int, int]]) -> None:
    terminal = fed(FULL + data)
    for x, y in cells:
        assert look(terminal, x, y).bg == 4, (x, y)
        assert terminal.cell(x, y).text == " "


def test_erasing_leaves_nothing_but_the_background() -> None:
    style = look(fed("\x1b[1;3;4;7;9;31;44mx\x1b[2K"), 0, 0)
    assert (style.bg, style.fg) == (4, -1)
    assert not style.bold
    assert not style.italic
    assert not style.underline
    assert not style.reverse


# Protection: DEC STD 070 5-101 DECSCA, DECSEL, DECSED; ECMA-48 8.3.143 SPA


def test_selective_erase_spares_what_decsca_protects() -> None:
    data = 'ab\x1b[1"qcd\x1b[0"qef\r'
    assert rows(fed(data + "\x1b[?2K")) == ["  cd"]
    assert rows(fed(data + "\x1b[?J")) == ["  cd"]
    assert rows(fed(data + "\x1b[2K")) == [], "EL is not selective"


def test_spa_protects_from_every_erase() -> None:
    """xterm: SPA guards against EL, ED and ECH, and against DECSEL and DECSED too (`do_erase_line`)."""
    data = "ab\x1bVcd\x1bWef\r"
    assert rows(fed(data + "\x1b[2K")) == ["  cd"]
    assert rows(fed(data + "\x1b[9X")) == ["  cd"]
    assert rows(fed(data + "\x1b[?2K")) == ["  cd"]


def test_sgr_0_keeps_the_protection() -> None:
    assert rows(fed('\x1b[1"q\x1b[0mab\r\x1b[?2K')) == ["ab"]


# REP: ECMA-48 8.3.103


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("a\x1b[3b", ["aaaa"]),
        ("ab\x1b[2b", ["abbb"]),
        ("a\x1b[b", ["aa"]),
        ("漢\x1b[b", ["漢漢"]),
        ("e\u0301\x1b[b", ["e\u0301e\u0301"]),
        ("a\x1b[2b\x1b[2b", ["aaa"]),
        ("a\r\x1b[2b", ["a"]),
        ("a\x1b[1m\x1b[2b", ["a"]),
        ("\x1b[3b", []),
        ("a\x1b[12b", ["aaaaaaaaaa", "aaa"]),
        ("a\x7f\x1b[2b", ["a"]),
        ("b\x1b[99b", ["b" * 10] * 4),
        ("b\x1b[63b", ["b" * 10] * 3 + ["b" * 4]),
        ("b\x1b[1003b", ["b" * 10] * 3 + ["b" * 4]),
        ("漢\x1b[1003b", ["漢" * 5] * 3 + ["漢" * 4]),
        ("\x1b[?69h\x1b[3;5s\x1b[1;3Hb\x1b[1003b", ["  bbb"] * 3 + ["  bb"]),
        ("\x1b[?69h\x1b[3;5s\x1b[1;8Hb\x1b[1003b", ["  bbb  bbb", "  bbb", "  bbb", "  bb"]),
        ("\x1b[?69h\x1b[3;5s\x1b[1;3H漢\x1b[1003b", ["  漢"] * 4),
        ("e\u0301\x1b[1003b", ["e\u0301" * 10] * 3 + ["e\u0301" * 4]),
        ("ae\u0301\x1b[12b", ["a" + "e\u0301" * 9, "e\u0301" * 4]),
        ("e\u0301\x1b[4h\x1b[H\u0301xe\u0301\x1b[3b", ["xe\u0301e\u0301e\u0301e\u0301e\u0301"]),
    ],
)
def test_repeat(data: str, shown: list[str]) -> None:
    assert rows(fed(data)) == shown


def test_repeat_across_pieces_of_input() -> None:
    terminal = fed("a")
    terminal.feed(b"\x1b[2b")
    assert rows(terminal) == ["aaa"]
    terminal.feed(b"\x1b[1m")
    terminal.feed(b"\x1b[2b")
    assert rows(terminal) == ["aaa"]


# Rectangles: DEC STD 070, xterm ctlseqs

RECTANGLES = [
    ("DECFRA", "\x1b[88;2;3;3;5$x", [A, "klXXXpqrst", "uvXXXzABCD", E]),
    ("DECERA", "\x1b[2;3;3;5$z", [A, "kl   pqrst", "uv   zABCD", E]),
    ("DECSERA", "\x1b[2;3;3;5${", [A, "kl   pqrst", "uv   zABCD", E]),
    ("DECCRA", "\x1b[1;1;2;3;1;3;5;1$v", [A, K, "uvwxabcBCD", "EFGHklmLMN"]),
    ("DECCRA over itself", "\x1b[1;1;1;9;1;1;2;1$v", ["aabcdefghi", K, U, E]),
    ("an area that is none", "\x1b[3;3;2;2$z", [A, K, U, E]),
]


@pytest.mark.parametrize(
    ("data", "shown"), [case[1:] for case in RECTANGLES], ids=[case[0] for case in RECTANGLES]
)
def test_rectangle(data: str, shown: list[str]) -> None:
    assert rows(fed(FULL + data)) == shown


def test_attributes_of_areas() -> None:
    """DECCARA and DECRARA, in a rectangle (DECSACE 2) or from the first cell to the last."""
    stream = fed(FULL + "\x1b[2;3;3;5;1$r")
    assert look(stream, 9, 1).bold
    assert look(stream, 0, 2).bold
    assert not look(stream, 1, 1).bold
    rectangle = fed(FULL + "\x1b[2*x\x1b[2;3;3;5;1;4$r")
    assert look(rectangle, 2, 1).underline == 1
    assert not look(rectangle, 9, 1).bold
    turned = fed("\x1b[1mab\x1b[2*x\x1b[1;1;1;1;1$t")
    assert not look(turned, 0, 0).bold
    assert look(turned, 1, 0).bold
