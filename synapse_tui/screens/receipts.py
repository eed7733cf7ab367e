"""What became of a message to several agents: who has it, who waits and why, who has answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.durations import moment
from synapse_tui.model import Task
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.text import one_line, pad, shorten

from .dialog import Dialog
from .fates import Fate

NAME_CELLS = 18
TEXT_CELLS = 200


@dataclass(frozen=True, slots=True)
class Line:
    """One receiver.

    Attributes:
        fate: What has become of its message.
        task: Its task; None when that is not known here.
    """

    fate: Fate
    task: Task | None


class Receipts(Dialog[str]):
    """Leaves with the id of a task that is to be shown whole.

    Args:
        look: Tells how the messages stand now.
        now: The time now, aware.
    """

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter shows it whole · Esc closes"
    AUTO_FOCUS = "#receipts"

    def __init__(self, look: Callable[[], Sequence[Line]], now: Callable[[], datetime]) -> None:
        super().__init__()
        self._look = look
        self._now = now
        self._lines = look()

    def title_text(self) -> str:
        """The title in the frame."""
        return f"Message to {len(self._lines)} agents"

    def body(self) -> ComposeResult:
        """The message, and a row for each who was to get it."""
        text = next((line.task.text for line in self._lines if line.task is not None), "")
        yield Static(Content(shorten(one_line(text), TEXT_CELLS)), classes="faint", markup=False)
        yield Choices(id="receipts", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        """Close."""
        yield Button("Close", id="close", compact=True)

    def on_resize(self) -> None:
        """Rows depend on the width."""
        self.call_after_refresh(self.show_news)

    def show_news(self) -> None:
        """Show how they stand now."""
        view = self.query_one("#receipts", OptionList)
        self._lines = self._look() or self._lines
        width, now, marked = view.size.width - 1, self._now(), view.highlighted
        if width > 0:
            view.clear_options()
            view.add_options([Option(_row(line, width, now)) for line in self._lines])
            view.highlighted = marked or 0

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        task = self._lines[event.option_index].task
        if task is not None:
            self.dismiss(task.id)

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)


def _row(line: Line, width: int, now: datetime) -> Content:
    """Two lines: who, how far, since when; why, or what was answered."""
    fate, task = line.fate, line.task
    answer = one_line(task.answer) if task is not None else ""
    head = f" {fate.mark.glyph} {pad(fate.name, NAME_CELLS)} "
    word = "answered" if answer and fate.settled else fate.mark.word
    tail = f"{word}  {moment(task.updated_at, now)}" if task is not None else word
    below = f"↳ {answer}" if answer else one_line(fate.reason)
    return Content.assemble(
        (head, "bold $ink"),
        " " * max(1, width - cell_len(head) - cell_len(tail)),
        (tail, f"${fate.mark.colour}"),
        ("\n   " + shorten(below, width - 3), "$ink-muted"),
    )
