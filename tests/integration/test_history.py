"""A host that ends and another one that goes on, on the same database; and the crash itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.client import Client
from synapse_tui.agents.delivery.incoming import Upload, receive
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.errors import PeerRefused
from synapse_tui.core.events import Event, Notice
from synapse_tui.core.model import (
    AgentSpec,
    AgentState,
    DeliveryState,
    MessageRequest,
    Reply,
    Sender,
    TaskState,
)
from synapse_tui.daemon.workspace import LostWorkspace
from synapse_tui.host.host import Host
from synapse_tui.messages.records import TaskQuery
from synapse_tui.workspace import SavedAgent, SavedWorkspace, WorkspaceStore
from tests.bench import crash
from tests.integration.host_kit import make_host, running
from tests.integration.session_rig import until
from tests.ports import free_ports

PEER = Sender("synapse-claude-8100", "claude", "", verified=True)
WAITS = "%%perm:may I?%%"
"""A prompt over which the dummy opens a dialog, so that nothing more is typed."""


def rows(host: Host, query: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(host.paths.history, timeout=10)) as connection:
        return connection.execute(query).fetchall()


@asynccontextmanager
async def one_agent(
    tmp_path: Path, port: int = 0, *, restore: bool = False
) -> AsyncIterator[tuple[Host, AgentSession, list[Event]]]:
    host = make_host(tmp_path)
    heard: list[Event] = []
    host.events.subscribe(heard.append)
    async with running(host):
        args = ("--log", str(tmp_path / "dummy.jsonl"))
        session = await host.open(
            AgentSpec("dummy", port=port, args=args, restore=restore), columns=80, lines=24
        )
        yield host, session, heard


def text_of(tmp_path: Path, event: str) -> str:
    log = tmp_path / "dummy.jsonl"
    lines = log.read_text().splitlines(True) if log.exists() else []
    return "".join(line for line in lines if f'"{event}"' in line)


async def leave_two_waiting(tmp_path: Path, port: int = 0) -> int:
    """One message that opens a dialog, and two that wait behind it when the host ends."""
    async with one_agent(tmp_path, port) as (_, session, _):
        await until(lambda: session.report.state is AgentState.READY)
        for text in (WAITS, "first of two", "second of two"):
            session.accept(MessageRequest(text, PEER))
        await until(lambda: session.report.state is AgentState.WAITING)
        return session.port


async def test_what_still_waited_is_held_until_it_is_released(tmp_path):
    port = await leave_two_waiting(tmp_path)
    async with one_agent(tmp_path, port) as (host, session, heard):
        await until(lambda: len(session.outbox) == 2, "the messages from before")
        assert [task.text for task in session.outbox] == ["first of two", "second of two"]
        assert {task.reason for task in session.outbox} == {"from before the restart"}
        notices = [event.text for event in heard if isinstance(event, Notice)]
        assert notices == [f"{session.agent_id}: 2 held since the restart; see its messages"]
        assert rows(host, "SELECT delivery, reason FROM tasks WHERE input LIKE '%perm%'") == [
            ("failed", "agent exited")
        ]
        new = session.accept(MessageRequest("sent since", PEER))
        await until(
            lambda: session.tasks.get(new.id).state.final, "the new message, which passes the held ones"
        )
        assert "of two" not in text_of(tmp_path, "submit")
        for task in tuple(session.outbox):
            session.control.release(task.id)
        await until(lambda: not len(session.outbox), "the released messages")
        await until(lambda: "second of two" in text_of(tmp_path, "submit"))
    submitted = text_of(tmp_path, "submit")
    assert submitted.index("first of two") < submitted.index("second of two")


async def test_a_restored_agent_goes_on_where_its_port_is_taken(tmp_path):
    port = await leave_two_waiting(tmp_path)
    with socket.create_server(("127.0.0.1", port)):
        host = make_host(tmp_path)
        async with running(host):
            args = ("--log", str(tmp_path / "dummy.jsonl"))
            spec = AgentSpec("dummy", args=args, restore=True, last_port=port)
            session = await host.open(spec, columns=80, lines=24)
            assert session.port != port
            ended = (
                f"SELECT count(*) FROM tasks WHERE status = 'completed' AND agent_name = '{session.agent_id}'"
            )
            await until(lambda: rows(host, ended) == [(2,)], "the messages from before", 30)
    assert text_of(tmp_path, "submit").count("of two") == 2


async def test_agents_that_are_opened_meanwhile_leave_the_ports_of_a_lost_workspace_alone(tmp_path):
    host = make_host(tmp_path)
    first = host.profiles.find("dummy").ports[0]
    agents = tuple(SavedAgent("dummy", f"synapse-dummy-{first + n}", first + n, "/", order=n) for n in (0, 1))
    saved = SavedWorkspace(str(host.project), "project", datetime.now(UTC), agents=agents)
    with socket.create_server(("127.0.0.1", first)):
        async with running(host):
            store = WorkspaceStore(tmp_path / "workspaces", "key")
            lost = LostWorkspace(host, store, saved, lambda _view: None, ask=False)
            new = await host.open(AgentSpec("dummy"), columns=80, lines=24)
            assert new.port > first + 1
            assert not await lost.offer().open([(80, 24)] * 2)
            assert host.agents[f"synapse-dummy-{first + 1}"].spec.last_port == first + 1, (
                "none took another's"
            )


@pytest.mark.parametrize("reopens", [False, True])
async def test_messages_of_closed_agents_are_reported_once_a_lost_workspace_is_decided(
    tmp_path, monkeypatch, reopens
):
    monkeypatch.setattr("synapse_tui.host.history.OPENED", 0.0)
    ports = {await leave_two_waiting(tmp_path), await leave_two_waiting(tmp_path, free_ports())}
    lost_port = min(ports)
    agent = SavedAgent("dummy", f"synapse-dummy-{lost_port}", lost_port, str(tmp_path))
    saved = SavedWorkspace("/", "project", datetime.now(UTC), agents=(agent,))
    host = make_host(tmp_path)
    reported: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Notice) and event.closed:
            reported.append(event.agent_id)

    host.events.subscribe(hear)
    async with running(host):
        store = WorkspaceStore(tmp_path / "workspaces", "key")
        lost = LostWorkspace(host, store, saved, lambda _view: None, ask=True)
        for _ in range(2):  # the second is answered after what the host itself asks
            assert len(await host.history.unfinished()) == 2
        assert not reported, "the question says it"
        if reopens:
            assert not await lost.offer().open([(80, 24)])
        else:
            lost.offer().forget()
        closed = ports - {lost_port} if reopens else ports
        await until(lambda: len(reported) >= len(closed), "the notices")
        assert set(reported) == {f"synapse-dummy-{port}" for port in closed}


async def test_a_message_that_cannot_be_noted_is_not_typed(tmp_path):
    async with one_agent(tmp_path) as (host, session, heard):
        await until(lambda: session.report.state is AgentState.READY)
        await until(lambda: not session.tasks.journal.problem, "the history")
        with contextlib.closing(sqlite3.connect(host.paths.history, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = session.accept(MessageRequest("hello", PEER))
            await until(
                lambda: session.tasks.get(task.id).reason.startswith("history cannot be written"),
                "the reason",
            )
            assert session.tasks.get(task.id).delivery is DeliveryState.HELD
            assert text_of(tmp_path, "submit") == ""
            other.execute("ROLLBACK")
        await until(lambda: session.tasks.get(task.id).state is TaskState.COMPLETED, "the end of the lock")
        assert text_of(tmp_path, "submit").count("hello") == 1
        assert any(isinstance(event, Notice) and "written again" in event.text for event in heard)


@pytest.mark.timeout(300)
def test_a_killed_host_types_nothing_twice_and_loses_nothing(tmp_path):
    kills = int(os.environ.get("SYNAPSE_TEST_KILLS", "3"))
    outcome = crash.run(tmp_path, kills, seed=7)
    assert not {fault: texts for fault, texts in outcome.faults.items() if texts}, outcome.stories
    assert outcome.given


async def test_what_is_sent_again_after_a_restart_is_not_typed_again(tmp_path):
    client = Client(timeout=60, environ={})
    sender = Sender("synapse-claude-8101", "claude", "http://127.0.0.1:8101")
    again = calls.send("once only", sender=sender, metadata={"origin_id": "m1"})
    port, ids, answers = 0, set(), []
    for _ in range(2):
        async with one_agent(tmp_path, port, restore=True) as (_, session, _):
            port = session.port
            own = Sender(session.agent_id, "dummy", session.endpoint, verified=True)
            ids.add((await asyncio.to_thread(client.call, session.endpoint, again)).task_id)
            await until(lambda: "once only" in text_of(tmp_path, "submit"))
            if not answers:
                target = {"target_agent": sender.sender_id, "target_endpoint": sender.sender_endpoint}
                asked = session.service.open(MessageRequest("which?", own, metadata=target), sender.sender_id)
                answers = [calls.answer(asked.id, Reply("blue", origin_id="r1"), sender=sender)]
            told = await asyncio.to_thread(client.call, session.endpoint, answers[0])
            assert (told.task_id, told.text) == (asked.id, "blue")
            await until(lambda: "blue" in text_of(tmp_path, "submit"))
            await until(lambda: all(task.state.final for task in session.tasks), "the ends")
    assert len(ids) == 1
    submitted = text_of(tmp_path, "submit")
    assert (submitted.count("once only"), submitted.count("blue")) == (1, 1)


async def test_what_goes_on_with_a_task_still_does_after_a_restart(tmp_path):
    async with one_agent(tmp_path) as (_, session, _):
        await until(lambda: session.report.state is AgentState.READY)
        session.accept(MessageRequest(WAITS, PEER))
        await until(lambda: session.report.state is AgentState.WAITING)
        task = session.accept(MessageRequest("draw a plan", PEER, caller="ci"))
        session.accept(MessageRequest("in blue", PEER, follows=task.id))
        port = session.port
    async with one_agent(tmp_path, port, restore=True) as (_, session, _):
        assert (await session.tasks.find(task.id)).caller == "ci", "found as soon as it is read"
        await until(lambda: session.tasks.get(task.id).state.final, "its end")
        final = session.tasks.get(task.id)
        assert final.state is TaskState.COMPLETED
        assert ["draw a plan" in final.artifacts[0].text, "in blue" in final.artifacts[1].text] == [
            True,
            True,
        ]
        page = await session.tasks.page(TaskQuery(states=frozenset({TaskState.COMPLETED})))
        assert [each.id for each in page.items] == [task.id], "the message itself is no task for others"


async def test_what_is_too_old_is_removed_with_its_files(tmp_path):
    async with one_agent(tmp_path) as (host, session, _):
        await until(lambda: session.report.state is AgentState.READY)
        (file,) = await receive([Upload(b"x", "x.txt")], session.cwd, "old-task")
        task = session.accept(MessageRequest("hello", PEER))
        await until(lambda: session.tasks.get(task.id).state.final, "its end")
        await host.history.tidy(datetime.now(UTC) - timedelta(days=1))
        assert (await session.tasks.page(TaskQuery())).total == 1
        assert Path(file.path).exists()  # noqa: ASYNC240 - a test
        await host.history.tidy(datetime.now(UTC) + timedelta(days=1))
        assert (await session.tasks.page(TaskQuery())).total == 0
        assert not Path(file.path).exists()  # noqa: ASYNC240 - a test


async def test_a_task_that_memory_has_forgotten_is_answered_over_http(tmp_path):
    async with one_agent(tmp_path) as (_, session, _):
        await until(lambda: session.report.state is AgentState.READY)
        session.tasks._limit = 0
        task = session.accept(MessageRequest("hello", PEER))
        await until(lambda: task.id not in session.tasks, "its end")
        client = Client()
        found = await asyncio.to_thread(client.call, session.endpoint, calls.task(task.short_id))
        assert (found.task_id, found.state) == (task.id, TaskState.COMPLETED)
        waited = await asyncio.to_thread(client.call, session.endpoint, calls.wait(found, 30))
        assert waited == found, "it is not waited for what has ended"
        with pytest.raises(PeerRefused, match="no task"):
            await asyncio.to_thread(client.call, session.endpoint, calls.task("0" * 32))


async def test_a_restored_agent_goes_on_with_what_an_earlier_start_held(tmp_path):
    port = await leave_two_waiting(tmp_path)
    async with one_agent(tmp_path, port) as (_, session, _):
        await until(lambda: len(session.outbox) == 2, "the messages from before")
        by_user = session.accept(MessageRequest(f"{WAITS} held", PEER))
        session.control.hold(by_user.id)
    async with one_agent(tmp_path, port, restore=True) as (host, session, _):
        ended = "SELECT count(*) FROM tasks WHERE status = 'completed'"
        await until(lambda: rows(host, ended) == [(2,)], "the messages from before", 30)
        assert [task.reason for task in session.outbox] == ["held by you"]
    assert text_of(tmp_path, "submit").count("of two") == 2


async def test_another_agent_does_not_get_them(tmp_path, monkeypatch):
    port = await leave_two_waiting(tmp_path)
    other = free_ports()
    monkeypatch.setattr("synapse_tui.host.history.OPENED", 0.0)
    async with one_agent(tmp_path, other) as (host, session, heard):
        await until(lambda: not session.tasks.journal.problem, "the history")
        assert len(session.outbox) == 0
        again = (
            f"synapse start dummy@{tmp_path / 'project'} --port {port} -- --log {tmp_path / 'dummy.jsonl'}"
        )
        told = f"2 from before wait for synapse-dummy-{port}: open it again with {again}"
        await until(lambda: any(getattr(event, "text", "") == told for event in heard), "the notice")
        assert rows(host, "SELECT agent_name, count(*) FROM outbox") == [(f"synapse-dummy-{port}", 2)]


async def test_the_history_has_the_names_that_agents_had_though_others_have_their_ids(tmp_path):
    async with one_agent(tmp_path) as (host, bob, _):
        alice = await host.open(AgentSpec("dummy", name="alice"), columns=80, lines=24)
        host.rename(bob.agent_id, "bob")
        await until(lambda: bob.report.state is AgentState.READY)
        await host.send("bob", "hello", sender=alice.agent_id)
        await until(lambda: rows(host, "SELECT count(*) FROM tasks WHERE status = 'completed'") == [(1,)])
        host.rename(alice.agent_id, "erin")
        host.rename(bob.agent_id, "frank")
        await host.send("frank", "hello again", sender=alice.agent_id)
        await until(lambda: rows(host, "SELECT count(*) FROM tasks WHERE status = 'completed'") == [(2,)])
        page = await host.history.reader.page(TaskQuery(project=str(tmp_path / "project")))
        names = [record.names({alice.agent_id: "gina"}) for record in page.items]
        assert [(found[alice.agent_id], found[bob.agent_id]) for found in names] == [
            ("erin", "frank"),
            ("alice", "bob"),
        ]
