"""Rules that the doctor makes are sound YAML, hold for what was seen, and for nothing else that was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from synapse_tui.agents.profiles.profile import key_bytes, key_names
from synapse_tui.agents.state import decide
from synapse_tui.doctor.examination import Sample
from synapse_tui.doctor.suggest import suggest_dialog, suggest_rule, suggest_stand_in
from synapse_tui.model import AgentState
from tests.unit.doctor_kit import profile_of, rule_of, signals

READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING
FOOTER = ("❯ ", "  model · ~/project", "  ? for help")
BUSY = ("❯ ", "  model · ~/project", "  esc to stop (3s)")
BUSIER = ("❯ ", "  model · ~/project", "  esc to stop (14s)")


def sample(**fields: object) -> Sample:
    return Sample(**{"at": 0.0, "state": AgentState.UNKNOWN, "rows": FOOTER, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "shown", "otherwise", "condition"),
    [
        (
            WORKING,
            [sample(progress=3), sample(progress=1)],
            [sample(progress=0)],
            "progress: [set, indeterminate]",
        ),
        (
            WORKING,
            [sample(title="⠂ task"), sample(title="⠐ task")],
            [sample(title="✳ task")],
            "title: '^[⠀-⣿]'",
        ),
        (READY, [sample(title="✳ task", composer=True)], [], "title: '^✳', composer: true, dialog: false"),
        (WORKING, [sample(title="Working - x")], [sample(title="Ready - x")], r"title: '^Working\b'"),
        (WORKING, [sample(rows=BUSY), sample(rows=BUSIER)], [sample()], r"esc\s+to\s+stop\s+\(\d+s\)$'"),
        (READY, [sample(composer=True)], [], "composer: true, dialog: false, debounce: 1"),
        (READY, [sample(quiet=2.0)], [], "silence: 1.5"),
    ],
)
def test_a_rule_is_made_of_the_surest_signal_and_holds(
    tmp_path: Path, state: AgentState, shown: list[Sample], otherwise: list[Sample], condition: str
) -> None:
    rule = suggest_rule(state, shown, otherwise)
    assert condition in rule
    made = rule_of(tmp_path, rule)
    assert made.state is state
    assert all(decide((made,), signals(one)) is not None for one in shown)
    assert not any(decide((made,), signals(one)) for one in otherwise)


CLAUDE = (
    " Bash command",
    "   touch x",
    " Do you want to proceed?",
    " ❯ 1. Yes",
    "   2. No",
    " Esc to cancel",
)
CODEX = (
    "  Would you like to run this?",
    "› 1. Yes, proceed (y)",
    "  2. No",
    "  Press enter to confirm or esc to cancel",
)
GEMINI = (" │ ? Shell touch x  │", " │ ● 1. Allow once │", " │   2. No, suggest changes (esc) │")
OPENCODE = ("┃ △ Permission required", "┃ Allow once  Allow always  Reject", "⇆ select  enter confirm")
PLAIN = ("Overwrite the file? [y/N]",)


@pytest.mark.parametrize("rows", [CLAUDE, CODEX, GEMINI, OPENCODE, PLAIN])
def test_a_dialog_rule_matches_its_dialog_and_no_composer(tmp_path: Path, rows: tuple[str, ...]) -> None:
    (rule,) = profile_of(tmp_path, f"dialogs: [{suggest_dialog(sample(rows=rows))}]\n").dialogs
    assert all(pattern.search("\n".join(rows)) for pattern in rule.screen)
    assert not all(pattern.search("\n".join(FOOTER)) for pattern in rule.screen)


def test_a_screen_that_asks_nothing_gives_no_dialog() -> None:
    assert suggest_dialog(sample(rows=("some text", "  and more", "  ? for help"))) == ""
    assert suggest_dialog(sample(rows=("❯ Try something", "  ? for help"))) == ""
    assert suggest_dialog(sample(rows=CLAUDE, composer=True)) == ""


def test_a_stand_in_for_a_paste_becomes_a_pattern_without_its_numbers() -> None:
    pattern = yaml.safe_load(suggest_stand_in("words [Pasted block #3, 287 lines] more"))
    assert re.fullmatch(pattern, "[Pasted block #12, 9 lines]")
    assert suggest_stand_in("no stand-in [here]") == ""


@pytest.mark.parametrize(
    "names", [["escape"], ["escape", "escape"], ["ctrl+c"], ["n"], ["ctrl+e", "backspace"], ["\x1b[1;2A"]]
)
def test_keys_are_told_as_profiles_name_them(names: list[str]) -> None:
    pressed = tuple(map(key_bytes, names))
    assert tuple(map(key_bytes, yaml.safe_load(key_names(pressed)))) == pressed
