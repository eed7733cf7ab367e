"""Talks to an external agent from this process, when no host of the project is running."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NoReturn
from uuid import uuid4

from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.external.conversation import Conversation, remote_id
from synapse_tui.a2a.external.journal import Journal, Saved
from synapse_tui.a2a.external.registry import ExternalAgent, ExternalStore
from synapse_tui.a2a.external.worker import RemoteWorker
from synapse_tui.model import USER, Task, TaskState
from synapse_tui.paths import find_project
from synapse_tui.process_times import process_name

from .caller import Caller
from .output import note
from .sending import peer_task

TooLate = Callable[..., NoReturn]


def talk(
    caller: Caller, agent: ExternalAgent, text: str, timeout: float | None, *, too_late: TooLate
) -> PeerTask:
    """Send a message and wait for its answer.

    `timeout` is in seconds; None returns as soon as the agent has accepted the message. `too_late` is called
    at the timeout and raises.
    """
    return asyncio.run(_Talk(caller, agent).run(text, timeout, too_late))


class _Talk:
    def __init__(self, caller: Caller, agent: ExternalAgent) -> None:
        self._agent = agent
        self._store = ExternalStore(caller.paths.external)
        self._journal = Journal(caller.paths.talks, find_project(caller.folder), process_name(os.getpid()))
        self._conversation = Conversation(
            agent.alias, make_id=lambda: str(uuid4()), now=lambda: datetime.now(UTC), agent=agent.identity
        )
        self._changed = asyncio.Event()
        self._reported = ""

    async def run(self, text: str, timeout: float | None, too_late: TooLate) -> PeerTask:  # noqa: ASYNC109
        conversation = self._conversation
        saved = self._journal.load(self._agent.alias)
        if saved.agent != self._agent.identity:  # the conversation with another agent under the same alias
            self._journal.forget(self._agent.alias)
            saved = Saved()
        self._journal.restore(conversation, saved)
        conversation.opened = True
        task = conversation.send(text, USER, expected=True)
        worker = RemoteWorker(lambda: os.environ, self._journal.files, self._heard)
        worker.send(self._agent, conversation, task, text, str(uuid4()))
        self._heard(conversation, task)
        try:
            async with asyncio.timeout(timeout):
                await self._until_done(task.id, wanted=timeout is not None)
        except TimeoutError:
            too_late(self._agent.alias, peer_task(conversation.get(task.id)), timeout, agent_waits=False)
        finally:
            await worker.stop()
            self._write()
        newest = conversation.get(task.id)
        if newest.state is not TaskState.FAILED:
            self._store.touch(self._agent.alias, datetime.now(UTC).isoformat(timespec="seconds"))
        return peer_task(newest)

    async def _until_done(self, task_id: str, *, wanted: bool) -> None:
        while True:
            task = self._conversation.get(task_id)
            if _at_rest(task) or (remote_id(task) and not wanted):
                return
            self._changed.clear()
            await self._changed.wait()

    def _heard(self, _conversation: Conversation, task: Task) -> None:
        self._changed.set()
        status = peer_task(task).status
        if status != self._reported and not _at_rest(task):
            self._reported = status
            note(f"{self._agent.alias}: {status} (task {task.short_id})")
            self._write()

    def _write(self) -> None:
        self._journal.write(self._agent.alias, self._journal.unwritten(self._conversation))


def _at_rest(task: Task) -> bool:
    return task.state.final or task.state is TaskState.INPUT_REQUIRED
