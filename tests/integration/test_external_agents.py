"""External agents of a host on a disk that fails, is locked, or is not read yet; no agent is called."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from synapse_tui.a2a.external import hub as service
from synapse_tui.a2a.external.conversation import Conversation
from synapse_tui.a2a.external.hub import ExternalAgents
from synapse_tui.a2a.external.peer import TaskUpdate
from synapse_tui.a2a.external.registry import ExternalAgent, ExternalStore
from synapse_tui.a2a.external.store import ConversationStore
from synapse_tui.core.content import Part, TaskMessage
from synapse_tui.core.errors import HistoryError
from synapse_tui.core.events import EventBus, ExternalTalked
from synapse_tui.core.model import USER, ReplyState, Sender, Task, TaskState
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.records import AgentKey
from synapse_tui.messages.storage.location import Location, TeamDatabase
from synapse_tui.messages.storage.naming import naming_of
from synapse_tui.messages.tasks import TaskStore
from synapse_tui.system.paths import UserPaths
from tests.fake_agent import FakeAgent
from tests.integration.test_external_store import talk
from tests.waiting import PATIENCE, until

DOCS = ExternalAgent("docs", "http://127.0.0.1:9", added_at="2026-01-01T00:00:00+00:00")
CLAUDE = Sender("synapse-claude-8100", "claude", verified=True)


class Disk:
    """A user's files, and a machine's hosts one after the other: each finds the earlier one gone."""

    def __init__(self, folder: Path) -> None:
        self.paths = UserPaths(folder / "home")
        self.file = self.paths.history
        self.project = folder / "project"
        self.registry = ExternalStore(self.paths.external)
        self.registry.put(DOCS)
        self._numbers = itertools.count(1)

    def history(self, location: Location | None = None, *, busy: float = 5.0) -> History:
        location = location or self.file
        return History(location, owner=f"{next(self._numbers)}:1", alive=lambda _: False, busy=busy)

    async def write(self, conversation: Conversation) -> None:
        history = self.history()
        ConversationStore(history, self.project, self.paths.talks).note(conversation)
        await history.close()

    @asynccontextmanager
    async def host(
        self, *agents: FakeAgent, load: bool = True, busy: float = 5.0
    ) -> AsyncIterator[ExternalAgents]:
        self.local = history = self.history(busy=busy)
        externals = ExternalAgents(
            self.project,
            paths=self.paths,
            history=history,
            events=EventBus(),
            agents=cast("Any", {agent.agent_id: agent for agent in agents}),
            environ=dict,
            types=tuple,
            make_id=(f"{number:08x}-0000-4000-8000-000000000000" for number in itertools.count(99)).__next__,
        )
        externals.start()
        await until(lambda: externals.agents)
        if load:
            externals.load()
            await externals.ready()
        try:
            yield externals
        finally:
            await externals.stop()
            await history.close()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file)) as database:
            return database.execute(query).fetchall()

    def change(self, statement: str, *values: str) -> None:
        with closing(sqlite3.connect(self.file, isolation_level=None)) as database:
            database.execute(statement, values)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with closing(sqlite3.connect(self.file, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            yield


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def begun(sender: Sender = USER) -> tuple[Conversation, Task]:
    """A conversation in which the agent has accepted a message."""
    conversation = talk()
    conversation.agent = DOCS.identity
    task = conversation.begin("hello", sender, expected=False)
    return conversation, conversation.apply(task.id, TaskUpdate("r1", "c1", TaskState.WORKING))


def asked(conversation: Conversation, task: Task, question: str) -> Task:
    message = TaskMessage(question, "agent", (Part(text=question),))
    return conversation.apply(task.id, TaskUpdate("r1", "c1", TaskState.INPUT_REQUIRED, message))


# -- answers to agents whose messages lie in another database ---


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.postgres)])
def elsewhere(request: pytest.FixtureRequest, disk: Disk) -> Location:
    if request.param == "file":
        return disk.file.with_name("team.db")
    return TeamDatabase(request.getfixturevalue("team_url"), "m", disk.project)


def asker(history: History, location: Location) -> FakeAgent:
    agent = FakeAgent()
    project = naming_of(location).project("/project")
    journal = AgentJournal(history, AgentKey(project, agent.agent_id, "claude"))
    journal.ready()
    agent.tasks = TaskStore(agent.agent_id, agent.context_id, agent.events, journal=journal)
    return agent


async def test_an_answer_is_due_until_the_askers_own_history_has_it(disk, elsewhere, monkeypatch):
    conversation, task = begun(CLAUDE)
    asked(conversation, task, "which?")
    conversation.change(task.id, reply=ReplyState.DUE)
    await disk.write(conversation)
    history = disk.history(elsewhere)
    agent, committing = asker(history, elsewhere), asyncio.Event()

    async def commit(_seconds: float) -> None:
        await committing.wait()
        await history.flush()

    monkeypatch.setattr(agent.tasks.journal, "flush", commit)
    async with disk.host(agent):
        await until(lambda: agent.requests)
        await disk.local.flush()
        ((reply, changed),) = disk.rows("SELECT reply, updated_at FROM external_tasks")
        assert reply == "due"
        committing.set()
        await until(lambda: disk.rows("SELECT reply FROM external_tasks") == [("told",)])
    await history.close()

    # As if killed before the second commit.
    disk.change("UPDATE external_tasks SET reply = 'due', updated_at = ?", changed)
    history = disk.history(elsewhere)
    again = asker(history, elsewhere)
    async with disk.host(again):
        await until(lambda: disk.rows("SELECT reply FROM external_tasks") == [("told",)])
    assert (len(agent.requests), len(again.requests)) == (1, 0)
    await history.close()


async def test_what_ends_while_a_question_is_committed_is_an_answer_too(disk, monkeypatch):
    conversation, task = begun(CLAUDE)
    asked(conversation, task, "which?")
    conversation.change(task.id, reply=ReplyState.DUE)
    await disk.write(conversation)
    agent, committing = FakeAgent(), asyncio.Event()
    monkeypatch.setattr(agent.tasks, "flush", committing.wait)
    async with disk.host(agent) as externals:
        await until(lambda: agent.requests)
        await externals.send("docs", "blue", sender=USER)  # fails: nothing listens there
        await until(lambda: externals.task("docs", task.id).state is TaskState.FAILED)
        committing.set()
        await until(lambda: len(agent.requests) == 2)
        await until(lambda: externals.task("docs", task.id).reply is ReplyState.GIVEN)
    assert ["which?" in agent.requests[0].text, "(failed)" in agent.requests[1].text] == [True, True]


# -- a disk that fails, or is not read yet ---


async def test_nothing_is_written_over_a_conversation_that_is_not_read_yet(disk):
    conversation, _task = begun()
    await disk.write(conversation)
    async with disk.host(load=False) as externals:
        externals.set_opened("docs", opened=True)
    async with disk.host() as externals:
        found = externals.conversation("docs")
        assert found is not None
        assert (found.context_id, len(found.tasks)) == ("c1", 1)


async def test_a_question_stands_whose_answer_could_not_be_written(disk):
    conversation, task = begun()
    asked(conversation, task, "which?")
    await disk.write(conversation)
    async with disk.host(busy=0.1) as externals:
        with disk.locked(), pytest.raises(HistoryError, match="database is locked"):
            await externals.send("docs", "blue", sender=USER)
        assert externals.task("docs", task.id).state is TaskState.INPUT_REQUIRED
        stored = "SELECT state, reason FROM external_tasks"
        await until(lambda: disk.rows(stored) == [("input_required", "which?")])
        await until(lambda: ("sent", "blue") in disk.rows("SELECT kind, text FROM entries"))


async def test_a_message_whose_sender_gives_up_while_it_is_written_is_not_sent(disk):
    await disk.write(begun()[0])
    async with disk.host() as externals:
        with disk.locked():
            sending = asyncio.ensure_future(externals.send("docs", "hello", sender=USER))
            await until(lambda: len(externals.tasks) == 2)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        task = externals.tasks[-1]
        assert (task.state, task.reason) == (TaskState.FAILED, "canceled by its sender")
        stored = f"SELECT state FROM external_tasks WHERE id = '{task.id}'"
        await until(lambda: disk.rows(stored) == [("failed",)])


async def test_a_message_to_an_agent_that_is_being_replaced_is_not_deleted_with_it(disk, monkeypatch):
    conversation, _task = begun()
    await disk.write(conversation)
    deleting, going_on = asyncio.Event(), asyncio.Event()
    forget = ConversationStore.forget

    async def slow(store: ConversationStore, alias: str) -> None:
        deleting.set()
        await going_on.wait()
        await forget(store, alias)

    async with disk.host() as externals:
        monkeypatch.setattr(ConversationStore, "forget", slow)
        disk.registry.put(replace(DOCS, added_at="2026-01-02T00:00:00+00:00"))
        await asyncio.wait_for(deleting.wait(), PATIENCE)
        sending = asyncio.ensure_future(externals.send("docs", "to the new one", sender=USER))
        for _ in range(50):  # time enough to commit, if it did not wait
            await disk.local.flush()
        going_on.set()
        await sending
        await until(lambda: ("hello",) not in disk.rows("SELECT text FROM external_tasks"))
    assert disk.rows("SELECT text FROM external_tasks") == [("to the new one",)]


async def test_a_change_of_a_conversation_does_not_go_over_all_tasks_of_all(disk, monkeypatch):
    monkeypatch.setattr(service, "MAX_SEEN", 5)
    conversation = talk()
    conversation.agent = DOCS.identity
    for _ in range(20):
        conversation.begin("hello", USER, expected=False)
    await disk.write(conversation)
    listed: list[int] = []
    read = cast("Any", ExternalAgents.tasks).fget

    def count(externals: ExternalAgents) -> list[Task]:
        tasks: list[Task] = read(externals)
        listed.append(len(tasks))
        return tasks

    talked: list[ExternalTalked] = []
    async with disk.host() as externals:
        externals._events.subscribe(talked.append, ExternalTalked)
        monkeypatch.setattr(ExternalAgents, "tasks", property(count))
        for number in range(1, 6):
            externals.set_opened("docs", opened=number % 2 == 0)
            await until(lambda: len(talked) >= number)  # noqa: B023 - awaited in the loop
    assert len(listed) <= 1
