"""The line of the first start: what to try next, until it is dismissed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.reactive import var

from synapse_tui.keymap import Keymap, key_label, leader_label

from .segment_bar import Piece, SegmentBar, width_of

DISMISS = "dismiss_tip"
Runs = list[tuple[str, str, str]]


class TipBar(SegmentBar):
    """Says what to try with the demo agents; targets are action ids."""

    DEFAULT_CSS = "TipBar { display: none; } TipBar.-shown { display: block; }"

    keymap: var[Keymap] = var(Keymap)
    """The keys that hold."""
    wrote: var[bool] = var(False)
    """Whether a message was sent: something else is to be tried then."""

    def begin(self) -> None:
        """Show the line."""
        self.add_class("-shown")

    def end(self) -> None:
        """Hide the line."""
        self.remove_class("-shown")

    def watch_keymap(self) -> None:
        """Draw anew."""
        self.refresh()

    def watch_wrote(self) -> None:
        """Draw anew."""
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """What to try at the left, as much as fits, and how to be rid of it at the right."""
        hide = self.keymap.find(DISMISS)
        key = f"{key_label(self.keymap.leader)} {leader_label(hide)}" if hide.leader else ""
        right = [Piece(f" {key}", "bold $hot", DISMISS), Piece(" hide ", "$ink-muted", DISMISS)]
        left = [Piece("▌", "$hot"), Piece("Next " if self.wrote else "Try it ", "bold $ink")]
        room = width - width_of(left) - width_of(right) - 2
        for parts in self._hints():
            wide = sum(cell_len(text) for text, _style, _target in parts)
            if wide > room:
                break
            left += [Piece(*part) for part in parts]
            room -= wide
        return left, right

    def _hints(self) -> list[Runs]:
        """Hints as runs of text, style and target; the ones that are left out first come last."""
        if not self.wrote:
            return [
                [
                    ("type ", "$ink-muted", ""),
                    ("@bob hello", "bold $ink", ""),
                    (" and press Enter", "$ink-muted", ""),
                ],
                [(": it arrives in bob's pane", "$ink-muted", "")],
                [("; alice and bob are a demo and cost nothing", "$ink-muted", "")],
            ]
        return [
            self._way("new_agent", "opens an agent of yours"),
            self._way("compose", "writes a message"),
            self._way("sidebar", "shows all messages"),
            self._way("help", "all keys"),
        ]

    def _way(self, action_id: str, what: str) -> Runs:
        way = self.keymap.way(action_id)
        return [(f" {way}", "bold $hot", action_id), (f" {what} ", "$ink-muted", action_id)]
