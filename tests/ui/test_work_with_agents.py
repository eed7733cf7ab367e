"""What is done for one agent is hardly more work beside thirty agents, or with many locks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.events import Key

from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.ui.app import SynapseApp
from tests.ui.app_kit import running
from tests.ui.fakes import FakeHost, FakeSession
from tests.ui.idle import wait_for_idle
from tests.work import OUR_OWN, work

FEW, MANY = 3, 30


def agents(count: int) -> FakeHost:
    host = FakeHost()
    for number in range(count):
        host.add(AgentSpec("claude", name=f"agent-{number}"))
    return host


def agent(host: FakeHost, at: int) -> FakeSession:
    return list(host.agents.values())[at]


def typed(app: SynapseApp, host: FakeHost) -> None:
    app.post_message(Key("x", "x"))


def printed(app: SynapseApp, host: FakeHost) -> None:
    agent(host, 0).feed("\r\x1b[Ka frame\r\n")


def printed_unseen(app: SynapseApp, host: FakeHost) -> None:
    agent(host, 2).feed("\r\x1b[Ka frame\r\n")


def worked(app: SynapseApp, host: FakeHost) -> None:
    busy = agent(host, 0).report.state is AgentState.PROCESSING
    agent(host, 0).become(AgentState.READY if busy else AgentState.PROCESSING)


async def lines(host: FakeHost, act: Callable[[SynapseApp, FakeHost], None]) -> int:
    """Our own lines run for an act and what it draws, the fewest of some: clocks tick meanwhile."""
    counts = []
    async with running(host) as (app, _pilot):
        for _ in range(6):
            with work(OUR_OWN) as counted:
                act(app, host)
                await wait_for_idle()
            counts.append(counted.lines)
        assert act is not typed or agent(host, 0).typed == b"x" * len(counts)
    return min(counts)


@pytest.mark.parametrize(("act", "most"), [(typed, 5), (printed, 0), (printed_unseen, 2), (worked, 700)])
async def test_beside_many_agents(act: Callable[[SynapseApp, FakeHost], None], most: int) -> None:
    """`most` are the lines for each agent more: a new state is shown in tabs as wide as they fit."""
    few, many = [await lines(agents(count), act) for count in (FEW, MANY)]
    each = (many - few) / (MANY - FEW)
    assert round(each) <= most, (
        f"{each:.1f} lines for each agent more: {few} beside {FEW}, {many} beside {MANY}"
    )


async def test_with_many_locks() -> None:
    counted = []
    for count in (FEW, MANY):
        host = agents(FEW)
        host.safety.enabled = True
        for number in range(count * 10):
            host.safety.lock(f"src/file-{number}.py", "synapse-claude-8100")
        counted.append(await lines(host, typed))
    assert counted[1] - counted[0] < MANY - FEW, "less than a line for ten locks more"
