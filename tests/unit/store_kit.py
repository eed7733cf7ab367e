"""A history on a file of its own, and what it has written."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from synapse_tui.core.events import EventBus
from synapse_tui.core.model import MessageRequest, Sender
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.outbox import Outbox
from synapse_tui.messages.records import AgentKey
from synapse_tui.messages.tasks import TaskStore

KEY = AgentKey("/project", "synapse-dummy-8190", "dummy")
OTHER = AgentKey("/project", "synapse-dummy-8191", "dummy")
SENDER = Sender("synapse-claude-8100", "claude", "http://127.0.0.1:8100", verified=True)


class Told:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.replaced = 0

    def __call__(self, text: str, level: str) -> None:
        self.texts.append(text)

    def note_replaced(self) -> None:
        self.replaced += 1


@asynccontextmanager
async def opened(
    path: Path, owner: str = "1:1", alive: Callable[[str], bool] = lambda _: False, **options: Any
) -> AsyncIterator[tuple[History, Told]]:
    told = Told()
    history = History(
        path, owner=owner, alive=alive, notify=told, replaced=told.note_replaced, **({"busy": 0.1} | options)
    )
    history.load()
    try:
        yield history, told
    finally:
        await history.close()


def make_book(
    history: History, key: AgentKey = KEY, context: str = "first"
) -> tuple[TaskStore, Outbox, AgentJournal]:
    journal = AgentJournal(history, key)
    book = TaskStore(key.agent_id, context, EventBus(), journal=journal)
    return book, Outbox(book), journal


def send(book: TaskStore, outbox: Outbox, text: str, **fields: Any) -> str:
    task = book.create(MessageRequest(text, SENDER, **fields))
    outbox.put(task)
    return task.id


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()
