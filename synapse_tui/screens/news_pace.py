"""Lets news be drawn as often as an eye follows, however many there are."""

from __future__ import annotations

from collections.abc import Callable

NEWS_SECONDS = 0.1  # least time between two drawings

SetTimer = Callable[[float, Callable[[], None]], object]


class NewsPace:
    """Draws news at once, or in a moment when that was done just now.

    A flood of messages brings hundreds of news a second, each of which would draw everything, and the keys
    wait behind them in the same queue.
    """

    def __init__(self, set_timer: SetTimer, draw: Callable[[], None]) -> None:
        self._set_timer = set_timer
        self._draw = draw
        self._resting = False
        self._more = False

    def show(self) -> None:
        self._more = self._resting
        if not self._resting:
            self._resting = True
            self._set_timer(NEWS_SECONDS, self._rested)
            self._draw()

    def _rested(self) -> None:
        self._resting = False
        if self._more:
            self.show()
