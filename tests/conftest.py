"""What all tests share."""

from __future__ import annotations

import compileall
import gc
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from synapse_tui.system import language
from tests.needs import lack
from tests.postgres_kit import Server, running

WHOLE = ("e2e", "integration")  # folders of tests that start whole programs


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
    gc.set_threshold(10_000, 20, 20)  # else collecting garbage takes a quarter of the time
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
    os.environ["LC_ALL"] = "C.UTF-8"  # tests read English
    os.environ.pop("SYNAPSE_LANGUAGE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        # Compiling is most of what the start of a host takes; hundreds share what was compiled once.
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(config.rootpath / ".pytest_cache" / "bytecode"))
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"]
    if config.getoption("numprocesses", None):
        # Before the workers start, which would all compile the same.
        compileall.compile_dir(config.rootpath / "synapse_tui", quiet=2, workers=0)


def pytest_xdist_auto_num_workers() -> int:
    """Of `-n auto`: most tests wait for programs, so that a processor has time for several."""
    return 3 * (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin at another place: a file is compiled by the first that comes to it."""
    report = yield
    if isinstance(collector, pytest.Directory) and report.passed:
        number, workers = _place_among_workers(collector.config)
        begin = len(report.result) * number // workers
        report.result = [*report.result[begin:], *report.result[:begin]]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    items.sort(key=lambda item: item.path)  # all workers must have the same
    yield
    _leave_out_what_is_lacking(config, items)
    _, workers = _place_among_workers(config)
    if workers > 1:
        _deal_out(items, workers)


def _place_among_workers(config: pytest.Config) -> tuple[int, int]:
    """Return the number of this process among those that run tests, from 0, and how many there are."""
    given = getattr(config, "workerinput", {"workerid": "gw0", "workercount": 1})
    return int(given["workerid"].removeprefix("gw")), int(given["workercount"])


def _deal_out(items: list[pytest.Item], workers: int) -> None:
    """Mix tests that wait with tests that compute, and give every second worker its slow ones first.

    In the order of the folders all workers would wait or compute at the same time. Tests of whole programs
    come before the last of the others, so that nothing long is left for the end.
    """
    sizes = Counter(item.path.parent for item in items)
    seen: Counter[Path] = Counter()
    places: dict[Path, float] = {}  # of a file among the tests of its folder, from 0 to 1
    for item in items:
        places.setdefault(item.path, seen[item.path.parent] / sizes[item.path.parent])
        seen[item.path.parent] += 1
    slow = [item for item in items if item.get_closest_marker("slow")]
    rest = deque(
        sorted(
            (item for item in items if not item.get_closest_marker("slow")),
            key=lambda item: (
                places[item.path] * (0.85 if item.path.parent.name in ("e2e", "integration") else 1)
            ),
        )
    )
    total = len(items)
    items.clear()
    for worker in range(workers):  # xdist gives each worker the next part of the list
        if worker % 2 == 0:
            items += slow[worker // 2 :: (workers + 1) // 2]
        while rest and len(items) < total * (worker + 1) // workers:
            items.append(rest.popleft())


def _leave_out_what_is_lacking(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave one test of all that lack the same thing: it is skipped, and says how many it stands for."""
    lacking: dict[str, list[pytest.Item]] = {}
    for item in items:
        names = {mark.name for mark in item.iter_markers()} | set(getattr(item, "fixturenames", ()))
        if reason := lack(names):
            lacking.setdefault(reason, []).append(item)
    left_out = set()
    for reason, (first, *others) in lacking.items():
        first.add_marker(pytest.mark.skip(reason=f"{reason} (tests: {1 + len(others)})"))
        config.hook.pytest_deselected(items=others)
        left_out |= set(others)
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Collect garbage no more among what is loaded by now."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of these tests alone; they are skipped where there is none."""
    with running() as server:
        yield server


@pytest.fixture
def team_url(postgres: Server) -> Iterator[str]:
    """The URL of a new database on it."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def japanese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is said while the test runs is Japanese; constants of modules stay English."""
    language.language.cache_clear()
    monkeypatch.setattr(language, "LOCALE", ("SYNAPSE_TEST_LOCALE",))
    monkeypatch.setenv("SYNAPSE_TEST_LOCALE", "ja_JP.UTF-8")
    yield
    language.language.cache_clear()
