"""State rules of shipped profiles, on signals as the agents send them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import ProfileSet, load_profiles
from synapse_tui.agents.profiles.generic import profile_of
from synapse_tui.agents.state import TURN_ENDED
from synapse_tui.hooks import HookKind
from tests.unit.agent_screens import (
    CLAUDE_QUESTION,
    COMPOSERS,
    DIALOGS,
    GEMINI_QUESTION,
    Screen,
    claude,
    codex,
    copilot,
    dummy,
    gemini,
    opencode,
    osc,
    profile,
)

STARTING, READY, WORKING, WAITING, UNKNOWN = "STARTING", "READY", "PROCESSING", "WAITING", "UNKNOWN"
IDLE_TITLE = {
    "claude": "✳ fix the tests",
    "gemini": "◇  Ready (proj)   ",
    "codex": "proj",
    "dummy": "✳ Ready · dummy",
}


def idle(agent: str) -> Screen:
    """An agent that is ready."""
    screen = Screen(agent)
    if agent in IDLE_TITLE:
        screen.feed(osc(f"0;{IDLE_TITLE[agent]}"))
    screen.show(*COMPOSERS[agent]())
    screen.wait(4)
    return screen


AGENTS = sorted(COMPOSERS)


@pytest.mark.parametrize("agent", AGENTS)
def test_ready(agent: str) -> None:
    assert idle(agent).state == READY


@pytest.mark.parametrize("agent", AGENTS)
def test_ready_with_a_draft(agent: str) -> None:
    screen = idle(agent)
    screen.show(*COMPOSERS[agent]("half a line"))
    screen.wait(4)
    assert screen.state == READY


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dialog_wins_at_once_over_an_idle_title(agent: str) -> None:
    screen = idle(agent)
    screen.show(DIALOGS[agent])
    assert screen.state == WAITING
    assert screen.detector.report.detail.startswith("permission: ")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dialog_wins_over_every_other_signal(agent: str) -> None:
    screen = Screen(agent)
    screen.show(DIALOGS[agent])
    for signal in (
        "7501;state=idle",
        "7501;state=done",
        "7501;state=working",
        "0;✳ x",
        "0;◇  Ready",
        "0;⠂ x",
        "9;4;0",
    ):
        screen.feed(osc(signal))
        screen.wait(5)
        assert screen.state == WAITING, signal


@pytest.mark.parametrize("agent", AGENTS)
def test_what_no_rule_knows_is_unknown(agent: str) -> None:
    screen = idle(agent)
    screen.feed(osc("0;vim README.md"))
    screen.show(["~"] * 20)
    screen.wait(4)
    assert screen.state == UNKNOWN
    assert screen.rule == "no rule matches"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_prompt_in_the_title_decides_nothing(agent: str) -> None:
    for title in (
        "say ✳ Ready",
        "my ⠂ spinner",
        "about ◇  Ready",
        "why ✋ Action Required",
        "x [ ! ] Action Required",
    ):
        screen = Screen(agent)
        screen.feed(osc(f"0;{title}"))
        screen.show(["some", "text"])
        screen.wait(90)
        assert screen.state == UNKNOWN, title


@pytest.mark.parametrize(
    ("agent", "title", "state", "rule"),
    [
        ("claude", "⠂ fix the tests", WORKING, "title spinner"),
        ("claude", "⠐ fix the tests", WORKING, "title spinner"),
        ("claude", "◐ fix the tests", WORKING, "title spinner"),
        ("claude", "◓ fix the tests", WORKING, "title spinner"),
        ("codex", "⠸ fake | proj", WORKING, "title spinner"),
        ("codex", "[ ! ] Action Required | proj", WAITING, "title action required"),
        ("codex", "[ . ] Action Required | proj", WAITING, "title action required"),
        ("gemini", "✦  Working… (proj)      ", WORKING, "title working"),
        ("gemini", "✋  Action Required (proj)", WAITING, "title hand"),
        ("gemini", "✱  Working… (proj)", WORKING, "title working"),
        ("gemini", "✦  Reading a file (proj)", WORKING, "title working"),
        ("gemini", "☞  Action Required (proj)", WAITING, "title hand"),
        ("dummy", "⠂ Working · dummy", WORKING, "title spinner"),
        ("dummy", "✋ Waiting · dummy", WAITING, "title hand"),
        ("dummy", "✘ Error · dummy", "ERROR", "title cross"),
    ],
)
def test_titles(agent: str, title: str, state: str, rule: str) -> None:
    screen = idle(agent)
    screen.feed(osc(f"0;{title}"))
    assert (screen.state, screen.rule) == (state, rule)
    screen.feed(osc(f"0;{IDLE_TITLE[agent]}"))
    screen.wait(4)
    assert screen.state == READY


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("status", "state", "rule"),
    [
        ("working", WORKING, "program status working"),
        ("blocked:kind=permission", WAITING, "program status blocked"),
        ("blocked:kind=question", WAITING, "program status blocked"),
        ("error", "ERROR", "program status error"),
    ],
)
def test_program_status_is_exact_and_instant(agent: str, status: str, state: str, rule: str) -> None:
    screen = idle(agent)
    screen.feed(osc(f"7501;state={status}"))
    assert (screen.state, screen.rule) == (state, rule)
    screen.feed(osc("7501;state=done"))
    assert (screen.state, screen.rule) == (READY, "program status idle")


def test_program_status_wins_over_a_late_title() -> None:
    screen = idle("codex")
    screen.feed(osc("7501;state=working"))
    screen.feed(osc("0;proj"))
    screen.wait(10)
    assert screen.state == WORKING


def test_a_cleared_program_status_counts_no_longer() -> None:
    screen = idle("codex")
    screen.feed(osc("7501;state=idle") + osc("7501;state=clear"))
    assert screen.rule == "composer rests"
    screen.show(["bye"])
    screen.wait(4)
    assert screen.state == UNKNOWN


@pytest.mark.parametrize(
    ("agent", "rule"),
    [("claude", "in progress without composer"), ("copilot", "in progress without composer")],
)
def test_an_unknown_dialog_is_told_by_the_progress_that_goes_on(agent: str, rule: str) -> None:
    screen = idle(agent)
    screen.feed(osc("9;4;3"))
    screen.show(["Some dialog that no rule knows", "[ ] this", "[ ] that"])
    screen.wait(1)
    assert (screen.state, screen.rule) == (WAITING, rule)


def test_claudes_title_rests_before_the_dialog_is_drawn() -> None:
    screen = idle("claude")
    screen.feed(osc("0;⠂ x"))
    screen.feed(osc("0;✳ x"))
    screen.wait(0.2)
    assert screen.state == WORKING
    screen.show(DIALOGS["claude"])
    assert screen.state == WAITING
    assert READY not in [report.state.value for report in screen.detector.timeline][-2:]


def test_questions_are_dialogs_too() -> None:
    for agent, rows in (("claude", CLAUDE_QUESTION), ("gemini", GEMINI_QUESTION)):
        screen = idle(agent)
        screen.show(rows)
        assert (screen.state, screen.detector.report.detail.split(":")[0]) == (WAITING, "question")


@pytest.mark.parametrize(
    ("agent", "rows", "rule"),
    [
        ("codex", codex(above=["• Working (3s • esc to interrupt)"]), "footer interrupt"),
        ("gemini", gemini(above=[" ⠋ Thinking... (esc to cancel, 1s)"]), "spinner"),
        ("opencode", opencode(footer="⬝⬝⬝⬝  esc interrupt"), "footer interrupt"),
        ("opencode", opencode(footer="⬝⬝⬝⬝  esc again to interrupt"), "footer interrupt"),
        ("copilot", copilot(footer=" ● Working esc esc interrupt"), "footer working"),
        ("copilot", copilot(footer=" ◎ Working esc esc interrupt"), "footer working"),
        ("dummy", dummy(above=["✢ Working… (3s · esc to interrupt)"]), "spinner"),
    ],
)
def test_working_by_the_screen_alone(agent: str, rows: tuple[list[str], tuple[int, int]], rule: str) -> None:
    screen = Screen(agent)
    screen.show(*rows)
    assert (screen.state, screen.rule) == (WORKING, rule)


@pytest.mark.parametrize(
    ("agent", "quote"),
    [
        ("codex", "say • Working (3s • esc to interrupt)"),
        ("gemini", "say ⠋ Thinking... (esc to cancel, 1s)"),
        ("opencode", "say esc interrupt"),
        ("copilot", "say ● Working"),
        ("dummy", "say ✢ Working… (3s · esc to interrupt)"),
    ],
)
def test_a_conversation_about_it_is_not_work(agent: str, quote: str) -> None:
    screen = idle(agent)
    screen.show(*COMPOSERS[agent](above=[quote, "", "", ""]))
    screen.wait(4)
    assert screen.state == READY


def test_progress_tells_that_the_dummy_works() -> None:
    screen = Screen("dummy")
    screen.feed(osc("9;4;3"))
    assert (screen.state, screen.rule) == (WORKING, "progress")


def test_the_dummy_by_its_footer_alone() -> None:
    screen = Screen("dummy")
    rows, cursor = dummy()
    screen.show([*rows[:-1], "  enter sends · /help          ready"], cursor)
    screen.wait(1)
    assert (screen.state, screen.rule) == (READY, "footer")


def test_a_shell_by_its_silence() -> None:
    screen = Screen("shell")
    screen.show(["$ make"])
    assert (screen.state, screen.rule) == (WORKING, "output flows")
    screen.wait(0.9)
    assert screen.state == WORKING
    screen.wait(0.5)
    assert (screen.state, screen.rule) == (READY, "output rests")


@pytest.mark.parametrize("command", [(), ("bash",), ("python3", "-i")])
def test_what_a_shell_draws_before_it_was_given_anything_is_its_start(command: tuple[str, ...]) -> None:
    screen = starting(*command)
    screen.show(["$ "])
    assert screen.state == STARTING
    screen.wait(0.5)
    screen.show(["~/project", "$ "])
    screen.wait(3)
    assert [report.state.value for report in screen.detector.timeline] == [STARTING, READY]
    screen.detector.touched()
    screen.show(["~/project", "$ make"])
    assert screen.state == WORKING


def test_a_shell_works_once_it_was_given_something_while_it_starts() -> None:
    screen = starting()
    screen.show(["$ "])
    screen.detector.touched()
    screen.show(["$ make"])
    assert screen.state == WORKING


def test_a_shell_that_never_rests_works_when_its_start_is_over() -> None:
    screen = starting()
    while screen.now < screen.profile.startup.timeout + 1:
        screen.show([f"line {screen.now}"])
        screen.wait(0.5)
    assert [report.state.value for report in screen.detector.timeline] == [STARTING, WORKING]


@pytest.mark.parametrize("command", ["tail -f log", "top", "bash -c make", "bash ./build.sh", "./agent"])
def test_a_command_works_from_its_start(command: str) -> None:
    screen = starting(*shlex.split(command))
    screen.show(["compiling"])
    assert screen.state == WORKING


def starting(*command: str) -> Screen:
    return Screen(profile_of(ProfileSet({}), command) if command else "shell", age=0.1)


@pytest.mark.parametrize("command", [(), ("bash",)])
def test_a_shell_works_while_a_command_runs_that_prints_nothing(command: tuple[str, ...]) -> None:
    screen = starting(*command)
    screen.show(["$ "])
    screen.wait(3)
    screen.detector.touched()
    screen.command = True
    screen.show(["$ sleep 1000"])
    screen.wait(60)
    assert (screen.state, screen.rule) == (WORKING, "a command runs")
    screen.command = False
    screen.show(["$ sleep 1000", "$ "])
    screen.wait(3)
    assert [report.state.value for report in screen.detector.timeline][-2:] == [WORKING, READY]


def test_a_prompt_drawn_again_for_another_size_is_no_work_of_a_shell() -> None:
    screen = Screen("shell")
    screen.show(["$ "])
    screen.wait(2)
    assert screen.state == READY
    screen.detector.resized(screen.now)
    screen.terminal.resize(20, 24)
    screen.show(["~/a/long", "/folder$ "])
    assert screen.state == READY
    screen.wait(1)
    screen.show(["~/a/long", "/folder$ make"])
    assert screen.state == WORKING


def test_a_program_at_work_does_not_rest_because_its_size_changes() -> None:
    screen = Screen("shell")
    screen.show(["$ make"])
    assert screen.state == WORKING
    for number in range(30):
        screen.detector.resized(screen.now)
        screen.show(["$ make", f"line {number}"])
        screen.wait(0.1)
    assert screen.state == WORKING
    screen.wait(2)
    assert screen.state == READY


def test_what_a_shell_does_for_keys_is_work_right_after_a_change_of_size() -> None:
    screen = Screen("shell")
    screen.show(["$ "])
    screen.wait(2)
    screen.detector.resized(screen.now)
    screen.detector.touched()
    screen.show(["$ make", "cc parser.c"])
    assert screen.state == WORKING


def test_every_rule_is_named_once() -> None:
    for name in (*AGENTS, "shell"):
        names = [rule.name for rule in profile(name).states]
        assert len(names) == len(set(names)), name


def test_a_draft_of_claude_does_not_hide_its_work() -> None:
    screen = idle("claude")
    screen.feed(osc("0;⠐ x"))
    screen.show(*claude("next idea"))
    assert screen.state == WORKING


def test_footers_of_narrow_panes() -> None:
    rows, cursor = opencode()
    footers = {
        READY: ["   /home/a  12 (0%)ctrl+p", "   /proj          commands"],
        WORKING: ["   ⬝⬝■■■⬝⬝⬝ esc   ctrl+p", "   interrupt   commands"],
    }
    for state, footer in footers.items():
        screen = Screen("opencode")
        screen.show([*rows[:-1], *footer], cursor)
        screen.wait(1)
        assert screen.state == state
    screen = Screen("copilot")
    screen.show(*copilot(footer=" Interactive · Manual  · / c fake-model"))
    screen.wait(1)
    assert screen.state == READY


@pytest.mark.parametrize("footer", [" esc again to rewind", " any key close help", " esc again to clear"])
def test_a_footer_that_arms_escape_is_not_ready(footer: str) -> None:
    screen = Screen("copilot")
    screen.show(*copilot(footer=footer))
    screen.wait(1)
    assert screen.state == UNKNOWN


@pytest.mark.parametrize("agent", ["claude", "copilot"])
def test_not_ready_while_it_tells_progress(agent: str) -> None:
    screen = idle(agent)
    screen.feed(osc("9;4;3"))
    screen.wait(5)
    assert (screen.state, screen.rule) == (WORKING, "in progress")
    screen.feed(osc("9;4;0"))
    screen.wait(1)
    assert screen.state == READY


def test_the_trust_questions_of_a_first_start() -> None:
    asked = {
        "claude": [
            "─" * 60,
            " Accessing workspace:",
            "",
            " Quick safety check: Is this a project you created or one you trust?",
            "",
            " ❯ 1. Yes, I trust this folder",
            "   2. No, exit",
            "",
            " Enter to confirm · Esc to cancel",
        ],
        "codex": [
            "  Trust this folder?",
            "",
            "› 1. Trust and continue",
            "  2. Quit",
            "",
            "  Press enter to continue",
        ],
        "gemini": [
            " ╭" + "─" * 56 + "╮",
            " │ Do you trust the files in this folder?" + " " * 16 + "│",
            " │ ● 1. Trust folder (proj)" + " " * 30 + "│",
            " │   2. Don't trust" + " " * 38 + "│",
            " ╰" + "─" * 56 + "╯",
        ],
        "copilot": [
            "╭" + "─" * 58 + "╮",
            "│ Do you trust the files in this folder?" + " " * 19 + "│",
            "│ ❯ 1. Yes" + " " * 49 + "│",
        ],
    }
    for agent, rows in asked.items():
        screen = Screen(agent, age=0.5)
        screen.show(rows)
        assert screen.state == WAITING, agent
        assert "trust" in screen.detector.report.detail.lower(), agent


def test_an_idle_title_does_not_hide_claudes_work() -> None:
    rows, cursor = claude()
    for above, footer, rule in (
        ([], "  esc to interrupt · ← for agents", "footer interrupt"),
        (["✢ Crunching… (3s · ↓ 2 tokens)", "  ⎿  Tip: x"], "  ? for shortcuts", "spinner"),
    ):
        screen = idle("claude")
        screen.show([*above, *rows[:-1], footer], (cursor[0], cursor[1] + len(above)))
        screen.wait(5)
        assert (screen.state, screen.rule) == (WORKING, rule)


def test_claude_is_ready_by_its_footer_where_the_title_says_nothing() -> None:
    screen = Screen("claude")
    screen.feed(osc("0;✶ another star"))
    screen.show(*claude())
    screen.wait(1.5)
    assert (screen.state, screen.rule) == (READY, "footer shortcuts")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot"])
def test_without_any_known_word_a_composer_that_rests_is_ready(agent: str) -> None:
    rows, cursor = COMPOSERS[agent]()
    unknown = [*rows[:-1], "  another footer"] if agent != "gemini" else rows
    screen = Screen(agent)
    for second in range(5):
        screen.show(["~" * second, *unknown], (cursor[0], cursor[1] + 1))
        screen.wait(1)
        assert screen.state != READY
    screen.wait(3)
    assert (screen.state, screen.rule) == (READY, "composer rests")


def test_a_status_of_codex_that_the_title_denies_is_not_believed() -> None:
    screen = idle("codex")
    screen.feed(osc("7501;state=idle") + osc("0;⠸ proj"))
    screen.wait(10)
    assert (screen.state, screen.rule) == (WORKING, "title spinner")


def test_codex_asks_what_becomes_of_its_task() -> None:
    screen = idle("codex")
    screen.feed(osc("7501;state=working"))
    screen.show(
        [
            "  Task is still running",
            "  Choose what happens to the current task.",
            "› 1. Cancel task        Stop the current task and stay in Codex",
            "  2. Run in background  Exit Codex and leave the task running",
            "  enter select · esc back",
        ]
    )
    assert screen.state == WAITING


def test_where_opencode_shows_its_path_another_spinner_may_turn() -> None:
    rows, cursor = opencode(footer="●○○○  esc stops")
    screen = Screen("opencode")
    for turn in range(20):
        screen.show([*rows[:-1], rows[-1].replace("●", "●○"[turn % 2])], cursor)
        screen.wait(0.5)
        assert screen.state != READY


@pytest.mark.parametrize("word", ["idle", "done"])
def test_an_agent_that_never_says_that_it_works_is_not_ready_while_its_output_flows(
    tmp_path: Path, word: str
) -> None:
    (tmp_path / "plain.yaml").write_text("command: plain\noutput_idle_threshold: 1.0\nstartup: {delay: 0}\n")
    plain = load_profiles(tmp_path, environ={}).profiles["plain"]
    screen = Screen(plain)
    screen.feed(osc(f"7501;state={word}"))
    screen.wait(2)
    assert screen.state == READY
    for line in range(6):
        screen.feed(f"compiling {line}\r\n")
        screen.wait(0.5)
        assert screen.state == WORKING
    screen.wait(2)
    assert screen.state == READY


def generic(*command: str) -> Screen:
    screen = Screen(profile_of(ProfileSet({}), command or ("./agent",)))
    screen.show(["hello", "", "> "], (2, 2))
    screen.wait(3)
    return screen


def test_a_program_without_a_profile_is_ready_when_its_composer_rests() -> None:
    screen = generic()
    assert (screen.state, screen.rule) == (READY, "composer rests")
    screen.show(["hello", "", "working on it"], (13, 2))
    assert screen.state == WORKING
    screen.wait(30)
    assert screen.state == UNKNOWN, "silence alone proves nothing"


@pytest.mark.parametrize(
    ("signal", "state"),
    [
        ("7501;state=working", WORKING),
        ("7501;state=blocked:kind=permission", WAITING),
        ("9;4;3", WORKING),
        ("9;4;1;40", WORKING),
        ("9;4;0", READY),
        ("133;D", READY),
        ("0;⠋ thinking", WORKING),
        ("0;Action required", WAITING),
    ],
)
def test_what_a_program_reports_itself_counts_before_its_screen(signal: str, state: str) -> None:
    screen = generic()
    screen.feed(osc(signal))
    screen.wait(5)
    assert screen.state == state


def test_marks_around_messages_prove_nothing() -> None:
    screen = generic()
    for _ in range(3):
        screen.feed(osc("133;A") + osc("133;B") + osc("133;C"))
        screen.wait(5)
        assert (screen.state, screen.rule) == (READY, "composer rests")


def test_prompt_marks_count_once_the_program_marks_the_end_of_an_output(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("command: x\nstates: [{state: processing, screen: never}]\n")
    screen = Screen(load_profiles(tmp_path).profiles["x"])
    screen.feed(osc("133;A"))
    screen.wait(5)
    assert screen.state != READY, "some programs mark every earlier message so"
    screen.feed(osc("133;C"))
    assert screen.state != WORKING, "some mark the end of every message so"
    screen.feed(osc("133;D;0") + osc("133;A"))
    screen.wait(1)
    assert (screen.state, screen.rule) == (READY, "prompt mark")
    screen.feed(osc("133;C"))
    assert screen.state == WORKING
    screen.feed(osc("133;D;0"))
    screen.wait(5)
    assert screen.state != READY, "the prompt is not there yet"


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        (["Overwrite notes.txt? [y/N] "], WAITING),
        (["Edit it?", "Proceed? (Y)es/(N)o [Yes]: "], WAITING),
        (["Overwrite notes.txt? [y/N] y", "", "done", "> "], READY),
    ],
)
def test_a_question_at_the_end_of_the_screen_is_a_dialog(rows: list[str], state: str) -> None:
    screen = Screen(profile_of(ProfileSet({}), ("./agent",)))
    screen.show(rows, (len(rows[-1]), len(rows) - 1))
    screen.wait(3)
    assert screen.state == state


@pytest.mark.parametrize("command", ["vim", "sh", "python3"])
def test_a_shell_or_editor_has_no_dialogs(command: str) -> None:
    screen = generic(command)
    screen.show(["Really quit? [y/n] "], (19, 0))
    screen.wait(3)
    assert (screen.state, screen.rule) == (READY, "output rests")


def test_the_end_of_a_turn_by_a_hook_replaces_rules_that_no_longer_match() -> None:
    screen = idle("claude")
    ended = replace(screen.profile, states=tuple(r for r in screen.profile.states if r.state.value != READY))
    screen = Screen(ended, report=screen.detector.report, age=0)
    screen.show(*claude())
    screen.wait(4)
    assert screen.state == UNKNOWN
    for kind in (HookKind.PROMPT, HookKind.IDLE):
        screen.detector.hooked(kind, "", screen.now)
    screen.feed("")
    screen.wait(1)
    assert (screen.state, screen.rule) == (READY, TURN_ENDED)
    screen.show(DIALOGS["claude"])
    assert screen.state == WAITING, "a dialog on the screen counts before any hook"
    screen.show(*claude())
    screen.detector.hooked(HookKind.PRE, "", screen.now)
    screen.wait(9)
    assert screen.state == UNKNOWN
