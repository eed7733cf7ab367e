"""The dummy's screen, drawn into the terminal core: nothing is lost, doubled or too wide at any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.dummy.composer import Composer
from synapse_tui.dummy.screen import (
    AlternateScreenPainter,
    Frame,
    MainScreenPainter,
    PanelView,
    Style,
    Transcript,
    panel,
)
from synapse_tui.dummy.turn import permission, question
from synapse_tui.terminal import Terminal

PLAIN = Style(color=True)


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


@given(STEPS)
def test_alternate_screen_shows_the_end_and_scrolls_nothing(steps):
    terminal = Terminal(20, 6)
    painter = AlternateScreenPainter(feed(terminal), lambda: 6)
    painter.begin()
    document: list[str] = []
    for finished, lines in steps:
        painter.paint(finished, Frame(lines, (0, 0)))
        document += finished
        shown = [row.rstrip() for row in terminal.display]
        assert shown[6 - len(lines) :] == lines
        above = document[-(6 - len(lines)) :] if len(lines) < 6 else []
        assert shown[: len(above)] == above
    assert len(terminal.scrollback) == 0


# -- transcript


def test_control_sequences_in_texts_do_nothing():
    transcript = Transcript(PLAIN, "dummy")
    evil = "a\x1b[2Jb\x1b]0;title\x07c\rd\x9be\x00f"
    transcript.add("user", evil)
    transcript.add("output", evil)
    rows, _ = transcript.take(80)
    composer = Composer()
    view = PanelView(composer, dialog=permission(evil), queued=[evil])
    for frame in (panel(view, PLAIN, 80, 24), panel(PanelView(composer, queued=[evil]), PLAIN, 80, 24)):
        rows += frame.lines
    for row in rows[6:]:
        assert "\x1b[2J" not in row
        assert not {"\r", "\x07", "\x9b", "\x00"} & set(row)
    assert sum("abcdef" in row for row in rows) == 4


# -- panel

DIALOGS = [
    None,
    permission("rm -rf build"),
    permission("very long command " * 40),
    question("Which of the many colours that there are do you like best of all?|red|blue"),
]


@pytest.mark.parametrize("lines", [5, 6, 8, 24])
@pytest.mark.parametrize("columns", [20, 21, 44, 80, 200])
@pytest.mark.parametrize("dialog", DIALOGS)
@pytest.mark.parametrize(
    "draft", ["", "short", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk", "日本語のとても長い下書き" * 20]
)
def test_bottom_rows_fit_any_size(columns, lines, dialog, draft):
    composer = Composer()
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


def test_only_the_number_of_an_option_answers():
    dialog = permission("x")
    for text in ("y", "4", "0", "12", "hello", ""):
        dialog.type(text)
    assert dialog.answer is None
    dialog.type("3")
    assert dialog.answer
    assert dialog.answer.choice == 3


# -- signals
