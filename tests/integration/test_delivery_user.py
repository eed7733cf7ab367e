"""A user who types at any moment of a delivery: neither the keys nor the messages are damaged."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from synapse_tui.agents import state
from synapse_tui.agents.adoption import read_handover
from synapse_tui.agents.console import STOP_LOOK, AgentConsole
from synapse_tui.agents.keyboard import DELIBERATE
from synapse_tui.core.events import Notice
from synapse_tui.core.model import AgentState, DeliveryState
from synapse_tui.workspace import Handover
from tests.integration.session_rig import Rig, open_rig, until, with_profile
from tests.integration.typing_user import TypingUser, given, merged, submitted

QUICK = ("--word-delay", "0", "--reply", "ok")
SEEDS = range(int(os.environ.get("SYNAPSE_TEST_SEEDS", "2")))
MESSAGES = ("a message", "ein längerer Text, " * 30, "two\nlines", "日本語のメッセージ 👍🏽", "x" * 3000)
PASTE = "\x1b[200~1\x1b[201~"
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs the terminals of Linux")
MOMENTS = (DeliveryState.TYPING, DeliveryState.SUBMITTING, DeliveryState.SUBMITTED)


async def type_at_moments(
    rig: Rig, user: TypingUser, chance: random.Random, texts: list[str], turn: str = ""
) -> None:
    """Send messages one after the other, each into a turn if there is to be one; type at a moment of each."""
    for text in texts:
        if turn:
            rig.send(turn)
            await rig.state(AgentState.PROCESSING)
        task = rig.send(text, 4)
        moment = chance.choice(MOMENTS)
        reached = [moment, DeliveryState.DONE, DeliveryState.CANCELED]
        await until(lambda at=task.id, to=reached: rig.session.tasks.get(at).delivery in to, moment)  # type: ignore[misc]
        await asyncio.sleep(chance.choice((0.0, 0.005, 0.02, 0.06)))
        await user.burst()
        await user.finish()
        await rig.done(task)


def stop(pid: int) -> None:
    """Stop a process, and wait until it is."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


@linux
async def test_a_suspended_agent_is_shown_and_continued_and_gets_its_messages_then(tmp_path):
    async with open_rig(tmp_path, "--word-delay", "0") as rig:
        await rig.ready()
        first = rig.send("%%slow:2%% one")
        await rig.state(AgentState.PROCESSING)
        os.kill(rig.session.console.process.pid, signal.SIGSTOP)
        await rig.state(AgentState.SUSPENDED)
        second = rig.send("two")
        await rig.delivery(second, DeliveryState.HELD, "agent is suspended")
        assert rig.session.go_on()
        await rig.done(first)
        await rig.done(second)
        assert rig.submitted == ["%%slow:2%% one", "two"]
        await rig.ready()
        await asyncio.to_thread(stop, rig.session.console.process.pid)  # by another hand, at rest
        third = rig.send("three")
        await rig.delivery(third, DeliveryState.HELD, "agent is suspended")
        assert rig.session.go_on()
        await rig.done(third)
        assert not rig.session.go_on(), "it runs"
        await rig.ready()
        await asyncio.sleep(2 * STOP_LOOK)  # nothing happens here meanwhile
        os.kill(rig.session.console.process.pid, signal.SIGSTOP)
        await rig.state(AgentState.SUSPENDED)
        os.kill(rig.session.console.process.pid, signal.SIGCONT)
        await rig.ready()


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_user_who_types_at_any_moment(tmp_path, seed):
    chance = random.Random(seed)
    texts = [f"{chance.choice(MESSAGES)} {number}" for number in range(4)]
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        user = TypingUser(rig, chance)
        await type_at_moments(rig, user, chance, texts)
        typed = user.typed()
        await until(lambda: len(submitted(rig.records())[0]) >= len(typed.submitted), "the user's last line")
        records = rig.records()
        assert given(records) == typed.items
        assert submitted(records) == (typed.submitted, texts)
        assert merged(records) == []


@pytest.mark.parametrize("seed", SEEDS[: len(SEEDS) // 2])
async def test_a_user_who_types_while_messages_come_into_turns(tmp_path, seed):
    chance, turn = random.Random(seed), "%%hang:1%%"
    texts = [f"{chance.choice(MESSAGES)} {number}" for number in range(3)]
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        user = TypingUser(rig, chance)
        await type_at_moments(rig, user, chance, texts, turn)
        typed = user.typed()
        await until(lambda: len(submitted(rig.records())[0]) >= len(typed.submitted), "the user's last line")
        lines, messages = submitted(rig.records())
        assert given(rig.records()) == typed.items
        assert lines == typed.submitted
        assert [message for message in messages if message != turn] == texts
        assert merged(rig.records()) == []


async def test_keys_that_were_held_back_come_as_typed_and_not_as_a_paste(tmp_path):
    """Agents without bracketed paste in their minds take keys that come at once for one."""
    async with open_rig(tmp_path, *QUICK, "--burst", "100") as rig:
        task = rig.send("a message")
        await rig.delivery(task, DeliveryState.TYPING)
        for key in "mine":
            rig.type(key)
        await asyncio.sleep(0.12)
        rig.type("\r")
        await until(lambda: len(rig.submitted) == 2, "the user's line")
        assert rig.submitted == ["a message", "mine"]


async def test_an_escape_that_was_held_back_is_no_part_of_the_next_key(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        task = rig.send("a message")
        await rig.delivery(task, DeliveryState.TYPING)
        rig.type("\x1b")
        await asyncio.sleep(0.05)
        rig.type("b")
        await rig.draft("b")
        assert rig.submitted == ["a message"]


async def test_a_key_typed_right_after_an_answer_is_not_mixed_with_the_message(tmp_path):
    async with open_rig(tmp_path, *QUICK, "--dialog-after-paste", "0") as rig:
        task = await rig.delivery(rig.send("under a dialog"), DeliveryState.HELD, "permission dialog open")
        await rig.answer("\x1b")
        for key in "mine":
            rig.type(key)
        await rig.done(task)
        await rig.draft("mine")
        assert merged(rig.records()) == []
        assert rig.submitted == ["under a dialog"]
        assert [record["key"] for record in rig.records("dialog-answer")] == ["escape"]


@pytest.mark.parametrize("gap", [0.06, 0.0])
async def test_typing_goes_on_as_a_dialog_opens_and_does_not_answer_it(tmp_path, gap):
    async with open_rig(tmp_path, *QUICK, "--dialog-after-paste", "20") as rig:
        task = await rig.delivery(rig.send("under a dialog"), DeliveryState.HELD, "permission dialog open")
        line = "please rename it"
        for piece in (*line, "\r") if gap else (f"{line}\r",):
            rig.type(piece)
            await asyncio.sleep(gap)
        await rig.answer("\x1b")
        await until(lambda: len(rig.submitted) == 2, "the user's line")
        await rig.done(task)
        assert answers(rig) == ["escape"]
        assert rig.submitted == ["under a dialog", line]


def answers(rig: Rig) -> list[str]:
    return [record.get("text") or record["key"] for record in rig.records("key") if "dialog" in record]


@pytest.mark.parametrize("announced", ["0", "400"])
async def test_a_dialog_in_a_turn_does_not_take_the_draft_that_is_being_typed(tmp_path, announced):
    async with open_rig(tmp_path, *QUICK, "--announce", announced) as rig:
        await rig.ready()
        rig.type("%%hang:1%% %%perm:make all%%\r")
        await rig.state(AgentState.PROCESSING)
        line = ""
        while len(line) < 400 and not rig.session.reading().dialog:
            line += "a"
            rig.type("a")
            await asyncio.sleep(0.05)
        line += "s, please"
        rig.type("s, please")
        rig.type("\r")
        [notice] = [event for event in rig.heard if isinstance(event, Notice)]
        assert notice.agent_id == rig.session.agent_id
        assert notice.dialog
        assert notice.text.startswith("Pause, then answer")
        await rig.answer("\x1b[B")
        rig.type("\r")
        await until(lambda: len(rig.submitted) == 2, "the user's line")
        assert answers(rig) == ["down", "enter"]
        assert rig.submitted[1] == line


async def test_an_agent_that_announces_a_dialog_and_draws_none_gets_what_is_typed(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "ASKS", 1.0)
    async with open_rig(tmp_path, *QUICK, "--announce", "60000") as rig:
        await rig.ready()
        rig.type("%%perm:make all%%\r")
        await rig.state(AgentState.WAITING)
        rig.type("y")
        assert rig.session.keyboard.held == (b"y",)
        await until(lambda: not rig.session.console.announces_dialog, "the end of the announcement")
        await asyncio.sleep(2 * DELIBERATE)
        rig.type("\x1b[B")
        rig.type("\r")
        await rig.draft("y")
        assert answers(rig) == ["down", "enter"]


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped agent stands for a busy one: nothing sees that it is stopped."""
    monkeypatch.setattr(AgentConsole, "look_for_stop", lambda _console: None)


@asynccontextmanager
async def stopped(rig: Rig) -> AsyncIterator[None]:
    """Let the agent do nothing meanwhile; what is sent to it lies in its terminal."""
    pid = rig.session.pid
    os.kill(pid, signal.SIGSTOP)
    await until(
        lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "its stop"
    )
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@linux
@pytest.mark.parametrize("lag", ["0", "30"])
@pytest.mark.parametrize(
    ("keys", "left"),
    [(("a",), "a"), (("1",), "1"), (("y", "e", "s"), "yes"), ((PASTE,), "1"), (("\r",), ""), (("\x1b",), "")],
)
@pytest.mark.usefixtures("busy")
async def test_a_key_that_a_busy_agent_has_not_read_does_not_answer_its_dialog(tmp_path, keys, left, lag):
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        async with stopped(rig):
            os.kill(rig.session.pid, signal.SIGUSR1)  # it draws the dialog, and reads its keys then
            for key in keys:
                rig.type(key)
                await asyncio.sleep(float(lag) / 1000)
        await rig.answer("\x1b[B")
        rig.type("\x1b")
        await until(lambda: rig.records("dialog-answer"), "the answer")
        await rig.draft(left)
        assert answers(rig) == ["down", "escape"]
        assert not [paste for paste in rig.records("paste") if "dialog" in paste]


@linux
@pytest.mark.parametrize("options", [(), ("--no-paste",)])
@pytest.mark.parametrize("text", ["1", "x" * 3000])
@pytest.mark.usefixtures("busy")
async def test_a_message_that_a_busy_agent_has_not_read_does_not_answer_its_dialog(tmp_path, text, options):
    async with open_rig(tmp_path, *QUICK, *options) as rig:
        await rig.ready()
        async with stopped(rig):
            task = rig.send(text)
            await until(lambda: rig.session.console.unread, "the text in the terminal")
            os.kill(rig.session.pid, signal.SIGUSR1)
        await rig.delivery(task, DeliveryState.HELD, "permission dialog open")
        await rig.answer("\x1b")
        await rig.done(task)
        assert answers(rig) == ["escape"]
        assert not [paste for paste in rig.records("paste") if "dialog" in paste]
        assert rig.submitted == [text]


LOOP = """
import os, select, time, tty
tty.setraw(0)
os.write(1, b"begun;")
while True:
    {draws}
    time.sleep({seconds})
    {draws}
    if select.select([0], [], [], 0)[0]:
        os.write(1, b"got %s;" % os.read(0, 99))
"""


@linux
@pytest.mark.parametrize("draws", ["os.write(1, b'.\\b')", "pass"])
@pytest.mark.parametrize("seconds", [0.005, 0.3])
async def test_a_program_that_draws_before_it_reads_gets_its_keys_in_order(tmp_path, draws, seconds):
    code = LOOP.format(draws=draws, seconds=seconds)
    async with open_rig(tmp_path, profile=with_profile(command=sys.executable, args=("-c", code))) as rig:
        await until(lambda: "begun;" in rig.session.console.screen_text(), "its start")
        for key in "abc":
            rig.type(key)
            await until(lambda: f"got {key};" in rig.session.console.screen_text(), key)  # noqa: B023 - awaited here
        assert not rig.session.keyboard.holding


@linux
async def test_a_key_that_becomes_a_signal_reaches_a_program_that_does_not_read(tmp_path):
    code = "import tty, time; tty.setcbreak(0); print('begun', flush=True)\nwhile True: pass"
    async with open_rig(tmp_path, profile=with_profile(command=sys.executable, args=("-c", code))) as rig:
        await until(lambda: "begun" in rig.session.console.screen_text(), "its start")
        rig.type("a")
        rig.type("\x03")
        await rig.state(AgentState.EXITED)


@linux
@pytest.mark.usefixtures("busy")
async def test_a_key_that_is_on_its_way_is_handed_over(tmp_path):
    async with open_rig(tmp_path, *QUICK) as first:
        await first.ready()
        async with stopped(first):
            for key in "mine":
                first.type(key)
            handover = Handover("test", agents=(await first.session.hand_over(),))
        agent = Handover.read(handover.write()).agents[0]
        second = Rig(tmp_path, adopted=read_handover(agent))
        second.session.start(agent.columns, agent.lines)
        try:
            await second.draft("mine")
            assert [record["text"] for record in second.records("key")] == list("mine")
        finally:
            await second.session.stop()


@linux
@pytest.mark.usefixtures("busy")
async def test_an_interrupt_goes_before_a_key_that_is_on_its_way(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        rig.type("%%hang:60%%\r")
        await rig.state(AgentState.PROCESSING)
        async with stopped(rig):
            rig.type("x")
            interrupt = asyncio.create_task(rig.session.interrupt())
            keyboard, console = rig.session.keyboard, rig.session.console
            await until(lambda: keyboard.waiting_since is not None and console.unread, "the interrupt")
        assert (await interrupt).stopped
        await rig.draft("x")
        keys = [record.get("text") or record["key"] for record in rig.records("key")]
        assert keys[-2:] == ["escape", "x"]


@linux
@pytest.mark.usefixtures("busy")
async def test_an_agent_that_ends_with_a_key_unread(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        async with stopped(rig):
            rig.type("a")
            os.kill(rig.session.pid, signal.SIGKILL)
        await rig.state(AgentState.EXITED)


@pytest.mark.parametrize("working", [False, True])
async def test_a_menu_that_the_user_opens_takes_every_key_at_once(tmp_path, working):
    async with open_rig(tmp_path, *QUICK, "--while-working", "steer") as rig:
        await rig.ready()
        if working:
            rig.type("%%hang:60%%\r")
            await rig.state(AgentState.PROCESSING)
        for key in "/menu":
            rig.type(key)
        await rig.draft("/menu")
        rig.type("\r")
        await until(lambda: rig.session.reading().dialog, "the menu")
        for key in ("\x1b[B", "\x1b[B", "\r"):
            rig.type(key)
        await until(lambda: rig.records("dialog-answer"), "the answer")
        assert rig.records("dialog-answer")[0]["answer"] == "third"
        assert answers(rig) == ["down", "down", "enter"]


async def test_the_dialog_after_a_dialog_is_not_answered_by_the_next_key(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.ready()
        for _ in range(2):
            os.kill(rig.session.pid, signal.SIGUSR1)
            await asyncio.sleep(0.1)  # signals of one kind that wait are one
        await rig.answer("1")
        for key in "go on\r":
            rig.type(key)
            await asyncio.sleep(0.05)
        await rig.answer("3")
        await until(lambda: rig.submitted, "the user's line")
        assert answers(rig) == ["1", "3"]
        assert rig.submitted == ["go on"]


async def test_a_message_under_a_dialog_and_the_keys_behind_it_are_handed_over(tmp_path):
    async with open_rig(tmp_path, *QUICK, "--dialog-after-paste", "30") as first:
        task = first.send("under a dialog")
        await first.delivery(task, DeliveryState.TYPING)
        first.type("mi")
        await first.delivery(task, DeliveryState.HELD, "permission dialog open")
        first.type("ne")
        first.type("\r")
        handover = Handover("test", agents=(await first.session.hand_over(),))
        agent = Handover.read(handover.write()).agents[0]
        second = Rig(tmp_path, adopted=read_handover(agent))
        second.session.start(agent.columns, agent.lines)
        try:
            await second.state(AgentState.WAITING)
            await second.answer("\x1b")
            await second.done(task)
            await until(lambda: len(second.submitted) == 2, "the user's line")
            assert second.submitted == ["under a dialog", "mine"]
            assert len(second.records("paste")) == 1
        finally:
            await second.session.stop()
