"""What a terminal tells, in the words of the event bus."""

from __future__ import annotations

from synapse_tui.events import AgentBell, AgentTitleChanged, ClipboardRequested, Event
from synapse_tui.terminal import Bell, ClipboardSet, Notification, TerminalEvent, TitleChanged


def bus_event(agent_id: str, event: TerminalEvent) -> Event | None:
    """The event that listeners hear of an agent's terminal; None for what only the detector needs."""
    match event:
        case TitleChanged(title):
            return AgentTitleChanged(agent_id, title)
        case Bell():
            return AgentBell(agent_id)
        case Notification(title, body):
            return AgentBell(agent_id, " ".join(part for part in (title, body) if part))
        case ClipboardSet(text=text):
            return ClipboardRequested(agent_id, text)
        case _:
            return None
