"""The watch over an agent: what becomes of its task, its turns and its outbox."""

from __future__ import annotations

import pytest

from synapse_tui.agents.watch import CONTINUE_OR_REPLY, WatchState
from synapse_tui.agents.watcher import AT_KEYBOARD, AT_REST
from synapse_tui.core.errors import InvalidValue, MessageError, NotWatched, TaskNotFound
from synapse_tui.core.model import (
    INSTRUCTIONS,
    SYSTEM,
    AgentState,
    DeliveryState,
    MessageRequest,
    TaskState,
)
from tests.unit.watch_kit import CODEX, EVERY, WatchRig


@pytest.fixture
def rig() -> WatchRig:
    return WatchRig()


def working(rig: WatchRig, **order: object) -> str:
    """A watched task on which the agent works."""
    task = rig.send()
    rig.take(task.id)
    rig.begin(**order)
    return task.id


async def test_the_end_of_a_turn_does_not_end_the_task(rig):
    task_id = working(rig)
    rig.answer("half of it")
    task = rig.tasks.get(task_id)
    assert (task.state, task.delivery) == (TaskState.WORKING, DeliveryState.SUBMITTED)
    assert task.reason == "watched: 0 of 5 nudges"
    assert task.artifacts[0].text == "half of it"
    assert rig.turns.current is None


async def test_a_nudge_is_a_message_whose_turn_belongs_to_the_task(rig):
    task_id = working(rig)
    rig.answer("half of it")
    await rig.rest()
    (nudge,) = rig.waiting
    assert nudge.text == CONTINUE_OR_REPLY
    assert nudge.metadata == {"nudge": 1, "reference_task": task_id}
    assert rig.follow_ups.as_typed(nudge).id == task_id, "the agent is shown the task that it may reply to"
    rig.take(nudge.id)
    assert rig.tasks.get(nudge.id).state is TaskState.COMPLETED
    assert rig.turns.running == task_id
    assert rig.tasks.get(task_id).state is TaskState.WORKING
    rig.answer("the other half")
    assert rig.tasks.get(task_id).artifacts[0].text == "the other half"
    assert rig.tasks.get(task_id).reason == "watched: 1 of 5 nudges"


async def test_it_gives_up_sooner_when_nothing_comes_of_it(rig):
    working(rig)
    rig.answer("I am done")
    await rig.nudge("I am done", worked=2)
    await rig.nudge("I am done", worked=2)
    await rig.rest()
    assert rig.report.state is WatchState.GAVE_UP
    assert rig.report.sent == 2


async def test_an_error_of_the_agent_is_no_end(rig):
    task_id = working(rig)
    rig.become(AgentState.ERROR, "service overloaded")
    assert rig.tasks.get(task_id).state is TaskState.WORKING
    assert rig.tasks.get(task_id).reason == "service overloaded; watched: 0 of 5 nudges"
    await rig.rest()
    assert len(rig.waiting) == 1


async def test_the_persons_interrupt_is_one(rig):
    task_id = working(rig)
    rig.answer("half")
    await rig.rest()
    rig.take(rig.waiting[0].id)
    rig.turns.on_user_stop()
    rig.answer("stopped", after=1)
    await rig.step()
    assert rig.tasks.get(task_id).state is TaskState.CANCELED
    assert rig.report.state is WatchState.CANCELED
    assert not rig.waiting


@pytest.mark.parametrize("what", ["draft", "dialog", "message", "working"])
async def test_whatever_else_goes_on_stops_the_clock(rig, what):
    working(rig)
    rig.answer("half")
    await rig.rest(EVERY - 1)
    if what == "draft":
        rig.view.draft = "and"
    elif what == "dialog":
        rig.view.open_dialog()
    elif what == "message":
        rig.send("another")
    else:
        rig.view.set_state(AgentState.PROCESSING)
    await rig.rest(1000)
    assert not [task for task in rig.waiting if "nudge" in task.metadata]
    assert rig.report.left is None


async def test_a_nudge_that_waits_while_a_person_types_is_taken_back(rig):
    working(rig)
    rig.answer("half")
    await rig.rest()
    (nudge,) = rig.waiting
    rig.view.draft = "wait"
    await rig.step()
    assert not rig.waiting
    assert rig.tasks.get(nudge.id).state is TaskState.CANCELED
    assert rig.report.sent == 0
    rig.view.draft = ""
    await rig.rest()
    assert len(rig.waiting) == 1


async def test_one_that_is_being_typed_or_held_for_a_person_is_left_alone(rig):
    working(rig)
    rig.answer("half")
    await rig.rest()
    (nudge,) = rig.waiting
    rig.tasks.change(nudge.id, delivery=DeliveryState.TYPING)
    rig.view.keyboard.hold()
    await rig.step()
    assert rig.waiting
    rig.outbox.doubt(nudge.id)
    await rig.step()
    assert rig.waiting
    assert rig.said[-1] == "needs you: the nudge is held: uncertain whether it was sent"
    rig.outbox.cancel(nudge.id)
    await rig.step()
    assert rig.report.sent == 1, "what a person takes back counts"


async def test_stopped_at_rest_the_task_ends_with_what_it_has(rig):
    task_id = working(rig)
    rig.answer("half")
    await rig.rest()
    assert rig.waiting
    rig.watcher.stop("stopped by you")
    task = rig.tasks.get(task_id)
    assert (task.state, task.reason) == (TaskState.COMPLETED, "the watch was stopped by you")
    assert not rig.waiting, "its nudge is for nothing now"
    with pytest.raises(NotWatched):
        rig.watcher.stop()


async def test_stopped_at_work_the_task_ends_with_its_turn(rig):
    task_id = working(rig)
    rig.watcher.stop()
    assert rig.tasks.get(task_id).state is TaskState.WORKING
    rig.answer("all")
    assert rig.tasks.get(task_id).state is TaskState.COMPLETED


async def test_a_watch_over_a_message_that_waits_begins_when_it_is_taken(rig):
    rig.view.draft = "and"
    task = rig.send()
    assert rig.begin().task_id == task.id
    await rig.rest(1000)
    assert rig.waiting == [rig.tasks.get(task.id)]
    rig.view.draft = ""
    rig.take(task.id)
    rig.answer("half")
    await rig.rest()
    assert rig.waiting[0].metadata["reference_task"] == task.id


async def test_what_was_begun_at_the_keyboard_becomes_a_task(rig):
    rig.rows = ["> do it all", "working on it"]
    rig.become(AgentState.PROCESSING)
    task_id = rig.begin().task_id
    task = rig.tasks.get(task_id)
    assert (task.text, task.state) == (AT_KEYBOARD, TaskState.WORKING)
    assert rig.turns.running == task_id
    rig.view.time += 30
    rig.rows = ["> do it all", "working on it", "half is done"]
    rig.turns.on_output()
    rig.become(AgentState.READY)
    rig.view.time += 1
    rig.turns.check(rig.view.report)
    assert rig.tasks.get(task_id).state is TaskState.WORKING
    assert rig.tasks.get(task_id).artifacts[0].text == "half is done"


async def test_after_an_ended_task_another_goes_on_from_it(rig):
    first = rig.send()
    rig.take(first.id)
    rig.answer("half of it")
    assert rig.tasks.get(first.id).state is TaskState.COMPLETED
    task = rig.tasks.get(rig.begin(by=CODEX).task_id)
    assert task.id != first.id
    assert rig.tasks.get(first.id).state is TaskState.COMPLETED
    assert (task.state, task.text, task.sender) == (
        TaskState.WORKING,
        f"(goes on with: {first.text})",
        CODEX,
    ), "its own words: who watches has not written those of the message"
    assert task.metadata == {"reference_task": first.id, "kind": "watched"}
    assert task.artifacts == rig.tasks.get(first.id).artifacts
    await rig.rest()
    assert rig.waiting[0].sender == CODEX, "who asks for the watch is who nudges"


async def test_no_message_goes_on_that_was_canceled_while_it_waited(rig):
    rig.view.draft = "and"
    waiting = rig.send()
    rig.outbox.cancel(waiting.id, "canceled")
    assert rig.tasks.get(waiting.id).state is TaskState.CANCELED
    task = rig.tasks.get(rig.begin().task_id)
    assert (task.text, task.metadata) == (AT_REST, {"kind": "watched"})


async def test_what_was_typed_since_is_gone_on_with_and_no_earlier_message(rig):
    first = rig.send()
    rig.take(first.id)
    rig.answer("half of it")
    rig.view.time += 60
    rig.become(AgentState.PROCESSING)
    rig.view.time += 5
    rig.become(AgentState.READY)
    task = rig.tasks.get(rig.begin().task_id)
    assert (task.text, task.metadata) == (AT_REST, {"kind": "watched"}), "nothing tells what it was"


async def test_a_second_watch_names_the_same_message(rig):
    first = rig.send()
    rig.take(first.id)
    rig.answer("half of it")
    rig.begin()
    rig.watcher.stop()
    again = rig.tasks.get(rig.begin().task_id)
    assert again.text == f"(goes on with: {first.text})"


async def test_instructions_are_no_job(rig):
    told = rig.accept(MessageRequest("you are one of several", SYSTEM, metadata={"kind": INSTRUCTIONS}))
    rig.take(told.id)
    job = rig.send()
    assert rig.begin().task_id == job.id
    assert rig.turns.running == told.id, "their turn stays theirs"
    rig.answer("understood")
    assert rig.tasks.get(told.id).state is TaskState.COMPLETED
    rig.watcher.stop()
    rig.outbox.cancel(job.id)
    rig.begin()
    assert rig.tasks.get(rig.report.task_id).text == AT_REST, "nor is a message that was canceled"


async def test_what_cannot_be_watched(rig):
    ended = rig.send()
    rig.take(ended.id)
    rig.answer("all")
    with pytest.raises(MessageError, match="has ended"):
        rig.begin(task=ended.id)
    with pytest.raises(TaskNotFound):
        rig.begin(task="ffffffff")
    with pytest.raises(InvalidValue):
        rig.begin(every=0.0)
    rig.begin()
    with pytest.raises(MessageError, match="already"):
        rig.begin()
    with pytest.raises(MessageError, match="takes no messages"):
        WatchRig(receives=False).begin()


async def test_what_an_unknown_version_wrote_is_no_watch(rig, caplog):
    working(rig)
    newer = WatchRig()
    newer.watcher.resume(rig.handed_over() | {"steps": [{"number": "x"}]})
    newer.watcher.resume({})
    assert not newer.watcher.on
    assert "cannot be understood" in caplog.text


async def test_nobody_is_nudged_whose_question_waits_for_an_answer(rig):
    task_id = working(rig)
    rig.tasks.change(
        task_id, state=TaskState.INPUT_REQUIRED, delivery=DeliveryState.DONE, reason="which file?"
    )
    rig.answer("I have asked")
    await rig.rest()
    await rig.rest()
    assert (rig.waiting, rig.report.waits_for) == ([], "its question waits for an answer")
    assert rig.tasks.get(task_id).state is TaskState.INPUT_REQUIRED, "its turn is over, the task is not"
    rig.watcher.stop()
    assert not rig.tasks.get(task_id).state.final
