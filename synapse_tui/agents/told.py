"""What a terminal tells, in the words of the event bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


AT_ONCE = 4
"""Events of one kind that are published at once within a second."""
SECONDS = 1.0


@dataclass(slots=True)
class _Second:
    """What came of one kind of event since its second began.

    Attributes:
        count: How many were published.
        last: The one that waits for the end of the second.
    """

    count: int = 0
    last: Event | None = None


class EventLimit:
    """Publishes what one agent's terminal tells, and merges what goes beyond a few events of a kind a second.

    A flood of them would have the keys wait behind them in the queue of the application. The last one of
    each kind is published when the second is over.

    Args:
        publish: Publishes an event.
        later: Calls something after so many seconds.
    """

    def __init__(
        self, publish: Callable[[Event], None], later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._publish = publish
        self._later = later
        self._seconds: dict[type[Event], _Second] = {}

    def publish(self, event: Event) -> None:
        """Publish an event, perhaps later."""
        kind = type(event)
        second = self._seconds.get(kind)
        if second is None:
            second = self._seconds[kind] = _Second()
            self._later(SECONDS, lambda: self._over(kind))
        if second.count < AT_ONCE:
            second.count += 1
            self._publish(event)
        elif not (isinstance(event, AgentBell) and second.last is not None and not event.text):
            second.last = event  # a bell without words does not stand for a notification

    def _over(self, kind: type[Event]) -> None:
        last = self._seconds.pop(kind).last
        if last is not None:
            self.publish(last)
