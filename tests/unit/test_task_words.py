"""How a task stands, in words for people."""

from __future__ import annotations

import pytest

from synapse_tui.model import DeliveryState, TaskState
from synapse_tui.wording import standing, step_words, task_word

WAITING = (DeliveryState.QUEUED, DeliveryState.HELD, DeliveryState.TYPING, DeliveryState.SUBMITTING)


@pytest.mark.parametrize("delivery", [*WAITING, ""])
def test_what_waits_is_never_called_submitted(delivery: str) -> None:
    assert task_word(TaskState.SUBMITTED, delivery) == "waits"
    assert standing(TaskState.SUBMITTED, delivery) == (delivery or "waits")
    assert step_words(TaskState.SUBMITTED, delivery) == delivery


def test_a_task_that_is_worked_on_is_working() -> None:
    assert standing(TaskState.WORKING, "submitted") == "working"
    assert step_words(TaskState.WORKING, "submitted") == "submitted, working"


def test_reasons_follow() -> None:
    assert standing(TaskState.SUBMITTED, "held", "dialog open") == "held: dialog open"
    assert standing(TaskState.FAILED, "failed", "failed") == "failed"


def test_the_end_is_told_with_the_delivery_before_it() -> None:
    assert step_words(TaskState.COMPLETED, "done") == "done, completed"
    assert step_words(TaskState.FAILED, "failed") == "failed"
