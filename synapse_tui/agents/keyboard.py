"""The user's input on its way to the agent, held while a message is typed or a dialog opens."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from .dialogs import FLICKER, AgentDialog

QUIET = 0.8  # seconds without a key after which the user counts as not typing
# the same if the agent has shown nothing since the last key, so that a draft may not be visible yet
QUIET_BLIND = 3.0

# seconds between a user's key and ours; agents wait up to about 0.1 s after an Escape
APART = 0.3

KEY_GAP = 0.02  # maximum seconds between two replayed keys: faster ones look like a paste
TOGETHER = 1024  # maximum bytes of keys that are sent together to an agent that was busy
# the same around Enter, Escape and pastes, which mean something else when combined with other keys
END_GAP = 0.15
# seconds without a key, and since a dialog opened, after which a key is meant for the dialog
DELIBERATE = 0.7
OPENS = 1.0  # seconds in which an agent opens a menu that the user's key requested
ALWAYS = NEVER = float("-inf")

_REPORTS = re.compile(
    rb"\x1b\[<[0-9;]*[Mm]"  # SGR mouse
    rb"|\x1b\[M[\x20-\xff]{3}"  # X10 mouse
    rb"|\x1b\[[0-9;]+M"  # urxvt mouse
    rb"|\x1b\[[IO]"  # focus
)
_PASTES = re.compile(rb"\x1b\[200~.*?\x1b\[201~", re.DOTALL)
_ENDS_DRAFT = re.compile(rb"[\r\x03\x04\x15]|\x1b\[13(?:;1(?::1)?)?u")
# Enter, also in the kitty keyboard protocol.
_ENTER = re.compile(rb"\r|\x1b\[13(?:;1(?::1)?)?u")
_ESCAPE = re.compile(rb"\x1b|\x1b\[27(?:;1(?::1)?)?u")
_STOP = re.compile(rb"\x1b|\x03|\x1b\[27(?:;1(?::1)?)?u|\x1b\[99;5(?::1)?u")
# keys that move within a dialog and cannot answer it: arrows, Tab, Home, End, page keys, Ctrl+N, Ctrl+P
_ARROWS = re.compile(rb"\x1b(?:\[[0-9;:]*[A-HZ~]|O[A-H])|[\t\x0e\x10]|\x1b\[9(?:;[0-9:]*)?u")
_ONE_KEY = re.compile(
    rb"\x1b?(?:[\x00-\x1a\x1c-\x7f]|[\xc2-\xf4][\x80-\xbf]+)|\x1b|\x1b\[[0-9;:?]*[@-~]|\x1bO."
)
# single characters that answer a dialog
_ANSWERS = re.compile(rb"[0-9YyNn]")


def presses_enter(data: bytes) -> bool:
    return _ENTER.search(_PASTES.sub(b"", data)) is not None


def without_enter(data: bytes) -> bytes:
    left, place = [], 0
    for paste in _PASTES.finditer(data):
        left += [_ENTER.sub(b"", data[place : paste.start()]), paste[0]]
        place = paste.end()
    return b"".join([*left, _ENTER.sub(b"", data[place:])])


def presses_stop(data: bytes) -> bool:
    return _STOP.fullmatch(data) is not None


def is_shortcut(data: bytes) -> bool:
    """Whether this is a key other than Enter that types nothing, and so may open a menu."""
    return data[:1] < b" " and not presses_enter(data) and not data.startswith(b"\x1b[200~")


class _Held(NamedTuple):
    at: float
    data: bytes
    after_text: bool = True  # whether text was typed in the same burst, so that Enter submits it


class OfferedKeys(Protocol):
    """Keys that are offered to the agent; see `console.Offer`."""

    def withdraw(self) -> object:
        """Take the keys back, or report them as read if it is too late."""


# keys, whether they may be sent, and what is called when they were read and at the end; None if that is over
OfferKeys = Callable[
    [bytes, Callable[[], bool], Callable[[], None], Callable[[bool], None]], OfferedKeys | None
]


class _Flight:
    """Held keys on their way to the agent."""

    def __init__(self, keys: tuple[_Held, ...]) -> None:
        self.keys = keys
        self.data = b"".join(held.data for held in keys)
        self.offer: OfferedKeys | None = None
        self.read = False


class DialogGuard:
    """Prevents keys meant for a draft from answering a dialog.

    A key is meant for a dialog unless it continues typing that began before the dialog opened or less than
    `DELIBERATE` after it. No key is meant for a dialog that the agent has announced and not drawn. A menu
    opened by the user's own key accepts all keys at once; a permission dialog never counts as such a menu.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        dialog: Callable[[], AgentDialog | None] = lambda: None,
        *,
        opens_menu: Callable[[bytes], bool] = lambda _data: False,
        read: Callable[[], None] = lambda: None,
        kept: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._dialog = dialog
        self._opens_menu = opens_menu
        self._read = read
        self._kept = kept
        self._keeps = self._told_kept = False
        self.typing_begins = False
        self._typed_at = float("-inf")
        self._burst = float("-inf")  # when the current burst of typing began
        # the open dialog; None also after it was answered, so that the same dialog counts as new
        self._seen: AgentDialog | None = None
        self._gone_at: float | None = None
        self._opened_at = ALWAYS  # `ALWAYS` for a menu that the user opened
        self._asked_until = NEVER  # until then, a dialog that opens was requested by the user's last key

    def typed(self) -> None:
        self._read()  # a dialog may just have been drawn
        now = self._clock()
        self.typing_begins = now - self._typed_at >= DELIBERATE
        if self.typing_begins:
            self._burst = now
        self._typed_at = now

    def look(self, *, fresh: bool = False) -> AgentDialog | None:
        if fresh:
            self._read()
        dialog, now = self._dialog(), self._clock()
        if dialog is not None and dialog.announced and now < self._asked_until:
            dialog = None  # the menu that the user asked for
        back = self._gone_at is None or now - self._gone_at < FLICKER
        if dialog != self._seen and self._hides(dialog, back=back):
            self._gone_at = now if self._gone_at is None else self._gone_at
            return self._seen if dialog is not None and not dialog.announced else dialog
        self._gone_at = None
        if dialog is not None and (dialog != self._seen or not back):
            # A title may change as the user moves in the dialog; a permission dialog never opens as a menu.
            moved = back and self._seen is not None and self._seen.name == dialog.name
            asked = now < self._asked_until and (not dialog.grants or (moved and self._opened_at != ALWAYS))
            keeps = self._keeps and self._seen is not None and self._seen.announced
            self._seen, self._keeps, self._told_kept = dialog, keeps, False
            self._tell()
            if not asked:
                self._opened_at = now
        return dialog

    def _hides(self, dialog: AgentDialog | None, *, back: bool) -> bool:
        """Whether the dialog that was seen last may be there still, and only be drawn anew."""
        if dialog is None or self._seen is None or self._seen.announced:
            return dialog is None
        return back if dialog.announced else not dialog.name

    def deliberate_since(self, instant: float) -> bool:
        return self._burst - instant >= DELIBERATE

    def meant_for(self, dialog: AgentDialog, data: bytes) -> bool:
        if dialog.announced:
            return False
        if self._opened_at == ALWAYS:
            return True
        # Several keys at once are text: they can fill in a question, but never grant permission.
        text = _ONE_KEY.fullmatch(data) is None
        return self.deliberate_since(self._opened_at) and not (
            text and (dialog.grants or presses_enter(data))
        )

    def answered(self, dialog: AgentDialog, data: bytes) -> None:
        if _is_report(data):
            return
        goes_on = self._opened_at == ALWAYS or _ARROWS.fullmatch(data) is not None
        self._asked_until = self._clock() + OPENS if goes_on else NEVER
        number = dialog.grants and data.isdigit() and self.typing_begins
        if not goes_on and (number or presses_enter(data) or presses_stop(data)):
            self._seen = None

    def passed(self, data: bytes) -> None:
        if _is_report(data):
            return
        self._asked_until = NEVER
        if self._opens_menu(data):
            self._opened_at, self._asked_until = ALWAYS, self._clock() + OPENS

    def expect_no_menu(self) -> None:
        """Treat the next dialog as not requested by the user: a turn or a message has begun."""
        self._asked_until = NEVER

    def answers_in(self, now: float) -> float:
        dialog = self.look()
        if dialog is not None and dialog.announced:
            return DELIBERATE
        if self._opened_at == ALWAYS or self.deliberate_since(self._opened_at):
            return 0.0
        return max(0.0, max(self._opened_at, self._typed_at) + DELIBERATE - now)

    def tell_kept(self) -> None:
        """Tell once that keys were kept; of an announced dialog, when it is drawn and can be answered."""
        self._keeps = True
        self._tell()

    def _tell(self) -> None:
        drawn = self._seen is None or not self._seen.announced
        if self._keeps and drawn and not self._told_kept:
            self._told_kept = True
            self._kept()


class Keyboard:
    """Routes the user's bytes in order and remembers when the last key was typed.

    Held keys are replayed faster than typed, but no faster than the agent reads. Replay never answers a
    dialog; it pauses until the composer has the focus again.

    Keys that are not meant for an open dialog (`DialogGuard`) are held until it closes. Escape, Ctrl+C and an
    Enter without text in the same burst are dropped: after the dialog they would interrupt or submit
    something else.

    Other keys are offered at once (`console.Offer`): the agent gets them only if it reads them before it
    draws anything else; otherwise what it drew decides again. What is typed meanwhile waits, so that a busy
    agent reads Enter and Escape by themselves. Read together with other keys they mean something else: the
    text of the next prompt would be submitted with this one, and Escape would become Alt.
    """

    def __init__(  # noqa: PLR0913 - what it is connected to
        self,
        write: Callable[[bytes], None],
        clock: Callable[[], float],
        *,
        guard: DialogGuard | None = None,
        sending: Callable[[bytes], None] = lambda _data: None,
        later: Callable[[float, Callable[[], None]], object] | None = None,
        taken: Callable[[Callable[[], None]], None] = lambda follow: follow(),
        offer: OfferKeys | None = None,
        becomes_signal: Callable[[bytes], bool] = lambda _data: False,
        followed: Callable[[], None] = lambda: None,
    ) -> None:
        self._write = write
        self._clock = clock
        self.guard = guard or DialogGuard(clock)
        self._sending = sending
        self._later = later or _call_later
        self._taken = taken
        self._offer = offer or self._write_at_once
        self._becomes_signal = becomes_signal
        self._flight: _Flight | None = None
        self._all_followed = followed
        self._holding = False
        self._held: deque[_Held] = deque()
        self._aside_at: float | None = None  # since when held keys do not hold new ones
        self._following: object | None = None
        # whether the queue holds replayed keys, not just keys typed to a busy agent
        self._held_back = False
        self._followed = _Held(float("-inf"), b"")
        self._last_key = float("-inf")
        self._last_sent = self._typed_at = float("-inf")
        self._shown = True
        # whether keys were typed since the last that ends a draft; for agents without a known composer
        self.drafting = False
        self._wrote = False  # whether text was typed since the last pause or Enter

    @property
    def last_key(self) -> float:
        return self._last_key

    @property
    def last_sent(self) -> float:
        """When the user's last key went to the composer; held keys and those for dialogs have not."""
        return self._typed_at

    @property
    def holding(self) -> bool:
        return self._holding or self._following is not None or self._flight is not None

    @property
    def on_hold(self) -> bool:
        """Whether keys are held until `release`, not just on their way."""
        return self._holding

    @property
    def held(self) -> tuple[bytes, ...]:
        return tuple(held.data for held in self._held)

    @property
    def offered_since(self) -> float | None:
        """When the first key was typed that the agent is to read; None if it has read all."""
        return self._flight.keys[0].at if self._flight is not None else None

    @property
    def waiting_since(self) -> float | None:
        return self._held[0].at if self._held and self._holding else None

    def press(self, data: bytes) -> None:
        typed = not _is_report(data)
        if typed:
            self.guard.typed()  # processes earlier output, which cannot reflect this key
            self._note(data)
            self._wrote = _types_text(data) or (self._wrote and not self.guard.typing_begins)
        dialog = self.guard.look()
        if dialog is not None and typed and not self.guard.meant_for(dialog, data):
            if left := _kept(data, self._wrote):
                self.hold()
                self._held.append(_Held(self._clock(), left))
            self.guard.tell_kept()
        elif dialog is not None:
            self._sending(data)
            self._last_sent = self._clock()
            self._write(data)
            self.guard.answered(dialog, data)
        elif not self._holding and self._becomes_signal(data):
            self._reaches_composer(data)  # at once: the program may not read at all
            self._write(data)
        elif self._aside_at is not None and self.guard.deliberate_since(self._aside_at):
            self._reaches_composer(data)
            self._write(data)
        else:
            self._queue(_Held(self._clock(), data, self._wrote))
        if typed and presses_enter(data):
            self._wrote = False

    def hold(self) -> None:
        self._take_back()
        self._holding, self._following, self._aside_at = True, None, None
        self.guard.expect_no_menu()

    def release(self) -> None:
        """Replay what was held, then pass everything through."""
        self._holding, self._aside_at = False, None
        if self._held and self._following is None:
            self._held_back = True
            self._following = following = object()
            self._follow(following)

    def set_aside(self) -> None:
        """Continue to hold what is held; keys after a pause go to the agent at once."""
        if self._holding and self._aside_at is None:
            self._aside_at = self._clock()

    def drop_enters(self) -> None:
        """Remove every Enter from the held keys: their target has changed."""
        left = [_Held(held.at, without_enter(held.data)) for held in self._held]
        self._held = deque(held for held in left if held.data)

    def resume(self, held: Iterable[bytes]) -> None:
        self.hold()
        now = self._clock()
        self._held.extend(_Held(now + place * END_GAP, data) for place, data in enumerate(held))

    def apart_in(self, now: float) -> float:
        """Return the seconds until our key is read apart from the user's: Escape and Enter make Alt+Enter."""
        return max(0.0, self._last_sent + APART - now)

    def shown(self) -> None:
        self._shown = True
        self.look()

    def look(self) -> None:
        """Update which dialog is open; call it on every change of screen or state."""
        if self.guard.look() is not None and self._held:
            self.guard.tell_kept()

    @property
    def wrote(self) -> bool:
        """Whether text was typed since the last pause or Enter, and not keys such as Escape only."""
        return self._wrote

    def quiet_in(self, now: float) -> float:
        need = QUIET if self._shown else QUIET_BLIND
        return max(0.0, self._last_key + need - now)

    def reset(self) -> None:
        self._take_back()
        self._holding, self._following, self._aside_at = False, None, None
        self._held.clear()
        self._last_key = float("-inf")
        self.drafting = False

    def _queue(self, typed: _Held) -> None:
        idle = not self.holding
        self._held.append(typed)
        if idle:
            self._held_back = False
            self._following = following = object()
            self._follow(following)
        elif self._following is not None and len(self._held) == 1:
            self._follow_in(self._wait())

    # -- on the way to the agent ---

    def _follow(self, following: object) -> None:
        while following is self._following:
            if not self._held:
                self._following = None
                self._all_followed()
            elif not self._offer_first():
                break
            elif wait := self._wait():
                self._follow_in(wait)

    def _follow_in(self, seconds: float) -> None:
        self._following = following = object()
        before = self._followed.data
        # After Enter a new key waits too: it would be added to the text that Enter submits.
        apart = _apart(before, self._held[0].data) if self._held else presses_enter(before)

        def follow() -> None:
            self._follow(following)

        if apart and self._held_back:
            self._later(seconds, lambda: self._taken(follow))
        else:
            self._later(seconds, follow)

    def _wait(self) -> float:
        if not self._held:
            return END_GAP if self._held_back else 0.0
        before, after = self._followed, self._held[0]
        if not self._held_back and not _apart(before.data, after.data):
            return 0.0
        return max(0.0, self._last_sent + _gap(before, after) - self._clock())

    def _offer_first(self) -> bool:
        """Offer the keys that are next; returns whether they were read at once."""
        flight = self._flight = _Flight(self._first())
        flight.offer = self._offer(
            flight.data,
            lambda: self.guard.look() is None,
            lambda: self._was_read(flight),
            lambda read: self._landed(flight, read=read),
        )
        return flight.read

    def _first(self) -> tuple[_Held, ...]:
        """Return the keys that are next; those that a busy agent would read together are sent together."""
        keys = [self._held[0]]
        size = len(keys[0].data)
        for held in itertools.islice(self._held, 1, None) if not self._held_back else ():
            size += len(held.data)
            reports = _is_report(held.data) or _is_report(keys[-1].data)
            if reports or size > TOGETHER or _apart(keys[-1].data, held.data):
                break
            keys.append(held)
        return tuple(keys)

    def _was_read(self, flight: _Flight) -> None:
        for _ in flight.keys:
            self._held.popleft()
        self._followed = flight.keys[-1]
        if self._held_back:
            self._note(flight.data)
        self._reaches_composer(flight.data)

    def _landed(self, flight: _Flight, *, read: bool) -> None:
        self._flight, flight.read = None, read
        if not read:
            self._keep_held()
        elif flight.offer is None:
            pass  # `_follow` goes on
        elif wait := self._wait():
            self._follow_in(wait)
        elif self._following is not None:
            self._follow(self._following)

    def _take_back(self) -> None:
        flight, self._flight = self._flight, None
        if flight is not None and flight.offer is not None:
            flight.offer.withdraw()

    def _keep_held(self) -> None:
        """Keep what was held or on its way, since a dialog has opened."""
        if not self._held_back:
            kept = [held._replace(data=_kept(held.data, held.after_text)) for held in self._held]
            self._held = deque(held for held in kept if held.data and not _is_report(held.data))
            self.guard.tell_kept()
        if self._held:
            self.hold()
        else:
            self._following = None
            self._all_followed()

    def _write_at_once(
        self, data: bytes, may: Callable[[], bool], read: Callable[[], None], done: Callable[[bool], None]
    ) -> None:
        sends = may()
        if sends:
            read()
            self._write(data)
        done(sends)

    def _reaches_composer(self, data: bytes) -> None:
        self.guard.passed(data)
        if not _is_report(data):
            self._typed_at = self._clock()
        self._sending(data)
        self._last_sent = self._clock()

    def _note(self, data: bytes) -> None:
        if _is_report(data):
            return
        keys = _REPORTS.sub(b"", data)
        self._last_key = self._clock()
        self._shown = False
        *_, rest = _ENDS_DRAFT.split(keys)
        self.drafting = bool(rest.strip()) or (self.drafting and len(rest) == len(keys))


def _kept(data: bytes, after_text: bool) -> bytes:
    """Return what is kept of a key that came as a dialog opened."""
    # Drop an Enter without text before it: later it would submit whatever is in the composer.
    left = data if after_text else without_enter(data)
    return b"" if presses_stop(left) else left


def _types_text(data: bytes) -> bool:
    """Whether this edits a draft; a single key that may be an answer does not."""
    text = without_enter(data)
    return bool(text) and not is_shortcut(text) and not _ANSWERS.fullmatch(text)


def _is_report(data: bytes) -> bool:
    return not _REPORTS.sub(b"", data)


def _gap(before: _Held, after: _Held) -> float:
    return min(after.at - before.at, END_GAP if _apart(before.data, after.data) else KEY_GAP)


def _apart(before: bytes, after: bytes) -> bool:
    ends = any(_ESCAPE.fullmatch(data) or presses_enter(data) for data in (before, after))
    return ends or before.endswith(b"\x1b[201~")


def _call_later(seconds: float, callback: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, callback)
