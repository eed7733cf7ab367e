"""Cursor movement, tab stops and saving, with the section of the standard each case comes from."""

from __future__ import annotations

import pytest

from tests.terminal.terminal_kit import at, fed, rows

GRID = "\x1b[3;5H"
"""The cursor in column 4 of row 2, both counted from 0, on a screen of 10 by 4."""

MOVES = [
    ("CUU, ECMA-48 8.3.22", "\x1b[A", (4, 1)),
    ("CUU over the top", "\x1b[9A", (4, 0)),
    ("CUU 0 is 1", "\x1b[0A", (4, 1)),
    ("CUD, ECMA-48 8.3.19", "\x1b[B", (4, 3)),
    ("CUD over the bottom", "\x1b[9B", (4, 3)),
    ("CUF, ECMA-48 8.3.20", "\x1b[2C", (6, 2)),
    ("CUF over the edge", "\x1b[99C", (9, 2)),
    ("CUB, ECMA-48 8.3.18", "\x1b[2D", (2, 2)),
    ("CUB over the edge", "\x1b[99D", (0, 2)),
    ("CNL, ECMA-48 8.3.12", "\x1b[E", (0, 3)),
    ("CPL, ECMA-48 8.3.13", "\x1b[2F", (0, 0)),
    ("CHA, ECMA-48 8.3.9", "\x1b[7G", (6, 2)),
    ("HPB, ECMA-48 8.3.58", "\x1b[2j", (2, 2)),
    ("HPB over the edge", "\x1b[99j", (0, 2)),
    ("VPB, ECMA-48 8.3.159", "\x1b[2k", (4, 0)),
    ("VPB over the top", "\x1b[99k", (4, 0)),
    ("CUP, ECMA-48 8.3.21", "\x1b[2;3H", (2, 1)),
    ("CUP without parameters", "\x1b[H", (0, 0)),
    ("CUP with one parameter", "\x1b[2H", (0, 1)),
    ("CUP with an empty one", "\x1b[;7H", (6, 0)),
    ("CUP with one too many, xterm ignores it", "\x1b[2;3;4H", (2, 1)),
    ("CUP past the screen", "\x1b[99;99H", (9, 3)),
    ("CUP with a huge number", "\x1b[99999999999;2H", (1, 3)),
    ("HVP, ECMA-48 8.3.63", "\x1b[2;3f", (2, 1)),
    ("HPA, ECMA-48 8.3.57", "\x1b[4`", (3, 2)),
    ("HPR, ECMA-48 8.3.59", "\x1b[2a", (6, 2)),
    ("VPA, ECMA-48 8.3.158", "\x1b[2d", (4, 1)),
    ("VPR, ECMA-48 8.3.160", "\x1b[e", (4, 3)),
    ("BS, ECMA-48 8.3.5", "\b\b", (2, 2)),
    ("CR, ECMA-48 8.3.15", "\r", (0, 2)),
    ("LF keeps the column, DEC STD 070 5-31", "\n", (4, 3)),
    ("VT is LF, DEC STD 070", "\v", (4, 3)),
    ("FF is LF, DEC STD 070", "\f", (4, 3)),
    ("IND, DEC STD 070 5-32", "\x1bD", (4, 3)),
    ("RI, DEC STD 070 5-33", "\x1bM", (4, 1)),
    ("NEL, DEC STD 070 5-34", "\x1bE", (0, 3)),
    ("IND as C1, ECMA-48 5.3", "\x84", (4, 3)),
    ("CSI as C1, ECMA-48 5.3", "\x9bA", (4, 1)),
    ("a sub-parameter makes CUU unknown, xterm", "\x1b[1:2A", (4, 2)),
    ("CUU with one parameter too many, xterm", "\x1b[1;2A", (4, 1)),
]


@pytest.mark.parametrize(("data", "place"), [case[1:] for case in MOVES], ids=[case[0] for case in MOVES])
def test_move(data: str, place: tuple[int, int]) -> None:
    assert at(fed(GRID + data)) == place


def test_margins_stop_vertical_moves_only_inside() -> None:
    """DEC STD 070 5-25: CUU and CUD stop at a margin unless they begin beyond it."""
    margins = "\x1b[2;3r"
    assert at(fed(margins + "\x1b[3;1H\x1b[9A")) == (0, 1)
    assert at(fed(margins + "\x1b[2;1H\x1b[9B")) == (0, 2)
    assert at(fed(margins + "\x1b[1;1H\x1b[9A")) == (0, 0)
    assert at(fed(margins + "\x1b[4;1H\x1b[9B")) == (0, 3)


def test_origin_mode_counts_from_the_margins() -> None:
    """DECOM, DEC STD 070 5-20."""
    assert at(fed("\x1b[2;3r\x1b[?6h")) == (0, 1)
    assert at(fed("\x1b[2;3r\x1b[?6h\x1b[9;9H")) == (8, 2)
    assert at(fed("\x1b[2;3r\x1b[?6h\x1b[2d")) == (0, 2)
    assert at(fed("\x1b[2;3r\x1b[?6h\x1b[?6l")) == (0, 0)


def test_side_margins() -> None:
    """DECLRMM and DECSLRM, xterm ctlseqs: CR, BS and the moves stop at them; CUP only in origin mode."""
    margins = "\x1b[?69h\x1b[3;6s"
    assert at(fed(margins)) == (0, 0)
    assert at(fed(margins + "\x1b[1;5H\r")) == (2, 0)
    assert at(fed(margins + "\x1b[1;1H\r")) == (0, 0)
    assert at(fed(margins + "\x1b[1;5H\x1b[9C")) == (5, 0)
    assert at(fed(margins + "\x1b[1;5H\x1b[9D")) == (2, 0)
    assert at(fed(margins + "\x1b[1;9H\x1b[9C")) == (9, 0)
    assert at(fed(margins + "\x1b[?6h\x1b[1;1H")) == (2, 0)
    assert at(fed("\x1b[3;6s\x1b[1;5H\r")) == (0, 0), "without mode 69, CSI s saves the cursor"


def test_reverse_wrap_goes_back_over_a_soft_wrap_only() -> None:
    """XTREVWRAP (?45), xterm ctlseqs; ?1045 goes back over any row."""
    assert at(fed("abcdefghijk\x1b[?45h\b\b")) == (9, 0)
    assert at(fed("abc\r\nx\x1b[?45h\b\b")) == (0, 1)
    assert at(fed("abc\r\nx\x1b[?1045h\b\b")) == (9, 0)
    assert at(fed("\x1b[?1045h\b")) == (9, 3)


# Tab stops: ECMA-48 8.3.60 HT, 8.3.62 HTS, 8.3.154 TBC; DEC STD 070 5-38

TABS = [
    ("HT", "\t", 8),
    ("HT at the last column", "\x1b[10G\t", 9),
    ("two HT on 10 columns", "\t\t", 9),
    ("HTS and HT", "\x1b[4G\x1bH\r\t", 3),
    ("TBC 0", "\x1b[9G\x1b[g\r\t", 9),
    ("TBC 3", "\x1b[3g\t", 9),
    ("CHT, ECMA-48 8.3.10", "\x1b[4G\x1bH\r\x1b[2I", 8),
    ("CBT, ECMA-48 8.3.7", "\x1b[10G\x1b[Z", 8),
    ("CBT to the edge", "\x1b[10G\x1b[5Z", 0),
    ("DECST8C, xterm ctlseqs", "\x1b[3g\x1b[?5W\t", 8),
]


@pytest.mark.parametrize(("data", "column"), [case[1:] for case in TABS], ids=[case[0] for case in TABS])
def test_tabs(data: str, column: int) -> None:
    assert at(fed(data))[0] == column


# Pending wrap: DEC STD 070 D-13 "last column flag"


def test_the_last_column_holds_the_cursor_until_the_next_character() -> None:
    terminal = fed("abcdefghij")
    assert at(terminal) == (9, 0)
    assert terminal.screen.cursor.x == 10, "as pyte has it"
    terminal.feed(b"k")
    assert rows(terminal) == ["abcdefghij", "k"]
    assert terminal.line(1).wrapped


@pytest.mark.parametrize("data", ["\r", "\x1b[D", "\x1b[A", "\x1b[1;10H", "\b", "\x1b[10G"])
def test_moving_takes_the_pending_wrap_away(data: str) -> None:
    terminal = fed("abcdefghij" + data + "k")
    assert len(rows(terminal)) == 1


def test_erasing_what_follows_takes_the_pending_wrap_away() -> None:
    """xterm: EL 0, ED 0, ED 2 and ECH reset the flag, and erase the character under the cursor."""
    assert rows(fed("abcdefghij\x1b[Kk")) == ["abcdefghik"]
    assert rows(fed("abcdefghij\x1b[Jk")) == ["abcdefghik"]
    assert rows(fed("abcdefghij\x1b[Xk")) == ["abcdefghik"]
    assert rows(fed("abcdefghij\x1b[2Jk")) == ["         k"]


@pytest.mark.parametrize("erase", ["\x1b[1K", "\x1b[2K", "\x1b[1J", "\x1b[3K"])
def test_erasing_what_precedes_leaves_the_wrap_pending(erase: str) -> None:
    """xterm: `ClearLeft` and `ClearLine` do not touch the flag."""
    assert rows(fed(f"abcdefghij{erase}k"))[1] == "k"


def test_a_tab_back_leaves_the_wrap_pending() -> None:
    """xterm: `TabToPrevStop` does not touch the flag."""
    assert rows(fed("abcdefghij\x1b[Zk")) == ["abcdefghij", "k"]
    assert rows(fed("abcdefghij\x1b[C\x1b[Zk")) == ["abcdefghkj"]


def test_a_tab_wraps_in_mode_41_only() -> None:
    """xterm ctlseqs: the more(1) fix."""
    assert at(fed("abcdefghij\t", columns=10)) == (9, 0)
    assert at(fed("\x1b[?41habcdefghij\t", columns=10)) == (8, 1)
    assert at(fed("\x1b[?41h\x1b[?7labcdefghij\t", columns=10)) == (9, 0)


def test_without_autowrap_the_last_column_is_overwritten() -> None:
    """DECAWM reset, DEC STD 070 5-19."""
    assert rows(fed("\x1b[?7labcdefghijkl")) == ["abcdefghil"]


# Saving: DEC STD 070 5-49 DECSC, DECRC; xterm for SCOSC


@pytest.mark.parametrize(
    ("save", "restore"), [("\x1b7", "\x1b8"), ("\x1b[s", "\x1b[u"), ("\x1b[?1048h", "\x1b[?1048l")]
)
def test_saved_cursor(save: str, restore: str) -> None:
    terminal = fed(f"\x1b[2;3H\x1b[1;31m{save}\x1b[0m\x1b[4;8H{restore}x")
    assert terminal.cell(2, 1).text == "x"
    assert terminal.cell(2, 1).style.bold
    assert terminal.cell(2, 1).style.fg == 1


def test_a_saved_cursor_can_be_restored_twice() -> None:
    assert at(fed("\x1b[2;3H\x1b7\x1b[H\x1b8\x1b[H\x1b8")) == (2, 1)


def test_restoring_what_was_never_saved_goes_home() -> None:
    assert at(fed("\x1b[2;3H\x1b[?6h\x1b8")) == (0, 0)


def test_each_screen_has_a_saved_cursor_of_its_own() -> None:
    """xterm keeps one for each screen."""
    assert at(fed("\x1b[2;3H\x1b7\x1b[?47h\x1b[4;4H\x1b7\x1b[?47l\x1b8")) == (2, 1)


def test_saving_keeps_charsets_and_the_wrap_flag() -> None:
    assert rows(fed("\x1b(0\x1b7\x1b(B\x1b8q")) == ["─"]
    assert rows(fed("abcdefghij\x1b7\x1b[H\x1b8k"))[1] == "k"


def test_csi_u_with_a_parameter_restores_nothing() -> None:
    assert at(fed("\x1b[2;3H\x1b[s\x1b[H\x1b[1u")) == (0, 0)
