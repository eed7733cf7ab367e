"""Tests that wait for real processes, terminals and sockets get a second and third try.

A loaded machine can starve a child process of the CPU for longer than a test's patience. A test that fails
once and then holds is printed as RERUN in the summary: it says that the test is to be mended, not that the
product is broken. Tests of pure code get one try.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.postgres_kit import Server, server_or_skip

WAITING = {"conformance", "e2e", "integration", "lab", "ui"}
TESTS = Path(__file__).parent


def pytest_configure() -> None:
    """Let Ctrl+C reach the programs under test, also where the tests run in the background of a shell.

    Generated examples are the same each time, so that a change is judged by itself;
    HYPOTHESIS_PROFILE=default looks for new ones.
    """
    hypothesis.settings.register_profile("steady", derandomize=True)
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the folders that start processes or applications."""
    for item in items:
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).parts[0] in WAITING:
            item.add_marker(pytest.mark.flaky(reruns=int(os.environ.get("SYNAPSE_RERUNS", "2"))))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of these tests alone; they are skipped where there is none."""
    with server_or_skip() as server:
        yield server


@pytest.fixture
def team_url(postgres: Server) -> Iterator[str]:
    """The URL of a new database on it."""
    with postgres.database() as url:
        yield url
