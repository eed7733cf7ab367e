"""Key hints: the panel shown after the leader key, and the hints below the sidebar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import ClassVar, Protocol, runtime_checkable

from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.widget import Widget

from synapse_tui.actions import Action
from synapse_tui.dataclass import dataclass
from synapse_tui.keymap import Keymap, leader_label
from synapse_tui.language import tr

from .error_handling import FaultTolerant
from .fit import Hint, pad
from .segment_bar import HintBar

COLUMN = 26  # cells per entry
KEY = 5  # cells for its key
_SHORT = {"Enter": "⏎", "Shift+": "⇧", "Ctrl+": "^"}


class WhichKey(FaultTolerant, Widget, can_focus=False):
    """Lists the keys that may follow the leader in columns; entries can be clicked."""

    DEFAULT_CSS = """
    WhichKey {
        layer: hints; dock: bottom; height: auto; width: 100%; margin-bottom: 1; padding: 0 1; display: none;
        background: $panel; color: $ink; border-top: solid $line;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    keymap: var[Keymap] = var(Keymap)

    @dataclass
    class Chosen(Message):
        action_id: str

    def watch_keymap(self) -> None:
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return self._grid(width)[0]

    def _entries(self) -> list[Action]:
        return [action for action in self.keymap.actions if action.leader]

    def _grid(self, width: int) -> tuple[int, int]:
        """Return the number of rows and the column width, using narrower columns if rows are short."""
        count = len(self._entries())
        most_rows = max(1, self.app.size.height - 4)
        columns = max(1, width // COLUMN, ceil(count / most_rows))
        return ceil(count / columns), max(1, min(COLUMN, width // columns))

    def render(self) -> Content:
        entries = self._entries()
        rows, column = self._grid(self.content_size.width)
        parts: list[tuple[str, str]] = []
        for row in range(rows):
            for action in entries[row::rows]:
                key = leader_label(action)
                for long, short in _SHORT.items():
                    key = key.replace(long, short)
                parts += [
                    (pad(key, KEY), "bold $accent"),
                    (pad(_short_title(action), column - KEY - 1), "$ink"),
                    (" ", ""),
                ]
            parts.append(("\n", ""))
        return Content.assemble(*parts)

    def action_at(self, x: int, y: int) -> Action | None:
        entries = self._entries()
        rows, column = self._grid(self.content_size.width)
        index = x // column * rows + y
        return entries[index] if y < rows and index < len(entries) else None

    def on_click(self, event: events.Click) -> None:
        event.stop()
        offset = event.get_content_offset(self)
        action = self.action_at(offset.x, offset.y) if offset else None
        if action is not None and not action.takes_key:
            self.post_message(self.Chosen(action.id))


def _short_title(action: Action) -> str:
    return {
        "go_to_agent": tr("go to agent"),
        "next_waiting": tr("next that needs you"),
        "main_pane": tr("main pane"),
    }.get(action.id, tr(action.title).lower())


@runtime_checkable
class Keyed(Protocol):
    keymap: Keymap


def keys_of(app: object) -> Keymap:
    return app.keymap if isinstance(app, Keyed) else Keymap()


MESSAGES = "messages"  # the section shown before any had the focus
# by section (the id of its list), in at most two rows
HINTS: Mapping[str, tuple[Sequence[Hint], ...]] = {
    "agents": ([Hint("Enter", "go to", "select")],),
    MESSAGES: (
        [
            Hint("Enter", "open", "command('show')"),
            Hint("c", "cancel", "command('cancel')"),
            Hint("h", "hold/release", "command('hold')"),
        ],
        [
            Hint("s", "send now", "command('send_now')"),
            Hint("⇧↑", "earlier", "command('earlier')"),
            Hint("⇧↓", "later", "command('later')"),
        ],
    ),
    "locks": (
        [
            Hint("Enter", "open", "choose('show_file')"),
            Hint("r", "release", "choose('release_lock')"),
            Hint("t", "take", "choose('take_lock')"),
        ],
    ),
    "externals": (
        [
            Hint("Enter", "open", "select"),
            Hint("c", "card", "command('external_card')"),
            Hint("x", "remove", "command('remove_external')"),
        ],
    ),
    "peers": ([Hint("Enter", "write", "select")],),
}


class SidebarKeys(HintBar):
    DEFAULT_CSS = "SidebarKeys { background: $panel; }"
    EDGE = 1

    section: var[str] = var(MESSAGES)

    def __init__(self, row: int) -> None:
        super().__init__()
        self._place = row

    def watch_section(self) -> None:
        self.shown = next(iter(HINTS[self.section][self._place :]), ())
