"""A host whose history lies in a team's database: messages, a restart, and a server that goes away."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from synapse_tui.database.location import TeamDatabase
from synapse_tui.messages.archive import Archive, Wanted
from synapse_tui.model import AgentState, DeliveryState, MessageRequest
from tests.integration.session_rig import until
from tests.integration.test_history import PEER, leave_two_waiting, one_agent
from tests.postgres_kit import Server


def use(home: Path, url: str) -> None:
    folder = home / ".synapse"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"env": {"SYNAPSE_DATABASE_URL": url}}))


async def test_a_host_goes_on_with_what_waited_on_its_own_machine(team_url: str, tmp_path: Path) -> None:
    use(tmp_path / "home", team_url)
    port = await leave_two_waiting(tmp_path)
    assert not (tmp_path / "home/.synapse/history.db").exists()
    (name,) = (tmp_path / "home/.synapse/machines").iterdir()
    mine = name.read_text()
    name.write_text("another-machine\n")
    async with one_agent(tmp_path, port) as (_, session, _heard):
        await until(lambda: not session.tasks.journal.problem, "the history")
        assert len(session.outbox) == 0, "an agent of the same id on another machine"
    name.write_text(mine)
    async with one_agent(tmp_path, port, restore=True) as (_, session, _heard):
        await until(lambda: len(session.outbox) == 0 and len(session.tasks) >= 2, "the messages")
        await until(lambda: all(task.state.final for task in session.tasks), "their ends")
    archive = Archive(TeamDatabase(team_url, mine.strip(), (tmp_path / "project").resolve()))
    found = archive.select(Wanted(states=("completed",)))
    archive.close()
    assert [record.task.text for record in found] == ["second of two", "first of two"]
    shutil.rmtree(tmp_path / "home")


async def test_a_message_waits_for_the_server_and_is_typed_when_it_is_back(
    postgres: Server, team_url: str, tmp_path: Path
) -> None:
    use(tmp_path / "home", team_url)
    async with one_agent(tmp_path) as (_, session, _heard):
        await until(lambda: session.report.state is AgentState.READY)
        await until(lambda: not session.tasks.journal.problem, "the history")
        await asyncio.to_thread(postgres.stop)
        try:
            task = session.accept(MessageRequest("hello", PEER))
            begin = "history cannot be written: the database postgresql://"
            await until(lambda: session.tasks.get(task.id).reason.startswith(begin), "the reason")
            assert session.tasks.get(task.id).delivery is DeliveryState.HELD
        finally:
            await asyncio.to_thread(postgres.start)
        await until(lambda: session.tasks.get(task.id).state.final, "the message")
