"""The composer of agents that no profile describes: what is recognised, and what is refused."""

from __future__ import annotations

import pytest

from synapse_tui.agents.composer import ComposerReading, read_composer
from synapse_tui.agents.profiles.profile import AUTO_COMPOSER, Profile
from synapse_tui.core.model import AgentState, StateReport
from tests.unit.agent_screens import COMPOSERS, DIALOGS, DIM, GREY, NORMAL, OFF, WIDE, Screen

AUTO = Profile("mine", "Mine", "mine", composer=AUTO_COMPOSER)
AGENTS = sorted(COMPOSERS)
LINE = "─" * WIDE


def reading(
    rows: list[str], cursor: tuple[int, int] | None = None, *, hidden: bool = False
) -> ComposerReading:
    screen = Screen(AUTO)
    screen.show(rows, cursor)
    if hidden:
        screen.feed("\x1b[?25l")
    return read_composer(screen.terminal, screen.profile)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_composers_of_known_agents(agent: str) -> None:
    talk = ["● An answer", "  of two lines", ""]
    assert not reading(*COMPOSERS[agent]("half a line", above=talk)).empty
    assert not reading(*COMPOSERS[agent]("", "second", above=talk)).empty
    assert reading(*COMPOSERS[agent]("half a line", above=talk)).draft.strip().startswith("half a line")


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "dummy", "gemini"])
def test_the_empty_composers_of_known_agents(agent: str) -> None:
    assert reading(*COMPOSERS[agent](above=["● An answer", ""])).empty


@pytest.mark.parametrize("agent", AGENTS)
def test_the_dialogs_of_known_agents_are_never_empty_composers(agent: str) -> None:
    rows = DIALOGS[agent]
    for y in range(len(rows)):
        for hidden in (False, True):
            assert not reading(rows, (2, y), hidden=hidden).empty, rows[y]


@pytest.mark.parametrize(
    ("rows", "cursor", "reason"),
    [
        (["text", "user@host:~$ "], (13, 1), "shell"),
        (["# "], (2, 0), "shell"),
        (["Overwrite the file? [y/N]", "> "], (2, 1), "asks"),
        (["Enter your API key:", "> "], (2, 1), "asks"),
        (["Overwrite the file? Press Enter to continue", "> "], (2, 1), "asks"),
        (["Overwrite? [y/N] > "], (19, 0), "neither a frame nor a prompt"),
        (["Password: "], (10, 0), "neither a frame nor a prompt"),
        (["an answer", ""], (0, 1), "neither a frame nor a prompt"),
        (["> a question", "the answer to it", ""], (0, 2), "neither a frame nor a prompt"),
        (["~"] * 20 + ["-- INSERT --"], (0, 0), "neither a frame nor a prompt"),
        ([":"], (1, 0), "neither a frame nor a prompt"),
        ([LINE, *[""] * 20, LINE], (0, 1), "nothing in two lines"),
        ([LINE, "", LINE], (30, 1), "nothing in two lines"),
    ],
)
def test_what_is_refused(rows: list[str], cursor: tuple[int, int], reason: str) -> None:
    found = reading(rows, cursor)
    assert (found.visible, found.empty) == (False, False)
    assert found.refusal is not None
    assert reason in found.refusal.reason


def test_a_hidden_cursor_without_a_frame_is_refused() -> None:
    found = reading(["> "], (2, 0), hidden=True)
    assert not found.visible
    assert found.refusal is not None
    assert "hidden" in found.refusal.reason


@pytest.mark.parametrize(
    ("rows", "cursor"),
    [
        (["> "], (2, 0)),
        (["an answer", "", "❯ "], (2, 2)),
        (["an answer", "", "diff> "], (6, 2)),
        (["Assistant: an answer", "User: "], (6, 1)),
        (["an answer", "diff> ", "diff> "], (6, 2)),  # Enter was pressed in an empty one
        ([f"> {DIM}Ask anything (y/n){OFF}"], (2, 0)),
        (["an answer", LINE, "> ", LINE, "  status"], (2, 2)),
        (["an answer", LINE, "> ", "", "", LINE], (2, 2)),
        (["╭" + "─" * 30 + "╮", "│" + " " * 30 + "│", "╰" + "─" * 30 + "╯"], (2, 1)),
        (["▌", "▌ > ", "▌"], (4, 1)),
        (["\x1b[48;5;236m\x1b[K", "\x1b[48;5;236m> \x1b[K", "\x1b[48;5;236m\x1b[K\x1b[m"], (2, 1)),
        (["> ", "", f"{DIM}? for help{OFF}"], (2, 0)),
        (["> ", "\x1b[7m tokens: 3k \x1b[27m"], (2, 0)),
    ],
)
def test_what_is_empty(rows: list[str], cursor: tuple[int, int]) -> None:
    found = reading(rows, cursor)
    assert found.empty, found


@pytest.mark.parametrize(
    ("rows", "cursor"),
    [
        (["> half"], (6, 0)),
        (["> half"], (2, 0)),  # the cursor went back to its start
        (["> ", "  second"], (2, 0)),  # an empty first line, and the cursor in it
        (["> ", "", "  third"], (2, 0)),
        (["> ", "  "], (2, 1)),
        (["> hello", "> "], (2, 1)),  # two lines with the same prompt, perhaps
        (["> first", "... second"], (10, 1)),
        ([">   "], (4, 0)),  # blanks show only in the cursor's position
        (["an answer", LINE, "> ", "typed", LINE], (2, 2)),
        (["an answer", LINE, "", "> ", LINE], (0, 2)),  # the cursor is not behind the prompt
        (["╭" + "─" * 9 + "╮", "│ Name:   │", "│ >       │", "╰" + "─" * 9 + "╯"], (4, 2)),
        (["▌ Pick one:", "▌ > "], (4, 1)),
        ([f"> typed {DIM}and suggested{OFF}"], (8, 0)),
    ],
)  # fmt: skip
def test_what_may_be_a_draft(rows: list[str], cursor: tuple[int, int]) -> None:
    assert not reading(rows, cursor).empty


@pytest.mark.parametrize("hidden", [False, True])
def test_a_cursor_that_the_agent_draws(hidden: bool) -> None:
    frame = ["╭" + "─" * 30 + "╮", "│ > \x1b[7m \x1b[27m" + " " * 26 + "│", "╰" + "─" * 30 + "╯"]
    assert reading(frame, (0, 4), hidden=hidden).empty is hidden


@pytest.mark.parametrize(
    ("inside", "empty"),
    [("● ▋", True), (f"● ▋{GREY}Ask anything{NORMAL}", True), ("● mine▋", False), ("● Yes  ▋", False)],
)
def test_a_cursor_that_is_a_character(inside: str, empty: bool) -> None:
    rows = ["██ ██ a logo", "", LINE, inside, LINE, "  status"]
    assert reading(rows, (0, 6), hidden=True).empty is empty


def test_a_menu_is_a_dialog() -> None:
    rows = ["Allow this command?", "❯ Yes", "  No"]
    found = reading(rows, (0, 1))
    assert (found.dialog is not None, found.dialog_kind, found.dialog_title) == (
        True,
        "permission",
        "Allow this command?",
    )
    assert reading(rows, (0, 1), hidden=True).dialog


KILO = ["  ┃", '  ┃  Ask anything... "Fix a TODO"', "  ┃", "  ┃  Code  · Some Model", f"  ╹{'▀' * 50}"]
CENTRED = ["", "Hello", "", *(f"{' ' * 6}{row}" for row in KILO)]


def typed_into(text: str) -> list[str]:
    return ["  ┃", f"  ┃  {text}", "  ┃", "  ┃  Code  · Some Model", f"  ╹{'▀' * 50}"]


def test_what_stood_in_a_composer_before_any_key_is_no_draft() -> None:
    screen = Screen(AUTO)
    screen.show(CENTRED, (11, 4))
    assert screen.detector.reading.empty
    assert screen.detector.reading.placeholder
    screen.detector.touched()
    screen.show(CENTRED, (11, 4))
    assert screen.detector.reading.empty, "and is none afterwards"
    screen.show([f"{' ' * 6}{row}" for row in typed_into("hello")], (16, 1))
    assert screen.detector.reading.draft.strip() == "hello"
    screen.show(["An answer", "", *typed_into("")], (5, 3))
    assert screen.detector.reading.empty, "the composer has moved, without its suggestion"
    screen.show(["An answer", "", *typed_into("first"), "  footer"], (10, 3))
    assert screen.detector.reading.draft.strip() == "first"


@pytest.mark.parametrize(
    ("row", "x"),
    [('Ask anything... "Fix a TODO"', 9), ('Ask anything... "Fix a TODO" and more', 5), ("Code", 9)],
)
def test_what_is_typed_is_a_draft_although_it_is_like_what_stood_there(row: str, x: int) -> None:
    screen = Screen(AUTO)
    screen.show(CENTRED, (11, 4))
    screen.detector.touched()
    screen.show(["An answer", "", *typed_into(row)], (x, 3))
    assert screen.detector.reading.draft.strip() == row


def test_what_is_in_a_composer_after_the_first_key_or_behind_the_cursor_is_a_draft() -> None:
    screen = Screen(AUTO)
    screen.show(["> half a line"], (13, 0))
    assert not screen.detector.reading.empty, "the cursor stands behind it: an agent has put it there"
    screen = Screen(AUTO)
    screen.detector.touched()
    screen.show(["> half"], (2, 0))
    assert not screen.detector.reading.empty


FRAME = "─" * 40


@pytest.mark.parametrize(
    ("inside", "cursor"),
    [
        (["Yes   No"], (2, 1)),
        (["Trust this folder?", "> I do", "  Leave"], (2, 1)),
        (["Press Enter to continue"], (2, 1)),
        (["Overwrite it? [y/N]"], (2, 1)),
        (["❯ Use the first model", "  Use the second model"], (2, 1)),
    ],
)
@pytest.mark.parametrize("hidden", [False, True])
def test_a_question_before_any_key_is_no_empty_composer(
    inside: list[str], cursor: tuple[int, int], hidden: bool
) -> None:
    screen = Screen(AUTO)
    rows = [f"╭{FRAME}╮", *(f"│ {row:<38} │" for row in inside), f"╰{FRAME}╯"]
    if hidden:
        x, y = cursor
        rows[y] = f"{rows[y][:x]}\x1b[7m{rows[y][x]}\x1b[27m{rows[y][x + 1 :]}"
        screen.feed("\x1b[?25l")
    screen.show(rows, cursor)
    assert not screen.detector.reading.empty


def test_a_suggestion_behind_a_prompt_is_none_either() -> None:
    screen = Screen(AUTO)
    screen.show([f"╭{FRAME}╮", f"│ ❯ {'Ask me anything...':<36} │", f"╰{FRAME}╯"], (4, 1))
    assert screen.detector.reading.empty


def test_an_adopted_agent_may_have_a_draft_from_the_start() -> None:
    screen = Screen(AUTO, report=StateReport(AgentState.READY, "composer", "", 0.0))
    screen.show(["> half"], (2, 0))
    assert not screen.detector.reading.empty


def test_the_rules_of_a_profile_decide_alone_what_is_a_draft() -> None:
    screen = Screen("claude")
    screen.show(*COMPOSERS["claude"]("half a line"))
    assert not screen.detector.reading.empty
