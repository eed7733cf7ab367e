"""The compiled core shows what the one in plain Python shows, and its use of memory is sound."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from synapse_tui.terminal import Terminal, cells, core, style
from tests.terminal.fuzzing import ROOT, cases, play, sanitized, shown, states

compiled = pytest.mark.skipif(
    core.scan is None, reason="the core is not compiled: pip install -e . with a C compiler"
)

LONG = pytest.mark.timeout(900)  # seconds; half a minute of a processor of its own
MANY, FEW = 400, 80


@compiled
@pytest.mark.slow
@LONG
def test_both_show_the_same() -> None:
    plain = states(1001, MANY, SYNAPSE_TUI_PURE="1")
    for number, ((source, terminal), expected) in enumerate(zip(cases(1001), plain, strict=False)):
        play(source, terminal)
        assert shown(terminal) == expected, f"case {number}"
    assert len(plain) == MANY


@compiled
@pytest.mark.slow
@LONG
def test_the_core_in_plain_python_passes_the_same_tests() -> None:
    here = Path(__file__)
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--ignore={here}"]
    command = [sys.executable, "-m", "pytest", *options, str(here.parent)]
    environment = os.environ | {"SYNAPSE_TUI_PURE": "1"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@compiled
@pytest.mark.slow
@LONG
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_memory_and_arithmetic_are_sound(tmp_path: Path) -> None:
    environment = sanitized(tmp_path)
    assert states(1002, FEW, tmp_path, **environment) == states(1002, FEW, SYNAPSE_TUI_PURE="1")


@compiled
def test_nothing_is_left_of_a_terminal() -> None:
    def blocks() -> int:
        for _, (source, terminal) in zip(range(40), cases(7), strict=False):
            play(source, terminal)
        del source, terminal
        gc.collect()
        return sys.getallocatedblocks()

    blocks()  # fills the caches
    before = blocks()
    assert blocks() - before < 200


def test_a_class_of_the_compiled_core_is_a_table_of_the_other() -> None:
    table = cells.make_classes()
    for code in (*range(0xA0, 0x3000), *range(0x1F000, 0x1FFFF)):
        char = chr(code)
        assert bool(table[code] & 1) == (cells.all_narrow(char) is not None), hex(code)


@compiled
@pytest.mark.parametrize(
    "parameters", ["", "0", "1;3;4;7;9;53", "22;24;27;29;55", "38;5;200;48;5;17", "58;2;1;2;3;39;49"]
)
def test_renditions_are_packed_alike(parameters: str) -> None:
    keep, add = style.parse(parameters)
    terminal = Terminal(10, 2)
    for before in (0, style.EVERYTHING & ~(style.NO_LINK + 1 << 37), style.PROTECTED | style.FG):
        terminal.screen.style = before
        terminal.feed(f"\x1b[{parameters}m".encode())
        assert terminal.screen.style == before & keep | add


def test_plain_python_is_a_choice() -> None:
    code = "from synapse_tui.terminal import core; print(core.scan)"
    environment = os.environ | {"SYNAPSE_TUI_PURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
