"""The dummy's screen, drawn into the terminal core: nothing is lost, doubled or too wide at any size."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.dummy.composer import Composer
from synapse_tui.dummy.runner import StatusSignals
from synapse_tui.dummy.screen import (
    AlternateScreenPainter,
    Frame,
    MainScreenPainter,
    PanelView,
    Style,
    Transcript,
    banner,
    panel,
)
from synapse_tui.dummy.turn import Dialog, permission, question
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


def test_an_unchanged_frame_sends_nothing():
    sent: list[str] = []
    painter = MainScreenPainter(sent.append)
    painter.paint(["x"], Frame(["a", "b"], (0, 1)))
    sent.clear()
    painter.paint([], Frame(["a", "b"], (0, 1)))
    assert sent == []
    painter.paint([], Frame(["a", "c"], (0, 1)))
    assert "a" not in sent[0].replace("\x1b[?2026", "")


# -- transcript


def test_a_growing_answer_is_given_out_row_by_row():
    transcript = Transcript(PLAIN, "dummy")
    transcript.take(20)
    block = transcript.add("note", "one", closed=False)
    seen: list[str] = []
    for word in ["two", "three", "four", "five", "six", "seven", "eight"]:
        finished, tail = transcript.take(20)
        seen += finished
        assert len(tail) == 1
        block.text += f" {word}"
    transcript.close()
    finished, tail = transcript.take(20)
    plain = [row.replace("\x1b[2m", "").replace("\x1b[22m", "") for row in seen + finished]
    assert tail == []
    assert plain == ["", "  one two three four", "  five six seven", "  eight"]


def test_long_messages_are_shortened_on_the_screen_only():
    transcript = Transcript(PLAIN, "dummy")
    transcript.add("user", "\n".join(map(str, range(100))))
    rows, _ = transcript.take(80)
    assert len(rows) < 30
    assert "100 lines in all" in rows[-1]


def test_huge_messages_cost_nothing_to_show():
    transcript = Transcript(PLAIN, "dummy")
    transcript.add("user", "x\n" * 5_000_000)
    started = time.thread_time()
    transcript.take(80)
    assert time.thread_time() - started < 0.5


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


def test_replay_gives_everything_again():
    transcript = Transcript(PLAIN, "dummy")
    transcript.add("agent", "hello")
    first = transcript.take(60)
    assert transcript.take(60) == ([], [])
    transcript.replay()
    assert transcript.take(60) == first


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


def test_small_terminals_show_every_option_and_the_question():
    rows = panel(PanelView(Composer(), dialog=permission("x")), PLAIN, 20, 5).lines
    assert len(rows) == 5
    assert "Do you want" in rows[0]


@pytest.mark.parametrize("columns", range(20, 100, 7))
def test_banner_fits(columns):
    terminal = Terminal(columns, 8)
    terminal.feed("\r\n".join(banner(PLAIN, "dummy-with-a-name", columns)).encode())
    assert not any(terminal.line(y).wrapped for y in range(8))


# -- dialogs


@pytest.mark.parametrize(
    ("keys", "choice", "allowed"),
    [
        (["enter"], 1, True),
        (["down", "enter"], 2, True),
        (["up", "enter"], 3, False),
        (["down", "down", "down", "enter"], 1, True),
        (["escape"], 0, False),
        (["ctrl+c"], 0, False),
        (["tab", "ctrl+n", "enter"], 3, False),
    ],
)
def test_dialog_keys(keys, choice, allowed):
    dialog = permission("x")
    for key in keys:
        dialog.press(key)
    assert dialog.answer
    assert dialog.answer.choice == choice
    assert dialog.allowed is allowed


def test_only_the_number_of_an_option_answers():
    dialog = permission("x")
    for text in ("y", "4", "0", "12", "hello", ""):
        dialog.type(text)
    assert dialog.answer is None
    dialog.type("3")
    assert dialog.answer
    assert dialog.answer.choice == 3


def test_options_of_a_question():
    dialog: Dialog = question("Which? | red | blue")
    assert (dialog.question, dialog.options, dialog.kind) == ("Which?", ("red", "blue"), "question")


# -- signals


def test_states_are_told_by_title_status_and_progress():
    sent: list[str] = []
    signals = StatusSignals(sent.append, "d", title=True, status=True, progress=True)
    signals.show("working")
    signals.spin(1)
    signals.spin(1)
    signals.show("permission")
    signals.end()
    assert sent == [
        "\x1b]0;⠂ Working · d\x1b\\",
        "\x1b]7501;state=working\x1b\\",
        "\x1b]9;4;3\x1b\\",
        "\x1b]0;⠐ Working · d\x1b\\",
        "\x1b]0;✋ Waiting · d\x1b\\",
        "\x1b]7501;state=blocked:kind=permission\x1b\\",
        "\x1b]9;4;3\x1b\\",
        "\x1b]7501;state=clear\x1b\\",
        "\x1b]9;4;0\x1b\\",
        "\x1b]0;\x1b\\",
    ]


def test_signals_that_are_off_are_silent():
    sent: list[str] = []
    signals = StatusSignals(sent.append, "d", title=False, status=False, progress=False)
    for state in ("idle", "working", "permission", "question", "done", "error"):
        signals.show(state)
    signals.end()
    assert sent == []
