"""Agents as file safety sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synapse_tui.agents.session import AgentSession
from synapse_tui.model import AgentState
from synapse_tui.process_times import process_name

INTENT = 120
"""How many characters of a task's text tell what a lock is for."""
_LOOKED_AT = 4 * INTENT
"""How many are looked at for that, blanks and ends of lines too: a task may hold a megabyte."""
_WORKS = (AgentState.PROCESSING, AgentState.WAITING)


@dataclass(frozen=True, slots=True)
class Worker:
    """An agent as its hooks need it.

    Attributes:
        agent_id: Its id.
        process: Its process, by the name that comes once (`process_times.process_name`).
        task_id: The task that it works on; empty for none.
        intent: What that task is about, in a few words.
    """

    agent_id: str
    process: str
    task_id: str = ""
    intent: str = ""


def worker_of(session: AgentSession) -> Worker:
    """An agent as it is now."""
    running = session.run.turns.running
    text = session.tasks.get(running).text if running in session.tasks else ""
    intent = " ".join(text[:_LOOKED_AT].split())[:INTENT]
    return Worker(session.agent_id, process_name(session.pid), running, intent)


def at_work(agents: Mapping[str, AgentSession]) -> list[AgentSession]:
    """The agents that work at present, a dialog of theirs included."""
    return [each for each in agents.values() if each.exit is None and each.report.state in _WORKS]
