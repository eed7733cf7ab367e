"""Conformance levels (DECSCL, DEC STD 070), and the checksum of an area (DECRQCRA, VT420)."""

from __future__ import annotations

import pytest

from tests.terminal.terminal_kit import answer, at, fed, rows

LEVEL_1, LEVEL_2, LEVEL_3, LEVEL_4 = (f'\x1b[6{level};1"p' for level in range(1, 5))


# DECSCL


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_the_level_is_told(level: int) -> None:
    """DECRQSS DECSCL."""
    assert answer(f'\x1b[6{level};1"p\x1bP$q"p\x1b\\') == f'\x1bP1$r6{level};1"p\x1b\\'


def test_a_level_beyond_the_terminal_changes_nothing() -> None:
    """xterm takes no level above that of its DA1."""
    assert answer('\x1b[3;4H\x1b[65;1"p\x1bP$q"p\x1b\\') == '\x1bP1$r64;1"p\x1b\\'


@pytest.mark.parametrize(("replies", "eight_bit"), [("", True), (";0", True), (";1", False), (";2", True)])
def test_a_level_chooses_the_controls_of_answers(replies: str, eight_bit: bool) -> None:
    assert fed(f'\x1b[62{replies}"p\x1b[5n').take_replies() == (b"\x9b0n" if eight_bit else b"\x1b[0n")


def test_a_level_is_a_soft_reset() -> None:
    """DEC STD 070: DECSCL does what DECSTR does."""
    terminal = fed(f"ab\x1b[4h\x1b[2;3r\x1b[4;4H{LEVEL_4}")
    assert not terminal.modes.insert
    assert (at(terminal), rows(terminal)) == ((3, 3), ["ab"])
    assert (terminal.screen.top, terminal.screen.bottom) == (0, 3)


def test_modes_are_told_from_level_3_on() -> None:
    """DECRQM is of the VT300."""
    assert answer(f"{LEVEL_2}\x1b[4$p\x1b[?7$p") == ""
    assert answer(f"{LEVEL_3}\x1b[4$p\x1b[?7$p") == "\x1b[4;2$y\x1b[?7;1$y"


def test_side_margins_are_of_level_4() -> None:
    """DECLRMM, DECSLRM."""
    terminal = fed(f"{LEVEL_3}\x1b[?69h\x1b[2;3s\x1b[?69$p")
    assert (terminal.screen.left, terminal.screen.right) == (0, 9)
    assert terminal.take_replies() == b"\x1b[?69;0$y"
    assert not terminal.modes.margins


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[1;1;2;2$z",
        "\x1b[1;1;2;2${",
        "\x1b[88;1;1;2;2$x",
        "\x1b[1;1;1;1;1;2;2;1$v",
        "\x1b[1'}",
        "\x1b[1'~",
        "\x1b6",
        "\x1b9",
    ],
)
def test_areas_and_columns_are_of_level_4(sequence: str) -> None:
    """VT420: rectangular editing and horizontal scrolling."""
    before = rows(fed("abcdefghij\x1b[H"))
    low = fed(f"{LEVEL_3}abcdefghij\x1b[H{sequence}")
    assert (rows(low), at(low)) == (before, (0, 0))
    high = fed(f"{LEVEL_4}abcdefghij\x1b[H{sequence}")
    assert (rows(high), at(high)) != (before, (0, 0))


def test_the_page_is_told_from_level_4_on() -> None:
    """DECXCPR."""
    assert answer(f"{LEVEL_3}\x1b[?6n") == "\x1b[?1;1R"
    assert answer(f"{LEVEL_4}\x1b[?6n") == "\x1b[?1;1;1R"


# DECRQCRA: xterm ctlseqs; the sum itself by screen.c of xterm


def checksum(data: str, area: str = "1;1;1;1", flags: str = "") -> int:
    """What DECRQCRA says of an area."""
    given = answer(f"{data}{flags}\x1b[7;1;{area}*y")
    assert given.startswith("\x1bP7!~")
    return int(given[5:-2], 16)


def negative(total: int) -> int:
    """A negated sum of 16 bits."""
    return -total & 0xFFFF


def test_a_checksum_is_the_negated_sum_of_the_characters() -> None:
    assert answer("A\x1b[3;1;1;1;1;1*y") == "\x1bP3!~FFBF\x1b\\"
    assert checksum("AB", "1;1;1;2") == negative(0x41 + 0x42)
    assert checksum("AB\r\nC", "1;1;2;2") == negative(0x41 + 0x42 + 0x43)


def test_a_blank_cell_counts_alone_and_not_at_the_end_of_a_row() -> None:
    assert checksum("") == negative(0x20)
    assert checksum("A", "1;1;1;5") == negative(0x41)
    assert checksum("A B", "1;1;1;5") == negative(0x41 + 0x20 + 0x42)


@pytest.mark.parametrize(("sgr", "weight"), [(1, 0x80), (5, 0x40), (7, 0x20), (4, 0x10), (31, 0), (3, 0)])
def test_attributes_count(sgr: int, weight: int) -> None:
    assert checksum(f"\x1b[{sgr}mA") == negative(0x41 + weight)


def test_a_checksum_follows_origin_mode_and_ends_at_the_screen() -> None:
    assert checksum("ab\r\ncd\x1b[2;3r\x1b[?6h") == negative(ord("c"))
    assert checksum("abc", "1;1;99;99") == negative(sum(b"abc"))


def test_an_empty_area_has_the_sum_0() -> None:
    assert checksum("abc", "3;3;2;2") == 0


def test_wide_and_combined_characters_count_by_their_lowest_byte() -> None:
    assert checksum("\u3042", "1;1;1;1") == negative(0x42)
    assert checksum("e\u0301", "1;1;1;1") == negative(0x65)


@pytest.mark.parametrize(
    ("flags", "total"),
    [
        (0, negative(0x41 + 0x80)),
        (1, 0x41 + 0x80),
        (3, 0x41),
        (7, 0x41 + 2 * 0x20),
        (15, 0x41),
    ],
)
def test_the_kinds_of_checksum(flags: int, total: int) -> None:
    """XTCHECKSUM: positive, without attributes, with blanks at the end, only what was written."""
    assert checksum("\x1b[1mA\x1b[m", "1;1;1;3", f"\x1b[{flags}#y") == total


def test_a_cell_that_was_never_written_counts_nothing_when_so_chosen() -> None:
    assert checksum("", flags="\x1b[7#y") == 0x20
    assert checksum("", flags="\x1b[15#y") == 0
    assert checksum("\u3042", flags="\x1b[31#y") == 0x3042
    assert checksum("e\u0301", flags="\x1b[7#y") == 0x65 + 0x301


def test_a_soft_reset_takes_the_kind_of_checksum_back() -> None:
    assert checksum("A", flags="\x1b[1#y\x1b[!p") == negative(0x41)


def test_a_checksum_needs_level_4() -> None:
    assert answer(f"{LEVEL_3}A\x1b[1;1;1;1;1;1*y") == ""
