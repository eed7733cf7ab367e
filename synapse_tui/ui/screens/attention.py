"""Alerts a user who is looking elsewhere, by bell, desktop notification, both or neither."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time

from synapse_tui.system.language import name_list
from synapse_tui.widgets.fit import shorten
from synapse_tui.widgets.text import one_line, plural

BELL_SECONDS = 1.0  # minimum time between bells
GAP_SECONDS = 3.0  # minimum time between notifications; doubled each time more of them pile up
LONGEST_GAP = 48.0
QUIET_SECONDS = 60.0  # time without notifications after which the minimum gap applies again
REPEAT_SECONDS = 30.0  # period within which an agent repeating the same call is ignored
AGENT_SECONDS = (
    5.0  # period within which a second call of an agent is ignored: an agent that asks may also ring
)
TEXT_CELLS = 100  # maximum length of an agent's text
TITLE = "synapse"


def is_quiet(hours: str, now: time) -> bool:
    """Whether a time of day is within quiet hours (`22:00-08:00`); these may span midnight."""
    if not hours:
        return False
    start, end = (time.fromisoformat(each) for each in hours.split("-"))
    return start <= now < end if start <= end else now >= start or now < end


class Attention:
    """Rate-limits notifications: the first is shown at once, later ones are combined."""

    def __init__(
        self,
        *,
        mode: Callable[[], str],
        bell: Callable[[], None],
        notify: Callable[[str, str], None],
        clock: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._mode = mode
        self._bell = bell
        self._notify = notify
        self._clock = clock
        self._later = later
        self._rang_at = self._notified_at = float("-inf")
        self._gap = GAP_SECONDS
        self._waiting: list[tuple[str, str]] = []
        self._made: dict[tuple[str, str], float] = {}

    def call(self, name: str, what: str) -> None:
        mode = self._mode()
        if mode in ("bell", "both"):
            now = self._clock()
            if now - self._rang_at >= BELL_SECONDS:
                self._rang_at = now
                self._bell()
        if mode in ("desktop", "both"):
            self._announce(one_line(name), shorten(one_line(what), TEXT_CELLS))

    def _announce(self, name: str, what: str) -> None:
        now, call = self._clock(), (name, what)
        self._made = {each: at for each, at in self._made.items() if now - at < REPEAT_SECONDS}
        made = [at for (whose, _what), at in self._made.items() if whose == name]
        if call in self._made or any(now - at < AGENT_SECONDS for at in made):
            return
        self._made[call] = now
        if self._waiting:
            self._waiting.append(call)
            return
        quiet = now - self._notified_at
        if quiet >= QUIET_SECONDS:
            self._gap = GAP_SECONDS
        self._waiting.append(call)
        if quiet >= self._gap:
            self._show()
        else:
            self._later(self._gap - quiet, self._show_gathered)

    def _show_gathered(self) -> None:
        self._gap = min(LONGEST_GAP, self._gap * 2)
        if self._mode() in ("desktop", "both"):
            self._show()
        self._waiting.clear()

    def _show(self) -> None:
        calls, self._waiting = self._waiting, []
        self._notified_at = self._clock()
        names = list(dict.fromkeys(name for name, _what in calls))
        if len(calls) == 1:
            self._notify(f"{TITLE}: {calls[0][0]}", calls[0][1])
        elif len(names) == 1:
            self._notify(f"{TITLE}: {names[0]}", calls[-1][1])
        else:
            self._notify(f"{TITLE}: {plural(len(names), 'agent')}", name_list(names))
