"""The dummy agent as a program in a terminal: what it shows, what it logs, how it ends."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.core.model import ExitStatus
from tests.integration.dummy_rig import DummyRig
from tests.integration.pty_harness import runs, until

QUICK = ("--word-delay", "0")


@pytest.fixture
async def start(tmp_path):
    rigs = []

    async def begin(*args: str, ready: bool = True, **options: Any) -> DummyRig:
        rig = DummyRig(tmp_path, *QUICK, *args, **options)
        rigs.append(rig)
        if ready:
            await until(lambda: rig.reading.visible, "the composer")
        return rig

    yield begin
    for rig in rigs:
        await rig.close()


# -- start


def test_needs_only_the_standard_library():
    code = (
        "import sys; import synapse_tui.dummy.app; "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    answer = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False,
                            env={"PYTHONPATH": str(Path.cwd())})  # fmt: skip
    assert set(answer.stdout.split()) - {"__main__"} == {"synapse_tui"}


def test_says_what_is_missing_without_a_terminal():
    answer = subprocess.run(
        [sys.executable, "-m", "synapse_tui.dummy"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "needs a terminal" in answer.stderr


# -- dialogs


@pytest.mark.parametrize(
    ("keys", "choice", "shown"),
    [
        ("\x1b[B\r", 2, "allowed"),
        ("\x1b", 0, "denied"),
    ],
)
async def test_permission_dialog(start, keys, choice, shown):
    rig = await start()
    await rig.submit("%%perm:rm -rf build%%")
    opened = await rig.logs("dialog-open")
    assert (opened["kind"], opened["body"]) == ("permission", "rm -rf build")
    await rig.shows("❯ 1. Yes")
    rig.press(keys)
    assert (await rig.logs("dialog-answer"))["choice"] == choice
    await rig.shows(shown)
    await until(lambda: rig.reading.empty, "the composer")


async def test_paste_into_a_dialog_is_lost_and_enter_approves_as_with_real_agents(start):
    rig = await start()
    await rig.submit("%%perm%%")
    await rig.logs("dialog-open")
    rig.paste("a message")
    rig.press("\r")
    assert (await rig.logs("dialog-answer"))["choice"] == 1
    assert rig.submitted == ["%%perm%%"]
    await until(lambda: rig.reading.empty, "the empty composer")


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
async def test_interrupt_ends_a_running_command_with_its_family(start, tmp_path, trap):
    rig = await start()
    await rig.submit(f"%%run:{trap}sleep 1000 & echo $! > {tmp_path}/pid; wait%%")
    await rig.logs("dialog-open")
    rig.press("\r")
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the command")
    pid = int((tmp_path / "pid").read_text())
    rig.press("\x1b")
    await rig.logs("interrupt")
    await rig.shows("Interrupted")
    await until(lambda: not runs(pid), "the end of the command")
    assert rig.exit is None


# -- the end


async def test_its_end_takes_running_commands_with_it(start, tmp_path):
    rig = await start()
    await rig.submit(f"!trap '' TERM HUP; sleep 1000 & echo $! > {tmp_path}/pid; wait")
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the command")
    pid = int((tmp_path / "pid").read_text())
    os.kill(rig.process.pid, signal.SIGHUP)
    assert await rig.ends() == ExitStatus(signal=signal.SIGHUP)
    await until(lambda: not runs(pid), "the end of the command")


# -- sizes


async def test_goes_on_without_its_folder(start, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    rig = await start(columns=100, lines=30, cwd=folder, env={"HOME": str(tmp_path)})
    assert "~/gone" in rig.text
    folder.rmdir()
    rig.resize(90, 30)
    await rig.logs("resize", columns=90, lines=30)
    await until(lambda: drawn_at(rig, 90), lambda: rig.text)
    assert "~/gone" in rig.text
    await rig.submit("hello")
    await rig.logs("turn-end")


def drawn_at(rig: DummyRig, columns: int) -> bool:
    rules = [row for row in rig.text.split("\n") if row.startswith("───")]
    return rules == ["─" * columns] * 2


@pytest.mark.parametrize("options", [(), ("--alt-screen",)], ids=["main", "alternate"])
async def test_redraws_at_any_size(start, options):
    rig = await start(*options, columns=100, lines=30)
    await rig.submit("hello there, this is a message of some length")
    await rig.logs("turn-end")
    rig.press("draft")
    await until(lambda: rig.reading.draft == "draft", "the draft")
    for columns, lines in [(20, 5), (200, 60), (37, 9), (80, 24), (20, 24), (120, 5)]:
        rig.resize(columns, lines)
        await rig.logs("resize", columns=columns, lines=lines)
        await until(functools.partial(drawn_at, rig, columns), lambda: f"two rules in\n{rig.text}")
        await until(lambda: rig.reading.draft == "draft", lambda: f"the draft in\n{rig.text}")
        assert rig.text.count("draft") == 1
    if not options:
        await until(lambda: rig.history.count("of some length") == 2, lambda: rig.history)
