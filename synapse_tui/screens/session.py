"""What the application is told of the session that it belongs to, and of the one before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from synapse_tui.model import AgentSpec


@dataclass(frozen=True, slots=True)
class SessionControls:
    """A session that outlives its terminals.

    Attributes:
        name: Its name.
        detach: Gives the terminal back; agents and application go on.
    """

    name: str
    detach: Callable[[], None]


@dataclass(frozen=True, slots=True)
class RestoreOffer:
    """A workspace whose agents were lost to a crash or a reboot.

    Attributes:
        agents: What each was: profile, name, folder.
        saved_at: When it was saved last, aware.
        ask: Whether the person is asked; else it is opened at once.
        view: How it was arranged, as `view_state` gave it.
        open: Opens the agents with these sizes in columns and lines, and arranges them; gives what failed.
        forget: The person does not want it.
        waiting: Counts the messages that still wait for the agents; raises HistoryError when it cannot.
        missing: Of agents that were asked for, those that none of the agents opened again plainly is.
    """

    agents: Sequence[str]
    saved_at: datetime
    ask: bool
    view: Mapping[str, object]
    open: Callable[[Sequence[tuple[int, int]]], Awaitable[Sequence[str]]]
    forget: Callable[[], None]
    waiting: Callable[[], Awaitable[int]]
    missing: Callable[[Sequence[AgentSpec]], list[AgentSpec]]
