"""Hosts on a home folder and ports of their own, with agents that are ready."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from synapse_tui.agents.profiles.finding import ProfileSet, load_profiles
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.host.following import ProfileFiles
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from tests.ports import free_ports
from tests.profiles import shipped
from tests.waiting import until


def make_host(tmp_path: Path, project: str = "project") -> Host:
    folder = tmp_path / project
    folder.mkdir(exist_ok=True)
    paths = UserPaths(tmp_path / "home")
    settings = load_settings(folder, paths=paths, environ={}, trusted=lambda *_: False)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(paths.home), "LANG": "C.UTF-8"}
    return Host(
        folder,
        profiles=profiles_with_free_ports(),
        settings=settings,
        paths=paths,
        environ=environ,
        profile_files=ProfileFiles([paths.profiles], lambda last: _with_own(last, paths)),
    )


def _with_own(last: ProfileSet, paths: UserPaths) -> ProfileSet:
    own = load_profiles(paths.home / "none", paths.profiles, last=last)
    return dataclasses.replace(own, profiles={**last.profiles, **own.profiles})


def profiles_with_free_ports() -> ProfileSet:
    """The shipped profiles; the built-in agent has ports that other programs on this machine do not use."""
    found = shipped()
    first = free_ports(21)
    dummy = dataclasses.replace(found.profiles["dummy"], ports=(first, first + 20))
    return dataclasses.replace(found, profiles={**found.profiles, "dummy": dummy})


@asynccontextmanager
async def running(host: Host) -> AsyncIterator[Host]:
    await host.start()
    host.load_servers()
    try:
        yield host
    finally:
        await host.stop()


async def open_ready(host: Host, *names: str) -> list[AgentSession]:
    agents = [await host.open(AgentSpec("dummy", name), columns=80, lines=24) for name in names]
    await until(lambda: all(agent.report.state is AgentState.READY for agent in agents))
    return agents


async def open_published(host: Host, *names: str) -> list[AgentSession]:
    agents = await open_ready(host, *names)
    for agent in agents:
        await host.published(agent.agent_id)
    return agents


def records(host: Host) -> dict[str, dict[str, object]]:
    folder = host.paths.registry
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("synapse-*.json")}
