"""Choose one of some words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, OptionList
from textual.widgets.option_list import Option

from synapse_tui.widgets.option_lists import Choices

from .dialog import Dialog


class Pick(Dialog[str]):
    """Leaves with the key of what was chosen.

    Args:
        title: What it is about.
        options: Key to what it is called.
        chosen: Key of what is marked at the beginning.
    """

    BOX_CLASSES: ClassVar[str] = "-narrow"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter takes it · Esc leaves"
    AUTO_FOCUS = "#options"

    def __init__(self, title: str, options: Mapping[str, str], chosen: str) -> None:
        super().__init__()
        self._title = title
        self._options = dict(options)
        self._chosen = chosen

    def title_text(self) -> str:
        """The title in the frame."""
        return self._title

    def body(self) -> ComposeResult:
        """A row for each."""
        options = [
            Option(Content(f" {name}"), id=f"o-{at}") for at, name in enumerate(self._options.values())
        ]
        view = Choices(*options, id="options", markup=False, compact=True)
        view.highlighted = list(self._options).index(self._chosen) if self._chosen in self._options else 0
        yield view

    def buttons(self) -> ComposeResult:
        """Close."""
        yield Button("Close", id="close", compact=True)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(list(self._options)[event.option_index])

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)
