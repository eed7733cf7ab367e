"""Agents in PTYs that are left alone, under watches of real hosts and of the command line."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.agents import watch as watch_order
from synapse_tui.agents.answers import AnswerCollector
from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.turns import TurnTracker
from synapse_tui.agents.watch import WatchOrder, WatchReport, WatchState
from synapse_tui.agents.watcher import WatchedProcess
from synapse_tui.core.events import Notice
from synapse_tui.core.model import AgentSpec, TaskState
from synapse_tui.host.host import Host
from tests.fake_agent import FakeAgent
from tests.integration.host_kit import make_host, open_ready, running
from tests.integration.server_kit import running as serving
from tests.integration.session_rig import open_rig
from tests.integration.shell_kit import Shell
from tests.integration.test_session_handover import go_on
from tests.unit.delivery_fakes import FakeAgent as FakeScreen
from tests.waiting import until

NOBODY = 2**22 + 1
"""A process that cannot be."""
SOON = 0.2
"""Seconds of rest: less than people may ask for."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_order, "EVERY_RANGE", (0.0, 1000.0))


async def watched(host: Host, agent: AgentSession, text: str, **order: Any) -> str:
    (receipt,) = await host.send(agent.agent_id, text)
    fields: dict[str, Any] = {"every": SOON, "nudge": "go on", **order}
    agent.watcher.begin(WatchOrder(**fields))
    return receipt.task_id


def reported(agent: AgentSession) -> WatchReport:
    report = agent.watcher.report
    assert report is not None
    return report


async def test_an_agent_is_nudged_until_its_answer_matches(host: Host) -> None:
    (agent,) = await open_ready(host, "alice")
    task_id = await watched(host, agent, "begin", nudge="%%slow:0.3%% go on", until="END-OF-SLOW")
    await until(lambda: not agent.watcher.on)
    task = agent.tasks.get(task_id)
    assert (task.state, reported(agent).sent) == (TaskState.COMPLETED, 1)
    assert "END-OF-SLOW" in task.artifacts[0].text
    assert f"[A2A:{task.short_id}:user] %%slow:0.3%% go on" in agent.recent_text()
    assert not host._watchdog._watched


async def test_a_watch_that_gives_up_tells_it(host: Host) -> None:
    (agent,) = await open_ready(host, "alice")
    told: list[str] = []
    host.events.subscribe(lambda event: told.append(event.text) if isinstance(event, Notice) else None)
    task_id = await watched(host, agent, "begin", times=1)
    await until(lambda: not agent.watcher.on)
    assert agent.tasks.get(task_id).state is TaskState.COMPLETED
    assert told == [f"watch over {agent.agent_id}: gave up: it was not done after 1 nudge"]


async def test_a_watch_ends_with_its_agent(host: Host) -> None:
    alice, bob = await open_ready(host, "alice", "bob")
    ended = await watched(host, alice, "%%slow:60%%", every=1.0)
    closed = await watched(host, bob, "hello", every=1.0)
    await until(lambda: bob.tasks.get(closed).reason.startswith("watched"))
    await host.send("alice", "%%exit:0%%", priority=5)
    await until(lambda: not alice.watcher.on)
    assert alice.tasks.get(ended).state is not TaskState.WORKING
    await host.close(bob.agent_id)
    assert bob.tasks.get(closed).state is TaskState.FAILED
    assert bob.tasks.get(closed).reason == "agent exited"
    assert not bob.watcher.on


async def test_what_a_person_types_stops_the_clock(host: Host) -> None:
    (agent,) = await open_ready(host, "alice")
    task_id = await watched(host, agent, "begin", every=1.0)
    await until(lambda: agent.tasks.get(task_id).reason.startswith("watched"))
    agent.user_input(b"my own")
    await until(lambda: reported(agent).waits_for == "you have a draft")
    agent.user_input(b"\x15")
    await until(lambda: reported(agent).sent == 1)


async def test_a_watch_goes_on_under_a_newer_host(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as first:
        task = first.send("hello")
        first.session.watcher.begin(WatchOrder(every=1.0, times=3, task=task.id))
        await until(lambda: first.session.tasks.get(task.id).reason.startswith("watched"))
        second = await go_on(first, tmp_path)
        try:
            report = second.session.watcher.report
            assert report is not None
            assert (report.on, report.task_id, report.order.times) == (True, task.id, 3)
            assert second.session.tasks.get(task.id).state is TaskState.WORKING
            second.session.watcher.stop()
            assert second.session.tasks.get(task.id).state is TaskState.COMPLETED
        finally:
            await second.session.stop()


@pytest.mark.parametrize("restore", [True, False])
async def test_a_watch_of_a_killed_host_goes_on_if_its_agent_is_restored(
    tmp_path: Path, restore: bool
) -> None:
    first = make_host(tmp_path)
    async with running(first):
        (agent,) = await open_ready(first, "alice")
        task_id = await watched(first, agent, "begin", every=1.0)
        await until(lambda: reported(agent).sent == 1)
    with closing(sqlite3.connect(first.paths.history)) as connection:  # as kill -9 leaves it
        connection.execute("UPDATE tasks SET status = 'working', delivery = 'submitted', finished_at = NULL")
        connection.execute("DELETE FROM tasks WHERE id <> ?", (task_id,))
        connection.execute("UPDATE watches SET state = 'on'")
        connection.commit()
    second = make_host(tmp_path)
    async with running(second):
        spec = AgentSpec("dummy", "alice", port=agent.port, restore=restore)
        again = await second.open(spec, columns=80, lines=24)
        await until(lambda: again.watcher.report is not None)
        texts = [step.text for step in reported(again).steps]
        assert "nudge 1 of 5 was sent" in texts
        if restore:
            assert (reported(again).task_id, reported(again).sent) == (task_id, 1)
            await until(lambda: reported(again).sent == 2)
        else:
            assert (reported(again).state, texts[-1]) == (WatchState.FAILED, "the agent was not restored")
            task = again.tasks.get(task_id)
            assert (task.state, task.reason) == (TaskState.FAILED, "the agent was not restored")
            assert not len(again.outbox)


# -- the command ---


def attach(agent: FakeAgent) -> None:
    screen = FakeScreen()
    turns = TurnTracker(agent.tasks, screen.now)
    agent.watcher.attach(
        WatchedProcess(screen, screen.keyboard, turns, lambda text: AnswerCollector(text, lambda: [""]))
    )


@pytest.fixture
async def gemini(shell: Shell) -> AsyncIterator[FakeAgent]:
    async with serving("gemini") as (agent, _):
        attach(agent)
        shell.register(agent)
        yield agent
    await shell.end()


async def test_the_command_follows_a_watch_to_its_end(shell: Shell, gemini: FakeAgent) -> None:
    task = gemini.wait("a long job")
    command = asyncio.create_task(shell.run("watch", "gemini", "--every", "1", "--times", "3"))
    await until(lambda: gemini.watcher.on)
    gemini.finish(task.id, "all of it is done")
    await gemini.watcher.step()
    result = await command
    assert (result.code, result.out) == (0, "all of it is done\n")
    assert f"watched: task {task.short_id}" in result.err
    assert "done" in result.err.splitlines()[-1]


async def test_ctrl_c_ends_the_watch(shell: Shell, gemini: FakeAgent) -> None:
    gemini.wait("a long job")
    process = await shell.start("watch", "gemini")
    assert process.stderr is not None
    assert b"watched: task" in await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 130
    assert gemini.watcher.report is not None
    assert gemini.watcher.report.state is WatchState.STOPPED


async def test_one_that_gives_up_is_no_success(shell: Shell, gemini: FakeAgent) -> None:
    gemini.wait("a long job")
    command = asyncio.create_task(shell.run("watch", "gemini", "--json"))
    await until(lambda: gemini.watcher.on)
    gemini.watcher.stop("ended by the test")
    result = await command
    assert result.code == 6
    assert "ended by the test" in result.err
    assert result.json["state"] == "stopped"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no agent given"),
        (["gemini", "--list", "--stop"], "--list and --stop"),
        (["gemini", "--stop", "--every", "5"], "--list and --stop"),
        (["all"], "watch one at a time"),
        (["gemini", "--every", "-1"], "every -1 s"),
        (["gemini", "--until", "("], "is not a pattern"),
        (["gemini", "--nudge", ""], "--nudge is empty"),
        (["gemini", "--until", " "], "--until is empty"),
    ],
)
async def test_words_that_make_no_sense(shell: Shell, gemini: FakeAgent, words: list[str], said: str) -> None:
    result = await shell.run("watch", *words)
    assert (result.code, said in result.err) == (2, True), result.err


async def test_an_agent_that_is_gone_ends_the_command(shell: Shell) -> None:
    async with serving("gemini") as (agent, server):
        attach(agent)
        shell.register(agent)
        agent.wait("a long job")
        command = asyncio.create_task(shell.run("watch", "gemini"))
        await until(lambda: agent.watcher.on)
        shell.register(agent, pid=NOBODY, pid_started=1.0)
        await server.stop()
        result = await command
    assert (result.code, "ended while it was watched" in result.err) == (3, True)
