"""The database of the history; all of it runs in the one writer thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, UpdateBase
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm.exc import StaleDataError
from sqlmodel import Session, col, delete, func, insert, select, update

from synapse_tui.model import INSTRUCTIONS, SYSTEM, DeliveryState, ReplyState, Task, TaskQuery

from .aftermath import HOST_ENDED, NOBODY, after_end
from .backends import backend_of
from .batch import Addressee, AgentKey, Batch, Change, Mark, Owed, Restored, Stored
from .engine import Alive
from .forgetting import forget, remove_ended
from .kept import WAITS
from .location import BUSY, Location
from .outbox_rows import followed_in, last_place, places_of
from .pages import find_tasks, read_changes, read_page
from .push import Delivery, PushLeft
from .push_rows import prune_push, push_left, push_log, webhooks_left, write_push
from .rows import (
    change_values,
    entry_of,
    new_task,
    place_values,
    put_standing,
    standing_of,
    task_fields,
    task_of,
)
from .tables import ChangeRow, OutboxRow, TaskRow

MAX_ASKED = 100
"""How many outgoing tasks of before an agent is given back."""
CHUNK = 500
"""How many tasks are removed in one transaction: others wait for the lock meanwhile."""


class Database:
    """Reads and writes the history.

    Args:
        location: Where it is.
        owner: This process, as `alive` knows it.
        alive: Tells whether the process of an owner still runs.
        clock: The time now, aware.
        busy: Seconds that a lock of another process is waited for.
    """

    def __init__(
        self,
        location: Location,
        *,
        owner: str,
        alive: Alive,
        clock: Callable[[], datetime],
        busy: float = BUSY,
    ) -> None:
        self._backend = backend_of(location, busy=busy)
        self._naming = self._backend.naming
        self._owner = self._naming.owner(owner)
        self._alive = alive
        self._clock = clock
        self._engine: Engine | None = None
        self._file: object = None
        self._known: set[str] = set()
        """Tasks that are in the file for certain."""
        self._lost = ""
        """What happened to the file that was there; empty as a rule, and once it was told."""

    def open(self) -> None:
        """Open the file, where it is not, and settle what ended processes left under way."""
        if self._engine is not None and self._backend.identity() == self._file:
            return
        if self._engine is not None:
            self._lost = f"{self._backend.shown} was removed"
        self.close()
        engine, moved = self._backend.open()
        try:
            self._sweep(engine)
        except BaseException:
            engine.dispose()
            raise
        self._engine, self._file = engine, self._backend.identity()
        if moved:
            self._lost = f"{self._backend.shown} was no sound database and is {moved} now"

    def write(self, batch: Batch) -> str:
        """Write all of a batch or nothing.

        Returns:
            What happened to the file that was there, since the last batch; empty as a rule.
        """
        self.open()
        try:
            self._write(batch)
        except StaleDataError:  # someone has removed rows: they are written anew
            self._write(batch)
        except DBAPIError as error:
            if self._backend.is_broken(error):
                self.close()
                self._lost = self._backend.give_up()
                self.open()
            elif not self._backend.is_race(error):
                raise
            self._write(batch)
        lost, self._lost = self._lost, ""
        return lost

    def waiting(
        self, key: AgentKey, but: str, called: str | None = None, earlier: str = ""
    ) -> list[Restored]:
        """The messages of an agent that still wait from its earlier sessions, in order, ours from now on.

        Args:
            key: The agent.
            but: Context id of its session now.
            called: Its name, empty for one without; None for those of every name.
            earlier: Agent id that it had before, where that was another one: what waits there, and no other
                process works with, is its own from now on. Empty for none.
        """
        with self._settling(self._opened()) as session:
            found = session.exec(
                select(TaskRow).where(
                    TaskRow.project == key.project,
                    col(TaskRow.agent_name).in_((key.agent_id, earlier)),
                    TaskRow.session != but,
                    col(TaskRow.finished_at).is_(None),
                )
            ).all()
            rows = [
                each
                for each in found
                if (called is None or _addressee(each).fits(called))
                and (each.agent_name == key.agent_id or self._is_gone(each.owner))
            ]
            places = self._settle(session, rows)
            for place in places.values():
                place.agent_name = key.agent_id
            for row in rows:
                row.owner = self._owner
                if row.finished_at is None:  # what has ended was the earlier one's
                    row.agent_name = key.agent_id
                row.called = row.called if called is None else called
            left = [
                Restored(task_of(row), entry_of(places[row.id]) if row.id in places else None)
                for row in rows
                if row.finished_at is None
            ]
        return sorted(left, key=lambda each: (each.entry.rank if each.entry else 0.0, each.task.created_at))

    def leave(self, key: AgentKey) -> None:
        """Let go of the messages that wait for an agent which was closed: nobody works with them now."""
        mine = (TaskRow.agent_name == key.agent_id, TaskRow.owner == self._owner)
        with self._settling(self._opened()) as session:
            rows = session.exec(select(TaskRow).where(TaskRow.project == key.project, *mine, *WAITS)).all()
            for row in rows:
                row.owner = self._naming.owner(NOBODY)
                session.add(row)
            self._settle(session, rows)

    def unfinished(self, project: str) -> dict[Addressee, int]:
        """How many messages still wait for each agent of a project."""
        self.open()
        with Session(self._engine) as session:
            found = session.exec(
                select(TaskRow.agent_name, TaskRow.called, func.count())
                .where(TaskRow.project == project, *WAITS)
                .group_by(TaskRow.agent_name, col(TaskRow.called))
                .order_by(TaskRow.agent_name, col(TaskRow.called))
            ).all()
        return {Addressee(agent_id, called): count for agent_id, called, count in found}

    def replies_due(self, project: str, but: Collection[str]) -> list[Owed]:
        """Ended tasks of a project of which ended processes did not tell the senders; ours from now on.

        Args:
            project: The project.
            but: Tasks that are known to this process.
        """
        with self._settling(self._opened()) as session:
            rows = session.exec(
                select(TaskRow).where(
                    TaskRow.project == project,
                    TaskRow.reply == ReplyState.DUE,
                    col(TaskRow.finished_at).is_not(None),
                )
            ).all()
            left = [row for row in rows if row.id not in but and self._is_gone(row.owner)]
            for row in left:
                row.owner = self._owner
            found = [
                Owed(AgentKey(row.project, row.agent_name, row.agent_type), task_of(row)) for row in left
            ]
        return sorted(found, key=lambda each: each.task.updated_at)

    def instructed(self, key: AgentKey, since: datetime) -> bool:
        """Whether instructions were submitted to an agent since then."""
        self.open()
        with Session(self._engine) as session:
            found = session.exec(
                select(TaskRow.meta).where(
                    TaskRow.project == key.project,
                    TaskRow.agent_name == key.agent_id,
                    TaskRow.sender_id == SYSTEM.sender_id,
                    col(TaskRow.submitted_at) >= since,
                )
            ).all()
        return any(meta.get("kind") == INSTRUCTIONS for meta in found)

    def asked(self, key: AgentKey, since: datetime) -> list[Task]:
        """Outgoing tasks of an agent that ended with its host; an answer to them still is for the agent."""
        self.open()
        with Session(self._engine) as session:
            rows = session.exec(
                select(TaskRow)
                .where(
                    TaskRow.project == key.project,
                    TaskRow.agent_name == key.agent_id,
                    TaskRow.sender_id == key.agent_id,
                    TaskRow.reason == HOST_ENDED,
                    col(TaskRow.finished_at) >= since,
                )
                .order_by(col(TaskRow.finished_at).desc())
                .limit(MAX_ASKED)
            ).all()
            return [task_of(row) for row in rows]

    def _is_gone(self, owner: str) -> bool:
        """Whether a process does nothing more for what it owned; of another machine's nobody can tell."""
        if owner == self._owner:
            return True
        return self._naming.is_here(owner) and not self._alive(self._naming.process(owner))

    def find(self, key: AgentKey, prefix: str) -> list[Task]:
        """The tasks of an agent whose ids begin so."""
        return find_tasks(self._opened(), key, prefix)

    def page(self, key: AgentKey, query: TaskQuery, after: Mark | None) -> Stored:
        """A page of the tasks that an agent was given, the newest change first."""
        return read_page(self._opened(), key, query, after)

    def _opened(self) -> Engine:
        self.open()
        assert self._engine is not None
        return self._engine

    def changes(self, task_id: str) -> list[Change]:
        """The steps of a task, oldest first."""
        return read_changes(self._opened(), task_id)

    def prune(self, before: datetime) -> int:
        """Remove some tasks that ended before a time.

        Returns:
            How many; fewer than `CHUNK` when no more are left.
        """
        # How long other machines keep their tasks is for them to say.
        here = col(TaskRow.project).startswith(self._naming.machines, autoescape=True)
        with Session(self._opened()) as session:
            removed = remove_ended(session, before, CHUNK, here)
            session.commit()
        return removed

    def forget(self, project: str, ended: datetime, late: datetime) -> int:
        """Remove some tasks of a project that are not kept; see `forgetting`."""
        with self._settling(self._opened()) as session:
            return forget(session, project, ended=ended, late=late, mine=self._is_gone)

    def push_left(self, project: str) -> PushLeft:
        """What ended processes left to be told; see `push_rows`."""
        with self._settling(self._opened()) as session:
            return push_left(session, project, self._is_gone, self._owner)

    def webhooks_left(self, project: str, agent_id: str, *, goes_on: bool) -> PushLeft:
        """The webhooks of an agent that is opened again; see `push_rows`."""

        def mine(owner: str) -> bool:
            return goes_on or owner == self._owner

        with self._settling(self._opened()) as session:
            return webhooks_left(session, project, agent_id, mine, self._owner)

    def push_log(self, subscription_id: str, limit: int) -> list[Delivery]:
        """The newest notifications to someone."""
        with Session(self._opened()) as session:
            return push_log(session, subscription_id, limit)

    def prune_push(self, before: datetime) -> None:
        """Remove notifications that are kept no more."""
        with self._settling(self._opened()) as session:
            prune_push(session, before)

    def close(self) -> None:
        """Close the file."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
            self._known.clear()

    def _write(self, batch: Batch) -> None:
        if not batch:
            return
        known, self._known = self._known, set()  # forgotten should this fail
        with Session(self._engine) as session:
            unknown = [task_id for task_id in batch.tasks if task_id not in known]
            if unknown:
                known.update(session.exec(select(TaskRow.id).where(col(TaskRow.id).in_(unknown))).all())
            if batch.places:
                session.exec(delete(OutboxRow).where(col(OutboxRow.task_id).in_(batch.places)))
            for statement, values in _statements(batch, known, self._owner):
                if values:
                    session.exec(statement, params=values)
            write_push(session, batch.push, self._owner, self._backend)
            session.commit()
        ended = {task_id for task_id, each in batch.tasks.items() if each.task.state.final}
        self._known = (known | batch.tasks.keys()) - ended

    def _sweep(self, engine: Engine) -> None:
        with self._settling(engine) as session:
            unfinished = col(TaskRow.finished_at).is_(None)
            owners = session.exec(select(TaskRow.owner).where(unfinished).distinct()).all()
            gone = [owner for owner in owners if owner != self._owner and self._is_gone(owner)]
            rows = session.exec(select(TaskRow).where(unfinished, col(TaskRow.owner).in_(gone))).all()
            self._settle(session, rows)
            ended = select(TaskRow.id).where(col(TaskRow.finished_at).is_not(None))
            session.exec(delete(OutboxRow).where(col(OutboxRow.task_id).in_(ended)))

    @contextmanager
    def _settling(self, engine: Engine) -> Iterator[Session]:
        """A transaction, committed at its end, that takes up what others left: of a machine one at a time."""
        with Session(engine) as session:
            self._backend.now(session, self._clock, (f"settle {self._naming.machines}",))
            yield session
            session.commit()

    def _settle(self, session: Session, rows: Sequence[TaskRow]) -> dict[str, OutboxRow]:
        """Say of messages that nobody works on any more how they stand.

        Returns:
            The places of those that wait on.
        """
        places = places_of(session, rows)
        followed = followed_in(rows, places)
        last = max((place.rank for place in places.values()), default=0.0)
        for row in sorted(rows, key=lambda each: each.created_at):
            place = places.pop(row.id, None)
            before = standing_of(row, place)
            closed = row.owner == self._naming.owner(NOBODY)
            now = after_end(before, followed=row.id in followed, closed=closed)
            if now != before:
                session.add(put_standing(row, now, self._clock()))
            if now.state.final or now.delivery is DeliveryState.SUBMITTED:
                if place is not None:
                    session.delete(place)
                continue
            last += 1.0
            places[row.id] = place = place or last_place(row, last)
            place.parked, place.entered = now.parked, now.entered
            session.add(place)
        return places


def _addressee(row: TaskRow) -> Addressee:
    return Addressee(row.agent_name, row.called)


def _statements(
    batch: Batch, known: Collection[str], owner: str
) -> Sequence[tuple[UpdateBase, Sequence[dict[str, Any]]]]:
    """What writes a batch, in bulk and past the models: a thread that makes many objects slows the loop.

    Args:
        batch: What is written; its places are not in the file.
        known: Tasks that are in the file.
        owner: Whose tasks they are from then on.
    """
    old = [task_fields(each, owner) for task_id, each in batch.tasks.items() if task_id in known]
    new = [new_task(each, owner) for task_id, each in batch.tasks.items() if task_id not in known]
    places = [place_values(place) for place in batch.places.values() if place is not None]
    steps = [change_values(change) for change in batch.steps()]
    return (
        (update(TaskRow), old),
        (insert(TaskRow), new),
        (insert(OutboxRow), places),
        (insert(ChangeRow), steps),
    )
