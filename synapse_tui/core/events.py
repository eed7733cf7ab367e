"""Events of the host: frozen records on one synchronous bus.

Screen updates are too frequent for it; widgets listen to their session's damage directly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from synapse_tui.system.dataclass import dataclass

from .locks import Modification
from .model import ExitStatus, StateReport, Task

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentAdded:
    agent_id: str


@dataclass(frozen=True, slots=True)
class AgentRemoved:
    agent_id: str


@dataclass(frozen=True, slots=True)
class AgentRenamed:
    agent_id: str
    name: str


@dataclass(frozen=True, slots=True)
class AgentInstructed:
    """The agent's conversation has received its instructions."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class AgentStateChanged:
    """The detector decided on another state, or on the same state for another reason."""

    agent_id: str
    report: StateReport
    previous: StateReport


@dataclass(frozen=True, slots=True)
class AgentProcessExited:
    """The agent's process ended; its session stays and can be viewed and restarted."""

    agent_id: str
    status: ExitStatus


@dataclass(frozen=True, slots=True)
class AgentTitleChanged:
    """The agent set its window title."""

    agent_id: str
    title: str


@dataclass(frozen=True, slots=True)
class AgentBell:
    """The agent rang the bell or sent a notification, whose text is `text`."""

    agent_id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ClipboardRequested:
    """The agent wrote to the clipboard (OSC 52)."""

    agent_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task was created or changed.

    Attributes:
        task: The new snapshot.
        before: The snapshot before; None for a new task.
    """

    task: Task
    before: Task | None = None


@dataclass(frozen=True, slots=True)
class LocksChanged:
    """An agent acquired or released file locks."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class HooksChanged:
    """An agent's hooks reported for the first time, or file safety was switched on or off."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class FileChanged:
    modification: Modification


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the person at the screen.

    Attributes:
        text: What happened and what to do about it.
        agent_id: Agent it concerns; empty for none.
        dialog: Whether it concerns the agent's open dialog and is obsolete once that is answered.
        closed: Whether it concerns a closed agent and is obsolete once that is open.
    """

    text: str
    level: Literal["information", "warning", "error"] = "information"
    agent_id: str = ""
    dialog: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The settings have changed; `Host.settings` already holds the new ones.

    Attributes:
        keys: Keys whose values changed, in schema order.
        restart: Those of them that take effect when the host restarts, unless it began with that value.
    """

    keys: tuple[str, ...]
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchChanged:
    """A watch on an agent began, changed or ended; `on` is whether it is still active."""

    agent_id: str
    on: bool


@dataclass(frozen=True, slots=True)
class PeersChanged:
    """The registry's agents of other processes have changed."""


@dataclass(frozen=True, slots=True)
class ExternalsChanged:
    """External agents were added or removed, or got another card."""


@dataclass(frozen=True, slots=True)
class ExternalTalked:
    """The conversation with an external agent has changed."""

    alias: str


Event = (
    AgentAdded
    | AgentRemoved
    | AgentRenamed
    | AgentInstructed
    | AgentStateChanged
    | AgentProcessExited
    | AgentTitleChanged
    | AgentBell
    | ClipboardRequested
    | TaskChanged
    | LocksChanged
    | FileChanged
    | HooksChanged
    | Notice
    | SettingsChanged
    | WatchChanged
    | PeersChanged
    | ExternalsChanged
    | ExternalTalked
)
Listener = Callable[[Event], None]


class EventBus:
    """Calls the listeners in order; an exception in one is logged and does not affect the others."""

    def __init__(self) -> None:
        self._listeners: list[tuple[tuple[type[Event], ...], Listener]] = []

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Add a listener of some kinds of events, or of all; return a function that removes it.

        Calling that twice is harmless.
        """
        entry = (kinds, listener)
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    def publish(self, event: Event) -> None:
        for kinds, listener in tuple(self._listeners):
            if kinds and type(event) not in kinds:
                continue
            try:
                listener(event)
            except Exception:
                log.exception("listener failed", extra={"event": type(event).__name__})
