"""Long messages: whole, also to agents that read slowly, and what comes in the middle of one."""

import asyncio
import os
import signal

import pytest

from synapse_tui.agents.console import AgentConsole
from synapse_tui.agents.delivery import typist
from synapse_tui.core.model import DeliveryState, Task, TaskState
from synapse_tui.messages.reasons import Reason
from tests.integration.session_rig import Rig, open_rig, until

QUICK = ("--word-delay", "0", "--reply", "ok")
LONG = "\n".join(
    f"{number} 長いメッセージの行、絵文字 👍🏽 👩‍💻 🇯🇵 ⚠️, e\u0301 and ASCII {number * 7919}"
    for number in range(1100)
)
assert len(LONG.encode()) > 100_000
HALF = LONG[:20_000]
"""More than a terminal takes without being read."""
SLOWLY = ("--read-rate", "150")
"""So many kB a second: the message takes most of a second."""


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped agent stands for a busy one here: nothing sees that it is stopped."""
    monkeypatch.setattr(AgentConsole, "look_for_stop", lambda _console: None)


async def in_the_middle(rig: Rig) -> None:
    """Wait until a part of a message has been written, and not all of it."""
    await rig.ready()
    process = rig.session.console.process
    await until(lambda: process.pending or process.unread, "the middle of the message")


async def unread(rig: Rig, text: str, keys: str = "") -> Task:
    """Send a message, and type keys, to an agent that reads nothing; wait until that is noticed."""
    await rig.ready()
    os.kill(rig.session.pid, signal.SIGSTOP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typist, "APPEAR", 0.5)
        patch.setattr(typist, "TAKES_IN", 2.0)
        task = rig.send(text)
        for key in keys:
            await asyncio.sleep(0.02)
            rig.type(key)
        await until(lambda: rig.session.tasks.get(task.id).reason == Reason.UNREAD, "that it does not read")
    return task


async def test_a_slow_reader_gets_all_of_it_once(tmp_path):
    async with open_rig(tmp_path, *QUICK, *SLOWLY) as rig:
        done = await rig.done(rig.send(LONG))
        assert done.state is TaskState.COMPLETED
        assert rig.submitted == [LONG]


async def test_one_that_is_canceled_in_the_middle_is_never_submitted(tmp_path):
    async with open_rig(tmp_path, *QUICK, *SLOWLY) as rig:
        task = rig.send(LONG)
        await in_the_middle(rig)
        canceled = await rig.session.cancel(task.id)
        assert (canceled.state, canceled.reason) == (TaskState.CANCELED, "canceled")
        assert rig.session.reading().empty
        await rig.done(rig.send("after it"))
        assert rig.submitted == ["after it"]


async def test_one_makes_way_for_one_that_interrupts_and_follows_it_whole(tmp_path):
    async with open_rig(tmp_path, *QUICK, *SLOWLY) as rig:
        task = rig.send(LONG)
        await in_the_middle(rig)
        urgent = rig.send("urgent", 5)
        await rig.done(urgent)
        await rig.done(task)
        assert rig.submitted == ["urgent", LONG]


async def test_a_user_who_types_in_the_middle(tmp_path):
    async with open_rig(tmp_path, *QUICK, *SLOWLY) as rig:
        task = rig.send(LONG)
        await in_the_middle(rig)
        for key in "mine\r":
            rig.type(key)
        await until(lambda: len(rig.submitted) == 2, "both")
        await rig.done(task)
        assert sorted(rig.submitted) == sorted(["mine", LONG])


async def test_nothing_is_typed_behind_one_that_is_not_read(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        first = await unread(rig, HALF)
        second = rig.send("second")
        await rig.delivery(second, DeliveryState.HELD, Reason.UNREAD)
        os.kill(rig.session.pid, signal.SIGCONT)
        for task in (first, second):
            assert (await rig.done(task)).state is TaskState.COMPLETED
        assert rig.submitted == [HALF, "second"]


async def test_a_short_one_that_is_not_read_is_typed_once(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        await unread(rig, "short", "mine\r")
        await asyncio.sleep(0.5)  # in which it might be typed again
        os.kill(rig.session.pid, signal.SIGCONT)
        await until(lambda: len(rig.submitted) == 2, "both")
        assert sorted(rig.submitted) == ["mine", "short"]


async def test_one_that_is_not_read_is_taken_out_when_it_was_canceled_meanwhile(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        task = await unread(rig, HALF)
        assert (await rig.session.cancel(task.id)).state is TaskState.CANCELED
        os.kill(rig.session.pid, signal.SIGCONT)
        await rig.done(rig.send("after it"))
        assert rig.submitted == ["after it"]


async def test_an_agent_that_is_killed_in_the_middle_gets_it_when_it_was_restarted(tmp_path):
    async with open_rig(tmp_path, *QUICK, *SLOWLY) as rig:
        task = rig.send(LONG)
        await in_the_middle(rig)
        os.kill(rig.session.pid, signal.SIGKILL)
        await rig.delivery(task, DeliveryState.HELD, "agent exited")
        await rig.session.restart()
        await rig.done(task)
        assert rig.submitted == [LONG]
