"""Messages of priority 4 to an agent that works: it queues them, or is steered by them."""

import dataclasses

import pytest

from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from tests.integration.session_rig import Rig, open_rig, until, with_profile

QUICK = ("--word-delay", "0")


def steered() -> Profile:
    return with_profile(working_input="steer")


async def into_turn(rig: Rig, text: str = "and this") -> str:
    """Send a message into the turn that runs; gives its id when the agent has it."""
    task = rig.send(text, 4)
    await rig.delivery(task, DeliveryState.SUBMITTED)
    return task.id


def modes(rig: Rig) -> list[str]:
    return [record["mode"] for record in rig.records("submit")]


async def test_a_message_is_queued_by_the_agent_and_has_the_next_turn(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        first = rig.send("%%slow:2%% first")
        await rig.state(AgentState.PROCESSING)
        second = await into_turn(rig)
        assert rig.session.report.state is AgentState.PROCESSING
        assert rig.session.tasks.get(first.id).state is TaskState.WORKING
        assert rig.session.tasks.get(second).state is TaskState.SUBMITTED
        answers = [
            (await rig.done(rig.session.tasks.get(task))).artifacts[0].text for task in (first.id, second)
        ]
        assert modes(rig) == ["now", "queue"]
        assert answers[0].endswith("END-OF-SLOW")
        assert "and this" not in answers[0]
        assert answers[1].startswith("synapse-claude-8100 says: and this")
        assert "slow line" not in answers[1]


async def test_the_first_turn_ends_when_the_queued_one_begins(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        first = rig.send("%%slow:1%% first")
        await rig.state(AgentState.PROCESSING)
        second = await into_turn(rig, "%%hang:60%% second")
        assert (await rig.done(first)).state is TaskState.COMPLETED
        assert rig.session.tasks.get(second).state is TaskState.WORKING
        assert rig.session.turns.running == second
        await rig.session.cancel(second)
        assert rig.session.tasks.get(second).state is TaskState.CANCELED


async def test_a_message_that_steers_ends_with_the_turn(tmp_path):
    async with open_rig(tmp_path, *QUICK, "--while-working", "steer", profile=steered()) as rig:
        first = rig.send("%%slow:60%% first")
        await rig.state(AgentState.PROCESSING)
        second = await into_turn(rig)
        for task in (first.id, second):
            assert (await rig.done(rig.session.tasks.get(task))).state is TaskState.COMPLETED
        answers = [rig.session.tasks.get(task).artifacts[0].text for task in (first.id, second)]
        assert all("says: and this" in answer for answer in answers)
        assert not any("[A2A:" in answer for answer in answers)
        assert modes(rig) == ["now", "steer"]


@pytest.mark.parametrize(("priority", "profile"), [(3, None), (4, with_profile(working_input="hold"))])
async def test_other_messages_and_other_agents_wait(tmp_path, priority, profile):
    async with open_rig(tmp_path, *QUICK, profile=profile) as rig:
        first = rig.send("%%slow:1%% first")
        await rig.state(AgentState.PROCESSING)
        task = rig.send("later", priority)
        await rig.delivery(task, DeliveryState.HELD, "working")
        await rig.until_ended(first, task)
        assert modes(rig) == ["now", "now"]


async def test_a_draft_and_a_dialog_hold_it_all_the_same(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        rig.send("%%hang:1%% %%perm:make all%%")
        await rig.state(AgentState.PROCESSING)
        rig.type("mine")
        await rig.draft("mine")
        task = await rig.delivery(rig.send("and this", 4), DeliveryState.HELD, "you have a draft")
        await rig.delivery(task, DeliveryState.HELD, "permission dialog open")
        assert [record for record in rig.records("key") if record.get("dialog")] == []
        await rig.answer("\x1b")
        await until(lambda: rig.records("dialog-answer"), "the answer")
        rig.type("\x15")
        await rig.done(task)


async def test_an_agent_without_a_rest_is_neither_typed_into_nor_pressed(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        first = rig.send("%%flood:2%%")
        await rig.state(AgentState.PROCESSING)
        task = rig.send("and this", 4)
        await rig.until_ended(first, task)
        assert rig.submitted == ["%%flood:2%%", "and this"]
        assert [record["event"] for record in rig.records() if record["event"] in ("paste", "turn-end")] == [
            "paste", "turn-end", "paste", "turn-end"
        ]  # fmt: skip
        assert {rig.session.tasks.get(sent.id).state for sent in (first, task)} == {TaskState.COMPLETED}


async def test_what_an_interrupt_gives_back_unread_is_sent_again_once(tmp_path):
    profile = with_profile()
    interrupt = dataclasses.replace(profile.interrupt, restores_draft=True)
    profile = dataclasses.replace(profile, interrupt=interrupt)
    async with open_rig(tmp_path, *QUICK, "--requeue-on-interrupt", profile=profile) as rig:
        first = rig.send("%%hang:60%% first")
        await rig.state(AgentState.PROCESSING)
        queued = await into_turn(rig)
        urgent = rig.send("stop that", 5)
        await rig.done(urgent)
        await rig.done(rig.session.tasks.get(queued))
        assert rig.session.tasks.get(first.id).state is TaskState.CANCELED
        assert rig.session.tasks.get(queued).state is TaskState.COMPLETED
        turns = [record["text"].partition("] ")[2] for record in rig.records("turn")]
        assert turns == ["%%hang:60%% first", "stop that", "and this"]


async def prompt(rig: Rig, text: str) -> None:
    """Write something at the keyboard that is no message."""
    rig.type(text)
    await rig.draft(text)
    rig.type("\r")
    await rig.draft("")


async def test_an_interrupt_of_what_the_user_asked_is_none_of_what_is_queued_behind_it(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        await rig.state(AgentState.READY)
        await prompt(rig, "%%hang:60%% mine")
        await rig.state(AgentState.PROCESSING)
        queued = await into_turn(rig)
        assert (await rig.session.interrupt()).stopped
        answered = await rig.done(rig.session.tasks.get(queued))
        assert answered.state is TaskState.COMPLETED
        assert answered.artifacts[0].text.startswith("synapse-claude-8100 says: and this")


async def test_an_interrupt_stops_one_turn_and_not_what_is_queued_behind_it(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        for number in range(4):
            first = rig.send(f"%%hang:60%% first {number}")
            await rig.state(AgentState.PROCESSING)
            await prompt(rig, f"%%hang:60%% mine {number}")
            outcome = await rig.session.interrupt()
            assert outcome.stopped
            assert outcome.seconds < 1.5, "the key was pressed once"
            await rig.done(first)
            stopped = rig.session.tasks.get(first.id)
            assert stopped.state is TaskState.CANCELED
            assert not any("Working" in each.text or "queued" in each.text for each in stopped.artifacts)
            await rig.state(AgentState.PROCESSING)
            assert (await rig.session.interrupt()).stopped
            await rig.state(AgentState.READY)


@pytest.mark.parametrize("before", ["", "%%slow:1%% mine first"])
async def test_a_turn_is_over_when_what_the_user_queued_behind_it_begins(tmp_path, before):
    async with open_rig(tmp_path, *QUICK) as rig:
        if before:
            await rig.state(AgentState.READY)
            await prompt(rig, before)
            await rig.state(AgentState.PROCESSING)
            task = rig.session.tasks.get(await into_turn(rig, "first"))
        else:
            task = rig.send("%%slow:1%% first")
            await rig.state(AgentState.PROCESSING)
        await prompt(rig, "%%hang:60%% mine")
        answered = await rig.done(task)
        assert answered.state is TaskState.COMPLETED
        assert rig.session.report.state is AgentState.PROCESSING
        assert "first" in answered.artifacts[0].text or answered.artifacts[0].text.endswith("END-OF-SLOW")
        assert "mine" not in answered.artifacts[0].text


async def test_a_message_behind_what_the_user_queued_has_its_own_turn(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        first = rig.send("%%slow:1%% first")
        await rig.state(AgentState.PROCESSING)
        await prompt(rig, "%%slow:2%% mine")
        last = await into_turn(rig)
        await rig.done(first)
        assert rig.session.tasks.get(last).state is TaskState.SUBMITTED
        assert rig.session.turns.queues(last)
        answered = await rig.done(rig.session.tasks.get(last))
        assert answered.artifacts[0].text.startswith("synapse-claude-8100 says: and this")


async def test_a_message_in_the_agents_queue_cannot_be_canceled(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        rig.send("%%slow:2%% first")
        await rig.state(AgentState.PROCESSING)
        queued = await into_turn(rig)
        refused = await rig.session.cancel(queued)
        assert (refused.state, refused.reason) == (
            TaskState.SUBMITTED,
            "not canceled: it waits in the agent's own queue",
        )
        assert (await rig.done(refused)).state is TaskState.COMPLETED


async def test_an_agent_that_ends_fails_both(tmp_path):
    async with open_rig(tmp_path, *QUICK) as rig:
        first = rig.send("%%hang:1%% %%exit:3%%")
        await rig.state(AgentState.PROCESSING)
        second = await into_turn(rig)
        await until(lambda: rig.session.exit, "the end")
        await rig.until_ended(first, rig.session.tasks.get(second))
        assert {rig.session.tasks.get(task).state for task in (first.id, second)} == {TaskState.FAILED}
