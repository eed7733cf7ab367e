"""The tasks of an agent for those who look at it."""

from __future__ import annotations

from synapse_tui.model import Task, TaskPage, TaskQuery

from .book import TaskBook
from .finder import TaskFinder


class TaskAccess:
    """Reads the tasks of an agent.

    Args:
        tasks: Those in memory.
        finder: Finds the others too.
    """

    def __init__(self, tasks: TaskBook, finder: TaskFinder) -> None:
        self.tasks = tasks
        self._finder = finder

    def task(self, task_id: str) -> Task:
        """The task of that id or unique prefix of at least 8 characters, in memory.

        Raises:
            TaskNotFound: There is none.
        """
        return self.tasks.get(task_id)

    def list_tasks(self) -> list[Task]:
        """The tasks that are still known, oldest first."""
        return list(self.tasks)

    async def find_task(self, task_id: str) -> Task:
        """The task of that id or unique prefix, also one that is in the history only.

        Raises:
            TaskNotFound: There is none.
        """
        return await self._finder.find(task_id)

    async def page(self, query: TaskQuery) -> TaskPage:
        """The tasks that a query means, also those that are in the history only; the newest change first.

        Raises:
            InvalidValue: Its cursor is none.
        """
        return await self._finder.page(query)
