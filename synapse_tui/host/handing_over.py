"""What goes over from a host to the next one of its process: agents, their sockets, tokens and guardian."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui import __version__
from synapse_tui.a2a.network import LoopbackSockets, adopted_sockets
from synapse_tui.agents.adoption import read_handover, spec_of
from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import SynapseError
from synapse_tui.pty import Guardian, GuardianHandle
from synapse_tui.workspace import AgentHandover, GuardianHandover, Handover

from .parts import Parts

log = logging.getLogger(__name__)


async def hand_over(parts: Parts, agents: Mapping[str, AgentSession]) -> Handover:
    """Leave every agent to the next host; nothing may follow.

    Ports, processes and their guardian stay; what is written for the agents is kept.

    Args:
        parts: Those of this host.
        agents: Its agents.
    """
    await parts.following.stop()
    await parts.instructions.rest()
    await parts.watchdog.stop()
    await parts.peers.stop()
    await parts.replies.stop()
    await parts.pushing.stop()
    await parts.spools.hand_over()
    await parts.safety.stop()
    await parts.externals.stop()
    sockets = parts.servers.keep_sockets()
    await parts.servers.stop()
    left = [
        dataclasses.replace(
            await session.hand_over(),
            sockets=sockets.get(agent_id, ()),
            token=parts.tokens.issue(agent_id),
        )
        for agent_id, session in agents.items()
    ]
    await parts.records.close()
    await parts.history.close()
    handle = parts.factory.guardian.hand_over()
    return Handover(
        __version__,
        agents=tuple(left),
        guardian=GuardianHandover(handle.pid, handle.fd, handle.leaders),
    )


def adopt(
    parts: Parts,
    handover: Handover,
    *,
    profiles: ProfileSet,
    add: Callable[[AgentSession, LoopbackSockets], None],
    lost: Callable[[str], None],
) -> None:
    """Go on with the agents of the host before; one that cannot be adopted is ended, the others go on.

    Args:
        parts: Those of this host.
        handover: What the other one left.
        profiles: Every profile that can be opened.
        add: Takes an agent that runs into the host.
        lost: Told of one that was ended, and why.
    """
    kept = handover.guardian
    parts.factory.guardian = Guardian.adopt(
        GuardianHandle(kept.pid, kept.fd, dict(kept.leaders)), report=parts.factory.guardian.report
    )
    for agent in handover.agents:
        endpoint = str(agent.environ.get("SYNAPSE_ENDPOINT", ""))
        sockets = adopted_sockets(agent.port, agent.sockets, scheme=endpoint.partition(":")[0] or "http")
        try:
            add(_start(parts, agent, profiles), sockets)
        except SynapseError as error:
            log.warning("an agent could not be adopted: %s", error)
            sockets.close()
            lost(f"{agent.agent_id} was lost: {error}")


def _start(parts: Parts, agent: AgentHandover, profiles: ProfileSet) -> AgentSession:
    profile = profiles.find(agent.profile)
    parts.tokens.put(agent.agent_id, agent.token)
    environ = {key: str(value) for key, value in agent.environ.items()}
    session = parts.factory.make(
        profile, spec_of(agent), Path(agent.cwd), agent.port, environ, adopted=read_handover(agent)
    )
    session.start(agent.columns, agent.lines)
    return session
