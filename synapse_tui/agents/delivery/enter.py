"""Presses Enter on a text that stands in a composer, and on nothing else.

Between the last look at the screen and the moment in which the agent reads the key, the agent may open a
dialog. Two things are done about that. Enter waits until the agent's programs have done nothing at all for
longer than a frame: what they began before is drawn by then. And it is given to the agent in such a way that
the agent reads it before it draws anything else, or does not get it (`AgentView.press`).
"""

from __future__ import annotations

from collections.abc import Callable

from synapse_tui.agents.profiles.profile import Profile

from .view import AgentView, Seen

FRAME = 0.04
"""Seconds within which agents show what has happened to them: they draw 30 times a second or more often."""
TICKS = 0.001
"""Seconds of processor time in a frame that move a spinner, but open no dialog."""
RESTLESS = 0.5
"""Seconds in which an agent should rest for so long; else a moment is taken in which it sleeps."""
SLEEPS = 0.1
"""Seconds that are waited for such a moment."""
TRIES = 8
"""How often Enter is offered to an agent that does something else each time."""
READS = 0.5
"""Seconds that an agent has to read it; on a machine with too much to do it may not run at all for some."""


class Enter:
    """Presses Enter in one agent.

    Args:
        view: The agent's terminal.
        profile: What its Enter is.
    """

    def __init__(self, view: AgentView, profile: Profile) -> None:
        self._view = view
        self._key = profile.submit.enter

    async def rest(self, limit: float = RESTLESS) -> bool:
        """Wait until the agent has rested for a frame, which takes time only as long as it does not.

        Args:
            limit: Seconds that it has for that.
        """
        return await self._view.settled(FRAME, limit)

    async def rest_in_turn(self) -> bool:
        """Wait until the agent has rested for a frame in the midst of a turn, where spinners may move."""
        return await self._view.settled(FRAME, RESTLESS, TICKS)

    async def press(self, look: Callable[[], Seen], *, works: bool = False) -> Seen | None:
        """Press Enter when it goes where it is meant to.

        Args:
            look: Looks at the screen as of now; what it raises keeps Enter from being pressed.
            works: Whether the agent is in the midst of a turn, where dialogs are common: it is never pressed
                without a rest, in which spinners may move.

        Returns:
            What was seen at the last look before Enter; None when the agent was never at rest for it and
            certainly was not given it.
        """
        for _ in range(TRIES):
            if works and not await self.rest_in_turn():
                look()
                continue
            if not works and not await self.rest():
                await self._view.settled(0, SLEEPS)
            if (seen := await self._view.press(self._key, look, READS)) is not None:
                return seen
        return None
