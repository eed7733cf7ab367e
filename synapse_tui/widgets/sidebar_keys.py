"""The hints at the bottom of the sidebar: what the keys do in the list that has the focus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from textual.reactive import var

from .segment_bar import Piece, SegmentBar, width_of

# A key, what it does in a word, and the action of the section that does it
Hint: TypeAlias = tuple[str, str, str]
MESSAGES = "messages"  # the section whose keys are told before any had the focus
# The hints of each section, by the id of its list, in at most two rows
HINTS: Mapping[str, tuple[Sequence[Hint], ...]] = {
    "agents": ((("Enter", "go to", "select"),),),
    MESSAGES: (
        (
            ("Enter", "open", "command('show')"),
            ("c", "cancel", "command('cancel')"),
            ("h", "hold/release", "command('hold')"),
        ),
        (
            ("s", "send now", "command('send_now')"),
            ("⇧↑", "earlier", "command('earlier')"),
            ("⇧↓", "later", "command('later')"),
        ),
    ),
    "locks": (
        (
            ("Enter", "open", "choose('show_file')"),
            ("r", "release", "choose('release_lock')"),
            ("t", "take", "choose('take_lock')"),
        ),
    ),
    "externals": (
        (
            ("Enter", "open", "select"),
            ("c", "card", "command('external_card')"),
            ("x", "remove", "command('remove_external')"),
        ),
    ),
    "peers": ((("Enter", "write", "select"),),),
}


class SidebarKeys(SegmentBar):
    """What the keys do in one of the lists; it can be done by the mouse as well.

    Attributes:
        section: The id of the list whose keys are told.
    """

    DEFAULT_CSS = "SidebarKeys { background: $dialog; }"

    section: var[str] = var(MESSAGES)

    def __init__(self, row: int) -> None:
        super().__init__()
        self._place = row

    def watch_section(self) -> None:
        self.refresh()

    def pieces(self, width: int, /) -> tuple[Sequence[Piece], Sequence[Piece]]:
        shown: list[Piece] = []
        for key, word, target in next(iter(HINTS[self.section][self._place :]), ()):
            hint = [Piece(f" {key}", "bold $hot", target), Piece(f" {word} ", "$ink-muted", target)]
            if width_of(shown) + width_of(hint) <= width:
                shown += hint
        return shown, []
