"""Calls a person who looks elsewhere: by the bell, by a notification on the desktop, or not at all."""

from __future__ import annotations

from collections.abc import Callable

from synapse_tui.widgets.text import one_line, plural, shorten

BELL_SECONDS = 1.0  # least time between two bells: an agent must not ring for ever
GAP_SECONDS = 3.0  # least time between two notifications; it doubles as long as there is always another one
LONGEST_GAP = 48.0
QUIET_SECONDS = 60.0  # time without a notification after which the shortest gap holds again
REPEAT_SECONDS = 30.0  # the same call of the same agent is one within so long
AGENT_SECONDS = 5.0  # any two calls of the same agent are one within so long: it rings itself when it asks
TEXT_CELLS = 100  # of what an agent says
TITLE = "synapse"


class Attention:
    """Paces calls: the first is made at once, those that follow soon are gathered into one."""

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
            self._ring()
        if mode in ("desktop", "both"):
            self._announce(one_line(name), shorten(one_line(what), TEXT_CELLS))

    def _ring(self) -> None:
        now = self._clock()
        if now - self._rang_at >= BELL_SECONDS:
            self._rang_at = now
            self._bell()

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
            self._notify(f"{TITLE}: {plural(len(names), 'agent')}", ", ".join(names))
