"""The conversation with an external agent, line by line: scrolls, follows what is said, copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .sturdy import Sturdy
from .talk_picture import Known, Line, TalkPicture, lines_of

PAGE = 0.8
"""How much of the height a page goes."""


class TalkLog(Sturdy, ScrollView, can_focus=False):
    """Shows what was said; it stays at the end while it is there.

    Args:
        now: The time now, aware.
    """

    DEFAULT_CSS = """
    TalkLog {
        height: 1fr; width: 1fr; background: $dialog; color: $ink;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden;
        & > .talk--blank { color: $ink; }
        & > .talk--text { color: $ink; }
        & > .talk--head { color: $agent-3; text-style: bold; }
        & > .talk--own-head { color: $hot; text-style: bold; }
        & > .talk--own { color: $ink; background: $raised; }
        & > .talk--progress { color: $ink-faint; text-style: italic; }
        & > .talk--question { color: $state-waiting; text-style: bold; }
        & > .talk--alert { color: $alert; text-style: bold; }
        & > .talk--note { color: $ink-faint; }
        & > .talk--marked { background: $focus; color: $focus-ink; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "talk--blank",
        "talk--text",
        "talk--head",
        "talk--own-head",
        "talk--own",
        "talk--progress",
        "talk--question",
        "talk--alert",
        "talk--note",
        "talk--marked",
    }
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Copied(Message):
        """Text was copied."""

        text: str

    picture: var[TalkPicture | None] = var(None)
    marked: var[str] = var("")
    """Key of the entry that is chosen; empty for none."""

    def __init__(self, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self.now = now
        self._lines: list[Line] = []
        self._made: TalkPicture | None = None
        """What the lines were made of."""
        self._keys: list[str] = []
        self._known: Known = {}
        self._styles: dict[str, Style] = {}
        self._follows = True
        """Whether the view goes along with what is new."""

    # What is shown

    def watch_picture(self) -> None:
        """Make new lines; the view stays at the end if it was there."""
        self._make()
        self.refresh()

    def on_resize(self) -> None:
        """Lines depend on the width."""
        self._make()

    def notify_style_update(self) -> None:
        """The theme may have other colours."""
        super().notify_style_update()
        self._styles = {}

    @property
    def at_end(self) -> bool:
        """Whether the newest is in view."""
        return self.scroll_offset.y >= self.max_scroll_y

    def _make(self) -> None:
        if self.picture is None or not self.is_mounted or self.size.width < 2:
            return
        width = self.scrollable_content_region.width
        if len(self._known) > 2 * len(self.picture.entries) + 10:
            self._known.clear()
        self._lines = lines_of(self.picture, width, self.now(), self._known)
        self._made = self.picture
        self._keys = [entry.key for entry in self.picture.entries]
        if self.marked and self.marked not in self._keys:
            self.marked = ""
        self.virtual_size = Size(width, len(self._lines))
        if self._follows:
            self.call_after_refresh(self._to_end)
        self.refresh()

    def _to_end(self) -> None:
        if self._follows:
            self.scroll_end(animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stay where the person went back to, and at the end once that is reached again."""
        super().watch_scroll_y(old_value, new_value)
        # What is new moves the end away before the view follows: only going back means that it should not.
        self._follows = self.at_end or (self._follows and new_value >= old_value)

    def render_line(self, y: int) -> Strip:
        """One line of the view."""
        width = self.size.width
        blank = self._style("blank")
        place = y + self.scroll_offset.y
        if self._made is not self.picture:  # it came while this had no size, and none has come since
            self.call_later(self._make)
        if self.picture is not None and not self._lines:
            return self._hint(y, width)
        if not 0 <= place < len(self._lines):
            return Strip.blank(width, blank)
        line = self._lines[place]
        marked = bool(line.key) and line.key == self.marked
        edge = Segment("▌" if marked else " ", self._style("own-head") if marked else blank)
        indent = max(0, line.indent - 1)
        pieces = [Segment(piece.text, self._piece_style(piece.role, marked=marked)) for piece in line.pieces]
        segments = [edge, Segment(" " * indent, blank), *pieces]
        return Strip(segments).adjust_cell_length(width, blank)

    def _hint(self, y: int, width: int) -> Strip:
        """What stands in an empty conversation."""
        assert self.picture is not None
        lines = [
            f"{self.picture.name} ({self.picture.protocol})",
            "",
            "What it says is shown here. It is an agent elsewhere: nothing of it is trusted.",
            "Write below; in any pane, @" + self.picture.alias + " and a message do the same.",
        ]
        at = y - max(0, (self.size.height - len(lines)) // 2)
        text = lines[at] if 0 <= at < len(lines) else ""
        style = self._style("head" if at == 0 else "note")
        return Strip([Segment(text.center(width)[:width], style)]).adjust_cell_length(width, style)

    def _piece_style(self, role: str, *, marked: bool) -> Style:
        return self._style(role) + self._style("marked") if marked else self._style(role)

    def _style(self, role: str) -> Style:
        found = self._styles.get(role)
        if found is None:
            found = self._styles[role] = self.get_component_rich_style(f"talk--{role}")
        return found

    # What is chosen

    def watch_marked(self) -> None:
        """Draw anew, and bring the chosen entry into view."""
        self.refresh()
        places = [at for at, line in enumerate(self._lines) if line.key == self.marked]
        if self.marked and places:
            top, height = self.scroll_offset.y, self.size.height
            if places[0] < top:
                self.scroll_to(y=places[0], animate=False)
            elif places[-1] >= top + height:
                self.scroll_to(y=min(places[0], places[-1] - height + 1), animate=False)

    def choose(self, by: int) -> None:
        """Choose another entry; the last one when none is chosen."""
        if not self._keys:
            return
        if self.marked not in self._keys:
            self.marked = self._keys[-1]
            return
        place = self._keys.index(self.marked) + by
        self.marked = self._keys[min(max(place, 0), len(self._keys) - 1)]

    def choose_end(self, *, first: bool) -> None:
        """Choose the first entry or the last."""
        if self._keys:
            self.marked = self._keys[0 if first else -1]

    def leave(self) -> None:
        """Choose none, and return to the newest."""
        self.marked = ""
        self.scroll_end(animate=False)

    def copy(self, key: str) -> None:
        """Copy an entry whole; without a key the last thing that the agent said."""
        if self.picture is None:
            return
        entries = self.picture.entries
        found = next((each for each in entries if each.key == key), None)
        if found is None:
            found = next((each for each in reversed(entries) if each.kind not in ("sent", "note")), None)
        if found is not None:
            self.app.copy_to_clipboard(found.text)
            self.post_message(self.Copied(found.text))

    def page(self, by: int) -> None:
        """Scroll by pages."""
        rows = max(1, int(self.size.height * PAGE))
        self.scroll_to(y=self.scroll_offset.y + by * rows, animate=False)

    def on_click(self, event: events.Click) -> None:
        """A double click copies what was said there."""
        place = event.y + self.scroll_offset.y
        if event.chain == 2 and 0 <= place < len(self._lines) and self._lines[place].key:
            event.stop()
            self.copy(self._lines[place].key)
