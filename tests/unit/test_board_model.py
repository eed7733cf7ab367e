"""The board's order: by urgency, still while keys are pressed, and the chosen agent stays chosen."""

from __future__ import annotations

from typing import Any

import pytest

from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.core.model import AgentState, ExitStatus
from synapse_tui.widgets.agent_rows import counts
from synapse_tui.widgets.board import DEAD_SECONDS, Answering
from synapse_tui.widgets.board_drawing import Asked
from synapse_tui.widgets.board_model import REST_SECONDS, BoardModel, BoardRow, doing
from synapse_tui.widgets.states import HOLDS, NEEDS_YOU
from synapse_tui.widgets.views import AgentView


def view(name: str, state: AgentState = AgentState.READY, **fields: Any) -> AgentView:
    return AgentView(f"synapse-{name}-1", ord(name[0]), name, "claude", state, **fields)


def row(name: str, state: AgentState = AgentState.READY, *, seconds: float = 1.0, **fields: Any) -> BoardRow:
    agent = view(name, state, **fields)
    return BoardRow(agent, agent.mark, seconds=seconds)


def names(model: BoardModel) -> list[str]:
    return [row.agent.label for row, _state in model.rows]


READY = [row("a"), row("b"), row("c")]


def test_the_most_urgent_come_first_and_those_that_wait_longest() -> None:
    model = BoardModel()
    rows = [
        row("ready"),
        row("starting", AgentState.STARTING),
        row("working", AgentState.PROCESSING),
        row("holds", held=1),
        row("done", unseen=True),
        row("ended", AgentState.EXITED, exit=ExitStatus(code=1)),
        row("asks", AgentState.WAITING, seconds=5),
        row("longer", AgentState.WAITING, seconds=9),
    ]
    model.show(rows, 0.0)
    assert names(model) == ["longer", "asks", "ended", "done", "holds", "working", "starting", "ready"]
    assert [state.word for state in model.counts][:2] == ["needs you", "ended"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"state": AgentState.PROCESSING, "held": 1}, "working"),  # it waits for the end of the turn
        ({"state": AgentState.PROCESSING, "held": 1, "held_seconds": 121.0}, "holds messages"),
        ({"state": AgentState.WAITING, "held": 1}, "needs you"),
        ({"state": AgentState.READY, "gave_up": True}, "needs you"),
        ({"state": AgentState.ERROR}, "error"),
        ({"state": AgentState.READY, "held": 1, "unseen": True}, "done"),
        ({"state": AgentState.EXITED, "exit": ExitStatus(code=0), "end_seen": True}, "ended"),
    ],
)
def test_an_agent_stands_under_its_most_urgent_state(fields: dict[str, Any], word: str) -> None:
    assert view("x", **fields).mark.word == word


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"state": AgentState.READY, "held": 1}, "ready, holds messages"),
        ({"state": AgentState.PROCESSING, "held": 1, "held_seconds": 121.0}, "working, holds messages"),
        ({"state": AgentState.PROCESSING, "held": 1}, "working"),
        ({"state": AgentState.READY}, "ready"),
    ],
)
def test_an_agent_that_holds_messages_has_a_state_too(fields: dict[str, Any], text: str) -> None:
    assert view("x", **fields).state_text == text


def test_what_an_agent_does_is_said_in_a_few_words() -> None:
    waits = view("x", AgentState.WAITING, detail="permission: Bash command · rm -r build · Proceed?")
    assert doing(waits, asks="wants to run rm -r build") == "wants to run rm -r build"
    assert doing(waits) == "rm -r build"
    assert doing(view("x", held=2, held_reason="you have a draft")) == "2 messages wait: you have a draft"
    assert doing(view("x", unseen=True, title="claude"), answer="all pass") == "all pass"
    assert (
        doing(view("x", AgentState.PROCESSING, title="tests"), task="for bob: test it") == "for bob: test it"
    )
    assert doing(view("x", AgentState.EXITED, exit=ExitStatus(code=1))) == "exited with status 1"


def test_rows_keep_their_places_while_keys_are_pressed() -> None:
    model = BoardModel()
    model.show(READY, 0.0)
    model.pressed(10.0)
    urgent = [row("a"), row("b"), row("c", AgentState.WAITING)]
    model.show(urgent, 10.1)
    assert names(model) == ["a", "b", "c"]
    assert model.rows[2][0].agent.state is AgentState.WAITING, "the row itself is up to date"
    left = model.unsettled(10.1)
    assert left == pytest.approx(REST_SECONDS - 0.1)
    model.show(urgent, 10.0 + REST_SECONDS)
    assert names(model) == ["c", "a", "b"]
    assert model.unsettled(11.0) is None


def test_the_chosen_agent_stays_chosen_when_its_row_moves() -> None:
    model = BoardModel()
    model.show(READY, 0.0)
    model.choose("synapse-b-1")
    model.show([row("a"), row("b"), row("c", AgentState.WAITING)], 1.0)
    assert names(model) == ["c", "a", "b"]
    assert model.chosen == "synapse-b-1"


def test_an_agent_that_is_gone_keeps_its_row_until_no_key_is_pressed() -> None:
    model = BoardModel()
    model.show(READY, 0.0)
    model.choose("synapse-b-1")
    model.pressed(5.0)
    model.show([READY[0], READY[2]], 5.1)
    assert names(model) == ["a", "b", "c"]
    assert model.chosen_row is None, "no key may act on it"
    model.show([READY[0], READY[2]], 6.0)
    assert names(model) == ["a", "c"]
    assert model.chosen == "synapse-c-1"


def test_steps_end_at_the_first_and_the_last_row() -> None:
    model = BoardModel()
    model.show(READY, 0.0)
    model.step(-1)
    assert model.chosen == "synapse-a-1"
    model.step(9)
    assert model.chosen == "synapse-c-1"


def test_next_goes_through_all_that_need_the_user_and_wraps() -> None:
    model = BoardModel()
    model.show([row("a", AgentState.WAITING), row("b"), row("c", unseen=True)], 0.0)
    assert model.chosen == "synapse-a-1"
    assert model.next_calling()
    assert model.chosen == "synapse-c-1"
    assert model.next_calling()
    assert model.chosen == "synapse-a-1"
    model.show([row("a", AgentState.WAITING), row("b"), row("c")], 1.0)
    assert not model.next_calling()


def test_finding_shows_what_matches_and_chooses_the_first() -> None:
    model = BoardModel()
    model.show(READY, 0.0)
    model.find("B")
    assert names(model) == ["b"]
    assert model.chosen == "synapse-b-1"
    model.find("")
    assert names(model) == ["a", "b", "c"]
    assert model.chosen == "synapse-b-1"


def test_an_agent_that_is_being_opened_has_a_row_but_cannot_be_chosen() -> None:
    model = BoardModel()
    coming = AgentView("", 4, "d", "claude")
    model.show([*READY, BoardRow(coming, coming.mark)], 0.0)
    assert names(model) == ["d", "a", "b", "c"]
    model.step(-9)
    assert model.chosen == "synapse-a-1"


# When a dialog may be answered


def asked(text: str = "rm -rf build", *, agent: str = "alice", serial: int = 1) -> Asked:
    return Asked(agent, serial, AgentDialog(text=(text,)).fingerprint)


def test_a_dialog_that_has_just_appeared_takes_no_key() -> None:
    answering = Answering()
    answering.show(asked(), 10.0)
    assert answering.readiness(10.0 + DEAD_SECONDS - 0.01) == "resting"
    assert answering.wakes(10.0) == pytest.approx(DEAD_SECONDS)
    assert answering.readiness(10.0 + DEAD_SECONDS) == "ready"


@pytest.mark.parametrize("other", [asked("rm -rf /"), asked(serial=2)])
def test_a_dialog_that_changes_takes_no_key_until_it_was_seen(other: Asked) -> None:
    answering = Answering()
    answering.show(asked(), 0.0)
    answering.show(other, 10.0)
    assert answering.readiness(10.1) == "changed"
    answering.show(other, 10.2)  # it is drawn again, and the same
    assert answering.readiness(10.0 + DEAD_SECONDS) == "ready"


def test_choosing_another_agent_that_asks_takes_no_key_either() -> None:
    answering = Answering()
    answering.show(asked(), 0.0)
    answering.show(asked(agent="bob"), 10.0)
    assert answering.readiness(10.1) == "resting"


def test_an_answer_is_given_once_and_again_only_after_it_was_refused() -> None:
    answering = Answering()
    answering.show(asked(), 0.0)
    answering.sent(asked())
    assert answering.readiness(1.0) == "sent"
    answering.refused(2.0)
    assert answering.readiness(2.1) == "changed"
    assert answering.readiness(2.0 + DEAD_SECONDS) == "ready"


def test_a_dialog_that_is_not_shown_as_a_whole_cannot_be_answered() -> None:
    answering = Answering()
    answering.show(asked(), 0.0)
    answering.whole = False
    assert answering.readiness(9.0) == "hidden"


@pytest.mark.parametrize(
    ("state", "count", "said"),
    [(NEEDS_YOU, 1, "▲ 1 needs you"), (NEEDS_YOU, 2, "▲ 2 need you"), (HOLDS, 1, "║ 1 holding")],
)
def test_the_count_of_agents_is_a_sentence(state, count, said):
    assert "".join(piece.text for piece in counts({state: count})) == said
