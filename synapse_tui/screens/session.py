"""What the application is told of the session that it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionControls:
    """A session that outlives its terminals.

    Attributes:
        name: Its name.
        detach: Gives the terminal back; agents and application go on.
    """

    name: str
    detach: Callable[[], None]
