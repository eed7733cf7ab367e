"""File locks and changes: inspect, take and release."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.locks import ChangeType, Lock, Modification, ModificationQuery
from synapse_tui.core.model import USER
from synapse_tui.core.wording import YOU, moment, since
from synapse_tui.hooks.install import Consent
from synapse_tui.system.language import tr
from synapse_tui.widgets.fit import shorten
from synapse_tui.widgets.text import one_line
from synapse_tui.widgets.views import party

from .dialog import Confirm, Dialog, ListDialog, Row
from .questions import HookQuestion, QuestionQueue
from .shell import Shell

SHOWN = 200  # maximum changes listed
NOTICE_CELLS = 32  # maximum length of a path in a notice
TITLE_CELLS = 50
OFF = tr("file safety is off: synapse config set env.SYNAPSE_FILE_SAFETY_ENABLED true")
_WORDS = {
    ChangeType.CREATE: (tr("created"), "$calm"),
    ChangeType.MODIFY: (tr("changed"), "$work"),
    ChangeType.DELETE: (tr("deleted"), "$fail"),
}
_WORD_CELLS = max(len(word) for word, _ in _WORDS.values())


class LockActions:
    """Actions on locks and files; also asks about installing hooks when an agent is opened."""

    def __init__(self, app: Shell, questions: QuestionQueue) -> None:
        self._app = app
        self._safety = app.host.safety
        self._questions = questions

    def action_locks(self) -> None:
        if self._enabled():
            self._app.main.enter_locks()
            self._app.spawn(self._notice_when_none())

    async def _notice_when_none(self) -> None:
        if not await self._safety.locks():
            self._app.notice("no files are locked")

    def _enabled(self) -> bool:
        if not self._safety.enabled:
            self._app.notice(OFF, "warning")
        return self._safety.enabled

    def action_recent_changes(self) -> None:
        if self._enabled():
            query = ModificationQuery(limit=SHOWN)
            changes = RecentChanges(lambda: self._safety.changes(query), self._app.labels(), self._app.today)
            self._app.ask(changes, self.action_show_file)

    async def _lock_of(self, file: str) -> Lock | None:
        return next((lock for lock in await self._safety.locks() if lock.file == file), None)

    def action_show_file(self, file: str) -> None:
        query = ModificationQuery(file=file, limit=SHOWN)
        dialog = FileDialog(
            file,
            lock=lambda: self._lock_of(file),
            changes=lambda: self._safety.changes(query),
            labels=self._app.labels(),
            now=self._app.today,
        )
        self._app.ask(dialog, lambda action: self._app.perform(action, file))

    def action_copy_path(self, file: str) -> None:
        path = str(self._safety.keys.path(file))
        self._app.copy_to_clipboard(path)
        self._app.notice(f"copied {path}")

    def action_release_lock(self, file: str) -> None:
        name = shorten(one_line(file), TITLE_CELLS, "start")
        text = tr(
            "This does not stop the holder: a write in progress continues, and others may write the file "
            "from now on."
        )
        question = Confirm(tr(f"Release {name}?"), text, tr("Release it"))
        self._app.ask(question, lambda yes: self._app.spawn(self._release(file)) if yes else None)

    async def _release(self, file: str) -> None:
        broken = await self._safety.break_lock(file)
        name = shorten(one_line(file), NOTICE_CELLS, "start")
        if broken is None:
            self._app.notice(f"{name} is no longer locked")
        else:
            self._app.notice(f"{name} is released; {self._app.label(broken.agent_id)} held it")

    def action_take_lock(self, file: str) -> None:
        self._app.spawn(self._ask_to_take(file))

    async def _ask_to_take(self, file: str) -> None:
        held = await self._lock_of(file)
        if held is None or held.agent_id == USER.sender_id:
            await self._take(file)
            return
        name = shorten(one_line(file), TITLE_CELLS, "start")
        text = tr(
            f"{self._app.label(held.agent_id)} holds it and is not stopped: a write in progress "
            "continues. Until you release it, for at most 5 minutes, other agents have to wait."
        )
        question = Confirm(tr(f"Lock {name} yourself?"), text, tr("Lock it"))
        self._app.ask(question, lambda yes: self._app.spawn(self._take(file)) if yes else None)

    async def _take(self, file: str) -> None:
        before = await self._safety.take_lock(file)
        whose = tr(f"; {self._app.label(before.agent_id)} held it") if before is not None else ""
        name = shorten(one_line(file), NOTICE_CELLS, "start")
        self._app.notice(f"{name} is locked by you for 5 minutes{whose}")

    def ask_for_hooks(self, agent_id: str) -> None:
        """Ask, unless already done, whether hooks may be installed for an opened agent."""
        if self._safety.enabled:
            self._app.spawn(self._ask_for_hooks(agent_id))

    async def _ask_for_hooks(self, agent_id: str) -> None:
        session = self._app.host.agents.get(agent_id)
        if session is None or not await self._safety.asks_for_hooks(agent_id):
            return
        name = session.profile.display

        def answered(answer: Consent | None) -> None:
            if answer is not None:
                self._app.spawn(self._install(agent_id, name, answer))

        self._questions.ask(lambda: HookQuestion(name), answered)

    async def _install(self, agent_id: str, name: str, answer: Consent) -> None:
        place = await self._safety.answer_for_hooks(agent_id, answer)
        if place is not None:
            self._app.notice(f"{name} has its hooks in {place} and locks files from its next start")
        elif answer is Consent.NEVER:
            self._app.notice(f"{name} runs without hooks; 'synapse hooks install' installs them")


class FileDialog(Dialog[str]):
    """Shows a file's lock and changes; closes with the id of an action on the file."""

    BOX_CLASSES: ClassVar[str] = "-wide"
    SUBTITLE: ClassVar[str] = "↑↓ scroll · Esc closes"
    AUTO_FOCUS = ".body"
    BINDINGS: ClassVar = [
        ("r", "choose('release_lock')"),
        ("t", "choose('take_lock')"),
        ("c", "choose('copy_path')"),
        ("q,enter", "leave"),
    ]

    def __init__(
        self,
        file: str,
        *,
        lock: Callable[[], Awaitable[Lock | None]],
        changes: Callable[[], Awaitable[Sequence[Modification]]],
        labels: Mapping[str, str],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(shorten(one_line(file), 60, "start"))
        self.file = file
        self._find_lock = lock
        self._find_changes = changes
        self._labels = labels
        self._now = now
        self._lock: Lock | None = None
        self._changes: Sequence[Modification] | None = None
        self._problem = ""

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static("", id="story", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Release (r)"), id="release_lock", compact=True)
        yield Button(tr("Lock it myself (t)"), id="take_lock", compact=True)
        yield Button(tr("Copy path (c)"), id="copy_path", compact=True)
        yield Button(tr("Close"), id="close", compact=True)

    def on_mount(self) -> None:
        self.query_one("#release_lock", Button).display = False
        self.set_interval(1.0, self._draw)
        self.look()

    def look(self) -> None:
        self.run_latest(self._look, "look")

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
        self.query_one("#release_lock", Button).display = held is not None
        mine = held is not None and held.agent_id == USER.sender_id
        self.query_one("#take_lock", Button).label = tr("Renew (t)") if mine else tr("Lock it myself (t)")
        if width > 0:
            now = self._now()
            parts = [lock_text(held, self._labels, now), Content("\n\n"), self._history(width, now)]
            self.query_one("#story", Static).update(Content.assemble(*parts))

    def _held(self) -> Lock | None:
        lock = self._lock
        return lock if lock is not None and lock.expires_at > self._now() else None

    def _history(self, width: int, now: datetime) -> Content:
        if self._problem:
            return Content.styled(one_line(self._problem), "$fail")
        if self._changes is None:
            return Content.styled("…", "$faint")
        if not self._changes:
            return Content.styled(tr("no known changes"), "$faint")
        rows = [change_row(change, self._labels, width, now) for change in self._changes]
        return Content("\n").join(rows)

    def action_choose(self, action: str) -> None:
        if action != "release_lock" or self._held() is not None:
            self.dismiss(action)

    def pressed(self, button: str) -> None:
        if button == "close":
            self.dismiss(None)
        else:
            self.action_choose(button)


class RecentChanges(ListDialog):
    """Lists changes of files, newest first; closes with the chosen file."""

    SUBTITLE: ClassVar[str] = "↑↓ choose · Enter shows the file · Esc closes"
    NOTHING: ClassVar[str] = tr(" no known file changes")

    def __init__(
        self,
        changes: Callable[[], Awaitable[Sequence[Modification]]],
        labels: Mapping[str, str],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(tr("Recent file changes"), self._rows)
        self._find_changes = changes
        self._labels = labels
        self._now = now
        self._changes: Sequence[Modification] = ()

    def _rows(self, width: int) -> Iterable[Row]:
        now = self._now()
        return [
            (str(change.id), change_row(change, self._labels, width, now, named=True))
            for change in self._changes
        ]

    def target(self, key: str) -> str:
        return next(change.file for change in self._changes if str(change.id) == key)

    def on_mount(self) -> None:
        self.look()

    def look(self) -> None:
        self.run_latest(self._look, "look")

    async def _look(self) -> None:
        try:
            self._changes = await self._find_changes()
        except HistoryError as error:
            self.show_error(error)
        self.show_news()


def lock_text(lock: Lock | None, labels: Mapping[str, str], now: datetime) -> Content:
    if lock is None:
        return Content.styled(tr("not locked"), "$muted")
    left = (lock.expires_at - now).total_seconds()
    holder = party(lock.agent_id, labels)
    parts: list[tuple[str, str]] = [
        (tr("locked by "), "$muted"),
        (holder, "bold $ink"),
        (f" ({one_line(lock.agent_id)})" if holder not in (lock.agent_id, YOU) else "", "$faint"),
        (tr("\nsince "), "$muted"),
        (f"{moment(lock.locked_at, now)} ({since((now - lock.locked_at).total_seconds())})", "$ink"),
        (tr(", ends in "), "$muted"),
        (since(left), "$ink"),
        (tr(" unless it is renewed") if lock.call else "", "$muted"),
    ]
    if lock.intent:
        parts += [(tr("\nfor "), "$muted"), (one_line(lock.intent), "$ink")]
    if lock.task_id:
        parts += [(tr("\ntask "), "$muted"), (one_line(lock.task_id)[:8], "$ink")]
    return Content.assemble(*parts)


def change_row(
    change: Modification, labels: Mapping[str, str], width: int, now: datetime, *, named: bool = False
) -> Content:
    """Render a change on one line: time, kind, agent, lines and, if `named`, the file."""
    word, colour = _WORDS[change.change]
    when = moment(change.time, now)
    who = shorten(party(change.agent_id, labels), 20)
    about = tr(f"lines {change.lines}") if change.lines else ""
    room = width - cell_len(when) - _WORD_CELLS - cell_len(who) - 7
    file = shorten(one_line(change.file), max(8, room - min(len(about), 18) - 2), "start") if named else ""
    gap = "  " if file and about else ""
    about = shorten(one_line(about), max(0, room - cell_len(file) - len(gap)))
    return Content.assemble(
        (f" {when}  ", "$faint"),
        (f"{word:<{_WORD_CELLS}}  ", colour),
        (who, "bold $ink"),
        ("  ", ""),
        (file, "$ink"),
        (gap + about, "$muted"),
    )
