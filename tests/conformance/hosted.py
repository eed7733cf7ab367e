"""Starts hosts without a screen for kits, tests and benchmarks, and ends them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Hosted:
    """A host that runs.

    Attributes:
        folder: Where all of it lies; the agents' own logs are `NAME-N.jsonl` in it.
        pid: The process.
        endpoints: URLs of the agents' servers, in the order they were asked for.
    """

    folder: Path
    pid: int
    endpoints: tuple[str, ...]

    def given(self, log: str, event: str = "submit") -> list[dict[str, Any]]:
        """What an agent was given, by its own log."""
        lines = (self.folder / f"{log}.jsonl").read_text(encoding="utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["event"] == event]


@contextmanager
def hosted(
    folder: Path,
    *agents: str,
    settings: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Hosted]:
    """A host with some agents, ended with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["--settings", json.dumps(dict(settings or {})), "--env", json.dumps(dict(environ or {}))]
    with (folder / "host.log").open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.host", str(folder), *words, *agents],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            told = process.stdout.readline()
            if not told:
                raise RuntimeError((folder / "host.log").read_text())
            yield Hosted(folder, process.pid, tuple(json.loads(told)))
        finally:
            process.stdin.close()
            process.wait(timeout=PATIENCE)
