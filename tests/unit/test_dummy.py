"""The dummy agent: keys, composer, text and screen; nothing is lost, doubled or too wide at any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.dummy.editor import DummyComposer
from synapse_tui.dummy.screen import (
    AnsiStyle,
    Frame,
    MainScreenPainter,
    PanelView,
    panel,
)
from synapse_tui.dummy.script import answer, permission, question
from synapse_tui.dummy.terminal import Key, KeyDecoder, Paste, Text
from synapse_tui.dummy.widths import width, wrap
from synapse_tui.terminal import Terminal

PLAIN = AnsiStyle(color=True)


def feed(terminal: Terminal):
    return lambda text: terminal.feed(text.encode("utf-8", "surrogateescape"))


def everything(terminal: Terminal) -> list[str]:
    """Scrollback and screen without the blanks at row ends and the empty rows below."""
    rows = [terminal.scrollback[index].text for index in range(len(terminal.scrollback))] + list(
        terminal.display
    )
    rows = [row.rstrip() for row in rows]
    while rows and not rows[-1]:
        rows.pop()
    return rows


ROWS = st.lists(st.sampled_from(["", "a", "row", "日本語", "─" * 20]), max_size=5)
STEPS = st.lists(st.tuples(ROWS, ROWS.filter(bool)), min_size=1, max_size=8)


@given(STEPS)
def test_main_screen_holds_all_finished_rows_and_the_last_frame(steps):
    terminal = Terminal(20, 6)
    painter = MainScreenPainter(feed(terminal))
    document: list[str] = []
    for finished, lines in steps:
        frame = Frame(lines, (len(lines) % 3, len(lines) - 1))
        painter.paint(finished, frame)
        document += finished
        expected = [*document, *lines]
        while expected and not expected[-1]:
            expected.pop()
        assert everything(terminal) == expected
        assert terminal.cursor.x == len(lines) % 3
        assert len(terminal.scrollback) + terminal.cursor.y == len(document) + len(lines) - 1


# -- transcript


@pytest.mark.parametrize("cells", range(4, 20))
def test_no_row_begins_with_a_sign_that_ends_a_sentence(cells):
    rows = wrap("何かを消す前に、尋ねます。それだけです。", cells)
    assert "".join(rows) == "何かを消す前に、尋ねます。それだけです。"
    assert not any(row[0] in "、。" for row in rows)
    assert max(map(width, rows)) <= cells


# -- panel

DIALOGS = [
    None,
    permission("rm -rf build"),
    permission("very long command " * 40),
    question("Which of the many colours that there are do you like best of all?|red|blue"),
]


@pytest.mark.parametrize("lines", [5, 8, 24])
@pytest.mark.parametrize("columns", [20, 44, 200])
@pytest.mark.parametrize("dialog", DIALOGS)
@pytest.mark.parametrize(
    "draft", ["", "short", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk", "日本語のとても長い下書き" * 20]
)
def test_bottom_rows_fit_any_size(columns, lines, dialog, draft):
    composer = DummyComposer()
    composer.insert(draft)
    view = PanelView(
        composer, "a placeholder longer than narrow terminals are", dialog, 3.0, 1, ("one", "two" * 99),
        "Press Ctrl+C again to exit", ["tail"], "a very long name of an agent", "working",
    )  # fmt: skip
    frame = panel(view, PLAIN, columns, lines)
    assert 0 < len(frame.lines) <= lines
    terminal = Terminal(columns, lines)
    MainScreenPainter(feed(terminal)).paint([], frame)
    assert len(terminal.scrollback) == 0
    assert not any(terminal.line(y).wrapped for y in range(lines))
    text = "\n".join(terminal.display)
    if dialog is not None:
        assert "❯ 1. " in text
        assert "Esc to c" in text
    else:
        x, y = frame.cursor or (-1, -1)
        assert (terminal.cursor.x, terminal.cursor.y) == (x, y)
        assert "❯" in text
        assert text.rstrip().endswith("working")


# -- dialogs


# -- signals


def typed(*parts: str) -> DummyComposer:
    """A composer after text and `<key>`s."""
    composer = DummyComposer()
    for part in parts:
        if part.startswith("<"):
            assert composer.press(part.strip("<>"))
        else:
            composer.insert(part)
    return composer


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["hello"], "hello"),
        (["helo", "<left>", "l"], "hello"),
        (["日本", "<backspace>", "語"], "日語"),
        (["👩\u200d💻x", "<backspace>", "<backspace>"], ""),
        (["e", "\u0301", "<backspace>"], ""),
        (["one two", "<ctrl+w>"], "one "),
        (["one two", "<alt+backspace>"], "one "),
        (["a\nb", "<ctrl+u>"], ""),
        (["abc", "<home>", "<delete>"], "bc"),
        (["abc", "<ctrl+a>", "<right>", "<ctrl+k>"], "a"),
        (["ab\ncd", "<up>", "X"], "abX\ncd"),
        (["日本\nabcd", "<left>", "<left>", "<up>", "X"], "日X本\nabcd"),
        (["ab\ncd", "<up>", "<down>", "X"], "ab\ncdX"),
        (["a\tb\x07\x1b"], "a\tb"),
    ],
)
def test_editing(parts, text):
    assert typed(*parts).text == text


KEYS = ["left", "right", "home", "end", "backspace", "delete", "up", "down", "ctrl+w", "ctrl+k"]


@given(
    st.lists(
        st.one_of(st.sampled_from(KEYS).map("<{}>".format), st.text("ab 日e\u0301\n", min_size=1, max_size=6))
    ),
    st.integers(2, 12),
)
def test_rows_hold_the_text_and_the_cursor(parts, cells):
    composer = typed(*parts)
    layout = composer.layout(cells)
    assert "".join(layout.rows) == composer.text.replace("\n", "")
    assert all(width(row) <= cells for row in layout.rows)
    assert 0 <= layout.y < len(layout.rows)
    assert 0 <= layout.x < cells
    assert layout.x <= width(layout.rows[layout.y])


PIECES = st.lists(
    st.sampled_from([
        b"a", "語".encode(), "👩\u200d💻".encode(), b"\r", b"\x1b[A", b"\x1bOB",
        b"\x1b[13;2u", b"\x1b\r", b"\x15",
        b"\x1b[200~long\r\n\xe8\xaa\x9e \x1b[20 text\x1b[201~", b"\x1b]11;x\x1b\\",
    ]),
    max_size=8,
)  # fmt: skip


def merged(tokens: list[Key | Text | Paste]) -> list[Key | Text | Paste]:
    """Runs of text joined: where they are cut depends on the reads."""
    result: list[Key | Text | Paste] = []
    for token in tokens:
        if result and isinstance(token, Text) and isinstance(result[-1], Text):
            result[-1] = Text(result[-1].text + token.text)
        else:
            result.append(token)
    return result


@given(PIECES, st.data())
def test_tokens_do_not_depend_on_the_reads(pieces, data):
    whole = b"".join(pieces)
    decoder = KeyDecoder()
    expected = merged(KeyDecoder().feed(whole))
    tokens = []
    place = 0
    while place < len(whole):
        size = data.draw(st.integers(1, 7))
        tokens += decoder.feed(whole[place : place + size])
        place += size
    assert merged(tokens) == expected


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp")), max_size=60)


@given(TEXT, st.integers(2, 30))
def test_rows_fit_and_lose_no_word(text, cells):
    rows = wrap(text, cells)
    assert all(width(row) <= cells for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


# -- script


# -- options and journal


def test_an_answer_counts_what_was_said_without_the_name_of_its_sender():
    assert answer("[A2A:0a1b:alice] hello", turn=0) == "alice says: hello\n(5 characters, 1 line)"
    assert answer("[A2A:0a1b:alice] one\ntwo", turn=0).endswith("(7 characters, 2 lines)")
