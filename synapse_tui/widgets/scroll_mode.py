"""Scroll mode: reading back, searching and copying with the keys of less, vi and tmux."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from synapse_tui.terminal.render import cells

from .line_search import LineSearch
from .line_text import Point, wide_end, wide_start
from .selection import Selection, Unit
from .viewport import Viewport


class Outcome(Enum):
    """What a key has led to."""

    STAY = auto()
    LEAVE = auto()
    COPY = auto()
    """Copy the selection, then leave."""


class ScrollMode:
    """The state of a pane in scroll mode.

    Args:
        viewport: The lines; the mode scrolls it.
        pointer: Where to begin.
    """

    def __init__(self, viewport: Viewport, pointer: Point) -> None:
        self._viewport = viewport
        self.pointer = pointer
        self.selection: Selection | None = None
        self.search: LineSearch | None = None
        self.prompt: str | None = None
        """What has been typed of a search so far; None while none is being typed."""
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
        """A few words for the pane's bar: how far back, what is sought, how often it was found."""
        words = [f"scroll {self._viewport.offset}/{len(self._viewport.terminal.scrollback)}"]
        if self.selection is not None:
            words.append("select")
        if self.prompt is not None:
            words.append(f"/{self.prompt}▏{self._count()}")
        elif self.search is not None:
            words.append(f"/{self.search.needle} {self._count()}")
        return " · ".join(words)

    def press(self, key: str, text: str) -> Outcome:
        """Act on a key.

        Args:
            key: Its name, with `ctrl+` and `alt+` before it.
            text: What it types; empty for nothing.
        """
        if self.prompt is not None:
            self._type(key, text)
            return Outcome.STAY
        motion = self._motions.get(text) or self._motions.get(key)
        if motion is not None:
            motion()
            return Outcome.STAY
        return self._command(key, text)

    def scroll(self, lines: int) -> None:
        """Scroll by the wheel: positive is back; the pointer stays in view."""
        self._viewport.scroll_to(self._viewport.offset + lines)
        top = self._viewport.top
        line = min(max(self.pointer.line, top), top + self._viewport.height - 1)
        self._place(self.pointer._replace(line=line))

    def point_at(self, point: Point) -> None:
        """Put the pointer where the mouse was pressed; ends a selection."""
        self.selection = None
        self._place(point)

    def _command(self, key: str, text: str) -> Outcome:
        if key == "escape" and self.selection is not None:
            self.selection = None
        elif key in ("escape", "ctrl+c") or text == "q":
            return Outcome.LEAVE
        elif key == "enter" or text == "y":
            return Outcome.COPY if self.selection else Outcome.LEAVE
        elif text in ("v", "V"):
            self._toggle_selection(Unit.LINE if text == "V" else Unit.CELL)
        elif text == "/":
            self.prompt = ""
            self._origin = self.pointer
        return Outcome.STAY

    def _toggle_selection(self, unit: Unit) -> None:
        if self.selection is not None:
            self.selection = None
            return
        self.selection = Selection(self._viewport, self.pointer, unit)
        self.selection.extend(self.pointer)

    def _type(self, key: str, text: str) -> None:
        """Take a key of the search that is being typed."""
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
        return f"{self.search.position}/{len(self.search.matches)}" if self.search.matches else "none"

    def _move(self, lines: int) -> None:
        self._go(self.pointer._replace(line=self.pointer.line + lines))

    def _step(self, direction: int) -> None:
        line = self._viewport.line(self.pointer.line)
        if line is None:
            return
        column = self.pointer.column - 1 if direction < 0 else wide_end(line, self.pointer.column)
        self._go(self.pointer._replace(column=column))

    def _page(self, share: float) -> None:
        """Scroll by a share of the view, positive is back; the pointer moves even when nothing can scroll."""
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
