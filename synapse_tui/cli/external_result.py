"""The answer of an external agent to a message that was sent before, as it was written down."""

from __future__ import annotations

import time

from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.external.journal import Journal
from synapse_tui.addresses import Address
from synapse_tui.model import Task, TaskState
from synapse_tui.task_words import standing

from .caller import Caller
from .order import Outcome, ended_without_result
from .output import WaitTimedOut

LOOK = 0.5
"""Seconds between two looks at what was written down."""


def external_result(caller: Caller, task_id: str, timeout: float) -> Outcome | None:
    """What became of a message to an external agent in this project.

    Args:
        caller: Who asks.
        task_id: Its id or the first 8 characters of it.
        timeout: Seconds to wait for the answer.

    Returns:
        None when there is no such message.
    """
    project, deadline = caller.project, time.monotonic() + timeout
    while True:
        task = _find(caller, project, task_id)
        if task is None:
            return None
        told, target = told_by(task), Address(task.target, "external", "", 0, "", local=False, external=True)
        if task.state.final:
            return Outcome(target, told, ended_without_result(task.target, told))
        if task.state is TaskState.INPUT_REQUIRED:
            return Outcome(target, told)
        if time.monotonic() >= deadline:
            short = task.short_id
            how = standing(told.state, told.delivery, told.reason)
            words = f"task {short} of {task.target} goes on ({how})"
            hint = f"wait for it: synapse result {short} --wait-timeout 60"
            return Outcome(target, told, WaitTimedOut(words, hint))
        time.sleep(LOOK)


def told_by(task: Task) -> PeerTask:
    """A task as a host would tell of it."""
    return PeerTask(
        task.id,
        task.context_id,
        task.state,
        task.delivery.value,
        task.reason,
        tuple(artifact.text for artifact in task.artifacts),
    )


def _find(caller: Caller, project: str, task_id: str) -> Task | None:
    from pathlib import Path

    journal = Journal(caller.paths.talks, Path(project), "")
    every = (task for alias in journal.aliases() for task in journal.load(alias).tasks)
    return next((task for task in every if len(task_id) >= 8 and task.id.startswith(task_id)), None)
