"""Saves the workspace of a session as it changes, and restores it after a crash or a reboot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from synapse_tui.agents.console import Past
from synapse_tui.agents.session import AgentSession, resumed_spec, saved_agent
from synapse_tui.core.errors import SynapseError
from synapse_tui.core.events import AgentAdded, AgentInstructed, AgentRemoved, AgentRenamed, Notice
from synapse_tui.core.model import AgentSpec
from synapse_tui.host.host import Host
from synapse_tui.system.paths import tilde
from synapse_tui.terminal import Terminal, capture_history
from synapse_tui.ui.screens.questions import NotStarted, RestoreOffer
from synapse_tui.widgets.fit import shorten
from synapse_tui.widgets.text import one_line
from synapse_tui.workspace import SavedAgent, SavedView, SavedWorkspace, WorkspaceStore, boot_id

log = logging.getLogger(__name__)

DEBOUNCE = 1.0
"""Seconds between a change and saving it; changes in between are saved together."""
SCROLLBACK_INTERVAL = 60.0
"""Seconds between checks for terminals whose scrollback has changed."""
COMMAND_WIDTH = 120
"""Cells of a command line that a question shows."""


class WorkspaceSaver:
    """Saves the workspace shortly after each change, and the scrollback of the terminals periodically.

    Args:
        scrollback: Whether scrollback is saved; if not, saved scrollback is removed.
        debounce: Seconds between a change and saving it.
        interval: Seconds between checks for terminals that have changed.
        clock: Returns the current time, timezone-aware.

    Attributes:
        lost: Returns the agents of a lost workspace that is still being offered; they and their scrollback
            stay saved.
    """

    def __init__(
        self,
        host: Host,
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
        self._clock = clock
        self._boot_id = ""
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self._seen: dict[str, tuple[Terminal, int]] = {}
        """Each agent's terminal and its tick when its scrollback was saved last."""
        self._failed = False
        self._tasks: list[asyncio.Task[None]] = []
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start saving; must be called in the running loop."""
        self._unsubscribe = self._host.events.subscribe(
            lambda _event: self.touch(), AgentAdded, AgentRemoved, AgentRenamed, AgentInstructed
        )
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._save_changes(), name="workspace"),
            loop.create_task(self._save_lines_now_and_then(), name="workspace-scrollback"),
            loop.create_task(self._watch_view(), name="workspace-view"),
        ]
        self.touch()

    def touch(self) -> None:
        """Schedule a save after the view has changed."""
        self._changed.set()

    async def stop(self, *, clean: bool) -> None:
        """Save for the last time, while the agents still exist.

        `clean` means that a person ends the agents, so that nothing is offered at the next start.
        """
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self.save(clean=clean)
        await self.save_lines()

    async def save(self, *, clean: bool = False) -> None:
        """Save the workspace now; a recurring failure is reported once."""
        self._arranged = self._arrangement()
        workspace = self._workspace(clean=clean)
        await self._write(lambda: self._store.save(workspace))

    def keep_lines(self, keep: bool) -> None:
        self._scrollback = keep

    async def save_lines(self) -> None:
        if not self._scrollback:
            if self._seen:  # scrollback was saved until now
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
            await asyncio.sleep(2 * self._debounce)  # changes of the view raise no event
            if self._arrangement() != self._arranged:
                self.touch()

    def _arrangement(self) -> object:
        allowed = [agent_id for agent_id, agent in self._host.agents.items() if agent.allowed]
        return self._view(), tuple(self.lost()), allowed

    async def _write(self, write: Callable[[], None]) -> None:
        async with self._writing:
            task = asyncio.ensure_future(asyncio.to_thread(write))
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                with contextlib.suppress(OSError):
                    await task
                raise
            except OSError as error:
                log.warning("workspace cannot be saved", extra={"error": str(error)})
                if not self._failed:
                    text = f"the workspace cannot be saved in {self._store.path}: {error.strerror or error}"
                    self._host.events.publish(Notice(text, "warning"))
                self._failed = True
            else:
                self._failed = False

    def _workspace(self, *, clean: bool) -> SavedWorkspace:
        agents = tuple(saved_agent(agent, order) for order, agent in enumerate(self._host.agents.values()))
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


class LostWorkspace:
    """A workspace that was not closed by a person.

    Attributes:
        ask: Whether the person is asked first.
        pending: The agents until the person has decided; if the host ends first, they are offered again.
        decided: Set when the agents are open again or were declined.
    """

    def __init__(
        self,
        host: Host,
        store: WorkspaceStore,
        saved: SavedWorkspace,
        arrange: Callable[[Mapping[str, object]], None],
        *,
        ask: bool,
    ) -> None:
        self.ask = ask
        self.pending = saved.agents
        self.decided = asyncio.Event()
        self._host = host
        self._store = store
        self._saved = saved
        self._arrange = arrange
        self._pasts: dict[str, bytes] = {}
        self._opened: list[SavedAgent] = []
        host.reserve([agent.port for agent in saved.agents])
        host.history.before_report = self.decided.wait  # the question counts the waiting messages

    @property
    def view(self) -> SavedView:
        return self._saved.view

    async def load(self) -> None:
        """Read the saved scrollback before new agents overwrite the files."""
        for agent in self._saved.agents:
            self._pasts[agent.agent_id] = await asyncio.to_thread(self._store.load_scrollback, agent.agent_id)

    def offer(self) -> RestoreOffer:
        agents = tuple(_words(agent) for agent in self._saved.agents)
        saved = self._saved
        return RestoreOffer(
            agents,
            saved.saved_at,
            self.ask,
            saved.view.state,
            self.open,
            self._forget,
            self._count_waiting,
            self._missing,
        )

    def _missing(self, specs: Sequence[AgentSpec]) -> list[AgentSpec]:
        left, missing = list(self._opened), []
        for spec in specs:
            same = next((agent for agent in left if self._is_same(spec, agent)), None)
            if same is None:
                missing.append(spec)
            else:
                left.remove(same)
        return missing

    def _is_same(self, spec: AgentSpec, agent: SavedAgent) -> bool:
        return (
            spec.profile == agent.profile
            and spec.name.casefold() == agent.name.casefold()
            and spec.command == agent.command
            and spec.args in ((), agent.args)
            and not spec.prompt
            and spec.port in (0, agent.port)
            and (spec.cwd or self._host.folder) == Path(agent.cwd)
        )

    async def _count_waiting(self) -> int:
        unfinished = await self._host.history.unfinished()
        saved = self._saved.agents
        return sum(
            count
            for recipient, count in unfinished.items()
            if any(recipient.is_meant(agent.agent_id, agent.name) for agent in saved)
        )

    async def open(self, sizes: Sequence[tuple[int, int]]) -> Sequence[NotStarted]:
        """Open the agents again and restore their layout; return those that failed.

        `sizes` are the columns and lines of each agent.
        """
        failed = []
        agents = sorted(self._saved.agents, key=lambda each: each.order)
        for agent, (columns, lines) in zip(agents, sizes, strict=False):
            again = partial(self._open, agent, self._pasts.get(agent.agent_id, b""))
            try:
                await again(columns, lines)
                self._opened.append(agent)
            except SynapseError as error:
                failed.append(NotStarted(_spec(agent), error, again))
        self._forget()
        self._arrange(self._saved.view.state)
        return failed

    def _forget(self) -> None:
        self.pending = ()
        self._pasts.clear()
        self._host.reserve(())
        self.decided.set()

    async def _open(self, agent: SavedAgent, history: bytes, columns: int, lines: int) -> AgentSession:
        profile = self._host.profile_of(agent.profile, agent.command, fixed=True)
        return await self._host.open(
            resumed_spec(agent, profile),
            columns=columns,
            lines=lines,
            before=Past(history, self._saved.saved_at) if history else None,
        )


def _spec(agent: SavedAgent) -> AgentSpec:
    return AgentSpec(agent.profile, agent.name, Path(agent.cwd), agent.args, command=agent.command)


def _words(agent: SavedAgent) -> str:
    name = f" '{agent.name}'" if agent.name else ""
    command = shorten(one_line(shlex.join((*agent.command, *agent.args))), COMMAND_WIDTH, "middle")
    return f"{agent.profile}{name}  {tilde(agent.cwd)}" + (f": {command}" if agent.command else "")


async def find_lost(
    host: Host, store: WorkspaceStore, arrange: Callable[[Mapping[str, object]], None]
) -> LostWorkspace | None:
    """Return the last workspace, unless a person ended it."""
    how = host.settings.text("tui.restore")
    saved = await asyncio.to_thread(store.load)
    if store.problem:
        host.events.publish(Notice(store.problem, "warning"))
    if saved is None or saved.clean or not saved.agents or how == "never":
        return None
    lost = LostWorkspace(host, store, saved, arrange, ask=how == "ask")
    await lost.load()
    return lost
