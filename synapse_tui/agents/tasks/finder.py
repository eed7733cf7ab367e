"""Finds the tasks of one agent, also those that are in memory no more, page by page."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from synapse_tui.errors import HistoryError, InvalidValue, TaskNotFound
from synapse_tui.model import Task, TaskPage, TaskQuery
from synapse_tui.store.batch import Mark

from .book import MIN_PREFIX, TaskBook

PATIENCE = 5.0
"""Seconds in which the tasks of earlier sessions are read that still go on."""


class TaskFinder:
    """The tasks of one agent for those outside: all that its history knows.

    Args:
        book: The tasks in memory.
    """

    def __init__(self, book: TaskBook) -> None:
        self._book = book

    async def find(self, task_id: str) -> Task:
        """The task of that id or unique prefix of at least 8 characters.

        Raises:
            TaskNotFound: There is none.
        """
        try:
            return self._book.get(task_id)
        except TaskNotFound as error:
            return await self._look_up(task_id.lower(), error)

    async def _look_up(self, task_id: str, unknown: TaskNotFound) -> Task:
        """The task of an id that is not in memory."""
        if len(task_id) < MIN_PREFIX:
            raise unknown
        try:
            found = await self._book.journal.find(task_id)
        except HistoryError as error:
            raise unknown from error
        if len(found) > 1:
            raise TaskNotFound(f"'{task_id}' begins several tasks", "give more characters of the id")
        if not found:
            raise unknown
        if not found[0].state.final:  # it goes on, or will in a moment
            await self._book.journal.restored(PATIENCE)
        return self._book.get(found[0].id) if found[0].id in self._book else found[0]

    async def page(self, query: TaskQuery) -> TaskPage:
        """The tasks that a query means, the newest change first.

        Messages that go on with a task, and tasks that this agent has given to others, are not among them.

        Raises:
            InvalidValue: Its cursor is none.
        """
        after = read_cursor(query.cursor)
        try:
            found = await self._book.journal.page(query, after)
        except HistoryError:
            return page_of(self._book, query)
        cursor = make_cursor(mark_of(found.tasks[-1])) if found.more else ""
        return TaskPage(found.tasks, cursor, found.total)


def page_of(tasks: Iterable[Task], query: TaskQuery) -> TaskPage:
    """The page of some tasks that a query means.

    Raises:
        InvalidValue: Its cursor is none.
    """
    after = read_cursor(query.cursor)
    meant = sorted((task for task in tasks if _is_meant(task, query)), key=mark_of, reverse=True)
    left = [task for task in meant if after is None or mark_of(task) < after]
    shown = left[: query.limit]
    cursor = make_cursor(mark_of(shown[-1])) if len(left) > len(shown) and shown else ""
    return TaskPage(tuple(shown), cursor, len(meant))


def _is_meant(task: Task, query: TaskQuery) -> bool:
    return (
        not task.outgoing
        and not task.follows
        and query.context_id in ("", task.context_id)
        and (not query.states or task.state in query.states)
        and query.caller in (None, task.caller)
        and (query.changed_after is None or task.updated_at >= query.changed_after)
    )


def mark_of(task: Task) -> Mark:
    """The place of a task in the order of pages."""
    return task.updated_at, task.id


def make_cursor(mark: Mark) -> str:
    """The cursor of the page after a task."""
    content = json.dumps([mark[0].astimezone(UTC).isoformat(), mark[1]])
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> Mark | None:
    """The last task of the page before; None for the first page.

    Raises:
        InvalidValue: That is no cursor of ours.
    """
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        time, task_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        moment = datetime.fromisoformat(time)
        if moment.tzinfo is None or not isinstance(task_id, str):
            raise ValueError(cursor)
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidValue(
            f"'{cursor[:40]}' is no cursor of a page", "use the one of the page before"
        ) from error
    return moment, task_id
