"""The workspace of before: offered when a crash or a reboot ended it, and opened again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from synapse_tui.agents.console import Past
from synapse_tui.agents.session import resumed_spec
from synapse_tui.errors import SynapseError
from synapse_tui.events import Notice
from synapse_tui.host import Host
from synapse_tui.model import AgentSpec
from synapse_tui.screens.session import RestoreOffer
from synapse_tui.workspace import SavedAgent, SavedView, SavedWorkspace, WorkspaceStore

log = logging.getLogger(__name__)


class LostWorkspace:
    """A workspace that was not closed by a person.

    Args:
        host: Opens its agents.
        store: Where the lines of their terminals are.
        saved: What was open.
        arrange: Arranges the panes as they were, when all is open.
        ask: Whether the person is asked first.

    Attributes:
        ask: Whether the person is asked first.
        pending: The agents, until the person has decided: when the host ends before, they are offered again.
        decided: Set when they are open again, or not wanted.
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

    @property
    def view(self) -> SavedView:
        return self._saved.view

    async def load(self) -> None:
        """Read the lines of before: the files are replaced as soon as new agents run."""
        for agent in self._saved.agents:
            self._pasts[agent.agent_id] = await asyncio.to_thread(self._store.load_scrollback, agent.agent_id)

    def offer(self) -> RestoreOffer:
        agents = [_words(agent) for agent in self._saved.agents]
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
            for whom, count in unfinished.items()
            if any(whom.is_meant(agent.agent_id, agent.name) for agent in saved)
        )

    async def open(self, sizes: Sequence[tuple[int, int]]) -> Sequence[str]:
        """Open the agents again and arrange them.

        Args:
            sizes: Columns and lines of each.

        Returns:
            What could not be opened, and why.
        """
        problems = []
        agents = sorted(self._saved.agents, key=lambda each: each.order)
        for agent, (columns, lines) in zip(agents, sizes, strict=False):
            try:
                await self._open(agent, columns, lines)
                self._opened.append(agent)
            except SynapseError as error:
                problems.append(f"{_words(agent)}: {error}")
        self._forget()
        self._arrange(self._saved.view.state)
        return problems

    def _forget(self) -> None:
        self.pending = ()
        self._pasts.clear()
        self._host.reserve(())
        self.decided.set()

    async def _open(self, agent: SavedAgent, columns: int, lines: int) -> None:
        profile = self._host.profiles.find(agent.profile)
        history = self._pasts.get(agent.agent_id, b"")
        await self._host.open(
            resumed_spec(agent, profile),
            columns=columns,
            lines=lines,
            before=Past(history, self._saved.saved_at) if history else None,
        )


def _words(agent: SavedAgent) -> str:
    name = f" '{agent.name}'" if agent.name else ""
    return f"{agent.profile}{name} in {agent.cwd}"


async def find_lost(
    host: Host, store: WorkspaceStore, arrange: Callable[[Mapping[str, object]], None]
) -> LostWorkspace | None:
    """The workspace to offer, if the last host of the session did not end as a person wanted.

    Args:
        host: Opens its agents.
        store: Where workspaces are kept.
        arrange: Arranges the panes.
    """
    how = host.settings.text("tui.restore")
    saved = await asyncio.to_thread(store.load)
    if store.problem:
        host.events.publish(Notice(store.problem, "warning"))
    if saved is None or saved.clean or not saved.agents or how == "never":
        return None
    lost = LostWorkspace(host, store, saved, arrange, ask=how == "ask")
    await lost.load()
    return lost
