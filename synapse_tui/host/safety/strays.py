"""What passes the hooks: files that a shell command wrote, or a person's `!cmd` in an agent.

The watcher tells that a file was written and not by whom. It was the agent that ran a shell command at that
time, if one alone did; else the one that was at work alone. Where several were, nothing is said of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synapse_tui.errors import HistoryError
from synapse_tui.events import Event, EventBus, FileChanged, Notice
from synapse_tui.file_safety import ChangeType, FileKeys, Lock
from synapse_tui.hooks import HookEvent, HookKind

from .desk import HookDesk
from .keeper import SafetyKeeper
from .project_watch import ProjectWatch, Touches
from .snapshots import Difference
from .tree import Git
from .workers import Worker

log = logging.getLogger(__name__)

SETTLE = 1.0
"""Seconds after which a write that a hook tells of was told."""
GRACE = 0.5
"""Seconds after a shell command within which its last writes are heard of."""
FLOOD = 200
"""More files than this, at once, are one notice: somebody has changed a branch."""
MOST = 20_000
"""How many names are kept meanwhile."""
LONGEST = 30.0
"""Seconds after which a flood is told of though it goes on, and within which another is not told again."""
WARNINGS = 3
"""How many warnings are given at once."""
REMEMBERED = 1000

_ENDS = (HookKind.PROMPT, HookKind.IDLE, HookKind.INTERRUPTED, HookKind.END)


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that was written, and who may have done so.

    Attributes:
        at: When it began, seconds on the loop's clock.
        created: Whether it was made.
        suspects: The agents.
    """

    at: float
    created: bool
    suspects: frozenset[str]


class Shells:
    """Which agents run shell commands."""

    def __init__(self) -> None:
        self._open: dict[str, set[str]] = {}
        self._ended: dict[str, float] = {}

    def hear(self, agent_id: str, event: HookEvent, now: float) -> None:
        """Take an event of an agent's hooks."""
        if event.kind is HookKind.PRE and event.shell:
            self._open.setdefault(agent_id, set()).add(event.call)
        elif event.kind in (HookKind.POST, HookKind.FAILED):
            self._end(agent_id, {event.call}, now)
        elif event.kind in _ENDS:
            self._end(agent_id, self._open.get(agent_id, set()), now)

    def _end(self, agent_id: str, calls: set[str], now: float) -> None:
        ran = self._open.get(agent_id, set())
        if ran & calls:
            self._ended[agent_id] = now
            self._open[agent_id] = ran - calls

    def forget(self, agent_id: str) -> None:
        """The agent is gone."""
        self._open.pop(agent_id, None)
        self._ended.pop(agent_id, None)

    def running(self, now: float) -> frozenset[str]:
        """The agents whose commands run, or have ended just now."""
        ended = {agent_id for agent_id, at in self._ended.items() if now - at <= GRACE}
        return frozenset(ended | {agent_id for agent_id, calls in self._open.items() if calls})


class Strays:
    """Finds writes that no hook told, notes them, and warns where another agent holds the file.

    Args:
        keys: Names the files.
        keeper: The database.
        desk: Notes changes, and knows which writes are under way.
        events: Heard and told.
        at_work: The agents that work at present.
        worker: An agent as it is noted; None for one that is gone.
        native: Whether the kernel is asked to tell.
    """

    def __init__(
        self,
        keys: FileKeys,
        keeper: SafetyKeeper,
        desk: HookDesk,
        events: EventBus,
        *,
        at_work: Callable[[], Iterable[str]],
        worker: Callable[[str], Worker | None],
        native: bool = True,
    ) -> None:
        self._keys = keys
        self._keeper = keeper
        self._desk = desk
        self._events = events
        self._at_work = at_work
        self._worker = worker
        self._native = native
        self._git = Git(keys.project)
        self._shells = Shells()
        self._touched: dict[str, Touched] = {}
        self._missed = False
        self._flooded = float("-inf")
        """When a flood was last told of."""
        self._last = 0.0
        """When something was touched last."""
        self._told: OrderedDict[str, float] = OrderedDict()
        """When hooks last told of a change, by the file's key."""
        self._flushing: asyncio.Task[None] | None = None
        self.watch: ProjectWatch | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    # -- life ---

    def start(self) -> None:
        """Begin to watch; calling it again does nothing."""
        if self.watch is None:
            self._unsubscribe = self._events.subscribe(self._on_event)
            self.watch = ProjectWatch(
                self._keys.project,
                touched=self._on_touched,
                missed=self._on_missed,
                busy=lambda: bool(self._suspects()),
                told=lambda text: self._events.publish(Notice(text, "warning")),
                native=self._native,
            )

    async def stop(self) -> None:
        """Watch no more."""
        self._unsubscribe()
        if self.watch is not None:
            await self.watch.close()
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)

    # -- what is told ---

    def hear(self, agent_id: str, event: HookEvent) -> None:
        """Take an event of an agent's hooks."""
        self._shells.hear(agent_id, event, self._now())

    def forget(self, agent_id: str) -> None:
        """An agent is gone."""
        self._shells.forget(agent_id)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, FileChanged) and not event.modification.metadata.get("suspected"):
            self._told[event.modification.file] = self._now()
            self._told.move_to_end(event.modification.file)
            if len(self._told) > REMEMBERED:
                self._told.popitem(last=False)

    def _suspects(self) -> frozenset[str]:
        """Who may have written something at this moment."""
        return self._shells.running(self._now()) or frozenset(self._at_work())

    def _on_touched(self, touches: Touches) -> None:
        suspects = self._suspects()
        if not suspects:
            return  # a person's own work
        now = self._last = self._now()
        for path, created in touches.items():
            before = self._touched.get(path)
            if before is not None:
                self._touched[path] = Touched(
                    before.at, created or before.created, before.suspects | suspects
                )
            elif len(self._touched) < MOST:
                self._touched[path] = Touched(now, created, suspects)
            else:
                self._missed = True
        self._flush_soon()

    def _on_missed(self) -> None:
        if self._suspects():
            self._missed = True
            self._last = self._now()
            self._flush_soon()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    # -- what comes of it ---

    def _flush_soon(self) -> None:
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.get_running_loop().create_task(self._flush(), name="strays")

    async def _flush(self) -> None:
        while self._touched or self._missed:
            await asyncio.sleep(SETTLE)
            flood = self._missed or len(self._touched) > FLOOD
            if flood:
                await self._ebb()
            self._missed = False
            with contextlib.suppress(HistoryError):  # the keeper has told it
                await self._take(self._due(every=flood), flood=flood)

    async def _ebb(self) -> None:
        """Wait until nothing was touched for a while: a flood is told of once."""
        end = self._now() + LONGEST
        while (wait := min(self._last + SETTLE, end) - self._now()) > 0:  # noqa: ASYNC110 - of silence nobody tells
            await asyncio.sleep(wait)

    def _due(self, *, every: bool) -> dict[str, Touched]:
        """Take what was touched long enough ago for hooks to have told it, or all."""
        latest = float("inf") if every else self._now() - SETTLE
        due = {path: touch for path, touch in self._touched.items() if touch.at <= latest}
        self._touched = {path: touch for path, touch in self._touched.items() if path not in due}
        return due

    async def _take(self, touched: Mapping[str, Touched], *, flood: bool) -> None:
        locks = {lock.file: lock for lock in await self._keeper.ask(lambda store: store.locks())}
        if flood:
            locked = {str(self._keys.path(file)) for file in locks}
            self._tell_flood(touched)
            touched = {path: touch for path, touch in touched.items() if path in locked}
        unknown = await asyncio.to_thread(self._unknown, touched)
        warnings: list[str] = []
        for path, (touch, change) in unknown.items():
            key = self._keys.key(path)
            lock = locks.get(key)
            who = self._who(key, touch, lock)
            if who is not None:
                warnings += await self._note(who, key, change, lock)
        self._warn(warnings)

    def _unknown(self, touched: Mapping[str, Touched]) -> dict[Path, tuple[Touched, ChangeType]]:
        """What was done to files that are worth a note; in a thread."""
        found: dict[Path, tuple[Touched, ChangeType]] = {}
        for path, touch in ((Path(name), touch) for name, touch in touched.items()):
            exists = path.is_file()
            if exists or not (touch.created or path.is_dir()):
                written = ChangeType.CREATE if touch.created else ChangeType.MODIFY
                found[path] = (touch, written if exists else ChangeType.DELETE)
        ignored = self._git.ignored(found) if found else frozenset()
        return {path: each for path, each in found.items() if path not in ignored}

    def _who(self, key: str, touch: Touched, lock: Lock | None) -> Worker | None:
        """The one agent that may have done it; None where hooks have told, or several may have."""
        if self._told.get(key, float("-inf")) >= touch.at - SETTLE:
            return None
        suspects = touch.suspects
        if lock is not None and self._desk.writes(lock.agent_id, key):
            # Its tool would have ended by now if that had been its write, and its own is noted at its end.
            suspects = suspects - {lock.agent_id}
        return self._worker(next(iter(suspects))) if len(suspects) == 1 else None

    async def _note(self, worker: Worker, key: str, change: ChangeType, lock: Lock | None) -> list[str]:
        """Note a change; gives a warning where another holds the file."""
        about: dict[str, object] = {"suspected": True}
        foreign = lock is not None and lock.agent_id != worker.agent_id
        if lock is not None and foreign:
            about["locked_by"] = lock.agent_id
        await self._desk.record(worker, key, Difference(change), about)
        if lock is None or not foreign:
            return []
        return [f"{worker.agent_id} has written {self._keys.shown(key)}, which {lock.agent_id} has locked"]

    def _warn(self, warnings: Sequence[str]) -> None:
        for text in warnings[:WARNINGS]:
            self._events.publish(Notice(text, "warning"))
        if len(warnings) > WARNINGS:
            more = f"so were {len(warnings) - WARNINGS} more locked files: see the recent changes"
            self._events.publish(Notice(more, "warning"))

    def _tell_flood(self, touched: Mapping[str, Touched]) -> None:
        now = self._now()
        again, self._flooded = now - self._flooded < LONGEST, now
        if again:
            return
        suspects = sorted({who for touch in touched.values() for who in touch.suspects})
        count = f"{len(touched)}" if len(touched) < MOST else f"more than {MOST}"
        by = f" while {', '.join(suspects)} worked" if suspects else ""
        self._events.publish(Notice(f"{count} files changed at once{by}: they are not noted one by one"))
