"""Instructions of one agent: which messages carry them, and whether the conversation has received them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from synapse_tui.agents.instructions import Composed
from synapse_tui.core.errors import MessageError
from synapse_tui.core.model import INSTRUCTIONS, SYSTEM, MessageRequest, Task
from synapse_tui.messages.outbox import BEING_TYPED, Outbox
from synapse_tui.messages.tasks import Purpose, TaskStore

GO_FIRST = "its instructions go first"
REPLACED = "newer instructions take its place"


class Briefing:
    def __init__(
        self,
        tasks: TaskStore,
        outbox: Outbox,
        *,
        accept: Callable[[MessageRequest], Task],
        wake: Callable[[], None],
        wanted: bool,
        told_as: str = "",
        began: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tasks = tasks
        self._outbox = outbox
        self._accept = accept
        self._wake = wake
        self.wanted = wanted
        self.told_as = told_as
        self._clock = clock
        self.began = began or clock()
        self.source: Callable[[], Awaitable[Composed]] = _nothing

    @property
    def waiting(self) -> list[Task]:
        return [task for task in self._outbox if task.instructs]

    @property
    def last(self) -> Task | None:
        return next(self._tasks.with_purpose(Purpose.INSTRUCTIONS), None)

    def carries(self, task_id: str) -> bool:
        """Whether a task carries instructions; False for unknown tasks."""
        return task_id in self._tasks and self._tasks.get(task_id).instructs

    def begin(self) -> None:
        self.told_as, self.began = "", self._clock()

    def expect(self) -> None:
        """Block all other messages until `put` or `dismiss`."""
        self._outbox.barrier = GO_FIRST

    def dismiss(self) -> None:
        self._outbox.barrier = ""
        self._wake()

    def put(self, composed: Composed) -> Task:
        if not composed.text:
            raise MessageError("there are no instructions to send", "see `synapse instructions show`")
        waiting = self.waiting
        about = {"kind": INSTRUCTIONS, "files": "\n".join(str(file.path) for file in composed.files)}
        task = self._accept(MessageRequest(composed.text, SYSTEM, metadata=about))
        for old in waiting:
            if self._tasks.get(old.id).delivery not in BEING_TYPED:
                self._outbox.cancel(old.id, REPLACED)
        self.dismiss()
        return task

    async def send(self) -> tuple[Task, Composed]:
        composed = await self.source()
        return self.put(composed), composed


async def _nothing() -> Composed:
    return Composed("")
