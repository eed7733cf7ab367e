"""The doctor's messages, scratch folder and tables, what it reads of versions, and the rules it suggests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from synapse_tui.agents.profiles.profile import DoctorPrompt, DoctorRules, Profile
from synapse_tui.agents.state import decide
from synapse_tui.cli.trials.checks import _approve
from synapse_tui.cli.trials.examination import GENERAL, Examination, Prompts, Sample, how_much
from synapse_tui.cli.trials.report import suggest_dialog, suggest_rule
from synapse_tui.cli.trials.runner import Scratch
from synapse_tui.cli.trials.versions import installed_version, read_version
from synapse_tui.core.errors import InvalidValue
from synapse_tui.core.model import AgentState
from synapse_tui.system.paths import UserPaths
from tests.unit.doctor_kit import profile_of, rule_of, shipped, signals


def prompts(
    rules: DoctorRules | None = None,
    texts: dict[str, str] | None = None,
    expects: dict[str, str] | None = None,
) -> Prompts:
    """Messages whose codes are C1, C2 and so on."""
    count = itertools.count(1)
    return Prompts(rules or DoctorRules(), texts or {}, expects or {}, lambda: f"C{next(count)}")


# -- messages --------------------------------------------------------------------------------------------


def test_the_command_line_wins_over_the_profile_over_the_general() -> None:
    rules = DoctorRules(
        prompts={"run": DoctorPrompt("own {command}"), "slow": DoctorPrompt("", "own pattern")}
    )
    made = prompts(rules, {"submit": "say {first}"}, {"submit": "{first}!"})
    assert made.make("run", command="ls").text == "own ls"
    assert made.make("slow").text == GENERAL["slow"].text.replace("{seconds}", "60")
    assert made.make("slow").expect == "own pattern"
    question = made.make("submit")
    assert question.proof(f"{question.codes[0]}!", "typed")


def test_what_makes_it_ask_is_what_makes_it_run_unless_it_is_given() -> None:
    run = DoctorRules(prompts={"run": DoctorPrompt("own {command}")})
    both = DoctorRules(prompts={"run": DoctorPrompt("own {command}"), "ask": DoctorPrompt("ask {command}")})
    assert prompts().make("ask", command="ls").text == prompts().make("run", command="ls").text
    assert prompts(run).make("ask", command="ls").text == "own ls"
    assert prompts(run, {"run": "given {command}"}).make("ask", command="ls").text == "given ls"
    assert prompts(both).make("ask", command="ls").text == "ask ls"
    assert prompts(both).make("run", command="ls").text == "own ls"
    assert prompts(both, {"ask": "given {command}"}).make("ask", command="ls").text == "given ls"


# -- the scratch folder ----------------------------------------------------------------------------------


def test_the_scratch_folder_is_made_anew_and_nobody_elses(tmp_path: Path) -> None:
    scratch = Scratch.make(UserPaths(tmp_path), "made")
    assert (scratch.folder / ".git").is_dir()
    (scratch.folder / "left.txt").write_text("x")
    with pytest.raises(InvalidValue, match="another examination of made"):
        Scratch.make(UserPaths(tmp_path), "made")
    Scratch.make(UserPaths(tmp_path), "other").close(keep=False)
    scratch.close(keep=True)
    again = Scratch.make(UserPaths(tmp_path), "made")
    assert (again.folder, sorted(path.name for path in again.folder.iterdir())) == (
        scratch.folder,
        [".git", "README.md"],
    )
    again.close(keep=False)
    assert not again.folder.exists()
    assert not again.home.exists()


# -- records and versions --------------------------------------------------------------------------------


def test_a_record_holds_a_message_whole_or_in_part() -> None:
    typed, codes = "AB first\n\n  e\u0301 CD last", ("AB", "CD")
    assert how_much(typed, codes, ["other", "x AB first\n\u00e9 CD last y"]) == "whole"
    assert how_much(typed, codes, ["AB first", "CD last"]) == "part"
    assert how_much(typed, codes, ["AB first, changed, CD last"]) == ""
    assert how_much(typed, codes, []) == ""


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("2.1.197 (Claude Code)\n", "2.1.197"),
        ("codex-cli 0.169.0\n", "0.169.0"),
        ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", "1.0.102"),
        ("v1.18.33-beta.2+build", "1.18.33-beta.2+build"),
        ("unknown option\n", ""),
    ],
)
def test_versions_are_read_off_what_commands_tell(told: str, version: str) -> None:
    assert read_version(told) == version


# -- what is shown ---------------------------------------------------------------------------------------


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


# -- approval --------------------------------------------------------------------------------------------


class Asking:
    """An agent that reports that it asks, draws its dialog later, and goes on once it is answered."""

    profile = shipped()
    session = SimpleNamespace(report=SimpleNamespace(since=0.0))
    state = AgentState.WAITING

    def __init__(self, drawn_after: float) -> None:
        self.now = 0.0
        self.drawn_after = drawn_after

    def screen(self) -> str:
        return " ❯ 1. Yes\nsynapse reply AB-CD" if self.now >= self.drawn_after else "❯ AB-CD please"

    async def until(self, condition: Callable[[], object], seconds: float) -> bool:
        deadline = self.now + seconds
        while not condition() and self.now < deadline:
            self.now += 0.1
        return bool(condition())

    async def quiet(self, seconds: float, _limit: float) -> bool:
        self.now += seconds
        return True

    async def press(self, *_keys: bytes) -> None:
        assert "❯ 1. Yes" in self.screen()
        self.state = AgentState.PROCESSING


@pytest.mark.parametrize(("drawn_after", "approved"), [(0, True), (2, True), (60, False)])
async def test_a_dialog_that_is_drawn_after_the_status_is_approved(drawn_after, approved) -> None:
    assert await _approve(cast("Examination", Asking(drawn_after)), "AB-CD") is approved


@pytest.mark.parametrize(("code", "version"), [(0, "1.2.3"), (1, "")])
def test_the_version_in_an_error_is_not_that_of_the_agent(tmp_path: Path, code: int, version: str) -> None:
    profile = Profile(
        "bot", "Bot", "sh", doctor=DoctorRules(version_args=("-c", f"echo 1.2.3 >&2; exit {code}"))
    )
    assert installed_version(profile, os.environ, tmp_path) == version
