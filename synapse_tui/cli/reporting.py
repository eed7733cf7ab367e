"""What is told of messages that were sent: answers and receipts on stdout, errors on stderr."""

from __future__ import annotations

from collections.abc import Sequence

from synapse_tui.a2a.calls import PeerTask

from .order import Outcome, ids_of
from .output import error_json, fail, note, plain, show, show_json
from .waiting import NOTHING


def report(outcome: Outcome, *, waiting: bool, alone: bool) -> None:
    """Tell of one message: its answer or its receipt, and what went wrong.

    Args:
        outcome: What became of it.
        waiting: Whether its answer was waited for.
        alone: Whether it went to one agent only.
    """
    task, who = outcome.task, outcome.target.agent_id
    if task is not None and not waiting:
        show(receipt(who, task))
    elif task is not None and _unread(outcome, task):
        note(f"{receipt(who, task)}: its answer is not waited for; --response does so")
    elif task is not None and (not outcome.error or task.text):
        text = plain(task.text)
        show(text if alone else f"== {who} ==\n{text}")
    if outcome.error:
        fail(outcome.error, name="synapse")
    if waiting and task is not None and _asks(task):
        note(f'synapse: {who} asks; answer it: synapse send {who} "..." --task {task.task_id[:8]}')
    if task is not None and task.truncated:
        note(f"synapse: the answer of {who} is not complete")


def _unread(outcome: Outcome, task: PeerTask) -> bool:
    """Whether nobody waited, because the message is not typed but kept to be read some time."""
    return outcome.error is None and not task.state.final and not _asks(task)


def _asks(task: PeerTask) -> bool:
    """Whether its agent itself has asked something."""
    return task.question != NOTHING


def receipt(agent_id: str, task: PeerTask) -> str:
    """What became of handing a message to an agent, in a line."""
    return f"{agent_id}: {task.status} ({ids_of(task)})"


def report_json(outcomes: Sequence[Outcome], *, array: bool) -> None:
    """Tell of all messages as JSON on stdout, and of what went wrong on stderr too."""
    values = [outcome_json(outcome) for outcome in outcomes]
    show_json(values if array or len(values) > 1 else values[0])
    for outcome in outcomes:
        if outcome.error:
            fail(outcome.error, name="synapse")


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """What became of one message, as data."""
    told: dict[str, object] = {"target": outcome.target.agent_id}
    if outcome.task:
        task = outcome.task
        told |= {
            "task_id": task.task_id,
            "status": task.state.value,
            "delivery": task.delivery,
            "reason": task.reason,
        }
        told |= {"message_id": task.follow_up.task_id} if task.follow_up else {}
        told |= {"text": task.text, "truncated": task.truncated}
    if outcome.error:
        told["error"] = error_json(outcome.error)
    return told
