"""The end of a task and the reply to a sender in the same host are one transaction, also after kill -9."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.core.events import AgentAdded, EventBus
from synapse_tui.core.model import MessageRequest, ReplyState, Sender, TaskState
from synapse_tui.host.replies import Replies
from synapse_tui.messages.history import AgentJournal, History
from synapse_tui.messages.records import AgentKey
from tests.fake_agent import FakeAgent


async def exchange(path: Path) -> None:
    """Let one agent ask another one again and again, until this process is killed."""
    history = History(path, owner="asks", alive=lambda _owner: False)
    history.load()
    events = EventBus()
    agents: dict[str, Any] = {}
    unused: Any = None
    replies = Replies(events, agents, unused, unused)
    asker, answerer = FakeAgent(8101, "claude"), FakeAgent(8120, "codex")
    for agent in (asker, answerer):
        journal = AgentJournal(history, AgentKey("/home/me/project", agent.agent_id, agent.agent_type))
        journal.begin(agent.context_id)
        agent.tasks.journal = journal
        agents[agent.agent_id] = agent
        events.publish(AgentAdded(agent.agent_id))
    sender = Sender(asker.agent_id, "claude", asker.endpoint, verified=True)
    while True:
        own = asker.service.open(MessageRequest("do it", sender), answerer.agent_id)
        request = MessageRequest("do it", sender, response_expected=True, metadata={"sender_task_id": own.id})
        task = answerer.tasks.create(request)
        await asyncio.sleep(random.uniform(0, 0.004))
        answerer.finish(task.id, "done")
        assert answerer.tasks.get(task.id).reply is ReplyState.GIVEN
        assert asker.tasks.get(own.id).state is TaskState.COMPLETED
        assert not replies._work
        await asyncio.sleep(random.uniform(0, 0.002))


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_no_end_is_stored_without_its_reply(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "history.db"
    with subprocess.Popen([sys.executable, __file__, str(path)]) as process:
        try:
            while not (path.exists() and _ended(path)):
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(seconds)
        finally:
            process.kill()
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT id, peer_task_id, reply, sender_id = agent_name FROM tasks WHERE status = 'completed'"
        ).fetchall()
    ended = [(asked, reply) for _, asked, reply, own in rows if not own]
    assert {asked for asked, _ in ended} == {task for task, *_, own in rows if own}
    assert {reply for _, reply in ended} == {"told"}


def _ended(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as database:
        try:
            return bool(database.execute("SELECT 1 FROM tasks WHERE status = 'completed'").fetchone())
        except sqlite3.OperationalError:  # the tables are being made
            return False


if __name__ == "__main__":
    asyncio.run(exchange(Path(sys.argv[1])))
