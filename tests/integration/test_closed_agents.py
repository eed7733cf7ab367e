"""An agent that is closed while messages wait for it, and what is opened at its port afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.events import Event, Notice
from synapse_tui.core.model import AgentSpec, AgentState, MessageRequest, Sender
from synapse_tui.host.host import Host
from tests.integration.host_kit import make_host, running
from tests.waiting import until

PEER = Sender("synapse-claude-8100", "claude", "", verified=True)


async def open_named(host: Host, name: str, port: int = 0) -> AgentSession:
    return await host.open(AgentSpec("dummy", name=name, port=port), columns=80, lines=24)


async def open_with_draft(host: Host, name: str) -> AgentSession:
    """Open an agent for which messages wait."""
    agent = await open_named(host, name)
    await until(lambda: agent.report.state is AgentState.READY)
    agent.user_input(b"a draft")
    await until(lambda: "a draft" in "\n".join(agent.terminal.display))
    return agent


def hear(host: Host) -> Callable[[str], bool]:
    heard: list[Event] = []
    host.events.subscribe(heard.append)
    return lambda words: any(isinstance(event, Notice) and words in event.text for event in heard)


async def test_messages_are_kept_for_the_name_they_were_sent_to(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    told = hear(host)
    async with running(host):
        ign = await open_with_draft(host, "ign")
        sent = [ign.accept(MessageRequest(text, PEER)) for text in ("first", "second")]
        host.rename(ign.agent_id, "Ignaz")
        await host.close(ign.agent_id)
        assert told("2 messages wait; they are kept until the agent is opened again")

        burst = await open_named(host, "burst", ign.port)
        assert burst.agent_id == ign.agent_id
        await until(lambda: told("2 for"), "that they are for another name")
        assert told("2 for Ignaz are kept until that agent is opened")
        assert burst.control.every() == []
        assert burst.control.release_all() == []
        await host.close(burst.agent_id)

        again = await open_named(host, "Ignaz", ign.port)
        await until(lambda: len(again.outbox) == 2, "its messages")
        assert [task.id for task in again.outbox] == [task.id for task in sent]
        assert {task.reason for task in again.outbox} == {"kept while the agent was closed"}
        assert told("2 held since the agent was closed; see its messages")


async def test_what_waits_for_a_name_finds_an_agent_of_that_name_on_any_port(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    async with running(host):
        bob = await open_with_draft(host, "Bob")
        sent = bob.accept(MessageRequest("for bob", PEER))
        await host.close(bob.agent_id)
        other = await open_named(host, "other", bob.port)
        free = bob.port + 3
        again = await open_named(host, "bob", free)
        assert again.port == free
        await until(lambda: [task.id for task in again.outbox] == [sent.id], "its message")
        assert other.control.every() == []
        waiting = await host.history.unfinished()
        assert {addressee.agent_id for addressee in waiting} == {again.agent_id}
        eve = await open_named(host, "eve")
        assert eve.control.every() == []


async def test_an_agent_gets_the_last_port_of_its_name(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    async with running(host):
        first, second = await open_named(host, "one"), await open_named(host, "two")
        ports = first.port, second.port
        for agent in (first, second):
            await host.close(agent.agent_id)
        again = await open_named(host, "two"), await open_named(host, "one")
        assert (again[1].port, again[0].port) == ports
