"""What changed on a screen since a reader last looked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synapse_tui.system.dataclass import dataclass

from .row import Row

if TYPE_CHECKING:
    from .grid import Grid


@dataclass(frozen=True, slots=True)
class Scroll:
    top: int  # First row of the region
    bottom: int  # Last row
    lines: int  # Rows moved up; negative for down
    rows: frozenset[int]  # Rows to paint after scrolling the region


@dataclass(frozen=True, slots=True)
class Damage:
    """What to repaint; falsy if there is nothing."""

    rows: frozenset[int] = frozenset()  # All rows with changed cells, from 0
    full: bool = False  # The whole screen changed (screen switched, resized, colours reversed)
    cursor: bool = False  # The cursor moved or changed its shape
    # A cheaper alternative: scroll, then paint only `scroll.rows`
    scroll: Scroll | None = None

    def __bool__(self) -> bool:
        return self.full or self.cursor or bool(self.rows)


NO_DAMAGE = Damage()


_Cursor = tuple[int, int, bool, int]


class DamageTracker:
    """Tracks the changes since the last call of `take`; scrolled rows keep their identity."""

    def __init__(self, screen: Grid, *, scrolls: bool = True) -> None:
        self._screen = screen
        self._scrolls = scrolls
        self._seen: list[Row] = []
        self._tick = 0
        self._cursor: _Cursor = (-1, -1, True, 0)

    def take(self) -> Damage:
        screen = self._screen
        rows, since, seen = screen.rows, self._tick, self._seen
        cursor = (screen.column, screen.y, screen.modes.cursor_visible, screen.cursor_shape)
        moved = cursor != self._cursor
        full = screen.all_changed > since or len(rows) != len(seen)
        if not full:
            changed = [
                y
                for y, (row, before) in enumerate(zip(rows, seen, strict=True))
                if row is not before or row.stamp > since
            ]
            if not changed and not moved:
                return NO_DAMAGE
            scroll = self._scroll(changed) if self._scrolls and len(changed) > 1 else None
        else:
            changed, scroll = list(range(len(rows))), None
        self._tick = screen.tick
        screen.tick += 1
        self._cursor = cursor
        self._seen = rows[:]
        return Damage(frozenset(changed), full, moved, scroll)

    def _scroll(self, changed: list[int]) -> Scroll | None:
        rows, seen, since = self._screen.rows, self._seen, self._tick
        top, bottom = changed[0], changed[-1]
        places = {id(row): y for y, row in enumerate(seen)}
        shifts: dict[int, int] = {}
        for y in changed:
            before = places.get(id(rows[y]))
            if before is not None and before != y:
                shifts[before - y] = shifts.get(before - y, 0) + 1
        if not shifts:
            return None
        lines = max(shifts, key=lambda shift: shifts[shift])
        kept = {
            y
            for y in range(top, bottom + 1)
            if top <= y + lines <= bottom and rows[y] is seen[y + lines] and rows[y].stamp <= since
        }
        if not kept:
            return None
        return Scroll(top, bottom, lines, frozenset(range(top, bottom + 1)) - kept)
