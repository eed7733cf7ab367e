"""A host and sessions that own no process: what the application sees of the real ones, driven by the test."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from synapse_tui.agents.composer import ComposerReading
from synapse_tui.agents.composer_box import Box
from synapse_tui.agents.delivery.answering import AnswerOutcome
from synapse_tui.agents.delivery.gate import Explanation
from synapse_tui.agents.dialogs import AgentDialog
from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.state import Timeline
from synapse_tui.agents.watch import Watch, WatchOrder, WatchReport, WatchState, check_order
from synapse_tui.core.addresses import Address, check_name, receivers, resolve
from synapse_tui.core.content import Artifact
from synapse_tui.core.errors import AgentNotFound, CommandNotFound, ConfigError
from synapse_tui.core.events import (
    AgentAdded,
    AgentProcessExited,
    AgentRemoved,
    AgentRenamed,
    AgentStateChanged,
    EventBus,
    PeersChanged,
    TaskChanged,
    WatchChanged,
)
from synapse_tui.core.model import (
    USER,
    AgentSpec,
    AgentState,
    DeliveryState,
    ExitStatus,
    OutboxEntry,
    Sender,
    StateReport,
    Task,
    TaskState,
)
from synapse_tui.host.routing import Receipt
from synapse_tui.messages.outbox import WaitingMessage
from synapse_tui.messages.reasons import Reason
from synapse_tui.messages.records import Change
from synapse_tui.system.paths import UserPaths
from synapse_tui.terminal import Terminal
from synapse_tui.terminal.style import Rgb
from tests.ui.external_fakes import FakeExternals
from tests.ui.history_fakes import FakeHistory
from tests.ui.safety_fakes import FakeSafety

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""The fakes' time of day."""


def fake_profiles() -> ProfileSet:
    made = [
        Profile(
            "claude",
            "Claude Code",
            "claude",
            ("claudecode",),
            description="Anthropic's agent",
            ports=(8100, 8109),
        ),
        Profile("codex", "Codex", "codex", description="OpenAI's agent", ports=(8120, 8129)),
        Profile("gemini", "Gemini", "gemini", description="Google's agent", ports=(8110, 8119)),
        Profile(
            "copilot", "Copilot", "copilot", install="npm install -g @github/copilot", ports=(8140, 8149)
        ),
        Profile("opencode", "opencode", "opencode", ports=(8130, 8139)),
        Profile(
            "dummy", "Dummy", "synapse", description="a scripted agent to try things with", ports=(8190, 8199)
        ),
        Profile("shell", "Shell", "sh", description="a plain shell beside the agents", receives=False),
    ]
    return ProfileSet({profile.name: profile for profile in made})


def find_command(command: str) -> str | None:
    return None if command in ("copilot", "opencode") else f"/usr/bin/{command}"


class FakeControl:
    """Holds and releases, and remembers it."""

    def __init__(self, host: FakeHost, outbox: FakeOutbox) -> None:
        self._host = host
        self._outbox = outbox
        self.allowed = False

    def allow(self) -> None:
        self.allowed = True

    def hold(self, task_id: str) -> Task:
        self._outbox.parked.add(task_id)
        return self._host.change(task_id, delivery=DeliveryState.HELD, reason="held by you")

    def release(self, task_id: str) -> Task:
        self._outbox.parked.discard(task_id)
        return self._host.change(task_id, delivery=DeliveryState.QUEUED, reason="")

    def send_now(self, task_id: str) -> None:
        self._outbox.sent_now.append(task_id)

    def waiting(self) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(task=SimpleNamespace(id=task_id), position=position)
            for position, task_id in enumerate(self._outbox.waiting, 1)
            if not self._outbox.is_unread(task_id)
        ]

    def unread(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(task=task) for task in self._host.tasks if self._outbox.is_unread(task.id)]

    def every(self) -> list[SimpleNamespace]:
        return [*self.waiting(), *self.unread()]

    def find(self, task_id: str) -> SimpleNamespace:
        return SimpleNamespace(position=self._outbox.waiting.index(task_id) + 1)

    def move(self, task_id: str, position: int) -> None:
        self._outbox.waiting.remove(task_id)
        self._outbox.waiting.insert(position - 1, task_id)

    def release_all(self) -> list[Task]:
        return [self.release(task_id) for task_id in sorted(self._outbox.parked)]


class FakeOutbox:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.parked: set[str] = set()
        self.unread: set[str] = set()
        self.sent_now: list[str] = []

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def head(self) -> str | None:
        return next((task_id for task_id in self.waiting if task_id not in self.parked), None)

    def ahead(self, priority: int) -> int:
        """All wait with the usual priority."""
        return sum(task_id not in self.parked for task_id in self.waiting) if priority <= 3 else 0

    def is_parked(self, task_id: str) -> bool:
        return task_id in self.parked

    def is_unread(self, task_id: str) -> bool:
        return task_id in self.unread

    def __contains__(self, task_id: str) -> bool:
        return task_id in self.waiting


class FakeWatcher:
    """Begins and ends watches; the test says what happens under them."""

    def __init__(self, host: FakeHost, agent_id: str) -> None:
        self._host = host
        self._agent_id = agent_id
        self._watch: Watch | None = None

    @property
    def on(self) -> bool:
        return self._watch is not None and self._watch.on

    @property
    def watch(self) -> Watch:
        assert self._watch is not None
        return self._watch

    @property
    def report(self) -> WatchReport | None:
        return self._watch.report(self._agent_id, self._host.clock()) if self._watch is not None else None

    def begin(self, order: WatchOrder) -> WatchReport:
        check_order(order)
        self._watch = Watch(order, "0badcafe-0000-4000-8000-000000000000", self._host.now)
        self._watch.note(f"watched: {order.terms}")
        return self.tell()

    def stop(self, reason: str) -> WatchReport:
        return self.end(WatchState.STOPPED, reason)

    def end(self, state: WatchState, reason: str) -> WatchReport:
        self.watch.end(state, reason, self._host.clock())
        return self.tell()

    def tell(self) -> WatchReport:
        self._host.events.publish(WatchChanged(self._agent_id, self.on))
        assert self.report is not None
        return self.report


class FakeTasks(list[Task]):
    """The tasks of a session, oldest first."""

    def unfinished(self) -> list[Task]:
        return [task for task in self if not task.state.final]

    def finished(self) -> list[Task]:
        return sorted(
            (task for task in self if task.state.final), key=lambda task: task.updated_at, reverse=True
        )


class FakeSession:
    """A session whose terminal shows what the test feeds it."""

    def __init__(
        self, host: FakeHost, profile: Profile, spec: AgentSpec, port: int, columns: int, lines: int
    ) -> None:
        self._host = host
        self.profile = profile
        self.agent_type = profile.name
        self.name = spec.name
        self.port = port
        self.agent_id = f"synapse-{profile.name}-{port}"
        self.endpoint = f"http://127.0.0.1:{port}"
        self.cwd = spec.cwd or host.folder
        self.spec = spec
        self.opened_by = spec.opened_by
        self.present_spec = spec
        self.terminal = Terminal(columns, lines)
        self.outbox = FakeOutbox()
        self.control = FakeControl(host, self.outbox)
        self.watcher = FakeWatcher(host, self.agent_id)
        self.exit: ExitStatus | None = None
        self.unseen = False
        self.pid = 4242
        self.damage_listener: Callable[[], None] | None = None
        self.report = StateReport(AgentState.STARTING, "start", "", host.clock(), "")
        self.timeline = Timeline(today=lambda: host.now() + timedelta(seconds=host.clock()))
        self.timeline.add(self.report, host.clock())
        self.typed = bytearray()
        self.focused = False
        self.composer = False
        """Whether a composer is on the screen, so that mentions are taken."""
        self.box: Box | None = None
        self.draft = ""
        self.sizes: list[tuple[int, int]] = []
        self.tasks = FakeTasks()
        self.dialog: AgentDialog | None = None
        self.tokens: int | None = None

    def list_tasks(self) -> list[Task]:
        return list(self.tasks)

    def set_colors(self, *colors: Rgb | None, dark: bool | None) -> None:
        self.terminal.set_colors(*colors, dark=dark)

    def explain(self) -> Explanation:
        waiting = [task for task in self.tasks if task.delivery in (DeliveryState.QUEUED, DeliveryState.HELD)]
        typed = [task for task in waiting if task.reason != Reason.IN_INBOX]
        running = [task for task in self.tasks if task.state is TaskState.WORKING]
        now = self._host.clock()
        return Explanation(
            self.report,
            self.timeline.since(),
            now - self.report.since,
            self.timeline.past(now),
            [WaitingMessage(task, OutboxEntry(task.id, 0.0), at) for at, task in enumerate(typed, 1)],
            len(waiting) - len(typed),
            running[-1] if running else None,
        )

    def feed(self, text: str) -> None:
        self.terminal.feed(text.encode())
        if self.damage_listener is not None:
            self.damage_listener()

    def user_input(self, data: bytes) -> None:
        self.typed += data

    def resize(self, columns: int, lines: int) -> None:
        self.sizes.append((columns, lines))
        self.terminal.resize(columns, lines)

    def go_on(self) -> bool:
        suspended = self.report.state is AgentState.SUSPENDED
        if suspended:
            self.become(AgentState.READY)
        return suspended

    def reset_terminal(self) -> None:
        self.terminal.reset_modes()
        if self.damage_listener is not None:
            self.damage_listener()

    def charge(self, seconds: float) -> None:
        pass

    def seen(self) -> None:
        self.unseen = False

    def focus(self, focused: bool) -> None:
        self.focused = focused
        if focused:
            self.unseen = False

    def reading(self) -> ComposerReading:
        return ComposerReading(self.composer, self.draft, box=self.box)

    @property
    def resting(self) -> bool:
        return self.composer and not self.draft and self.report.state is AgentState.READY

    def become(
        self,
        state: AgentState,
        detail: str = "",
        *,
        rule: str = "test",
        matched: str = "",
        unseen: bool = False,
    ) -> None:
        previous = self.report
        self.report = StateReport(state, rule, matched or detail, self._host.clock(), detail)
        self.timeline.add(self.report, self._host.clock())
        self.unseen = unseen
        self._host.events.publish(AgentStateChanged(self.agent_id, self.report, previous))

    def end(self, status: ExitStatus) -> None:
        self.exit = status
        self._host.events.publish(AgentProcessExited(self.agent_id, status))


class FakeSettings:
    """Settings with their defaults, some of them changed."""

    def __init__(self, **values: object) -> None:
        self._values: dict[str, object] = {
            "tui.leader": "ctrl+]",
            "tui.sidebar": False,
            "tui.tour": True,
            "tui.layout": "tabs",
            "tui.board": 0,
            "env.SYNAPSE_HISTORY_ENABLED": True,
            "tui.keys": {},
            "tui.theme": "auto",
            "tui.signs": "auto",
            "tui.notifications": "bell",
            "tui.quiet_hours": "",
            "a2a.flow": "auto",
        } | values
        self._changed = frozenset(values)

    @property
    def values(self) -> dict[str, object]:
        return self._values

    def text(self, key: str) -> str:
        return str(self._values[key])

    def flag(self, key: str) -> bool:
        return bool(self._values[key])

    def number(self, key: str) -> int:
        value = self._values[key]
        assert isinstance(value, int)
        return value

    def is_default(self, key: str) -> bool:
        return key not in self._changed

    def table(self, key: str) -> Mapping[str, object]:
        value = self._values[key]
        assert isinstance(value, Mapping)
        return value


class FakeHost:
    """A host with the face of the real one; every call is remembered in `calls`."""

    def __init__(
        self,
        *,
        profiles: ProfileSet | None = None,
        now: Callable[[], datetime] = lambda: NOW,
        **settings: object,
    ) -> None:
        self.project = Path("/home/me/code/parser")
        self.folder = self.project
        self.paths = UserPaths(Path("/home/me"))
        self.profiles = profiles or fake_profiles()
        self.settings = FakeSettings(**settings)
        self.events = EventBus()
        self.agents: dict[str, FakeSession] = {}
        self._ended: list[Task] = []  # of agents that were closed
        self._closed: list[AgentSpec] = []
        self.peers: list[Address] = []
        self.calls: list[tuple[object, ...]] = []
        self.steps: dict[str, list[Change]] = {}
        """What the history tells of a message, by its task."""
        self.fail: dict[str, Exception] = {}
        """Error that a call raises, by its name."""
        self.now = now
        self._ports = {
            name: itertools.count(profile.ports[0]) for name, profile in self.profiles.profiles.items()
        }
        self._ids = itertools.count(1)
        self.outcome = AnswerOutcome(closed=True, answered=True)
        """What becomes of answers to dialogs."""
        self.instructions = SimpleNamespace(send=self._instruct)
        self.clock: Callable[[], float] = lambda: 0.0
        self.externals = FakeExternals(self)
        self.safety = FakeSafety(self.events, self.project)
        self.history = FakeHistory(self.project)

    @property
    def tasks(self) -> list[Task]:
        every = [task for session in self.agents.values() for task in session.tasks]
        every += (*self.externals.tasks, *self._ended)
        return sorted(every, key=lambda task: task.created_at)

    def task(self, task_id: str) -> Task | None:
        return next((task for task in self.tasks if task.id == task_id), None)

    def load_servers(self) -> None:
        self.calls.append(("load_servers",))

    async def _instruct(self, agent_id: str) -> Task:
        self._call("instruct", agent_id)
        return self.message(agent_id, "instructions")

    @property
    def opened(self) -> list[AgentSpec]:
        return [
            spec
            for name, *rest in self.calls
            if name == "open"
            for spec in rest
            if isinstance(spec, AgentSpec)
        ]

    def _call(self, name: str, *arguments: object) -> None:
        self.calls.append((name, *arguments))
        if name in self.fail:
            raise self.fail[name]

    async def open(self, spec: AgentSpec, *, columns: int, lines: int, environ: object = None) -> FakeSession:
        self._call("open", spec)
        if spec.name:
            check_name(spec.name)
        profile = self.profiles.find(spec.profile)
        if spec.name == "missing":
            raise CommandNotFound(profile.command, profile.name, profile.install)
        return self.add(spec, columns=columns, lines=lines)

    @property
    def can_reopen(self) -> bool:
        return bool(self._closed)

    async def reopen(self, *, columns: int, lines: int) -> FakeSession:
        self._call("reopen")
        return self.add(self._closed.pop(), columns=columns, lines=lines)

    def add(self, spec: AgentSpec, *, columns: int = 80, lines: int = 24) -> FakeSession:
        profile = self.profiles.find(spec.profile)
        port = spec.port or next(self._ports[profile.name])
        session = FakeSession(self, profile, spec, port, columns, lines)
        self.agents[session.agent_id] = session
        self.events.publish(AgentAdded(session.agent_id))
        return session

    async def close(self, agent_id: str) -> None:
        self._call("close", agent_id)
        session = self.agents.pop(agent_id)
        self._ended += [task for task in session.tasks if task.state.final]
        self._closed.append(dataclasses.replace(session.spec, port=session.port))
        self.events.publish(AgentRemoved(agent_id))

    async def restart(self, agent_id: str) -> FakeSession:
        self._call("restart", agent_id)
        session = self.agents[agent_id]
        session.exit = None
        session.terminal = Terminal(session.terminal.columns, session.terminal.lines)
        session.become(AgentState.STARTING)
        return session

    def rename(self, agent_id: str, name: str) -> None:
        self._call("rename", agent_id, name)
        if name:
            check_name(name)
        if any(
            s.name.lower() == name.lower() for s in self.agents.values() if s.agent_id != agent_id and s.name
        ):
            raise ConfigError(f"an agent is already called '{name}'", "choose another name")
        self.agents[agent_id].name = name
        self.events.publish(AgentRenamed(agent_id, name))

    def addresses(self) -> list[Address]:
        own = [
            Address(
                s.agent_id,
                s.agent_type,
                s.name,
                s.port,
                s.endpoint,
                working_dir=str(s.cwd),
                aliases=s.profile.aliases,
                receives=s.profile.receives,
            )
            for s in self.agents.values()
            if s.exit is None
        ]
        return own + self.peers + self.externals.addresses()

    def resolve(self, address: str, *, sender: str = "") -> list[Address]:
        return resolve(address, self.addresses(), sender=sender)

    async def send(self, address: str, text: str, *, sender: str = "", priority: int = 3) -> list[Receipt]:
        self._call("send", address, text, sender, priority)
        receipts = []
        for target in receivers(address, self.addresses(), sender=sender):
            if target.external:
                sent = await self.externals.send(target.agent_id, text)
                receipts.append(Receipt(target.agent_id, sent.id, "queued"))
                continue
            if target.agent_id not in self.agents:
                receipts.append(Receipt(target.agent_id, "", "submitted"))
                continue
            author = {"author": "user"} if sender else {}
            task = self.message(target.agent_id, text, sender=sender, priority=priority, metadata=author)
            receipts.append(Receipt(target.agent_id, task.id, "queued"))
        return receipts

    async def changes(self, task_id: str) -> list[Change]:
        self._call("changes", task_id)
        return self.steps.get(task_id, [])

    async def cancel_task(self, agent_id: str, task_id: str) -> Task:
        if self.externals.has(agent_id):
            return await self.externals.cancel(agent_id, task_id)
        self._call("cancel_task", agent_id, task_id)
        return self.change(task_id, delivery=DeliveryState.CANCELED, state=TaskState.CANCELED)

    async def interrupt(self, agent_id: str, text: str = "") -> None:
        self._call("interrupt", agent_id, text)
        if agent_id not in self.agents:
            raise AgentNotFound(f"there is no agent '{agent_id}' here")

    async def interrupt_all(self) -> None:
        self._call("interrupt_all")

    async def answer_dialog(self, agent_id: str, serial: int, fingerprint: str, words: str) -> AnswerOutcome:
        self._call("answer_dialog", agent_id, serial, fingerprint, words)
        await asyncio.sleep(0)  # it is typed, and the dialog closes
        return self.outcome

    # what happens in a real host by itself

    def message(
        self,
        target: str,
        text: str,
        *,
        sender: str = "",
        delivery: DeliveryState = DeliveryState.QUEUED,
        state: TaskState = TaskState.SUBMITTED,
        reason: str = "",
        priority: int = 3,
        answer: str = "",
        verified: bool = True,
        minutes: float = 0.0,
        metadata: Mapping[str, object] | None = None,
    ) -> Task:
        number = next(self._ids)
        when = self.now() - timedelta(minutes=minutes) + timedelta(milliseconds=number)
        who = (
            Sender(sender, sender.split("-")[1] if "-" in sender else "external", verified=verified)
            if sender
            else USER
        )
        task = Task(
            f"{number:08x}-0000-4000-8000-000000000000",
            "context",
            target,
            who,
            text,
            priority,
            when,
            when,
            state=state,
            delivery=delivery,
            reason=reason,
            artifacts=(Artifact(answer),) if answer else (),
            metadata=metadata or {},
        )
        self.agents[target].tasks.append(task)
        if not delivery.final:
            self.agents[target].outbox.waiting.append(task.id)
        if Reason.of(reason) in (Reason.HELD_BY_USER, Reason.BEFORE_RESTART):
            self.agents[target].outbox.parked.add(task.id)
        self.events.publish(TaskChanged(task))
        return task

    def change(self, task_id: str, **fields: object) -> Task:
        for session in self.agents.values():
            for index, task in enumerate(session.tasks):
                if task.id == task_id:
                    session.tasks[index] = dataclasses.replace(task, **fields)  # type: ignore[arg-type]
                    self.events.publish(TaskChanged(session.tasks[index]))
                    return session.tasks[index]
        raise KeyError(task_id)

    def answer(self, task_id: str, text: str) -> Task:
        ended = {"delivery": DeliveryState.DONE, "state": TaskState.COMPLETED}
        return self.change(task_id, artifacts=(Artifact(text),), **ended)

    def add_peer(self, agent_id: str, folder: str = "/home/me/code/other") -> None:
        _, kind, port = agent_id.split("-")
        self.peers.append(
            Address(
                agent_id, kind, "", int(port), f"http://127.0.0.1:{port}", local=False, working_dir=folder
            )
        )
        self.events.publish(PeersChanged())
