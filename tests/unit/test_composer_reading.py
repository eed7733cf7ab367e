"""The composer of each agent, read off hand-written screens: is it there, is it empty, what stands in it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from synapse_tui.agents.composer import (
    ComposerReading,
    read_composer,
    screen_rows,
)
from synapse_tui.agents.composer_box import end_of_conversation, find_box
from synapse_tui.agents.dialogs import DialogChoices, find_choices
from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.profiles.profile import ComposerRules, Profile
from tests.unit.agent_screens import (
    CLAUDE_DIALOG,
    CODEX_DIALOG,
    COMPOSERS,
    DIALOGS,
    DIM,
    GREY,
    NORMAL,
    OFF,
    WIDE,
    Screen,
    claude,
    codex,
    copilot,
    gemini,
    opencode,
)

AGENTS = sorted(COMPOSERS)


def reading(
    agent: str, rows: list[str], cursor: tuple[int, int] | None = None, lines: int = 24
) -> ComposerReading:
    screen = Screen(agent, lines=lines)
    screen.show(rows, cursor)
    return read_composer(screen.terminal, screen.profile)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_empty_composer(agent: str) -> None:
    found = reading(agent, *COMPOSERS[agent]())
    assert (found.visible, found.draft, found.dialog is not None) == (True, "", False)
    assert found.empty


@pytest.mark.parametrize("agent", AGENTS)
def test_a_draft(agent: str) -> None:
    found = reading(agent, *COMPOSERS[agent]("half a line"))
    assert (found.visible, found.draft, found.placeholder) == (True, "half a line", False)
    assert not found.empty


@pytest.mark.parametrize("agent", AGENTS)
def test_a_draft_of_several_lines(agent: str) -> None:
    found = reading(agent, *COMPOSERS[agent]("first", "", "third"))
    assert found.draft == "first\n\nthird"
    assert found.shows("first\n\nthird")
    assert not found.shows("first")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_draft_under_a_conversation(agent: str) -> None:
    talk = [
        "❯ an older message",
        "› an older message",
        " > an older message",
        "",
        "● An answer",
        "  of two lines",
        "",
    ]
    assert reading(agent, *COMPOSERS[agent]("new", above=talk)).draft == "new"
    assert reading(agent, *COMPOSERS[agent](above=talk)).empty


@pytest.mark.parametrize("agent", AGENTS)
def test_blanks_are_a_draft_too(agent: str) -> None:
    rows, (x, y) = COMPOSERS[agent]("")
    assert reading(agent, rows, (x + 1, y)).draft == " "
    assert reading(agent, rows, (x, y)).empty


@pytest.mark.parametrize("agent", AGENTS)
def test_an_empty_second_line_is_a_draft_too(agent: str) -> None:
    assert not reading(agent, *COMPOSERS[agent]("", "")).empty


@pytest.mark.parametrize("agent", AGENTS)
def test_wide_characters(agent: str) -> None:
    rows, (_, y) = COMPOSERS[agent]("日本語のテキスト", above=["答え: はい。"])
    found = reading(agent, rows, (21, y))
    assert found.draft == "日本語のテキスト"
    assert found.shows("日本語のテキスト")


@pytest.mark.parametrize("agent", AGENTS)
def test_no_composer_without_the_cursor_in_it(agent: str) -> None:
    rows, _ = COMPOSERS[agent]()
    assert not reading(agent, rows, (0, len(rows))).visible


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dialog_in_place_of_the_composer(agent: str) -> None:
    found = reading(agent, DIALOGS[agent])
    assert (found.visible, found.dialog is not None, found.empty) == (False, True, False)
    assert found.dialog_kind == "permission"
    assert found.dialog_title
    assert not found.shows("Yes")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dialog_even_if_the_cursor_stands_on_its_choice(agent: str) -> None:
    rows = DIALOGS[agent]
    for y in range(len(rows)):
        assert not reading(agent, rows, (2, y)).visible, rows[y]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dialog_quoted_in_the_conversation_is_none(agent: str) -> None:
    found = reading(agent, *COMPOSERS[agent](above=DIALOGS[agent]))
    assert (found.visible, found.dialog is not None) == (True, False)


@pytest.mark.parametrize("agent", AGENTS)
def test_half_a_frame_proves_nothing(agent: str) -> None:
    screen = Screen(agent)
    screen.show(*COMPOSERS[agent]())
    assert read_composer(screen.terminal, screen.profile).empty
    screen.terminal.feed(b"\x1b[?2026h")
    assert not read_composer(screen.terminal, screen.profile).visible


@pytest.mark.parametrize("agent", AGENTS)
def test_an_editor_or_a_bare_screen_has_no_composer(agent: str) -> None:
    assert not reading(agent, ["~"] * 20 + ["-- INSERT --"], (0, 0)).visible
    assert not reading(agent, [""], (0, 0)).visible


def test_what_the_dialogs_ask() -> None:
    asked = {agent: reading(agent, rows).dialog_title for agent, rows in DIALOGS.items()}
    assert asked == {
        "claude": "Bash command · rm -r build · Do you want to proceed?",
        "codex": "Would you like to run the following command? · rm -r build",
        "gemini": "Shell rm -r build",
        "opencode": "Shell command · rm -r build",
        "copilot": "run a command · Do you want to run this command?",
        "dummy": "rm -r build · Do you want to proceed?",
    }


# -- suggestions


@pytest.mark.parametrize("agent", ["codex", "gemini", "opencode", "dummy"])
def test_a_suggestion_is_no_draft(agent: str) -> None:
    found = reading(agent, *COMPOSERS[agent]())
    assert found.placeholder
    assert found.draft == ""


@pytest.mark.parametrize(
    "style", [(DIM, OFF), (GREY, NORMAL), ("\x1b[38;5;246m", NORMAL), ("\x1b[90m", NORMAL)]
)
def test_claudes_suggestion_in_every_style_it_may_have(style: tuple[str, str]) -> None:
    on, off = style
    rows, cursor = claude(f'{on}Try "fix the tests"{off}', cursor=0)
    found = reading("claude", rows, cursor)
    assert found.placeholder
    assert found.empty


def test_the_first_letter_of_a_suggestion_may_be_drawn_as_the_cursor() -> None:
    rows, cursor = claude(f"\x1b[7mT\x1b[27m{DIM}ry this{OFF}", cursor=0)
    assert reading("claude", rows, cursor).empty


def test_a_draft_with_the_cursor_at_its_start_is_a_draft() -> None:
    rows, cursor = claude("half a line", cursor=0)
    assert reading("claude", rows, cursor).draft == "half a line"


def test_faint_text_with_the_cursor_behind_it_is_a_draft() -> None:
    rows, _ = claude(f"{DIM}typed{OFF}")
    assert reading("claude", rows, (7, 1)).draft == "typed"


def test_text_that_is_faint_only_in_part_is_a_draft() -> None:
    rows, cursor = claude(f"typed {DIM}and suggested{OFF}", cursor=0)
    assert not reading("claude", rows, cursor).empty


@pytest.mark.parametrize("color", ["\x1b[38;2;30;30;30m", "\x1b[38;2;230;230;230m", "\x1b[38;2;90;200;90m"])
def test_dark_bright_and_coloured_text_is_a_draft(color: str) -> None:
    rows, cursor = claude(f"{color}typed{NORMAL}", cursor=0)
    assert reading("claude", rows, cursor).draft == "typed"


@pytest.mark.parametrize("agent", ["gemini", "opencode"])
def test_grey_words_that_are_not_the_known_suggestion_are_a_draft(agent: str) -> None:
    composer = gemini if agent == "gemini" else opencode
    rows, (_, y) = composer(f"{GREY}rm -r everything{NORMAL}")
    assert reading(agent, rows, (5 if agent == "opencode" else 3, y)).draft == "rm -r everything"


# -- what agents do with long text

LONG = "\n".join(f"line {number}" for number in range(62))
STAND_INS = {
    "claude": "[Pasted text #1 +61 lines]",
    "codex": f"[Pasted Content {len(LONG)} chars]",
    "gemini": "[Pasted Text: 62 lines]",
    "opencode": "[Pasted ~62 lines]",
    "copilot": "[Paste #1 - 62 lines]",
    "dummy": "[Pasted text #1 +61 lines]",
}


@pytest.mark.parametrize("agent", AGENTS)
def test_the_stand_in_of_a_paste_shows_its_text(agent: str) -> None:
    found = reading(agent, *COMPOSERS[agent](STAND_INS[agent]))
    assert found.shows(LONG)
    assert not found.shows(LONG + "\nand more")
    assert not found.shows("short")


def test_the_stand_in_of_a_paste_may_be_wrapped() -> None:
    for draft in (
        "[Pasted text #1\n+61 lines]",
        "[Pasted text #1 +61 li\nnes]",
        "[Pasted te\nxt #1\n+61 lines]",
    ):
        found = dataclasses.replace(reading("claude", *claude("x")), draft=draft)
        assert found.shows(LONG)
        assert not found.shows(LONG + "\nand more")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_stand_in_beside_other_text_does_not_show_it(agent: str) -> None:
    assert not reading(agent, *COMPOSERS[agent]("mine " + STAND_INS[agent])).shows(LONG)


@pytest.mark.parametrize(
    ("agent", "stand_in", "text"),
    [
        ("claude", "[Pasted text #2]", "x" * 3000),
        ("gemini", "[Pasted Text: 3000 chars]", "x" * 3000),
        ("opencode", "[Pasted ~1 lines]", "x" * 3000),
        ("opencode", "[Pasted ~3 lines]", "a\nb\nc"),
        ("codex", "[Pasted Content 3000 chars]", "x" * 3000),
        ("copilot", "[Paste #12 - 62 lines]", LONG),
    ],
)
def test_stand_ins_as_they_were_seen(agent: str, stand_in: str, text: str) -> None:
    assert reading(agent, *COMPOSERS[agent](stand_in)).shows(text)


def test_a_stand_in_without_numbers_is_no_proof_of_a_short_text() -> None:
    assert not reading("claude", *claude("[Pasted text #2]")).shows("yes")


def test_rows_that_the_agent_wrapped_are_one_line() -> None:
    first = "a message that is so long that the agent has to wrap it"
    found = reading("claude", *claude(first, "somewhere, and a line of its own"))
    assert found.draft == f"{first} somewhere, and a line of its own"
    assert found.shows(f"{first} somewhere, and a line of its own")


def test_a_word_that_is_longer_than_the_composer_is_one_word() -> None:
    word = "x" * (WIDE - 2)
    assert reading("claude", *claude(word, word, "end")).draft.startswith(word + word)


def test_a_scrolled_composer_shows_the_end_of_a_text() -> None:
    text = "\n".join(f"row {number} of a long draft" for number in range(40))
    rows = [
        "╻" + "▄" * (WIDE - 1),
        *(f"┃ row {number} of a long draft" for number in range(30, 40)),
        "╹" + "▀" * (WIDE - 1),
        " x",
    ]
    found = reading("copilot", rows, (26, 10))
    assert found.shows(text)
    assert not found.shows("another text")
    assert not found.empty


# -- frames


def test_a_command_menu_under_claudes_composer() -> None:
    rows, cursor = claude("/")
    menu = [f"  /command{number}   does something" for number in range(8)]
    assert reading("claude", [*rows[:-1], *menu], cursor).draft == "/"


def test_a_frame_high_up_in_the_conversation_is_no_composer() -> None:
    rows, (x, y) = gemini("an older message")
    assert reading("gemini", rows, (x, y)).visible
    assert not reading("gemini", [*rows, *["✦ more output"] * 18], (x, y), lines=30).visible


def test_claudes_shell_and_memory_modes_are_not_its_composer() -> None:
    rows, cursor = claude()
    for glyph in ("!", "#"):
        assert not reading("claude", [row.replace("❯", glyph) for row in rows], cursor).visible


def test_geminis_shell_mode_is_not_its_composer() -> None:
    rows, cursor = gemini()
    assert not reading("gemini", [row.replace(" > ", " ! ") for row in rows], cursor).visible


@pytest.mark.parametrize("background", [True, False])
def test_codex_with_and_without_its_background(background: bool) -> None:
    assert reading("codex", *codex(background=background)).empty
    assert reading("codex", *codex("one", "", "three", background=background)).draft == "one\n\nthree"


def test_marks_beside_a_long_draft_of_codex_are_no_part_of_it() -> None:
    width = Screen("codex").terminal.columns - 3
    rows = [f"{text:{width}}{mark}" for text, mark in (("first seen", "↑"), ("second", " "), ("last", "↓"))]
    assert reading("codex", *codex(*rows)).draft == "first seen\nsecond\nlast"
    full = "a" * width
    assert reading("codex", *codex(f"{full}↑", "end")).draft.split("\n")[0].startswith(full)
    assert "↑" not in reading("codex", *codex(f"{full}↑", "end")).draft
    assert reading("codex", *codex("press ↑")).draft == "press ↑"
    assert reading("codex", *codex("↑")).draft == "↑"


def test_the_highlighted_choice_of_codex_looks_like_its_prompt() -> None:
    found = reading("codex", CODEX_DIALOG, (2, 6))
    assert (found.visible, found.dialog is not None) == (False, True)


def test_a_draft_that_looks_like_a_choice_is_still_a_draft() -> None:
    assert reading("codex", *codex("1. Yes")).draft == "1. Yes"
    assert reading("claude", *claude("1. Yes")).draft == "1. Yes"


def test_a_trust_question_of_claude_is_a_dialog() -> None:
    rows = [
        "Do you trust the files in this folder?",
        "",
        "❯ 1. Yes, proceed",
        "  2. No, exit",
        "",
        "Enter to confirm · Esc to exit",
    ]
    found = reading("claude", rows, (0, 2))
    assert found.dialog
    assert not found.visible


def test_without_rules_nothing_is_ever_visible() -> None:
    screen = Screen(Profile("plain", "Plain", "plain"))
    screen.show(["> "], (2, 0))
    assert read_composer(screen.terminal, screen.profile) == ComposerReading(visible=False)


def test_a_right_frame_is_cut_off() -> None:
    from dataclasses import replace

    screen = Screen("claude")
    rules = screen.profile.composer
    assert rules is not None
    boxed = replace(
        rules,
        prompt=re.compile("^│ > "), row=re.compile("^│   "), above=re.compile("^╭─"), below=re.compile("^╰─"),
        right=re.compile(" *│ *$"),
    )  # fmt: skip
    screen.show(["╭────────────╮", "│ > hello    │", "│   world    │", "╰────────────╯"], (9, 2))
    found = read_composer(screen.terminal, replace(screen.profile, composer=boxed))
    assert found.draft == "hello\nworld"


def test_a_dialog_outweighs_a_composer_above_it() -> None:
    rows, cursor = claude()
    assert reading("claude", [*rows, *CLAUDE_DIALOG[-6:]], cursor).dialog


def test_the_background_of_codex_ends_its_composer_where_no_footer_does() -> None:
    rows, cursor = codex("one", "", "three")
    assert reading("codex", rows[:-2], cursor).draft == "one\n\nthree"


def test_a_frame_that_is_not_whole_is_none() -> None:
    rows, (x, y) = claude()
    assert not reading("claude", rows[1:], (x, y - 1)).visible
    assert not reading("claude", ["a heading", *rows[1:]], (x, y)).visible


@pytest.mark.parametrize("agent", ["claude", "copilot"])
def test_a_draft_that_fills_the_screen_has_pushed_the_frame_out_of_it(agent: str) -> None:
    draft = [f"row {number} of a long draft" for number in range(10)]
    rows, (x, y) = COMPOSERS[agent](*draft)
    top = next(place for place, row in enumerate(rows) if "row 0" in row)
    filled = reading(agent, rows[top:], (x, y - top))
    assert (filled.visible, filled.draft) == (True, "\n".join(draft))
    assert not reading(agent, [rows[top], *rows[top + len(draft) :]], (x, 0)).visible  # a screen half drawn


def test_the_last_row_of_codex_may_be_blank_and_the_last_of_the_screen() -> None:
    rows, (_, y) = codex("one", "two", "")
    assert reading("codex", rows[:4], (2, y), lines=4).draft.rstrip() == "one\ntwo"


def test_the_shell_modes_of_copilot_and_opencode_take_no_message() -> None:
    rows, cursor = copilot(
        f"{GREY}Execute shell command{NORMAL}", footer=" Shell · Manual Approval · / commands"
    )
    assert not reading("copilot", rows, (2, cursor[1])).visible
    rows, cursor = copilot("", footer=" Shell · Manual Approval")
    assert not reading("copilot", rows, cursor).visible
    rows, cursor = opencode(f"{GREY}Run a command…{NORMAL}")
    shell = [
        row.replace("Build · Model", "Shell").replace("ctrl+p commands", "esc exit shell mode")
        for row in rows
    ]
    assert not reading("opencode", shell, (5, cursor[1])).visible


def test_the_command_menu_of_opencode_stands_above_its_composer() -> None:
    menu = [f"  ┃ /command{number}  does something" + " " * 20 + "┃" for number in range(5)]
    assert reading("opencode", *opencode("/com", above=menu)).draft == "/com"


def test_a_row_of_claudes_may_begin_with_a_no_break_space() -> None:
    rows, cursor = claude("one", "two")
    rows = [row.replace("  two", "\xa0 two") for row in rows]
    assert reading("claude", rows, cursor).draft == "one\ntwo"


def test_a_word_in_the_frame_of_claudes_composer() -> None:
    rows, cursor = claude("an older prompt")
    frame = "─── History 3/15 " + "─" * (WIDE - 17)
    assert reading("claude", [frame, *rows[1:]], cursor).draft == "an older prompt"


def test_the_search_of_claude_and_its_menus_take_no_message() -> None:
    rows, _ = claude()
    search = [*rows[:-1], "  search prompts:   ← for agents"]
    assert not reading("claude", search, (18, len(search) - 1)).visible
    menu = [
        "─" * WIDE,
        "  Rewind",
        "",
        "    first message",
        "  ❯ (current)",
        "",
        "  Enter to continue · Esc to cancel",
    ]
    found = reading("claude", menu, (0, 8))
    assert (found.visible, found.dialog is not None, found.dialog_kind) == (False, True, "question")


@pytest.mark.parametrize(
    ("agent", "hints"),
    [
        ("gemini", ["", " " * 40 + "? for shortcuts", "─" * WIDE]),
        ("copilot", [" ~/proj [⎇ main%]                    fake-model"]),
        ("claude", []),
    ],
)
def test_the_conversation_ends_over_the_hints_of_the_composer(agent: str, hints: list[str]) -> None:
    said = ["● the answer", "  ends in ~/proj"]
    rows, cursor = COMPOSERS[agent](above=[*said, *hints])
    screen = Screen(agent)
    screen.show(rows, cursor)
    rules, shown = screen.profile.composer, screen_rows(screen.terminal)
    assert rules is not None
    box = find_box(screen.terminal, shown, rules)
    assert box is not None
    kept = [row.rstrip() for row in shown[: end_of_conversation(shown, box, rules)]]
    assert kept[:2] == said
    assert not any(row.strip("▄╻─") for row in kept[2:])


# -- rows that begin with a prompt of their own, and padding ---

SIMPLE = re.compile("^diff> ")


def simple(rows: list[str], cursor: tuple[int, int], **rules: object) -> ComposerReading:
    composer = ComposerRules(**{"prompt": SIMPLE, "row": re.compile(r"^\s*"), **rules})  # type: ignore[arg-type]
    screen = Screen(Profile("mine", "Mine", "mine", composer=composer))
    screen.show(rows, cursor)
    return read_composer(screen.terminal, screen.profile)


@pytest.mark.parametrize(
    ("rows", "cursor", "draft"),
    [
        (["diff> "], (6, 0), ""),
        (["diff> one", "diff> two"], (9, 1), "one\ntwo"),
        (["diff> one", "diff> "], (6, 1), "one\n"),  # a draft, though its last row is empty
        (["diff> ", "diff> "], (6, 1), ""),  # Enter was pressed in an empty one
        (["an answer", "diff> one"], (9, 1), "one"),
    ],
)
@pytest.mark.parametrize("row", [r"^\s*", "^diff> "])
def test_a_prompt_on_every_row(rows: list[str], cursor: tuple[int, int], draft: str, row: str) -> None:
    found = simple(rows, cursor, row=re.compile(row))
    assert found.visible
    assert any(text.strip() == draft.strip() for text in (found.draft, *found.others))
    assert found.empty is (not draft)


@pytest.mark.parametrize(
    ("rows", "cursor", "empty"),
    [
        (["┌───┐", "│ >     │", "│       │", "└───┘"], (4, 1), True),
        (["┌───┐", "│       │", "│ >     │", "│       │", "└───┘"], (4, 2), True),
        (["┌───┐", "│ >     │", "│       │", "└───┘"], (4, 2), False),  # a line feed was typed
        (["┌───┐", "│ >     │", "│   x   │", "└───┘"], (4, 1), False),  # the cursor went back up
        (["┌───┐", "│ a     │", "│ >     │", "└───┘"], (4, 2), False),
    ],
)
@pytest.mark.parametrize("right", [re.compile(" *│ *$"), None])
def test_blank_rows_in_a_frame_are_padding(
    rows: list[str], cursor: tuple[int, int], empty: bool, right: re.Pattern[str] | None
) -> None:
    frame = {"above": re.compile("^┌"), "below": re.compile("^└"), "right": right}
    found = simple(rows, cursor, prompt=re.compile("^│ > ?"), row=re.compile("^│ (  )?"), **frame)
    assert found.empty is empty


# -- Lists of choices that no profile describes, told from composers and conversations that loo ---


AUTO = [
    "────────────────────",
    "  Make auto mode your default?",
    "",
    "  It answers for you.",
    "",
    "  ❯ Yes, set auto mode",
    "    No, keep manual mode",
]
SET_AUTO = DialogChoices("permission", "Make auto mode your default?")
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
        (NUMBERED, (0, 5), DialogChoices("permission", "Run this command?")),
        (WITH_HELP, (0, 1), DialogChoices("question", "Which model?")),
        (["❯ 1. Red", "  2. Blue"], (8, 30), DialogChoices("question", "")),
    ],
    ids=["marked", "second", "numbered", "explained", "cursor elsewhere"],
)  # fmt: skip
def test_choices(rows: list[str], cursor: tuple[int, int], found: DialogChoices) -> None:
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
    assert find_choices(rows, (0, 1), numbered=True) == DialogChoices("question", "")


def test_a_menu_in_a_plain_shell_is_no_dialog_of_an_agent() -> None:
    screen = Screen("shell")
    screen.show(AUTO, (2, 5))
    screen.wait(2)
    assert screen.state == "READY"


def test_a_numbered_prompt_is_no_dialog_of_an_agent_whose_composer_is_not_known() -> None:
    assert find_choices(["❯ 1. Do this", "  2. Then that"], (14, 1), numbered=False) is None
    assert find_choices(NUMBERED, (2, 2), numbered=False) == DialogChoices("permission", "Run this command?")


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
