"""A dump makes another terminal like the one it was taken from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from synapse_tui.terminal import Line, Terminal, capture_history, newest_lines
from synapse_tui.terminal.dump import dump
from synapse_tui.terminal.screen import MOUSE_ENCODINGS, MOUSE_MODES, PRIVATE_MODES, REMEMBERED
from synapse_tui.terminal.scrollback import unpacked
from synapse_tui.terminal.style import LINK_SHIFT, NO_LINK
from tests.terminal.recordings import RECORDED, load
from tests.terminal.terminal_kit import fed, rows
from tests.terminal.test_vt_properties import COLUMNS, LINES, streams, tokens

ASKED = (*PRIVATE_MODES, *REMEMBERED, *MOUSE_MODES, *MOUSE_ENCODINGS, 47, 1047, 1049)


def again(terminal: Terminal, scrollback: int = 50) -> Terminal:
    """Another terminal, fed with the dump of the first."""
    other = Terminal(terminal.columns, terminal.lines, scrollback)
    other.feed(dump(terminal))
    other.take_replies()
    return other


Look = tuple[int, tuple[str, str]]


def look(terminal: Terminal, packed: int) -> Look:
    """A style with its link and group in place of the link's number, which is another in each terminal."""
    return packed & NO_LINK, terminal.screen.table.target(packed >> LINK_SHIFT)


def cells(terminal: Terminal, line: Line) -> list[tuple[str, Look, int]]:
    """The characters of a line; a right half has the style of its left half."""
    found = [line.cell(x) for x in range(len(line))]
    return [(cell.text, look(terminal, cell.style.packed), cell.width) for cell in found if cell.width]


def screen(terminal: Terminal) -> list[object]:
    lines = [terminal.line(y) for y in range(terminal.lines)]
    return [[cells(terminal, line) for line in lines], [line.wrapped for line in lines]]


def modes(terminal: Terminal) -> list[object]:
    core = terminal.screen
    return [
        terminal.modes,
        [core.private_mode_state(number) for number in ASKED],
        [core.ansi_mode_state(number) for number in (2, 4, 12, 20)],
        core.saved_modes,
        (core.top, core.bottom, core.left, core.right),
        {stop for stop in core.tabstops if stop < core.columns},
        (core.title, core.icon_name, core.title_stack, core.icon_stack),
        (core.main_buffer.kitty, core.alternate_buffer.kitty),
        (core.charsets, core.shift, core.single_shift, core.iso_protection),
        (core.level, core.eight_bit_replies, core.attribute_extent, core.checksum_flags, core.cursor_shape),
        (core.colors.own, core.colors.palette, len(core.saved_styles)),
    ]


def pending(terminal: Terminal) -> bool:
    return terminal.screen.x >= terminal.columns


def saved(terminal: Terminal) -> list[object]:
    core = terminal.screen
    found: list[object] = []
    for buffer in (core.main_buffer, core.alternate_buffer):
        kept = buffer.saved
        found.append(
            (
                kept._replace(style=0, x=min(kept.x, core.columns), y=min(kept.y, core.lines - 1)),
                look(terminal, kept.style),
            )
        )
    return found


def state(terminal: Terminal) -> list[object]:
    """All that a dump keeps but the screen that is not shown: that, the scrollback, and what is neither."""
    return [
        screen(terminal),
        [(cells(terminal, line), line.wrapped) for line in terminal.scrollback],
        (terminal.cursor, pending(terminal)),
        look(terminal, terminal.screen.style),
        saved(terminal),
        modes(terminal),
    ]


def other_screen(terminal: Terminal) -> list[object]:
    """What the screen shows that is not shown; the terminal is of no use afterwards."""
    terminal.feed(b"\x18\x1b[?47l" if terminal.modes.alternate_screen else b"\x18\x1b[?47h")
    return screen(terminal)


def expressible(terminal: Terminal) -> bool:
    """Whether the cursor stands where sequences can put it."""
    core = terminal.screen
    inside = core.top <= core.y <= core.bottom and core.left <= core.column <= core.right
    return inside or not core.modes.origin


@settings(max_examples=60, deadline=None)
@given(streams)
@example("1\ufe0f\u094d\b".encode())
def test_a_terminal_fed_with_a_dump_is_like_the_first(data: bytes) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    terminal.feed(data)
    terminal.take_replies()
    assume(expressible(terminal))
    other = again(terminal)
    assert state(other) == state(terminal)
    assert other_screen(other) == other_screen(terminal)


more = st.lists(tokens.filter(lambda token: not token.endswith("b")), max_size=8)


@settings(max_examples=40, deadline=None)
@given(streams, more.map(lambda parts: "".join(parts).encode()))
def test_both_go_on_alike(data: bytes, following: bytes) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    terminal.feed(data)
    terminal.take_replies()
    assume(expressible(terminal))
    other = again(terminal)
    for each in (terminal, other):
        each.feed(following)
    assert state(other)[0] == state(terminal)[0]
    assert other.cursor == terminal.cursor
    assert other.take_replies() == terminal.take_replies()


@settings(max_examples=60, deadline=None)
@given(streams, st.integers(2, 30), st.integers(1, 10))
@example("abcdefghijk⚠️xyz\r\n1\r\n2\r\n3\r\n4".encode(), 20, 6)
def test_both_are_resized_alike(data: bytes, columns: int, lines: int) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    terminal.feed(data)
    assume(expressible(terminal))
    other = again(terminal)
    for each in (terminal, other):
        each.resize(columns, lines)
    assert [row.rstrip() for row in other.display] == [row.rstrip() for row in terminal.display]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", RECORDED)
def test_recordings(name: str) -> None:
    recording = load(name)
    terminal = Terminal(recording.columns, recording.lines)
    last = len(recording.steps) - 1
    for number, step in enumerate(recording.steps):
        terminal.feed(step.data)
        if step.size is not None:
            terminal.resize(*step.size)
        terminal.take_replies()
        if number % 4 and step.size is None and number < last:
            continue
        other = Terminal(terminal.columns, terminal.lines)
        other.feed(dump(terminal, scrollback_lines=None if number == last else 0))
        kept = slice(None) if number == last else slice(2, None)
        assert screen(other) == screen(terminal), step.place
        assert state(other)[kept] == state(terminal)[kept], step.place


@pytest.mark.parametrize("cut", range(1, 12))
def test_what_is_open_at_the_end_goes_on(cut: int) -> None:
    for data in ("\x1b]2;a title\x07x", "\x1b[38;5;123mred", "a漢字b", "\x1bP$qm\x1b\\ok", "\x1b_apc\x1b\\y"):
        raw = data.encode()
        first = fed(raw[:cut])
        first.take_replies()
        other = again(first)
        for each in (first, other):
            each.feed(raw[cut:])
        assert state(other) == state(first)
        assert other.take_replies() == first.take_replies()


def test_a_string_that_is_too_long_stays_without_effect() -> None:
    terminal = fed(b"\x1b]2;" + b"x" * 5_000_000)
    other = again(terminal)
    assert len(dump(terminal)) < 1000
    other.feed(b"\x07here")
    assert (other.title, rows(other)) == ("", ["here"])


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_the_newest_lines_of_the_scrollback(count: int) -> None:
    terminal = fed("".join(f"{number}\r\n" for number in range(20)))
    other = Terminal(10, 4, 100)
    other.feed(dump(terminal, scrollback_lines=count))
    assert [line.text for line in other.scrollback] == [line.text for line in terminal.scrollback][-count:][
        :count
    ]


def test_a_line_that_goes_on_in_the_screen_is_still_one() -> None:
    terminal = fed("abcdefghijklmnopqrst\r\n1\r\n2\r\n3")
    for source in (dump(terminal), dump(terminal, scrollback_lines=0)):
        other = Terminal(10, 4, 100)
        other.feed(source)
        assert other.line(0).wrapped
        assert screen(other) == screen(terminal)
    other = again(terminal)
    other.resize(20, 5)
    assert rows(other) == ["abcdefghijklmnopqrst", "1", "2", "3"]


def test_a_dump_changes_nothing() -> None:
    terminal = fed("a\r\nb\x1b[5;3Hc\x1b[?1049h漢", scrollback=100)
    before = replace(terminal.modes)
    first = dump(terminal)
    assert dump(terminal) == first
    assert terminal.modes == before
    assert dump(again(terminal)) == first


def test_entries_may_be_read_while_lines_come_in() -> None:
    terminal = fed("".join(f"{number}\r\n" for number in range(300)), scrollback=100)
    entries = terminal.scrollback.entries()
    terminal.feed(b"more\r\n" * 500)
    assert [unpacked(entry)[0].text for entry in entries] == [str(number) for number in range(197, 297)]


# The history


def history(terminal: Terminal) -> bytes:
    return capture_history(terminal).render()


def test_the_history_is_lines_of_text_and_renditions() -> None:
    terminal = fed(
        "one\r\n\x1b[31mred\x1b[0m and a long line\r\n\x1b]8;;http://x\x07link\x1b]8;;\x07\r\n漢字", 10, 2
    )
    assert history(terminal).decode() == (
        "one\r\n\x1b[0;31mred\x1b[0m and a long line\r\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\r\n漢字"
    )


def test_the_history_of_a_program_on_the_alternate_screen() -> None:
    terminal = fed("shell$ agent\x1b[?1049h\x1b[2;3Hits screen")
    assert history(terminal) == b"shell$ agent\r\n\r\n  its screen"


@settings(max_examples=60, deadline=None)
@given(streams)
def test_the_history_has_the_text_of_all_lines(data: bytes) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    terminal.feed(data)
    if terminal.modes.alternate_screen:
        terminal.feed(b"\x18\x1b[?47l")
    other = Terminal(COLUMNS, LINES, 100)
    other.feed(history(terminal))
    assert everything(other) == everything(terminal)


def everything(terminal: Terminal) -> str:
    lines = [*terminal.scrollback, *(terminal.line(y) for y in range(terminal.lines))]
    return "".join(line.text for line in lines).replace(" ", "")


def test_the_newest_lines_of_a_history() -> None:
    data = b"one\r\ntwo\r\nthree"
    assert newest_lines(data, 100) == data
    assert newest_lines(data, 12) == b"two\r\nthree"
    assert newest_lines(data, 9) == b"three"
    assert newest_lines(data, 3) == b""
