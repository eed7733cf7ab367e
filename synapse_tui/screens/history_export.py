"""Write the tasks that are shown to a file; the end of its name says in which form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Input

from synapse_tui.errors import InvalidValue
from synapse_tui.messages.export import FORMATS

from .dialog import Form, label

Write = Callable[[str, Path], Awaitable[str]]


class HistoryExport(Form[str]):
    """Leaves with what was written.

    Args:
        folder: Where the file lies that is named without one.
        now: The time now, aware.
        write: Writes in a form to a file; tells what was written.
    """

    VERB: ClassVar[str] = "Export"
    TITLE_TEXT: ClassVar[str] = "Export the tasks that are shown"
    SUBTITLE: ClassVar[str] = "Enter writes it · Esc cancels"
    AUTO_FOCUS = "#path"

    def __init__(self, folder: Path, now: datetime, write: Write) -> None:
        super().__init__()
        self._folder = folder
        self._name = f"history-{now.astimezone():%Y-%m-%d}.md"
        self._write = write

    def body(self) -> ComposeResult:
        """The name of the file."""
        yield label(f"A new file, in {self._folder} unless it says where", "label -first")
        yield Input(self._name, id="path", select_on_focus=False, compact=True)
        yield label("It ends in .md (Markdown), .json, .jsonl (a line each) or .csv")

    def submit(self) -> None:
        """Write the file."""
        try:
            form, path = self._chosen()
        except InvalidValue as error:
            self.show_error(error)
        else:
            self.attempt(lambda: self._write(form, path))

    def _chosen(self) -> tuple[str, Path]:
        name = self.query_one("#path", Input).value.strip()
        form = Path(name).suffix.removeprefix(".").lower()
        if form not in FORMATS:
            raise InvalidValue(f"'{name}' tells no form", f"end it in .{', .'.join(FORMATS)}")
        return form, self._folder / Path(name).expanduser()
