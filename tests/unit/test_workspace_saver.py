"""Saving the workspace while it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from blockbuster import blockbuster_ctx

from synapse_tui.core.events import AgentAdded, AgentBell, AgentRemoved, AgentRenamed, EventBus, Notice
from synapse_tui.core.model import AgentSpec
from synapse_tui.daemon.workspace import WorkspaceSaver
from synapse_tui.host.host import Host
from synapse_tui.terminal import Terminal
from synapse_tui.workspace import SavedView, SavedWorkspace, WorkspaceStore, boot_id
from tests.integration.session_rig import until

NOW = datetime(2026, 11, 21, 18, 3, tzinfo=UTC)


@dataclass
class FakeAgent:
    port: int
    name: str = ""
    agent_type: str = "claude"
    cwd: Path = Path("/work")
    spec: AgentSpec = field(default_factory=lambda: AgentSpec("claude", args=("--x",)))
    terminal: Terminal = field(default_factory=lambda: Terminal(40, 5))
    told_as: str = ""
    began: float = 0.0
    allowed: bool = False

    @property
    def agent_id(self) -> str:
        return f"synapse-claude-{self.port}"


class FakeHost:
    """Agents and a bus."""

    def __init__(self) -> None:
        self.project = Path("/work")
        self.events = EventBus()
        self.agents: dict[str, FakeAgent] = {}

    def open(self, port: int) -> FakeAgent:
        agent = FakeAgent(port)
        self.agents[agent.agent_id] = agent
        self.events.publish(AgentAdded(agent.agent_id))
        return agent

    def close(self, agent: FakeAgent) -> None:
        del self.agents[agent.agent_id]
        self.events.publish(AgentRemoved(agent.agent_id))


class CountingStore(WorkspaceStore):
    """Counts what is written."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "key")
        self.saves = 0
        self.scrollbacks: list[str] = []
        self.fails = False

    def save(self, workspace: SavedWorkspace) -> None:
        self.saves += 1
        if self.fails:
            raise OSError(28, "No space left on device")
        super().save(workspace)

    def save_scrollback(self, agent_id: str, data: bytes) -> None:
        self.scrollbacks.append(agent_id)
        super().save_scrollback(agent_id, data)


class Rig:
    """A saver with all that is around it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.host = FakeHost()
        self.store = CountingStore(folder)
        self.view: dict[str, object] = {"layout": "tabs"}
        self.saver = WorkspaceSaver(
            cast("Host", self.host),
            self.store,
            lambda: SavedView(1, dict(self.view)),
            session="main",
            **{"debounce": 0.02, "interval": 1000.0, "clock": lambda: NOW, **options},
        )

    async def saved(self, count: int) -> SavedWorkspace:
        def reached() -> SavedWorkspace | None:
            found = self.store.load()
            return found if found is not None and len(found.agents) == count else None

        found = await until(reached, f"{count} saved agents")
        assert isinstance(found, SavedWorkspace)
        return found


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    rig.saver.start()
    yield rig
    await rig.saver.stop(clean=False)


async def test_agents_are_saved_as_they_come_and_go(rig: Rig) -> None:
    first, second = rig.host.open(8100), rig.host.open(8101)
    found = await rig.saved(2)
    assert [(agent.agent_id, agent.port, agent.args, agent.order) for agent in found.agents] == [
        ("synapse-claude-8100", 8100, ("--x",), 0),
        ("synapse-claude-8101", 8101, ("--x",), 1),
    ]
    assert (found.project, found.session, found.clean, found.saved_at) == ("/work", "main", False, NOW)
    assert found.boot_id == boot_id()
    rig.host.close(first)
    assert [agent.agent_id for agent in (await rig.saved(1)).agents] == [second.agent_id]
    rig.host.close(second)
    assert (await rig.saved(0)).clean, "nothing is left that could be restored"


async def test_names_and_the_view_are_saved(rig: Rig) -> None:
    agent = rig.host.open(8100)
    await rig.saved(1)
    agent.name = "審査"
    rig.host.events.publish(AgentRenamed(agent.agent_id, agent.name))

    def name() -> str:
        found = rig.store.load()
        return found.agents[0].name if found is not None else ""

    await until(lambda: name() == "審査", "the name")
    rig.view["layout"] = "grid"

    def layout() -> object:
        found = rig.store.load()
        return found.view.state["layout"] if found is not None else ""

    await until(lambda: layout() == "grid", "the layout")


async def test_agents_that_are_still_asked_about_stay_saved_with_their_lines(rig: Rig) -> None:
    one = rig.host.open(8100)
    lost = (await rig.saved(1)).agents
    rig.store.save_scrollback(one.agent_id, b"lines of before")
    rig.host.close(one)
    rig.saver.lost = lambda: lost
    rig.host.open(8100)
    rig.host.open(8101)
    found = await rig.saved(2)
    assert found.agents[0] == lost[0]
    assert not found.clean
    rig.host.agents[one.agent_id].terminal.feed(b"other lines\r\n")
    await rig.saver.save_lines()
    assert rig.store.load_scrollback(one.agent_id) == b"lines of before"
    rig.host.agents.clear()
    rig.saver.lost = tuple
    assert (await rig.saved(0)).clean, "the person did not want them"


async def test_many_changes_are_saved_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, debounce=0.3)
    rig.saver.start()
    for port in range(8100, 8120):
        rig.host.open(port)
        await asyncio.sleep(0)
    await rig.saved(20)
    assert rig.store.saves == 1
    rig.host.events.publish(AgentBell("synapse-claude-8100"))
    await rig.saver.stop(clean=False)
    assert rig.store.saves == 2


@pytest.mark.parametrize("clean", [True, False])
async def test_the_end(rig: Rig, clean: bool) -> None:
    agent = rig.host.open(8100)
    agent.terminal.feed(b"last words")
    await rig.saver.stop(clean=clean)
    found = rig.store.load()
    assert found is not None
    assert (found.clean, len(found.agents)) == (clean, 1)
    assert rig.store.load_scrollback(agent.agent_id) == b"last words"
    rig.host.close(agent)
    assert rig.store.load() == found, "agents that end with the host stay saved"


async def test_lines_are_saved_only_where_they_changed(tmp_path: Path) -> None:
    rig = Rig(tmp_path, interval=0.05)
    rig.saver.start()
    quiet, busy = rig.host.open(8100), rig.host.open(8101)
    quiet.terminal.feed(b"said once")
    for number in range(3):
        busy.terminal.feed(f"line {number}\r\n".encode())
        wanted = f"line {number}".encode()
        await until(lambda: rig.store.load_scrollback(busy.agent_id).endswith(wanted), str(wanted))  # noqa: B023
    await rig.saver.stop(clean=False)
    assert rig.store.load_scrollback(quiet.agent_id) == b"said once"
    assert rig.store.scrollbacks.count(quiet.agent_id) == 1
    # Once more where the end came while the last one was still being written.
    assert rig.store.scrollbacks.count(busy.agent_id) in (3, 4)


async def test_no_lines_are_kept_when_that_is_turned_off(tmp_path: Path) -> None:
    rig = Rig(tmp_path, scrollback=False)
    agent = rig.host.open(8100)
    rig.store.save_scrollback(agent.agent_id, b"secret of before")
    agent.terminal.feed(b"secret")
    rig.saver.start()
    await until(lambda: not rig.store.load_scrollback(agent.agent_id), "the end of the old file")
    await rig.saver.stop(clean=False)
    assert rig.store.load_scrollback(agent.agent_id) == b""


async def test_a_disk_that_is_full_is_told_once(rig: Rig) -> None:
    heard: list[object] = []
    rig.host.events.subscribe(heard.append)
    rig.store.fails = True
    for _ in range(2):
        await rig.saver.save()
    notices = [event for event in heard if isinstance(event, Notice)]
    assert len(notices) == 1
    assert "No space left on device" in notices[0].text
    rig.store.fails = False
    await rig.saver.save()
    assert rig.store.load() is not None


async def test_nothing_blocks_the_loop(tmp_path: Path) -> None:
    rig = Rig(tmp_path, interval=0.02)
    agent = rig.host.open(8100)
    agent.terminal.feed(b"\x1b[31mline\x1b[0m\r\n" * 3000)
    with blockbuster_ctx():
        rig.saver.start()
        await until(lambda: rig.store.scrollbacks, "the lines")
        await rig.saver.stop(clean=True)
    assert rig.store.load_scrollback(agent.agent_id).count(b"line") == 3000
