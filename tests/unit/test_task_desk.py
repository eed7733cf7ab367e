"""Waiting for tasks, replying to them, and outgoing ones."""

from __future__ import annotations

import asyncio

import pytest

from synapse_tui.core.content import Part
from synapse_tui.core.errors import MessageError, NotAwaited
from synapse_tui.core.model import (
    USER,
    DeliveryState,
    MessageRequest,
    Reply,
    ReplyState,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.messages import service as task_desk
from synapse_tui.messages.service import TaskService, late_message, reply_of
from tests.fake_agent import FakeAgent

CLAUDE = Sender("synapse-claude-8101", "claude", "http://127.0.0.1:8101", verified=True)
OUTGOING = {"sender_task_id": "11111111-2222"}


class Rig:
    """A desk, and an agent that was given tasks."""

    def __init__(self) -> None:
        self.agent = FakeAgent()
        self.tasks, self.outbox = self.agent.tasks, self.agent.outbox
        self.service: TaskService = self.agent.service

    def given(self, sender: Sender = CLAUDE, *, expected: bool = False, **metadata: object) -> Task:
        """A task on which the agent works."""
        task = self.agent.accept(
            MessageRequest("do it", sender, response_expected=expected, metadata=metadata)
        )
        self.agent.give(task.id)
        return self.tasks.get(task.id)

    def ended(self, task: Task, text: str = "text of the turn") -> None:
        """The turn of a task is over."""
        self.agent.finish(task.id, text)
        self.agent.running = ""

    def outgoing(self) -> Task:
        sender = Sender(self.agent.agent_id, "claude", self.agent.endpoint, verified=True)
        request = MessageRequest("do it", sender, response_expected=True)
        return self.service.open(request, "synapse-codex-8120")


@pytest.fixture
def rig() -> Rig:
    return Rig()


# -- waiting ---


async def started(rig: Rig, count: int = 1) -> None:
    while rig.service.waiting < count:  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0)


def seen(task: Task) -> str:
    return task.updated_at.isoformat()


async def test_what_was_not_seen_is_told_at_once(rig):
    task = rig.given()
    rig.tasks.change(task.id, reason="news")
    assert (await rig.service.wait(task.id, seen(task), 30)).reason == "news"


async def test_many_wait_for_one_task_and_too_many_are_answered_at_once(rig, monkeypatch):
    monkeypatch.setattr(task_desk, "MAX_WAITERS", 3)
    task = rig.given()
    waits = [asyncio.ensure_future(rig.service.wait(task.id, "", 30)) for _ in range(3)]
    await started(rig, 3)
    assert await rig.service.wait(task.id, "", 30) is task
    rig.ended(task)
    assert {each.state for each in await asyncio.gather(*waits)} == {TaskState.COMPLETED}


# -- replies ---


def test_a_question_leaves_the_task_open(rig):
    task = rig.given(**OUTGOING)
    asked = rig.service.reply(task.id, Reply("which branch?", TaskState.INPUT_REQUIRED))
    assert (asked.state, asked.reason, asked.replied) == (TaskState.INPUT_REQUIRED, "which branch?", False)
    assert asked.reply is ReplyState.DUE
    assert reply_of(asked).text == "which branch?"
    assert rig.service.reply("", Reply("done")).answer == "done"


def test_without_an_id_the_running_task_is_meant(rig):
    rig.ended(rig.given(expected=True))
    running = rig.given()
    assert rig.service.awaiting()[0].id == running.id
    assert rig.service.reply("", Reply("x")).id == running.id


def test_then_the_newest_that_expects_an_answer(rig):
    wanted, plain = rig.given(expected=True), rig.given()
    rig.ended(plain)
    assert [task.id for task in rig.service.awaiting()] == [wanted.id]
    assert rig.service.reply("", Reply("x")).id == wanted.id


def test_the_agent_may_reply_when_its_turn_was_taken_for_the_answer_until_something_else_comes(rig):
    task = rig.given(expected=True, **OUTGOING)
    rig.ended(task)
    assert [each.id for each in rig.service.awaiting()] == [task.id], "it may still be at work"
    rig.ended(rig.given())
    assert not rig.service.awaiting()
    with pytest.raises(NotAwaited, match="awaits a reply") as caught:
        rig.service.reply("", Reply("second try"))
    assert "--to TASK" in caught.value.hint
    assert rig.service.reply(task.id, Reply("what I forgot")).answer == "what I forgot"


def test_what_has_failed_has_no_answer_yet(rig):
    task = rig.given(expected=True)
    rig.agent.finish(task.id, state=TaskState.FAILED)
    rig.ended(rig.given())
    assert [each.id for each in rig.service.awaiting()] == [task.id]


def test_the_turn_was_the_answer_to_a_person_at_a_shell(rig):
    asked = rig.given(USER, expected=True)
    assert [task.id for task in rig.service.awaiting()] == [asked.id]
    rig.ended(asked)
    assert not rig.service.awaiting()
    assert rig.service.reply(asked.id, Reply("more")).answer.endswith("more")


def test_a_second_reply_in_a_turn_is_not_taken_for_another_task(rig):
    rig.ended(rig.given(expected=True))
    running = rig.given()
    rig.service.reply("", Reply("x"))
    with pytest.raises(NotAwaited, match=f"{running.short_id} of {CLAUDE.sender_id} has its answer already"):
        rig.service.reply("", Reply("y"))


def test_a_canceled_task_takes_no_reply(rig):
    task = rig.given()
    rig.tasks.change(task.id, state=TaskState.CANCELED)
    with pytest.raises(NotAwaited, match="is canceled"):
        rig.service.reply(task.id, Reply("x"))


def test_what_was_not_given_to_the_agent_takes_no_reply(rig):
    task = rig.agent.wait("do it", CLAUDE)
    with pytest.raises(NotAwaited, match="not been given"):
        rig.service.reply(task.id, Reply("x"))


def test_a_reply_proves_that_an_uncertain_message_was_sent(rig):
    task = rig.agent.wait("do it", CLAUDE)
    rig.outbox.note_entered(task.id, entered=True)
    rig.outbox.doubt(task.id)
    assert rig.service.reply(task.id, Reply("x")).state is TaskState.COMPLETED
    assert task.id not in rig.outbox


def test_nobody_replies_to_itself(rig):
    own = rig.outgoing()
    with pytest.raises(MessageError, match="was sent by synapse-claude-8100 itself"):
        rig.service.reply(own.id, Reply("x"))
    selfish = rig.given(Sender(rig.agent.agent_id, "claude", rig.agent.endpoint, verified=True))
    with pytest.raises(MessageError, match="itself"):
        rig.service.reply(selfish.id, Reply("x"))


@pytest.mark.parametrize("text", ["", "  \n", "\x1b[0m"])
def test_an_empty_reply_is_none(rig, text):
    task = rig.given()
    with pytest.raises(MessageError, match="empty"):
        rig.service.reply(task.id, Reply(text))
    assert not rig.tasks.get(task.id).state.final


def test_a_reply_after_the_turn_is_added_to_its_text(rig):
    task = rig.given(expected=True, **OUTGOING)
    rig.ended(task)
    late = rig.service.reply(task.id, Reply("what I forgot"))
    assert [artifact.text for artifact in late.artifacts] == ["text of the turn", "what I forgot"]
    assert (late.answer, late.reply) == ("what I forgot", ReplyState.DUE)


@pytest.mark.parametrize(
    ("sender", "metadata", "reply_due"),
    [
        (CLAUDE, {}, ReplyState.DUE),
        (CLAUDE, {"author": "user"}, ReplyState.NONE),
        (USER, {}, ReplyState.NONE),
        (Sender("ci"), {}, ReplyState.NONE),
    ],
)
def test_who_is_told_of_a_reply(rig, sender, metadata, reply_due):
    task = rig.given(sender, **metadata)
    assert rig.service.reply(task.id, Reply("x")).reply is reply_due


@pytest.mark.parametrize(
    ("sender", "metadata", "reply_due"),
    [
        (CLAUDE, OUTGOING, ReplyState.DUE),
        (CLAUDE, {}, ReplyState.NONE),
        (CLAUDE, {"sender_task_id": 7}, ReplyState.NONE),
        (Sender("ci"), OUTGOING, ReplyState.NONE),
    ],
)
def test_who_is_told_of_the_end_of_a_turn(rig, sender, metadata, reply_due):
    task = rig.given(sender, expected=True, **metadata)
    rig.ended(task)
    assert rig.tasks.get(task.id).reply is reply_due


# -- outgoing tasks ---


def test_nobody_wants_the_answer_to_what_was_canceled(rig):
    task = rig.service.cancel_outgoing(rig.outgoing().id)
    assert task.reply is ReplyState.NONE
    assert rig.service.answered(task.id, Reply("42", in_reply_to="T"), verified=True) is task


def test_an_answer_that_was_fetched_and_is_then_sent_too_is_one_answer(rig):
    task = rig.outgoing()
    ended = rig.service.answered(task.id, Reply("42", in_reply_to="T"), verified=True)
    assert rig.service.answered(task.id, Reply("42\n"), verified=True) is ended
    assert rig.service.answered(task.id, Reply("43"), verified=True) is None
    assert rig.service.answered(task.id, Reply("42", TaskState.FAILED), verified=True) is None


def test_the_oldest_of_too_many_is_given_up(rig, monkeypatch):
    monkeypatch.setattr(task_desk, "MAX_OUTGOING", 2)
    first, second, third = (rig.outgoing() for _ in range(3))
    states = [rig.tasks.get(task.id).state for task in (first, second, third)]
    assert states == [TaskState.FAILED, TaskState.WORKING, TaskState.WORKING]


# -- the words ---


def test_what_an_agent_is_told_late(rig):
    task = rig.given()
    rig.service.reply(task.id, Reply("done"))
    message = late_message(reply_of(rig.tasks.get(task.id)), CLAUDE)
    assert (message.text, message.metadata["in_reply_to"], message.metadata["explicit"]) == (
        "done",
        task.id,
        True,
    )
    other = rig.given()
    rig.tasks.change(other.id, state=TaskState.FAILED, reason="agent exited")
    assert late_message(reply_of(rig.tasks.get(other.id)), CLAUDE).text == "(failed) agent exited"


# -- messages that go on with a task ---


def follow(rig: Rig, task: Task, text: str = "and this") -> Task:
    metadata = OUTGOING  # what `synapse send --task` of an agent that waits gives with it
    rig.agent.accept(MessageRequest(text, CLAUDE, response_expected=True, metadata=metadata, follows=task.id))
    return list(rig.agent.tasks)[-1]


def test_what_goes_on_with_a_task_owes_nobody_and_is_answered_by_that(rig):
    task = rig.given(**OUTGOING)
    own = follow(rig, task)
    rig.outbox.cancel(own.id)
    assert rig.tasks.get(own.id).reply is ReplyState.NONE, "the one who waits for the task goes on waiting"
    taken = follow(rig, task)
    rig.outbox.take(taken.id)
    rig.tasks.change(taken.id, delivery=DeliveryState.DONE, state=TaskState.COMPLETED)
    assert [each.id for each in rig.service.awaiting()] == [task.id]


def test_a_question_has_all_of_its_text_and_may_have_parts(rig):
    task = rig.given(**OUTGOING)
    text = "which of these?\n" + "x" * 500
    parts = (Part(text=text), Part("data", data=["red", "blue"]))
    asked = rig.service.reply(task.id, Reply(text, TaskState.INPUT_REQUIRED, parts=parts))
    assert (asked.state, asked.delivery, asked.reply) == (
        TaskState.INPUT_REQUIRED,
        DeliveryState.DONE,
        ReplyState.DUE,
    )
    assert len(asked.reason) == 200
    assert asked.messages[-1].parts == parts
    assert reply_of(asked).text == text
    told = late_message(reply_of(asked), CLAUDE).text
    assert told.endswith(f'to answer: synapse send {CLAUDE.sender_id} "..." --task {task.short_id}')
    rig.agent.running = ""
    assert [each.id for each in rig.service.awaiting()] == [task.id], "its agent may answer it after all"


def test_what_has_ended_cannot_be_asked_about(rig):
    task = rig.given()
    rig.ended(task)
    with pytest.raises(NotAwaited, match="completed already"):
        rig.service.reply(task.id, Reply("which?", TaskState.INPUT_REQUIRED))


def test_the_question_of_the_other_is_told_once_and_its_answer_still_comes(rig):
    task = rig.outgoing()
    asked = rig.service.answered(
        task.id, Reply("which?", TaskState.INPUT_REQUIRED, in_reply_to="t"), verified=True
    )
    assert asked is not None
    assert (asked.reply, asked.messages[-1].parts[0].text) == (ReplyState.DUE, "which?")
    rig.service.collected(asked)
    assert rig.tasks.get(task.id).reply is ReplyState.GIVEN
    ended = rig.service.answered(task.id, Reply("done", in_reply_to="t"), verified=True)
    assert ended is not None
    assert (ended.state, ended.reply, ended.answer) == (TaskState.COMPLETED, ReplyState.DUE, "done")
