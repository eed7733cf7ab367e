"""Recordings of the real agents, replayed with their own timing: state and composer at every moment."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.agents.detector import StateDetector
from synapse_tui.agents.profiles import load_profiles
from synapse_tui.model import AgentState
from synapse_tui.paths import shipped_profiles
from synapse_tui.terminal import Terminal

AGENTS = ("claude", "codex", "gemini", "opencode", "copilot")
SHARED = Path(os.environ.get("SYNAPSE_SHARED") or Path(__file__).parents[3] / "shared")
READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING

pytestmark = pytest.mark.skipif(
    not (SHARED / "captures").is_dir(),
    reason="the recordings are not here (SYNAPSE_SHARED names their folder)",
)


@dataclass(frozen=True)
class Moment:
    """What was known after some output, until the next moment."""

    time: float
    state: AgentState
    reading: ComposerReading


@dataclass
class Replay:
    """A whole recording."""

    marks: list[tuple[str, float]]
    moments: list[Moment] = field(default_factory=list)
    inputs: list[tuple[float, bytes]] = field(default_factory=list)

    def scene(self, name: str) -> tuple[float, float]:
        """When a scene began, and when the next one did."""
        starts = [start for _, start in self.marks] + [float("inf")]
        index = [mark for mark, _ in self.marks].index(name)
        return starts[index], starts[index + 1]

    def keys(self, scene: str) -> list[tuple[float, bytes]]:
        start, end = self.scene(scene)
        return [(time, data) for time, data in self.inputs if start <= time < end]

    def between(self, start: float, end: float) -> list[Moment]:
        """All that was shown between two times, what stood at the first one included."""
        before = [moment for moment in self.moments if moment.time <= start][-1:]
        return before + [moment for moment in self.moments if start < moment.time < end]

    def states(self, start: float, end: float) -> set[AgentState]:
        return {moment.state for moment in self.between(start, end)}

    def at(self, time: float) -> Moment:
        return [moment for moment in self.moments if moment.time <= time][-1]


@cache
def replay(agent: str) -> Replay:
    record = json.loads((SHARED / "captures" / f"{agent}-full.json").read_text())
    data = (SHARED / "captures" / f"{agent}-full.bin").read_bytes()
    found = Replay([(name, time) for name, _, time in record["marks"]])
    clock = [0.0]
    detector = StateDetector(load_profiles(shipped_profiles()).profiles[agent], now=0.0)
    terminal = Terminal(
        record["cols"], record["rows"], listener=lambda event: detector.event(event, clock[0])
    )
    for time, kind, *rest in record["events"]:
        for due in deadlines(detector, terminal, time):
            found.moments.append(Moment(due, detector.report.state, detector.reading))
        clock[0] = time
        if kind == "i":
            found.inputs.append((time, base64.b64decode(rest[0])))
        elif kind == "r":
            terminal.resize(rest[0], rest[1])
        else:
            terminal.feed(data[rest[0] : rest[0] + rest[1]])
            detector.update(terminal, time)
            found.moments.append(Moment(time, detector.report.state, detector.reading))
    return found


def deadlines(detector: StateDetector, terminal: Terminal, until: float) -> Iterator[float]:
    while detector.deadline is not None and detector.deadline < until:
        due = detector.deadline
        detector.update(terminal, due)
        yield due


def pasted(keys: list[tuple[float, bytes]]) -> tuple[float, str]:
    time, data = keys[0]
    return time, data.removeprefix(b"\x1b[200~").split(b"\x1b[201~")[0].decode().removesuffix("\r")


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def dialogs(agent: str) -> list[tuple[float, float]]:
    """From the prompt's Enter to the answer, for each dialog of the recording."""
    found = replay(agent)
    scenes = ("perm",) if agent == "copilot" else ("perm", "perm-deny")
    times = [[time for time, data in found.keys(scene) if data in (b"\r", b"\x1b")] for scene in scenes]
    spans = [(enter, answer) for enter, answer, *_ in times]
    if agent == "copilot":  # asks twice; the second time nobody answered before the next scene's Enter
        spans.append((spans[0][1], found.keys("perm-deny")[1][0]))
    return spans


def test_never_ready_from_the_prompt_to_the_answer_of_its_dialog(agent: str) -> None:
    for enter, answer in dialogs(agent):
        assert READY not in replay(agent).states(enter + 0.4, answer)


def test_waiting_when_the_dialog_is_up(agent: str) -> None:
    for enter, answer in dialogs(agent):
        working = next(
            moment.time for moment in replay(agent).between(enter, answer) if moment.state is WORKING
        )
        first = next(
            moment.time for moment in replay(agent).between(working, answer) if moment.state is WAITING
        )
        assert first < enter + 2.0
        assert replay(agent).states(first, answer) == {WAITING}
        assert replay(agent).at(answer - 0.01).reading.dialog_title


def test_no_message_could_be_typed_into_a_dialog(agent: str) -> None:
    for enter, answer in dialogs(agent):
        moments = replay(agent).between(enter + 0.4, answer)
        assert not [moment for moment in moments if moment.state is READY and moment.reading.visible]
        shown = [index for index, moment in enumerate(moments) if moment.reading.dialog]
        assert not [moment for moment in moments[shown[0] :] if moment.reading.visible]


@pytest.mark.parametrize(("scene", "seconds"), [("slow", 6.5), ("hang", 4.5)])
def test_processing_while_it_works(agent: str, scene: str, seconds: float) -> None:
    enter = replay(agent).keys(scene)[-1][0]
    assert replay(agent).states(enter + 0.6, enter + seconds) == {WORKING}


def test_ready_between_two_turns(agent: str) -> None:
    found = replay(agent)
    for name, start in found.marks:
        if name in ("startup", "exit", "resize") or (agent, name) in NOT_READY:
            continue
        moment = found.at(start)
        assert moment.state is READY, name
        assert moment.reading.empty, name


NOT_READY = {
    ("gemini", "raw-lf"),  # a dialog about a loop is up
    ("copilot", "perm-deny"),  # its second dialog is up
}


@pytest.mark.parametrize("scene", ["paste-delay", "long-paste", "long-line", "raw-lf", "slow", "perm"])
def test_drafts_are_read(agent: str, scene: str) -> None:
    if (agent, scene) in NOT_READY:
        pytest.skip("a dialog is up")
    found = replay(agent)
    keys = [(time, data) for time, data in found.keys(scene) if data != b"\x15"]
    time, text = pasted(keys)
    if (agent, scene) == ("copilot", "slow"):
        pytest.skip("it drew nothing between the paste and Enter")
    enter = next(when for when, data in keys if data == b"\r")
    moments = found.between(time, enter + 0.5)
    shown = [moment for moment in moments if moment.reading.shows(text)]
    assert shown
    assert not [moment for moment in found.between(shown[0].time, enter) if not moment.reading.shows(text)]


def test_a_draft_that_enter_did_not_send_is_seen(agent: str) -> None:
    """Enter in the same write was lost by some: their draft must not look sent."""
    found = replay(agent)
    _, text = pasted(found.keys("submit-onewrite"))
    again = [when for when, data in found.keys("submit-onewrite")[1:] if data == b"\r"]
    if not again or agent == "opencode":
        pytest.skip("the first Enter sent it")
    assert found.at(again[0] - 0.01).reading.shows(text)
    assert found.at(again[0] - 0.01).state is READY


def test_messages_queued_while_it_works_are_drafts_until_enter(agent: str) -> None:
    found = replay(agent)
    paste, enter = found.keys("queue")[2:4]
    assert found.at(enter[0] - 0.01).reading.draft == "tokqueued message"
    assert found.at(enter[0] + 1.0).reading.empty
    assert paste[0] < enter[0]


def test_interrupts_are_seen(agent: str) -> None:
    found = replay(agent)
    last = [time for time, data in found.keys("int-esc") if data == b"\x1b"][-1]
    assert found.at(last - 0.01).state is WORKING
    seconds = 8.0 if agent == "copilot" else 1.0  # that recording pressed Escape too slowly for it to count
    assert READY in found.states(last, last + seconds)
