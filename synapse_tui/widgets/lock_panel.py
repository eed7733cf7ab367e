"""The sidebar panel of file locks: file, holder, start, purpose and remaining time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.locks import Lock
from synapse_tui.core.wording import since
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .error_handling import FaultTolerant
from .fit import shorten
from .option_lists import Choices
from .segment_bar import Section
from .text import one_line
from .views import party

SECOND = 1.0  # between queries while visible, since other hosts and commands take locks too
NONE = tr("  no files are locked")
UNREAD = "  …"

Look = Callable[[], Awaitable[Sequence[Lock]]]


class LockPanel(FaultTolerant, Vertical):
    """Lists the locks; queries them only while visible."""

    list_id: ClassVar[str] = "locks"

    DEFAULT_CSS = """
    LockPanel { height: auto; margin-top: 1; display: none; }
    LockPanel.-on { display: block; }
    LockPanel #locks { height: auto; min-height: 2; max-height: 8; }
    """
    BINDINGS: ClassVar = [
        ("r,delete", "choose('release_lock')", "Release"),
        ("t", "choose('take_lock')", "Take"),
    ]

    @dataclass
    class Chosen(Message):
        file: str
        command: str

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self.now = now
        # reads the locks; None if file safety is off, which hides the panel
        self.look: Look | None = None
        self._labels: Mapping[str, str] = {}
        self.locks: Sequence[Lock] = ()
        self.problem = ""  # why the locks could not be read
        self._read = False  # since the panel was shown
        self._clock: Timer | None = None
        self._again = self._looking = False

    def compose(self) -> ComposeResult:
        yield Section(tr("Locks"), id="locks-title")
        yield Choices(id="locks", markup=False, compact=True)

    def on_mount(self) -> None:
        self.set_class(self.look is not None, "-on")
        self._clock = self.set_interval(SECOND, self._tick, pause=True)

    def follow(self, look: Look | None) -> None:
        self.look = look
        self.locks, self.problem, self._read = (), "", False
        self.set_class(look is not None, "-on")
        self._fill()

    @property
    def seen(self) -> bool:
        return self.is_mounted and self.look is not None and self.size.width > 0 and self.is_on_screen

    def on_show(self) -> None:
        if self._clock is not None:
            self._clock.resume()
        self.show_news()

    def on_hide(self) -> None:
        self._read = False
        if self._clock is not None:
            self._clock.pause()

    def on_resize(self) -> None:
        self._fill()

    def call_agents(self, labels: Mapping[str, str]) -> None:
        if labels != self._labels:
            self._labels = dict(labels)
            self._fill()

    def _tick(self) -> None:
        self.show_news()
        if self.locks:
            self._fill()

    def show_news(self) -> None:
        """Read the locks if visible; if a read is in progress, read again after it."""
        if self.seen:
            self._again = True
            if not self._looking:
                self._looking = True
                self.run_worker(self._look(), group="locks", exit_on_error=False)

    async def _look(self) -> None:
        try:
            while self._again and self.look is not None:
                self._again = False
                try:
                    self.locks, self.problem = await self.look(), ""
                except HistoryError as error:
                    self.locks, self.problem = (), error.message
                self._read = True
                self._fill()
        finally:
            self._looking = False

    def _fill(self) -> None:
        width = self.content_size.width - 1
        if not self.is_mounted or width <= 0:
            return
        now = self.now()
        living = [lock for lock in self.locks if lock.expires_at > now]
        rows = [Option(lock_row(lock, self._labels, width, now), id=lock.file) for lock in living]
        self.query_one("#locks-title", Section).count = str(len(rows) or "")
        if not rows:
            none = NONE if self._read else UNREAD
            said = f"  {shorten(one_line(self.problem), width - 2)}" if self.problem else none
            rows = [Option(Content.styled(said, "$needs" if self.problem else ""), disabled=True)]
        view = self.query_one("#locks", OptionList)
        if [option.id for option in view.options] == [row.id for row in rows]:
            for index, row in enumerate(rows):
                if view.get_option_at_index(index).prompt != row.prompt:
                    view.replace_option_prompt_at_index(index, row.prompt)
            return
        marked = view.highlighted_option.id if view.highlighted_option else None
        view.clear_options()
        view.add_options(rows)
        files = [row.id for row in rows]
        if marked in files:
            view.highlighted = files.index(marked)

    def enter(self) -> None:
        view = self.query_one("#locks", OptionList)
        # Immediately, so that the next keys do not reach an agent.
        self.screen.set_focus(view, scroll_visible=False)
        if view.highlighted is None:
            view.action_first()
        self.show_news()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(event.option.id or "", "show_file"))

    def action_choose(self, command: str) -> None:
        option = self.query_one("#locks", OptionList).highlighted_option
        if option is not None and option.id is not None:
            self.post_message(self.Chosen(option.id, command))


def lock_row(lock: Lock, labels: Mapping[str, str], width: int, now: datetime) -> Content:
    """Render a lock in two lines: file, remaining time; holder, start, purpose."""
    left = since((lock.expires_at - now).total_seconds())
    file = shorten(one_line(lock.file), width - cell_len(left) - 3, "start")
    holder = party(lock.agent_id, labels)
    held = since((now - lock.locked_at).total_seconds())
    who = shorten(holder, width - 3 - cell_len(held) - 3)
    rest = width - 3 - cell_len(who) - cell_len(held) - 3
    why = f" · {shorten(one_line(lock.intent), rest - 3)}" if lock.intent and rest > 8 else ""
    return Content.assemble(
        (f" {file}", "bold $ink"),
        (" " * (width - 1 - cell_len(file) - cell_len(left) - 1) + f"{left} ", "$muted"),
        "\n   ",
        (who, "$ink"),
        (f" · {held}{why}", "$faint"),
    )
