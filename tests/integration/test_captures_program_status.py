"""Recordings of Claude Code 2.1.330: a constant title, and OSC 7501 that tells its state."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import pytest

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.model import AgentState
from synapse_tui.system.paths import shipped_profiles
from synapse_tui.terminal import TerminalEvent
from synapse_tui.terminal.events import ProgramStatus
from tests.integration.capture_replay import Replay, profile, recording, replays

READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING
STATES = {"idle": READY, "done": READY, "working": WORKING, "blocked": WAITING}
TURNS, TRUST, AUTO_MODE = (f"claude-2.1.330-{name}" for name in ("turns", "trust", "auto-mode"))
REST = 2.0
"""Seconds without output after which a profile without rules of its own takes an agent to rest."""
FRAME = 0.1
"""Seconds within which the agent draws what it has told."""


def note(told: list[tuple[float, str]], time: float, event: TerminalEvent) -> None:
    if isinstance(event, ProgramStatus):
        told.append((time, event.state))


def played(name: str, seen_by: Profile) -> tuple[Replay, list[tuple[float, str]]]:
    """A recording as a profile sees it, and what the agent told by OSC 7501."""
    told: list[tuple[float, str]] = []
    (found,) = replays(name, [seen_by], listener=partial(note, told))
    return found, told


@cache
def by_claude(name: str) -> tuple[Replay, list[tuple[float, str]]]:
    return played(name, profile("claude"))


def of_folder(folder: Path, text: str) -> Profile:
    (folder / "probe.yaml").write_text(text)
    return load_profiles(shipped_profiles(), folder).profiles["probe"]


def test_the_state_is_what_the_agent_tells_from_the_first_ready_to_its_end() -> None:
    found, told = by_claude(TURNS)
    end = found.scene("exit")[0]
    ready = next(moment.time for moment in found.moments if moment.state is READY)
    assert ready < found.scene("answer")[0]
    told = [(time, state) for time, state in told if ready < time < end]
    assert len(told) == 13
    for (time, state), (until, _) in zip(told, [*told[1:], (end, "")], strict=True):
        assert found.states(time + FRAME, until) == {STATES[state]}, f"{state} at {time}"


def test_ready_only_once_the_composer_takes_keys() -> None:
    found, _ = by_claude(TURNS)
    moments = found.between(0, found.scene("exit")[0] - FRAME)
    assert all(moment.reading.visible for moment in moments if moment.state is READY)


def test_not_ready_before_the_end_of_the_answer_is_drawn() -> None:
    found, told = by_claude(TURNS)
    enter = found.keys("slow")[-1][0]
    record, output = recording(TURNS, ())
    pieces = ((time, next(output)) for time, kind, *_ in record["events"] if kind == "o")
    drawn = next(time for time, data in pieces if b"END-OF-SLOW" in data)
    assert next(time for time, state in told if state == "done" and time > enter) < drawn
    assert found.states(enter + 1, drawn) == {WORKING}
    assert found.at(drawn + FRAME).state is READY


@pytest.mark.parametrize(
    "text",
    ["command: x\n", "command: x\nstates: [{state: ready, silence: 1}, {state: processing, active: 1}]\n"],
    ids=["smallest", "states of its own"],
)
def test_a_profile_without_a_word_of_it_has_the_rules(tmp_path: Path, text: str) -> None:
    found, told = played(TURNS, of_folder(tmp_path, text))
    begin, end = found.scene("answer")[0], found.scene("exit")[0]
    seen = [(time, state) for time, state in told if begin < time < end]
    for (time, state), (until, _) in zip(seen, [*seen[1:], (end, "")], strict=True):
        # That it is idle counts once its output rests, too: it may be one that never says `working`.
        wait = FRAME if STATES[state] is not READY else REST
        if time + wait < until:
            assert found.at(time + wait).state is STATES[state], f"{state} at {time}"
    assert found.at(end - FRAME).state is READY


@pytest.mark.parametrize("key", [b"\x1b", b"\r"], ids=["denied", "approved"])
def test_a_dialog_is_waiting_until_it_is_answered(key: bytes) -> None:
    found, told = by_claude(TURNS)
    scene = "deny" if key == b"\x1b" else "approve"
    asked = next(time for time, state in told if state == "blocked" and time > found.scene(scene)[0])
    answered = found.keys(scene)[-1]
    assert answered[1] == key
    assert found.states(asked + FRAME, answered[0]) == {WAITING}
    assert found.at(answered[0]).reading.dialog_kind == "permission"


@pytest.mark.parametrize("signals", ["", "no status"], ids=["as it was", "without OSC 7501"])
@pytest.mark.parametrize("name", [TRUST, AUTO_MODE])
def test_a_list_of_choices_without_numbers_is_a_dialog(name: str, signals: str) -> None:
    changes = ((rb"\x1b\]7501;[^\x07\x1b]*(?:\x07|\x1b\\)", b""),) if signals else ()
    (found,) = replays(name, [profile("claude")], changes)
    keys = [time for time, data in found.inputs if data == b"\r"]
    shown = next(moment.time for moment in found.moments if moment.reading.dialog)
    assert shown < found.inputs[0][0] - 1
    between = found.between(shown, keys[-1])
    assert {moment.state for moment in between} == {WAITING}
    assert not [moment for moment in between if moment.reading.visible]
    if not signals:
        assert found.at(found.scene("exit")[0] - 0.05).state is READY


def test_the_dialogs_say_what_they_ask() -> None:
    for name, title in (
        (TRUST, "Accessing workspace"),
        (AUTO_MODE, "Make auto mode your default permission mode?"),
    ):
        found, _ = by_claude(name)
        assert title in found.at(found.scene("down")[0]).reading.dialog_title


def test_a_permission_dialog_says_what_is_to_run_not_the_tip_above_it() -> None:
    found, _ = by_claude(TURNS)
    shown = found.at(found.keys("approve")[-1][0]).reading.dialog_title
    assert "Tip:" not in shown
    assert shown.startswith("Bash command · touch ")


@pytest.mark.parametrize("name", [TRUST, AUTO_MODE])
def test_an_agent_of_an_unknown_kind_has_the_dialogs_too(tmp_path: Path, name: str) -> None:
    """Without a rule for it, an agent that rests at a question would count as ready: Enter would answer."""
    changes = ((rb"\x1b\]7501;[^\x07\x1b]*(?:\x07|\x1b\\)", b""),)
    (found,) = replays(name, [of_folder(tmp_path, "command: x\nstartup: {delay: 0.5}\n")], changes)
    begin, end = found.inputs[0][0] - 1, found.inputs[-1][0]
    assert found.states(begin, end) == {WAITING}
