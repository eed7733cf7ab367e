"""The user's own bytes on their way to the agent, held back while a message is being typed."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

QUIET = 0.8
"""Seconds without a key after which the user counts as not typing."""
QUIET_BLIND = 3.0
"""The same while the agent has shown nothing since the last key: what was typed is not visible yet."""

APART = 0.3
"""Seconds between a key of the user's and one of ours; agents wait up to some 0.1 s after an Escape."""

KEY_GAP = 0.02
"""Seconds between two keys that were held back, at the most: faster ones are taken for a paste."""
END_GAP = 0.15
"""The same before and after Enter, Escape and a paste: together with others they mean something else."""
READS = 3.0
"""Seconds that an agent has to read a key before another one that must be read apart from it is sent."""
READ_AGAIN = 0.005
"""Seconds between two looks whether it has."""
ANSWER_TIME = 0.3
"""Seconds in which an agent shows what an answer to its dialog did."""
SHOWN = 0.06
"""Seconds without output after which it has shown that: it may come in pieces."""

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
_ESCAPE = re.compile(rb"\x1b|\x1b\[27(?:;1(?::1)?)?u")
_STOP = re.compile(rb"\x1b|\x03|\x1b\[27(?:;1(?::1)?)?u|\x1b\[99;5(?::1)?u")


def presses_enter(data: bytes) -> bool:
    """Whether Enter is among some keys; a line end in a paste is none."""
    return _ENTER.search(_PASTES.sub(b"", data)) is not None


def without_enter(data: bytes) -> bytes:
    """Some keys without Enter; line ends in pastes stay."""
    kept, place = [], 0
    for paste in _PASTES.finditer(data):
        kept += [_ENTER.sub(b"", data[place : paste.start()]), paste[0]]
        place = paste.end()
    return b"".join([*kept, _ENTER.sub(b"", data[place:])])


def presses_stop(data: bytes) -> bool:
    """Whether this is Escape or Ctrl+C, with which people stop a turn."""
    return _STOP.fullmatch(data) is not None


class _Held(NamedTuple):
    """Bytes that wait, and when they were typed."""

    at: float
    data: bytes


class Keyboard:
    """Routes the user's bytes, in order, and remembers when the last one was typed.

    What was held back follows as it was typed, only faster, and no faster than the agent takes it. A dialog
    stops it: keys that were typed before it opened do not answer it. Keys typed while it is open do, one by
    one, each once the agent has shown what the one before did, since the next may be for the composer again.

    Keys that are typed while nothing is held back go to the agent at once, with one exception: Enter and
    Escape are not sent behind, nor anything behind them, what a busy agent has not read yet. Read together
    they mean something else: the text of the next prompt is sent with this one, Escape becomes Alt.

    Args:
        write: Sends bytes to the agent.
        clock: Monotonic seconds.
        asked: Tells whether a dialog takes the keys.
        sending: Told of the user's bytes just before they are sent.
        later: Calls back after some seconds; None for the running loop.
        taken: Calls back once the agent has taken what it was sent.
        unread: Tells whether the agent has not read yet all that it was sent.
        followed: Called when all that was held back has followed.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        clock: Callable[[], float],
        *,
        asked: Callable[[], bool] = lambda: False,
        sending: Callable[[bytes], None] = lambda _data: None,
        later: Callable[[float, Callable[[], None]], object] | None = None,
        taken: Callable[[Callable[[], None]], None] = lambda follow: follow(),
        unread: Callable[[], bool] = lambda: False,
        followed: Callable[[], None] = lambda: None,
    ) -> None:
        self._write = write
        self._clock = clock
        self._asked = asked
        self._sending = sending
        self._later = later or _call_later
        self._taken = taken
        self._unread = unread
        self._all_followed = followed
        self._holding = False
        self._held: deque[_Held] = deque()
        self._answers: deque[_Held] = deque()
        self._answered_at: float | None = None
        self._expected: object | None = None
        self._following: object | None = None
        self._held_back = False
        """Whether what follows was held back, and is not just typed to an agent that is busy."""
        self._followed = _Held(float("-inf"), b"")
        self._last_key = float("-inf")
        self._last_sent = float("-inf")
        self._shown = True
        self.drafting = False
        """Whether keys were counted since the last that ends a draft: for agents without a known composer."""

    @property
    def last_key(self) -> float:
        """When the last key was typed."""
        return self._last_key

    @property
    def holding(self) -> bool:
        """Whether the user's bytes are held back at present, or those that were are still following."""
        return self._holding or self._following is not None

    @property
    def held(self) -> tuple[bytes, ...]:
        """What is held back, as it was typed."""
        return tuple(held.data for held in self._held)

    @property
    def waiting_since(self) -> float | None:
        """When the first of the bytes that are held back was typed; None when none is."""
        return self._held[0].at if self._held and self._holding else None

    def press(self, data: bytes) -> None:
        """Take bytes of the user: keys, pastes and mouse, encoded for the agent."""
        self._note(data)
        held = _Held(self._clock(), data)
        if not self.holding:
            self._pass(held)
        elif self._answered_at is not None:
            self._answers.append(held)
        elif self._asked():
            self._answer(data)
        else:
            self._held.append(held)
            if self._following is not None and len(self._held) == 1:
                self._follow_in(self._wait())

    def hold(self) -> None:
        """Hold back what comes from now on, and what still follows."""
        self._holding, self._following = True, None

    def release(self) -> None:
        """Let what was held back follow, in order, and then all that comes."""
        self._holding = False
        if self._held and self._following is None:
            self._held_back = True
            self._following = following = object()
            self._follow(following)

    def drop_enters(self) -> None:
        """Take every Enter out of what is held back: it was not meant for what stands in the composer now."""
        kept = [_Held(held.at, without_enter(held.data)) for held in self._held]
        self._held = deque(held for held in kept if held.data)

    def resume(self, held: Iterable[bytes]) -> None:
        """Hold back what another keyboard of the same agent held back."""
        self.hold()
        now = self._clock()
        self._held.extend(_Held(now + place * END_GAP, data) for place, data in enumerate(held))

    def apart_in(self, now: float) -> float:
        """Seconds until a key of ours is read apart from the user's last: Escape and Enter make Alt+Enter."""
        return max(0.0, self._last_sent + APART - now)

    def shown(self) -> None:
        """The agent has put out something since the last key."""
        self._shown = True
        if self._answered_at is not None:
            self._expect(self._answered_at)

    def quiet_in(self, now: float) -> float:
        """Seconds until the user counts as not typing; 0 when that is so already."""
        need = QUIET if self._shown else QUIET_BLIND
        return max(0.0, self._last_key + need - now)

    def reset(self) -> None:
        """Forget all: the agent was started anew."""
        self._holding, self._following = False, None
        self._held.clear()
        self._answers.clear()
        self._answered_at = None
        self._last_key = float("-inf")
        self.drafting = False

    def _pass(self, typed: _Held) -> None:
        """Send what was typed, once the agent has read what that must be apart from."""
        if _apart(self._followed.data, typed.data) and self._unread() and not self._asked():
            self._held.append(typed)
            self._held_back = False
            self._follow_in(READ_AGAIN)
        else:
            self._followed = typed
            self._send(typed.data)

    # -- what was held back ---

    def _follow(self, following: object) -> None:
        """Send what was held back, each in its time, unless it is held again."""
        if following is not self._following:
            return
        wait = 0.0
        while self._held and not wait and not self._asked():
            self._followed = self._held.popleft()
            self._note(self._followed.data)
            self._send(self._followed.data)
            wait = self._wait()
        if wait:
            self._follow_in(wait)
        elif self._held:
            self.hold()
        else:
            self._following = None
            self._all_followed()

    def _follow_in(self, seconds: float) -> None:
        self._following = following = object()
        before = self._followed.data
        # After Enter a key that is typed only now waits too: it would come into the text that Enter sends.
        apart = _apart(before, self._held[0].data) if self._held else presses_enter(before)

        def follow() -> None:
            self._follow(following)

        if not apart:
            self._later(seconds, follow)
        elif self._held_back:
            self._later(seconds, lambda: self._taken(follow))
        else:
            deadline = self._clock() + READS
            self._later(seconds, lambda: self._once_read(follow, deadline))

    def _once_read(self, follow: Callable[[], None], deadline: float) -> None:
        if self._unread() and self._clock() < deadline:
            self._later(READ_AGAIN, lambda: self._once_read(follow, deadline))
        else:
            follow()

    def _wait(self) -> float:
        """Seconds until the next key is sent; one that is typed only now must be apart from the last too."""
        if not self._held:
            return END_GAP
        before, after = self._followed, self._held[0]
        wait = max(0.0, self._last_sent + _gap(before, after) - self._clock())
        # What is just typed may have been typed all at once, as by a script.
        apart = not self._held_back and _apart(before.data, after.data)
        return max(wait, READ_AGAIN) if apart else wait

    # -- answers to a dialog over what is held back ---

    def _answer(self, data: bytes) -> None:
        self._answered_at = answered_at = self._clock()
        self._send(data)
        self._later(ANSWER_TIME, lambda: self._next_answer(answered_at))

    def _expect(self, answered_at: float) -> None:
        """The answer's effect is shown if nothing more comes for so long."""
        self._expected = expected = object()
        self._later(SHOWN, lambda: self._next_answer(answered_at) if expected is self._expected else None)

    def _next_answer(self, answered_at: float) -> None:
        """The agent has shown what an answer did, or the time for it is over: route the next key."""
        if answered_at != self._answered_at:
            return
        self._answered_at = None
        while self._answers and self._answered_at is None:
            answer = self._answers.popleft()
            if self.holding and self._asked():
                self._answer(answer.data)
            elif self.holding:
                self._held.append(answer)
            else:
                self._send(answer.data)

    def _send(self, data: bytes) -> None:
        self._sending(data)
        self._last_sent = self._clock()
        self._write(data)

    def _note(self, data: bytes) -> None:
        keys = _REPORTS.sub(b"", data)
        if not keys:
            return
        self._last_key = self._clock()
        self._shown = False
        *_, rest = _ENDS_DRAFT.split(keys)
        self.drafting = bool(rest.strip()) or (self.drafting and len(rest) == len(keys))


def _gap(before: _Held, after: _Held) -> float:
    """Seconds between two writes: those between the keys, but no more than agents need."""
    return min(after.at - before.at, END_GAP if _apart(before.data, after.data) else KEY_GAP)


def _apart(before: bytes, after: bytes) -> bool:
    """Whether one of two keys means something else when the agent reads both at once."""
    ends = any(_ESCAPE.fullmatch(data) or presses_enter(data) for data in (before, after))
    return ends or before.endswith(b"\x1b[201~")


def _call_later(seconds: float, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, callback)
