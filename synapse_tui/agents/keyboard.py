"""The user's own bytes on their way to the agent, held back while a message is being typed."""

from __future__ import annotations

import re
from collections.abc import Callable

QUIET = 0.8
"""Seconds without a key after which the user counts as not typing."""
QUIET_BLIND = 3.0
"""The same while the agent has shown nothing since the last key: what was typed is not visible yet."""

APART = 0.3
"""Seconds between a key of the user's and one of ours; agents wait up to some 0.1 s after an Escape."""

_REPORTS = re.compile(
    rb"\x1b\[<[0-9;]*[Mm]"  # SGR mouse
    rb"|\x1b\[M[\x20-\xff]{3}"  # X10 mouse
    rb"|\x1b\[[0-9;]+M"  # urxvt mouse
    rb"|\x1b\[[IO]"  # focus
)
_PASTES = re.compile(rb"\x1b\[200~.*?\x1b\[201~", re.DOTALL)
_ENDS_DRAFT = re.compile(rb"[\r\x03\x04\x15]|\x1b\[13(?:;1(?::1)?)?u")
# The kitty keyboard protocol has names of its own for the keys.
_ENTER = re.compile(rb"\r|\x1b\[13(?:;1(?::1)?)?u")
_STOP = re.compile(rb"\x1b|\x03|\x1b\[27(?:;1(?::1)?)?u|\x1b\[99;5(?::1)?u")


def presses_enter(data: bytes) -> bool:
    """Whether Enter is among some keys; a line end in a paste is none."""
    return _ENTER.search(_PASTES.sub(b"", data)) is not None


def presses_stop(data: bytes) -> bool:
    """Whether this is Escape or Ctrl+C, with which people stop a turn."""
    return _STOP.fullmatch(data) is not None


class Keyboard:
    """Routes the user's bytes, in order, and remembers when the last one was typed.

    Args:
        write: Sends bytes to the agent.
        clock: Monotonic seconds.
    """

    def __init__(self, write: Callable[[bytes], None], clock: Callable[[], float]) -> None:
        self._write = write
        self._clock = clock
        self._held: list[bytes] | None = None
        self._last_key = float("-inf")
        self._last_sent = float("-inf")
        self._shown = True
        self.waiting_since: float | None = None
        """When the first of the bytes that are held back was typed; None when none is."""
        self.drafting = False
        """Whether keys were counted since the last that ends a draft: for agents without a known composer."""

    @property
    def last_key(self) -> float:
        """When the last key was typed."""
        return self._last_key

    @property
    def holding(self) -> bool:
        """Whether the user's bytes are held back at present."""
        return self._held is not None

    def press(self, data: bytes, *, past: bool = False) -> None:
        """Take bytes of the user.

        Args:
            data: Keys, pastes and mouse, encoded for the agent.
            past: Whether they go to the agent now even while others are held back (answers to a dialog).
        """
        self._note(data)
        if self._held is None or past:
            self._last_sent = self._clock()
            self._write(data)
            return
        self._held.append(data)
        if self.waiting_since is None:
            self.waiting_since = self._clock()

    def hold(self) -> None:
        """Hold back what comes from now on."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        """Let through what was held back, in order, and all that comes."""
        held, self._held, self.waiting_since = self._held, None, None
        if held:
            self._last_key = self._last_sent = self._clock()
            self._shown = False
            self._write(b"".join(held))

    def apart_in(self, now: float) -> float:
        """Seconds until a key of ours is read apart from the user's last: Escape and Enter make Alt+Enter."""
        return max(0.0, self._last_sent + APART - now)

    def shown(self) -> None:
        """The agent has put out something since the last key."""
        self._shown = True

    def quiet_in(self, now: float) -> float:
        """Seconds until the user counts as not typing; 0 when that is so already."""
        need = QUIET if self._shown else QUIET_BLIND
        return max(0.0, self._last_key + need - now)

    def reset(self) -> None:
        """Forget all: the agent was started anew."""
        self._held = None
        self.waiting_since = None
        self._last_key = float("-inf")
        self.drafting = False

    def _note(self, data: bytes) -> None:
        keys = _REPORTS.sub(b"", data)
        if not keys:
            return
        self._last_key = self._clock()
        self._shown = False
        *_, rest = _ENDS_DRAFT.split(keys)
        self.drafting = bool(rest.strip()) or (self.drafting and len(rest) == len(keys))
