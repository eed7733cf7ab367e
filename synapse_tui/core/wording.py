"""Human-readable times and message states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from synapse_tui.system.language import tr

from .model import USER, AgentState, DeliveryState, Sender, TaskState

YOU = tr("you")

_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def called(agent_id: str, names: Mapping[str, str]) -> str:
    """Return what a person calls an agent or a sender: `you`, a name, or the id of one without a name."""
    return YOU if agent_id == USER.sender_id else names.get(agent_id) or agent_id


def sender_called(sender: Sender, names: Mapping[str, str]) -> str:
    """Return what a person calls a sender, with a `?` if it is not verified."""
    return called(sender.sender_id, names) + ("" if sender.verified else "?")


_IDS = re.compile(r"\bsynapse-[\w-]+-\d{1,5}\b", re.ASCII)  # kana may follow at once


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Call the agents by their names in a text of the host, which knows them by their ids."""
    return _IDS.sub(lambda found: called(found[0], names), text)


def since(seconds: float) -> str:
    """Format a duration in at most five cells: `0:19`, `18:20`, `3 h`, `2 d`."""
    whole = max(0, int(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600} h" if whole < 86400 else f"{whole // 86400} d"


def duration(seconds: float) -> str:
    """Format a duration in at most two units: `0.4s`, `42s`, `3m05s`, `2h10m`, `3d04h`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    for size, unit, part, small in _UNITS:
        if seconds >= size:
            whole = int(seconds)
            return f"{whole // size}{unit}{whole % size // part:02}{small}"
    return f"{int(seconds)}s"


def moment(at: datetime, now: datetime) -> str:
    """Format a time as local wall-clock time, with the date unless it is today; both arguments are aware."""
    here = at.astimezone()
    today = here.date() == now.astimezone().date()
    return f"{here:%H:%M:%S}" if today else f"{here:%Y-%m-%d %H:%M:%S}"


def moment_of(text: str, now: datetime) -> str:
    """Format a time in ISO 8601 like `moment`; any other text stays as it is."""
    at = time_of(text)
    return text if at is None else moment(at, now)


def time_of(text: str) -> datetime | None:
    """Read an ISO 8601 time, a local one if it has no offset; None if the text is none."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return None


_STATES = {
    AgentState.PROCESSING.value: "working",
    AgentState.WAITING.value: "needs you",
    AgentState.EXITED.value: "ended",
}


def state_word(state: str) -> str:
    """Return the word for an agent's state, as the application says it: `needs you`, `working`, `ready`."""
    return _STATES.get(state, state.lower())


WAITS = "waits"
_GIVEN = (DeliveryState.SUBMITTED, DeliveryState.DONE)


_TASKS = {
    TaskState.COMPLETED: "done",
    TaskState.INPUT_REQUIRED: "needs you",
    TaskState.REJECTED: "failed",
}


def task_word(state: TaskState, delivery: str) -> str:
    """Return the word for a task's state next to its delivery state, as the application says it.

    `waits`, `working`, `needs you`; `asks` if the question came as an answer.
    """
    if state is TaskState.SUBMITTED and delivery not in _GIVEN:
        return WAITS
    if state is TaskState.INPUT_REQUIRED and delivery == DeliveryState.DONE:
        return "asks"
    return _TASKS.get(state, state.value)


def standing(state: TaskState, delivery: str, reason: str = "") -> str:
    """Describe a task's status: `queued`, `held: permission dialog open`, `working`, `done`."""
    word = task_word(state, delivery)
    word = delivery if word == WAITS and delivery else word
    return f"{word}: {reason}" if reason not in ("", word) else word


def standing_words(status: str) -> str:
    """Return what `standing` says in the language of the person."""
    word, colon, reason = status.partition(": ")
    return f"{tr(word)}{colon}{tr(reason)}"


def step_words(state: TaskState, delivery: str) -> str:
    """Describe a state change, delivery first: `queued`, `submitted, working`, `done`."""
    word = task_word(state, delivery)
    return delivery if word in (WAITS, delivery) else f"{delivery}, {word}"
