"""Recordings of agents, replayed with their own timing: state and composer at every moment."""

from __future__ import annotations

from functools import partial

import pytest

from synapse_tui.agents.delivery.typist import FRAME
from synapse_tui.core.model import AgentState
from synapse_tui.terminal import Terminal, TerminalEvent
from synapse_tui.terminal.events import ProgramStatus
from tests.integration.capture_replay import recording, replay
from tests.terminal.recordings import AGENTS, case

DUMMIES = ("dummy", "dummy-alternate", "dummy-progress", "dummy-quiet")
"""The built-in agent: with all its signals, on the alternate screen, with progress only, without any."""
READY, WORKING, WAITING = AgentState.READY, AgentState.PROCESSING, AgentState.WAITING


def pasted(keys: list[tuple[float, bytes]]) -> tuple[float, str]:
    time, data = keys[0]
    return time, data.removeprefix(b"\x1b[200~").split(b"\x1b[201~")[0].decode().removesuffix("\r")


@pytest.fixture(params=[case(agent) for agent in (*DUMMIES, *AGENTS)])
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
    until = enter + (1.4 if agent in DUMMIES else seconds)
    assert replay(agent).states(enter + 0.6, until) == {WORKING}


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


LOST = ("codex", "gemini")
"""Those that lose an Enter in the write of a paste."""
NO_DRAFT = NOT_READY | {("copilot", "slow")}  # it drew nothing between the paste and Enter
DRAFTS = [
    case(agent, scene)
    for scene in ("paste-delay", "long-paste", "long-line", "raw-lf", "slow", "perm")
    for agent in (*DUMMIES, *AGENTS)
    if (agent, scene) not in NO_DRAFT
]


@pytest.mark.parametrize(("agent", "scene"), DRAFTS)
def test_drafts_are_read(agent: str, scene: str) -> None:
    found = replay(agent)
    keys = [(time, data) for time, data in found.keys(scene) if data != b"\x15"]
    time, text = pasted(keys)
    enter = next(when for when, data in keys if data == b"\r")
    moments = found.between(time, enter + 0.5)
    shown = [moment for moment in moments if moment.reading.shows(text)]
    assert shown
    assert not [moment for moment in found.between(shown[0].time, enter) if not moment.reading.shows(text)]


@pytest.mark.parametrize("agent", [case(agent) for agent in LOST])
def test_a_draft_that_enter_did_not_send_is_seen(agent: str) -> None:
    """Enter in the same write was lost by some: their draft must not look sent."""
    found = replay(agent)
    _, text = pasted(found.keys("submit-onewrite"))
    again = [when for when, data in found.keys("submit-onewrite")[1:] if data == b"\r"]
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


PROMPT = [READY, WORKING, READY]
ASKED = [READY, WORKING, WAITING, WORKING, READY]
ORDER = {
    "submit-twowrites": PROMPT,
    "paste-delay": PROMPT,
    "slow": PROMPT,
    "hang": PROMPT,
    "queue": PROMPT,
    "perm": ASKED,
    "perm-deny": [READY, WORKING, WAITING, READY],
    "sbox": ASKED,
    "int-esc": PROMPT + PROMPT[1:],
}
OTHER_ORDER = {
    ("codex", "perm-deny"): ASKED,  # it goes on for a moment after the denial
    ("opencode", "perm-deny"): ASKED,
    ("codex", "sbox"): PROMPT,  # its sandbox needs no leave
    **{(each, "perm-deny"): ASKED for each in DUMMIES},  # it goes on with the rest of the message
    ("copilot", "perm"): [READY, WORKING, WAITING, WORKING, WAITING],  # asks twice
    ("copilot", "perm-deny"): [WAITING, WORKING, READY, AgentState.UNKNOWN, READY],  # Escape arms "rewind"
}


@pytest.mark.parametrize("scene", ORDER)
def test_the_timeline_of_each_scene(agent: str, scene: str) -> None:
    start, end = replay(agent).scene(scene)
    seen = [state for began, until, state in replay(agent).spans() if until > start and began < end]
    assert seen == OTHER_ORDER.get((agent, scene), ORDER[scene])


def note_status(told: list[str], event: TerminalEvent) -> None:
    if isinstance(event, ProgramStatus):
        told.append(event.state)


@pytest.mark.parametrize("agent", [case("dummy"), case("codex")])
def test_an_agent_that_says_it_is_done_draws_nothing_later_than_a_frame(agent: str) -> None:
    """What the delivery relies on between two turns; until the next key, size or turn."""
    record, output = recording(agent, ())
    told: list[str] = [""]
    terminal = Terminal(record["cols"], record["rows"], listener=partial(note_status, told))
    shown, done = "", float("inf")
    turns, late = 0, []
    for time, kind, *rest in record["events"]:
        known = len(told)
        if kind == "o":
            terminal.feed(next(output))
        elif kind == "r":
            terminal.resize(*rest)
        before, shown = shown, "\n".join(row.rstrip() for row in terminal.display)
        if kind != "o" or "working" in told[known:]:
            done = float("inf")
        if shown != before and time > done + FRAME:
            late.append(time - done)
        if told[known:] and told[-2:] in (["working", "done"], ["working", "idle"]):
            done, turns = time, turns + 1
    assert turns > 10
    assert late == []
