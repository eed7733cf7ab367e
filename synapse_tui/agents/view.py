"""What delivery sees and does of an agent: its state, its composer, and the line to it."""

from __future__ import annotations

from typing import Protocol

from synapse_tui.model import StateReport
from synapse_tui.terminal.modes import Modes

from .composer import ComposerReading


class AgentView(Protocol):
    """One agent's terminal, as the typist and the interrupter use it; `console.AgentConsole` is one."""

    @property
    def alive(self) -> bool:
        """Whether the process runs."""

    @property
    def report(self) -> StateReport:
        """Its state and why it was decided."""

    @property
    def modes(self) -> Modes:
        """Modes that the agent has set in its terminal."""

    def now(self) -> float:
        """Seconds on the session's monotonic clock."""

    def reading(self) -> ComposerReading:
        """The composer on the screen as it is rendered now."""

    def empty_for(self) -> float:
        """Seconds that the composer has been visible and empty without a break; 0 while it is not."""

    def tail(self) -> str:
        """The rows of the screen, joined by line feeds: the proof for agents whose composer is not known."""

    def write(self, data: bytes) -> None:
        """Send bytes to the agent, after all that was sent before."""

    def signal(self, number: int) -> None:
        """Send a signal to the agent's foreground process group."""

    def look(self) -> None:
        """Take in output that has arrived but was not parsed yet."""

    async def settled(self, seconds: float) -> None:
        """Wait until the agent's program sleeps and its output is taken in."""

    async def drained(self, seconds: float) -> bool:
        """Wait until the kernel has taken all bytes; False when the time is over first."""

    async def changed(self, seconds: float | None) -> bool:
        """Wait for the next output, state or key of the user; False when the time is over first."""
