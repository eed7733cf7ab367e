"""The tasks of a conversation with an external agent: how they stand, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, OptionList
from textual.widgets.option_list import Option

from synapse_tui.durations import moment
from synapse_tui.model import Task
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.text import one_line, shorten
from synapse_tui.widgets.views import delivery_mark

from .dialog import Dialog


class ExternalTasks(Dialog[str]):
    """Leaves with the id of a task that is to be shown whole.

    Args:
        alias: The agent's alias.
        look: Tells how the tasks stand now, oldest first.
        now: The time now, aware.
    """

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter shows it whole · Esc closes"
    AUTO_FOCUS = "#tasks"

    def __init__(self, alias: str, look: Callable[[], Sequence[Task]], now: Callable[[], datetime]) -> None:
        super().__init__()
        self._alias = alias
        self._look = look
        self._now = now

    def title_text(self) -> str:
        """The title in the frame."""
        return f"Tasks of @{self._alias}"

    def body(self) -> ComposeResult:
        """A row for each task."""
        yield Choices(id="tasks", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        """Close."""
        yield Button("Close", id="close", compact=True)

    def on_resize(self) -> None:
        """Rows depend on the width."""
        self.call_after_refresh(self.show_news)

    def show_news(self) -> None:
        """Show how they stand now."""
        view = self.query_one("#tasks", OptionList)
        width, now, marked = view.size.width - 1, self._now(), view.highlighted
        if width > 0:
            view.clear_options()
            view.add_options([Option(_row(each, width, now), id=each.id) for each in reversed(self._look())])
            view.highlighted = marked or 0

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)


def _row(task: Task, width: int, now: datetime) -> Content:
    """Two lines: id, how far, since when; the message, or why."""
    mark = delivery_mark(task)
    head = f" {mark.glyph} {task.short_id}  "
    tail = f"{mark.word}  {moment(task.updated_at, now)}"
    text = shorten(one_line(task.text), max(4, width - cell_len(head) - cell_len(tail) - 2))
    below = one_line(task.reason) or (f"↳ {one_line(task.answer)}" if task.answer else "")
    return Content.assemble(
        (head, f"${mark.colour}"),
        (text, "bold $ink"),
        " " * max(1, width - cell_len(head) - cell_len(text) - cell_len(tail)),
        (tail, f"${mark.colour}"),
        ("\n     " + shorten(below, width - 5), "$ink-muted"),
    )
