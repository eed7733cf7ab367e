"""How a task stands, in words for people."""

from __future__ import annotations

import pytest

from synapse_tui.core.model import DeliveryState, TaskState
from synapse_tui.core.wording import standing, step_words, task_word
from synapse_tui.widgets.states import step_mark

WAITING = (DeliveryState.QUEUED, DeliveryState.HELD, DeliveryState.TYPING, DeliveryState.SUBMITTING)


@pytest.mark.parametrize("delivery", [*WAITING, ""])
def test_what_waits_is_never_called_submitted(delivery: str) -> None:
    assert task_word(TaskState.SUBMITTED, delivery) == "waits"
    assert standing(TaskState.SUBMITTED, delivery) == (delivery or "waits")
    assert step_words(TaskState.SUBMITTED, delivery) == delivery


@pytest.mark.parametrize(
    ("state", "delivery", "word"),
    [
        (TaskState.COMPLETED, DeliveryState.DONE, "done"),
        (TaskState.FAILED, DeliveryState.DONE, "failed"),
        (TaskState.REJECTED, DeliveryState.DONE, "failed"),
        (TaskState.CANCELED, DeliveryState.CANCELED, "canceled"),
        (TaskState.WORKING, DeliveryState.SUBMITTED, "working"),
        (TaskState.INPUT_REQUIRED, DeliveryState.SUBMITTED, "needs you"),
        (TaskState.INPUT_REQUIRED, DeliveryState.DONE, "asks"),
    ],
)
def test_the_command_line_uses_the_words_of_the_application(
    state: TaskState, delivery: DeliveryState, word: str
) -> None:
    assert standing(state, delivery) == word == step_mark(state, delivery).word
    assert step_words(state, delivery).split(", ")[-1] == word


def test_a_task_that_a_watch_made_is_watched_and_no_work() -> None:
    words = [
        step_mark(state, delivery, reason, watched=True).word
        for state, delivery, reason in (
            (TaskState.WORKING, DeliveryState.SUBMITTED, "watched: 1 of 5 nudges"),
            (TaskState.COMPLETED, DeliveryState.DONE, "the watch was stopped by you"),
            (TaskState.COMPLETED, DeliveryState.DONE, ""),
        )
    ]
    assert words == ["watched", "stopped", "done"]
    assert step_mark(TaskState.COMPLETED, DeliveryState.DONE, "the watch was stopped by you").word == "done"


def test_a_task_whose_watch_gave_up_is_not_called_done() -> None:
    """It has an answer, so it is completed; the agent has not said that its work is done."""
    reason = "the watch gave up: it worked less than 10 s after each of the last 2 nudges"
    assert step_mark(TaskState.COMPLETED, DeliveryState.DONE, reason).word == "gave up"
