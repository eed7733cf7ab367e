"""What the host tells its listeners: frozen records on one synchronous bus.

Screen updates do not pass here (they are too many): a widget listens to its session's damage directly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .model import ExitStatus, StateReport, Task
from .safety.locks import Modification

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AgentAdded:
    """An agent was opened."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class AgentRemoved:
    """An agent was closed; its session is gone."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class AgentRenamed:
    """An agent got another name."""

    agent_id: str
    name: str


@dataclass(frozen=True, slots=True)
class AgentInstructed:
    """The agent's conversation has got its instructions."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class AgentStateChanged:
    """The detector decided on another state, or on the same for another reason."""

    agent_id: str
    report: StateReport
    previous: StateReport


@dataclass(frozen=True, slots=True)
class AgentProcessExited:
    """The agent's process ended; the session stays, so that it can be looked at and restarted."""

    agent_id: str
    status: ExitStatus


@dataclass(frozen=True, slots=True)
class AgentTitleChanged:
    """The agent set the title of its window."""

    agent_id: str
    title: str


@dataclass(frozen=True, slots=True)
class AgentBell:
    """The agent rang the bell or sent a notification (`text` then says what)."""

    agent_id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ClipboardRequested:
    """The agent wrote to the clipboard (OSC 52)."""

    agent_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task was made or changed; `task` is its new snapshot."""

    task: Task


@dataclass(frozen=True, slots=True)
class LocksChanged:
    """An agent has taken locks of files or given some back."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class HooksChanged:
    """An agent's hooks were heard of, or file safety was switched: its locks may be enforced or not."""

    agent_id: str


@dataclass(frozen=True, slots=True)
class FileChanged:
    """An agent has changed a file."""

    modification: Modification


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know.

    Attributes:
        text: What, and what to do about it.
        level: How bad it is.
        agent_id: Of the agent that it is about; empty for none.
        dialog: Whether it is about the agent's dialog, and of no use once that is answered.
    """

    text: str
    level: Literal["information", "warning", "error"] = "information"
    agent_id: str = ""
    dialog: bool = False


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The settings are others than before: `Host.settings` holds the new ones already.

    Attributes:
        keys: Those whose values have changed, in the order of the schema.
        restart: Those of them that count from the next start of the host on.
    """

    keys: tuple[str, ...]
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchChanged:
    """A watch over an agent began, goes on differently, or ended; `on` tells whether it goes on."""

    agent_id: str
    on: bool


@dataclass(frozen=True, slots=True)
class PeersChanged:
    """The agents of other processes in the registry are others than before."""


@dataclass(frozen=True, slots=True)
class ExternalsChanged:
    """External agents were added, removed or have another card."""


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
    """Calls every listener in turn; one that fails is logged and the others still hear."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener.

        Returns:
            A function that takes it off again; calling it twice is harmless.
        """
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def publish(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                log.exception("listener failed", extra={"event": type(event).__name__})
