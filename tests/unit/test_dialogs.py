"""Dialogs as they are read from the screen."""

from __future__ import annotations

import pytest

from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.widgets.views import subject
from tests.unit.agent_screens import CLAUDE_KEYS, CLAUDE_UNCHECKED, DIALOGS, Screen

QWEN = [
    "  > earlier",
    "",
    "  ? Shell touch made ←",
    "",
    "     touch made",
    "",
    "   Allow execution of: 'touch'?",
    "",
    "   › 1. Yes, allow once",
    "     2. Always allow run 'touch *' commands in this project",
    "     3. No, suggest changes (esc)",
    "",
    "  ⠏ Waiting for user confirmation...",
]


def read(agent: str, rows: list[str], columns: int = 80) -> AgentDialog:
    screen = Screen(agent, columns=columns, lines=30)
    screen.show(rows)
    dialog = screen.detector.dialogs.current
    assert dialog is not None
    return dialog


def words(dialog: AgentDialog) -> tuple[list[str], list[str]]:
    """The options that allow once, and those that deny."""
    return (
        [option.words for option in dialog.options if option.allows_once],
        [option.words for option in dialog.options if option.denies],
    )


def test_a_scrollbar_beside_a_dialog_changes_nothing() -> None:
    plain = read("qwen", QWEN)
    barred = read("qwen", [f"{row:79}█" for row in QWEN])
    assert barred.fingerprint == plain.fingerprint
    assert barred.asks == plain.asks == "wants to run touch made"
    assert words(barred) == (["Yes, allow once"], ["No, suggest changes (esc)"])


def test_a_spinner_in_a_dialog_changes_nothing() -> None:
    turned = [row.replace("⠏", "⠋") for row in QWEN]
    assert read("qwen", turned).fingerprint == read("qwen", QWEN).fingerprint


KEYS = "  Enter to stay in auto mode · shift+Tab to leave for accept edits mode and stop · Esc to cancel"


@pytest.mark.parametrize(
    "hint",
    [
        [KEYS],
        [KEYS.removesuffix(" cancel"), "  cancel"],
        [KEYS.removesuffix(" to cancel"), "  to cancel"],
        [
            "  Enter to stay in auto mode · shift+Tab to leave for",
            "  accept edits mode and stop · Esc to cancel",
        ],
    ],
)
def test_options_that_are_named_with_their_keys(hint: list[str]) -> None:
    dialog = read("claude", [*CLAUDE_KEYS[:-1], *hint], columns=100)
    assert dialog.asks == "asks: Auto mode can't check actions in this session"
    assert [(option.words, option.key) for option in dialog.options] == [
        ("stay in auto mode", "Enter"),
        ("leave for accept edits mode and stop", "shift+Tab"),
        ("cancel", "Esc"),
    ]
    assert [option.number for option in dialog.options] == [1, 2, 3]
    assert words(dialog) == ([], []), "it grants nothing"
    assert dialog.body[-2].strip().startswith("https://")


def test_the_first_rows_of_such_a_dialog_may_be_out_of_sight() -> None:
    dialog = read("claude", CLAUDE_KEYS[-4:], columns=100)
    assert len(dialog.options) == 3
    assert not dialog.whole


@pytest.mark.parametrize("hint", ["  Enter to go on · y to stay", "  Enter to go on · ↑/↓ to choose"])
def test_letters_and_unknown_keys_are_no_options(hint: str) -> None:
    assert read("claude", [*CLAUDE_KEYS[:-1], hint], columns=100).options == ()


def test_an_action_that_could_not_be_checked_is_asked_for_with_its_command() -> None:
    dialog = read("claude", CLAUDE_UNCHECKED)
    assert dialog.asks == "wants to run curl -s http://example.com/x"
    assert words(dialog) == (["Yes"], ["No"])


def test_a_file_is_named_above_its_changes() -> None:
    dialog = read("claude", [CLAUDE_UNCHECKED[0], " Edit file", " src/cart.py", *CLAUDE_UNCHECKED[3:]])
    assert "src/cart.py" in dialog.asks
    assert "curl" not in dialog.asks


NO_LIST = {"opencode"}  # its options are side by side


@pytest.mark.parametrize("agent", [agent for agent in DIALOGS if agent not in NO_LIST])
def test_the_mark_on_any_option_leaves_the_dialog_what_it_is(agent: str) -> None:
    rows = DIALOGS[agent]
    first = read(agent, rows)
    assert first.options
    assert not first.across
    screen = Screen(agent, columns=80, lines=30)
    place = next(y for y, row in enumerate(rows) if any(f"{mark} " in row for mark in "❯›●") and "1." in row)
    mark = next(mark for mark in "❯›●" if mark in rows[place])
    for index in range(len(first.options)):
        moved = list(rows)
        moved[place] = moved[place].replace(mark, " ")
        target = next(y for y, row in enumerate(rows) if f"{index + 1}. " in row and y >= place)
        x = rows[place].index(mark)
        moved[target] = moved[target][:x] + mark + moved[target][x + 1 :]
        screen.show(moved)
        now = screen.detector.dialogs.current
        assert now is not None
        assert (now.marked, now.title, now.kind) == (index, first.title, first.kind)
        assert (now.serial, now.options) == (1, first.options)
        assert (now.fingerprint == first.fingerprint) is (index == 0)


@pytest.mark.parametrize(
    ("options", "allows", "denies"),
    [
        (["Yes", "No"], ["Yes"], ["No"]),
        (["Yes, proceed (y)", "No (esc)"], ["Yes, proceed (y)"], ["No (esc)"]),
        (["Allow once", "Allow always", "Reject"], ["Allow once"], ["Reject"]),
        (["Yes, and always allow this", "No"], [], ["No"]),
        (["Yes, allow all edits during this session", "No"], [], ["No"]),
        (["Yes, I trust this folder", "No, exit"], [], ["No, exit"]),
        (["Yes", "Allow once", "No"], [], ["No"]),
        (["Yes", "No, never", "No, always deny"], ["Yes"], []),
        (["Yes", "No, not now", "No, and stop"], ["Yes"], []),
    ],
)
def test_yes_and_no_are_offered_only_where_they_are_clear(
    options: list[str], allows: list[str], denies: list[str]
) -> None:
    rows = ["─" * 60, " Bash command", "   make all", "", " Do you want to proceed?"]
    rows += [f" {'❯' if place == 1 else ' '} {place}. {text}" for place, text in enumerate(options, 1)]
    assert words(read("dummy", rows)) == (allows, denies)


@pytest.mark.parametrize(
    ("options", "allows", "denies"),
    [
        (["はい", "いいえ"], ["はい"], ["いいえ"]),
        (
            ["はい", "はい。今後は確認しない", "いいえ。別の指示をする (esc)"],
            ["はい"],
            ["いいえ。別の指示をする (esc)"],
        ),
        (["一度だけ許可", "常に許可", "拒否"], ["一度だけ許可"], ["拒否"]),
        (["はい。すべて許可する", "いいえ"], [], ["いいえ"]),
        (["はい", "いいえ。今後も常に拒否する"], ["はい"], []),
        (["はい", "許可", "いいえ"], [], ["いいえ"]),
    ],
)
def test_japanese_options_are_judged_alike(options: list[str], allows: list[str], denies: list[str]) -> None:
    rows = ["─" * 60, " Bash command", "   make all", "", " 続けますか？"]
    rows += [f" {'❯' if place == 1 else ' '} {place}. {text}" for place, text in enumerate(options, 1)]
    dialog = read("dummy", rows)
    assert words(dialog) == (allows, denies)
    assert dialog.asks == "wants to run make all"
    assert subject(f"permission: {dialog.title}") == "make all"


def test_no_yes_where_the_beginning_is_not_on_the_screen() -> None:
    rows = ["   and the end of a long command", "", " Do you want to proceed?", " ❯ 1. Yes", "   2. No"]
    dialog = read("claude", [*rows, " Esc to cancel"])
    assert not dialog.whole
    assert words(dialog) == ([], [])
    assert [option.words for option in dialog.options] == ["Yes", "No"]


def test_an_option_of_several_rows_is_one() -> None:
    rows = [
        "─" * 60,
        " Bash command",
        "   make all",
        "",
        " Do you want to proceed?",
        " ❯ 1. Yes, and don't ask",
    ]
    rows += ["      again for make", "   2. No", "", " Esc to cancel"]
    assert [option.words for option in read("dummy", rows).options] == [
        "Yes, and don't ask again for make",
        "No",
    ]


def test_the_dialogs_of_one_agent_are_numbered() -> None:
    screen = Screen("claude", columns=80, lines=30)
    screen.show(DIALOGS["claude"])
    log = screen.detector.dialogs
    assert log.current is not None
    first, screen.now = log.current, screen.now + 2
    screen.show(DIALOGS["claude"])
    assert log.current is not None
    assert (log.current.serial, log.current.since) == (first.serial, first.since)
    screen.now += 1
    screen.show([row.replace("1. Yes", "1. Yes!") for row in DIALOGS["claude"]])
    assert log.current is not None
    assert (log.current.serial, log.current.since) == (first.serial + 1, screen.now)
    screen.show(["gone"])
    assert log.current is None
    screen.now += 1
    screen.feed("\x1b[H\x1b[2J")
    screen.show([row.replace("1. Yes", "1. Yes!") for row in DIALOGS["claude"]])
    assert log.current is not None
    assert log.current.serial == first.serial + 2


def test_rows_of_a_japanese_option_are_joined_without_a_blank() -> None:
    rows = ["─" * 60, " Bash command", "   make all", "", " 続けますか？"]
    rows += [
        " ❯ 1. はい。今後この種の",
        "      コマンドを確認しない",
        "   2. No, and say what",
        "      to do instead",
    ]
    dialog = read("dummy", rows)
    assert dialog is not None
    assert [each.words for each in dialog.options] == [
        "はい。今後この種のコマンドを確認しない",
        "No, and say what to do instead",
    ]
