"""The row below an agent that has ended: how it ended, and what can be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from textual import events
from textual.message import Message
from textual.reactive import var

from synapse_tui.model import ExitStatus

from .segment_bar import Piece, SegmentBar, width_of

RESTART = "restart"
CLOSE = "close"
GRACE = 1.0
"""Seconds after the end in which keys do nothing: they were meant for the agent."""


class ExitBar(SegmentBar, can_focus=True):
    """Takes the focus when the agent ends; `r` restarts and `x` closes it."""

    DEFAULT_CSS = "ExitBar { dock: bottom; background: $raised; }"

    @dataclass
    class Chosen(Message):
        """`restart` or `close` was chosen."""

        agent_id: str
        choice: str

    label: var[str] = var("")
    status: var[ExitStatus | None] = var(None)

    def __init__(self, agent_id: str, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.agent_id = agent_id
        self._clock = clock
        self._since = clock()

    def watch_label(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_status(self) -> None:
        """Begin the time in which keys do nothing."""
        self._since = self._clock()
        self.refresh()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """How it ended, and the two ways on."""
        status = self.status
        if status is None:
            return [], []
        ink = "$ink-muted" if status.ok else "bold $state-error"
        mark = Piece(" × ", "bold $state-error on $raised")
        told = [mark, Piece(f"{self.label} {status.words} ", f"{ink} on $raised")]
        for words in (True, False):  # the hints give way first, then the name
            ways = [*self._way("r", RESTART, words=words), *self._way("x", CLOSE, words=words)]
            if width_of(told) + width_of(ways) <= width:
                return told, ways
        return [mark, Piece(f"{status.words} ", f"{ink} on $raised")], ways

    def _way(self, key: str, word: str, *, words: bool) -> list[Piece]:
        style = "bold $hot-ink on $hot" if self.has_focus else "bold $ink on $raised"
        hint = Piece(f" {word}  " if words else " ", "$ink on $raised", word, word)
        return [Piece(f" {key} ", style, word, word), hint]

    def on_segment_bar_pressed(self, event: SegmentBar.Pressed) -> None:
        """A click chooses at once."""
        event.stop()
        self.post_message(self.Chosen(self.agent_id, event.target))

    def on_key(self, event: events.Key) -> None:
        """`r` and `x` choose; other keys go nowhere, since nobody is there to take them."""
        event.stop()
        event.prevent_default()
        choice = {"r": RESTART, "x": CLOSE, "R": RESTART, "X": CLOSE}.get(event.character or "")
        if choice and self._clock() - self._since >= GRACE:
            self.post_message(self.Chosen(self.agent_id, choice))
