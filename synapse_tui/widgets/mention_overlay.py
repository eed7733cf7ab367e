"""The overlay over a pane while `@agent message` is typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.geometry import Offset, Size
from textual.message import Message
from textual.widget import Widget

from synapse_tui.mention import MentionView

from .mention_picture import MentionPicture, draw_mention, place_mention, room_for_mention


class MentionOverlay(Widget, can_focus=False):
    """Shows what is held of a mention, at the line of the pane's cursor; the pane keeps the focus."""

    DEFAULT_CSS = """
    MentionOverlay {
        position: absolute; display: none; width: 12; height: 3; overflow: hidden;
        background: $dialog; color: $ink; text-wrap: nowrap;
    }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    @dataclass
    class Chosen(Message):
        """A completion was clicked."""

        index: int

    def __init__(self) -> None:
        super().__init__()
        self.picture: MentionPicture | None = None
        self.stale = False
        """Whether the pane has another size since it was painted: nobody can be sure to have read it."""
        self._view: MentionView | None = None
        self._above: bool | None = None
        self._place = Offset(0, 0)

    @property
    def cursor(self) -> Offset | None:
        """Cell of the pane where the cursor stands in what is typed; None while the overlay is hidden."""
        return self._place + self.picture.cursor if self.picture is not None else None

    def show(self, view: MentionView | None, pane: Size, anchor: Offset) -> None:
        """Show what is held, or hide.

        Args:
            view: What to show; None to hide.
            pane: Size of the pane.
            anchor: Cell of the child's cursor.
        """
        self._view = view
        if view is None:
            self.stale = False
        if view is None or not pane:
            self.picture = self._above = None
            self.display = False
            return
        self.picture = draw_mention(view, pane.width, room_for_mention(pane, anchor))
        width, height = self.picture.size
        row, self._above = place_mention(pane, anchor, height, above=self._above)
        self._place = Offset(max(0, min(anchor.x - 2, pane.width - width)), row)
        self.styles.width, self.styles.height = width, height
        self.styles.offset = (self._place.x, self._place.y)
        self.display = True
        self.refresh()

    def place_again(self, pane: Size, anchor: Offset) -> None:
        """Show the same in a pane that has another size; it is stale until that is painted.

        Args:
            pane: Size of the pane.
            anchor: Cell of the child's cursor.
        """
        if self._view is not None:
            self.stale = True
            self._above = None
            self.show(self._view, pane, anchor)

    def render(self) -> Content:
        """Return the picture."""
        self.stale = False
        return Content("\n").join(self.picture.lines) if self.picture is not None else Content("")

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Choose the completion that was clicked."""
        event.stop()
        index = self.picture.choices.get(event.y) if self.picture is not None else None
        if index is not None:
            self.post_message(self.Chosen(index))
