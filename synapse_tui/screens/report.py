"""A text to read: problems of profiles, why an agent is in its state."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.widgets.keys_shown import keys_of

from .dialog import Dialog

FRAME_ROWS = 4  # rows of the border, the button and the gap above it
LEAST_ROWS = 3


class ReportText(Static):
    """A text that is made anew whenever there is another width for it."""

    def __init__(self, content: Content | Callable[[int], Content]) -> None:
        super().__init__("", id="text", markup=False)
        self._made_for = 0
        self._make = content

    def on_resize(self, event: events.Resize) -> None:
        width = event.size.width
        if width != self._made_for:
            self._made_for = width
            self.update(self._make if isinstance(self._make, Content) else self._make(width))


class Report(Dialog[None]):
    """Shows a text that may be longer than the screen."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [Binding("q,enter", "leave", show=False)]

    def __init__(self, title: str, content: Content | Callable[[int], Content], *, action: str = "") -> None:
        super().__init__()
        self._title = title
        self._content = content
        self._action = action

    def title_text(self) -> str:
        return self._title

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield ReportText(self._content)

    def on_key(self, event: events.Key) -> None:
        action = keys_of(self.app).by_key(event.key)
        if action is not None and action.id == self._action:
            event.stop()
            self.action_leave()

    def on_resize(self, event: events.Resize) -> None:
        self.query_one(".body").styles.max_height = max(LEAST_ROWS, event.size.height - FRAME_ROWS)

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)
