"""What holds for any input: no exception, a sound screen, the same screen however the input is cut."""

from __future__ import annotations

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st

from synapse_tui.terminal import Terminal, TerminalEvent
from synapse_tui.terminal.cells import WIDE_TAIL, cluster_width, split_cells
from synapse_tui.terminal.row import Row, Run
from synapse_tui.terminal.scrollback import Joiner, breaks, cut, pack, rewrap

COLUMNS, LINES = 12, 5

words = st.text("ab c漢é\u0301😀🇩\u200d👩💻️⚠│क्ो1", max_size=9)
numbers = st.integers(0, 15).map(str) | st.just("") | st.just("99999")
finals = st.sampled_from(
    [*"@ABCDEFGHIJKLMPSTXZ`abcdefghilmnrstu", " q", " @", " A", "!p", '"q', "'}", "'~", "$p"]
)
sequences = st.builds(
    lambda prefix, parameters, final: f"\x1b[{prefix}{';'.join(parameters)}{final}",
    st.sampled_from(["", "", "", "?", ">", "=", "<"]),
    st.lists(numbers, max_size=4),
    finals,
)
modes = st.builds(
    lambda mode, on: f"\x1b[?{mode}{'h' if on else 'l'}",
    st.sampled_from(
        [1, 3, 5, 6, 7, 25, 40, 45, 47, 69, 1000, 1006, 1045, 1047, 1048, 1049, 2004, 2026, 2027, 2048]
    ),
    st.booleans(),
)
renditions = st.sampled_from(
    ["\x1b[m", "\x1b[1;31m", "\x1b[44m", "\x1b[38;2;1;2;3m", "\x1b[4:3m", "\x1b[48:5:9m"]
)
areas = st.builds(
    lambda numbers, final: f"\x1b[{';'.join(numbers)}${final}",
    st.lists(numbers, max_size=8),
    st.sampled_from("rtvwxz{"),
)
strings = st.sampled_from(
    [
        "\x1b]2;t漢\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1b]8;;\x1b\\",
        "\x1bP$qm\x1b\\",
        "\x1b_a\x1b\\",
        "\x1b]9;4;1;2\x07",
    ]
)
controls = st.sampled_from(
    [*"\r\n\b\t\x0e\x0f\x18", "\r\n", "\x1bM", "\x1bD", "\x1bE", "\x1bH", "\x1b7", "\x1b8"]
)
escapes = st.sampled_from(
    ["\x1b(0", "\x1b(B", "\x1bN", "\x1b6", "\x1b9", "\x1b#8", "\x1bV", "\x1bW", "\x9b3C", "\x1bc"]
)
tokens = st.one_of(words, words, sequences, modes, renditions, areas, strings, controls, controls, escapes)
streams = st.lists(tokens, max_size=30).map(lambda parts: "".join(parts).encode())


def state(terminal: Terminal) -> tuple[object, ...]:
    """All that a reader can see."""
    lines = [terminal.line(y) for y in range(terminal.lines)]
    return (
        [line.runs() for line in lines],
        [line.wrapped for line in lines],
        [line.text for line in terminal.scrollback],
        terminal.cursor,
        terminal.modes,
        terminal.title,
        terminal.take_replies(),
    )


def check(terminal: Terminal) -> None:
    """The screen is sound."""
    columns, lines = terminal.columns, terminal.lines
    cursor = terminal.cursor
    assert 0 <= cursor.x < columns
    assert 0 <= cursor.y < lines
    assert len(terminal.screen.rows) == lines
    for y in range(lines):
        line = terminal.line(y)
        assert sum(count for _, _, count in line.runs()) == columns
        cells = [line.cell(x) for x in range(columns)]
        assert sum(cell.width for cell in cells) == columns
        assert "".join(cell.text for cell in cells) == terminal.display[y]
        assert [cell.style for cell in cells] == [
            style for _, style, count in line.runs() for _ in range(count)
        ]
        assert not any(char < " " for char in terminal.display[y])
    for line in terminal.scrollback:
        assert sum(count for _, _, count in line.runs()) >= columns or line.text == ""


@settings(max_examples=60, deadline=None)
@given(streams, st.lists(st.integers(0, 400), max_size=8))
def test_input_may_be_cut_anywhere(data: bytes, cuts: list[int]) -> None:
    whole = Terminal(COLUMNS, LINES, 50)
    whole.feed(data)
    pieces = Terminal(COLUMNS, LINES, 50)
    start = 0
    for cut_at in [*sorted(min(cut_at, len(data)) for cut_at in cuts), len(data)]:
        pieces.feed(data[start:cut_at])
        start = cut_at
    assert state(pieces) == state(whole)


@settings(max_examples=60, deadline=None)
@given(streams)
def test_the_screen_stays_sound(data: bytes) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    terminal.feed(data)
    check(terminal)


editing = st.builds(
    lambda x, then: f"\x1b[2;{x}H{then}",
    st.integers(1, COLUMNS),
    st.sampled_from(
        [*"x漢", "⚠️", "e\u0301"]
        + [
            f"\x1b[{final}"
            for final in ("X", "2X", "@", "P", "2P", "K", "1K", "4h⚠️\x1b[4l", "'}", "'~", " @", " A")
        ]
        + ["\x1b[?69h\x1b[4;9s", "\x1b[?69l", "\x1b[S", "\x1b[L", "\x1b[2;3;2;8;1;2;6$v", "\x1b[2;4;2;7$z"]
        + ["\x1b[2;4;2;7;7$r", "\x1b[120;2;4;2;7$x", "\x1b[?7l", "\x1b[?7h", "\ufe0f", "\b", "\x1b[3b"]
    ),
)
wide_words = st.text("ab⚠️漢👩💻\u200d\ufe0f1\u20e3", max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(editing | wide_words | tokens, max_size=30), st.lists(st.integers(2, 20), max_size=3))
def test_no_row_ever_has_half_a_character(parts: list[str], widths: list[int]) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    for columns in (COLUMNS, *widths):
        terminal.resize(columns, LINES)
        terminal.feed("".join(parts).replace("\x1b[?2027l", "").encode())
        for y in range(LINES):
            line = terminal.line(y)
            cells = [line.cell(x) for x in range(columns)]
            assert [cell.width for cell in cells if cell.width] == [
                cluster_width(cell.text) for cell in cells if cell.text
            ]
            assert sum(cell.width for cell in cells) == columns
            assert not any(text.startswith(WIDE_TAIL) for text, _, _ in line.coded_runs())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode), st.integers(1, 60))
def test_any_bytes(data: bytes, size: int) -> None:
    heard: list[TerminalEvent] = []
    terminal = Terminal(COLUMNS, LINES, 50, listener=heard.append)
    for index in range(0, len(data), size):
        terminal.feed(data[index : index + size])
    check(terminal)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(streams, st.integers(1, 30), st.integers(1, 12)), max_size=6))
def test_any_sizes(steps: list[tuple[bytes, int, int]]) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    for data, columns, lines in steps:
        terminal.feed(data)
        terminal.resize(columns, lines)
        check(terminal)


plain_lines = st.lists(st.text("ab 漢é😀e\u0301", max_size=40), max_size=12)


@settings(max_examples=60, deadline=None)
@given(plain_lines, st.lists(st.integers(2, 40), min_size=1, max_size=5))
def test_no_text_is_lost_in_resizes(lines: list[str], widths: list[int]) -> None:
    terminal = Terminal(20, 6, 1000)
    terminal.feed("\r\n".join(lines).encode())
    for columns in widths:
        terminal.resize(columns, 6)
    shown = [line.text for line in terminal.scrollback] + [terminal.line(y).text for y in range(6)]
    terminal_of_old = Terminal(20, 6, 1000)
    terminal_of_old.feed("\r\n".join(lines).encode())
    before = [line.text for line in terminal_of_old.scrollback]
    before += [terminal_of_old.line(y).text for y in range(6)]
    assert "".join(shown).replace(" ", "") == "".join(before).replace(" ", "")


@settings(max_examples=60, deadline=None)
@given(st.lists(streams, max_size=8))
def test_damage_tells_all_that_differs(pieces: list[bytes]) -> None:
    terminal = Terminal(COLUMNS, LINES, 50)
    painted = [terminal.line(y).runs() for y in range(LINES)]
    followed = list(painted)
    terminal.take_damage()
    for piece in pieces:
        terminal.feed(piece)
        damage = terminal.take_damage()
        rows = [terminal.line(y).runs() for y in range(LINES)]
        if damage.scroll is not None:
            scroll = damage.scroll
            region = followed[scroll.top : scroll.bottom + 1]
            followed[scroll.top : scroll.bottom + 1] = region[scroll.lines :] + region[: scroll.lines]
        for y in damage.rows if damage.scroll is None else damage.scroll.rows:
            followed[y] = rows[y]
        for y in damage.rows:
            painted[y] = rows[y]
        assert painted == rows
        assert followed == rows


@settings(max_examples=60, deadline=None)
@given(streams, st.integers(2, 30))
def test_packing_a_row_and_cutting_it_gives_the_row_back(data: bytes, columns: int) -> None:
    terminal = Terminal(columns, 4)
    terminal.feed(data)
    rows = terminal.screen.rows
    for row in rows:
        line = pack(row)
        cells = split_cells(line.text)
        again = cut(cells, line.spans, 0, len(cells))
        again.fill = line.fill
        assert merged(again.runs(columns)) == merged(row.runs(columns))
    rewrapped, _ = rewrap(list(rows), (0, 0), columns, columns)
    assert texts(rewrapped, columns) == texts(rows, columns)


def texts(rows: list[Row], columns: int) -> list[str]:
    """What is written on the rows."""
    return [text for row in rows if (text := row.content(columns).strip())]


def merged(runs: list[Run]) -> list[Run]:
    """Neighbouring runs of one style as one."""
    result: list[Run] = []
    for text, style, count in runs:
        if result and result[-1][1] == style:
            before, _, size = result.pop()
            result.append((before + text, style, size + count))
        else:
            result.append((text, style, count))
    return result


pyte_knows = st.sampled_from(["\r\n", "\x1b[2;3H", "\x1b[A", "\x1b[K", "\x1b[1m", "\b", "\x1b[2P", "\x1b[@"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abc ", min_size=1, max_size=6) | pyte_knows, max_size=20))
def test_what_pyte_gets_right_is_the_same(parts: list[str]) -> None:
    data = "".join(parts)
    ours, theirs = Terminal(130, 30), pyte.Screen(130, 30)
    ours.feed(data.encode())
    pyte.Stream(theirs).feed(data)
    assert ours.display == theirs.display
    assert (ours.cursor.x, ours.cursor.y) == (theirs.cursor.x, theirs.cursor.y)


def test_rows_of_a_logical_line() -> None:
    assert breaks("abcdef", 4) == [0, 4]
    assert breaks("ab漢\0漢\0", 3) == [0, 2, 4]
    assert breaks("", 4) == [0]
    row = Row()
    row.append(0, 3, "abc", 0)
    more = Row()
    more.append(0, 2, "de", 7)
    joiner = Joiner(pack(row), 3)
    joiner.add(pack(more), 5)
    joined = joiner.line
    assert (joined.text, list(joined.spans)) == ("abc  de", [5, 7])
