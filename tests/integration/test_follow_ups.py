"""Messages that go on with a task, questions of the agent itself, and what readers of a task see."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from synapse_tui.core.content import Part, TaskMessage, artifact_id
from synapse_tui.core.model import DeliveryState, MessageRequest, Reply, Sender, Task, TaskState
from synapse_tui.messages.task_stream import Chunk, Reader, TaskEvent, TaskSnapshot
from tests.integration.session_rig import Rig, open_rig, until
from tests.waiting import PATIENCE

CALLER = Sender("someone", "external")


@pytest.fixture
async def rig(tmp_path: Path):
    async with open_rig(tmp_path) as found:
        yield found


def follow(rig: Rig, task: Task, text: str, priority: int = 3) -> tuple[Task, Task]:
    """Send a message that goes on with a task."""
    message = TaskMessage(f"id of {text}", "user", (Part(text=text),))
    request = MessageRequest(text, CALLER, priority, message=message, follows=task.id)
    followed = rig.session.accept(request)
    return followed, list(rig.session.tasks)[-1]


async def working(rig: Rig, text: str) -> Task:
    task = rig.send(text)
    await until(lambda: rig.session.tasks.get(task.id).state is TaskState.WORKING, "the turn")
    return rig.session.tasks.get(task.id)


def typed(rig: Rig) -> list[str]:
    return [record["text"] for record in rig.records("submit")]


async def collect(reader: Reader) -> list[TaskEvent]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in reader]


async def test_readers_see_the_answer_grow_and_end_with_the_task(rig):
    task = rig.send("%%slow:2%%")
    first, second = (rig.session.tasks.changes.follow(task.id) for _ in range(2))
    events, others = await asyncio.gather(collect(first), collect(second))
    assert all(mine is its for mine, its in zip(events, others, strict=True))
    final = events[-1]
    assert isinstance(final, TaskSnapshot)
    assert final.task.state is TaskState.COMPLETED
    chunks = [event for event in events if isinstance(event, Chunk)]
    assert len(chunks) >= 3, "in pieces, while it was written"
    assert chunks[-1].last
    assert not any(chunk.last for chunk in chunks[:-1])
    assert all(chunk.append for chunk in chunks[1:]), chunks
    assert "".join(chunk.text for chunk in chunks) == final.task.artifacts[0].text
    assert {chunk.artifact_id for chunk in chunks} == {artifact_id(final.task.artifacts[0], 1)}
    assert not rig.session.tasks.changes.wanted(task.id)


async def test_a_message_to_a_working_task_is_another_turn_of_it(rig):
    task = await working(rig, "%%slow:0.5%%")
    reader = rig.session.tasks.changes.follow(task.id)
    followed, own = follow(rig, task, "and then this")
    assert (followed.id, own.follows) == (task.id, task.id)
    assert [message.message_id for message in followed.messages] == [task.id, "id of and then this"]
    final = await rig.done(task)
    assert (final.state, len(final.artifacts)) == (TaskState.COMPLETED, 2)
    assert "END-OF-SLOW" in final.artifacts[0].text
    assert "and then this" in final.artifacts[1].text
    own = rig.session.tasks.get(own.id)
    assert (own.state, own.delivery, own.artifacts) == (TaskState.COMPLETED, DeliveryState.DONE, ())
    assert typed(rig)[1] == f"[A2A:{task.short_id}:someone] and then this"
    events = await collect(reader)
    last = [event.artifact_id for event in events if isinstance(event, Chunk) and event.last]
    assert last == ["artifact-1", "artifact-2"]
    states = [event.task.state for event in events if isinstance(event, TaskSnapshot)]
    assert states[-1] is TaskState.COMPLETED
    assert set(states[:-1]) == {TaskState.WORKING}


async def test_cancel_takes_the_waiting_messages_too(rig):
    task = await working(rig, "%%slow:30%%")
    _, own = follow(rig, task, "never")
    reader = rig.session.tasks.changes.follow(task.id)
    canceled = await rig.session.cancel(task.id)
    assert canceled.state is TaskState.CANCELED
    assert rig.session.tasks.get(own.id).state is TaskState.CANCELED
    assert len(rig.session.outbox) == 0
    states = [event.task.state for event in await collect(reader) if isinstance(event, TaskSnapshot)]
    assert TaskState.COMPLETED not in states, "its message that goes did not end it"
    await rig.ready()
    assert len(typed(rig)) == 1


async def test_a_task_whose_turn_is_over_waits_for_a_message_that_is_held(rig):
    task = await working(rig, "%%slow:0.5%%")
    _, own = follow(rig, task, "held")
    rig.session.control.hold(own.id)
    await rig.ready()
    await until(lambda: rig.session.tasks.get(task.id).artifacts, "the answer")
    kept = rig.session.tasks.get(task.id)
    assert (kept.state, kept.reason) == (TaskState.WORKING, "a message that goes on with it waits")
    await rig.session.control.cancel(own.id)
    final = rig.session.tasks.get(task.id)
    assert (final.state, final.artifacts) == (TaskState.COMPLETED, kept.artifacts)


async def test_a_question_of_the_agent_keeps_its_task_open_until_it_is_answered(rig):
    task = await working(rig, "%%slow:0.5%%")
    question = "which file? " + "x" * 300
    rig.session.service.reply("", Reply(question, TaskState.INPUT_REQUIRED))
    await rig.ready()
    asked = rig.session.tasks.get(task.id)
    assert (asked.state, asked.delivery, asked.artifacts) == (
        TaskState.INPUT_REQUIRED,
        DeliveryState.DONE,
        (),
    )
    assert asked.reason.startswith("which file?")
    assert asked.messages[-1].role == "agent"
    assert asked.messages[-1].parts == (Part(text=question),)
    followed, own = follow(rig, task, "the blue one")
    assert (followed.state, [message.role for message in followed.messages]) == (
        TaskState.WORKING,
        ["user", "agent", "user"],
    )
    final = await rig.done(task)
    assert final.state is TaskState.COMPLETED
    assert "the blue one" in final.answer
    assert rig.session.tasks.get(own.id).state is TaskState.COMPLETED


async def test_a_question_ends_with_the_agent_that_asked_it(rig):
    asked, followed = await working(rig, "%%slow:0.5%% one"), rig.send("%%slow:0.5%% two")
    rig.session.service.reply(asked.id, Reply("which?", TaskState.INPUT_REQUIRED))
    await until(lambda: rig.session.tasks.get(followed.id).state is TaskState.WORKING, "the second turn")
    rig.session.service.reply(followed.id, Reply("which?", TaskState.INPUT_REQUIRED))
    _, own = follow(rig, followed, "this one")
    rig.session.control.hold(own.id)
    await rig.ready()
    os.kill(rig.session.pid, signal.SIGKILL)
    failed = await rig.done(asked)
    assert (failed.state, failed.reason) == (TaskState.FAILED, "agent exited")
    assert rig.session.tasks.get(followed.id).state is TaskState.WORKING
    await rig.session.restart()
    await rig.ready()
    rig.session.control.release(own.id)
    assert "this one" in (await rig.done(followed)).answer
