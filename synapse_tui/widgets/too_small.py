"""What is shown in place of everything while the terminal is too small."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

LEAST_WIDTH = 40
LEAST_HEIGHT = 10


class TooSmall(Widget, can_focus=False):
    """Says how large the terminal must be."""

    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center;
               background: ansi_default; color: ansi_default; }
    """

    def render(self) -> Content:
        """The message; the agents go on behind it."""
        size = self.app.size
        text = (
            f"{size.width}×{size.height} is too small\nneeds {LEAST_WIDTH}×{LEAST_HEIGHT}\nthe agents go on"
        )
        return Content(text)


def is_too_small(width: int, height: int) -> bool:
    """Whether the application cannot be shown in a terminal of that size."""
    return width < LEAST_WIDTH or height < LEAST_HEIGHT
