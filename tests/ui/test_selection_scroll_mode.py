"""Scroll mode without a screen around it: motions, search, copying, output that arrives meanwhile."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import Terminal
from synapse_tui.widgets.scroll_mode import LineSearch, ScrollMode, ScrollOutcome
from synapse_tui.widgets.viewport import Point, Viewport


class Reader:
    """A person in scroll mode on 40 numbered lines of a terminal with 10 rows."""

    def __init__(self, lines: list[str] | None = None) -> None:
        self.terminal = Terminal(20, 10, 1000)
        lines = [f"line {number}" for number in range(40)] if lines is None else lines
        self.terminal.feed("\r\n".join(lines).encode())
        self.viewport = Viewport(self.terminal)
        self.mode = ScrollMode(self.viewport, Point(self.viewport.last, 0))

    def keys(self, *keys: str) -> ScrollOutcome:
        outcome = ScrollOutcome.STAY
        for key in keys:
            outcome = self.mode.press(key, key if len(key) == 1 else "")
        return outcome

    def type(self, text: str) -> None:
        self.keys(*text)

    @property
    def here(self) -> str:
        line = self.viewport.line(self.mode.pointer.line)
        return line.text if line is not None else ""


@pytest.fixture
def reader():
    return Reader()


def test_pages_and_ends(reader):
    reader.keys("pageup")
    assert reader.viewport.offset == 9
    reader.keys("pagedown")
    assert reader.viewport.offset == 0
    reader.keys("g")
    assert (reader.viewport.offset, reader.here) == (30, "line 0")
    reader.keys("G")
    assert (reader.viewport.offset, reader.here) == (0, "line 39")


def test_the_pointer_scrolls_at_the_edge(reader):
    reader.keys(*["up"] * 12)
    assert reader.here == "line 27"
    assert reader.viewport.row(reader.mode.pointer.line) == 0
    assert reader.viewport.offset == 3


@pytest.mark.parametrize("keys", [("pagedown",), ("end",), ("down",), ("G",), ("j",), (" ",)])
def test_nothing_scrolls_below_the_live_screen(reader, keys):
    reader.keys(*keys)
    assert reader.viewport.offset == 0
    assert reader.here == "line 39"


def test_new_output_does_not_move_the_view(reader):
    reader.keys("pageup")
    shown = reader.viewport.shown(0)
    assert shown is not None
    before = shown.text
    reader.terminal.feed(b"\r\nmore" * 30)
    reader.viewport.absorb()
    shown = reader.viewport.shown(0)
    assert shown is not None
    assert shown.text == before


@pytest.mark.parametrize(("columns", "lines"), [(20, 6), (20, 14), (9, 10), (35, 10), (33, 30), (7, 4)])
def test_a_new_size_keeps_the_line_at_the_top(columns, lines):
    reader = Reader([f"{number}: of twenty-five characters"[: 12 + number % 15] for number in range(60)])
    reader.keys("/", *"39:", "enter", "v", *["down"] * 3, *["pageup"] * 3)
    reader.terminal.feed(b"\r\nmore" * 3)
    reader.viewport.absorb()
    shown = reader.viewport.shown(0)
    assert shown is not None
    number = shown.text.partition(":")[0]
    assert number.isdecimal()
    reader.terminal.feed(b"\r\nmore")  # not yet absorbed
    reader.viewport.resize(columns, lines, reader.terminal.resize)
    reader.mode.rewrapped()
    assert reader.viewport.offset
    assert reader.here.startswith(f"{number}: "), reader.here
    assert reader.viewport.row(reader.mode.pointer.line) == 0
    assert reader.mode.selection is None
    reader.keys("n")
    assert reader.here.startswith("39: ")


def test_the_search_is_incremental_and_goes_back_from_the_pointer(reader):
    reader.keys("/")
    reader.type("line 1")
    assert reader.here == "line 19"
    assert reader.mode.status.endswith("/line 1▏11/11")
    reader.type("2")
    assert reader.here == "line 12"
    reader.keys("backspace")
    assert reader.here == "line 19"
    reader.keys("enter", "n")
    assert reader.here == "line 18"
    reader.keys("N", "N")
    assert reader.here == "line 1"


def test_escape_takes_the_search_back(reader):
    reader.keys("/")
    reader.type("line 3")
    reader.keys("escape")
    assert reader.mode.search is None
    assert reader.here == "line 39"
    assert reader.keys("escape") is ScrollOutcome.LEAVE


def test_capitals_matter_only_when_there_are_any():
    reader = Reader(["Error one", "error two", "ERROR"])
    viewport = reader.viewport
    assert len(LineSearch(viewport, "error").matches) == 3
    assert len(LineSearch(viewport, "Error").matches) == 1


def test_places_of_wide_characters_are_columns():
    reader = Reader(["日本語 x 日本"])
    assert LineSearch(reader.viewport, "日本").matches == [(0, 0, 4), (0, 9, 13)]
    assert LineSearch(reader.viewport, "x").matches == [(0, 7, 8)]


def test_a_match_may_go_over_the_wrap_in_the_scrollback_and_between_it_and_the_screen():
    reader = Reader(["x" * 18 + "needle", *["-"] * 20, "y" * 18 + "needle" + "z" * 190])
    search = LineSearch(reader.viewport, "needle")
    first, second = search.matches
    assert (first.start, first.end) == (18, 24)
    assert search.columns(first.line) == [(18, 20, False)]
    assert search.columns(first.line + 1) == [(0, 4, False)]
    assert reader.viewport.row(second.line) < 0
    search.go(Point(second.line, 18), older=False, stay=True)
    assert search.columns(second.line + 1) == [(0, 4, True)]
    assert search.position == 2


def test_select_and_copy(reader):
    reader.keys("up", "up", "v", "down", "l", "l", "l")
    assert reader.keys("y") is ScrollOutcome.COPY
    assert reader.mode.selection is not None
    assert reader.mode.selection.text == "line 37\nline"
