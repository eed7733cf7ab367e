"""A session from its opening to its closing."""

import asyncio
import dataclasses
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.errors import AgentExited, MessageError
from synapse_tui.core.events import (
    AgentBell,
    AgentProcessExited,
    AgentStateChanged,
    AgentTitleChanged,
    ClipboardRequested,
)
from synapse_tui.core.model import AgentState, DeliveryState, ExitStatus, TaskState
from synapse_tui.system.pty.scheduler import LOOK_AGAIN, LOOK_READ
from synapse_tui.terminal import Damage
from tests.integration.session_rig import open_rig, until, with_profile
from tests.profiles import shipped


async def test_states_are_published_in_order(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.done(rig.send("hello"))
        states = [event.report.state for event in rig.heard if isinstance(event, AgentStateChanged)]
        assert [
            state for index, state in enumerate(states) if index == 0 or states[index - 1] is not state
        ] == [
            AgentState.READY,
            AgentState.PROCESSING,
            AgentState.READY,
        ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
async def test_a_shell_works_while_a_command_has_the_terminal_and_rests_in_a_shell_within(tmp_path):
    bash = "exec bash --norc --noprofile -i"
    shell = dataclasses.replace(shipped().find("shell"), command="sh", args=("-c", bash))
    async with open_rig(tmp_path, profile=shell) as rig:
        await rig.ready()
        rig.type("sleep 1000\r")
        await until(lambda: rig.session.report.rule == "a command runs")
        rig.type("\x03")
        await rig.ready()
        rig.type("bash --norc --noprofile\recho with$((1))in\r")
        await until(lambda: "with1in" in rig.session.console.screen_text())
        await until(
            lambda: (rig.session.report.state, rig.session.report.rule) == (AgentState.READY, "output rests")
        )
        assert rig.session.console.process.foreground != rig.session.pid
        rig.type("sleep 1000\r")
        await until(lambda: rig.session.report.rule == "a command runs")


async def test_a_program_that_asked_gets_changes_of_the_colours(tmp_path):
    """Mode 2031: `CSI ? 997 ; 2 n` for light colours."""
    got, asks = tmp_path / "got", "stty raw -echo; printf '\\033[?2031h'; exec cat > got"
    async with open_rig(tmp_path, profile=with_profile(command="sh", args=("-c", asks))) as rig:
        await until(lambda: rig.session.terminal.modes.color_scheme_updates)
        rig.session.set_colors((10, 20, 30), (250, 250, 250), None, dark=None)
        await until(lambda: got.read_bytes() == b"\x1b[?997;2n")


@pytest.mark.parametrize(
    ("text", "status"),
    [("%%exit:3%%", ExitStatus(code=3)), ("%%crash:SEGV%%", ExitStatus(signal=11)), ("/exit", None)],
)
async def test_the_end_of_the_process_is_told(tmp_path, text, status):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        rig.type(f"{text}\r")
        ended = await until(lambda: [e for e in rig.heard if isinstance(e, AgentProcessExited)], "the end")
        assert ended == [AgentProcessExited(rig.session.agent_id, status or ExitStatus(code=0))]
        assert rig.session.exit == ended[0].status
        assert rig.session.report.state is AgentState.EXITED
        with pytest.raises(AgentExited):
            rig.send("too late")
        rig.type("keys to nobody")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_answer_of_an_agent_that_is_killed_holds_nothing_of_its_frame(tmp_path, number):
    async with open_rig(tmp_path, "--word-delay", "0.01") as rig:
        task = rig.send("%%slow:30%% hello")
        await until(lambda: "slow line 1" in rig.session.console.screen_text(), "the answer")
        rig.session.console.signal(number)
        answer = (await rig.done(task)).answer
        assert answer.startswith("synapse-claude-8100 says: hello")
        assert re.fullmatch(r"[a-z0-9 ]*", answer.rpartition("\n")[2]), answer
        assert not re.search(r"Working|❯|─|esc", answer)


async def test_death_with_a_queue_and_restart(tmp_path):
    async with open_rig(tmp_path) as rig:
        running = rig.send("%%hang:60%%")
        await rig.state(AgentState.PROCESSING)
        waiting = [rig.send(text) for text in ("first", "second")]
        old_pid, old_terminal = rig.session.pid, rig.session.terminal
        rig.session.console.signal(9)
        await until(lambda: rig.session.exit, "the end")
        assert rig.session.tasks.get(running.id).state is TaskState.FAILED
        assert rig.session.tasks.get(running.id).reason == "agent exited"
        for task in waiting:
            await rig.delivery(task, DeliveryState.HELD, "agent exited")
        await rig.session.restart()
        assert rig.session.exit is None
        assert rig.session.pid != old_pid
        assert rig.session.terminal is not old_terminal
        for task in waiting:
            assert (await rig.done(task)).state is TaskState.COMPLETED
        assert rig.submitted == ["%%hang:60%%", "first", "second"]


async def test_a_message_left_in_the_composer_goes_after_a_restart(tmp_path):
    async with open_rig(tmp_path, "--dialog-after-paste", "0") as rig:
        task = await rig.delivery(rig.send("covered"), DeliveryState.HELD, "permission dialog open")
        await rig.session.restart()
        await rig.delivery(task, DeliveryState.HELD, "permission dialog open")
        await rig.answer("\x1b")
        await rig.done(task)
        assert rig.submitted == ["covered"]


async def test_what_the_terminal_tells_is_published(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        rig.type("%%bell%%%%notify:look here%%%%clip:copied%%%%title:new title%%\r")
        await until(lambda: AgentTitleChanged(rig.session.agent_id, "new title") in rig.heard, "title")
        assert AgentBell(rig.session.agent_id) in rig.heard
        assert AgentBell(rig.session.agent_id, "look here") in rig.heard
        assert ClipboardRequested(rig.session.agent_id, "copied") in rig.heard


async def test_unseen_until_it_is_looked_at(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        assert not rig.session.unseen
        await rig.done(rig.send("hello"))
        assert rig.session.unseen
        rig.session.focus(True)
        assert not rig.session.unseen
        await rig.done(rig.send("again"))
        assert not rig.session.unseen
        rig.session.focus(False)
        rig.type("%%perm%%\r")
        await rig.state(AgentState.WAITING)
        assert rig.session.unseen


async def test_what_a_person_interrupts_is_not_done_unseen(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        for asked in ("%%hang:60%%", "%%perm%%"):
            rig.type(f"{asked}\r")
            await rig.state(AgentState.WAITING if "perm" in asked else AgentState.PROCESSING)
            rig.session.seen()
            assert (await rig.session.interrupt()).stopped
            await rig.state(AgentState.READY)
            assert not rig.session.unseen
        await rig.done(rig.send("again"))
        assert rig.session.unseen


@pytest.mark.parametrize("told", [True, False])
async def test_a_lost_focus_is_told_unless_the_composer_is_known_by_the_cursor(tmp_path, told):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        console = rig.session.console
        quirks = dataclasses.replace(console._profile.quirks, hides_cursor=not told)
        console._profile = dataclasses.replace(console._profile, quirks=quirks)
        console.terminal.feed(b"\x1b[?1004h")
        written: list[bytes] = []

        def write(data: bytes) -> None:
            written.append(data)

        console.process.write = write
        console.focus(True)
        console.focus(False)
        assert written == ([b"\x1b[I", b"\x1b[O"] if told else [b"\x1b[I"])


async def test_the_output_is_logged_privately(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.done(rig.send("hello log"))
    path = tmp_path / "logs" / "synapse-dummy-8190.log"
    assert b"hello log" in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_nothing_of_a_session_is_left_when_it_stops(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []


async def test_the_loop_is_never_blocked(tmp_path):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        with blockbuster_ctx("synapse_tui.agents"):
            tasks = [rig.send("hello"), rig.send("%%ask:Which?|red|blue%%")]
            await rig.answer("1")
            await rig.until_ended(*tasks)
            rig.send("%%hang:60%%")
            await rig.state(AgentState.PROCESSING)
            assert (await rig.session.interrupt()).stopped


async def test_a_size_that_came_while_the_agent_started_is_told_again_once_it_listens(tmp_path):
    async with open_rig(tmp_path) as rig:
        rig.session.resize(61, 17)
        told = len(rig.records("resize"))
        assert rig.session.report.state is AgentState.STARTING
        await rig.ready()
        await until(lambda: len(rig.records("resize")) > told, "the size")
        last = rig.records("resize")[-1]
        assert (last["columns"], last["lines"]) == (61, 17)


def writes(tmp_path: Path, data: bytes) -> Profile:
    (tmp_path / "output").write_bytes(data)
    script = f"stty raw -echo; cat {tmp_path}/output; exec sleep 1000"
    return with_profile(command="/bin/sh", args=("-c", script))


async def test_output_that_costs_much_leaves_the_loop_to_others(tmp_path):
    """A request of four bytes is a checksum of the whole screen: 64 kB of them are seconds of work."""
    count = 3000
    profile = writes(tmp_path, b"\x1b[*y" * count + b"the end")
    async with open_rig(tmp_path, profile=profile) as rig:
        screen, loop = rig.session.terminal.screen, asyncio.get_running_loop()
        reply, in_this_turn, most, total = screen.reply, 0, 0, 0

        def counted(text: str) -> None:
            nonlocal in_this_turn, most, total
            in_this_turn, total = in_this_turn + 1, total + 1
            most = max(most, in_this_turn)
            reply(text)

        def turn() -> None:
            nonlocal in_this_turn
            in_this_turn = 0
            loop.call_soon(turn)

        screen.reply = counted
        turn()
        await until(lambda: "the end" in "".join(rig.session.terminal.display), "all output", 120)
        assert total == count
        assert most < 500, "the loop was held for hundreds of checksums"


@pytest.mark.parametrize(
    ("one", "last", "event"),
    [
        (b"\x07", b"\x1b]9;done\x07", AgentBell("synapse-dummy-8190", "done")),
        (b"\x1b]2;a\x07\x1b]2;b\x07", b"\x1b]2;done\x07", AgentTitleChanged("synapse-dummy-8190", "done")),
        (b"\x1b]52;c;YWE=\x07", b"\x1b]52;c;ZG9uZQ==\x07", ClipboardRequested("synapse-dummy-8190", "done")),
    ],
)
async def test_a_flood_of_what_a_terminal_tells_is_merged(tmp_path, one, last, event):
    """The first is told at once, the last in any case."""
    profile = writes(tmp_path, one * 5000 + last + b"the end")
    async with open_rig(tmp_path, profile=profile) as rig:
        began = asyncio.get_running_loop().time()
        await until(lambda: "the end" in "".join(rig.session.terminal.display), "all output", 60)
        await until(lambda: event in rig.heard, "the last one")
        seconds = asyncio.get_running_loop().time() - began
        told = [heard for heard in rig.heard if isinstance(heard, type(event))]
        assert 1 <= len(told) <= 5 * (seconds + 1)
        assert told[-1] == event


async def test_keys_do_not_have_a_flood_taken_in(tmp_path, monkeypatch):
    """What an agent puts out without end is taken in by the scheduler, not by each key typed into it."""
    profile = with_profile(command="/bin/sh", args=("-c", "stty raw -echo; exec yes 'a line of a flood'"))
    async with open_rig(tmp_path, profile=profile) as rig:
        await until(lambda: "a line of a flood" in rig.session.console.screen_text(), "the flood")
        terminal, taken, calls = rig.session.terminal, 0, 0
        feed = terminal.feed

        def counted(data: bytes, seconds: float) -> Damage:
            nonlocal taken, calls
            taken, calls = taken + len(data), calls + 1
            return feed(data, seconds)

        monkeypatch.setattr(terminal, "feed", counted)
        # The offer of the first key takes in what is left of the stopped output; the others wait behind it.
        monkeypatch.setattr(rig.session.console, "take_in_for", lambda _seconds: True)
        began = time.monotonic()
        for _ in range(20):
            rig.type("x")
            time.sleep(0.005)  # noqa: ASYNC251  # nothing but the keys may have it read meanwhile
        looks = 1 + int((time.monotonic() - began) / LOOK_AGAIN)
        assert calls <= looks
        assert taken <= looks * LOOK_READ


PROMPTS = """
import signal, time
signal.signal(signal.SIGWINCH, lambda *_: print("\\rdrawn anew $ ", end="", flush=True))
input("$ ")
for number in range(40):
    print(number, flush=True)
    time.sleep(0.1)
input("$ ")
"""


async def test_what_a_shell_draws_by_itself_is_nothing_to_be_looked_at(tmp_path):
    shell = shipped().find("shell")
    shell = dataclasses.replace(shell, command=sys.executable, args=("-c", PROMPTS))
    async with open_rig(tmp_path, profile=shell) as rig:
        await until(lambda: "$" in rig.session.console.screen_text(), "its prompt")
        await rig.ready()
        rig.session.resize(60, 20)
        await until(
            lambda: "drawn anew" in rig.session.console.screen_text(), "what it draws for another size"
        )
        assert not rig.session.unseen
        rig.type("make\r")
        await until(lambda: rig.session.unseen, "the end of what it was told to do")


async def test_an_agent_that_takes_no_messages(tmp_path):
    async with open_rig(tmp_path, profile=with_profile(receives=False)) as rig:
        with pytest.raises(MessageError):
            rig.send("hello")
