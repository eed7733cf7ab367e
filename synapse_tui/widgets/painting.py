"""Painting shared by all panes: the frame clock, the outer cursor, and output that bypasses the compositor.

Writing changed rows directly to the driver costs a third of what Textual's compositor does. A pane may do so
while nothing covers it; in all other cases the compositor draws it. Relies on internals of Textual 8.2.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, cast
from weakref import WeakKeyDictionary

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor
from textual.app import App
from textual.color import Color
from textual.driver import Driver
from textual.geometry import Region
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from synapse_tui.system.dataclass import dataclass
from synapse_tui.terminal import Line, Scroll
from synapse_tui.widgets.driver import SynapseDriver

from .strips import Pens, Span, StripPiece, TerminalStrip, build_pieces, draw

log = logging.getLogger(__name__)

FRAME_INTERVAL = 1 / 30  # seconds between ticks; busy panes paint on ticks, all in one write
QUIET = 5  # intervals without a frame after which a pane paints immediately

COST_FACTOR = 4  # minimum frame interval of a pane, as a multiple of the time to draw a frame
LONGEST_INTERVAL = 0.2  # maximum of that interval in seconds


# seconds of painting per tick; then pending keys are handled before the remaining panes
SLICE = 0.004


class WholeCompositor(Compositor):
    """Divides a row only where what is seen begins or ends, and asks widgets only for the rows that it draws.

    Textual divides each row also at the edges of covered widgets, and ends a part that is drawn again in the
    middle of what lies over it: a wide character of an overlay is lost there. And for one row of one widget
    it asks all widgets for all of theirs.
    """

    def render_partial_update(self) -> ChopsUpdate | None:
        update = super().render_partial_update()
        if update is not None:
            update.spans = [(y, x1, _whole_end(update.chops[y], x2)) for y, x1, x2 in update.spans]
        return update

    @property
    def cuts(self) -> list[list[int]]:
        """The columns at which each row is divided."""
        if self._cuts is None:
            width, height = self.size
            found = [{0, width} for _ in range(height)]
            above: list[Region] = []
            for region, clip in self.visible_widgets.values():  # what is in front comes first
                shown = region.intersection(clip)
                for x in (shown.x, shown.right):
                    covers = [each for each in above if each.x < x < each.right]
                    for y in shown.line_range:
                        if not any(cover.y <= y < cover.bottom for cover in covers):
                            found[y].add(x)
                above.append(shown)
            self._cuts = [sorted(columns) for columns in found]
        return self._cuts

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        rows: list[dict[int, Strip | None]] = [dict.fromkeys(columns[:-1]) for columns in self.cuts]
        bands = _bands(filter(is_rendered_line, crop.line_range), self.size.width)
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            for band in bands if crop.overlaps(shown) else ():
                part = shown.intersection(band)
                strips = widget.render_lines(part.translate(-region.offset)) if part else []
                for y, strip in zip(part.line_range, strips, strict=False):
                    columns = [x for x in self.cuts[y] if shown.x <= x <= shown.right]
                    for begin, end in pairwise(columns):
                        if rows[y][begin] is None:
                            rows[y][begin] = strip.crop(begin - shown.x, end - shown.x)
        return cast("Sequence[Mapping[int, Strip]]", rows)


def _bands(rows: Iterable[int], width: int) -> list[Region]:
    """Return regions of a width that have these rows, which are in order."""
    bands: list[Region] = []
    for y in rows:
        if bands and bands[-1].bottom == y:
            bands[-1] = bands[-1].grow((0, 0, 1, 0))
        else:
            bands.append(Region(0, y, width, 1))
    return bands


def _whole_end(row: Mapping[int, Strip | None], end: int) -> int:
    """Return the column at which a part of a row ends, one further if a wide character lies across it."""
    for x, strip in row.items():
        if strip is not None and x < end < x + strip.cell_length:
            text = strip.crop(end - x - 1, end - x + 1).text
            return end + (get_character_cell_size(text[0]) > 1)
    return end


class Painter(Protocol):
    def held_until(self, now: float) -> float:
        """Return the loop time until which the child delays its frame; not in the future if it does not."""

    def paint_frame(self) -> str:
        """Update the pane and return the output; empty if Textual paints it."""

    def charge(self, seconds: float) -> None:
        """Account for the CPU time that `paint_frame` took."""


class FrameClock:
    def __init__(
        self,
        write: Callable[[str], None],
        *,
        interval: float = FRAME_INTERVAL,
        loop: asyncio.AbstractEventLoop | None = None,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._write = write
        self._interval = interval
        self._loop = loop or asyncio.get_running_loop()
        self._cpu = cpu
        # Frames may be requested from the context of an application that has since been replaced; Textual
        # finds the active application by context.
        self._context = contextvars.copy_context()
        self._due: dict[Painter, float] = {}
        # panes whose frame the user is waiting for: painted first and written immediately
        self._awaited: set[Painter] = set()
        self._last: WeakKeyDictionary[Painter, float] = WeakKeyDictionary()
        self._timer: asyncio.TimerHandle | None = None

    def request(self, painter: Painter, *, at_once: bool = False) -> None:
        """Schedule a frame: now for a quiet pane, on a tick for a busy one, later if the child delays it."""
        now = self._loop.time()
        last = self._last.get(painter)
        quiet = last is None or now - last >= QUIET * self._interval
        due = now if quiet or at_once or last is None else self._tick_after(max(now, last + self._interval))
        self._due[painter] = max(due, painter.held_until(now))
        if at_once:
            self._awaited.add(painter)
        self._arm()

    def _tick_after(self, moment: float) -> float:
        return math.ceil(moment / self._interval - 1e-3) * self._interval

    @property
    def busy(self) -> bool:
        return bool(self._due)

    def forget(self, painter: Painter) -> None:
        self._due.pop(painter, None)
        self._last.pop(painter, None)
        self._awaited.discard(painter)

    def close(self) -> None:
        self._due.clear()
        self._awaited.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if not self._due:
            return
        due = min(self._due.values())
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._tick, context=self._context)

    def _tick(self) -> None:
        self._timer = None
        now = self._loop.time()
        # Panes that are due soon are included, since a single write for many panes is much cheaper.
        horizon = now + self._interval / 4
        painted: list[str] = []
        spent = 0.0
        ready = [painter for painter, due in self._due.items() if due <= horizon]
        for painter in sorted(ready, key=self._rank):
            if spent >= SLICE:
                break
            awaited = painter in self._awaited
            held = painter.held_until(now)
            if held > now:
                self._due[painter] = held
                continue
            del self._due[painter]
            self._awaited.discard(painter)
            before = self._cpu()
            painted.append(_frame_of(painter))
            cost = self._cpu() - before
            painter.charge(cost)
            # Limit the frame rate of panes that are expensive to draw, so that keys are handled in time.
            self._last[painter] = now + max(0.0, min(cost * COST_FACTOR, LONGEST_INTERVAL) - self._interval)
            spent += SLICE if awaited else cost
        output = "".join(painted)
        if output:
            self._write(output)
        self._arm()

    def _rank(self, painter: Painter) -> tuple[bool, float]:
        return painter not in self._awaited, self._due[painter]


def _frame_of(painter: Painter) -> str:
    try:
        return painter.paint_frame()
    except Exception:
        # A failing pane must not stop the clock for the others.
        log.exception("pane cannot be painted")
        return ""


HIDDEN = -1
DEFAULT_SHAPE = 0  # DECSCUSR 0: the user's default shape on the outer terminal


class DimScreen(BackgroundScreen):
    """What lies below a dialog, dim."""

    @classmethod
    def of(cls, screen: BackgroundScreen) -> DimScreen:
        return cls(screen.screen, screen.color)

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        for text, style, control in super().process_segments(segments, color):
            yield Segment(text, style + _DIM if style is not None else _DIM, control)


_DIM = Style(dim=True)
_SYNC_START, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_ATTRIBUTE = "_pane_output"


@dataclass(frozen=True, slots=True)
class Placement:
    region: Region
    clear: bool  # whether the region is fully visible and not covered


class PaneOutput:
    """Clock, cursor and output shared by all panes of an app."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._driver: Driver | None = None
        self._terminal: object = None
        self._placements: WeakKeyDictionary[Widget, tuple[object, Placement | None]] = WeakKeyDictionary()
        self._cursor_owner: object | None = None
        self._cursor_shape = HIDDEN  # Textual hides the outer cursor at startup and never shows it
        self.clock = FrameClock(self.paint)
        self.direct = True  # whether panes may write to the driver at all

    @classmethod
    def of(cls, app: App[Any]) -> PaneOutput:
        output = app.__dict__.get(_ATTRIBUTE)
        if not isinstance(output, cls):
            output = app.__dict__[_ATTRIBUTE] = cls(app)
        return output

    def begin(self) -> None:
        """Reset the cursor state if a different outer terminal has been attached."""
        self._driver = driver = self._app._driver
        terminal = driver.link if isinstance(driver, SynapseDriver) else driver
        if terminal is not self._terminal:
            self._terminal = terminal
            self._cursor_shape = HIDDEN

    @property
    def live(self) -> bool:
        app = self._app
        return app._running and not app._closed and not app.is_headless and app._driver is not None

    def placement(self, widget: Widget) -> Placement | None:
        """Return where a widget is on the active screen, or None if it is not visible."""
        if not widget.is_attached or not self._app.screen_stack:
            return None
        screen = self._app.screen
        if widget.screen is not screen:
            if widget.screen not in self._app._background_screens:
                return None
            found = widget.screen._compositor.visible_widgets.get(widget)
            return Placement(found[0], clear=False) if found is not None else None
        visible = screen._compositor.visible_widgets
        known = self._placements.get(widget)
        if known is not None and known[0] is visible:
            return known[1]
        placement = _place(widget, visible)
        self._placements[widget] = (visible, placement)
        return placement

    def may_paint(self, placement: Placement) -> bool:
        """Whether a pane at this placement may write its rows itself."""
        screen = self._app.screen
        return (
            self.direct and placement.clear and self.live and not self._app._batch_count and _settled(screen)
        )

    @property
    def dropping(self) -> bool:
        """Whether the outer terminal is not reading; everything is repainted once it does."""
        return isinstance(self._driver, SynapseDriver) and self._driver.dropping

    def paint(self, output: str) -> None:
        """Write the output of panes as one frame and restore the cursor position."""
        if not self.live:
            return
        x, y = self._app.screen.outer_size.clamp_offset(self._app.cursor_position)
        place = f"\x1b[{y + 1};{x + 1}H"
        if self._app._sync_available:
            output = f"{_SYNC_START}{output}{place}{_SYNC_END}"
        elif self._cursor_shape != HIDDEN:
            output = f"{_HIDE}{output}{place}{_SHOW}"
        else:
            output += place
        self._write_now(output)

    @property
    def cell_pixels(self) -> tuple[int, int] | None:
        """Cell size (width, height) of the outer terminal in pixels; None if it is unknown."""
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
        if isinstance(self._driver, SynapseDriver) and self.live:
            self._driver.request_keyboard(kitty_flags)

    def lend_cursor(self, owner: object, shape: int) -> None:
        """Give the outer cursor to a pane, hidden or with a DECSCUSR shape (0 to 6; VT520, xterm ctlseqs)."""
        self._cursor_owner = owner
        self._show_cursor(shape)

    def take_cursor_back(self, owner: object) -> None:
        """Hide the outer cursor, unless another pane owns it."""
        if self._cursor_owner is owner:
            self._cursor_owner = None
            self._show_cursor(HIDDEN)

    def _show_cursor(self, shape: int) -> None:
        if shape != self._cursor_shape:
            self._cursor_shape = shape
            self._write_now(_HIDE if shape == HIDDEN else f"\x1b[{shape} q{_SHOW}")


def _place(widget: Widget, visible: dict[Widget, tuple[Region, Region]]) -> Placement | None:
    found = visible.get(widget)
    if found is None:
        return None
    region, clip = found
    clear = clip.contains_region(region)
    for other, (other_region, other_clip) in visible.items():  # from front to back
        if other is widget or not clear:
            break
        clear = not other_region.intersection(other_clip).overlaps(region)
    return Placement(region, clear)


def _settled(screen: Screen[object]) -> bool:
    return not (screen._layout_required or screen._scroll_required)


class RowPainter:
    def __init__(
        self,
        widget: Widget,
        line: Callable[[int], Line | None],
        spans: Callable[[int], Sequence[Span]],
        make_pens: Callable[[], Pens],
    ) -> None:
        self.inverted = False  # whether reverse video is on (DECSCNM)
        self._pens: Pens | None = None
        self._make_pens = make_pens
        self._widget = widget
        self._line = line
        self._spans = spans
        self._strips: dict[int, TerminalStrip] = {}
        self._written: dict[int, str] = {}
        self._column = 0

    def drop(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._strips.pop(row, None)

    def clear(self) -> None:
        self._strips.clear()
        self._written.clear()

    def forget_colors(self) -> None:
        self._pens = None
        self.clear()

    def strip(self, row: int) -> TerminalStrip:
        return self._strip(row, self._widget.size.width)

    def strips(self, crop: Region) -> list[Strip]:
        width = self._widget.size.width
        self._settle(self._widget.region.x)
        for row in crop.line_range:  # Textual writes them, perhaps with an overlay over them
            self._written.pop(row, None)
        return [self._strip(row, width).crop(crop.x, crop.right) for row in crop.line_range]

    def draw(self, rows: Iterable[int], placement: Placement) -> str:
        region = placement.region
        self._settle(region.x)
        out: list[str] = []
        for row in sorted(rows):
            if not 0 <= row < region.height:
                continue
            drawn = draw(self._pieces(row, region.width), region.x)
            if self._written.get(row) != drawn:
                self._written[row] = drawn
                out.append(f"\x1b[{region.y + row + 1};{region.x + 1}H{drawn}")
        return "".join(out)

    def scroll(self, scroll: Scroll, placement: Placement) -> str:
        """Return the sequence that scrolls rows on the outer terminal; empty if it cannot be done.

        Only a pane as wide as the outer terminal can scroll, since scrolling moves entire rows.
        """
        region, rows = placement.region, range(scroll.top, scroll.bottom + 1)
        alone = region.x == 0 and region.width == self._widget.screen.outer_size.width
        if not alone or scroll.bottom >= region.height or any(row not in self._written for row in rows):
            return ""
        moved = {row: self._written[row + scroll.lines] for row in rows if row + scroll.lines in rows}
        for row in rows:
            del self._written[row]
        self._written |= moved
        # DL and IL at the top of the margins (VT102) are supported by all terminals, SU is not.
        action = f"{scroll.lines}M" if scroll.lines > 0 else f"{-scroll.lines}L"
        top, bottom = region.y + scroll.top + 1, region.y + scroll.bottom + 1
        return f"\x1b[0m\x1b[{top};{bottom}r\x1b[{top};1H\x1b[{action}\x1b[r"

    def _strip(self, row: int, width: int) -> TerminalStrip:
        strip = self._strips.get(row)
        if strip is None or strip.cell_length != width:
            strip = TerminalStrip(self._pieces(row, width), width, self._column)
            self._strips[row] = strip
        return strip

    def _pieces(self, row: int, width: int) -> list[StripPiece]:
        if self._pens is None:
            self._pens = self._make_pens()
        self._pens.invert(self.inverted)
        return build_pieces(self._line(row), width, self._pens, self._spans(row))

    def refresh(self, rows: Iterable[int]) -> None:
        width, height = self._widget.size
        regions: list[Region] = []
        for row in sorted(rows):
            if not 0 <= row < height:
                continue
            if regions and regions[-1].bottom == row:
                regions[-1] = Region(0, regions[-1].y, width, regions[-1].height + 1)
            else:
                regions.append(Region(0, row, width, 1))
        if regions:
            self._widget.refresh(*regions)

    def _settle(self, column: int) -> None:
        if column != self._column:
            self._column = column
            self.clear()
