"""The bar at the bottom: the keys that fit, and the newest notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.reactive import var
from textual.timer import Timer

from synapse_tui.key_names import key_label
from synapse_tui.keymap import Keymap

from .segment_bar import Piece, SegmentBar, width_of
from .text import one_line, shorten

Level = Literal["information", "warning", "error"]
LEADER = "leader"

NOTICE_SECONDS = {"information": 6.0, "warning": 10.0, "error": 15.0}
_COLOURS = {"information": "$ink", "warning": "bold $state-waiting", "error": "bold $state-error"}
_GLYPHS = {"information": "·", "warning": "▲", "error": "✗"}
_KEEP = (
    "help",
    "compose",
    "sidebar",
    "next_agent",
    "palette",
    "layout",
    "interrupt",
    "scroll",
    "previous_agent",
    "interrupt_all",
)
"""Which hints stay when room gets short, the most useful first."""


class StatusBar(SegmentBar):
    """Key hints and notices; targets are action ids, `leader` and `notice`."""

    keymap: var[Keymap] = var(Keymap)
    """The keys that hold."""
    notice: var[str] = var("")
    level: var[Level] = var("information")
    count: var[str] = var("")
    """A few words about the agents, at the right (`2 need you`)."""

    _expiry: Timer | None = None
    _dialog_of = ""

    def show(self, text: str, level: Level = "information", *, dialog_of: str = "") -> None:
        """Show a notice for some seconds, or until the dialog of an agent that it is about is gone."""
        self.level, self._dialog_of = level, dialog_of
        self.notice = one_line(text)
        self.refresh()
        if self._expiry is not None:
            self._expiry.stop()
        self._expiry = self.set_timer(NOTICE_SECONDS[level], self._clear)

    def dialog_gone(self, agent_id: str) -> None:
        """Take away a notice about the dialog of an agent."""
        if self.notice and self._dialog_of == agent_id:
            self._clear()

    def _clear(self) -> None:
        self.notice = ""
        self.refresh()

    def watch_keymap(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_count(self) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Hints at the left, as many as fit beside the notice at the right."""
        right = self._right(width)
        room = width - width_of(right)
        leader = _hint(LEADER, key_label(self.keymap.leader), "menu")
        return fit_hints(leader, self.keymap, room), right

    def _right(self, width: int) -> list[Piece]:
        if self.notice:
            text = shorten(self.notice, max(20, width * 2 // 3))
            glyph = Piece(f" {_GLYPHS[self.level]} ", _COLOURS[self.level], "notice")
            return [glyph, Piece(f"{text} ", _COLOURS[self.level], "notice", self.notice)]
        if self.count:
            return [
                Piece(f" {self.count} ", "bold $state-waiting", "next_waiting", "Next agent that needs you")
            ]
        return []


def fit_hints(leader: Sequence[Piece], keymap: Keymap, width: int) -> list[Piece]:
    """Key hints in the order of the function keys: as many of the useful ones as fit."""
    room = width - width_of(leader)
    hints = {
        action.id: _hint(action.id, key_label(action.keys[0]), action.hint or action.title.lower())
        for action in keymap.with_keys()
    }
    kept = set()
    for name in sorted(hints, key=lambda name: _KEEP.index(name) if name in _KEEP else len(_KEEP)):
        if width_of(hints[name]) <= room:
            kept.add(name)
            room -= width_of(hints[name])
    return [*leader, *(piece for name, hint in hints.items() if name in kept for piece in hint)]


def _hint(target: str, key: str, word: str) -> list[Piece]:
    return [Piece(f" {key}", "bold $hot", target), Piece(f" {word} ", "$ink-muted", target)]
