"""What delivery sees and does of an agent: its state, its composer, and the line to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from synapse_tui.agents.composer.reading import ComposerReading
from synapse_tui.model import StateReport
from synapse_tui.terminal.modes import Modes

Seen = TypeVar("Seen")


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

    async def press(self, key: bytes, look: Callable[[], Seen], limit: float) -> Seen | None:
        """Send a key that the agent reads before it does anything else, or does not get.

        Args:
            key: The key.
            look: Looks at the screen as of now; what it raises keeps the key from being sent.
            limit: Seconds that the agent has to read it.

        Returns:
            What was seen; None when the agent did something else and certainly does not get the key.
        """

    async def settled(self, rest: float, limit: float, allowed: float = 0.0) -> bool:
        """Wait until the agent's programs have done nothing for a while and their output is taken in.

        Args:
            rest: For how many seconds; 0 for only at this moment.
            limit: Seconds after which no longer is waited.
            allowed: Seconds of processor time within that rest that count as nothing.

        Returns:
            Whether they have; False when the time was over first.
        """

    @property
    def unread(self) -> bool:
        """Whether the agent has not read yet all that it was sent, as far as the system tells."""

    async def drained(self, seconds: float) -> bool:
        """Wait until the kernel has taken all bytes; False when the time is over first."""

    async def changed(self, seconds: float | None) -> bool:
        """Wait for the next output, state or key of the user; False when the time is over first."""

    def wake(self) -> None:
        """Let everyone who waits for a change look again."""
