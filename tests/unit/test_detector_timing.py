"""Debounce, start-up, deadlines and the timeline of the state detector."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.profiles.profile import Startup
from synapse_tui.agents.state import ASKS
from synapse_tui.core.model import AgentState
from synapse_tui.hooks import HookKind
from tests.unit.agent_screens import CLAUDE_DIALOG, Screen, claude, dummy, osc, profile

READY, WORKING, WAITING, STARTING, UNKNOWN = "READY", "PROCESSING", "WAITING", "STARTING", "UNKNOWN"


def starting(delay: float = 3.0, timeout: float = 60.0, *, composer: bool = True) -> Screen:
    return Screen(replace(profile("claude"), startup=Startup(delay, timeout, composer)), age=0.0)


def test_ready_is_not_believed_before_the_start_delay() -> None:
    screen = starting()
    screen.feed(osc("0;✳ Claude Code"))
    screen.show(*claude())
    screen.wait(2.9)
    assert screen.state == STARTING
    screen.wait(0.5)
    assert screen.state == READY


def test_a_dialog_is_announced_from_the_signal_until_it_is_drawn_or_late() -> None:
    screen = Screen("claude")
    screen.show(*claude())

    def announced() -> bool:
        return screen.detector.announces_dialog(screen.now)

    assert not announced()
    screen.detector.hooked(HookKind.ASKED, "", screen.now)
    screen.feed("")
    assert (screen.state, announced()) == (WAITING, True)
    assert screen.detector.deadline == screen.now + ASKS
    screen.wait(ASKS / 2)
    screen.show(CLAUDE_DIALOG)
    assert (screen.state, announced()) == (WAITING, False)
    screen.feed(osc("7501;state=blocked"))  # the next one
    screen.wait(ASKS)
    screen.show(*claude())
    assert (screen.state, announced()) == (WAITING, True)
    assert screen.detector.deadline == screen.now + ASKS
    screen.wait(ASKS + 0.1)
    assert (screen.state, announced()) == (WAITING, False)


def test_ready_is_not_believed_before_the_composer_is_there() -> None:
    screen = starting()
    screen.feed(osc("0;✳ Claude Code"))
    screen.show(["Welcome"])
    screen.wait(30)
    assert screen.state == STARTING
    screen.show(*claude())
    screen.wait(0.5)
    assert screen.state == READY


def test_a_turn_before_the_start_delay_does_not_make_it_ready() -> None:
    screen = starting()
    screen.feed(osc("0;⠂ Claude Code"))
    assert screen.state == WORKING
    screen.feed(osc("0;✳ Claude Code"))
    screen.show(*claude())
    screen.wait(2)
    assert screen.state != READY
    screen.wait(2)
    assert screen.state == READY


def test_an_agent_that_never_tells_anything_is_unknown_in_the_end() -> None:
    screen = starting(timeout=20)
    screen.show(["hello"])
    screen.wait(19.9)
    assert screen.state == STARTING
    screen.wait(0.5)
    assert screen.state == UNKNOWN


def test_ready_must_last() -> None:
    screen = Screen("claude")
    screen.show(*claude())
    screen.feed(osc("0;⠂ x"))
    screen.feed(osc("0;✳ x"))
    assert screen.state == WORKING
    assert screen.detector.deadline == screen.now + 0.25
    screen.wait(0.24)
    assert screen.state == WORKING
    screen.feed(osc("0;⠂ x"))
    screen.feed(osc("0;✳ x"))
    screen.wait(0.24)
    assert screen.state == WORKING
    screen.wait(0.02)
    assert screen.state == READY


def test_nothing_is_due_when_an_agent_is_settled() -> None:
    screen = Screen("claude")
    screen.feed(osc("0;✳ x"))
    screen.show(*claude())
    screen.wait(1)
    assert screen.state == READY
    assert screen.detector.deadline is None


def test_half_frames_do_not_make_it_unknown() -> None:
    screen = Screen("claude")
    screen.feed(osc("0;✳ x"))
    screen.show(*claude())
    screen.wait(1)
    screen.feed("\x1b[2J")
    screen.wait(0.2)
    assert screen.state == READY
    screen.show(*claude())
    screen.wait(1)
    assert [report.state.value for report in screen.detector.timeline] == [STARTING, READY]


def test_a_synchronized_frame_is_looked_at_when_it_is_whole() -> None:
    screen = Screen("claude")
    screen.feed(osc("0;✳ x"))
    screen.show(*claude())
    screen.wait(1)
    screen.feed("\x1b[?2026h\x1b[2J")
    screen.wait(0.1)
    assert screen.detector.reading.visible
    screen.feed("\x1b[H" + "\r\n".join(claude()[0]) + "\x1b[2;3H\x1b[?2026l")
    assert screen.detector.reading.empty
    assert screen.state == READY


def test_a_frame_that_never_ends_is_not_believed_for_long() -> None:
    screen = Screen("claude")
    screen.feed(osc("0;✳ x"))
    screen.show(*claude())
    screen.wait(1)
    screen.feed("\x1b[?2026h")
    screen.wait(2)
    assert screen.state == UNKNOWN


def test_signals_count_within_a_synchronized_frame() -> None:
    screen = Screen("dummy")
    screen.show(*dummy())
    screen.feed("\x1b[?2026h" + osc("7501;state=working"))
    assert screen.state == WORKING


def test_the_timeline_is_bounded() -> None:
    screen = Screen("dummy")
    screen.show(*dummy())
    for _ in range(300):
        screen.feed(osc("7501;state=working"))
        screen.feed(osc("7501;state=idle"))
    assert len(screen.detector.timeline) == 200
    assert screen.detector.timeline[-1] is screen.detector.report


def test_a_spinner_is_not_a_change_of_state() -> None:
    screen = Screen("claude")
    screen.feed(osc("0;⠂ x"))
    before = screen.detector.report
    screen.now += 1
    screen.feed(osc("0;⠐ x"))
    assert screen.detector.report is before


def test_since_stays_when_only_the_reason_changes() -> None:
    screen = Screen("codex")
    screen.feed(osc("0;⠸ x"))
    first = screen.detector.report
    screen.now += 5
    screen.feed(osc("7501;state=working"))
    report = screen.detector.report
    assert (first.rule, report.rule) == ("title spinner", "program status working")
    assert report.since == first.since


def test_the_end_is_final() -> None:
    screen = Screen("claude")
    report = screen.detector.exited(200.0, "killed by SIGKILL")
    assert report.detail == "killed by SIGKILL"
    assert (report.state, report.since, screen.detector.deadline) == (AgentState.EXITED, 200.0, None)
    screen.feed(osc("0;⠂ x"))
    screen.feed(osc("7501;state=working"))
    assert screen.state == "EXITED"
    assert screen.detector.exited(300.0) is report


def legacy(tmp_path: Path, text: str = "command: x\nstartup_delay: 0\nidle_regex: '^> $'\n") -> Screen:
    (tmp_path / "old.yaml").write_text(text)
    return Screen(load_profiles(tmp_path).profiles["old"], age=0.0)


def test_a_profile_of_the_earlier_design_is_ready_by_its_prompt_and_silence(tmp_path: Path) -> None:
    screen = legacy(tmp_path)
    screen.show(["hello", "> "])
    assert screen.state == WORKING
    screen.wait(1.4)
    assert screen.state == WORKING
    screen.wait(0.5)
    assert (screen.state, screen.rule) == (READY, "output rests")


def test_silence_without_the_prompt_is_unknown(tmp_path: Path) -> None:
    screen = legacy(tmp_path)
    screen.show(["a long computation"])
    screen.wait(60)
    assert screen.state == UNKNOWN


def test_silence_alone_serves_a_profile_without_any_rule(tmp_path: Path) -> None:
    screen = legacy(tmp_path, "command: x\nstartup_delay: 0\n")
    screen.show(["whatever"])
    screen.wait(2)
    assert screen.state == READY
    screen.show(["more"])
    assert screen.state == WORKING


def test_a_rule_may_ask_that_something_is_absent(tmp_path: Path) -> None:
    rules = "states: [{state: ready, screen: '^> ', absent: '^busy', debounce: 0}]\n"
    screen = legacy(tmp_path, "command: x\nstartup_delay: 0\n" + rules)
    screen.show(["busy", "> "])
    assert screen.state == STARTING
    screen.show(["> "])
    assert screen.state == READY


def test_a_rule_may_tell_a_detail_and_ask_for_a_kind_of_status(tmp_path: Path) -> None:
    rules = (
        "states:\n  - {state: waiting, status: blocked, status_kind: auth, detail: '^Log in at (.*)'}\n"
        "  - {state: processing, status: blocked}\n"
    )
    screen = legacy(tmp_path, "command: x\nstartup_delay: 0\n" + rules)
    screen.show(["Log in at example.org"])
    screen.feed(osc("7501;state=blocked:kind=auth"))
    assert (screen.state, screen.detector.report.detail) == (WAITING, "example.org")
    screen.feed(osc("7501;state=blocked:kind=permission"))
    assert screen.state == WORKING


def test_rows_above_the_tail_do_not_count(tmp_path: Path) -> None:
    rules = "states: [{state: ready, screen: '^>', tail: 2, debounce: 0}]\n"
    screen = legacy(tmp_path, "command: x\nstartup_delay: 0\n" + rules)
    screen.show(["> ", "more", "and more"])
    assert screen.state == STARTING
    screen.show(["> ", "more"])
    assert screen.state == READY


def test_a_suspended_agent_stays_so_whatever_its_terminal_echoes() -> None:
    screen = Screen("claude")
    screen.show(*claude())
    screen.feed(osc("0;✳ x"))
    screen.wait(1)
    assert screen.state == READY
    screen.detector.suspended = True
    screen.feed(osc("0;⠂ x"))
    assert screen.state == "SUSPENDED"
    screen.show(["^Z"])
    screen.wait(60)
    assert screen.state == "SUSPENDED"
    screen.detector.suspended = False
    screen.show(*claude())
    screen.feed(osc("0;✳ x"))
    screen.wait(1)
    assert screen.state == READY
