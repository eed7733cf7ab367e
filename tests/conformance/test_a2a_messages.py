"""A2A 1.0: what becomes of messages, over both bindings (sections 3.1.1, 3.2 to 3.4)."""

from __future__ import annotations

import base64
from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.wire import (
    CONTENT_TYPE_NOT_SUPPORTED,
    TASK_NOT_FOUND,
    TERMINAL,
    UNSUPPORTED_OPERATION,
    Binding,
    Json,
    Refused,
    message,
)


async def test_a_task_is_completed_with_a_message(agent: Binding, completed: Json) -> None:
    assert completed["status"]["state"] == "TASK_STATE_COMPLETED"
    assert completed["id"]
    assert completed["contextId"]
    said = [completed["status"].get("message"), *completed.get("artifacts", []), *completed["history"]]
    assert "Hello from TCK" in str(said)


@pytest.mark.parametrize(
    ("message_id", "expected"),
    [
        ("tck-artifact-text", {"text": "Generated text content"}),
        ("tck-artifact-file", {"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}),
        (
            "tck-artifact-file-url",
            {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"},
        ),
        ("tck-artifact-data", {"data": {"key": "value", "count": 42}}),
    ],
)
async def test_parts_of_every_kind_come_as_artifacts(agent: Binding, message_id: str, expected: Json) -> None:
    task = await agent.task(message_id)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    (artifact,) = task["artifacts"]
    assert artifact["artifactId"]
    (part,) = artifact["parts"]
    assert expected.items() <= part.items()
    assert (await agent.get(task["id"]))["artifacts"] == task["artifacts"]


async def test_an_agent_may_answer_by_a_message_alone(agent: Binding) -> None:
    answer = await agent.send(message(message_id="tck-message-response"))
    assert set(answer) == {"message"}
    said = answer["message"]
    assert said["role"] == "ROLE_AGENT"
    assert said["parts"][0]["text"] == "Direct message response"
    assert said["messageId"]
    assert said["contextId"]


async def test_an_agent_may_ask_for_more_and_the_answer_goes_on_with_the_task(agent: Binding) -> None:
    task = await agent.task("tck-input-required")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    more = message("the rest", "tck-complete-task", taskId=task["id"])
    answer = (await agent.send(more))["task"]
    assert answer["id"] == task["id"]
    assert answer["contextId"] == task["contextId"], "it is inferred from the task"
    assert answer["status"]["state"] == "TASK_STATE_COMPLETED"
    ids = [each["messageId"] for each in answer["history"] if each["role"] == "ROLE_USER"]
    assert ids[-1] == more["messageId"]
    assert len(ids) == 2


async def test_an_agent_may_refuse(agent: Binding) -> None:
    task = await agent.task("tck-reject-task")
    assert task["status"]["state"] == "TASK_STATE_REJECTED"


async def test_a_send_blocks_until_the_end_unless_it_is_told_not_to(agent: Binding) -> None:
    asked = message(message_id="tck-delayed-complete")
    at_once = (await agent.send(asked, configuration={"returnImmediately": True}))["task"]
    assert at_once["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    blocking = await agent.task("tck-delayed-complete", configuration={"returnImmediately": False})
    assert blocking["status"]["state"] == "TASK_STATE_COMPLETED"
    assert (await agent.get(at_once["id"]))["status"]["state"] == "TASK_STATE_COMPLETED", "it came first"


async def test_what_has_ended_takes_no_message(agent: Binding, completed: Json) -> None:
    with pytest.raises(Refused) as refused:
        await agent.send(message(taskId=completed["id"]))
    assert refused.value.means(UNSUPPORTED_OPERATION)


async def test_a_task_of_the_callers_own_making_does_not_exist(agent: Binding) -> None:
    with pytest.raises(Refused) as refused:
        await agent.send(message(taskId=str(uuid4())))
    assert refused.value.means(TASK_NOT_FOUND)


async def test_a_task_has_one_conversation(agent: Binding) -> None:
    task = await agent.task("tck-input-required")
    with pytest.raises(Refused):
        await agent.send(message(taskId=task["id"], contextId=str(uuid4())))
    assert (await agent.get(task["id"]))["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    await agent.cancel(task["id"])


async def test_a_conversation_of_the_callers_own_is_kept_or_refused(agent: Binding) -> None:
    mine = f"context-{uuid4()}"
    try:
        answer = await agent.send(message(contextId=mine))
    except Refused:
        return
    assert answer["task"]["contextId"] == mine


async def test_a_part_of_an_unknown_type_is_refused(agent: Binding) -> None:
    strange = {"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}
    with pytest.raises(Refused) as refused:
        await agent.send(message(parts=[strange], message_id="tck-send-003"))
    assert refused.value.means(CONTENT_TYPE_NOT_SUPPORTED)


async def test_files_and_data_reach_the_agent(agent: Binding) -> None:
    content = base64.b64encode(b"line 1\nline 2\n").decode()
    parts: list[Json] = [
        {"text": "Read this."},
        {"raw": content, "filename": "notes.txt", "mediaType": "text/plain"},
        {"data": {"answer": 42}},
    ]
    task = (await agent.send(message(parts=parts, message_id="usual")))["task"]
    said = task["artifacts"][0]["parts"][0]["text"]
    assert "notes.txt" in said
    assert "42" in said


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"message": {}},
        {"message": {"messageId": "a", "role": "ROLE_USER", "parts": []}},
        {"message": {"messageId": "a", "role": "ROLE_UNSPECIFIED", "parts": [{"text": "a"}]}},
        {"message": {"messageId": "", "role": "ROLE_USER", "parts": [{"text": "a"}]}},
        {"message": {"role": "ROLE_USER", "parts": [{"text": "a"}]}},
        {"message": {"messageId": "a", "role": "ROLE_USER", "parts": [{"words": "a"}]}},
        {"message": {"messageId": "a", "role": "ROLE_USER", "parts": [{"text": {}}]}},
        {"message": {"messageId": "a", "role": 17, "parts": "text"}},
    ],
)
async def test_a_malformed_message_is_an_error_of_the_parameters(agent: Binding, wrong: Any) -> None:
    with pytest.raises(Refused) as refused:
        await agent.send(
            wrong.get("message", {}), **{key: value for key, value in wrong.items() if key != "message"}
        )
    assert refused.value.code in (0, -32602)
    assert refused.value.status in (0, 400)


async def test_the_history_is_as_long_as_it_is_wanted(agent: Binding) -> None:
    task = await agent.task("tck-input-required", configuration={"historyLength": 0})
    assert not task.get("history")
    for number in range(2):
        await agent.send(message(f"more {number}", "tck-input-required", taskId=task["id"]))
    every = (await agent.get(task["id"]))["history"]
    said = [each["parts"][0]["text"] for each in every if each["role"] == "ROLE_USER"]
    assert said == ["Hello from TCK", "more 0", "more 1"], "all of it, in order"
    assert "history" not in await agent.get(task["id"], historyLength=0)
    assert (await agent.get(task["id"], historyLength=1))["history"] == every[-1:]
    assert len((await agent.get(task["id"], historyLength=100))["history"]) == len(every)
    await agent.cancel(task["id"])


async def test_a_message_that_comes_again_is_the_same_task_until_its_end_was_told(agent: Binding) -> None:
    """A client that lost its answer sends again; kits use an id for one scenario over all bindings."""
    same = {**message(), "messageId": f"tck-delayed-complete-{uuid4()}"}
    open_task = (await agent.send(same, configuration={"returnImmediately": True}))["task"]
    again = (await agent.send(same))["task"]
    assert again["id"] == open_task["id"]
    assert again["status"]["state"] == "TASK_STATE_COMPLETED"
    new = (await agent.send(same, configuration={"returnImmediately": True}))["task"]
    assert new["id"] != open_task["id"]
    assert new["status"]["state"] not in TERMINAL
    await agent.cancel(new["id"])
