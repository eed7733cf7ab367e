"""Whole tasks in the history: conversations, rich answers, owners, and which message goes on with which."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.model import USER, DeliveryState, MessageRequest, Task, TaskState
from synapse_tui.messages.history import AgentJournal
from synapse_tui.messages.outbox import OutboxControl
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.storage import schema
from synapse_tui.messages.storage.sqlite import open_engine
from tests.unit.store_kit import KEY, SENDER, make_book, opened, rows, send

QUESTION = TaskMessage(
    "m1",
    "user",
    (
        Part(text="look at this"),
        Part("file", path="/project/.synapse/files/ab/plan.txt", name="plan.txt", media_type="text/plain"),
        Part("data", data={"depth": [1, {"two": None}]}, metadata={"why": "because"}),
        Part("url", text="https://example.org/x", name="x"),
    ),
    metadata={"deep": {"er": [1]}},
    extensions=("https://example.org/ext",),
    references=("t0",),
)
ANSWER = TaskMessage("m2", "agent", (Part(text="which one? 🙂"),))
ARTIFACTS = (
    Artifact("first"),
    Artifact("", artifact_id="report", name="Report", parts=(Part("data", data=[1, 2]),)),
    Artifact("done", as_message=True, truncated=True),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "history.db"


async def read(path: Path, task_id: str) -> Task:
    async with opened(path, owner="2:2") as (history, _):
        (task,) = await AgentJournal(history, KEY).find(task_id)
        return task


async def test_a_conversation_with_parts_and_artifacts_comes_back_whole(path):
    async with opened(path) as (history, _):
        book, _, _ = make_book(history)
        task = book.create(
            MessageRequest("look", SENDER, caller="ci", message=QUESTION, context_id="their-own")
        )
        book.change(task.id, messages=(QUESTION, ANSWER), state=TaskState.COMPLETED, artifacts=ARTIFACTS)
        known = book.get(task.id)
    assert await read(path, task.id) == known
    assert (known.caller, known.context_id, len(known.messages)) == ("ci", "their-own", 2)


async def test_one_plain_text_is_kept_once(path):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "hello")
        book.change(task_id, state=TaskState.COMPLETED, artifacts=(Artifact("hi", truncated=True),))
        known = book.get(task_id)
    assert rows(path, "SELECT output, artifacts, messages FROM tasks") == [("hi", "[]", "[]")]
    assert await read(path, task_id) == known


async def test_what_utf8_and_json_cannot_carry_stops_nothing(path):
    message = TaskMessage("m", "user", (Part(text="half \ud83d"), Part("data", data={"at": Path("/x")})))
    async with opened(path) as (history, _):
        book, _, _ = make_book(history)
        task = book.create(MessageRequest("half", USER, message=message))
    (found,) = (await read(path, task.id)).messages
    assert [part.text for part in found.parts] == ["half ?", ""]
    assert found.parts[1].data == {"at": "/x"}


async def test_tasks_of_the_session_itself_are_not_taken_for_those_of_before(path):
    """A caller's own conversation does not make a task one of another session."""
    async with opened(path) as (history, _):
        book, _, journal = make_book(history)
        book.create(MessageRequest("now", USER, context_id="their-own"))
        assert await journal.waiting("first") == []
        _, _, later = make_book(history, context="second")
        assert [each.task.text for each in await later.waiting("second")] == ["now"]


# -- messages that go on with a task ---


async def leave_followed(path: Path, **state: object) -> tuple[str, str]:
    """A host ends while a message waits that goes on with a task."""
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        followed = send(book, outbox, "draw a plan")
        outbox.take(followed)
        book.change(followed, **({"delivery": DeliveryState.SUBMITTED, "state": TaskState.WORKING} | state))
        about = {"sender_task_id": "the task of its own that waits for the other's answer"}
        waits = book.create(MessageRequest("in blue", SENDER, metadata=about, follows=followed))
        outbox.put(waits)
    return followed, waits.id


ASKED = {"state": TaskState.INPUT_REQUIRED, "delivery": DeliveryState.DONE, "reason": "which colour?"}


@pytest.mark.parametrize("state", [{}, ASKED], ids=["working", "asked"])
async def test_a_task_with_which_a_message_goes_on_survives_its_host(path, state):
    followed, waits = await leave_followed(path, **state)
    for number in range(2):  # and the host after that
        async with opened(path, owner=f"2:{number}") as (history, _):
            book, outbox, journal = make_book(history, context=f"later {number}")
            control = OutboxControl(book, outbox, cancel=_never, wake=lambda: None)
            control.adopt(await journal.waiting(f"later {number}"), release=False)
            task = book.get(followed)
            assert (task.state, task.delivery, task.reason) == (
                TaskState.WORKING,
                DeliveryState.SUBMITTED,
                Reason.GOES_ON,
            )
            assert [(each.id, each.follows) for each in outbox] == [(waits, followed)], "it waits itself"


async def _never(task_id: str) -> Task:
    raise AssertionError(task_id)


@pytest.mark.parametrize("state", [{}, ASKED], ids=["working", "asked"])
async def test_a_task_with_which_nothing_goes_on_has_failed(path, state):
    async with opened(path) as (history, _):
        book, outbox, _ = make_book(history)
        task_id = send(book, outbox, "draw a plan")
        outbox.take(task_id)
        book.change(task_id, **({"delivery": DeliveryState.SUBMITTED} | state))
    task = await read(path, task_id)
    assert (task.state, task.delivery, task.reason) == (
        TaskState.FAILED,
        DeliveryState.FAILED,
        "the host had ended",
    )


async def test_a_message_that_was_submitted_keeps_nothing_open(path):
    followed, waits = await leave_followed(path)
    async with opened(path, owner="1:1") as (history, _):
        book, outbox, journal = make_book(history, context="second")
        for each in await journal.waiting("second"):
            book.adopt(each.task)
            if each.entry is not None:
                outbox.adopt([each.entry])
        outbox.take(waits)
        book.change(waits, delivery=DeliveryState.SUBMITTED)
    assert (await read(path, followed)).state is TaskState.FAILED
    assert rows(path, f"SELECT status, reply FROM tasks WHERE id = '{waits}'") == [("failed", "")]


# -- files of before ---


async def test_a_file_of_the_version_before_opens_with_its_tasks(path):
    engine, _ = open_engine(path, steps=schema.STEPS[:2])
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO tasks (id, agent_name, agent_type, project, context_id, peer_task_id, sender_id,"
            " sender_type, sender_endpoint, sender_verified, input, output, truncated, status, delivery,"
            " reason, priority, response_expected, metadata, owner, created_at, updated_at, replied, reply)"
            " VALUES ('old-task', ?, 'dummy', '/project', 'old', '', 'user', 'user', '', 1, 'hi', 'there', 1,"
            " 'submitted', 'queued', '', 3, 0, '{}', '9:9', '2026-01-02 03:04:05.000000',"
            " '2026-01-02 03:04:06.000000', 0, '')",
            (KEY.agent_id,),
        )
    async with opened(path, owner="2:2") as (history, _):
        book, _, journal = make_book(history, context="new")
        (found,) = await journal.waiting("new")
        assert found.task.artifacts == (Artifact("there", truncated=True),)
        assert (found.task.caller, found.task.messages, found.task.follows) == ("", (), "")
        book.adopt(found.task)
        book.change("old-task", messages=(ANSWER,), state=TaskState.COMPLETED, artifacts=ARTIFACTS)
        known = book.get("old-task")
    assert await read(path, "old-task") == known
