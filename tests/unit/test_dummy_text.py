"""The dummy's text: widths, wrapping, script and answers, options, journal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapse_tui.dummy.app import Journal, parse_options
from synapse_tui.dummy.turn import _ACTIONS, DIRECTIVES_HELP, Directive, answer, directives
from synapse_tui.dummy.widths import width, wrap
from synapse_tui.terminal import Terminal

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp")), max_size=60)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("abc", 3),
        ("日本語", 6),
        ("ﾊﾝｶｸ", 4),
        ("e\u0301", 1),
        ("\u26a0\ufe0f", 2),
        ("👩\u200d💻", 2),
        ("👍🏽", 2),
        ("🇯🇵", 2),
        ("", 0),
    ],
)
def test_width_agrees_with_the_terminal_core(text, cells):
    terminal = Terminal(40, 2)
    terminal.feed(text.encode())
    assert width(text) == cells == terminal.cursor.x


@given(TEXT, st.integers(2, 30))
def test_rows_fit_and_lose_no_word(text, cells):
    rows = wrap(text, cells)
    assert all(width(row) <= cells for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


@given(st.lists(st.text("ab 日語", min_size=1, max_size=8), max_size=12), st.integers(2, 20))
def test_words_that_follow_change_only_the_last_row(words, cells):
    shown = ""
    for word in words:
        before = wrap(shown, cells)
        shown += f" {word}"
        assert wrap(shown, cells)[: len(before) - 1] == before[:-1]


# -- script


def test_every_directive_is_carried_out_and_documented():
    for name in ("slow", *_ACTIONS):
        assert f"%%{name}" in DIRECTIVES_HELP
        assert directives(f"%%{name}:1%%") == [Directive(name, "1")]


def test_answer_to_another_agent_names_it_and_gives_no_lessons():
    assert answer("[A2A:1a2b3c4d:synapse-claude-8100] hi there", turn=0) == (
        "synapse-claude-8100 says: hi there\n(43 characters, 1 line)"
    )


# -- options and journal


def test_it_is_named_by_its_address():
    assert parse_options([], {"SYNAPSE_AGENT_ID": "synapse-dummy-8190"}).name == "dummy-8190"
    assert parse_options([], {}).name == "dummy"
    assert parse_options(["--name", "otto"], {"SYNAPSE_AGENT_ID": "synapse-dummy-8190"}).name == "otto"


def test_times_are_given_in_milliseconds_and_kept_in_seconds():
    options = parse_options(["--word-delay", "5", "--dialog-after-paste", "250"], {})
    assert (options.word_delay, options.dialog_after_paste) == (0.005, 0.25)
    assert parse_options([], {}).dialog_after_paste < 0


def test_journal_is_private_json_lines(tmp_path):
    path = tmp_path / "log"
    journal = Journal(str(path), clock=lambda: 12.5)
    journal.write("submit", text="日本\n\udcff")
    journal.write("exit", code=3)
    journal.close()
    journal.write("late")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"t": 12.5, "event": "submit", "text": "日本\n\udcff"}
    assert second == {"t": 12.5, "event": "exit", "code": 3}
    assert path.stat().st_mode & 0o777 == 0o600
