"""What changed on a screen since somebody last looked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scroll:
    """Rows that moved as a whole.

    Attributes:
        top: First row of the region that moved.
        bottom: Its last row.
        lines: By how many rows it moved up; negative when it moved down.
        rows: The rows that are still to be painted once the region has been scrolled.
    """

    top: int
    bottom: int
    lines: int
    rows: frozenset[int]


@dataclass(frozen=True, slots=True)
class Damage:
    """What has to be painted again; truthy when anything has.

    Attributes:
        rows: Every row whose cells differ from before, 0 at the top.
        full: All of the screen changed at once (another screen, another size, reversed colours).
        cursor: The cursor moved or changed its looks.
        scroll: A shorter way to the same picture: scroll, then paint only `scroll.rows`. None when there is
            none.
    """

    rows: frozenset[int] = frozenset()
    full: bool = False
    cursor: bool = False
    scroll: Scroll | None = None

    def __bool__(self) -> bool:
        return self.full or self.cursor or bool(self.rows)


NO_DAMAGE = Damage()
