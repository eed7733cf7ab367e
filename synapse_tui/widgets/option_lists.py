"""Option lists whose highlight is visible without colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Checkbox, Input, OptionList
from textual.widgets.option_list import Option

from synapse_tui.system.dataclass import dataclass

_MARKED = "option-list--option-highlighted"


class Choices(OptionList):
    """Keeps the highlighted row in view when resized.

    If colours are disabled (NO_COLOR), the row is reversed where it has the focus or a ground of its own.
    """

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        style = super().get_visual_style(*component_classes, partial=partial)
        if not (self.app.no_color and _MARKED in component_classes):
            return style
        ground = self.get_component_styles(*component_classes).background
        marked = self.has_focus or ground != self.styles.background
        return style + Style(reverse=True) if marked else style

    def on_resize(self) -> None:
        self.scroll_to_highlight()


class Menu(Choices):
    """Typed letters move to the next row that begins with them; after `PAUSE` a new word begins."""

    PAUSE: ClassVar[float] = 1.0  # seconds
    _typed = ""
    _typed_at = float("-inf")

    def on_key(self, event: events.Key) -> None:
        letter = event.character or ""
        bound = event.key in self.screen.active_bindings
        if bound or not event.is_printable or (letter == " " and not self._typed):
            return
        event.stop()
        event.prevent_default()
        if event.time - self._typed_at > self.PAUSE:
            self._typed = ""
        self._typed, self._typed_at = f"{self._typed}{letter.casefold()}", event.time
        here = self.highlighted or 0
        first = here if len(self._typed) > 1 else here + 1
        for index in (*range(first, self.option_count), *range(first)):
            option = self.get_option_at_index(index)
            text = str(option.prompt).lstrip(" [✓]")  # a box stands before the rows of a `Checklist`
            if not option.disabled and text.casefold().startswith(self._typed):
                self.highlighted = index
                return


@dataclass(frozen=True, slots=True)
class Choice:
    id: str
    label: Content
    marked: bool = False  # whether it is marked initially


class Check(Checkbox):
    """A box to check, drawn as those of a `Checklist`: Space or a click checks it, Enter submits the form."""

    BINDINGS: ClassVar = [("enter", "submit", "Submit")]

    class Submitted(Message):
        pass

    def action_submit(self) -> None:
        self.post_message(self.Submitted())

    @property
    def _button(self) -> Content:
        style = self.get_visual_style("toggle--button")
        return Content.assemble((f"[{'✓' if self.value else ' '}] ", style))


class Checklist(Menu):
    """Space or a click marks a row; Enter confirms."""

    BINDINGS: ClassVar = [("space", "mark", "Mark"), ("enter", "confirm", "Open")]

    class Confirmed(Message):
        pass

    def __init__(self, choices: Sequence[Choice], *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        self._labels = {choice.id: choice.label for choice in choices}
        self._marked = {choice.id for choice in choices if choice.marked}
        super().__init__(
            *(Option(self._row(choice.id), id=choice.id) for choice in choices), id=id, compact=True
        )

    @property
    def marked(self) -> list[str]:
        return [name for name in self._labels if name in self._marked]

    def _row(self, name: str) -> Content:
        marked = name in self._marked
        box = ("[✓] ", "bold $calm") if marked else ("[ ] ", "$faint")
        return Content.assemble(" ", box, self._labels[name])

    def action_mark(self) -> None:
        option = self.highlighted_option
        if option is not None and option.id is not None:
            self._marked ^= {option.id}
            self.replace_option_prompt(option.id, self._row(option.id))

    def action_confirm(self) -> None:
        self.post_message(self.Confirmed())

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        """Mark the clicked row; Enter is bound to `confirm` and does not get here."""
        event.stop()
        self.action_mark()


_MOVES = {"up": "cursor_up", "down": "cursor_down", "pageup": "page_up", "pagedown": "page_down"}


class SearchInput(Input):
    """A search field; the arrow keys move in the list `#results` of the screen."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key not in _MOVES:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        getattr(self.screen.query_one("#results"), f"action_{_MOVES[event.key]}")()
