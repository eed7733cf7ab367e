"""Chooses a priority from 1 to 5 by one key, the arrows, or a click."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.reactive import var

from synapse_tui.model import DEFAULT_PRIORITY, INTERRUPT_PRIORITY
from synapse_tui.widgets.segment_bar import Piece, SegmentBar

MEANINGS = {
    1: "information",
    2: "low",
    3: "normal",
    4: "soon: may steer a running turn",
    5: "interrupts the running turn",
}


class PriorityBar(SegmentBar, can_focus=True):
    """Five numbers, one of them chosen, and what it means."""

    DEFAULT_CSS = "PriorityBar { background: $dialog; margin: 1 0; }"

    value: var[int] = var(DEFAULT_PRIORITY)

    def watch_value(self) -> None:
        self.refresh()

    def watch_has_focus(self, _has_focus: bool) -> None:
        self.refresh()

    def pieces(self, _width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        row = [Piece("Priority ", "$ink-muted")]
        for number, meaning in MEANINGS.items():
            chosen = number == self.value
            text = f"[{number}]" if chosen else f" {number} "
            row.append(Piece(text, self._number_style(number, chosen=chosen), str(number), meaning))
        style = "$state-error" if self.value == INTERRUPT_PRIORITY else "$ink-muted"
        return [*row, Piece(f" {MEANINGS[self.value]}", style)], []

    def _number_style(self, number: int, *, chosen: bool) -> str:
        if not chosen:
            return "$ink on $field"
        colour = "$state-error" if number == INTERRUPT_PRIORITY else "$hot"
        return f"bold $hot-ink on {colour}" + (" underline" if self.has_focus else "")

    def on_key(self, event: events.Key) -> None:
        steps = {"left": -1, "down": -1, "right": 1, "up": 1}
        if event.character is not None and event.character in "12345":
            self.value = int(event.character)
        elif event.key in steps:
            self.value = min(INTERRUPT_PRIORITY, max(1, self.value + steps[event.key]))
        else:
            return
        event.stop()
        event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        piece = self.target_at(event.x)
        if piece is not None:
            self.value = int(piece.target)
