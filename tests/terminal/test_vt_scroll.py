"""Scrolling, margins, the two screens, and what goes to the scrollback."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import LineScrolled, ScreenSwitched, ScrollbackCleared
from tests.terminal.terminal_kit import at, fed, make, rows

LINES = "a\r\nb\r\nc\r\nd"


def history(data: str, lines: int = 4) -> list[str]:
    return [line.text for line in fed(data, 10, lines).scrollback]


def test_a_line_feed_at_the_bottom_scrolls_into_the_scrollback() -> None:
    terminal = fed(LINES + "\r\ne")
    assert rows(terminal) == ["b", "c", "d", "e"]
    assert history(LINES + "\r\ne\r\nf") == ["a", "b"]
    assert terminal.scrolled_total == 1


def test_reverse_index_at_the_top_scrolls_down() -> None:
    assert rows(fed(LINES + "\x1b[H\x1bM")) == ["", "a", "b", "c"]


def test_lines_scroll_inside_the_margins() -> None:
    """DECSTBM, DEC STD 070 5-22."""
    assert rows(fed(LINES + "\x1b[2;3r\x1b[3;1H\ne")) == ["a", "c", "e", "d"]
    assert rows(fed(LINES + "\x1b[2;3r\x1b[2;1H\x1bMe")) == ["a", "e", "b", "d"]
    assert history(LINES + "\x1b[2;3r\x1b[3;1H\n\n") == []


def test_a_region_at_the_top_feeds_the_scrollback() -> None:
    """xterm: what leaves row 0 of the main screen is saved, wherever the bottom margin is."""
    assert history(LINES + "\x1b[1;3r\x1b[3;1H\n") == ["a"]
    assert history(LINES + "\x1b[S") == ["a"]


def test_below_the_region_a_line_feed_does_not_scroll() -> None:
    terminal = fed(LINES + "\x1b[1;2r\x1b[4;1H\n\n")
    assert rows(terminal) == ["a", "b", "c", "d"]
    assert at(terminal) == (0, 3)


@pytest.mark.parametrize("data", ["\x1b[3;2r", "\x1b[2;2r", "\x1b[9;99r"])
def test_margins_that_are_none_are_ignored(data: str) -> None:
    terminal = fed("\x1b[2;2H" + data)
    assert terminal.screen.margins is None
    assert at(terminal) == (1, 1)


def test_side_margins_scroll_a_block() -> None:
    """VT420, xterm ctlseqs DECSLRM."""
    grid = "abcd\r\nefgh\r\nijkl\r\nmnop\x1b[?69h\x1b[2;3s"
    assert rows(fed(grid + "\x1b[4;2H\n")) == ["afgd", "ejkh", "inol", "m  p"]
    assert rows(fed(grid + "\x1b[1;2H\x1bM")) == ["a  d", "ebch", "ifgl", "mjkp"]
    assert rows(fed(grid + "\x1b[4;1H\n")) == ["abcd", "efgh", "ijkl", "mnop"]
    assert rows(fed(grid + "\x1b[S")) == ["afgd", "ejkh", "inol", "m  p"]
    assert history(grid + "\x1b[S") == []


# The alternate screen: xterm ctlseqs, modes 47, 1047, 1048, 1049


@pytest.mark.parametrize("mode", ["47", "1047", "1049"])
def test_the_alternate_screen_hides_the_main_one(mode: str) -> None:
    terminal, heard = make()
    terminal.feed(f"main\x1b[?{mode}hXX".encode())
    assert "main" not in terminal.display[0]
    assert terminal.modes.alternate_screen
    terminal.feed(f"\x1b[?{mode}l".encode())
    assert rows(terminal) == ["main"]
    assert heard == [ScreenSwitched(True), ScreenSwitched(False)]


def test_1049_keeps_the_cursor_and_clears() -> None:
    assert at(fed("ab\x1b[?1049h\x1b[4;4H\x1b[?1049l")) == (2, 0)
    assert rows(fed("\x1b[?47hold\x1b[?47l\x1b[?1049h")) == []
    assert rows(fed("\x1b[?1049hold\x1b[?1049h")) == [], "xterm clears also when it is shown already"


def test_47_keeps_what_is_on_the_alternate_screen_and_1047_does_not() -> None:
    assert rows(fed("\x1b[?47hold\x1b[?47l\x1b[?47h")) == ["old"]
    assert rows(fed("\x1b[?1047hold\x1b[?1047l\x1b[?1047h")) == []


def test_leaving_the_main_screen_restores_only_what_1049_saved() -> None:
    assert at(fed("\x1b[2;3H\x1b7\x1b[4;4H\x1b[?1049l")) == (2, 1), "as DECRC"


def test_the_alternate_screen_has_no_scrollback() -> None:
    assert history("\x1b[?1049h" + "x\r\n" * 9) == []


def test_lines_that_scroll_off_are_reported_when_asked_for() -> None:
    terminal, heard = make()
    terminal.feed(b"a\r\nb\r\nc\r\nd\r\n")
    assert heard == []
    terminal.report_scrolled_lines = True
    terminal.feed(b"\r\n\x1b[?1049h\x1b[HX\r\n\r\n\r\n\r\n")
    lines = [event.line.text for event in heard if isinstance(event, LineScrolled)]
    assert lines == ["b", "X"]
    assert isinstance(heard[-1], LineScrolled)


@pytest.mark.parametrize("clears", ["\x1b[3J", "\x1bc"])
def test_a_cleared_scrollback_is_reported_when_asked_for(clears: str) -> None:
    terminal, heard = make()
    terminal.feed(clears.encode())
    assert ScrollbackCleared() not in heard
    terminal.report_scrolled_lines = True
    terminal.feed(clears.encode())
    assert ScrollbackCleared() in heard


def test_ed_3_clears_the_scrollback_and_the_count_goes_on() -> None:
    terminal = fed(LINES + "\r\n\r\n\x1b[3J")
    assert len(terminal.scrollback) == 0
    assert terminal.scrolled_total == 2


def test_kitty_flags_belong_to_a_screen() -> None:
    """kitty keyboard protocol: each screen has a stack of its own."""
    terminal = fed("\x1b[>5u\x1b[?1049h")
    assert terminal.modes.kitty_flags == 0
    terminal.feed(b"\x1b[>1u\x1b[?1049l")
    assert terminal.modes.kitty_flags == 5
