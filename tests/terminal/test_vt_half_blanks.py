"""Programs that write the second cell of an emoji as a blank, as ratatui does, and those that do not."""

from __future__ import annotations

import pytest

from synapse_tui.terminal import Terminal
from tests.terminal.terminal_kit import rows

_BLANK = "\x1b[39;49m \x1b[39;48;2;30;30;30m"
RATATUI = (
    f"\x1b[2;1H어\x1b[2;3H ⚠️{_BLANK} 한\x1b[2;9H국\x1b[2;11H어\x1b[2;13H ❤️{_BLANK} € "
    f"🏳️\u200d🌈{_BLANK} end\x1b[2;25H 1️⃣\x1b[2;28H ."
)
"""What ratatui wrote when it had drawn something else on that row before."""
ROW = "어 ⚠️ 한국어 ❤️ € 🏳️\u200d🌈 end 1️⃣ ."


def shown(output: str, size: int, *, half_blanks: bool = True) -> list[str]:
    """What a terminal shows of a program's output that comes in pieces of so many bytes."""
    terminal = Terminal(40, 4)
    terminal.half_blanks = half_blanks
    data = output.encode()
    for place in range(0, len(data), size):
        terminal.feed(data[place : place + size])
    return rows(terminal)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_row_of_ratatui_stands_in_its_place(size: int) -> None:
    assert shown(RATATUI, size) == ["", ROW]


def test_it_is_shifted_for_a_terminal_that_does_not_know() -> None:
    assert shown(RATATUI, 1000, half_blanks=False) != ["", ROW]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("output", "row"),
    [
        ("⚠️ a", "⚠️a"),
        ("⚠️  a", "⚠️ a"),
        ("⚠️\x1b[1;3H a", "⚠️ a"),  # the cursor was moved: it is the next cell
        ("⚠️\x1b[1m a", "⚠️a"),
        ("🎉 a", "🎉 a"),  # no variation selector: it writes nothing for the second cell
        ("⚠ a", "⚠ a"),
        ("a\ufe0f b", "a\ufe0f b"),  # that makes no emoji of it, so it has no second cell
        ("⚠️\r\n a", "⚠️"),
    ],
)
def test_only_the_blank_right_after_such_an_emoji_is_its_second_cell(
    output: str, row: str, size: int
) -> None:
    assert shown(output, size)[0] == row


def test_titles_are_left_alone() -> None:
    terminal = Terminal(40, 4)
    terminal.half_blanks = True
    terminal.feed("\x1b]2;⚠️ a title\x07".encode())
    assert terminal.title == "⚠️ a title"


def test_other_programs_keep_their_blanks() -> None:
    assert shown("⚠️ a ❤️  b", 1000, half_blanks=False) == ["⚠️ a ❤️  b"]
