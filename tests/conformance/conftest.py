"""One host for each manner of the card; the tests of a process share them. CONFORMANCE=full runs all."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.conformance.hosted import Hosted, hosted
from tests.conformance.wire import Binding, Json, connected

BINDINGS = ("JSONRPC", "HTTP+JSON")
AGENTS = 3


@pytest.fixture(scope="session")
def v1_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    agents = ["quick"] * AGENTS
    with hosted(tmp_path_factory.mktemp("v1"), *agents, settings={"a2a": {"card": "v1"}}) as host:
        yield host


@pytest.fixture(scope="session")
def dual_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("dual"), "quick-0.3") as host:
        yield host


@pytest.fixture(scope="session")
def turns() -> Iterator[int]:
    return itertools.cycle(range(AGENTS))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test over one of the bindings, and over both when all is wanted."""
    if "agent" in metafunc.fixturenames:
        name = metafunc.function.__name__
        one = BINDINGS[zlib.crc32(name.encode()) % 2 :][:1]
        metafunc.parametrize(
            "agent", BINDINGS if os.environ.get("CONFORMANCE") == "full" else one, indirect=True
        )


@pytest.fixture
async def agent(
    request: pytest.FixtureRequest, v1_host: Hosted, turns: Iterator[int]
) -> AsyncIterator[Binding]:
    """A scripted agent over each of the bindings; the next one each time, as the last one comes to rest."""
    async with connected(v1_host.endpoints[next(turns)], request.param) as binding:
        yield binding


@pytest.fixture
async def completed(agent: Binding) -> Json:
    return await agent.task()
