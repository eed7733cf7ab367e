"""One file: who has locked it and what was done to it; and the changes of all files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.durations import duration, moment
from synapse_tui.errors import HistoryError
from synapse_tui.safety.locks import ChangeType, Lock, Modification
from synapse_tui.themes import agent_colour
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.text import one_line, shorten, shorten_middle
from synapse_tui.widgets.views import YOU, kind_of, party

from .dialog import Dialog

SECOND = 1.0
_WORDS = {
    ChangeType.CREATE: ("created", "$state-ready"),
    ChangeType.MODIFY: ("changed", "$state-working"),
    ChangeType.DELETE: ("deleted", "$state-error"),
}
_WORD_CELLS = max(len(word) for word, _ in _WORDS.values())

Choice = Literal["release", "take", "copy"]
Changes = Callable[[], Awaitable[Sequence[Modification]]]


class FileStory(Dialog[Choice]):
    """Shows a file's lock and its changes; leaves with what is to be done with it.

    Args:
        file: The file's key.
        lock: Tells who holds it now; None for nobody.
        changes: Tells what was done to it, the newest first.
        labels: What agents are called, by id.
        now: The time now, aware.
    """

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [
        Binding("r", "choose('release')", show=False),
        Binding("t", "choose('take')", show=False),
        Binding("c", "choose('copy')", show=False),
        Binding("q,enter", "leave", show=False),
    ]

    def __init__(
        self,
        file: str,
        *,
        lock: Callable[[], Awaitable[Lock | None]],
        changes: Changes,
        labels: Mapping[str, str],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__()
        self.file = file
        self._find_lock = lock
        self._find_changes = changes
        self._labels = labels
        self._now = now
        self._lock: Lock | None = None
        self._changes: Sequence[Modification] | None = None
        self._problem = ""

    def title_text(self) -> str:
        """The title in the frame."""
        return shorten_middle(one_line(self.file), 60)

    def body(self) -> ComposeResult:
        """The lock, and the changes under it."""
        with VerticalScroll(classes="body"):
            yield Static("", id="story", markup=False)

    def buttons(self) -> ComposeResult:
        """Release, take, copy and close."""
        yield Button("Release (r)", id="release", compact=True)
        yield Button("Lock it myself (t)", id="take", compact=True)
        yield Button("Copy path (c)", id="copy", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        """Look, and count the seconds."""
        self.query_one("#release", Button).display = False
        self.set_interval(SECOND, self._draw)
        self.show_news()

    def show_news(self) -> None:
        """Look again."""
        self.run_worker(self._look(), exclusive=True, group="story", exit_on_error=False)

    async def _look(self) -> None:
        try:
            self._lock, self._changes = await self._find_lock(), await self._find_changes()
            self._problem = ""
        except HistoryError as error:
            self._problem = error.message
        self._draw()

    def on_resize(self) -> None:
        """Rows depend on the width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        width = self.query_one(".body").content_size.width - 1
        held = self._held()
        self.query_one("#release", Button).display = held is not None
        if width > 0:
            now = self._now()
            parts = [lock_text(held, self._labels, now), Content("\n\n"), self._history(width, now)]
            self.query_one("#story", Static).update(Content.assemble(*parts))

    def _held(self) -> Lock | None:
        lock = self._lock
        return lock if lock is not None and lock.expires_at > self._now() else None

    def _history(self, width: int, now: datetime) -> Content:
        if self._problem:
            return Content.styled(one_line(self._problem), "$state-error")
        if self._changes is None:
            return Content.styled("…", "$ink-faint")
        if not self._changes:
            return Content.styled("no change of it is known", "$ink-faint")
        rows = [change_row(change, self._labels, width, now) for change in self._changes]
        return Content("\n").join(rows)

    def action_choose(self, choice: Choice) -> None:
        """Leave with what is to be done."""
        if choice != "release" or self._held() is not None:
            self.dismiss(choice)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        match event.button.id:
            case "release" | "take" | "copy" as choice:
                self.action_choose(choice)
            case _:
                self.dismiss(None)


class RecentChanges(Dialog[str]):
    """Lists changes of files, the newest first; leaves with the file that is to be looked at.

    Args:
        changes: Tells them.
        labels: What agents are called, by id.
        now: The time now, aware.
    """

    BOX_CLASSES: ClassVar[str] = "-wide"
    TITLE_TEXT: ClassVar[str] = "Recent file changes"
    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter shows the file · Esc closes"
    AUTO_FOCUS = "#changes"

    def __init__(self, changes: Changes, labels: Mapping[str, str], now: Callable[[], datetime]) -> None:
        super().__init__()
        self._find_changes = changes
        self._labels = labels
        self._now = now
        self._changes: Sequence[Modification] = ()

    def body(self) -> ComposeResult:
        """A row for each change."""
        yield Choices(id="changes", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        """Close."""
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        """Look."""
        self.show_news()

    def show_news(self) -> None:
        """Look again; the marked change stays marked."""
        self.run_worker(self._look(), exclusive=True, group="story", exit_on_error=False)

    async def _look(self) -> None:
        try:
            self._changes = await self._find_changes()
        except HistoryError as error:
            self.show_error(error)
        self._fill()

    def on_resize(self) -> None:
        """Rows depend on the width."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        view = self.query_one("#changes", OptionList)
        width, now = view.content_size.width - 1, self._now()
        if width <= 0:
            return
        marked = view.highlighted_option.id if view.highlighted_option else None
        rows = [
            Option(change_row(each, self._labels, width, now, named=True), id=str(each.id))
            for each in self._changes
        ]
        view.clear_options()
        view.add_options(rows or [Option(Content(" no change of a file is known"), disabled=True)])
        ids = [row.id for row in rows]
        if rows:
            view.highlighted = ids.index(marked) if marked in ids else 0

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        files = {str(each.id): each.file for each in self._changes}
        self.dismiss(files[event.option.id or ""])

    @on(Button.Pressed)
    def _pressed(self) -> None:
        self.dismiss(None)


def lock_text(lock: Lock | None, labels: Mapping[str, str], now: datetime) -> Content:
    """Who holds a file, since when and for how long still, what for."""
    if lock is None:
        return Content.styled("not locked", "$ink-muted")
    left = int((lock.expires_at - now).total_seconds())
    holder = party(lock.agent_id, labels)
    parts: list[tuple[str, str]] = [
        ("locked by ", "$ink-muted"),
        (holder, f"bold ${agent_colour(kind_of(lock.agent_id))}"),
        (f" ({one_line(lock.agent_id)})" if holder not in (lock.agent_id, YOU) else "", "$ink-faint"),
        ("\nsince ", "$ink-muted"),
        (f"{moment(lock.locked_at, now)} ({duration((now - lock.locked_at).total_seconds())})", "$ink"),
        (", ends in ", "$ink-muted"),
        (f"{duration(left) if left >= 10 else f'{left}s'}", "$ink"),
        (" unless it is renewed" if lock.call else "", "$ink-muted"),
    ]
    if lock.intent:
        parts += [("\nfor ", "$ink-muted"), (one_line(lock.intent), "$ink")]
    if lock.task_id:
        parts += [("\ntask ", "$ink-muted"), (one_line(lock.task_id)[:8], "$ink")]
    return Content.assemble(*parts)


def change_row(
    change: Modification, labels: Mapping[str, str], width: int, now: datetime, *, named: bool = False
) -> Content:
    """One line: when, what, by whom, which lines; with the file where it is not known already.

    Args:
        change: The change.
        labels: What agents are called, by id.
        width: Cells of the row.
        now: The time now, aware.
        named: Whether the file stands in it.
    """
    word, colour = _WORDS[change.change]
    when = moment(change.time, now)
    who = shorten(party(change.agent_id, labels), 20)
    about = f"lines {change.lines}" if change.lines else ""
    room = width - cell_len(when) - _WORD_CELLS - cell_len(who) - 7
    file = shorten_middle(one_line(change.file), max(8, room - min(len(about), 18) - 2)) if named else ""
    gap = "  " if file and about else ""
    about = shorten(one_line(about), max(0, room - cell_len(file) - len(gap)))
    return Content.assemble(
        (f" {when}  ", "$ink-faint"),
        (f"{word:<{_WORD_CELLS}}  ", colour),
        (who, f"bold ${agent_colour(kind_of(change.agent_id))}"),
        ("  ", ""),
        (file, "$ink"),
        (gap + about, "$ink-muted"),
    )
