"""Key hints: the panel shown after the leader key, and the hints below the sidebar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget

from synapse_tui.core.model import Task
from synapse_tui.settings.actions import GROUPS, Action, Place
from synapse_tui.settings.keymap import Keymap, leader_label
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .error_handling import FaultTolerant
from .fit import Hint, pad
from .segment_bar import HintBar
from .views import commands_of

GAP = 2  # cells between columns
KEY = 5  # cells for a key
LEAST = 3  # rows of a group at the foot of a column: its heading and two keys
MORE_ROWS = 4  # that groups may take to stay whole
Entry = Action | str  # a key's action, or the heading of a group
_Column = tuple[int, list[Entry]]  # its width in cells
_SHORT = {"Enter": "⏎", "Shift+": "⇧", "Ctrl+": "^"}


class WhichKey(FaultTolerant, Widget, can_focus=False):
    """Lists the keys that may follow the leader, under headings, in columns; entries can be clicked."""

    DEFAULT_CSS = """
    WhichKey {
        layer: hints; dock: bottom; height: auto; width: 100%; margin-bottom: 1; padding: 0 1; display: none;
        background: $panel; color: $ink; border-top: solid $line;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    keymap: var[Keymap] = var(Keymap)
    card: var[bool] = var(False)  # whether the active pane has an answer's card to let go

    @dataclass
    class Chosen(Message):
        action_id: str

    def watch_keymap(self) -> None:
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return _rows(self._grid(width))

    def _grid(self, width: int) -> list[_Column]:
        """Return the columns: as few rows as their full labels allow, or all rows with shorter labels.

        Groups stay whole where that takes a few rows more only, or no more than half of the screen.
        """
        actions = [self._as_now(action) for action in self.keymap.actions if action.leader]
        found = [[action for action in actions if action.group == group] for group in GROUPS]
        groups: list[list[Entry]] = [[group, *its] for group, its in zip(GROUPS, found, strict=True) if its]
        most_rows = max(LEAST, self.app.size.height - 4)
        columns = _fewest_rows(groups, most_rows, width)
        fewest = _rows(columns)
        for rows in range(fewest, min(most_rows, max(fewest + MORE_ROWS, self.app.size.height // 2)) + 1):
            for whole in (False, True):
                taller = _columns(groups, rows, whole=whole)
                if _total(taller) <= width and _torn(taller) < _torn(columns):
                    columns = taller
        widths = [each for each, _column in columns]
        while _total(columns) > width and max(widths) > KEY:
            widths[widths.index(max(widths))] -= 1
            columns = [(each, column) for each, (_width, column) in zip(widths, columns, strict=True)]
        return columns

    def _as_now(self, action: Action) -> Action:
        """Return an action with the title of what its key does now: Esc leaves the menu in any case."""
        if action.id == "let_go" and "escape" in action.leader and not self.card:
            return replace(action, title=tr("Close this menu"))
        return action

    def render(self) -> Content:
        columns = self._grid(self.content_size.width)
        parts: list[tuple[str, str]] = []
        for row in range(_rows(columns)):
            for width, column in columns:
                parts += _drawn(column[row] if row < len(column) else "", width)
                parts.append((" " * GAP, ""))
            parts[-1] = ("\n", "")
        return Content.assemble(*parts)

    def action_at(self, x: int, y: int) -> Action | None:
        for width, column in self._grid(self.content_size.width):
            if x < width:
                entry = column[y] if y < len(column) else ""
                return entry if isinstance(entry, Action) else None
            x -= width + GAP
        return None

    def on_click(self, event: events.Click) -> None:
        event.stop()
        offset = event.get_content_offset(self)
        action = self.action_at(offset.x, offset.y) if offset else None
        if action is not None and not action.takes_key:
            self.post_message(self.Chosen(action.id))


def _fewest_rows(groups: Sequence[Sequence[Entry]], most: int, width: int) -> list[_Column]:
    """Return columns of as few rows as fit into a width, else of the most rows."""
    for rows in range(LEAST, most + 1):
        columns = _columns(groups, rows, whole=False)
        if _total(columns) <= width:
            break
    return columns


def _columns(groups: Sequence[Sequence[Entry]], rows: int, *, whole: bool) -> list[_Column]:
    return [(max(map(_width, column)), column) for column in _flow(groups, rows, whole=whole)]


def _torn(columns: Sequence[_Column]) -> tuple[int, int]:
    """Return how many columns begin with the last key of a group, and how many within a group."""
    within = [column for _width, column in columns if isinstance(column[0], Action)]
    return sum(column[1:2] in ([], [""]) for column in within), len(within)


def _flow(groups: Sequence[Sequence[Entry]], rows: int, *, whole: bool) -> list[list[Entry]]:
    """Fill columns one after the other, with a blank row above each heading.

    A group that does not fit beneath another one begins a column, if it is to stay whole; else one that
    has room there for fewer than `LEAST` rows.
    """
    columns: list[list[Entry]] = [[]]
    for group in groups:
        if columns[-1]:
            room = rows - len(columns[-1]) - 1
            if room < (len(group) if whole else min(len(group), LEAST)):
                columns.append([])
            else:
                columns[-1].append("")
        for entry in group:
            if len(columns[-1]) == rows:
                columns.append([])
            columns[-1].append(entry)
    return columns


def _total(columns: Sequence[_Column]) -> int:
    return sum(width for width, _column in columns) + GAP * (len(columns) - 1)


def _rows(columns: Sequence[_Column]) -> int:
    return max(len(column) for _width, column in columns)


def _width(entry: Entry) -> int:
    return cell_len(tr(entry)) if isinstance(entry, str) else KEY + cell_len(_short_title(entry))


def _drawn(entry: Entry, width: int) -> list[tuple[str, str]]:
    if isinstance(entry, str):
        return [(pad(tr(entry), width), "$faint")]
    key = leader_label(entry)
    for long, short in _SHORT.items():
        key = key.replace(long, short)
    return [(pad(key, KEY), "bold $accent"), (pad(_short_title(entry), max(0, width - KEY)), "$ink")]


def _short_title(action: Action) -> str:
    return {
        "go_to_agent": tr("go to agent"),
        "next_waiting": tr("next that needs you"),
        "main_pane": tr("main pane"),
        "last_message": tr("last message"),
    }.get(action.id, tr(action.title).lower())


@runtime_checkable
class Keyed(Protocol):
    keymap: Keymap


def keys_of(app: object) -> Keymap:
    return app.keymap if isinstance(app, Keyed) else Keymap()


@runtime_checkable
class HasKeys(Protocol):
    """A widget or screen that may have keys of its own."""

    def keys_here(self) -> Place | None: ...


def place_of(screen: Screen[Any]) -> Place | None:
    """Return the place in focus that has keys of its own, if there is one."""
    nodes = (screen.focused or screen).ancestors_with_self
    places = (node.keys_here() for node in nodes if isinstance(node, HasKeys))
    return next((place for place in places if place is not None), None)


# what can be done with any row of a list, by the list's id
HINTS: Mapping[str, Sequence[Hint]] = {
    "agents": [Hint("Enter", "go to", "select")],
    "locks": [
        Hint("Enter", "open", "choose('show_file')"),
        Hint("r", "release", "choose('release_lock')"),
        Hint("t", "lock it", "choose('take_lock')"),
    ],
    "externals": [
        Hint("Enter", "open", "select"),
        Hint("c", "card", "command('external_card')"),
        Hint("x", "remove", "command('remove_external')"),
    ],
    "peers": [Hint("Enter", "write", "select")],
}


def message_hints(
    task: Task, place: tuple[int, int], *, parked: bool
) -> tuple[Sequence[Hint], Sequence[Hint]]:
    """Return what can be done with a message, in two rows.

    Args:
        task: The message.
        place: Its position, and the number of messages that wait for the same agent.
        parked: Whether it waits until a person releases it.
    """
    commands, (position, count) = commands_of(task, parked=parked), place
    first = [Hint("Enter", "open", "command('show')")]
    if "cancel" in commands:
        first.append(Hint("c", "cancel", "command('cancel')"))
    if "hold" in commands:
        first.append(Hint("h", commands["hold"], "command('hold')"))
    second = []
    if "send_now" in commands:
        second.append(Hint("s", commands["send_now"], "command('send_now')"))
    if position > 1:
        second.append(Hint("⇧↑", "earlier", "command('earlier')"))
    if position < count:
        second.append(Hint("⇧↓", "later", "command('later')"))
    return first, second


class SidebarKeys(HintBar):
    DEFAULT_CSS = "SidebarKeys { background: $panel; }"
    EDGE = 1

    section = ""  # the id of the list that they are for
