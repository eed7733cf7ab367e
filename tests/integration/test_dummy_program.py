"""The dummy agent as a program in a terminal: what it shows, what it logs, how it ends."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from synapse_tui.dummy.script import WIDE
from synapse_tui.model import ExitStatus
from tests.integration.dummy_rig import DummyRig
from tests.integration.pty_harness import runs, until

QUICK = ("--word-delay", "0")


@pytest.fixture
async def start(tmp_path):
    rigs = []

    async def begin(*args: str, ready: bool = True, **options: int) -> DummyRig:
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


async def test_a_prompt_on_the_command_line_is_submitted(start):
    rig = await start("what is this?")
    await rig.shows("You said: what is this?")


# -- input


@pytest.mark.parametrize("newline", ["\x1b[13;2u", "\n"])
async def test_lines_are_broken_by_every_spelling_of_shift_enter(start, newline):
    rig = await start()
    rig.press(f"one{newline}two")
    await until(lambda: rig.reading.draft == "one\ntwo", "two lines")
    rig.press("\r")
    await rig.logs("submit", text="one\ntwo")


async def test_five_megabytes_of_paste(start):
    rig = await start()
    text = "0123456789abcde\n" * 320_000
    rig.paste(text)
    await rig.shows("[Pasted text #1 +320000 lines]")
    rig.press("\r")
    assert (await rig.logs("submit"))["text"] == text


# -- turns


async def test_escape_interrupts_and_the_draft_stays(start):
    rig = await start("--reply", "Well:")
    await rig.submit("%%slow:60%% go")
    await rig.shows("slow line")
    rig.press("a draft")
    await until(lambda: rig.reading.draft == "a draft", "the draft")
    rig.press("\x1b")
    await rig.logs("interrupt", key="escape")
    await rig.shows("Interrupted")
    assert rig.reading.draft == "a draft"
    assert "END-OF-SLOW" not in rig.history


async def test_messages_while_working_are_queued_by_default(start):
    rig = await start()
    await rig.submit("%%hang:60%%")
    await rig.logs("turn")
    await rig.submit("second")
    await rig.shows("queued: second")
    assert (await rig.logs("submit", text="second"))["mode"] == "queue"
    assert len(rig.events("turn")) == 1
    rig.press("\x1b")
    await rig.logs("turn", text="second")


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


async def test_run_asks_and_runs_and_always_means_always(start, tmp_path):
    rig = await start(lines=40)
    await rig.submit("%%run:echo first-$((40+2)); exit 3%%")
    await rig.logs("dialog-open")
    rig.press("2")
    await rig.shows("first-42")
    await rig.shows("exit status 3")
    await rig.submit(f"%%run:touch {tmp_path}/made%%")
    await until((tmp_path / "made").exists, "the file")
    assert len(rig.events("dialog-open")) == 1


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


async def test_bang_runs_without_asking_and_slash_is_a_command(start, tmp_path):
    rig = await start(lines=50)
    await rig.submit(f"!touch {tmp_path}/made")
    await until((tmp_path / "made").exists, "the file")
    await rig.submit("/help")
    await rig.shows("Things to try")
    await rig.submit("/nonsense x")
    await rig.shows("There is no command /nonsense")
    await rig.submit("/clear")
    await until(lambda: "nonsense" not in rig.history, "a clean screen")
    await rig.submit("/exit")
    assert (await rig.ends()).code == 0


# -- ways to go wrong


async def test_invalid_bytes_wide_characters_and_alternate_screen(start):
    rig = await start(lines=30)
    await rig.submit("%%invalid%% %%wide%%")
    await rig.logs("turn-end")  # which is written before the last frame has come through the PTY
    await until(lambda: b"\xff\xfe" in rig.output, "the bytes that are no UTF-8")
    await until(lambda: rig.reading.empty, "the composer")
    for word in ("日本語のテキスト", "नमस्ते", "全角"):
        assert word in WIDE
        assert word in rig.history
    await rig.submit("%%alt:0.2%%")
    await until(lambda: rig.terminal.modes.alternate_screen, "the alternate screen")
    await until(lambda: not rig.terminal.modes.alternate_screen, "the main screen")
    await until(lambda: rig.reading.empty, "the composer")
    assert "日本語のテキスト" in rig.history


async def test_flood_can_be_interrupted(start):
    rig = await start()
    await rig.submit("%%flood:60%%")
    await until(lambda: len(rig.output) > 1_000_000, "a flood")
    rig.press("\x1b")
    await rig.logs("interrupt")
    await until(lambda: rig.reading.empty, "the composer")


# -- the end


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("%%exit:42%%", ExitStatus(code=42)),
        ("%%crash:KILL%%", ExitStatus(signal=signal.SIGKILL)),
    ],
)
async def test_exit_codes_and_signals(start, message, status):
    rig = await start()
    await rig.submit(message)
    assert await rig.ends() == status


async def test_ctrl_c_twice_ends_and_once_clears(start):
    rig = await start()
    rig.press("draft")
    await until(lambda: rig.reading.draft == "draft", "the draft")
    rig.press("\x03")
    await rig.shows("Press Ctrl+C again")
    assert rig.reading.empty
    rig.press("\x03")
    assert (await rig.ends()).code == 0
    assert not rig.terminal.modes.bracketed_paste
    assert rig.terminal.modes.kitty_flags == 0
    assert rig.terminal.cursor.visible


async def test_its_end_takes_running_commands_with_it(start, tmp_path):
    rig = await start()
    await rig.submit(f"!trap '' TERM HUP; sleep 1000 & echo $! > {tmp_path}/pid; wait")
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the command")
    pid = int((tmp_path / "pid").read_text())
    os.kill(rig.process.pid, signal.SIGHUP)
    assert await rig.ends() == ExitStatus(signal=signal.SIGHUP)
    await until(lambda: not runs(pid), "the end of the command")


# -- sizes


def drawn_at(rig: DummyRig, columns: int) -> bool:
    """Whether the composer's two rules are as wide as the terminal."""
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
