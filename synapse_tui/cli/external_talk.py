"""Talks to an external agent from this process, when no host of the project is running."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.external.conversation import remote_id
from synapse_tui.a2a.external.hub import ExternalAgents
from synapse_tui.a2a.external.registry import ExternalAgent, ExternalStore
from synapse_tui.a2a.external.store import ConversationStore
from synapse_tui.core.errors import ConfigError
from synapse_tui.core.events import EventBus
from synapse_tui.core.model import USER, TaskState
from synapse_tui.core.wording import standing_words
from synapse_tui.messages.history import History
from synapse_tui.system.paths import find_project
from synapse_tui.system.process_times import is_alive, process_name

from .caller import Caller
from .output import note
from .sending import peer_task

LONG_WAIT = 60.0  # seconds of one wait for a change


def talk(caller: Caller, agent: ExternalAgent, text: str, timeout: float | None) -> PeerTask:
    """Send a message and wait for its answer; returns the task as it is at the timeout.

    `timeout` is in seconds; None returns as soon as the agent has accepted the message.
    """

    async def run() -> PeerTask:
        async with _history(caller) as history:
            externals = ExternalAgents(
                find_project(caller.folder),
                paths=caller.paths,
                history=history,
                events=EventBus(),
                agents={},
                environ=lambda: os.environ,
                types=tuple,
                make_id=lambda: str(uuid4()),
            )
            externals.resident = False
            try:
                return await _talk(externals, agent.alias, text, timeout)
            finally:
                await externals.stop()

    task = asyncio.run(run())
    if task.state.at_rest and task.state is not TaskState.FAILED:
        with contextlib.suppress(OSError, ConfigError):  # the answer counts, not when it came
            ExternalStore(caller.paths.external).touch(
                agent.alias, datetime.now(UTC).isoformat(timespec="seconds")
            )
    return task


async def _talk(externals: ExternalAgents, alias: str, text: str, timeout: float | None) -> PeerTask:  # noqa: ASYNC109
    task, reported = await externals.send(alias, text, sender=USER, expected=True), ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while not task.state.at_rest:
                if (status := peer_task(task).status) != reported:
                    reported = status
                    note(f"{alias}: {standing_words(status)} (task {task.short_id})")
                if timeout is None and remote_id(task):
                    break
                seen = task.updated_at.isoformat()
                task = await externals.wait(alias, task.id, seen=seen, seconds=LONG_WAIT)
    return peer_task(externals.task(alias, task.id))


def forget(caller: Caller, alias: str) -> None:
    """Delete the conversation of this project with an agent that was removed."""

    async def run() -> None:
        async with _history(caller) as history:
            store = ConversationStore(history, find_project(caller.folder), caller.paths.talks)
            await store.forget(alias)

    asyncio.run(run())


def import_conversations(caller: Caller, project: Path) -> None:
    """Read what earlier versions stored in files."""

    async def run() -> None:
        async with _history(caller) as history:
            await ConversationStore(history, project, caller.paths.talks).load(claim=False)

    asyncio.run(run())


@contextlib.asynccontextmanager
async def _history(caller: Caller) -> AsyncIterator[History]:
    history = History(caller.paths.history, owner=process_name(os.getpid()), alive=is_alive)
    try:
        yield history
    finally:
        await history.close()
