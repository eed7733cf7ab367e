"""What senders are told of their tasks, how often it is tried, and what becomes of it when it cannot be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from synapse_tui.a2a.calls import Call, PeerTask
from synapse_tui.core.errors import AgentExited, MessageError, PeerRefused, PeerUnreachable
from synapse_tui.core.events import AgentAdded, Event, EventBus, Notice
from synapse_tui.core.model import (
    USER,
    AgentSpec,
    DeliveryState,
    MessageRequest,
    Reply,
    ReplyState,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.host import replies as module
from synapse_tui.host.replies import Replies
from synapse_tui.messages.history import READING
from synapse_tui.messages.records import AgentKey, ReplyDue
from synapse_tui.messages.tasks import Journal
from synapse_tui.system.backoff import Backoff
from tests.fake_agent import FakeAgent
from tests.waiting import until

CLAUDE = Sender("synapse-claude-8101", "claude", "http://127.0.0.1:8101", verified=True)
OWN = "11111111-2222"


class Session:
    """What `Replies` needs of a session, over a fake agent."""

    def __init__(self, agent: FakeAgent, *, restore: bool = False) -> None:
        self.agent = agent
        self.agent_id = agent.agent_id
        self.tasks = agent.tasks
        self.outbox = agent.outbox
        self.spec = AgentSpec(agent.agent_type, restore=restore)
        self.problems: list[Exception] = []

    def accept(self, request: MessageRequest) -> Task:
        if self.problems:
            raise self.problems.pop(0)
        task = self.agent.accept(request)
        self.outbox.put(task)
        return task


class Client:
    """Notes the calls; fails as long as there are problems."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, Reply, str]] = []
        self.messages: list[tuple[str, str, dict[str, object]]] = []
        self.problems: list[Exception] = []
        self.tries = 0
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def call(self, endpoint: str, call: Call[PeerTask]) -> None:
        await self._try()
        body = json.loads(call.body)
        text, about = body["message"]["parts"][0]["text"], body["metadata"]
        _, _, outgoing = call.target.partition("?reply_to=")
        if outgoing:
            reply = Reply(
                text.strip(),
                TaskState(about["status"]),
                truncated=about["truncated"],
                explicit=about["explicit"],
                in_reply_to=about["receiver_task_id"],
                reason=about["reason"],
            )
            self.answers.append((endpoint, outgoing, reply, call.sender_id))
        else:
            del about["sender"], about["response_expected"]
            self.messages.append((endpoint, text, about))

    async def _try(self) -> None:
        self.tries += 1
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.problems:
            raise self.problems.pop(0)


class History:
    """What earlier processes owed."""

    def __init__(self) -> None:
        self.left: list[ReplyDue] = []
        self.noted: list[tuple[str, ReplyState]] = []

    async def reply_due(self) -> list[ReplyDue]:
        return self.left

    def note_reply(self, reply_due: ReplyDue, state: ReplyState) -> None:
        self.noted.append((reply_due.task.id, state))


class Rig:
    """An agent of a host, and who is told."""

    def __init__(self) -> None:
        self.events = EventBus()
        self.notices: list[str] = []
        self.events.subscribe(self._hear)
        self.client, self.history = Client(), History()
        self.agents: dict[str, Any] = {}
        client: Any = self.client
        history: Any = self.history

        async def get() -> Any:
            return client

        self.replies = Replies(self.events, self.agents, get, history, uncollected=0.0)
        self.agent = FakeAgent(8120, "codex")
        self.session = Session(self.agent)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)

    def open(self, session: Session | None = None) -> Session:
        session = session or self.session
        session.tasks._events = self.events
        self.agents[session.agent_id] = session
        self.events.publish(AgentAdded(session.agent_id))
        return session

    def given(self, sender: Sender = CLAUDE, *, expected: bool = True, **metadata: object) -> Task:
        task = self.agent.accept(
            MessageRequest("do it", sender, response_expected=expected, metadata=metadata)
        )
        self.agent.give(task.id)
        return task

    async def settled(self, task: Task) -> ReplyState:
        """Wait until nothing is owed for a task any more."""
        book = self.agent.tasks
        while book.get(task.id).reply is ReplyState.DUE or task.id in self.replies._work:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return book.get(task.id).reply


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(module, "RETRY", Backoff(first=0.001, longest=0.002, attempts=10))
    rig = Rig()
    yield rig
    await rig.replies.stop()


UNREACHABLE = PeerUnreachable("nobody answers")


# -- senders ---


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELED])
async def test_the_sender_is_told_of_an_end_without_an_answer(rig, state):
    rig.open()
    task = rig.given(sender_task_id=OWN)
    rig.agent.tasks.change(task.id, state=state, delivery=DeliveryState.FAILED, reason="agent exited")
    assert await rig.settled(task) is ReplyState.GIVEN
    reply = rig.client.answers[0][2]
    assert (reply.state, reply.text, reply.reason) == (state, "agent exited", "agent exited")


async def test_a_question_that_is_asked_while_another_is_brought_is_brought_too(rig):
    async def ask_again() -> None:
        rig.client.meanwhile = None
        rig.agent.service.reply(task.id, Reply("and which size?", TaskState.INPUT_REQUIRED))

    rig.open()
    task = rig.given(sender_task_id=OWN)
    rig.client.meanwhile = ask_again
    rig.agent.service.reply(task.id, Reply("which colour?", TaskState.INPUT_REQUIRED))
    await until(lambda: len(rig.client.answers) == 2)
    assert [reply.text for _, _, reply, _ in rig.client.answers] == ["which colour?", "and which size?"]
    assert await rig.settled(task) is ReplyState.GIVEN


async def test_it_is_tried_again_until_it_succeeds(rig):
    rig.client.problems = [
        UNREACHABLE,
        PeerRefused("its server failed", 500),
        PeerRefused("too many requests", 429),
        AgentExited("it has ended"),
    ]
    rig.open()
    task = rig.given(sender_task_id=OWN)
    rig.agent.finish(task.id, "x")
    assert await rig.settled(task) is ReplyState.GIVEN
    assert (rig.client.tries, len(rig.client.answers), rig.notices) == (5, 1, [])


async def test_it_is_given_up_some_time_and_a_person_told(rig):
    rig.client.problems = [UNREACHABLE] * 1000
    rig.open()
    task = rig.given(sender_task_id=OWN)
    rig.agent.finish(task.id, "x")
    assert await rig.settled(task) is ReplyState.FAILED
    assert rig.notices == [
        f"the answer of {rig.agent.agent_id} did not reach {CLAUDE.sender_id}: nobody answers"
    ]


@pytest.mark.parametrize(
    "problem", [PeerRefused("answered by another only", 403), MessageError("too many messages wait")]
)
async def test_what_is_refused_is_not_tried_again(rig, problem):
    rig.client.problems = [problem]
    rig.open()
    task = rig.given(sender_task_id=OWN)
    rig.agent.finish(task.id, "x")
    assert await rig.settled(task) is ReplyState.FAILED
    assert rig.client.tries == 1
    assert len(rig.notices) == 1


@pytest.mark.parametrize(
    ("state", "told"), [(TaskState.COMPLETED, ReplyState.FAILED), (TaskState.FAILED, ReplyState.GIVEN)]
)
async def test_an_agent_of_another_life_is_told_nothing(rig, state, told):
    """Who knows no such task has asked for nothing; a person is told of an answer that is lost by that."""
    rig.client.problems = [PeerRefused("there is no task", 404)]
    rig.open()
    task = rig.given(sender_task_id=OWN)
    rig.agent.tasks.change(task.id, state=state, reason="r")
    assert await rig.settled(task) is told
    assert not rig.client.messages
    assert len(rig.notices) == (told is ReplyState.FAILED)


async def test_only_this_machine_is_told(rig):
    rig.open()
    task = rig.given(Sender("x", "external", "http://example.org:80"), sender_task_id=OWN)
    rig.agent.finish(task.id, "secret")
    assert await rig.settled(task) is ReplyState.FAILED
    assert rig.client.tries == 0


async def test_what_changes_while_it_is_told_is_told_too(rig):
    rig.open()
    task = rig.given(sender_task_id=OWN)

    async def reply() -> None:
        rig.client.meanwhile = None
        rig.agent.service.reply(task.id, Reply("in my words"))

    rig.client.meanwhile = reply
    rig.agent.finish(task.id, "text of the turn")
    assert await rig.settled(task) is ReplyState.GIVEN
    assert [each[2].text for each in rig.client.answers] == ["text of the turn", "in my words"]


async def test_each_question_to_an_agent_of_this_host_is_a_message(rig):
    sender = FakeAgent(8101, "claude")
    rig.agents[CLAUDE.sender_id] = sender
    rig.open()
    task = rig.given(expected=False)
    for question in ("which?", "and when?"):
        rig.agent.service.reply(task.id, Reply(question, TaskState.INPUT_REQUIRED))
        assert await rig.settled(task) is ReplyState.GIVEN
    texts = [told.text.partition("\n")[0] for told in sender.tasks]
    assert texts == ["(input_required) which?", "(input_required) and when?"]


async def test_a_reply_leaves_once_the_end_is_on_disk(rig):
    steps: list[str] = []

    async def flush(_seconds: float) -> None:
        steps.append("written")

    async def called() -> None:
        steps.append("sent")

    rig.agent.tasks.journal.flush = flush
    rig.client.meanwhile = called
    rig.open()
    rig.agent.finish(rig.given(sender_task_id=OWN).id, "x")
    while "sent" not in steps:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    assert steps == ["written", "sent"]


@pytest.mark.parametrize(
    ("sender", "metadata"), [(USER, {}), (CLAUDE, {"author": "user"}), (Sender("ci"), {})]
)
async def test_who_is_told_nothing(rig, sender, metadata):
    rig.open()
    task = rig.given(sender, **metadata)
    rig.agent.service.reply(task.id, Reply("fine"))
    assert await rig.settled(task) is ReplyState.NONE
    assert rig.client.tries == 0


# -- agents of ours that asked ---


def asked(rig: Rig) -> Task:
    sender = Sender(rig.agent.agent_id, "codex", rig.agent.endpoint, verified=True)
    about = {"target_agent": CLAUDE.sender_id, "target_endpoint": CLAUDE.sender_endpoint}
    return rig.agent.service.open(MessageRequest("do it", sender, metadata=about), CLAUDE.sender_id)


async def test_an_agent_that_has_ended_is_told_when_it_is_back(rig):
    rig.session.problems = [AgentExited("it has ended")]
    rig.open()
    task = asked(rig)
    rig.agent.service.answered(task.id, Reply("no", TaskState.FAILED), verified=False)
    assert await rig.settled(task) is ReplyState.GIVEN
    assert rig.agent.requests[0].text == "(failed) no"
    assert not rig.agent.requests[0].sender.verified


# -- what is from before ---


def reply_due(rig: Rig, task: Task) -> None:
    key = AgentKey("/project", rig.agent.agent_id, "codex")
    rig.history.left.append(ReplyDue(key, rig.agent.tasks.get(task.id)))


async def noted(rig: Rig) -> ReplyState:
    while not rig.history.noted:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    [(_, state)] = rig.history.noted
    return state


@pytest.mark.parametrize("here", [True, False])
async def test_a_message_of_an_earlier_process_goes_to_agents_of_this_one_only(rig, here):
    task = rig.given(expected=False)
    rig.agent.service.reply(task.id, Reply("by the way"))
    reply_due(rig, task)
    sender = FakeAgent(8101, "claude")
    if here:
        rig.agents[CLAUDE.sender_id] = sender
    rig.replies.start()
    assert await noted(rig) is (ReplyState.GIVEN if here else ReplyState.FAILED)
    assert [told.text for told in sender.tasks] == (["by the way"] if here else [])
    assert not rig.client.messages, "an agent of this host is told by a call"


@pytest.mark.parametrize("restore", [True, False])
@pytest.mark.parametrize("first", ["history", "agent"])
async def test_an_answer_from_before_is_given_to_the_agent_when_it_is_open(rig, first, restore):
    task = asked(rig)
    rig.agent.service.answered(task.id, Reply("42", in_reply_to="T"), verified=True)
    reply_due(rig, task)
    session = Session(FakeAgent(8120, "codex"), restore=restore)
    if first == "agent":
        rig.open(session)
    rig.replies.start()
    if first == "history":
        await asyncio.sleep(0)
        rig.open(session)
    assert await noted(rig) is ReplyState.GIVEN
    [message] = session.outbox
    assert message.text == "42"
    assert (message.reason == "from before the restart") is not restore


async def test_an_agent_of_this_host_is_told_again_when_that_failed(rig, monkeypatch):
    sender = FakeAgent(8101, "claude")
    rig.agents[CLAUDE.sender_id] = sender
    failures = [RuntimeError("broken")]
    accept = sender.accept

    def fail_once(request):
        if failures:
            raise failures.pop()
        return accept(request)

    monkeypatch.setattr(sender, "accept", fail_once)
    rig.open()
    task = rig.given(expected=False)
    rig.agent.service.reply(task.id, Reply("by the way"))
    assert await rig.settled(task) is ReplyState.GIVEN
    assert [told.text for told in sender.tasks] == ["by the way"]


@pytest.mark.parametrize(
    ("state", "text"), [(TaskState.COMPLETED, "42"), (TaskState.FAILED, "(failed) the host had ended")]
)
async def test_an_agent_that_is_being_restored_gets_its_reply_afterwards(rig, state, text):
    earlier, sender = FakeAgent(8101, "claude"), FakeAgent(8101, "claude")
    own = earlier.service.open(MessageRequest("do it", CLAUDE), rig.agent.agent_id)
    own = earlier.tasks.change(own.id, state=TaskState.FAILED, delivery=DeliveryState.FAILED)
    journal = sender.tasks.journal = Reading()
    rig.agents[CLAUDE.sender_id] = sender
    rig.open()
    task = rig.given(sender_task_id=own.id)
    if state is TaskState.COMPLETED:
        rig.agent.finish(task.id, text)
    else:
        rig.agent.tasks.change(task.id, state=state, reason="the host had ended")
    await until(lambda: journal.asked > 1)
    assert rig.agent.tasks.get(task.id).reply is ReplyState.DUE
    sender.tasks.adopt(own)
    journal.over = True
    assert await rig.settled(task) is ReplyState.GIVEN
    assert [message.text for message in sender.tasks if not message.outgoing] == [text]
    assert rig.notices == []


class Reading(Journal):
    """The journal of an agent whose earlier tasks are being read."""

    over = False
    asked = 0

    @property
    def problem(self) -> str:
        self.asked += 1
        return "" if self.over else READING
