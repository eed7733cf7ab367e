"""Asks whether files of the project may be used: a cloned repository runs nothing by itself (decision 16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.text import plural, printable

from .dialog import label
from .unasked import Unasked

if TYPE_CHECKING:
    from synapse_tui.agents.profiles.finding import UntrustedFile


class TrustQuestion(Unasked[bool]):
    """Shows the files whole; leaves with True when the person trusts what was shown.

    Args:
        files: Files of the project that are not trusted yet.
    """

    BOX_CLASSES: ClassVar[str] = "-wide -alert"
    TITLE_TEXT: ClassVar[str] = "Trust the files of this project?"
    SUBTITLE: ClassVar[str] = "Tab to read and answer · Esc leaves them unused"
    KEYS: ClassVar[str] = "Tab to the buttons · Esc leaves them unused"
    ENTRY = ".body"

    def __init__(self, files: Sequence[UntrustedFile]) -> None:
        super().__init__()
        self._files = files

    def body(self) -> ComposeResult:
        """What is asked, and the files."""
        count = plural(len(self._files), "file")
        yield label(
            f"This project brings {count} that can start programs or instruct agents. Read before you trust; "
            "you are asked again when one changes.",
            "text",
        )
        with VerticalScroll(classes="body -files"):
            for file in self._files:
                changed = "  (changed since you trusted it)" if file.changed else ""
                yield Static(
                    Content.assemble(
                        (f"\n{short_path(file.path)}", "bold $hot"),
                        (f"{changed}\n", "$state-waiting"),
                        (printable(file.content), "$ink"),
                    ),
                    markup=False,
                )

    def buttons(self) -> ComposeResult:
        """Trust, or go on without."""
        yield Button("Trust these files", id="trust", compact=True)
        yield Button("Go on without them", id="cancel", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "trust")

    def action_leave(self) -> None:
        """Go on without them."""
        self.dismiss(False)
