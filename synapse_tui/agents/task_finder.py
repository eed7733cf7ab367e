"""Finds the tasks of one agent, also those that are in memory no more, page by page."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from synapse_tui.errors import InvalidValue
from synapse_tui.model import Task, TaskPage, TaskQuery

from .tasks import TaskBook

Mark = tuple[datetime, str]
"""The last task of a page: when it last changed, and its id."""


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
        return self._book.get(task_id)

    async def page(self, query: TaskQuery) -> TaskPage:
        """The tasks that a query means, the newest change first.

        Messages that go on with a task, and tasks that this agent has given to others, are not among them.

        Raises:
            InvalidValue: Its cursor is none.
        """
        return page_of(self._book, query)


def page_of(tasks: Iterable[Task], query: TaskQuery) -> TaskPage:
    """The page of some tasks that a query means.

    Raises:
        InvalidValue: Its cursor is none.
    """
    after = read_cursor(query.cursor)
    meant = sorted((task for task in tasks if _is_meant(task, query)), key=_mark, reverse=True)
    left = [task for task in meant if after is None or _mark(task) < after]
    shown = left[: query.limit]
    cursor = make_cursor(_mark(shown[-1])) if len(left) > len(shown) and shown else ""
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


def _mark(task: Task) -> Mark:
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
