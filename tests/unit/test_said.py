"""What an agent said in its turn, as the board and the cards show it: its last words, not its tools."""

import pytest

from synapse_tui.widgets.text import last_words, rewrapped, said

DUMMY = """\
I ask you first.

Bash(synapse file-safety lock src/cart.py)
⎿  allowed (and not run: this is a rehearsal)

That is settled.
"""
CLAUDE = """\
I will use a tool.

Bash(pytest -q)
⎿  ..F

   1 failed

Ran 2 shell commands, read 1 file (ctrl+o to expand)

One test fails: the cart has no currency.
"""
CODEX = """\
✔ You approved codex to run touch ~/proj/file this time

• Ran touch ~/proj/file
  └ (no output)

The file is there.
"""
GEMINI = """\
╭──────────────────────────────────────────────────────────╮
│ ✓  Shell touch ~/proj/file                               │
│                                                          │
╰──────────────────────────────────────────────────────────╯

The file is there.
"""
OPENCODE = """\
   I will use a tool.

┃
┃  $ touch ~/proj/file
┃
┃  (no output)
┃

   The file is there.
"""
COPILOT = """\
I will use a tool.

$ Shell run a test command No Content
  touch ~/proj/file

The file is there.
"""


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (DUMMY, "That is settled."),
        (CLAUDE, "One test fails: the cart has no currency."),
        (CODEX, "The file is there."),
        (GEMINI, "The file is there."),
        (GEMINI.partition("\n")[2], "The file is there."),
        (OPENCODE, "The file is there."),
        (COPILOT, "The file is there."),
    ],
)
def test_the_last_words_are_no_tool_call(answer: str, last: str) -> None:
    assert last_words(answer) == last


@pytest.mark.parametrize("answer", [DUMMY, CLAUDE, OPENCODE, COPILOT])
def test_a_turn_that_ends_with_a_tool_ends_with_the_words_before(answer: str) -> None:
    words = said(answer)
    assert last_words(answer.replace(words[-1], "")) == words[0]


def test_only_what_was_said_is_kept() -> None:
    assert list(said(DUMMY)) == ["I ask you first.", "That is settled."]
    assert list(said(CODEX)) == ["The file is there."]
    assert list(said(CLAUDE)) == ["I will use a tool.", "One test fails: the cart has no currency."]


@pytest.mark.parametrize("answer", ["Bash(make)\n⎿  done", "┃\n┃  $ make\n┃"])
def test_a_turn_of_tools_alone_has_no_words(answer: str) -> None:
    assert last_words(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "Cart(items) holds them (twice).",
        "src\n├── cart.py\n└── total.py",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "┌───┬───┐\n│ a │ b │\n└───┴───┘",
        "```\nBash(make)\n\n⎿  done\n```",
        "Read 3 files.",
    ],
)
def test_words_that_look_like_a_tool_are_words(answer: str) -> None:
    assert last_words(f"First.\n\n{answer}") == answer


def test_what_introduces_stays_with_what_it_introduces() -> None:
    assert last_words("I looked.\n\n## Next\n\nRename it.") == "## Next\n\nRename it."
    answer = "I looked.\n\nRun these:\n\n```\nmake\n\nmake test\n```"
    assert list(said(answer)) == ["I looked.", "Run these:\n\n```\nmake\n\nmake test\n```"]


def test_rows_that_an_agent_wrapped_are_joined_before_they_are_wrapped_narrower() -> None:
    rows = "The tax is computed in Cart.total, and\nthe order of the lines is kept. What\nelse?\n- one\n- two"
    assert rewrapped(rows, 40) == rows, "it fits"
    assert rewrapped(rows, 20) == (
        "The tax is computed in Cart.total, and the order of the lines is kept. What else?\n- one\n- two"
    )
    assert rewrapped("翻訳をここで続けて書く\n続きの行", 10) == "翻訳をここで続けて書く続きの行"
    code = "```\naaaaaaaaaaaaaaaaaaaaaaaa bbbb\ncccc\n```"
    assert rewrapped(code, 10) == code
