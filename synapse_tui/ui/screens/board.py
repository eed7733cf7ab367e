"""The board's view of the host, and the actions that show it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.agents.worktrees.changes import LineCounter
from synapse_tui.agents.worktrees.line_counts import Activity, ChangeCounter, FolderChange
from synapse_tui.core.errors import SynapseError
from synapse_tui.core.model import AgentState, DeliveryState, Task, TaskState
from synapse_tui.core.wording import since
from synapse_tui.system.language import tr
from synapse_tui.terminal.render import parts
from synapse_tui.widgets.agent_rows import Line
from synapse_tui.widgets.board_drawing import Asked, Detail, DialogOption, TimelineEvent, Waiting
from synapse_tui.widgets.board_model import BoardRow, doing
from synapse_tui.widgets.fit import Piece
from synapse_tui.widgets.sidebar import short_path
from synapse_tui.widgets.states import delivery_mark, state_mark
from synapse_tui.widgets.strips import measured, style_words
from synapse_tui.widgets.text import answer_words, markdown_line, one_line, plural
from synapse_tui.widgets.views import HELD_LONG, AgentView, in_words, party, sender_name, subject

from .shell import Shell

if TYPE_CHECKING:
    from synapse_tui.agents.dialogs import AgentDialog
    from synapse_tui.agents.session import AgentSession
    from synapse_tui.agents.state import Passage
    from synapse_tui.terminal import Line as TerminalLine

SCREEN_LINES = 60  # lines of a screen that the board shows at most
TIMELINE_EVENTS = 60
SAME_SECONDS = 3.0  # between an agent's passage and the change of its message that it brings about
CALLING = (AgentState.WAITING, AgentState.ERROR)
NEVER_ASKED = tr("has not been asked for anything yet")
NOT_SINCE_RESUMED = tr("has not been asked for anything since it resumed")
NOT_SINCE_RESTARTED = tr("has not been asked for anything since its restart")


class BoardActions:
    """Shows the board and does what its keys say."""

    def __init__(self, app: Shell) -> None:
        self._app = app
        self._host = app.host
        self._main = app.main
        self.project = one_line(app.host.project.name)
        self.changes = ChangeCounter(self._count_lines)
        self._counters: dict[Path, LineCounter] = {}
        app.main.board.source = self

    def action_board(self) -> None:
        if self._main.board_shown:
            self._main.leave_board()
        else:
            self._main.show_board()

    # What the board's keys do

    def perform(self, action_id: str, *arguments: str) -> None:
        if action_id == "compose":
            agent_id = arguments[0]
            session = self._host.agents.get(agent_id)
            arguments = ((session.name or agent_id) if session is not None else agent_id,)
        self._app.perform(action_id, *arguments)

    def answer(self, asked: Asked, choice: DialogOption) -> None:
        self._app.spawn(self._answer(asked, choice))

    async def _answer(self, asked: Asked, choice: DialogOption) -> None:
        agent_id = asked.agent_id
        try:
            outcome = await self._host.answer_dialog(agent_id, asked.serial, asked.fingerprint, choice.words)
        except SynapseError as error:
            self._main.board.refuse(agent_id, tr(error.message))
            return
        if outcome.closed:
            self._app.notice(f"{self._app.label(agent_id)}: {one_line(choice.words)}")
        else:
            self._main.board.refuse(agent_id, tr(outcome.reason))

    # What the board reads

    def rows(self) -> Sequence[BoardRow]:
        now = self._main.board.clock()
        views = [*self._main.agents, *self._main.not_started, *self._main.tab_bar.expected]
        self._count_changes(self._main.agents)
        alone = self._alone(self._main.agents)
        return [self._row(agent, now, alone) for agent in views]

    def _row(self, agent: AgentView, now: float, alone: dict[Path, bool]) -> BoardRow:
        state = agent.mark
        session = self._host.agents.get(agent.agent_id)
        seconds = max(0.0, now - agent.since) if agent.since else 0.0
        what = agent.failed or ""
        if session is not None:
            dialog = session.dialog
            what = doing(
                agent,
                asks=tr(dialog.asks) if dialog is not None else "",
                answer=_answer_line(session),
                task=_task_line(session, self._app.labels()),
            )
            if not what and agent.state is AgentState.READY:
                what = _not_asked(session)
        return BoardRow(
            agent,
            state,
            what,
            seconds,
            self.changes.get(agent.cwd) if session is not None and alone.get(agent.cwd) else None,
        )

    @staticmethod
    def _alone(views: Sequence[AgentView]) -> dict[Path, bool]:
        folders = [agent.cwd for agent in views if agent.agent_id and not agent.external]
        return {folder: folders.count(folder) == 1 for folder in folders}

    def _count_changes(self, views: Sequence[AgentView]) -> None:
        here = [agent for agent in views if agent.agent_id and not agent.external and agent.exit is None]
        folders = {
            agent.cwd: self._activity([each for each in here if each.cwd == agent.cwd]) for agent in here
        }
        if self._app.app_focus and any(self.changes.due(*item) for item in folders.items()):
            self._app.spawn(self._look_at_folders(folders))

    def _activity(self, views: Sequence[AgentView]) -> Activity:
        sessions = [self._host.agents[view.agent_id] for view in views if view.agent_id in self._host.agents]
        return Activity(
            sum(session.terminal.screen.tick for session in sessions),
            max((view.since for view in views if view.state is not AgentState.PROCESSING), default=0.0),
        )

    async def _look_at_folders(self, folders: Mapping[Path, Activity]) -> None:
        self._counters = {each: counter for each, counter in self._counters.items() if each in folders}
        if await self.changes.look(folders):
            self._main.board.look()

    async def _count_lines(self, folder: Path, touched: Collection[Path], whole: bool) -> FolderChange | None:
        counter = self._counters.setdefault(folder, LineCounter(folder, os.environ))
        return await asyncio.to_thread(counter.count, touched, whole=whole)

    def file_changed(self, file: str) -> None:
        self.changes.touch(Path(os.path.realpath(self._host.project)) / file)

    def picture_version(self, agent_id: str) -> object:
        session = self._host.agents.get(agent_id)
        if session is None:
            return tuple(self._main.conversations.picture(agent_id).entries[-1:])
        dialog = session.dialog
        binding = (dialog.serial, dialog.fingerprint) if dialog is not None else None
        return session.terminal.screen.tick, session.terminal.columns, session.terminal.lines, binding

    def detail(self, row: BoardRow) -> Detail:
        session = self._host.agents.get(row.agent_id)
        if row.agent.external:
            return Detail(row, about=(row.agent.title,), screen=tuple(self._talk(row.agent_id)))
        if session is None:
            folder = short_path(row.agent.cwd) if row.agent.failed is not None else ""
            return Detail(row, about=tuple(filter(None, (row.agent.agent_type, folder))))
        dialog = session.dialog if session.exit is None else None
        lines = [session.terminal.line(y) for y in range(session.terminal.lines)]
        asked = None
        if dialog is not None:
            asked = _asked(row.agent_id, dialog)
            lines = lines[: _first_row(lines, dialog)]
        shared = tuple(
            agent.label
            for agent in self._main.agents
            if agent.cwd == row.agent.cwd and agent.agent_id != row.agent_id and not agent.external
        )
        opener = self._app.labels().get(by[0], by[0]) if (by := session.opened_by) else ""
        about = (
            session.agent_type,
            tr(f"opened by {opener}") if opener else "",
            short_path(session.cwd),
            row.agent.watch,
            _tokens(session.tokens),
        )
        return Detail(
            row,
            about=tuple(filter(None, about)),
            screen=tuple(_drawn(lines)),
            asked=asked,
            waiting=tuple(self._waiting(session)),
            change=self.changes.get(session.cwd),
            shared_with=shared,
        )

    def _talk(self, alias: str) -> Iterator[Line]:
        """Yield the last messages to and from an external agent, a line each."""
        picture = self._main.conversations.picture(alias)
        for entry in picture.entries[-SCREEN_LINES:]:
            yield [
                Piece(f"{picture.author(entry)}  ", "$muted"),
                Piece(one_line(entry.text), "$ink", cut="end"),
            ]

    def _waiting(self, session: AgentSession) -> list[Waiting]:
        labels, now = self._app.labels(), self._main.now()
        tasks = {task.id: task for task in session.tasks.unfinished()}
        waiting = [tasks[each.task.id] for each in session.control.waiting() if each.task.id in tasks]
        return [_wait(task, labels, now) for task in waiting if not task.delivery.final]

    def timeline_events(self) -> Sequence[TimelineEvent]:
        """Return what happened lately, the newest first and each thing once.

        The end of a turn that was a message is that of the message; a question is listed with what it asks.
        """
        labels, now = self._app.labels(), self._main.now()
        tasks = self._host.tasks[-TIMELINE_EVENTS:]
        found = []
        asking: list[Task] = []
        for agent_id, session in self._host.agents.items():
            own = [task for task in tasks if task.target == agent_id]
            for passage in _turning_points(session.timeline.passages)[-TIMELINE_EVENTS:]:
                same = [task for task in own if _is_of(task, passage)]
                if passage.state is AgentState.READY and same:
                    continue
                asking += same
                found.append((passage.at, _passage(passage, labels.get(agent_id, ""), now)))
        found += [(task.since, _message(task, labels, now)) for task in tasks if task not in asking]
        found.sort(key=lambda each: each[0], reverse=True)
        return [happening for _at, happening in found[:TIMELINE_EVENTS]]


def _is_of(task: Task, passage: Passage) -> bool:
    """Whether a message's last change is what a passage of its agent says too."""
    state = {AgentState.READY: TaskState.COMPLETED, AgentState.WAITING: TaskState.INPUT_REQUIRED}
    apart = abs((task.since - passage.at).total_seconds())
    return task.state is state.get(passage.state) and apart < SAME_SECONDS


def _turning_points(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages with which the agent began to ask, was done, failed, ended or was started again.

    An agent may say that it asks before it has drawn what.
    """
    first = []
    for _state, group in groupby(passages, key=lambda passage: passage.state):
        same = list(group)
        said = next((passage for passage in same if passage.report.detail), same[0])
        first.append(replace(same[0], report=said.report))
    found = [passage for passage in first if passage.state in (*CALLING, AgentState.EXITED)]
    found += [
        passage
        for before, passage in pairwise(first)
        if (passage.state, before.state) == (AgentState.STARTING, AgentState.EXITED)
        or (passage.state is AgentState.READY and before.state in (AgentState.PROCESSING, *CALLING))
    ]
    return sorted(found, key=lambda passage: passage.at)


def _answer_line(session: AgentSession) -> str:
    """Return the last words of the answer with which the agent's last turn ended, on one line."""

    def answered(tasks: Iterable[Task]) -> Iterator[Task]:
        ended = (task for task in tasks if task.state is TaskState.COMPLETED and task.artifacts)
        return (task for task in ended if not task.outgoing)  # what others have answered

    newest = islice(answered(session.tasks.finished()), 1)
    last = max((*newest, *answered(session.tasks.unfinished())), key=lambda task: task.since, default=None)
    ended = session.timeline.ended_at
    past = ended is not None and last is not None and ended > last.since
    if last is None or past or session.timeline.worked_after(last.since):
        return ""
    return "".join(text for text, _style in markdown_line(answer_words(last), "", "")).strip()


def _not_asked(session: AgentSession) -> str:
    """Say that the agent has not worked since it began, or nothing if it has."""
    ended = session.timeline.ended_at
    if ended is not None:
        return "" if session.timeline.worked_after(ended) else NOT_SINCE_RESTARTED
    if len(session.tasks) or any(each.state is AgentState.PROCESSING for each in session.timeline.passages):
        return ""
    return NOT_SINCE_RESUMED if session.spec.resume else NEVER_ASKED


def _task_line(session: AgentSession, labels: dict[str, str]) -> str:
    unfinished = session.tasks.unfinished()
    working = [task for task in unfinished if task.state is TaskState.WORKING and not task.outgoing]
    if not working:
        return ""
    return tr(f"for {sender_name(working[-1].sender, labels)}: {one_line(working[-1].text)}")


def _wait(task: Task, labels: dict[str, str], now: datetime) -> Waiting:
    seconds = (now - task.since).total_seconds()
    held = task.delivery is DeliveryState.HELD
    return Waiting(
        f"{sender_name(task.sender, labels)} → {party(task.target, labels)}",
        one_line(task.text),
        f"{delivery_mark(task).word} {since(seconds)}",
        tr(one_line(task.reason)),
        for_long=held and seconds > HELD_LONG,
    )


def _message(task: Task, labels: dict[str, str], now: datetime) -> TimelineEvent:
    mark = delivery_mark(task)
    way = f"{sender_name(task.sender, labels)} → {party(task.target, labels)}"
    return TimelineEvent(
        _age(task.since, now), mark.glyph, mark.colour, way, f"{mark.word}: {one_line(task.text)}"
    )


def _passage(passage: Passage, who: str, now: datetime) -> TimelineEvent:
    mark = state_mark(passage.state)
    about = in_words(subject(one_line(passage.report.detail))) if passage.state in CALLING else ""
    word = tr("started again") if passage.state is AgentState.STARTING else mark.word
    text = f"{word}: {about}" if about else word
    return TimelineEvent(_age(passage.at, now), mark.glyph, mark.colour, who, text)


def _age(at: datetime, now: datetime) -> str:
    return f"{since((now - at).total_seconds()):>5}"


def _tokens(count: int | None) -> str:
    """Return `950 tokens`, `41k tokens` or `1.2M tokens`; empty if it is not known."""
    if count is None:
        return ""
    if count < 1000:
        return plural(count, "token")
    return f"{count / 1e6:.1f}M tokens" if count >= 999_500 else f"{count / 1000:.0f}k tokens"


def _asked(agent_id: str, dialog: AgentDialog) -> Asked:
    lines = tuple(_drawn(dialog.lines[: len(dialog.body)]))
    choices = tuple(
        DialogOption("y" if option.allows_once else "n" if option.denies else "", option.number, option.words)
        for option in dialog.options
    )
    return Asked(agent_id, dialog.serial, dialog.fingerprint, lines, choices)


def _first_row(lines: Sequence[TerminalLine], dialog: AgentDialog) -> int:
    """Return the row of the screen at which a dialog begins; 0 if that is not found."""
    first = next((text.rstrip() for text in dialog.text if text.strip()), "")
    rows = [y for y, line in enumerate(lines) if line.text.rstrip() == first]
    return rows[-1] if first and rows else 0


def _drawn(lines: Sequence[TerminalLine]) -> list[Line]:
    """Return lines of a terminal as pieces, without the blanks around them."""
    drawn = [_pieces(line) for line in lines[-SCREEN_LINES:]]
    said = [at for at, line in enumerate(drawn) if any(piece.text.strip() for piece in line)]
    return drawn[said[0] : said[-1] + 1] if said else []


def _pieces(line: TerminalLine) -> Line:
    pieces = [
        Piece(measured(text, cells) if doubtful else text, style_words(style))
        for coded, style, _cells in line.coded_runs()
        for text, cells, doubtful in parts(coded)
    ]
    while pieces and not {"on", "reverse", "underline"} & set(pieces[-1].style.split()):
        if text := pieces[-1].text.rstrip():
            return [*pieces[:-1], Piece(text, pieces[-1].style)]
        pieces.pop()
    return pieces
