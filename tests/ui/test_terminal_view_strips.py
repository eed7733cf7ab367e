"""Rows as strips: cut anywhere they keep their columns, and what lies over them covers whole characters."""

from __future__ import annotations

import pytest
from rich.color import ColorSystem
from rich.console import Console

from synapse_tui.terminal import Terminal
from synapse_tui.terminal.render import clean_link
from synapse_tui.widgets.strips import Highlight, Pens, Span, TerminalStrip, build_pieces, color_parameters

WIDTH = 24
ROW = "ab漢字c⚠️d👨‍👩‍👧e🇯🇵fé●g"
CONSOLE = Console()


def strip_of(text: str, *spans: Span, width: int = WIDTH, column: int = 0) -> TerminalStrip:
    terminal = Terminal(WIDTH, 1, 0)
    terminal.feed(text.encode())
    return TerminalStrip(build_pieces(terminal.line(0), width, Pens(), spans), width, column)


def drawn(*strips: object, column: int = 0) -> Terminal:
    """An outer terminal on which strips were written beside one another."""
    terminal = Terminal(WIDTH + column, 1, 0)
    terminal.feed(b"\x1b[?7l" + b" " * column)
    for strip in strips:
        terminal.feed(strip.render(CONSOLE).encode())  # type: ignore[attr-defined]
    return terminal


def cells(terminal: Terminal) -> list[str]:
    return [terminal.cell(x, 0).text for x in range(terminal.columns)]


@pytest.mark.parametrize("start", range(WIDTH))
@pytest.mark.parametrize("end", [1, 3, 4, 8, 11, 15, WIDTH])
def test_a_part_of_a_row_has_its_cells_and_blank_halves(start, end):
    part = strip_of(ROW).crop(start, end)
    assert part.cell_length == max(0, end - start)
    if start >= end:
        return
    whole = cells(drawn(strip_of(ROW)))
    expected = whole[start:end]
    if expected[0] == "":
        expected[0] = " "
    if end < WIDTH and whole[end] == "":
        expected[-1] = " "
    terminal = Terminal(WIDTH, 1, 0)
    terminal.feed(f"\x1b[{start + 1}G{part.render(CONSOLE)}".encode())
    assert cells(terminal)[start:end] == expected
    assert sum(segment.cell_length for segment in part) == end - start


@pytest.mark.parametrize("cut", range(1, WIDTH))
def test_parts_beside_one_another_are_the_row(cut):
    whole = cells(drawn(strip_of(ROW)))
    if whole[cut] == "":
        whole[cut - 1] = whole[cut] = " "
    assert cells(drawn(*strip_of(ROW).divide([cut, WIDTH]))) == whole


@pytest.mark.parametrize(
    ("span", "covered"),
    [
        ((2, 3), {2, 3}),
        ((2, 4), {2, 3}),
        ((0, 3), {0, 1, 2, 3}),
        ((3, 5), {4, 5}),
        ((7, 8), {7, 8}),
        ((6, 8), {6, 7, 8}),
        ((20, 99), {20, 21, 22, 23}),
    ],
)
def test_what_lies_over_a_character_covers_all_of_it(span, covered):
    outer = drawn(strip_of(ROW, (*span, Highlight.SELECTED)))
    assert {x for x in range(WIDTH) if outer.cell(x, 0).style.bg == 4} == covered
    assert cells(outer) == cells(drawn(strip_of(ROW)))


@pytest.mark.parametrize("width", [3, 4, 10, WIDTH])
def test_a_row_of_another_width_is_cut(width):
    strip = strip_of(ROW, width=width)
    assert strip.cell_length == width
    assert sum(piece.cells for piece in strip.pieces) == width


@pytest.mark.parametrize(
    ("link", "fit"),
    [
        ("https://example.org/a?b=c#d", True),
        ("file:///tmp/日本", True),
        ("http://a b", False),
        ("http://a\x1b\\x", False),
        ("http://a\x9c", False),
        ("x" * 3000, False),
        ("", False),
        (None, False),
    ],
)
def test_links_that_could_end_their_sequence_are_dropped(link, fit):
    assert clean_link(link) == (link if fit else None)


@pytest.mark.parametrize(
    ("code", "system", "parameters"),
    [
        (1, ColorSystem.TRUECOLOR, ["31"]),
        (9, ColorSystem.STANDARD, ["91"]),
        (208, ColorSystem.EIGHT_BIT, ["38", "5", "208"]),
        (1 << 24 | 0x010203, ColorSystem.TRUECOLOR, ["38;2;1;2;3"]),
        (1 << 24 | 0xFF0000, ColorSystem.EIGHT_BIT, ["38", "5", "196"]),
        (-1, ColorSystem.STANDARD, []),
    ],
)
def test_colours_are_brought_down_to_what_the_terminal_shows(code, system, parameters):
    assert list(color_parameters(code, True, system)) == parameters
