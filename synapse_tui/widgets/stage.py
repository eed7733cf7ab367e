"""What the panes of an app share: the frame clock, the outer cursor, and the way past Textual's compositor.

The compositor is always right and costs three times as much as writing the changed rows to the driver. A pane
may write them itself while it is in full view; this module knows when that is. It leans on internals of
Textual 8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from textual.app import App
from textual.driver import Driver
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget

from synapse_tui.driver import SynapseDriver

from .frame_clock import FrameClock
from .outer_cursor import HIDDEN, OuterCursor

_SYNC_START, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_ATTRIBUTE = "_pane_stage"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a widget is on the outer terminal.

    Attributes:
        region: Its cells.
        clear: Whether all of them are in view and nothing lies over them.
    """

    region: Region
    clear: bool


class PaneStage:
    """Clock, cursor and output of all panes of an app.

    Args:
        app: The running app.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._driver: Driver | None = None
        self._terminal: object = None
        self._placements: WeakKeyDictionary[Widget, tuple[object, Placement | None]] = WeakKeyDictionary()
        self.cursor = OuterCursor(self._show_cursor)
        self.clock = FrameClock(self.paint)
        self.direct = True
        """Whether panes may write to the driver themselves at all."""

    @classmethod
    def of(cls, app: App[Any]) -> PaneStage:
        """Return the stage of an app; the first pane makes it."""
        stage = app.__dict__.get(_ATTRIBUTE)
        if not isinstance(stage, cls):
            stage = app.__dict__[_ATTRIBUTE] = cls(app)
        return stage

    def begin(self) -> None:
        """Look at the outer terminal: another one that was attached has been set up anew."""
        self._driver = driver = self._app._driver
        terminal = driver.link if isinstance(driver, SynapseDriver) else driver
        if terminal is not self._terminal:
            self._terminal = terminal
            self.cursor.forget()

    @property
    def live(self) -> bool:
        """Whether there is an outer terminal that takes output now."""
        app = self._app
        return app._running and not app._closed and not app.is_headless and app._driver is not None

    def placement(self, widget: Widget) -> Placement | None:
        """Return where a widget is on the screen that is shown; None when it is on none or out of view."""
        if not widget.is_attached or not self._app.screen_stack:
            return None
        screen = self._app.screen
        if widget.screen is not screen:
            return self._behind(widget)
        visible = screen._compositor.visible_widgets
        known = self._placements.get(widget)
        if known is not None and known[0] is visible:
            return known[1]
        placement = _place(widget, visible)
        self._placements[widget] = (visible, placement)
        return placement

    def may_paint(self, placement: Placement) -> bool:
        """Return whether a pane there may write its rows itself."""
        screen = self._app.screen
        return (
            self.direct and placement.clear and self.live and not self._app._batch_count and _settled(screen)
        )

    @property
    def dropping(self) -> bool:
        """Whether the outer terminal does not read; all is painted anew when it does so again."""
        return isinstance(self._driver, SynapseDriver) and self._driver.dropping

    def paint(self, output: str) -> None:
        """Write what panes have drawn as one frame, and put the cursor back to where it belongs."""
        if not self.live:
            return
        x, y = self._app.screen.outer_size.clamp_offset(self._app.cursor_position)
        place = f"\x1b[{y + 1};{x + 1}H"
        if self._app._sync_available:
            output = f"{_SYNC_START}{output}{place}{_SYNC_END}"
        elif self.cursor.shown:
            output = f"{_HIDE}{output}{place}{_SHOW}"
        else:
            output += place
        self._write_now(output)

    @property
    def cell_pixels(self) -> tuple[int, int] | None:
        """Width and height of a cell of the outer terminal in pixels; None when it does not tell."""
        driver = self._app._driver
        size = driver.terminal_size() if isinstance(driver, SynapseDriver) else None
        if size is None or not (size.columns and size.lines):
            return None
        cell = (size.width // size.columns, size.height // size.lines)
        return cell if all(cell) else None

    def _write_now(self, output: str) -> None:
        driver = self._app._driver
        if driver is None or not self.live:
            return
        driver.write(output)
        driver.flush()

    def ask_keys(self, kitty_flags: int) -> None:
        """Ask the outer terminal for the keys that the child in focus wants to hear of.

        Args:
            kitty_flags: The child's flags of the kitty keyboard protocol; 0 when no pane is in focus.
        """
        if isinstance(self._driver, SynapseDriver) and self.live:
            self._driver.request_keyboard(kitty_flags)

    def _show_cursor(self, shape: int) -> None:
        self._write_now(_HIDE if shape == HIDDEN else f"\x1b[{shape} q{_SHOW}")

    def _behind(self, widget: Widget) -> Placement | None:
        """Return the placement of a widget on a screen that shows through the one above it."""
        if widget.screen not in self._app._background_screens:
            return None
        found = widget.screen._compositor.visible_widgets.get(widget)
        return Placement(found[0], clear=False) if found is not None else None


def _place(widget: Widget, visible: dict[Widget, tuple[Region, Region]]) -> Placement | None:
    found = visible.get(widget)
    if found is None:
        return None
    region, clip = found
    clear = clip.contains_region(region)
    for other, (other_region, other_clip) in visible.items():  # from the front to the back
        if other is widget or not clear:
            break
        clear = not other_region.intersection(other_clip).overlaps(region)
    return Placement(region, clear)


def _settled(screen: Screen[object]) -> bool:
    """Return whether no new layout is about to be shown."""
    return not (screen._layout_required or screen._scroll_required)
