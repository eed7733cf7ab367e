"""A2A 1.0: reading, listing, cancelling and subscribing, over both bindings (sections 3.1.3 to 3.1.6)."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime
from uuid import UUID, uuid4

import pytest

from tests.conformance.wire import (
    INVALID_PARAMS,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    TERMINAL,
    UNSUPPORTED_OPERATION,
    Binding,
    Json,
    Refused,
    collect,
    message,
    state_of,
)


async def test_a_task_is_read_as_it_stands(agent: Binding, completed: Json) -> None:
    found = await agent.get(completed["id"])
    assert found == completed
    assert UUID(found["id"])
    assert found["status"]["timestamp"].endswith("Z")
    assert datetime.fromisoformat(found["status"]["timestamp"]).tzinfo


@pytest.mark.parametrize("task_id", ["nobody", "00000000-0000-4000-8000-000000000000"])
async def test_a_task_that_is_not_there_is_not_found(agent: Binding, task_id: str) -> None:
    for operation in (agent.get(task_id), agent.cancel(task_id), collect(agent.subscribe(task_id))):
        with pytest.raises(Refused) as refused:
            await operation
        assert refused.value.means(TASK_NOT_FOUND)


async def test_canceling_stops_what_runs(agent: Binding) -> None:
    asked = message(message_id="tck-delayed-complete")
    task = (await agent.send(asked, configuration={"returnImmediately": True}))["task"]
    canceled = await agent.cancel(task["id"])
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
    assert (await agent.get(task["id"]))["status"]["state"] == "TASK_STATE_CANCELED"


async def test_what_asks_for_more_can_be_canceled(agent: Binding) -> None:
    task = await agent.task("tck-input-required")
    assert (await agent.cancel(task["id"]))["status"]["state"] == "TASK_STATE_CANCELED"


async def test_what_has_ended_cannot_be_canceled(agent: Binding, completed: Json) -> None:
    with pytest.raises(Refused) as refused:
        await agent.cancel(completed["id"])
    assert refused.value.means(TASK_NOT_CANCELABLE)


async def test_what_has_ended_cannot_be_subscribed_to(agent: Binding, completed: Json) -> None:
    with pytest.raises(Refused) as refused:
        await collect(agent.subscribe(completed["id"]))
    assert refused.value.means(UNSUPPORTED_OPERATION)


# -- lists


async def _conversation(agent: Binding, tasks: int = 3) -> tuple[str, list[Json]]:
    context = f"list-{uuid4()}"
    return context, [(await agent.send(message(contextId=context)))["task"] for _ in range(tasks)]


def texts_of(task: Json) -> list[str]:
    return [part["text"] for artifact in task["artifacts"] for part in artifact["parts"]]


async def test_a_list_has_the_newest_first_on_pages(agent: Binding) -> None:
    context, made = await _conversation(agent)
    first = await agent.list(contextId=context, pageSize=2)
    assert (first["pageSize"], first["totalSize"]) == (2, 3)
    second = await agent.list(contextId=context, pageSize=2, pageToken=first["nextPageToken"])
    assert second["nextPageToken"] == ""
    ids = [task["id"] for task in [*first["tasks"], *second["tasks"]]]
    assert ids == [task["id"] for task in reversed(made)]
    assert not any("artifacts" in task for task in first["tasks"]), "they are asked for"
    full = await agent.list(contextId=context, includeArtifacts=True, historyLength=0)
    assert texts_of(full["tasks"][0]) == texts_of(made[-1])
    assert "history" not in full["tasks"][0]


async def test_a_list_can_be_narrowed(agent: Binding) -> None:
    context, made = await _conversation(agent, 2)
    open_task = (await agent.send(message(message_id="tck-input-required", contextId=context)))["task"]
    asking = await agent.list(contextId=context, status="TASK_STATE_INPUT_REQUIRED")
    assert [task["id"] for task in asking["tasks"]] == [open_task["id"]]
    later = await agent.list(contextId=context, statusTimestampAfter=made[1]["status"]["timestamp"])
    assert {task["id"] for task in later["tasks"]} - {made[1]["id"]} == {open_task["id"]}
    await agent.cancel(open_task["id"])


async def test_a_list_of_nothing_is_empty(agent: Binding) -> None:
    found = await agent.list(contextId=f"nobody-{uuid4()}")
    assert found["tasks"] == []
    assert found["nextPageToken"] == ""
    assert found["totalSize"] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageSize": -1},
        {"pageToken": "nonsense"},
        {"status": "NOPE"},
        {"statusTimestampAfter": "yesterday"},
        {"historyLength": -1},
    ],
)
async def test_a_list_is_not_made_of_wrong_parameters(agent: Binding, fields: Json) -> None:
    with pytest.raises(Refused) as refused:
        await agent.list(**fields)
    assert refused.value.code in (0, INVALID_PARAMS.code)
    assert refused.value.status in (0, INVALID_PARAMS.status)


# -- streams


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        ("tck-stream-001", "Stream hello from TCK"),
        ("tck-stream-003", "Stream task lifecycle"),
        ("tck-stream-ordering-001", "Ordered output"),
        ("tck-stream-artifact-text", "Streamed text content"),
    ],
)
async def test_a_stream_begins_with_the_task_and_ends_with_it(
    agent: Binding, message_id: str, text: str
) -> None:
    events = await collect(agent.stream(message(message_id=message_id)))
    assert set(events[0]) == {"task"}
    task_id, context_id = events[0]["task"]["id"], events[0]["task"]["contextId"]
    for event in events[1:]:
        (inner,) = event.values()
        assert (inner["taskId"], inner["contextId"]) == (task_id, context_id)
    states = [state_of(event) for event in events if state_of(event)]
    assert states[-1] == "TASK_STATE_COMPLETED"
    assert "TASK_STATE_WORKING" in states
    assert not TERMINAL & set(states[:-1])
    assert written(events) == text
    assert (await agent.get(task_id))["artifacts"][0]["parts"][0]["text"] == text


def written(events: list[Json]) -> str:
    text = ""
    for event in events:
        update = event.get("artifactUpdate")
        if update:
            said = "".join(part.get("text", "") for part in update["artifact"]["parts"])
            text = text + said if update.get("append") else said
    return text


async def test_chunks_of_an_artifact_are_one_artifact(agent: Binding) -> None:
    events = await collect(agent.stream(message(message_id="tck-stream-artifact-chunked")))
    chunks = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    assert len(chunks) >= 2
    assert len({chunk["artifact"]["artifactId"] for chunk in chunks}) == 1
    assert not chunks[0].get("append")
    assert all(chunk.get("append") for chunk in chunks[1:])
    assert [chunk.get("lastChunk", False) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert written(events).split() == ["chunk-1", "chunk-2"]


async def test_a_file_comes_as_an_event(agent: Binding) -> None:
    events = await collect(agent.stream(message(message_id="tck-stream-artifact-file")))
    (update,) = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    (part,) = update["artifact"]["parts"]
    assert (part["raw"], part["filename"], part["mediaType"]) == ("dGNr", "output.txt", "text/plain")


async def test_a_stream_has_one_message_or_a_task(agent: Binding) -> None:
    """Nobody knows how an agent will answer when its stream begins, so ours is that of a task."""
    events = await collect(agent.stream(message(message_id="tck-message-response")))
    if "message" in events[0]:
        assert len(events) == 1
        return
    assert not any("message" in event for event in events)
    assert state_of(events[-1]) == "TASK_STATE_COMPLETED"
    assert "Direct message response" in str(events)


async def test_a_stream_ends_where_more_is_asked_for(agent: Binding) -> None:
    events = await collect(agent.stream(message(message_id="tck-input-required")))
    assert state_of(events[-1]) == "TASK_STATE_INPUT_REQUIRED"
    task_id = events[0]["task"]["id"]
    rest = await collect(agent.stream(message(message_id="tck-complete-task", taskId=task_id)))
    assert rest[0]["task"]["id"] == task_id
    assert state_of(rest[-1]) == "TASK_STATE_COMPLETED"


async def test_subscribers_see_the_same_events_in_the_same_order(agent: Binding) -> None:
    """The scripted agent hurries when others wait, so the message after it ends the long turn."""
    first = agent.stream(message(message_id="test-resubscribe-message-id"))
    task = (await anext(first))["task"]
    others = [agent.subscribe(task["id"]) for _ in range(3)]
    snapshots = [await anext(other) for other in others]
    assert [snapshot["task"]["id"] for snapshot in snapshots] == [task["id"]] * 3
    await others[0].aclose()
    later = asyncio.create_task(agent.task())
    seen = await asyncio.gather(*(collect(stream) for stream in (first, *others[1:])))
    assert state_of(seen[0][-1]) == "TASK_STATE_COMPLETED"
    # Who subscribed later has in the task what the others were sent before.
    for one, other in itertools.combinations(seen, 2):
        common = min(len(one), len(other))
        assert one[-common:] == other[-common:]
    await later
