"""Agents that ask and answer one another: real agents in PTYs, real servers, one host or two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.async_client import AsyncClient
from synapse_tui.a2a.calls import PeerTask
from synapse_tui.a2a.client import Client
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.errors import PeerRefused
from synapse_tui.core.model import AgentSpec, Reply, ReplyState, Sender, Task, TaskState
from synapse_tui.host import replies
from synapse_tui.host.host import Host
from synapse_tui.messages.tasks import TaskStore
from tests.integration.host_kit import make_host, open_ready, running
from tests.integration.session_rig import until
from tests.waiting import PATIENCE

WORKS = "%%hang:60%%"
"""A prompt on which the dummy works until it is interrupted."""


class Person:
    """Does what the commands of an agent do, by the environment of its processes.

    Args:
        session: The agent.
    """

    def __init__(self, session: AgentSession) -> None:
        self.session = session
        token = session.environ["SYNAPSE_TOKEN"]
        self.sender = Sender(session.agent_id, session.agent_type, session.endpoint)
        self.client = Client(token_of=lambda who: token if who == session.agent_id else None)

    async def ask(self, other: AgentSession, text: str) -> tuple[Task, Task]:
        """Send a message and expect an answer."""
        own = await asyncio.to_thread(
            self.client.call,
            self.session.endpoint,
            calls.create(
                text, sender=self.sender, target_agent=other.agent_id, target_endpoint=other.endpoint
            ),
        )
        given = await self.send(other, text, expected=True, sender_task_id=own.task_id)
        return self.session.tasks.get(own.task_id), given

    async def send(
        self, other: AgentSession, text: str, *, expected: bool = False, **metadata: object
    ) -> Task:
        sent = await asyncio.to_thread(
            self.client.call,
            other.endpoint,
            calls.send(text, sender=self.sender, response_expected=expected, metadata=metadata),
        )
        return other.tasks.get(sent.task_id)

    async def reply(self, text: str, task_id: str = "", state: TaskState = TaskState.COMPLETED) -> PeerTask:
        return await asyncio.to_thread(
            self.client.call,
            self.session.endpoint,
            calls.reply(task_id, Reply(text, state)),
            sender_id=self.session.agent_id,
        )

    async def fetch(self, task: Task) -> PeerTask:
        """Wait for the answer as the command does: by long polls, until the task has ended."""
        found = await asyncio.to_thread(self.client.call, self.session.endpoint, calls.task(task.id))
        while not found.state.final:
            found = await asyncio.to_thread(
                self.client.call,
                self.session.endpoint,
                calls.wait(found, 10),
                sender_id=self.session.agent_id,
            )
        return found


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setattr(AsyncClient, "call", Mock(side_effect=AssertionError("a call over HTTP")))
    made = make_host(tmp_path)
    made._replies._uncollected = 0.2
    async with running(made) as started:
        yield started


def messages(session: AgentSession) -> list[Task]:
    return [task for task in list(session.tasks) if not task.outgoing]


async def works_on(session: AgentSession, task: Task) -> None:
    await until(lambda: session.tasks.get(task.id).state is TaskState.WORKING, "the turn")


async def test_a_reply_goes_to_the_owner_of_the_task_among_agents_of_one_type(host):
    alice, bob, carol = await open_ready(host, "alice", "bob", "carol")
    of_alice, given = await Person(alice).ask(bob, WORKS)
    of_carol, waiting = await Person(carol).ask(bob, "second")
    await works_on(bob, given)
    with pytest.raises(PeerRefused, match="not been given to this agent yet"):
        await Person(bob).reply("too early", waiting.id[:8])
    await Person(bob).reply("for alice", given.id[:8])
    await until(lambda: alice.tasks.get(of_alice.id).state.final, "the answer for alice")
    assert alice.tasks.get(of_alice.id).answer == "for alice"
    assert not carol.tasks.get(of_carol.id).state.final
    for other, task in ((carol, given), (alice, given)):
        with pytest.raises(PeerRefused):
            await Person(other).reply("stolen", task.id[:8])


async def test_an_answer_of_another_agent_than_was_asked_ends_no_task(host):
    alice, bob, carol = await open_ready(host, "alice", "bob", "carol")
    own, _ = await Person(alice).ask(bob, WORKS)
    given = await Person(alice).send(carol, "who are you?", sender_task_id=own.id, expected=True)
    await until(lambda: carol.tasks.get(given.id).reply is ReplyState.FAILED, "the answer was refused")
    assert not alice.tasks.get(own.id).state.final


@pytest.mark.parametrize("seconds", [0, 0.3], ids=["", "slow-disk"])
async def test_two_hosts_tell_one_another_also_of_an_end(tmp_path, monkeypatch, seconds):
    monkeypatch.setattr(replies, "LAST_CALLS", PATIENCE)  # a busy machine may need longer than a host waits
    flush = TaskStore.flush

    async def late(store, *arguments):
        await asyncio.sleep(seconds)
        await flush(store, *arguments)

    monkeypatch.setattr(TaskStore, "flush", late)
    async with running(make_host(tmp_path, "one")) as one:
        (alice,) = await open_ready(one, "alice")
        asker = Person(alice)
        async with running(make_host(tmp_path, "two")) as two:
            bob, carol = await open_ready(two, "bob", "carol")
            of_bob, given = await asker.ask(bob, WORKS)
            of_carol, other = await asker.ask(carol, WORKS)
            await works_on(bob, given)
            await works_on(carol, other)  # else it would wait in her queue for the next start
            assert not bob.tasks.get(given.id).sender.verified, "another host cannot prove it"
            await Person(bob).reply("from afar")
            assert (await asker.fetch(of_bob)).text == "from afar"
        ended = await asker.fetch(of_carol)
        assert (ended.state, ended.reason) == (TaskState.FAILED, "agent exited")


async def test_what_could_not_be_told_is_told_after_the_restart(tmp_path, monkeypatch):
    async with running(make_host(tmp_path, "one")) as one:
        (alice,) = await open_ready(one, "alice")
        async with running(make_host(tmp_path, "two")) as two:
            (bob,) = await open_ready(two, "bob")
            own, given = await Person(alice).ask(bob, WORKS)
            await works_on(bob, given)
            with monkeypatch.context() as patch:
                patch.setattr("synapse_tui.host.replies.Replies._due", lambda *_: None)
                await Person(bob).reply("told late")
                await bob.tasks.flush()
        assert alice.tasks.get(own.id).state is TaskState.WORKING
        async with running(make_host(tmp_path, "two")):
            assert (await Person(alice).fetch(own)).text == "told late"


async def test_an_agent_that_goes_on_after_a_restart_gets_the_answer_to_what_it_had_asked(tmp_path):
    async with running(make_host(tmp_path, "two")) as two:
        (bob,) = await open_ready(two, "bob")
        async with running(make_host(tmp_path, "one")) as one:
            (alice,) = await open_ready(one, "alice")
            own, given = await Person(alice).ask(bob, WORKS)
            await works_on(bob, given)
            await alice.tasks.flush()
        async with running(make_host(tmp_path, "one")) as one:
            spec = AgentSpec("dummy", port=alice.port, name="alice", restore=True)
            again = await one.open(spec, columns=80, lines=24)
            await until(lambda: own.id in again.tasks, "what it had asked")
            assert again.tasks.get(own.id).reason == "the host had ended"
            await Person(bob).reply("at last")
            (late,) = await until(lambda: messages(again), "the answer")
            assert (late.text, late.metadata["in_reply_to"]) == ("at last", given.id)


async def test_an_answer_from_before_the_restart_of_the_asker_is_held_for_a_person(tmp_path):
    async with running(make_host(tmp_path, "one")) as one:
        one._replies._uncollected = 60
        alice, bob = await open_ready(one, "alice", "bob")
        _, given = await Person(alice).ask(bob, WORKS)
        await works_on(bob, given)
        await Person(bob).reply("you had asked")
        await until(lambda: bob.tasks.get(given.id).reply is ReplyState.GIVEN, "the answer has come")
        port = alice.port
    async with running(make_host(tmp_path, "one")) as one:
        again = await one.open(AgentSpec("dummy", port=port), columns=80, lines=24)
        (late,) = await until(lambda: messages(again), "the answer")
        assert (late.text, late.reason) == ("you had asked", "from before the restart")


async def test_three_agents_do_not_wait_in_a_ring(host):
    alice, bob, carol = await open_ready(host, "alice", "bob", "carol")
    first, asked_bob = await Person(alice).ask(bob, WORKS)
    second, asked_carol = await Person(bob).ask(carol, WORKS)
    await works_on(carol, asked_carol)
    waiting = [
        asyncio.ensure_future(Person(alice).fetch(first)),
        asyncio.ensure_future(Person(bob).fetch(second)),
    ]
    await until(lambda: alice.service.awaited() and bob.service.awaited())
    ring = f"{alice.agent_id} waits for an answer of {bob.agent_id}, which waits for {carol.agent_id}"
    with pytest.raises(PeerRefused, match=ring):
        await Person(carol).send(alice, "what do you mean?", expected=True)
    await Person(carol).reply("here you are", asked_carol.id)
    assert (await waiting[1]).text == "here you are"
    assert (await Person(carol).send(alice, "and now?", expected=True)).target == alice.agent_id
    await Person(bob).reply("done", asked_bob.id)
    assert (await waiting[0]).text == "done"


async def test_a_question_back_is_told_and_answered_on_the_same_task(host):
    alice, bob = await open_ready(host, "alice", "bob")
    asker, asked = Person(alice), Person(bob)
    own, given = await asker.ask(bob, "%%slow:1%%")
    await works_on(bob, given)
    await asked.reply("which of the two?\n" + "x" * 300, state=TaskState.INPUT_REQUIRED)
    told = await until(lambda: messages(alice), "the question, which nobody fetched")
    assert told[0].text.startswith("(input_required) which of the two?\nxxx")
    assert told[0].text.endswith(f'\nto answer: synapse send {bob.agent_id} "..." --task {given.short_id}')
    assert not alice.tasks.get(own.id).state.final
    assert not bob.tasks.get(given.id).state.final

    await asyncio.to_thread(
        asker.client.call,
        bob.endpoint,
        calls.send("the blue one", sender=asker.sender, follows=given.short_id),
    )
    fetched = await asker.fetch(own)
    assert fetched.state is TaskState.COMPLETED
    assert "the blue one" in fetched.text
    assert alice.tasks.get(own.id).answer == bob.tasks.get(given.id).answer


async def test_an_answer_for_which_nobody_waits_any_more_is_typed(host):
    alice, bob = await open_ready(host, "alice", "bob")
    own, given = await Person(alice).ask(bob, "are you there?")
    (late,) = await until(lambda: messages(alice), "the message")
    assert late.metadata["in_reply_to"] == given.id
    assert "are you there?" in late.text
    assert (late.sender.sender_id, late.sender.verified) == (bob.agent_id, True)
    assert alice.tasks.get(own.id).reply is ReplyState.GIVEN
    await until(lambda: alice.tasks.get(late.id).state is TaskState.COMPLETED, "alice has read it")
    assert [task.id for task in messages(bob)] == [given.id], "the answer to an answer goes nowhere"
