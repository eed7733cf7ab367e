"""File safety as the application sees it, driven by the test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from synapse_tui.core.errors import HistoryError
from synapse_tui.core.events import EventBus, FileChanged, HooksChanged, LocksChanged
from synapse_tui.core.locks import ChangeType, FileKeys, Lock, Modification, ModificationQuery
from synapse_tui.core.model import USER
from synapse_tui.hooks.install import Consent

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class FakeSafety:
    """Locks and changes; how often it was looked at them is counted."""

    def __init__(self, events: EventBus, project: Path) -> None:
        self.enabled = False
        self.keys = FileKeys(project)
        self.asks: set[str] = set()
        """Agents whose hooks a person is to be asked for."""
        self.answers: list[tuple[str, Consent]] = []
        self.looks = 0
        self.fail: HistoryError | None = None
        self.waiting: set[str] = set()
        self._events = events
        self._locks: list[Lock] = []
        self._changes: list[Modification] = []

    def unproved(self, agent_id: str) -> bool:
        return agent_id in self.waiting

    async def asks_for_hooks(self, agent_id: str) -> bool:
        asks = agent_id in self.asks
        self.asks.discard(agent_id)
        return asks

    async def answer_for_hooks(self, agent_id: str, answer: Consent) -> Path | None:
        self.answers.append((agent_id, answer))
        return Path("/home/me/.gemini/extensions/synapse") if answer is Consent.YES else None

    async def locks(self) -> Sequence[Lock]:
        self.looks += 1
        if self.fail is not None:
            raise self.fail
        return list(self._locks)

    async def changes(self, query: ModificationQuery) -> Sequence[Modification]:
        wanted = [each for each in self._changes if query.file in ("", each.file)]
        return wanted[::-1][: query.limit]

    async def break_lock(self, file: str) -> Lock | None:
        broken = next((lock for lock in self._locks if lock.file == file), None)
        self.free(file)
        return broken

    async def take_lock(self, file: str) -> Lock | None:
        before = next((lock for lock in self._locks if lock.file == file), None)
        self.free(file)
        self.lock(file, USER.sender_id, seconds=0)
        return before if before is not None and before.agent_id != USER.sender_id else None

    # what happens in a real one by itself

    def lock(self, file: str, agent_id: str, *, intent: str = "", seconds: int = 12) -> Lock:
        since = NOW - timedelta(seconds=seconds)
        until = since + timedelta(minutes=5)
        lock = Lock(len(self._locks) + 1, file, agent_id, "0badcafe-task", intent, since, until, "c")
        self._locks.append(lock)
        self._events.publish(LocksChanged(agent_id))
        return lock

    def free(self, file: str) -> None:
        self._locks = [lock for lock in self._locks if lock.file != file]
        self._events.publish(LocksChanged(""))

    def change(
        self,
        file: str,
        agent_id: str,
        change: ChangeType = ChangeType.MODIFY,
        lines: str = "",
        **about: object,
    ) -> None:
        number = len(self._changes) + 1
        when = NOW - timedelta(minutes=9) + timedelta(minutes=number)
        made = Modification(file, change, agent_id, "t", when, lines, metadata=about, id=number)
        self._changes.append(made)
        self._events.publish(FileChanged(made))

    def heard(self, agent_id: str) -> None:
        self.waiting.discard(agent_id)
        self._events.publish(HooksChanged(agent_id))
