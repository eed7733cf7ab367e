"""Keeps the saved workspace like the running one, never holding up the loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from synapse_tui.events import (
    AgentAdded,
    AgentInstructed,
    AgentRemoved,
    AgentRenamed,
    Event,
    EventBus,
    Notice,
)
from synapse_tui.model import AgentSpec
from synapse_tui.terminal import Terminal, capture_history

from .saved import SavedAgent, SavedView, SavedWorkspace, boot_id
from .store import WorkspaceStore

log = logging.getLogger(__name__)

DEBOUNCE = 1.0
"""Seconds between a change and its saving, so that several are saved at once."""
SCROLLBACK_INTERVAL = 60.0
"""Seconds between two looks for terminals whose lines are to be saved again."""


class Agent(Protocol):
    """What is saved of an agent."""

    @property
    def agent_id(self) -> str:
        """`synapse-{type}-{port}`."""

    @property
    def agent_type(self) -> str:
        """Name of its profile."""

    @property
    def name(self) -> str:
        """Its name; empty for none."""

    @property
    def port(self) -> int:
        """Port that it is served on."""

    @property
    def cwd(self) -> Path:
        """Its working folder."""

    @property
    def spec(self) -> AgentSpec:
        """What was asked for."""

    @property
    def told_as(self) -> str:
        """Agent id under which its conversation got its instructions; empty for not yet."""

    @property
    def began(self) -> float:
        """When its conversation began, in seconds since the epoch."""

    @property
    def terminal(self) -> Terminal:
        """Its screen; another object after a restart."""


class Agents(Protocol):
    """The host, as far as it is looked at."""

    @property
    def project(self) -> Path:
        """Folder of the project."""

    @property
    def events(self) -> EventBus:
        """Tells what happens to the agents."""

    @property
    def agents(self) -> Mapping[str, Agent]:
        """Agents by id, in the order of opening."""


class WorkspaceKeeper:
    """Saves the workspace soon after each change, and the lines of the terminals now and then.

    Args:
        host: Whose agents are saved.
        store: Where.
        view: Gives what the application shows.
        session: Name of the session.
        scrollback: Whether the lines of the terminals are kept; if not, those kept earlier are removed.
        debounce: Seconds between a change and its saving.
        interval: Seconds between two looks for terminals that have changed.
        clock: The time now, aware.

    Attributes:
        lost: Gives agents of before that a person is still asked about: they stay saved, with their lines.
    """

    def __init__(
        self,
        host: Agents,
        store: WorkspaceStore,
        view: Callable[[], SavedView],
        *,
        session: str = "",
        scrollback: bool = True,
        debounce: float = DEBOUNCE,
        interval: float = SCROLLBACK_INTERVAL,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._host = host
        self._store = store
        self._view = view
        self._session = session
        self._scrollback = scrollback
        self._debounce = debounce
        self._interval = interval
        self.lost: Callable[[], Sequence[SavedAgent]] = tuple
        self._arranged: object = None
        """What of the view was saved last."""
        self._clock = clock
        self._boot_id = ""
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._seen: dict[str, tuple[Terminal, int]] = {}
        """Terminal and tick of it that were saved last."""
        self._failed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Save from now on; called in the running loop."""
        self._unsubscribe = self._host.events.subscribe(self._on_event)
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._save_changes(), name="workspace"),
            loop.create_task(self._save_lines_now_and_then(), name="workspace-scrollback"),
            loop.create_task(self._watch_view(), name="workspace-view"),
        ]
        self.touch()

    def touch(self) -> None:
        """What the application shows has changed: it is saved soon."""
        self._changed.set()

    async def stop(self, *, clean: bool) -> None:
        """Save for the last time; called while the agents are still there.

        Args:
            clean: Whether a person ends the agents, so that there is nothing to be offered at the next start.
        """
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self.save(clean=clean)
        await self.save_lines()

    async def save(self, *, clean: bool = False) -> None:
        """Save the workspace now; a failure is told once."""
        self._arranged = self._arrangement()
        workspace = self._workspace(clean=clean)
        await self._write(lambda: self._store.save(workspace))

    def keep_lines(self, keep: bool) -> None:
        """Keep the lines of the terminals from now on, or remove those that are kept at the next look."""
        self._scrollback = keep

    async def save_lines(self) -> None:
        """Save the lines of every terminal that has changed since, one after the other."""
        if not self._scrollback:
            if self._seen:  # some were kept until a moment ago
                self._seen.clear()
                await self._write(self._store.forget_scrollbacks)
            return
        lost = {agent.agent_id for agent in self.lost()}
        agents = {agent_id: agent for agent_id, agent in self._host.agents.items() if agent_id not in lost}
        self._seen = {agent_id: seen for agent_id, seen in self._seen.items() if agent_id in agents}
        for agent_id, agent in agents.items():
            terminal = agent.terminal
            seen = (terminal, terminal.screen.tick)
            if self._seen.get(agent_id) == seen:
                continue
            history = capture_history(terminal)
            await self._write(lambda: self._store.save_scrollback(agent_id, history.render()))  # noqa: B023
            self._seen[agent_id] = seen

    def _on_event(self, event: Event) -> None:
        if isinstance(event, AgentAdded | AgentRemoved | AgentRenamed | AgentInstructed):
            self.touch()

    async def _save_changes(self) -> None:
        self._boot_id = await asyncio.to_thread(boot_id)
        if not self._scrollback:
            await self._write(self._store.forget_scrollbacks)
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._debounce)
            self._changed.clear()
            await self.save()

    async def _save_lines_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.save_lines()

    async def _watch_view(self) -> None:
        while True:
            await asyncio.sleep(2 * self._debounce)  # nobody tells what a person arranges
            if self._arrangement() != self._arranged:
                self.touch()

    def _arrangement(self) -> object:
        return self._view(), tuple(self.lost())

    async def _write(self, write: Callable[[], None]) -> None:
        """Write in a thread, one thing at a time; what was begun is finished also when the caller ends."""
        async with self._writing:
            task = asyncio.ensure_future(asyncio.to_thread(write))
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                with contextlib.suppress(OSError):
                    await task
                raise
            except OSError as error:
                self._tell(error)
            else:
                self._failed = False

    def _tell(self, error: OSError) -> None:
        log.warning("workspace cannot be saved", extra={"error": str(error)})
        if not self._failed:
            text = f"the workspace cannot be saved in {self._store.path}: {error.strerror or error}"
            self._host.events.publish(Notice(text, "warning"))
        self._failed = True

    def _workspace(self, *, clean: bool) -> SavedWorkspace:
        agents = tuple(
            SavedAgent(
                profile=agent.agent_type,
                agent_id=agent.agent_id,
                port=agent.port,
                cwd=str(agent.cwd),
                name=agent.name,
                args=agent.spec.args,
                order=order,
                told_as=agent.told_as,
                began=agent.began,
            )
            for order, agent in enumerate(self._host.agents.values())
        )
        lost = tuple(self.lost())
        ids = {agent.agent_id for agent in lost}
        agents = (*lost, *(agent for agent in agents if agent.agent_id not in ids))
        return SavedWorkspace(
            project=str(self._host.project),
            session=self._session,
            saved_at=self._clock(),
            clean=clean or not agents,
            boot_id=self._boot_id,
            pid=os.getpid(),
            agents=agents,
            view=self._view(),
        )
