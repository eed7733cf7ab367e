"""`synapse start` reports what runs and what does not."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Run


@pytest.fixture(autouse=True)
def ended(run: Run) -> Iterator[None]:
    yield
    run("synapse-tui", "kill")


def documents(text: str) -> list[dict[str, Any]]:
    found = []
    while text := text.lstrip():
        document, end = json.JSONDecoder().raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def test_agents_that_run_are_printed_though_others_could_not_be_opened(run: Run, home: Path) -> None:
    profile = home / ".synapse/profiles/dummy.yaml"
    text = profile.read_text()
    (first,) = re.findall(r"(?m)^ports: (\d+)-", text)
    profile.write_text(re.sub(r"(?m)^ports:.*$", f"ports: {first}-{int(first) + 1}", text))
    started = run("synapse", "start", "dummy", "dummy", "dummy", "shell", "--json")
    lines = documents(started.stdout)
    opened = [line["agent_id"] for line in lines if "agent_id" in line]
    errors = [line["error"]["message"] for line in lines if "error" in line]
    assert started.returncode == 9, started.stderr
    assert len(opened) == 3, "the shell, which was named last, too"
    assert len(errors) == 1
    assert "no port is free" in errors[0]
    (session,) = json.loads(run("synapse-tui", "ls", "--json").stdout)
    assert [agent["agent_id"] for agent in session["agents"]] == opened


def test_an_agent_that_others_cannot_find_is_an_error(run: Run, home: Path) -> None:
    (home / ".a2a").mkdir(mode=0o700, exist_ok=True)
    (home / ".a2a/registry").write_text("in the way")
    started = run("synapse", "start", "dummy")
    assert started.returncode == 10, started.stderr
    assert started.stdout.startswith("synapse-dummy-"), "it runs nevertheless"
    assert "cannot be found by other programs: " in started.stderr
    assert "[Errno" not in started.stderr


def test_a_history_that_is_broken_is_reported(run: Run, home: Path) -> None:
    history = home / ".synapse/history.db"
    history.write_bytes(b"no database " * 1000)
    started = run("synapse", "start", "dummy")
    assert started.returncode == 0, started.stderr
    assert "a new history begins" in started.stderr
    again = run("synapse", "start", "dummy")
    assert "history" not in again.stderr, "it is a new one"


def test_a_history_that_cannot_be_used_is_reported(run: Run, home: Path) -> None:
    (home / ".synapse/history.db").mkdir()
    for _ in range(2):
        started = run("synapse", "start", "dummy")
        assert started.returncode == 0, started.stderr
        assert "history cannot be" in started.stderr
        assert "messages wait until it can be" in started.stderr


@pytest.mark.parametrize("limit", ["-f 0", "-f 1000", "-v 300000", "-v 600000"])
def test_limits_with_which_no_host_works_are_named(
    environ: dict[str, str], project: Path, limit: str
) -> None:
    script = f"ulimit {limit} && exec synapse start dummy"
    started = subprocess.run(
        ["bash", "-c", script],
        env=environ,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (started.returncode, started.stdout) == (10, "")
    assert "no host can work here" in started.stderr
    assert f"ulimit {limit[:2]}" in started.stderr
