"""What an agent's own hooks have told and its screen does not show yet.

Hooks are earlier than the screen, and some that would end what others began never come: a refused dialog, an
interrupt. So what they tell holds until the screen agrees, and for some seconds at the most; that the agent
is ready is never believed of them.
"""

from __future__ import annotations

from synapse_tui.hooks import HookKind
from synapse_tui.model import AgentState

HOOKED = "hook"
"""The rule of a state that only a hook has told."""
WORKS = 3.0
"""Seconds after a prompt, or a tool of its turn, within which the screen shows that the agent works."""
ASKS = 5.0
"""Seconds within which a dialog that was announced is on the screen: Codex takes almost one."""
_NEVER = float("-inf")
_ENDS = (HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END)


class HookHints:
    """Keeps what was told for as long as it counts."""

    def __init__(self) -> None:
        self._works = _NEVER
        """Until when the agent is taken to work."""
        self._asks = _NEVER
        """Until when a dialog is taken to come."""
        self._call = ""
        """The tool call that the dialog is about; empty when that is not known."""
        self._in_turn = False
        """Whether a prompt was told, and no end of its turn: tools of background work tell nothing."""

    def take(self, kind: HookKind, call: str, now: float) -> None:
        """Take what a hook tells.

        Args:
            kind: What happened.
            call: The tool call that it is about; empty for none.
            now: Seconds on the session's clock.
        """
        if kind in _ENDS:
            self._works, self._in_turn = _NEVER, False
            if kind is not HookKind.IDLE:  # work in the background may ask behind the end of the turn
                self._asks = _NEVER
        elif kind is HookKind.PROMPT:
            self._works, self._in_turn = now + WORKS, True
        elif kind is HookKind.PRE and self._in_turn:
            self._works = now + WORKS
        elif kind is HookKind.ASKED:
            self._asks, self._call = now + ASKS, call
        elif kind in (HookKind.POST, HookKind.FAILED) and call and call == self._call:
            self._asks = _NEVER  # somebody else has answered: no dialog comes

    def state(self, screen: AgentState | None, now: float) -> AgentState | None:
        """What the agent does by its hooks, where the screen does not say so yet.

        Args:
            screen: The state by the screen; None when no rule holds.
            now: Seconds on the session's clock.

        Returns:
            WAITING or PROCESSING; None when the screen decides.
        """
        if screen is AgentState.WAITING:
            self._asks = self._works = _NEVER
        elif now < self._asks:
            return AgentState.WAITING
        elif screen is AgentState.PROCESSING:
            self._works = _NEVER
        elif now < self._works and screen in (AgentState.READY, None):
            return AgentState.PROCESSING
        return None

    def deadline(self, now: float) -> float | None:
        """When it may count no more without the screen; None for never."""
        return min((until for until in (self._works, self._asks) if until > now), default=None)
