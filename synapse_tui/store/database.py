"""The database of the history; all of it runs in the one writer thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, delete, select

from .aftermath import after_end
from .batch import AgentKey, Batch, Restored
from .engine import BUSY, Alive, is_broken, move_aside, open_engine
from .rows import (
    change_row,
    entry_of,
    outbox_fields,
    outbox_row,
    put_standing,
    standing_of,
    task_fields,
    task_of,
    task_row,
)
from .tables import ChangeRow, OutboxRow, TaskRow

CHUNK = 500
"""How many tasks are removed in one transaction: others wait for the lock meanwhile."""


class Database:
    """Reads and writes the history.

    Args:
        path: The file.
        owner: This process, as `alive` knows it.
        alive: Tells whether the process of an owner still runs.
        clock: The time now, aware.
        busy: Seconds that a lock of another process is waited for.
    """

    def __init__(
        self, path: Path, *, owner: str, alive: Alive, clock: Callable[[], datetime], busy: float = BUSY
    ) -> None:
        self._path = path
        self._owner = owner
        self._alive = alive
        self._clock = clock
        self._busy = busy
        self._engine: Engine | None = None
        self._file: tuple[int, int] | None = None
        self._lost = ""
        """What happened to the file that was there; empty as a rule, and once it was told."""

    def open(self) -> None:
        """Open the file, where it is not, and settle what ended processes left under way."""
        if self._engine is not None and self._identity() == self._file:
            return
        if self._engine is not None:
            self._lost = f"{self._path} was removed"
        self.close()
        engine, moved = open_engine(self._path, busy=self._busy)
        try:
            self._sweep(engine)
        except BaseException:
            engine.dispose()
            raise
        self._engine, self._file = engine, self._identity()
        if moved:
            self._lost = f"{self._path} was no sound database and is {moved} now"

    def write(self, batch: Batch) -> str:
        """Write all of a batch or nothing.

        Returns:
            What happened to the file that was there, since the last batch; empty as a rule.
        """
        self.open()
        try:
            self._write(batch)
        except DBAPIError as error:
            if not is_broken(error):
                raise
            self.close()
            self._lost = f"{self._path} was no sound database and is {move_aside(self._path)} now"
            self.open()
            self._write(batch)
        lost, self._lost = self._lost, ""
        return lost

    def waiting(self, key: AgentKey, but: str) -> list[Restored]:
        """The messages of an agent that still wait from its earlier sessions, in order, ours from now on.

        Args:
            key: The agent.
            but: Context id of its session now.
        """
        self.open()
        with Session(self._engine) as session:
            rows = session.exec(
                select(TaskRow).where(
                    TaskRow.project == key.project,
                    TaskRow.agent_name == key.agent_id,
                    TaskRow.context_id != but,
                    col(TaskRow.finished_at).is_(None),
                )
            ).all()
            places = self._settle(session, rows)
            for row in rows:
                row.owner = self._owner
            found = [
                Restored(task_of(row), entry_of(places[row.id])) for row in rows if row.finished_at is None
            ]
            session.commit()
        return sorted(found, key=lambda each: (each.entry.rank, each.task.created_at))

    def prune(self, before: datetime) -> int:
        """Remove some tasks that ended before a time.

        Returns:
            How many; fewer than `CHUNK` when no more are left.
        """
        self.open()
        with Session(self._engine) as session:
            ended = (
                select(TaskRow.id)
                .where(col(TaskRow.finished_at) < before)
                .order_by(col(TaskRow.finished_at))
                .limit(CHUNK)
            )
            ids = list(session.exec(ended).all())
            session.exec(delete(ChangeRow).where(col(ChangeRow.task_id).in_(ids)))
            session.exec(delete(TaskRow).where(col(TaskRow.id).in_(ids)))
            session.commit()
        return len(ids)

    def close(self) -> None:
        """Close the file."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _identity(self) -> tuple[int, int] | None:
        """Which file has the path: one that was removed would be written to and found by nobody."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _write(self, batch: Batch) -> None:
        if not batch:
            return
        with Session(self._engine) as session:
            for task_id, snapshot in batch.tasks.items():
                row = session.get(TaskRow, task_id)
                if row is None:
                    session.add(task_row(snapshot, self._owner))
                else:
                    row.sqlmodel_update(task_fields(snapshot, self._owner))
            for task_id, place in batch.places.items():
                waiting = session.get(OutboxRow, task_id)
                if place is None and waiting is not None:
                    session.delete(waiting)
                elif place is not None and waiting is not None:
                    waiting.sqlmodel_update(outbox_fields(place.entry))
                elif place is not None:
                    session.add(outbox_row(place))
            session.add_all([change_row(change) for change in batch.steps()])
            session.commit()

    def _sweep(self, engine: Engine) -> None:
        with Session(engine) as session:
            unfinished = col(TaskRow.finished_at).is_(None)
            owners = session.exec(select(TaskRow.owner).where(unfinished).distinct()).all()
            gone = [owner for owner in owners if owner != self._owner and not self._alive(owner)]
            rows = session.exec(select(TaskRow).where(unfinished, col(TaskRow.owner).in_(gone))).all()
            self._settle(session, rows)
            ended = select(TaskRow.id).where(col(TaskRow.finished_at).is_not(None))
            session.exec(delete(OutboxRow).where(col(OutboxRow.task_id).in_(ended)))
            session.commit()

    def _settle(self, session: Session, rows: Sequence[TaskRow]) -> dict[str, OutboxRow]:
        """Say of messages that nobody works on any more how they stand.

        Returns:
            The places of those that wait on.
        """
        places = _places(session, rows)
        last = max((place.rank for place in places.values()), default=0.0)
        for row in sorted(rows, key=lambda each: each.created_at):
            place = places.pop(row.id, None)
            before = standing_of(row, place)
            now = after_end(before)
            if now != before:
                session.add(put_standing(row, now, self._clock()))
            if now.state.final:
                if place is not None:
                    session.delete(place)
                continue
            last += 1.0
            places[row.id] = place = place or _last_place(row, last)
            place.parked, place.entered = now.parked, now.entered
            session.add(place)
        return places


def _places(session: Session, rows: Sequence[TaskRow]) -> dict[str, OutboxRow]:
    ids = [row.id for row in rows]
    found = session.exec(select(OutboxRow).where(col(OutboxRow.task_id).in_(ids))).all()
    return {place.task_id: place for place in found}


def _last_place(row: TaskRow, rank: float) -> OutboxRow:
    """The place of a message whose task was written, and its place not any more."""
    return OutboxRow(
        task_id=row.id,
        project=row.project,
        agent_name=row.agent_name,
        rank=rank,
        parked=False,
        urgent=False,
        entered=False,
        prompt=False,
    )
