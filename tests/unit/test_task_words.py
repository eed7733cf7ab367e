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
