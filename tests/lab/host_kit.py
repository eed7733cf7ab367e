"""Real agents side by side in one host, offline, and what their fake model logged of them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths, shipped_profiles
from tests.lab.lab_kit import ModelLog


def need_agents(*kinds: str) -> None:
    for kind in kinds:
        if shutil.which(kind) is None:
            pytest.skip(f"{kind} is not installed in the lab")


@asynccontextmanager
async def open_host(variables: Mapping[str, str] = MappingProxyType({})) -> AsyncIterator[Host]:
    """A host of the current folder, served; ended with the block."""
    paths = UserPaths.of_environment()
    environ = {**os.environ, **variables}
    host = Host(
        Path.cwd(),
        profiles=load_profiles(shipped_profiles()),
        settings=load_settings(Path.cwd(), paths=paths, environ=environ, trusted=lambda *_: False),
        paths=paths,
        environ=environ,
    )
    await host.start()
    host.load_servers()
    try:
        yield host
    finally:
        await host.stop()


def asking(host: Host, kind: str) -> AgentSpec:
    """An agent that asks before it runs a command, whatever its version does by default."""
    return AgentSpec(kind, args=host.profiles.find(kind).doctor.args)


class SideBySide:
    """Agents of one host.

    Args:
        host: Their host.
        sessions: The agents.
        patience: Seconds to wait for anything.
    """

    def __init__(self, host: Host, *sessions: AgentSession, patience: float) -> None:
        self.host = host
        self.model = ModelLog()
        self._sessions = sessions
        self._patience = patience

    async def until(self, condition: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(self._patience):
                while not condition():  # noqa: ASYNC110 - a log has no event
                    await asyncio.sleep(0.1)
        except TimeoutError:
            screens = "\n".join(
                "\n".join([str(each.report), *each.terminal.display]) for each in self._sessions
            )
            raise AssertionError(f"waited {self._patience:g} s for {what}\n{screens}") from None

    async def rest(self) -> None:
        await self.until(
            lambda: all(
                each.report.state is AgentState.READY and all(task.state.final for task in list(each.tasks))
                for each in self._sessions
            ),
            "all at rest",
        )

    def tool_results(self, mark: str) -> list[str]:
        """What commands printed, as the model was told in the request after them."""
        return [
            str(entry["tool_result"])
            for entry in self.model.entries()
            if mark in str(entry.get("tool_result") or "")
        ]
