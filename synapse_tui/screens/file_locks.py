"""What can be done with locks and changes of files: look at them, release a lock, copy a path."""

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
from synapse_tui.hooks.install import Consent
from synapse_tui.model import USER
from synapse_tui.safety.locks import ChangeType, Lock, Modification, ModificationQuery
from synapse_tui.themes import agent_colour
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.text import one_line, shorten, shorten_middle
from synapse_tui.widgets.views import YOU, kind_of, party

from .dialog import Confirm, Dialog
from .messages import MessageCommands
from .questions import HookQuestion

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
    """Shows a file's lock and its changes; leaves with what is to be done with it."""

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
        return shorten_middle(one_line(self.file), 60)

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static("", id="story", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button("Release (r)", id="release", compact=True)
        yield Button("Lock it myself (t)", id="take", compact=True)
        yield Button("Copy path (c)", id="copy", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.query_one("#release", Button).display = False
        self.set_interval(SECOND, self._draw)
        self.show_news()

    def show_news(self) -> None:
        self.run_worker(self._look(), exclusive=True, group="story", exit_on_error=False)

    async def _look(self) -> None:
        try:
            self._lock, self._changes = await self._find_lock(), await self._find_changes()
            self._problem = ""
        except HistoryError as error:
            self._problem = error.message
        self._draw()

    def on_resize(self) -> None:
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
    """Lists changes of files, the newest first; leaves with the file that is to be looked at."""

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
        yield Choices(id="changes", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
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
    """One line: when, what, by whom, which lines; with the file where it is not known already."""
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


SHOWN = 200  # how many changes are listed
NAME_CELLS = 32  # how much of a path stands in a notice
OFF = "file safety is off: synapse config set env.SYNAPSE_FILE_SAFETY_ENABLED true"


class LockCommands(MessageCommands):
    """The part of the commands that is about files."""

    def do_locks(self, _agent_id: str, _task_id: str) -> None:
        if self._watched():
            self.main.enter_locks()
            self.run(self._tell_when_none())

    async def _tell_when_none(self) -> None:
        """Say that nothing is locked: where the sidebar was open already, nothing else is new."""
        if not await self.host.safety.locks():
            self.app.notice("no file is locked")

    def do_recent_changes(self, _agent_id: str, _task_id: str) -> None:
        if self._watched():
            query = ModificationQuery(limit=SHOWN)
            changes = RecentChanges(lambda: self.host.safety.changes(query), self.labels(), self.today)
            self._ask(changes, lambda file: self.do_show_file("", file))

    def do_show_file(self, _agent_id: str, file: str) -> None:
        query = ModificationQuery(file=file, limit=SHOWN)

        async def lock() -> Lock | None:
            return next((each for each in await self.host.safety.locks() if each.file == file), None)

        story = FileStory(
            file,
            lock=lock,
            changes=lambda: self.host.safety.changes(query),
            labels=self.labels(),
            now=self.today,
        )
        self._ask(story, lambda choice: self._with_file(file, choice))

    def _with_file(self, file: str, choice: Choice) -> None:
        if choice == "release":
            self.do_release_lock("", file)
        elif choice == "take":
            self.do_take_lock("", file)
        else:
            path = str(self.host.safety.keys.path(file))
            self.app.copy_to_clipboard(path)
            self.app.notice(f"copied {path}")

    def do_release_lock(self, _agent_id: str, file: str) -> None:
        name = shorten_middle(one_line(file), 50)
        text = (
            "Its holder is not stopped: a write of it that is under way goes on, and others may write "
            "the file from now on."
        )
        question = Confirm(f"Release {name}?", text, "Release it")
        self._ask(question, lambda yes: self.run(self._release(file)) if yes else None)

    def do_take_lock(self, _agent_id: str, file: str) -> None:
        self.run(self._ask_to_take(file))

    async def _ask_to_take(self, file: str) -> None:
        held = next((each for each in await self.host.safety.locks() if each.file == file), None)
        if held is None or held.agent_id == USER.sender_id:
            await self._take(file)
            return
        name = shorten_middle(one_line(file), 50)
        text = (
            f"{self.label(held.agent_id)} holds it, and is not stopped: a write of it that is under way goes "
            "on. Until you release it, for 5 minutes at most, agents that would write it are told to wait."
        )
        question = Confirm(f"Lock {name} yourself?", text, "Lock it")
        self._ask(question, lambda yes: self.run(self._take(file)) if yes else None)

    async def _take(self, file: str) -> None:
        before = await self.host.safety.take_lock(file)
        whose = f"; {self.label(before.agent_id)} held it" if before is not None else ""
        self.app.notice(f"{shorten_middle(one_line(file), NAME_CELLS)} is locked by you for 5 minutes{whose}")

    async def _release(self, file: str) -> None:
        broken = await self.host.safety.break_lock(file)
        name = shorten_middle(one_line(file), NAME_CELLS)
        if broken is None:
            self.app.notice(f"{name} is not locked any more")
        else:
            self.app.notice(f"{name} is released; {self.label(broken.agent_id)} held it")

    def ask_for_hooks(self, agent_id: str) -> None:
        """Ask, where that was not done yet, whether hooks may be installed for an agent that was opened."""
        if self.host.safety.enabled:
            self.run(self._ask_for_hooks(agent_id))

    async def _ask_for_hooks(self, agent_id: str) -> None:
        session = self.host.agents.get(agent_id)
        if session is None or not await self.host.safety.asks_for_hooks(agent_id):
            return
        name = session.profile.display

        def answered(answer: Consent | None) -> None:
            if answer is not None:
                self.run(self._install(agent_id, name, answer))

        self.app.questions.ask(lambda: HookQuestion(name), answered)

    async def _install(self, agent_id: str, name: str, answer: Consent) -> None:
        place = await self.host.safety.answer_for_hooks(agent_id, answer)
        if place is not None:
            self.app.notice(f"{name} has its hooks in {place}: from its next start it locks files")
        elif answer is Consent.NEVER:
            self.app.notice(f"{name} goes on without hooks; 'synapse hooks install' puts them there")

    def _watched(self) -> bool:
        """Whether files are locked at all; a person who asks is told how."""
        if not self.host.safety.enabled:
            self.app.notice(OFF, "warning")
        return self.host.safety.enabled
