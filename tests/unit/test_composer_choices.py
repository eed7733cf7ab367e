"""Lists of choices that no profile describes, told from composers and conversations that look alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from synapse_tui.agents.composer import Choices, find_choices
from synapse_tui.agents.profiles.finding import load_profiles
from tests.unit.agent_screens import Screen

AUTO = [
    "────────────────────",
    "  Make auto mode your default?",
    "",
    "  It answers for you.",
    "",
    "  ❯ Yes, set auto mode",
    "    No, keep manual mode",
]
SET_AUTO = Choices("permission", "Make auto mode your default?")
NUMBERED = [
    "Run this command?",
    "",
    "│ ● 1. Allow once   │",
    "│   2. Allow always │",
    "│   3. No (esc)     │",
    "╰───────────────────╯",
]
WITH_HELP = [
    "Which model?",
    "> Small",
    "    quick",
    "",
    "  Large",
    "    thorough",
]


@pytest.mark.parametrize(
    ("rows", "cursor", "found"),
    [
        (AUTO, (2, 5), SET_AUTO),
        ([*AUTO[:5], "    Yes, set auto mode", "  ❯ No, keep it"], (2, 6), SET_AUTO),
        (NUMBERED, (0, 5), Choices("permission", "Run this command?")),
        (WITH_HELP, (0, 1), Choices("question", "Which model?")),
        (["❯ 1. Red", "  2. Blue"], (8, 30), Choices("question", "")),
    ],
    ids=["marked", "second", "numbered", "explained", "cursor elsewhere"],
)  # fmt: skip
def test_choices(rows: list[str], cursor: tuple[int, int], found: Choices) -> None:
    assert find_choices(rows, cursor, numbered=True) == found


@pytest.mark.parametrize(
    ("rows", "cursor"),
    [
        (["❯ half a line", "  and a second one"], (18, 1)),
        (["❯ half a line", "  and a second one"], (2, 0)),
        (["❯ half a line", "──────", "  ? for shortcuts"], (0, 0)),
        (["> 1. a quoted list", "> 2. of two"], (0, 5)),
        (["❯ 1. look at this", "", "● I did."], (0, 2)),
        (["❯ 1. Red", "  2. Blue", *(f"row {number}" for number in range(9))], (0, 10)),
        (["● Read 3 files", "  a.py"], (5, 1)),
        (["1. one", "2. two"], (0, 0)),
        ([], (0, 0)),
    ],
    ids=[
        "draft",
        "draft, cursor in it",
        "composer",
        "quote",
        "prompt",
        "conversation",
        "tool",
        "list",
        "empty",
    ],
)
def test_no_choices(rows: list[str], cursor: tuple[int, int]) -> None:
    assert find_choices(rows, cursor, numbered=True) is None


def test_a_title_is_found_in_time_in_proportion_to_the_rows() -> None:
    rows = ["? " + "a" * 200_000, "❯ 1. Red", "  2. Blue"]
    assert find_choices(rows, (0, 1), numbered=True) == Choices("question", "")


def test_a_menu_in_a_plain_shell_is_no_dialog_of_an_agent() -> None:
    screen = Screen("shell")
    screen.show(AUTO, (2, 5))
    screen.wait(2)
    assert screen.state == "READY"


def test_a_numbered_prompt_is_no_dialog_of_an_agent_whose_composer_is_not_known() -> None:
    assert find_choices(["❯ 1. Do this", "  2. Then that"], (14, 1), numbered=False) is None
    assert find_choices(NUMBERED, (2, 2), numbered=False) == Choices("permission", "Run this command?")


HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


def plain(tmp_path: Path) -> Screen:
    """An agent of a profile that tells little more than its command."""
    text = "command: plain\noutput_idle_threshold: 1.0\nstartup: {delay: 0, composer: false}\n"
    (tmp_path / "plain.yaml").write_text(text)
    return Screen(load_profiles(tmp_path, environ={}).profiles["plain"])


def test_a_menu_that_hides_the_cursor_is_a_dialog_also_where_the_composer_is_not_known(
    tmp_path: Path,
) -> None:
    screen = plain(tmp_path)
    screen.feed(HIDDEN)
    screen.show(["Run rm -r build?", "❯ 1. Yes", "  2. No"], (0, 3))
    screen.wait(5)
    assert screen.state == "WAITING"
    screen.feed(SHOWN)
    screen.show(["Run rm -r build?", "done", "> "], (2, 2))
    screen.wait(5)
    assert screen.state == "READY"


@pytest.mark.parametrize("prompt", [["> "], ["╭────╮", "│ >  │", "╰────╯"], ["> Type a message"]])
def test_numbers_over_a_prompt_are_no_dialog(tmp_path: Path, prompt: list[str]) -> None:
    screen = plain(tmp_path)
    screen.feed(HIDDEN)
    screen.show(["> 1. Do this", "  2. Then that", "", "Both are done.", "", *prompt], (0, 9))
    screen.wait(5)
    assert screen.state == "READY"
