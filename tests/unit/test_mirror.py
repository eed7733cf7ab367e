"""Painting a screen on another terminal: the same picture, cut where it has no room, nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.recording.mirror import END, START, Mirror
from synapse_tui.terminal import Line, Style, Terminal, TerminalEvent
from synapse_tui.terminal.render import clean_link
from tests.terminal.test_vt_properties import streams

COLUMNS, LINES = 12, 5
LOOKS = (
    "fg",
    "bg",
    "bold",
    "dim",
    "italic",
    "blink",
    "hidden",
    "strike",
    "overline",
    "underline",
    "underline_color",
)


class Viewer:
    """A terminal that frames are painted on."""

    def __init__(self, columns: int, lines: int) -> None:
        self.heard: list[TerminalEvent] = []
        self.terminal = Terminal(columns, lines, 10, listener=self.heard.append)
        self.terminal.feed(START)

    def paint(self, data: bytes) -> None:
        self.terminal.feed(data)

    @property
    def rows(self) -> list[str]:
        return [row.rstrip() for row in self.terminal.display]


def wanted(mirror: Mirror, columns: int, lines: int) -> list[list[tuple[str, int, object]]]:
    """The cells that a viewer is to show."""
    terminal = mirror.terminal
    inverted = terminal.modes.reverse_video
    rows = []
    for y in range(lines):
        row = cells_of(terminal.line(y), columns, inverted) if y < terminal.lines else []
        rows.append(row + [(" ", 1, look(Style()))] * (columns - len(row)))
    return rows


def cells_of(line: Line, columns: int, inverted: bool) -> list[tuple[str, int, object]]:
    cells = [line.cell(x) for x in range(min(len(line), columns))]
    if cells and cells[-1].width == 2:  # its right half is cut off
        cells[-1] = type(cells[-1])(" ", 1, cells[-1].style)
    return [(cell.text, cell.width, look(cell.style, inverted)) for cell in cells]


def look(style: Style, inverted: bool = False) -> tuple[object, ...]:
    values = [getattr(style, name) for name in LOOKS]
    if not style.underline:
        values[-1] = -1  # the colour of an underline that there is none of
    return (*values, style.reverse != inverted, clean_link(style.link))


def shown(viewer: Viewer) -> list[list[tuple[str, int, object]]]:
    return [
        cells_of(viewer.terminal.line(y), viewer.terminal.columns, False)
        for y in range(viewer.terminal.lines)
    ]


sizes = st.tuples(st.integers(1, 30), st.integers(1, 10))
# Without mode 2027 a cluster has other widths than the viewer, who has it, can show; rectangular areas of
# attributes may divide a wide character.
clustered = streams.filter(lambda data: b"2027" not in data and b"$" not in data)
own_sizes = st.tuples(st.integers(2, 30), st.integers(1, 10))
"""A wide character has no picture on a screen of one column."""


@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(st.tuples(clustered, st.none() | own_sizes), max_size=6),
    view=sizes | st.just((COLUMNS, LINES)),
)
def test_a_viewer_sees_the_picture(steps: list[tuple[bytes, tuple[int, int] | None]], view) -> None:
    mirror, viewer = Mirror(COLUMNS, LINES), Viewer(*view)
    for data, size in steps:
        mirror.feed(data)
        if size is not None:
            mirror.resize(*size)
        viewer.paint(mirror.frame(*view))
        assert shown(viewer) == wanted(mirror, *view)
        cursor = mirror.terminal.cursor
        assert viewer.terminal.cursor.visible is (
            cursor.visible and cursor.x < view[0] and cursor.y < view[1]
        )
        if viewer.terminal.cursor.visible:
            seen = viewer.terminal.cursor
            assert (seen.x, seen.y, seen.shape) == (cursor.x, cursor.y, cursor.shape)
    assert mirror.frame(*view) == b"" or not steps


@settings(max_examples=100, deadline=None)
@given(data=clustered, before=st.text("#漢 e\u0301", max_size=200), view=sizes)
def test_a_full_frame_needs_nothing_that_was_there(data: bytes, before: str, view) -> None:
    mirror, viewer = Mirror(COLUMNS, LINES), Viewer(*view)
    mirror.feed(data)
    mirror.frame(*view)
    viewer.paint(b"\x1b[1;45m\x1b[2J" + before.encode())
    viewer.paint(mirror.full(*view))
    assert shown(viewer) == wanted(mirror, *view)


def test_only_what_changed_is_painted() -> None:
    mirror, viewer = Mirror(20, 5), Viewer(20, 5)
    mirror.feed("one\r\ntwo\r\n漢字".encode())
    viewer.paint(mirror.full(20, 5))
    mirror.feed(b"\x1b[2;1HTWO")
    frame = mirror.frame(20, 5)
    assert b"TWO" in frame
    assert b"one" not in frame
    viewer.paint(frame)
    assert viewer.rows == ["one", "TWO", "漢字", "", ""]
    assert mirror.frame(20, 5) == b""
    mirror.feed(b"\x1b[2;1HTWO")
    assert mirror.frame(20, 5).count(b"TWO") == 0


def test_wide_characters_are_not_halved() -> None:
    mirror = Mirror(10, 2)
    mirror.feed("漢字漢字".encode())
    for columns, row in ((8, "漢字漢字"), (7, "漢字漢"), (3, "漢"), (1, "")):
        viewer = Viewer(columns, 2)
        viewer.paint(mirror.full(columns, 2))
        assert viewer.rows == [row, ""]


def test_a_view_that_grows_and_shrinks_is_painted_anew() -> None:
    mirror = Mirror(10, 3)
    mirror.feed(b"abcdefghij\r\nx\x1b[44m\x1b[K")
    viewer = Viewer(14, 4)
    viewer.paint(b"#" * 56)
    for view in ((10, 3), (14, 4), (5, 2), (14, 4)):
        viewer.terminal.resize(*view)
        viewer.paint(mirror.frame(*view))
        assert shown(viewer) == wanted(mirror, *view)


def test_nothing_but_the_picture_gets_through() -> None:
    mirror, viewer = Mirror(40, 3), Viewer(40, 3)
    mirror.feed(
        b"\x1b]52;c;aGVsbG8=\x07\x1b]2;title\x07\x1b[c\x1b[6n\x1b]10;?\x07\x1bP$qm\x1b\\\x1b[8;1;1t\x1b[18t"
        b"\x1b[?1049h\x1b[?1003h\x1b[?2004h\x1b[>1u\x1b[?1h\x07\x1b]8;;javascript:a b\x07link"
    )
    viewer.paint(mirror.full(40, 3))
    assert viewer.rows == ["link", "", ""]
    assert viewer.heard == []
    assert viewer.terminal.take_replies() == b""
    modes = viewer.terminal.modes
    assert (modes.mouse, modes.bracketed_paste, modes.kitty_flags, modes.alternate_screen) == (
        0,
        False,
        0,
        False,
    )
    assert mirror.terminal.take_replies() == b""


def test_text_that_would_act_on_the_outer_terminal_is_left_out() -> None:
    mirror, viewer = Mirror(20, 2), Viewer(20, 2)
    mirror.feed("a\u202eb\u200f\u2066c".encode())
    frame = mirror.full(20, 2).decode()
    assert not set("\u202e\u200f\u2066") & set(frame)
    viewer.paint(frame.encode())
    assert (
        viewer.rows[0]
        == mirror.terminal.display[0].translate({0x202E: None, 0x200F: None, 0x2066: None}).rstrip()
    )


def test_underlines_and_colours_are_complete() -> None:
    mirror = Mirror(20, 2)
    mirror.feed(
        b"\x1b[4:3;58:2::1:2:3;38;2;9;8;7;48;5;200mx\x1b[0;4:5;58:5:9;91;102my\x1b[0;21;53;9;5;8;2;3;1;7mz"
    )
    frame = mirror.full(20, 2)
    assert b"\x1b[0;4:3;58:2::1:2:3;38;2;9;8;7;48;5;200mx" in frame
    assert b"\x1b[0;4:5;58:5:9;91;102my" in frame
    assert b"\x1b[0;1;2;3;5;8;9;53;4:2;7mz" in frame


@pytest.mark.parametrize("shape", range(7))
def test_the_cursor_has_its_shape(shape: int) -> None:
    mirror = Mirror(20, 2)
    mirror.feed(b"\x1b[%d qab" % shape)
    assert b"\x1b[1;3H\x1b[%d q\x1b[?25h" % shape in mirror.full(20, 2)
    mirror.feed(b"\x1b[?25l")
    assert mirror.frame(20, 2).endswith(b"\x1b[?25l\x1b[?2026l")


def test_the_end_leaves_a_terminal_as_a_shell_expects_it() -> None:
    mirror, viewer = Mirror(20, 2), Viewer(20, 2)
    mirror.feed(b"\x1b[?25l\x1b[6 q\x1b[1mx")
    viewer.paint(mirror.full(20, 2) + END)
    terminal = viewer.terminal
    assert terminal.modes.autowrap
    assert not terminal.modes.synchronized
    assert (terminal.cursor.visible, terminal.cursor.shape) == (True, "block")
    viewer.paint(b"\x1b[2Hp")
    assert terminal.cell(0, 1).style == Style()
