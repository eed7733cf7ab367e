"""What a terminal tells, in the words of the event bus."""

from __future__ import annotations

from collections.abc import Callable

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


BELLS = 4
"""Bells and notifications of one agent that are published at once within a second."""
BELL_SECONDS = 1.0


class BellLimit:
    """Publishes what terminals tell, and merges bells and notifications beyond a few a second.

    A flood of them would have the keys wait behind them in the queue of the application. The last one is
    published when the second is over.

    Args:
        publish: Publishes an event.
        later: Calls something after so many seconds.
    """

    def __init__(
        self, publish: Callable[[Event], None], later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._publish = publish
        self._later = later
        self._count = 0
        self._last: AgentBell | None = None

    def publish(self, event: Event) -> None:
        """Publish an event, perhaps later if it is a bell."""
        if not isinstance(event, AgentBell):
            self._publish(event)
            return
        if not self._count:
            self._later(BELL_SECONDS, self._over)
        self._count += 1
        if self._count <= BELLS:
            self._publish(event)
        elif self._last is None or event.text or not self._last.text:
            self._last = event

    def _over(self) -> None:
        last, self._last, self._count = self._last, None, 0
        if last is not None:
            self.publish(last)
