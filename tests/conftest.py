"""What all tests share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator

import hypothesis
import pytest

from tests.postgres_kit import Server, server_or_skip


def pytest_configure(config: pytest.Config) -> None:
    """Prepare this process, and all that it starts.

    Let Ctrl+C reach the programs under test, also where the tests run in the background of a shell.

    Generated examples are the same each time, so that a change is judged by itself;
    HYPOTHESIS_PROFILE=searching looks for new ones. How long one takes depends on what else the machine does:
    there is no deadline for it, and none is too slow to be made.
    """
    for name, same in (("steady", True), ("searching", False)):
        hypothesis.settings.register_profile(
            name,
            derandomize=same,
            deadline=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
    os.environ["LC_ALL"] = "C.UTF-8"  # tests read English
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        # Compiling is most of what the start of a host takes; hundreds share what was compiled once.
        folder = tempfile.mkdtemp(prefix="synapse-bytecode-")
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_finish() -> None:
    """Collect garbage less often, and not among what is loaded by now: that takes a quarter of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


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
