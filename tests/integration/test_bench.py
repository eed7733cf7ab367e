"""The benchmarks still run: each once, with the smallest counts. What they measure is not looked at."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import compare

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "tests/bench").glob("*.py"))
SMALLEST = (
    "send 1",
    "send queue 2",
    "search 200",
    "locks 2 3 1",
    "terminal plain --only speed",
    "dialogs 1",
    "servers 1",
    "answers 4",
    "__main__ messages",
    "crash messages --kills 1 --messages 1",
)
"""Those that take seconds; the others measure for minutes, whatever they are given."""


@pytest.mark.parametrize("words", SMALLEST)
@pytest.mark.timeout(240)
def test_it_runs(tmp_path: Path, words: str) -> None:
    name, *arguments = words.split()
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{name}", *arguments],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip(), "it prints what it has measured"


@pytest.mark.parametrize(
    ("now", "slower"),
    [
        pytest.param([1.3, 1.4, 1.25], {"work"}, id="each-round"),
        pytest.param([1.3, 1.4, 1.15], set(), id="within-the-noise"),
        pytest.param([1.21, 1.21, 1.21], set(), id="hardly"),
    ],
)
def test_only_what_is_slower_than_the_noise_is_a_regression(
    now: list[float], slower: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    base, ours = (compare.Tree(Path(name), {}, ()) for name in ("base", "ours"))
    rounds = {"base": iter([1.1, 1.2, 1.19]), "ours": iter(now)}
    assert compare.compare([lambda tree: {"work": next(rounds[tree.root.name])}], base, ours, 3) == slower
    assert capsys.readouterr().out.startswith("| work | 1.")


@pytest.mark.parametrize("name", NAMES)
def test_what_it_uses_is_there(name: str) -> None:
    importlib.import_module(f"tests.bench.{name}")
