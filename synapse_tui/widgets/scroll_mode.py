"""Scroll mode: scrolling back, searching and copying with the keys of less, vi and tmux."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from synapse_tui.system.language import tr
from synapse_tui.terminal.render import cells

from .fit import Hint
from .viewport import Point, Viewport, logical_rows, text_between, wide_end, wide_start, word_at


class Match(NamedTuple):
    """A search result, at columns `start` to `end` (exclusive)."""

    line: int  # number of the line in which it starts
    start: int
    end: int


class LineSearch:
    """Searches scrollback and screen; case-sensitive only if the needle has capitals."""

    def __init__(self, viewport: Viewport, needle: str) -> None:
        self._viewport = viewport
        self.needle = needle
        self._pattern = re.compile(re.escape(needle), re.IGNORECASE if needle == needle.lower() else 0)
        self.current: Match | None = None
        self.matches: list[Match] = []
        self.refresh()

    @property
    def position(self) -> int:
        """Number of the current match, from 1 for the oldest; 0 if there is none."""
        return self.matches.index(self.current) + 1 if self.current in self.matches else 0

    def refresh(self) -> None:
        viewport = self._viewport
        scrollback = viewport.terminal.scrollback
        # A logical line that starts in the scrollback and ends on the screen is searched as a whole.
        live = logical_rows(viewport, viewport.first + len(scrollback))[0]
        found = (
            Match(viewport.first + row, start, end) for row, start, end in scrollback.search(self._pattern)
        )
        self.matches = [match for match in found if match.line < live]
        while live <= viewport.last:
            rows = logical_rows(viewport, live)
            self.matches += self._find(rows)
            live = rows[-1] + 1

    def columns(self, number: int) -> list[tuple[int, int, bool]]:
        """Return the matches in a line as (first column, column after the last, whether it is current)."""
        width = self._viewport.terminal.columns
        places: list[tuple[int, int, bool]] = []
        for match in self._find(logical_rows(self._viewport, number)):
            shift = (match.line - number) * width
            start, end = max(0, match.start + shift), min(width, match.end + shift)
            if start < end:
                here = self.current is not None and match[:2] == self.current[:2]
                places.append((start, end, here))
        return places

    def go(self, point: Point, *, older: bool, stay: bool = False) -> Match | None:
        """Select the next match from a point, wrapping around; `stay` accepts one at the point."""
        if not self.matches:
            self.current = None
            return None
        index = bisect_left(self.matches, Match(point.line, point.column, 0))
        here = index < len(self.matches) and self.matches[index][:2] == point
        if here and stay:
            step = 0
        elif older:
            step = -1
        else:
            step = 1 if here else 0
        self.current = self.matches[(index + step) % len(self.matches)]
        return self.current

    def _find(self, rows: range) -> Iterator[Match]:
        width = self._viewport.terminal.columns
        text: list[str] = []
        for number in rows:
            line = self._viewport.line(number)
            part = cells(line) if line is not None else []
            text += part + [" "] * (width - len(part))
        starts = [index for index, cell in enumerate(text) for _ in cell]
        starts.append(len(text))
        for match in self._pattern.finditer("".join(text)):
            first, last = starts[match.start()], starts[match.end()]
            row, column = divmod(first, width)
            yield Match(rows[0] + row, column, last - row * width)


class Unit(StrEnum):
    CELL = "cell"
    WORD = "word"
    LINE = "line"


class Selection:
    """A range of cells from the anchor to the pointer."""

    def __init__(self, viewport: Viewport, anchor: Point, unit: Unit = Unit.CELL) -> None:
        self._viewport = viewport
        self._unit = unit
        self._anchor = self._around(anchor)
        self.start, self.end = self._anchor  # first cell, and the cell after the last
        if unit is Unit.CELL:
            self.end = self.start
        self._look()

    @property
    def text(self) -> str:
        return text_between(self._viewport, self.start, self.end) if self else ""

    def __bool__(self) -> bool:
        return self.start < self.end

    def extend(self, point: Point) -> None:
        first, last = self._around(point)
        self.start = min(first, self._anchor[0])
        self.end = max(last, self._anchor[1])
        self._look()

    def columns(self, number: int, width: int) -> tuple[int, int] | None:
        """Return the first selected column of a line and the column after the last, or None."""
        if not self or not self.start.line <= number <= self.end.line:
            return None
        first = self.start.column if number == self.start.line else 0
        last = self.end.column if number == self.end.line else width
        return (first, last) if first < last else None

    def changed(self) -> bool:
        """Whether output has changed the selected text since it was selected."""
        return self._live_text() != self._seen

    def _look(self) -> None:
        self._live = self._viewport.last - self._viewport.terminal.lines + 1
        self._seen = self._live_text()

    def _live_text(self) -> str:
        start = max(self.start, Point(self._live, 0))
        return text_between(self._viewport, start, self.end) if start < self.end else ""

    def _around(self, point: Point) -> tuple[Point, Point]:
        line = self._viewport.line(point.line)
        if line is None:
            return point, point
        if self._unit is Unit.WORD:
            return word_at(self._viewport, Point(point.line, wide_start(line, point.column)))
        if self._unit is Unit.LINE:
            rows = logical_rows(self._viewport, point.line)
            return Point(rows[0], 0), Point(rows[-1], self._viewport.terminal.columns)
        first = Point(point.line, wide_start(line, point.column))
        return first, Point(point.line, wide_end(line, point.column))


class ScrollOutcome(Enum):
    STAY = auto()
    LEAVE = auto()
    COPY = auto()  # copy the selection, then leave


class ScrollMode:
    def __init__(self, viewport: Viewport, pointer: Point) -> None:
        self._viewport = viewport
        self.pointer = pointer
        self.selection: Selection | None = None
        self.search: LineSearch | None = None
        # the search text being typed; None while none is
        self.prompt: str | None = None
        self._origin = pointer
        self._motions: dict[str, Callable[[], None]] = {
            **dict.fromkeys(("up", "k"), lambda: self._move(-1)),
            **dict.fromkeys(("down", "j"), lambda: self._move(1)),
            **dict.fromkeys(("left", "h"), lambda: self._step(-1)),
            **dict.fromkeys(("right", "l"), lambda: self._step(1)),
            **dict.fromkeys(("pageup", "ctrl+b", "b"), lambda: self._page(1.0)),
            **dict.fromkeys(("pagedown", "ctrl+f", "space", " ", "f"), lambda: self._page(-1.0)),
            **dict.fromkeys(("ctrl+u", "u"), lambda: self._page(0.5)),
            **dict.fromkeys(("ctrl+d", "d"), lambda: self._page(-0.5)),
            **dict.fromkeys(("home", "g"), lambda: self._go(Point(self._viewport.first, 0))),
            **dict.fromkeys(("end", "G"), lambda: self._go(Point(self._viewport.last, 0))),
            **dict.fromkeys(("0", "^"), lambda: self._go(Point(self.pointer.line, 0))),
            "$": lambda: self._go(Point(self.pointer.line, self._last_column())),
            "n": lambda: self._next(older=True),
            "N": lambda: self._next(older=False),
        }

    @property
    def status(self) -> str:
        words = [tr(f"scroll {self._viewport.offset}/{len(self._viewport.terminal.scrollback)}")]
        if self.selection is not None:
            words.append(tr("select"))
        if self.prompt is not None:
            words.append(f"/{self.prompt}▏{self._count()}")
        elif self.search is not None:
            words.append(f"/{self.search.needle} {self._count()}")
        return " · ".join(words)

    @property
    def hints(self) -> Sequence[Hint]:
        """Its most useful keys at the moment; the target of each is the key that a click presses."""
        matches = self.search.matches if self.search is not None else ()
        if self.prompt is not None:
            enter = (Hint("Enter", "to the match", "enter"),) if self.prompt and matches else ()
            return (*enter, Hint("Esc", "cancel", "escape"))
        if self.selection is not None:
            return (Hint("Enter", "copy", "enter"), Hint("Esc", "cancel", "escape"), Hint("↑↓←→", "extend"))
        found = (Hint("n N", "next match", "n"),) if matches else ()
        ways = (Hint("↑↓ PgUp", "scroll", "pageup"), Hint("/", "find", "/"), *found, Hint("v", "select", "v"))
        return (Hint("Esc", "done", "escape"), *ways)

    def press(self, key: str, text: str) -> ScrollOutcome:
        if self.prompt is not None:
            self._type(key, text)
            return ScrollOutcome.STAY
        motion = self._motions.get(text) or self._motions.get(key)
        if motion is not None:
            motion()
            return ScrollOutcome.STAY
        return self._command(key, text)

    def scroll(self, lines: int) -> None:
        """Scroll by the wheel, back if positive; the pointer stays in view."""
        self._viewport.scroll_to(self._viewport.offset + lines)
        top = self._viewport.top
        line = min(max(self.pointer.line, top), top + self._viewport.height - 1)
        self._place(self.pointer._replace(line=line))

    def rewrapped(self) -> None:
        """Point at the top row of the view, after lines were rewrapped."""
        self.selection = None
        if self.search is not None:
            self.search.refresh()
        self._origin = Point(self._viewport.top, 0)
        self._place(self._origin)

    def point_at(self, point: Point) -> None:
        self.selection = None
        self._place(point)

    def _command(self, key: str, text: str) -> ScrollOutcome:
        if key == "escape" and self.selection is not None:
            self.selection = None
        elif key in ("escape", "ctrl+c") or text == "q":
            return ScrollOutcome.LEAVE
        elif key == "enter" or text == "y":
            return ScrollOutcome.COPY if self.selection else ScrollOutcome.LEAVE
        elif text in ("v", "V"):
            self._toggle_selection(Unit.LINE if text == "V" else Unit.CELL)
        elif text == "/":
            self.prompt = ""
            self._origin = self.pointer
        return ScrollOutcome.STAY

    def _toggle_selection(self, unit: Unit) -> None:
        if self.selection is not None:
            self.selection = None
            return
        self.selection = Selection(self._viewport, self.pointer, unit)
        self.selection.extend(self.pointer)

    def _type(self, key: str, text: str) -> None:
        prompt = self.prompt or ""
        if key == "enter":
            self.prompt = None
            if not prompt:
                self.search = None
            return
        if key in ("escape", "ctrl+c") or (key == "backspace" and not prompt):
            self.prompt = self.search = None
            self._go(self._origin)
            return
        if key == "backspace":
            prompt = prompt[:-1]
        elif key == "ctrl+u":
            prompt = ""
        else:
            prompt += text
        if prompt != self.prompt:
            self._find(prompt)

    def _find(self, needle: str) -> None:
        self.prompt = needle
        self.search = LineSearch(self._viewport, needle) if needle else None
        match = self.search.go(self._origin, older=True, stay=True) if self.search else None
        self._go(Point(match.line, match.start) if match else self._origin)

    def _next(self, *, older: bool) -> None:
        if self.search is None:
            return
        self.search.refresh()
        match = self.search.go(self.pointer, older=older)
        if match is not None:
            self._go(Point(match.line, match.start))

    def _count(self) -> str:
        if self.search is None:
            return ""
        return f"{self.search.position}/{len(self.search.matches)}" if self.search.matches else tr("none")

    def _move(self, lines: int) -> None:
        self._go(self.pointer._replace(line=self.pointer.line + lines))

    def _step(self, direction: int) -> None:
        line = self._viewport.line(self.pointer.line)
        if line is None:
            return
        column = self.pointer.column - 1 if direction < 0 else wide_end(line, self.pointer.column)
        self._go(self.pointer._replace(column=column))

    def _page(self, share: float) -> None:
        """Scroll by a share of the view, back if positive; the pointer moves even if nothing can scroll."""
        lines = (
            max(1, int((self._viewport.height - 1) * share))
            if share > 0
            else -max(1, int((self._viewport.height - 1) * -share))
        )
        before = self._viewport.offset
        self._viewport.scroll_to(before + lines)
        moved = self._viewport.offset - before
        self._go(self.pointer._replace(line=self.pointer.line - (moved or lines)))

    def _last_column(self) -> int:
        line = self._viewport.line(self.pointer.line)
        filled = (
            [column for column, text in enumerate(cells(line)) if text.strip()] if line is not None else []
        )
        return filled[-1] if filled else 0

    def _go(self, point: Point) -> None:
        self._place(point)
        self._viewport.scroll_into_view(self.pointer.line)

    def _place(self, point: Point) -> None:
        number = min(max(point.line, self._viewport.first), self._viewport.last)
        column = min(max(point.column, 0), self._viewport.terminal.columns - 1)
        line = self._viewport.line(number)
        self.pointer = Point(number, wide_start(line, column) if line is not None else column)
        if self.selection is not None:
            self.selection.extend(self.pointer)
