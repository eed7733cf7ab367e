"""Messages of priority 1 that are kept to be read, and the timeline, in sessions with a real process."""

from __future__ import annotations

from itertools import groupby

from synapse_tui.agents.delivery.typed_text import MessageStyle
from synapse_tui.core.model import (
    AgentSpec,
    AgentState,
    DeliveryState,
    MessageRequest,
    Reply,
    Sender,
    TaskState,
)
from tests.integration.host_kit import make_host, running
from tests.integration.session_rig import PEER, Rig, open_rig, until
from tests.integration.test_history import rows
from tests.integration.test_session_handover import go_on

INFO = Sender("synapse-claude-8100", "claude", "", verified=True)
IN_INBOX = "in the inbox"


async def test_information_is_kept_all_else_is_typed(tmp_path):
    async with open_rig(tmp_path, style=MessageStyle(info_to_inbox=True)) as rig:
        await rig.ready()
        info = rig.send("by the way", priority=1)
        await rig.done(rig.send("do this", priority=2))
        assert rig.submitted == ["do this"]
        kept = rig.session.tasks.get(info.id)
        assert (kept.state, kept.delivery, kept.reason) == (
            TaskState.SUBMITTED,
            DeliveryState.QUEUED,
            IN_INBOX,
        )
        assert rig.session.control.read(info.id).state is TaskState.COMPLETED
        late = rig.send("typed after all", priority=1)
        rig.session.control.send_now(late.id)
        await rig.done(late)
        assert rig.submitted == ["do this", "typed after all"]


async def test_what_was_read_and_is_to_be_answered_ends_with_its_agent(tmp_path):
    async with open_rig(tmp_path, style=MessageStyle(info_to_inbox=True)) as rig:
        await rig.ready()
        request = MessageRequest("which?", INFO, 1, response_expected=True, metadata={"answer_wanted": True})
        first, second = rig.session.accept(request), rig.session.accept(request)
        for task in (first, second):
            assert rig.session.control.read(task.id).state is TaskState.WORKING
        assert rig.session.service.reply(first.id, Reply("that")).state is TaskState.COMPLETED
        assert [task.id for task in rig.session.service.awaiting()] == [second.id]
        await rig.session.stop()
        await until(
            lambda: rig.session.tasks.get(second.id).state is TaskState.FAILED, "the end of its agent"
        )
        assert rig.session.tasks.get(first.id).answer == "that"


async def test_it_outlives_a_host_and_a_restart_of_the_agent(tmp_path):
    settings = tmp_path / "home" / ".synapse" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"a2a": {"info": "inbox"}}')
    host = make_host(tmp_path)
    async with running(host):
        session = await host.open(AgentSpec("dummy"), columns=80, lines=24)
        port = session.port
        await until(lambda: session.report.state is AgentState.READY)
        info = await session.control.saved(session.accept(MessageRequest("by the way", INFO, priority=1)))
        assert rows(host, "SELECT reason FROM tasks") == [(IN_INBOX,)]
        await session.restart()
        assert session.outbox.is_unread(info.id)
    host = make_host(tmp_path)
    async with running(host):
        session = await host.open(AgentSpec("dummy", port=port), columns=80, lines=24)
        await until(session.control.unread, "the message from before")
        (unread,) = session.control.unread()
        assert (unread.task.id, unread.task.delivery) == (info.id, DeliveryState.QUEUED)
        session.control.read(info.id)
        await until(lambda: rows(host, "SELECT status, reason FROM tasks") == [("completed", "read")])


async def test_timeline_and_inbox_go_on_in_another_host(tmp_path):
    async with open_rig(tmp_path, style=MessageStyle(info_to_inbox=True)) as first:
        await first.done(first.send("hello"))
        await until(lambda: first.session.report.state is AgentState.READY)
        info = first.send("by the way", priority=1)
        passages = first.session.timeline.passages
        # Of several rules that tell the same, on a slow machine another one may decide in between.
        assert [state for state, _ in groupby(passage.state for passage in passages)][-3:] == [
            AgentState.READY,
            AgentState.PROCESSING,
            AgentState.READY,
        ]
        second: Rig = await go_on(first, tmp_path, style=MessageStyle(info_to_inbox=True))
        try:
            assert second.session.timeline.passages == passages
            found = second.session.explain()
            assert (found.report, found.since) == (passages[-1].report, passages[-1].at)
            assert found.unread == 1
            assert second.session.outbox.is_unread(info.id)
            await second.done(second.send("again", sender=PEER))
            assert len(second.session.timeline.passages) > len(passages)
        finally:
            await second.session.stop()
