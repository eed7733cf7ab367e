"""Real servers and the SDK's own clients, of A2A 1.0 and 0.3, over both bindings; how streams end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from synapse_tui.a2a.server import AgentServer
from synapse_tui.core.content import Artifact, Part
from synapse_tui.core.model import DeliveryState, TaskState
from tests.a2a_kit import V1, GivenAgent, collect, events, rpc, said, states, stream
from tests.integration.server_kit import Connection, http, running
from tests.waiting import PATIENCE, until

KINDS = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")]


@asynccontextmanager
async def served() -> AsyncIterator[tuple[GivenAgent, AgentServer]]:
    agent = GivenAgent()
    async with running(agent=agent) as (_, server):
        yield agent, server


@asynccontextmanager
async def connected(
    agent: GivenAgent, binding: str = "JSONRPC", version: str = "1.0", *, streaming: bool = True
) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        card = await A2ACardResolver(client, agent.endpoint).get_agent_card()
        wanted = [
            each
            for each in card.supported_interfaces
            if (each.protocol_binding, each.protocol_version) == (binding, version)
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(wanted)
        config = ClientConfig(streaming=streaming, httpx_client=client, supported_protocol_bindings=[binding])
        yield ClientFactory(config).create(card)


@asynccontextmanager
async def plain(agent: GivenAgent) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=agent.endpoint, timeout=PATIENCE, trust_env=False) as client:
        yield client


def message(text: str = "Hello!", **fields: Any) -> pb.SendMessageRequest:
    found = pb.Message(message_id=f"{text}-{fields}", role=pb.ROLE_USER, parts=[pb.Part(text=text)], **fields)
    return pb.SendMessageRequest(message=found)


def texts(parts: object) -> list[str]:
    return [part.text for part in parts]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("binding", "version"), KINDS)
async def test_a_conversation(binding: str, version: str) -> None:
    """A message, a dialog that a person answers, the answer, and what is known of it afterwards."""
    async with served() as (agent, _), connected(agent, binding, version) as client:
        first = client.send_message(message())
        begun = (await anext(first)).task
        assert begun.status.state == pb.TASK_STATE_SUBMITTED
        task = await agent.works()
        agent.asks(task.id, "permission: Bash(make)")
        seen = await collect(first)
        assert [each.status_update.status.state for each in seen] == [
            pb.TASK_STATE_WORKING,
            pb.TASK_STATE_INPUT_REQUIRED,
        ]
        assert texts(seen[-1].status_update.status.message.parts) == ["permission: Bash(make)"]

        subscribed = client.subscribe(pb.SubscribeToTaskRequest(id=task.id))
        assert (await anext(subscribed)).task.id == task.id
        agent.goes_on(task.id)
        agent.tasks.changes.written(task.id, "Do", 1)
        agent.tasks.changes.written(task.id, "Done", 1)
        agent.finish(task.id, "Done.")
        seen = await collect(subscribed)
        chunks = [each.artifact_update for each in seen if each.HasField("artifact_update")]
        assert [texts(each.artifact.parts) for each in chunks] == [["Do"], ["ne"], ["."]]
        assert [(each.append, each.last_chunk) for each in chunks] == [
            (False, False),
            (True, False),
            (True, True),
        ]
        assert seen[-1].status_update.status.state == pb.TASK_STATE_COMPLETED

        found = await client.get_task(pb.GetTaskRequest(id=task.id))
        assert texts(found.artifacts[0].parts) == ["Done."]
        assert texts(found.history[0].parts) == ["Hello!"]
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(pb.CancelTaskRequest(id=task.id))
        with pytest.raises(TaskNotFoundError):
            await client.get_task(pb.GetTaskRequest(id="00000000-0000-4000-8000-000000000000"))
        with pytest.raises(UnsupportedOperationError):
            await anext(client.send_message(message("more", task_id=task.id)))


@pytest.mark.parametrize(("binding", "version"), KINDS)
async def test_a_call_that_waits(tmp_path: Path, binding: str, version: str) -> None:
    async with (
        served() as (agent, _),
        connected(agent, binding, version, streaming=False) as client,
    ):
        agent.cwd = tmp_path
        (tmp_path / ".git").mkdir()
        request = message("Look:")
        request.message.parts.append(pb.Part(raw=b"\x00\xff", filename="a.bin"))
        request.message.parts.append(pb.Part(url="https://example.com/b"))
        call = asyncio.create_task(collect(client.send_message(request)))
        task = await agent.works()
        assert ".synapse/files/" in agent.requests[0].text
        file = tmp_path / "answer.txt"
        file.write_bytes(b"42")
        artifact = Artifact("", parts=(Part("file", path=str(file), name="answer.txt"),))
        agent.tasks.change(
            task.id, state=TaskState.COMPLETED, delivery=DeliveryState.DONE, artifacts=(artifact,)
        )
        (answer,) = await call
        (part,) = answer.task.artifacts[0].parts
        assert (part.raw, part.filename) == (b"42", "answer.txt")
        assert answer.task.history[0].parts[1].raw == b"\x00\xff"


async def test_all_who_subscribe_see_the_same_in_the_same_order() -> None:
    async with served() as (agent, _), plain(agent) as client:
        first = stream(client, "SendStreamingMessage", said())
        task_id = (await anext(first))["task"]["id"]
        agent.give(task_id)
        others = [stream(client, "SubscribeToTask", {"id": task_id}) for _ in range(3)]
        assert [states([await anext(other)]) for other in others] == [["TASK_STATE_WORKING"]] * 3
        await others[0].aclose()
        for number in range(50):
            agent.tasks.changes.written(task_id, "x" * (number + 1), 1)
        agent.finish(task_id, "x" * 50)
        seen = await asyncio.gather(*(collect(each) for each in (first, *others[1:])))
        assert seen[1] == seen[2] == seen[0][1:]
        assert len(seen[1]) == 52
        assert states(seen[1]) == ["TASK_STATE_COMPLETED"]


async def test_a_caller_that_leaves_frees_its_subscription_at_once() -> None:
    async with served() as (agent, _):
        for method in (b"SendMessage", b"SendStreamingMessage"):
            call = (
                b'{"jsonrpc": "2.0", "id": 1, "method": "%s", "params": {"message": {"messageId": "%s",'
                % (
                    method,
                    method,
                )
            )
            call += b'"role": "ROLE_USER", "parts": [{"text": "x"}]}}}'
            connection = await Connection.open(agent.port)
            connection.writer.write(http("POST", "/", agent.port, call, V1))
            task = await agent.works()
            assert agent.tasks.changes.wanted(task.id)
            await connection.close()
            await until(lambda: not agent.tasks.changes.wanted(task.id))  # noqa: B023 - it is awaited here
            assert not agent.tasks.get(task.id).state.final, "its task goes on"


async def test_a_server_that_stops_ends_its_own_streams_only() -> None:
    async with (
        served() as (ending, server),
        served() as (other, _),
        plain(ending) as client,
        plain(other) as elsewhere,
    ):
        cut = stream(client, "SendStreamingMessage", said())
        kept = stream(elsewhere, "SendStreamingMessage", said())
        await anext(cut)
        kept_id = (await anext(kept))["task"]["id"]
        waiting = asyncio.create_task(rpc(client, "SendMessage", said()))
        await ending.works()
        await ending.works()
        dialect = client.stream("GET", f"/tasks/{ending.task_ids[0]}/subscribe")
        async with dialect as response:
            told = events(response)
            await anext(told)
            await server.stop()
            assert await collect(told) == []
        assert states(await collect(cut))[-1:] != ["TASK_STATE_COMPLETED"]
        assert (await waiting)["task"]["status"]["state"] == "TASK_STATE_WORKING"
        other.finish(kept_id, "Done.")
        assert states(await collect(kept)) == ["TASK_STATE_COMPLETED"]


async def test_a_reader_that_is_too_slow_gets_the_text_as_it_is_then() -> None:
    """A task that writes much more than anybody reads keeps no more than a stream's share."""
    async with served() as (agent, _), plain(agent) as client:
        slow = stream(client, "SendStreamingMessage", said())
        task_id = (await anext(slow))["task"]["id"]
        agent.give(task_id)
        for number in range(1000):  # at once: the server cannot send between any two
            agent.tasks.changes.written(task_id, str(number) * 20, 1)
        agent.finish(task_id, "Done.")
        updates = await collect(slow)
        assert len(updates) < 10
        (chunk,) = [each["artifactUpdate"] for each in updates if "artifactUpdate" in each]
        assert (chunk["artifact"]["parts"][0]["text"], chunk["lastChunk"]) == ("Done.", True)
        assert states(updates)[-1] == "TASK_STATE_COMPLETED"
