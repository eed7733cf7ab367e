"""A session of the dummy agent in a real PTY, and the dummy's own log of what it was given."""

from __future__ import annotations

import dataclasses
import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from synapse_tui.agents.environment import child_environment
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.events import Event, EventBus, TaskChanged
from synapse_tui.core.model import AgentSpec, AgentState, DeliveryState, MessageRequest, Sender, Task
from synapse_tui.system.paths import UserPaths
from synapse_tui.system.pty import ReadScheduler
from tests.profiles import shipped
from tests.waiting import until

PEER = Sender("synapse-claude-8100", "claude", "http://127.0.0.1:8100", verified=True)


class Rig:
    """One session and what it told."""

    def __init__(
        self, folder: Path, *args: str, profile: Profile | None = None, prompt: str = "", **options: Any
    ) -> None:
        self.log_file = folder / "dummy.jsonl"
        self.logs = folder / "logs"
        self.events = EventBus()
        self.heard: list[Event] = []
        self.events.subscribe(self.heard.append)
        self.profile = profile or shipped().find("dummy")
        self.scheduler = ReadScheduler()
        environ = child_environment(
            os.environ,
            profile=self.profile,
            agent_id="synapse-dummy-8190",
            endpoint="http://127.0.0.1:8190",
            token=uuid.uuid4().hex,  # other tests run agents of this id at the same time
            paths=UserPaths(folder),
        )
        self.session = AgentSession(
            self.profile,
            agent_id="synapse-dummy-8190",
            port=8190,
            cwd=folder,
            spec=AgentSpec("dummy", args=("--log", str(self.log_file), *args), prompt=prompt),
            environ=environ,
            events=self.events,
            scheduler=self.scheduler,
            logs=self.logs,
            **options,
        )

    # what the test does

    def send(self, text: str, priority: int = 3, sender: Sender = PEER) -> Task:
        return self.session.accept(MessageRequest(text, sender, priority))

    def type(self, text: str) -> None:
        self.session.user_input(text.encode())

    async def answer(self, key: str) -> None:
        """Answer the dialog that is open as a person who has read it would."""
        await until(self.answers, "a dialog that takes an answer")
        self.type(key)

    def answers(self) -> bool:
        guard, now = self.session.keyboard.guard, self.session.console.now()
        return guard.look() is not None and not guard.answers_in(now)

    async def ready(self) -> None:
        await self.state(AgentState.READY)

    async def state(self, state: AgentState) -> None:
        """Wait for a state; for work, until it is also settled that the message which began it was taken."""

        def reached() -> bool:
            under_way = state is AgentState.PROCESSING and any(
                task.delivery in (DeliveryState.TYPING, DeliveryState.SUBMITTING)
                for task in list(self.session.tasks)
            )
            return self.session.report.state is state and not under_way

        await until(reached, lambda: f"{state}, is {self.session.report}")

    async def delivery(self, task: Task, state: DeliveryState, reason: str = "") -> Task:
        def reached() -> Task | None:
            now = self.session.tasks.get(task.id)
            return now if now.delivery is state and now.reason.startswith(reason) else None

        return await until(reached, lambda: f"{state} {reason}: {self.session.tasks.get(task.id)}")

    async def done(self, task: Task) -> Task:
        def described() -> str:
            return f"the end of {self.session.tasks.get(task.id)}; {self.session.report}"

        await until(lambda: self.session.tasks.get(task.id).state.final, described)
        return self.session.tasks.get(task.id)

    async def until_ended(self, *tasks: Task) -> None:
        await until(
            lambda: all(self.session.tasks.get(task.id).state.final for task in tasks), "the end of the tasks"
        )

    async def dismiss_until_done(self, task: Task) -> Task:
        def ended() -> bool:
            if self.answers() and len(self.records("dialog-open")) > len(self.records("dialog-answer")):
                self.type("\x1b")
            return self.session.tasks.get(task.id).state.final

        await until(ended, "the end of the task")
        return self.session.tasks.get(task.id)

    async def draft(self, text: str) -> None:
        await until(lambda: self.session.reading().draft == text, f"draft {text!r}")

    # what was seen

    def records(self, event: str = "") -> list[dict[str, Any]]:
        if not self.log_file.exists():
            return []
        text = self.log_file.read_text(encoding="utf-8", errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last line may be half written
        return [record for record in map(json.loads, lines) if event in ("", record["event"])]

    @property
    def submitted(self) -> list[str]:
        return [record["text"].partition("] ")[2] or record["text"] for record in self.records("submit")]

    def history(self, task: Task) -> list[tuple[str, str]]:
        seen = [
            (event.task.state, event.task.delivery)
            for event in self.heard
            if isinstance(event, TaskChanged) and event.task.id == task.id
        ]
        return [pair for index, pair in enumerate(seen) if index == 0 or seen[index - 1] != pair]


@asynccontextmanager
async def open_rig(
    folder: Path, *args: str, size: tuple[int, int] = (100, 30), **options: Any
) -> AsyncIterator[Rig]:
    rig = Rig(folder, *args, **options)
    rig.session.start(*size)
    try:
        yield rig
    finally:
        await rig.session.stop()


def with_profile(**changes: Any) -> Profile:
    return dataclasses.replace(shipped().find("dummy"), **changes)


def verified_in(seconds: float) -> Profile:
    """The dummy's profile; whether Enter was taken shows within so many seconds."""
    profile = with_profile()
    return dataclasses.replace(profile, submit=dataclasses.replace(profile.submit, verify=seconds))
