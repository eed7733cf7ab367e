"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from synapse_tui.host import peers
from synapse_tui.host.host import Host
from tests.integration.host_kit import make_host, running
from tests.integration.pty_harness import Harness
from tests.integration.pty_harness import children as all_children
from tests.integration.shell_kit import Shell

Children = Callable[[], list[tuple[int, str]]]


@pytest.fixture
def children() -> Children:
    """Gives pid and state letter of the children that this process has got since the test began.

    Other tests of the same process may share one for all of them, such as a database server.
    """
    before = {pid for pid, _ in all_children()}
    return lambda: [child for child in all_children() if child[0] not in before]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell.scratch(tmp_path)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with running(make_host(tmp_path)) as started:
        yield started


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    harness = Harness(tmp_path)
    yield harness
    await harness.close()


@pytest.fixture(autouse=True)
def _hosts_look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one another, and for harm to their records; every two seconds is too seldom for tests."""
    monkeypatch.setattr(peers, "INTERVAL", 0.2)
