"""Watches in the history: a watched task survives the end of its host, for the agent to be restored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.core.model import DeliveryState, MessageRequest, TaskState
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.records import Restored
from synapse_tui.messages.tasks import TaskStore
from tests.unit.store_kit import KEY, SENDER, make_book, opened, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def watch(task_id: str, **values: Any) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "order": {"every": 60.0, "by": {"sender_id": "user"}},
        "sent": 2,
        "helped": 1,
        "in_vain": 0,
        "nudge_id": "",
        "steps": [{"number": 1, "at": "2026-01-02T03:04:05+00:00", "text": "watched \udcff"}],
        "state": "on",
        **values,
    }


def working(book: TaskStore, **fields: Any) -> str:
    """A task that the agent works on, unless the fields say otherwise."""
    task = book.create(MessageRequest("a long job", SENDER))
    book.change(task.id, **({"state": TaskState.WORKING, "delivery": DeliveryState.SUBMITTED} | fields))
    return task.id


async def restored(history: History, context: str = "second") -> list[Restored]:
    return await AgentJournal(history, KEY).waiting(context)


@pytest.mark.parametrize(
    ("fields", "state", "reason"),
    [
        ({}, TaskState.WORKING, "the host ended; its watch goes on when the agent is opened again"),
        (
            {"state": TaskState.INPUT_REQUIRED, "delivery": DeliveryState.DONE, "reason": "which?"},
            TaskState.INPUT_REQUIRED,
            "which?",
        ),
    ],
)
async def test_a_watched_task_stays_open_for_its_agent(path, fields, state, reason):
    async with opened(path) as (history, _):
        book, _, journal = make_book(history)
        task_id = working(book, **fields)
        journal.watch(watch(task_id, sent=1))
        journal.watch(watch(task_id))
    for owner in ("2:2", "3:3"):  # also when the next host is killed before it restores the agent
        async with opened(path, owner=owner) as (history, _):
            await history.flush()
    async with opened(path, owner="4:4") as (history, _):
        (found,) = await restored(history)
        assert (found.task.state, found.task.reason, found.entry) == (state, reason, None)
        assert found.watch == watch(task_id, steps=[{**watch("")["steps"][0], "text": "watched ?"}])


async def test_an_ended_watch_holds_no_task(path):
    async with opened(path) as (history, _):
        book, _, journal = make_book(history)
        task_id = working(book)
        journal.watch(watch(task_id))
        journal.watch(watch(task_id, state="stopped"))
    async with opened(path, owner="2:2") as (history, _):
        assert await restored(history) == []
    assert rows(path, "SELECT status, reason FROM tasks") == [("failed", "the host had ended")]
    assert rows(path, "SELECT state FROM watches") == [("stopped",)]


async def test_a_watch_whose_agent_is_not_opened_again_ends_after_a_week(path):
    now = datetime.now(UTC)
    async with opened(path) as (history, _):
        book, _, journal = make_book(history)
        journal.watch(watch(working(book)))
    for days, status, state in ((6, "working", "on"), (14, "failed", "failed")):
        later = now + timedelta(days=days)
        async with opened(path, owner=f"{days}:1", clock=lambda later=later: later) as (history, _):
            await history.flush()
        assert rows(path, "SELECT status, state FROM tasks, watches") == [(status, state)]


async def test_a_watch_is_removed_with_its_task(path):
    async with opened(path) as (history, _):
        book, _, journal = make_book(history)
        task_id = working(book, state=TaskState.COMPLETED, delivery=DeliveryState.DONE)
        journal.watch(watch(task_id, state="done"))
        await history.prune(datetime.now(UTC) + timedelta(seconds=1))
    assert rows(path, "SELECT * FROM watches") == []
