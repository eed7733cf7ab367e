"""Talks to an external agent from this process, when no host of the project is running."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.external.conversation import Conversation, remote_id
from synapse_tui.a2a.external.registry import ExternalAgent, ExternalStore
from synapse_tui.a2a.external.store import ConversationStore
from synapse_tui.a2a.external.worker import RemoteWorker
from synapse_tui.messages.history import History
from synapse_tui.model import USER, Task, TaskState
from synapse_tui.paths import find_project
from synapse_tui.process_times import is_alive, process_name

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


def forget(caller: Caller, alias: str) -> None:
    """Delete the conversation of this project with an agent that was removed."""

    async def run() -> None:
        async with _opened(caller, find_project(caller.folder)) as store:
            await store.forget(alias)

    asyncio.run(run())


def import_conversations(caller: Caller, project: Path) -> None:
    """Read what earlier versions stored in files."""

    async def run() -> None:
        async with _opened(caller, project) as store:
            await store.load(claim=False)

    asyncio.run(run())


@contextlib.asynccontextmanager
async def _opened(caller: Caller, project: Path) -> AsyncIterator[ConversationStore]:
    history = History(caller.paths.history, owner=process_name(os.getpid()), alive=is_alive)
    try:
        yield ConversationStore(history, project, caller.paths.talks)
    finally:
        await history.close()


class _Talk:
    def __init__(self, caller: Caller, agent: ExternalAgent) -> None:
        self._caller = caller
        self._agent = agent
        self._conversation = Conversation(
            agent.alias, make_id=lambda: str(uuid4()), now=lambda: datetime.now(UTC), agent=agent.identity
        )
        self._changed = asyncio.Event()
        self._reported = ""

    async def run(self, text: str, timeout: float | None, too_late: TooLate) -> PeerTask:  # noqa: ASYNC109
        async with _opened(self._caller, find_project(self._caller.folder)) as store:
            return await self._exchange(store, text, timeout, too_late)

    async def _exchange(
        self,
        store: ConversationStore,
        text: str,
        timeout: float | None,  # noqa: ASYNC109
        too_late: TooLate,
    ) -> PeerTask:
        conversation = self._conversation
        for saved in await store.load(claim=False):
            if saved.alias == self._agent.alias and saved.agent == self._agent.identity:
                conversation.restore(saved)
            elif saved.alias == self._agent.alias:  # with another agent under the same alias
                await store.forget(saved.alias)
        conversation.opened = True
        task = conversation.send(text, USER, expected=True)
        self._report(task)
        store.note(conversation)
        await store.commit()

        def heard(_conversation: Conversation, newest: Task) -> None:
            self._changed.set()
            if self._report(newest):
                store.note(conversation)

        worker = RemoteWorker(lambda: os.environ, store.files, heard)
        worker.send(self._agent, conversation, task, text, str(uuid4()))
        try:
            async with asyncio.timeout(timeout):
                await self._until_done(task.id, wanted=timeout is not None)
        except TimeoutError:
            too_late(self._agent.alias, peer_task(conversation.get(task.id)), timeout, agent_waits=False)
        finally:
            await worker.stop()
            store.note(conversation)
        newest = conversation.get(task.id)
        if newest.state is not TaskState.FAILED:
            agents = ExternalStore(self._caller.paths.external)
            agents.touch(self._agent.alias, datetime.now(UTC).isoformat(timespec="seconds"))
        return peer_task(newest)

    async def _until_done(self, task_id: str, *, wanted: bool) -> None:
        while True:
            task = self._conversation.get(task_id)
            if _at_rest(task) or (remote_id(task) and not wanted):
                return
            self._changed.clear()
            await self._changed.wait()

    def _report(self, task: Task) -> bool:
        """Print a new state; returns whether there is one."""
        status = peer_task(task).status
        if status == self._reported or _at_rest(task):
            return False
        self._reported = status
        note(f"{self._agent.alias}: {status} (task {task.short_id})")
        return True


def _at_rest(task: Task) -> bool:
    return task.state.final or task.state is TaskState.INPUT_REQUIRED
