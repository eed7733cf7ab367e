"""A session is handed over in the midst of its work, and another one goes on with the same process."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.agents.adoption import read_handover, task_from_json, task_to_json
from synapse_tui.core.content import Artifact, Part, TaskMessage
from synapse_tui.core.errors import HandoverError
from synapse_tui.core.model import (
    AgentState,
    DeliveryState,
    ExitStatus,
    MessageRequest,
    Reply,
    ReplyState,
    Sender,
    Task,
    TaskState,
)
from synapse_tui.workspace import AgentHandover, Handover
from tests.integration.session_rig import Rig, open_rig, until


async def handed_over(rig: Rig) -> AgentHandover:
    return Handover.read(Handover("test", agents=(await rig.session.hand_over(),)).write()).agents[0]


async def go_on(first: Rig, folder: Path, **changes: Any) -> Rig:
    handover = await handed_over(first)
    rig = Rig(folder, adopted=read_handover(handover), **changes)
    rig.session.start(handover.columns, handover.lines)
    return rig


async def test_the_process_goes_on_and_looks_the_same(tmp_path):
    async with open_rig(tmp_path) as first:
        await first.done(first.send("hello"))
        pid, context = first.session.pid, first.session.context_id
        display = first.session.terminal.display
        second = await go_on(first, tmp_path)
        try:
            assert (second.session.pid, second.session.context_id) == (pid, context)
            assert second.session.terminal.display == display
            assert second.session.report.state is AgentState.READY, "known at once"
            assert [task.text for task in list(second.session.tasks)] == ["hello"]
            again = await second.done(second.send("hello"))
            assert again.state is TaskState.COMPLETED
            assert again.artifacts == next(iter(second.session.tasks)).artifacts
            second.session.resize(80, 24)
            await until(lambda: second.records("resize"), "the resize")
            await second.session.restart()
            await second.ready()
            assert second.session.pid != pid
        finally:
            await second.session.stop()
        assert len(second.records("start")) == 2


async def test_a_running_turn_is_finished_with_its_whole_answer(tmp_path):
    async with open_rig(tmp_path) as first:
        task = first.send("%%slow:2%%")
        await until(lambda: "slow line 1" in first.session.recent_text(), "the middle of the answer")
        waiting = first.send("second")
        held = first.send("third")
        first.session.control.hold(held.id)
        second = await go_on(first, tmp_path)
        try:
            assert second.session.tasks.get(task.id).state is TaskState.WORKING
            done = await second.done(task)
            assert done.state is TaskState.COMPLETED
            assert "slow line 0" in done.artifacts[0].text
            assert "END-OF-SLOW" in done.artifacts[0].text
            assert (await second.done(waiting)).state is TaskState.COMPLETED
            assert second.session.tasks.get(held.id).delivery is DeliveryState.HELD
            assert second.submitted == ["%%slow:2%%", "second"]
        finally:
            await second.session.stop()


async def test_what_goes_on_with_a_task_is_handed_over_with_it(tmp_path):
    def follow(rig: Rig, task: Task, text: str) -> Task:
        message = TaskMessage(text, "user", (Part(text=text),))
        rig.session.accept(MessageRequest(text, task.sender, message=message, follows=task.id))
        return list(rig.session.tasks)[-1]

    async with open_rig(tmp_path) as first:
        task = first.send("%%slow:2%%")
        await until(lambda: "slow line 1" in first.session.recent_text(), "the middle of the answer")
        await first.session.control.cancel(follow(first, task, "taken back").id)
        waiting = follow(first, task, "and then this")
        asked = first.send("unclear")
        second = await go_on(first, tmp_path)
        try:
            assert second.session.tasks.get(task.id).state is TaskState.WORKING
            done = await second.done(task)
            assert ["END-OF-SLOW" in done.artifacts[0].text, "then this" in done.artifacts[1].text] == [
                True,
                True,
            ]
            assert [message.message_id for message in done.messages[1:]] == ["taken back", "and then this"]
            assert second.session.tasks.get(waiting.id).state is TaskState.COMPLETED
            await until(lambda: second.session.tasks.get(asked.id).delivery is DeliveryState.SUBMITTED)
            second.session.service.reply(asked.id, Reply("which?", TaskState.INPUT_REQUIRED))
            third = await go_on(second, tmp_path)
            try:
                assert third.session.tasks.get(asked.id).state is TaskState.INPUT_REQUIRED
                follow(third, asked, "this one")
                assert "this one" in (await third.done(asked)).answer
            finally:
                await third.session.stop()
        finally:
            await second.session.stop()


async def test_a_message_is_typed_to_its_end_first(tmp_path):
    async with open_rig(tmp_path) as first:
        await first.ready()
        task = first.send("typed just now")
        await until(lambda: first.session.tasks.get(task.id).delivery is not DeliveryState.QUEUED, "typing")
        second = await go_on(first, tmp_path)
        try:
            assert (await second.done(task)).state is TaskState.COMPLETED
            assert second.submitted == ["typed just now"]
        finally:
            await second.session.stop()


async def test_an_agent_that_has_ended_stays_so_and_can_be_restarted(tmp_path):
    async with open_rig(tmp_path) as first:
        await first.ready()
        first.type("%%exit:3%%\r")
        await until(lambda: first.session.exit, "the end")
        second = await go_on(first, tmp_path)
        try:
            await until(lambda: second.session.exit == ExitStatus(code=3), "the end, told again")
            assert second.session.report.state is AgentState.EXITED
            await second.session.restart()
            await second.ready()
        finally:
            await second.session.stop()


def test_what_is_not_understood_is_told():
    with pytest.raises(HandoverError, match="handover of a cannot be understood"):
        read_handover(AgentHandover("a", "p", tasks=({"id": "x"},)))
    with pytest.raises(HandoverError, match="cannot be understood"):
        read_handover(AgentHandover("a", "p", signals={"progress": 3}))


async def test_an_open_dialog_is_known(tmp_path):
    async with open_rig(tmp_path) as first:
        task = first.send("%%perm:make all%%")
        await first.state(AgentState.WAITING)
        second = await go_on(first, tmp_path)
        try:
            assert second.session.report.state is AgentState.WAITING
            done = await second.dismiss_until_done(task)
            assert done.state.final
        finally:
            await second.session.stop()


def test_a_task_comes_back():
    when = datetime(2026, 11, 21, tzinfo=UTC)
    task = Task(
        id="id",
        context_id="c",
        target="t",
        sender=Sender("synapse-claude-8100", "claude", "http://x", verified=True),
        text="漢字",
        priority=5,
        created_at=when,
        updated_at=when,
        state=TaskState.INPUT_REQUIRED,
        delivery=DeliveryState.SUBMITTED,
        artifacts=(Artifact("a", truncated=True),),
        metadata={"key": 1},
        outgoing=True,
        replied=True,
        reply=ReplyState.DUE,
    )
    since = when - timedelta(hours=2)
    task = dataclasses.replace(task, state_since=since)
    content = json.loads(json.dumps(task_to_json(task) | {"added later": 1}))
    assert task_from_json(content) == task
    assert task_from_json(content).since == since
    content["entered"] = content.pop("state_since")
    assert task_from_json(content).since == since, "as version 0.1.0 wrote it"
