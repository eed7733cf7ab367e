"""Priority 5 and interrupts, with the dummy agent in a real PTY."""

import dataclasses

import pytest

from synapse_tui.core.model import AgentState, DeliveryState, TaskState
from synapse_tui.messages.reasons import Reason
from tests.integration.session_rig import open_rig, until, verified_in, with_profile


@pytest.mark.parametrize("turn", ["%%slow:60%%", "%%hang:60%%"])
async def test_priority_5_stops_the_turn_and_is_delivered(tmp_path, turn):
    async with open_rig(tmp_path) as rig:
        running = rig.send(turn)
        await rig.state(AgentState.PROCESSING)
        urgent = rig.send("stop that", 5)
        await until(lambda: rig.records("interrupt"), "the interrupt")
        await rig.done(urgent)
        stopped = rig.session.tasks.get(running.id)
        assert (stopped.state, stopped.reason) == (TaskState.CANCELED, "interrupted by synapse-claude-8100")
        assert rig.submitted == [turn, "stop that"]
        assert len(rig.records("interrupt")) == 1
        assert rig.session.exit is None


async def test_priority_5_dismisses_a_dialog_and_never_approves_it(tmp_path):
    async with open_rig(tmp_path) as rig:
        first = rig.send("%%run:touch made%%")
        await rig.state(AgentState.WAITING)
        urgent = rig.send("no", 5)
        await rig.done(urgent)
        assert [record["answer"] for record in rig.records("dialog-answer")] == ["denied"]
        assert not (tmp_path / "made").exists()
        assert rig.session.tasks.get(first.id).state is TaskState.CANCELED
        assert rig.submitted[-1] == "no"


async def test_a_users_draft_holds_the_typing_but_not_the_interrupt(tmp_path):
    async with open_rig(tmp_path) as rig:
        rig.send("%%hang:60%%")
        await rig.state(AgentState.PROCESSING)
        rig.type("half a line")
        await rig.draft("half a line")
        urgent = rig.send("urgent", 5)
        await until(lambda: rig.records("interrupt"), "the interrupt")
        await rig.delivery(urgent, DeliveryState.HELD, "you have a draft")
        assert rig.session.reading().draft == "half a line"
        rig.type("\x15")
        await rig.done(urgent)
        assert rig.submitted[-1] == "urgent"


async def test_text_that_the_agent_puts_back_is_cleared(tmp_path):
    profile = with_profile()
    profile = dataclasses.replace(
        profile, interrupt=dataclasses.replace(profile.interrupt, restores_draft=True)
    )
    async with open_rig(tmp_path, "--requeue-on-interrupt", profile=profile) as rig:
        rig.send("%%hang:60%% with a text")
        await rig.state(AgentState.PROCESSING)
        urgent = rig.send("urgent", 5)
        await rig.done(urgent)
        assert rig.submitted == ["%%hang:60%% with a text", "urgent"]


async def test_escape_at_the_keyboard_cancels_the_task(tmp_path):
    async with open_rig(tmp_path) as rig:
        task = rig.send("%%hang:60%%")
        await rig.state(AgentState.PROCESSING)
        rig.type("\x1b")
        done = await rig.done(task)
        assert (done.state, done.reason) == (TaskState.CANCELED, "interrupted at the keyboard")


async def test_priority_5_while_a_dialog_covers_another_message(tmp_path):
    async with open_rig(tmp_path, "--dialog-after-paste", "0") as rig:
        covered = await rig.delivery(rig.send("covered"), DeliveryState.HELD, "permission dialog open")
        await rig.state(AgentState.WAITING)
        urgent = rig.send("urgent", 5)
        await until(lambda: len(rig.records("dialog-answer")) == 1, "the dialog to be dismissed")
        await rig.dismiss_until_done(urgent)
        await rig.dismiss_until_done(covered)
        assert rig.submitted == ["urgent", "covered"]
        assert {record["answer"] for record in rig.records("dialog-answer")} == {"denied"}


@pytest.mark.parametrize(
    ("text", "state", "reason"),
    [
        ("%%perm:make all%%", AgentState.WAITING, "denies its open dialog first"),
        ("%%hang:60%%", AgentState.PROCESSING, "interrupts it first"),
    ],
)
async def test_the_receipt_of_priority_5_says_what_it_does(tmp_path, text, state, reason):
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        rig.send(text)
        await rig.state(state)
        urgent = rig.send("stop it", 5)
        assert (urgent.delivery, urgent.reason) == (DeliveryState.QUEUED, reason)
        assert rig.send("and that").reason in ("another message goes first", Reason.BEHIND)
        assert rig.session.tasks.get(urgent.id).reason == reason
        await rig.done(urgent)


async def test_an_agent_that_starts_gets_no_interrupt_key(tmp_path):
    async with open_rig(tmp_path, "--startup", "1") as rig:
        outcome = await rig.session.interrupt()
        assert (outcome.stopped, outcome.alive, outcome.reason) == (
            False,
            True,
            "the agent has not started yet",
        )
        await rig.done(rig.send("urgent", 5))
        assert rig.submitted == ["urgent"]
        assert [record for record in rig.records("key") if record["key"] == "escape"] == []


@pytest.mark.parametrize("left", [False, True])
async def test_priority_5_passes_a_message_that_the_agent_did_not_take_into_its_turn(tmp_path, left):
    profile = verified_in(1.0 if left else 3.0)  # long enough for the urgent message on a busy machine
    async with open_rig(tmp_path, "--while-working", "ignore", profile=profile) as rig:
        await rig.ready()
        running = rig.send("%%hang:60%%")
        await rig.state(AgentState.PROCESSING)
        before = len(rig.records("key"))
        ignored = rig.send("ignored", 4)
        if left:
            told = f"agent did not take Enter; {Reason.LEFT_IN}"
            await rig.delivery(ignored, DeliveryState.HELD, told)
        else:
            # Not its state: that changes before Enter is pressed, and without Enter nothing is uncertain.
            await until(lambda: len(rig.records("key")) > before, "Enter")
        await rig.done(rig.send("urgent", 5))
        assert rig.session.tasks.get(running.id).state is TaskState.CANCELED
        assert rig.submitted == ["%%hang:60%%", "urgent"]
        assert rig.session.reading().empty
        parked = rig.session.tasks.get(ignored.id)
        assert parked.delivery is DeliveryState.HELD
        assert parked.reason.endswith("something urgent goes first")


@pytest.mark.parametrize("draft", ["", "half"])
async def test_what_waits_while_keys_are_sent_is_looked_at_again(tmp_path, draft):
    """An interrupt, or an answer to a dialog, holds the user's keys; nothing else may happen after it."""
    async with open_rig(tmp_path) as rig:
        await rig.ready()
        if draft:
            rig.type(draft)
            await rig.draft(draft)
        keyboard = rig.session.keyboard
        async with rig.session.delivery.busy:
            keyboard.hold()
            task = rig.send("later")
            await until(lambda: rig.session.tasks.get(task.id).delivery is DeliveryState.HELD, "it waits")
            assert rig.session.tasks.get(task.id).reason == "something else is typed first"
            keyboard.release()
        if draft:
            await until(lambda: rig.session.tasks.get(task.id).reason == Reason.DRAFT, "the true reason")
        else:
            await rig.done(task)
