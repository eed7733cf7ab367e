"""What has to be painted again after some input."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import Damage, Scroll, Terminal
from tests.terminal.terminal_kit import fed


def settled(data: str = "") -> Terminal:
    """A terminal whose damage has been taken."""
    terminal = fed(data)
    terminal.take_damage()
    return terminal


def damage(terminal: Terminal, data: str) -> Damage:
    terminal.feed(data.encode())
    return terminal.take_damage()


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("x", {0}),
        ("\x1b[3;1Hx", {2}),
        ("\x1b[2;1H\x1b[K", {1}),
        ("\x1b[2;1H\x1b[J", {1, 2, 3}),
        ("\x1b[2J", {0, 1, 2, 3}),
        ("\x1b[2;1H\x1b[P", {1}),
        ("\x1b[2;3r\x1b[2;1H\x1b[M", {1, 2}),
        ("abcdefghijk", {0, 1}),
        ("a\u0301", {0}),
        ("\x1b[1m", set()),
        ("\x1b[5n", set()),
    ],
)
def test_rows(data: str, rows: set[int]) -> None:
    terminal = settled("1\r\n2\r\n3\r\n4\x1b[H")
    assert damage(terminal, data).rows == rows


def test_the_cursor_alone() -> None:
    terminal = settled()
    assert damage(terminal, "\x1b[2;2H") == Damage(cursor=True)
    assert damage(terminal, "\x1b[?25l") == Damage(cursor=True)
    assert damage(terminal, "\x1b[5 q") == Damage(cursor=True)
    assert not damage(terminal, "\x1b[2;3H\x1b[2;2H")


def test_a_scroll_is_told_as_such() -> None:
    terminal = settled("1\r\n2\r\n3\r\n4")
    found = damage(terminal, "\r\n5")
    assert found.rows == {0, 1, 2, 3}, "whoever knows no scrolls paints all that differs"
    assert found.scroll == Scroll(0, 3, 1, frozenset({3}))
    down = damage(terminal, "\x1b[H\x1bM")
    assert down.scroll == Scroll(0, 3, -1, frozenset({0}))


def test_a_scroll_inside_margins() -> None:
    terminal = settled("1\r\n2\r\n3\r\n4\x1b[2;4r\x1b[4;1H")
    found = damage(terminal, "\nx")
    assert found.rows == {1, 2, 3}
    assert found.scroll == Scroll(1, 3, 1, frozenset({3}))


@pytest.mark.parametrize("data", ["\x1b[?1049h", "\x1bc", "\x1b[?5h", "\x1b]4;1;red\x07"])
def test_full(data: str) -> None:
    assert damage(settled("x"), data).full


def test_a_resize_damages_all() -> None:
    terminal = settled("x")
    assert terminal.resize(12, 5).full
    assert terminal.take_damage().full


def test_what_feed_returns_does_not_take_from_take_damage() -> None:
    terminal = settled("\r")
    assert terminal.feed(b"x").rows == {0}
    assert terminal.feed(b"\r\ny").rows == {1}
    assert terminal.take_damage().rows == {0, 1}
    assert not terminal.feed(b"")
