"""Inside which agent a command runs, when its own environment does not tell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from synapse_tui.cli.caller import MAX_ANCESTORS, proc_ancestors, psutil_ancestors, with_identity

CLAUDE = {
    "SYNAPSE_AGENT_ID": "synapse-claude-8100",
    "SYNAPSE_TOKEN": "secret",
    "SYNAPSE_ENDPOINT": "http://127.0.0.1:8100",
    "SYNAPSE_SPOOL": "/spool",
}
CODEX = {**CLAUDE, "SYNAPSE_AGENT_ID": "synapse-codex-8120", "SYNAPSE_TOKEN": "other"}


def found(own: Mapping[str, str], *ancestors: Mapping[str, str]) -> dict[str, str]:
    def every() -> Iterator[Mapping[str, str]]:
        yield from ancestors

    return with_identity(own, every)


KEPT = {name: CLAUDE[name] for name in ("SYNAPSE_AGENT_ID", "SYNAPSE_ENDPOINT")}
HALF = {name: value for name, value in CLAUDE.items() if name != "SYNAPSE_TOKEN"}
MINE = {**CODEX, "SYNAPSE_SPOOL": "/mine"}
UNPROVED = {"SYNAPSE_AGENT_ID": "synapse-claude-8100"}
NOBODY = {"SYNAPSE_AGENT_ID": ""}


@pytest.mark.parametrize(
    ("own", "ancestors", "wanted"),
    [
        pytest.param({"A": "b"}, [{}, {"X": "y"}, CLAUDE, CODEX], {"A": "b", **CLAUDE}, id="nearest"),
        pytest.param(MINE, [CLAUDE], MINE, id="its own counts more"),
        pytest.param(KEPT, [KEPT, CODEX, CLAUDE], CLAUDE, id="a token kept from the command"),
        pytest.param(UNPROVED, [CODEX], UNPROVED, id="the token of another agent"),
        pytest.param({}, [HALF, CODEX], CODEX, id="an ancestor without a token"),
        pytest.param({"A": "b"}, [{}, {"SYNAPSE_BIN": "x"}], {"A": "b"}, id="outside of agents"),
        pytest.param(NOBODY, [CLAUDE], NOBODY, id="an empty id is nobody"),
    ],
)
def test_the_agent_of_a_command(
    own: dict[str, str], ancestors: list[dict[str, str]], wanted: dict[str, str]
) -> None:
    assert found(own, *ancestors) == wanted


def process(proc: Path, pid: int, parent: int, environ: bytes | None, name: str = "sh") -> None:
    """One process in a made-up proc."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0")
    if environ is not None:
        (folder / "environ").write_bytes(environ)


def test_ancestors_are_read_from_proc(tmp_path: Path) -> None:
    process(tmp_path, 9, 8, b"SYNAPSE_AGENT_ID=own\0", name="a) S 1 (b")
    process(tmp_path, 8, 5, b"PATH=/bin\0SYNAPSE_AGENT_ID=synapse-x-1\0SYNAPSE_TOKEN=a=b\0")
    process(tmp_path, 5, 1, None)
    process(tmp_path, 1, 0, b"SYNAPSE_TOKEN=\xff\0rubbish\0SYNAPSE_X\0")
    assert list(proc_ancestors(9, tmp_path)) == [
        {"SYNAPSE_AGENT_ID": "synapse-x-1", "SYNAPSE_TOKEN": "a=b"},
        {"SYNAPSE_TOKEN": "\ufffd", "SYNAPSE_X": ""},
    ]


def test_a_proc_that_leads_in_a_circle_is_left(tmp_path: Path) -> None:
    process(tmp_path, 7, 7, b"SYNAPSE_A=b\0")
    assert len(list(proc_ancestors(7, tmp_path))) == MAX_ANCESTORS


@pytest.mark.parametrize("stat", [b"", b"7 (sh", b"7 (sh) S x"])
def test_a_proc_that_cannot_be_read_ends_the_search(tmp_path: Path, stat: bytes) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_bytes(stat)
    assert not list(proc_ancestors(7, tmp_path))


def test_other_systems_tell_by_psutil() -> None:
    """It works on Linux too, and must then tell the same of the nearest ancestors."""
    told = [dict(environ) for environ in psutil_ancestors()]
    assert any(environ.get("PATH") for environ in told)
    ours = [
        {name: value for name, value in environ.items() if name.startswith("SYNAPSE_")} for environ in told
    ]
    if sys.platform == "linux":
        assert ours == list(proc_ancestors(os.getpid()))


PRINT = "from synapse_tui.cli.caller import Caller; c = Caller.of(); print(c.agent_id, c.token, c.has_server)"
ROOT = str(Path(__file__).parents[2])


def run(words: Sequence[str], environ: Mapping[str, str]) -> str:
    base = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": ROOT}
    done = subprocess.run(words, env={**base, **environ}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere psutil tells, of programs that the system lets it"
)
def test_a_command_whose_environment_was_emptied_finds_its_agent() -> None:
    """A shell of the agent, and in it a command from whose environment all was taken."""
    inner = f"env -i PYTHONPATH={ROOT} {sys.executable} -c '{PRINT}'"
    assert run(["sh", "-c", f"{inner}; true"], CLAUDE) == "synapse-claude-8100 secret True"
