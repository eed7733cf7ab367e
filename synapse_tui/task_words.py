"""How a task stands, in words for people.

A2A calls a task `submitted` on which nobody works yet, and a delivery is `submitted` once the agent has the
message: the same word for before and after. People are told the delivery as long as the message waits.
"""

from __future__ import annotations

from .model import DeliveryState, TaskState

WAITS = "waits"
_GIVEN = (DeliveryState.SUBMITTED, DeliveryState.DONE)


def task_word(state: TaskState, delivery: str) -> str:
    """The state of a task beside that of its delivery: `waits`, `working`, `completed`."""
    waits = state is TaskState.SUBMITTED and delivery not in _GIVEN
    return WAITS if waits else state.value


def standing(state: TaskState, delivery: str, reason: str = "") -> str:
    """How a task stands, alone: `queued`, `held: permission dialog open`, `working`, `completed`."""
    word = task_word(state, delivery)
    word = delivery if word == WAITS and delivery else word
    return f"{word}: {reason}" if reason not in ("", word) else word


def step_words(state: TaskState, delivery: str) -> str:
    """A step in the life of a task, its delivery first: `queued`, `submitted, working`, `done, completed`."""
    word = task_word(state, delivery)
    return delivery if word in (WAITS, delivery) else f"{delivery}, {word}"
