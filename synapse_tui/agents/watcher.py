"""Watches one agent's task: keeps it open after its turns, and nudges an idle agent.

An unattended agent often stops in the middle of a long job. While a watch is on, the end of a turn does not
complete its task: it stays `working` until the agent reports that it is done (`synapse reply`), its answer
matches, a user cancels it, or the watch gives up. A nudge is an ordinary message in the outbox; its turn
belongs to the watched task.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from synapse_tui.core.errors import AgentExited, MessageError, NotWatched, SynapseError
from synapse_tui.core.events import (
    AgentAdded,
    AgentProcessExited,
    AgentRemoved,
    Event,
    EventBus,
    Notice,
    TaskChanged,
    WatchChanged,
)
from synapse_tui.core.model import (
    WATCHED_WORK,
    AgentState,
    DeliveryState,
    MessageRequest,
    Parked,
    Sender,
    StateReport,
    Task,
    TaskState,
)
from synapse_tui.messages.outbox import BEING_TYPED, Outbox
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.tasks import TaskStore, is_asked
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.language import tr

from .answers import AnswerCollector
from .console import Pulse
from .delivery.gate import AgentTerminal, Hold, dialog_open, why_held
from .keyboard import Keyboard
from .profiles.profile import Profile
from .turns import TurnTracker
from .watch import (
    Do,
    Observation,
    Watch,
    WatchOrder,
    WatchReport,
    WatchState,
    WatchStep,
    check_order,
    nudges_text,
)

if TYPE_CHECKING:
    from .session import AgentSession

log = logging.getLogger(__name__)

_COUNTS = ("sent", "helped", "in_vain")


def watch_to_json(watch: Watch) -> dict[str, Any]:
    return {
        "order": dataclasses.asdict(watch.order),
        "task_id": watch.task_id,
        "nudge_id": watch.nudge_id,
        "steps": [{"number": s.number, "at": s.at.isoformat(), "text": s.text} for s in watch.steps],
        "state": watch.state.value,
        **{name: getattr(watch, name) for name in _COUNTS},
    }


def watch_from_json(content: Mapping[str, Any], time: Callable[[], datetime]) -> Watch:
    order = dict(content["order"])
    order["by"] = Sender(**order["by"])
    watch = Watch(WatchOrder(**order), str(content["task_id"]), time, nudge_id=str(content["nudge_id"]))
    watch.version = int(content.get("version", 0))
    watch.last_is_judged()
    for name in _COUNTS:
        setattr(watch, name, int(content[name]))
    for step in content["steps"]:
        watch.steps.append(
            WatchStep(int(step["number"]), datetime.fromisoformat(step["at"]), str(step["text"]))
        )
    return watch


SOON = 1.0  # seconds until a composer that is briefly invisible is checked again


@dataclass(frozen=True, slots=True)
class WatchedProcess:
    view: AgentTerminal
    keyboard: Keyboard
    turns: TurnTracker
    collector: Callable[[str], AnswerCollector]

    @property
    def report(self) -> StateReport:
        return self.view.report

    @property
    def busy(self) -> bool:
        return self.report.state in (AgentState.PROCESSING, AgentState.WAITING)


def see(post: WatchedProcess, profile: Profile, outbox: Outbox, nudge: Task | None) -> Observation:
    now, works = post.view.now(), post.report.state is AgentState.PROCESSING
    if nudge is not None and outbox.is_parked(nudge.id):
        return Observation(now, f"the nudge is held: {nudge.reason}", works=works, asks=True)
    typed = nudge is not None and nudge.delivery in BEING_TYPED
    held = why_held(post.view, post.keyboard, profile)
    if held is not None and Reason.of(held.reason) in (Reason.NO_COMPOSER, Reason.UNSTEADY):
        return Observation(now, works=works, typed=typed, soon=held.seconds or SOON)
    words = _held_text(post, held) or _others_text(outbox, nudge) or _turn_text(post)
    asks = post.report.state is AgentState.WAITING
    soon = held.seconds if held is not None and held.seconds is not None else 0.0
    return Observation(now, words, works=works, asks=asks, dialog=asks, typed=typed, soon=soon)


def _held_text(post: WatchedProcess, held: Hold | None) -> str:
    if held is None:
        return ""
    return (post.report.detail or held.reason) if dialog_open(post.view) else held.reason


def _others_text(outbox: Outbox, nudge: Task | None) -> str:
    own = nudge.id if nudge is not None else ""
    others = sum(task.id != own and not outbox.is_unread(task.id) for task in outbox)
    return f"{others} message{'s wait' if others > 1 else ' waits'} to be typed" if others else ""


def _turn_text(post: WatchedProcess) -> str:
    return "working" if post.turns.running else ""


AT_KEYBOARD = "(what was begun at the keyboard)"
AT_REST = "(what it does next)"
LAST_TURN = 10.0  # seconds; a message that ended so long before the agent's state was not its last turn


def named_task(tasks: TaskStore, outbox: Outbox, post: WatchedProcess, task_id: str) -> Task:
    """Return an open task of that agent by id."""
    task = tasks.get(task_id)
    if task.state.final:
        raise MessageError(
            f"task {task.short_id} has ended: {task.state}",
            "leave the task out, to watch the agent's next turn",
        )
    if task.outgoing or (task.id not in outbox and post.turns.running != task.id):
        raise MessageError(f"{task.target} does not work on task {task.short_id}", "name another, or none")
    return task


def usual_task(tasks: TaskStore, outbox: Outbox, post: WatchedProcess, by: Sender) -> Task:
    """Return the running task, else the newest queued, else one that goes on from the last answered."""
    running = tasks.get(post.turns.running) if post.turns.running else None
    if running is not None and not running.instructs:
        return running
    if running is None and post.busy:
        return _joined(tasks, post, by)
    waiting = [task for task in outbox if not task.instructs and not outbox.is_unread(task.id)]
    if waiting:
        return max(waiting, key=lambda task: task.created_at)
    ended = next(filter(_was_answered, tasks.newest()), None)
    rests = post.view.now() - post.report.since
    if ended is None or tasks.age(ended) > rests + LAST_TURN:  # it has done something else since
        return _made(tasks, by, tr(AT_REST), {})
    # An ended task never works again (A2A 3.4.1), so a new one refers to it.
    text = ended.text if "reference_task" in ended.metadata else tr(f"(goes on with: {ended.text})")
    task = _made(tasks, by, text, {"reference_task": ended.id})
    return tasks.change(task.id, artifacts=ended.artifacts)


def _was_answered(task: Task) -> bool:
    """Whether the agent has worked on it, which it has not on a message that was canceled while it waited."""
    return bool(task.state.final and task.artifacts) and not (task.outgoing or task.instructs)


def _joined(tasks: TaskStore, post: WatchedProcess, by: Sender) -> Task:
    task = _made(tasks, by, tr(AT_KEYBOARD), {})
    post.turns.join(task, post.collector(AT_KEYBOARD), post.report)
    return tasks.get(task.id)


def _made(tasks: TaskStore, by: Sender, text: str, metadata: Mapping[str, object]) -> Task:
    about = MappingProxyType({"kind": WATCHED_WORK, **metadata})
    task = tasks.create(MessageRequest(text, by, metadata=about))
    return tasks.change(task.id, state=TaskState.WORKING, delivery=DeliveryState.SUBMITTED, reason="watched")


SEARCH_TIMEOUT = 5.0  # timeout of a search in seconds, including the start of the process
MAX_TEXT = 200_000  # number of last characters that are searched
_NO_MATCH = 3  # exit status; Python's own errors exit with 1 or 2
_PROGRAM = f"""
import json, re, sys
pattern, text = json.load(sys.stdin)
sys.exit(0 if re.search(pattern, text, re.MULTILINE) else {_NO_MATCH})
"""


async def matches(pattern: str, text: str, seconds: float = SEARCH_TIMEOUT) -> bool | None:
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            _PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        log.warning("no process to search in: %s", error)
        return None
    try:
        async with asyncio.timeout(seconds):
            await process.communicate(json.dumps([pattern, text[-MAX_TEXT:]]).encode())
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return {0: True, _NO_MATCH: False}.get(process.returncode or 0)


NOT_RESTORED = "the agent was not restored"
_ENDS = {
    TaskState.COMPLETED: WatchState.DONE,
    TaskState.CANCELED: WatchState.CANCELED,
}


class Watcher:
    def __init__(  # noqa: PLR0913 - what a session is made of
        self,
        agent_id: str,
        profile: Profile,
        *,
        tasks: TaskStore,
        outbox: Outbox,
        events: EventBus,
        accept: Callable[[MessageRequest], Task],
        cancel: Callable[[str], Awaitable[Task]],
        wake: Callable[[], None],
        time: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._agent_id = agent_id
        self.profile = profile
        self._tasks = tasks
        self._outbox = outbox
        self._events = events
        self._accept = accept
        self._cancel = cancel
        self._wake = wake
        self._time = time
        self._post: WatchedProcess | None = None
        self._watch: Watch | None = None
        self._version = 0
        self._told = -1
        self._noted: Mapping[str, Any] = {}
        self._searched: tuple[str, ...] = ()  # texts of the task at the last search
        self._news = Pulse()
        self._woken = False

    # -- queries ---

    @property
    def on(self) -> bool:
        return self._watch is not None and self._watch.on

    @property
    def task_id(self) -> str:
        return self._watch.task_id if self._watch is not None and self._watch.on else ""

    @property
    def report(self) -> WatchReport | None:
        return self._watch.report(self._agent_id, self._now()) if self._watch is not None else None

    async def news(self, seen: int, seconds: float) -> WatchReport | None:
        report = self.report
        if report is not None and report.on and report.version == seen:
            await self._news.wait(seconds)
        return self.report

    def begin(self, order: WatchOrder) -> WatchReport:
        check_order(order)
        if self._post is None or not self._post.view.alive:
            raise AgentExited(f"{self._agent_id} has ended", "restart it in its pane, then try again")
        post = self._post
        if self._watch is not None and self._watch.on:
            raise MessageError(
                f"{self._agent_id} is watched already", "end that first: synapse watch AGENT --stop"
            )
        if not self.profile.receives:
            raise MessageError(f"{self._agent_id} takes no messages", "watch an agent")
        if order.task:
            task = named_task(self._tasks, self._outbox, post, order.task)
        else:
            task = usual_task(self._tasks, self._outbox, post, order.by)
        before = self._watch.version if self._watch is not None else 0
        self._watch = Watch(order, task.id, self._time, version=before)
        self._searched = ()
        self._watch.note(f"watched: task {task.short_id}; {order.terms}")
        return self._tell()

    def stop(self, reason: str = "stopped") -> WatchReport:
        """End the watch; the task continues without it, or ends with the agent's last answer."""
        if self._watch is None or not self._watch.on:
            raise NotWatched(f"{self._agent_id} is not watched", "begin with: synapse watch AGENT")
        watch = self._watch
        watch.end(WatchState.STOPPED, reason, self._now())
        self._close(watch, f"the watch was {reason}")  # Reason.WATCH_STOPPED
        return self._tell()

    def ended(self, reason: str) -> None:
        if self._watch is None or not self._watch.on:
            return
        watch = self._watch
        watch.end(WatchState.FAILED, reason, self._now())
        self._close(watch, reason, TaskState.FAILED)
        self._tell()

    # -- follow_ups.Watch ---

    def attach(self, post: WatchedProcess) -> None:
        self._post = post

    def begun(self, task: Task) -> None:
        watch = self._watch
        if watch is not None and watch.on and task.id == watch.nudge_id:
            watch.nudged()
            self._tell()

    def keeps(self, task_id: str) -> str:
        """Describe why a task stays open after its turn; empty if it ends with it."""
        watch = self._watch
        return watch.words if watch is not None and watch.on and watch.task_id == task_id else ""

    # -- watchdog ---

    def wake(self) -> None:
        self._woken = True
        self._wake()

    async def changed(self, seconds: float | None) -> None:
        woken, self._woken = self._woken, False
        if not woken and self._post is not None:
            await self._post.view.changed(seconds)
            self._woken = False

    async def step(self) -> float | None:
        watch, post = self._watch, self._post
        if watch is None or not watch.on or post is None:
            return None
        wait = await self._step(watch, post)
        if watch.version != self._told:
            self._tell()
        return wait

    async def _step(self, watch: Watch, post: WatchedProcess) -> float | None:
        task = self._task(watch)
        if task is None or task.state.final:
            self._over(watch, task)
            return None
        if watch.nudge_id and watch.nudge_id not in self._outbox:
            watch.withdrawn(by_person=True)
        if await self._matched(watch, task):
            return 0.0
        verdict = watch.look(self._sight(watch, post))
        match verdict.do:
            case Do.NUDGE:
                self._nudge(watch, task)
            case Do.WITHDRAW:
                await self._cancel(watch.nudge_id)
                if watch.nudge_id and watch.nudge_id not in self._outbox:  # else it was typed meanwhile
                    watch.withdrawn(by_person=False)
            case Do.GIVE_UP:
                self._give_up(watch, verdict.reason)
            case Do.WAIT:
                return verdict.seconds
        return 0.0

    def _sight(self, watch: Watch, post: WatchedProcess) -> Observation:
        nudge = self._tasks.get(watch.nudge_id) if watch.nudge_id else None
        seen = see(post, self.profile, self._outbox, nudge)
        task = self._task(watch)
        if seen.hold or task is None or not is_asked(task):
            return seen
        return replace(seen, hold="its question waits for an answer")

    def _nudge(self, watch: Watch, task: Task) -> None:
        about = {"nudge": watch.sent + 1, "reference_task": task.id}
        request = MessageRequest(
            watch.order.text, watch.order.by, metadata=MappingProxyType(about), follows=task.id
        )
        try:
            nudge = self._accept(request)
        except SynapseError as error:
            self._give_up(watch, error.message)
            return
        watch.asked(nudge.id)

    async def _matched(self, watch: Watch, task: Task) -> bool:
        texts = tuple(artifact.text for artifact in task.artifacts)
        if not watch.order.until or not texts or texts == self._searched:
            return False
        self._searched = texts
        found = await matches(watch.order.until, texts[-1])
        if found is None:
            watch.note("the pattern could not be looked for: it took too long")
        if not found or self._task(watch) is None or not watch.on:
            return False
        watch.end(WatchState.DONE, f"done: the answer matched '{watch.order.until}'", self._now())
        self._close(watch, "")
        self._notice(f"{WatchState.DONE.value} after {nudges_text(watch.sent)}", "information")
        return True

    # -- end of a watch ---

    def _give_up(self, watch: Watch, reason: str) -> None:
        watch.end(WatchState.GAVE_UP, f"gave up: {reason}", self._now())
        self._close(watch, f"the watch gave up: {reason}")
        self._notice(f"gave up: {reason}", "warning")

    def _over(self, watch: Watch, task: Task | None) -> None:
        state = _ENDS.get(task.state, WatchState.FAILED) if task is not None else WatchState.FAILED
        why = "the agent said so" if task is not None and task.replied else task.reason if task else ""
        reason = f": {why}" if why else ""
        watch.end(state, f"{state.value}{reason}", self._now())
        level: Literal["information", "warning"] = "information" if state is WatchState.DONE else "warning"
        after = nudges_text(watch.sent)
        self._notice(f"{state.value} after {after}: {why}" if why else f"{state.value} after {after}", level)

    def _close(self, watch: Watch, reason: str, state: TaskState = TaskState.COMPLETED) -> None:
        task = self._task(watch)
        if task is not None and not task.state.final and not self._goes_on(watch, task):
            delivery = DeliveryState.DONE if state is TaskState.COMPLETED else DeliveryState.FAILED
            self._tasks.change(task.id, state=state, delivery=delivery, reason=reason)
        self._drop(watch.nudge_id)

    def _goes_on(self, watch: Watch, task: Task) -> bool:
        running = self._post is not None and self._post.turns.running == task.id
        followed = any(each.follows == task.id and each.id != watch.nudge_id for each in self._outbox)
        return running or followed or is_asked(task) or task.id in self._outbox

    def _drop(self, nudge_id: str) -> None:
        if nudge_id not in self._outbox:
            return
        if self._outbox.entry(nudge_id).hold not in (Parked.NO, Parked.RECOVERED):
            return  # a person decides
        if self._tasks.get(nudge_id).delivery not in BEING_TYPED:
            self._outbox.cancel(nudge_id, "the watch is over")

    # -- the next host ---

    def state(self) -> dict[str, Any]:
        """Return the active watch for a handover; the end of a turn may not wait for the history."""
        if self._watch is None or not self._watch.on:
            return {}
        return watch_to_json(self._watch) | {"version": self._watch.version}

    def note(self) -> None:
        if self._watch is not None:
            self._noted = watch_to_json(self._watch)
            self._tasks.journal.watch(self._noted)

    def restore(self, saved: Mapping[str, Any], *, goes_on: bool) -> None:
        """Continue the watch of a host that was killed; end it if the agent is not its former one."""
        if self.on:  # begun meanwhile
            self._tasks.change(
                str(saved["task_id"]),
                state=TaskState.FAILED,
                delivery=DeliveryState.FAILED,
                reason=Reason.HOST_ENDED,
            )
            return
        self.resume(saved)
        watch = self._watch
        if watch is None:
            return
        if watch.nudge_id not in self._outbox:  # it was taken back just before
            watch.nudge_id = ""
        if goes_on:
            watch.note("continues after its host ended")
            self._tell()
        else:
            self.ended(NOT_RESTORED)
            self._notice(f"ended: {NOT_RESTORED}", "warning")

    def resume(self, state: Mapping[str, Any]) -> None:
        if not state:
            return
        try:
            self._watch = watch_from_json(state, self._time)
        except (KeyError, TypeError, ValueError) as error:
            log.warning("a watch cannot be understood: %r", error, extra={"agent_id": self._agent_id})

    # -- helpers ---

    def _task(self, watch: Watch) -> Task | None:
        return self._tasks.get(watch.task_id) if watch.task_id in self._tasks else None

    def _now(self) -> float:
        return self._post.view.now() if self._post is not None else 0.0

    def _notice(self, text: str, level: Literal["information", "warning"]) -> None:
        self._events.publish(Notice(f"watch over {self._agent_id}: {text}", level, self._agent_id))

    def _tell(self) -> WatchReport:
        assert self._watch is not None
        self._told = self._watch.version
        if watch_to_json(self._watch) != self._noted:
            self.note()
        report = self._watch.report(self._agent_id, self._now())
        self._events.publish(WatchChanged(self._agent_id, report.on))
        self._news.fire()
        return report


RETRY = 5.0
"""Seconds after which a failed watch is retried."""


class Watchdog:
    """Runs one asyncio task per active watch."""

    def __init__(self, agents: Mapping[str, AgentSession], events: EventBus) -> None:
        self._agents = agents
        self._watched: dict[str, tuple[AgentSession, asyncio.Task[None]]] = {}
        kinds = (AgentAdded, WatchChanged, TaskChanged, AgentProcessExited, AgentRemoved)
        self._unsubscribe = events.subscribe(self._heard, *kinds)

    async def stop(self) -> None:
        """Stop watching; watches stay active for a host that takes over."""
        self._unsubscribe()
        tasks = [task for _, task in self._watched.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _heard(self, event: Event) -> None:
        match event:
            case AgentAdded(agent_id) | WatchChanged(agent_id, on=True):
                self._begin(agent_id)
            case WatchChanged(agent_id):
                self._wake(agent_id)
            case TaskChanged(task):
                self._wake(task.target)
            case AgentProcessExited(agent_id) | AgentRemoved(agent_id):
                if agent_id in self._watched:  # a closed agent is already removed from the agents
                    self._watched[agent_id][0].watcher.ended(Reason.AGENT_EXITED)

    def _begin(self, agent_id: str) -> None:
        session = self._agents.get(agent_id)
        if session is None or not session.watcher.on or agent_id in self._watched:
            return
        task = asyncio.get_running_loop().create_task(self._watch(session), name=f"watch-{agent_id}")
        self._watched[agent_id] = session, task

    def _wake(self, agent_id: str) -> None:
        if agent_id in self._watched:
            self._watched[agent_id][0].watcher.wake()

    async def _watch(self, session: AgentSession) -> None:
        watcher = session.watcher
        try:
            while watcher.on:
                try:
                    seconds = await watcher.step()
                except Exception:
                    log.exception("watch failed", extra={"agent_id": session.agent_id})
                    seconds = RETRY
                if seconds != 0:
                    await watcher.changed(seconds)
        finally:
            del self._watched[session.agent_id]
