"""External agents that say what the test lets them say, in real conversations."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from synapse_tui.a2a.external.conversation import Conversation
from synapse_tui.a2a.external.peer import TaskUpdate
from synapse_tui.a2a.external.registry import (
    AddRequest,
    Candidate,
    ExternalAgent,
    Interface,
    external_address,
)
from synapse_tui.core.addresses import Address
from synapse_tui.core.errors import PeerUnreachable
from synapse_tui.core.events import ExternalsChanged, ExternalTalked, TaskChanged
from synapse_tui.core.model import USER, DeliveryState, Sender, Task, TaskState

if TYPE_CHECKING:
    from tests.ui.fakes import FakeHost

CARD = {
    "name": "Echo Agent",
    "description": "Says it again.",
    "capabilities": {"streaming": True},
    "skills": [{"id": "echo", "name": "Echo", "description": "says what it was told"}],
}


class FakeExternals:
    """External agents that say what the test lets them say."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self._agents: dict[str, ExternalAgent] = {}
        self._talks: dict[str, Conversation] = {}
        self._ids = itertools.count(1)
        self._seconds = itertools.count()
        self.offer: Candidate | None = None
        """What is found at any URL; None for nobody."""

    @property
    def agents(self) -> list[ExternalAgent]:
        return list(self._agents.values())

    @property
    def tasks(self) -> list[Task]:
        return [task for talk in self._talks.values() for task in talk.tasks]

    def has(self, alias: str) -> bool:
        return alias in self._agents

    def get(self, alias: str) -> ExternalAgent:
        return self._agents[alias]

    def addresses(self) -> list[Address]:
        return [external_address(agent.alias, agent.url) for agent in self._agents.values()]

    def conversation(self, alias: str) -> Conversation | None:
        return self._talks.get(alias)

    def add(self, alias: str = "echo", **card: object) -> Conversation:
        about = {**CARD, **card}
        self._agents[alias] = ExternalAgent(
            alias,
            "https://echo.example",
            card=about,
            interface=Interface("https://echo.example/rpc"),
            token_env="ECHO_TOKEN",
            added_at="2026-02-28T09:00:00+00:00",
        )
        self._talks[alias] = Conversation(alias, make_id=self._make_id, now=self._now)
        self._host.events.publish(ExternalsChanged())
        return self._talks[alias]

    def _make_id(self) -> str:
        return f"{next(self._ids):08x}-0000-4000-8000-0000000000ee"

    def _now(self) -> datetime:
        return self._host.now() + timedelta(seconds=next(self._seconds))

    def told(self, alias: str, task: Task | None = None) -> None:
        if task is not None:
            self._host.events.publish(TaskChanged(task))
        self._host.events.publish(ExternalTalked(alias))

    def set_opened(self, alias: str, *, opened: bool) -> None:
        self._talks[alias].opened = opened
        self.told(alias)

    def begin_anew(self, alias: str) -> None:
        self._talks[alias].begin_anew()
        self.told(alias)

    async def send(self, alias: str, text: str, *, sender: Sender = USER, **_: object) -> Task:
        self._host._call("external_send", alias, text)
        talk = self._talks[alias]
        asked = talk.asked_of(sender)
        task = talk.go_on(asked.id, text, sender) if asked else talk.begin(text, sender, expected=False)
        talk.opened = True
        self.told(alias, task)
        return task

    def say(self, alias: str, update: TaskUpdate) -> Task:
        talk = self._talks[alias]
        task = talk.apply(talk.tasks[-1].id, update)
        self.told(alias, task)
        return task

    async def cancel(self, alias: str, task_id: str) -> Task:
        self._host._call("external_cancel", alias, task_id)
        canceled = {"state": TaskState.CANCELED, "delivery": DeliveryState.CANCELED}
        task = self._talks[alias].change(task_id, **canceled)
        self.told(alias, task)
        return task

    async def remove(self, alias: str) -> ExternalAgent:
        self._host._call("external_remove", alias)
        agent = self._agents.pop(alias)
        self._talks.pop(alias, None)
        self._host.events.publish(ExternalsChanged())
        return agent

    async def preview(self, order: AddRequest) -> Candidate:
        self._host._call("external_preview", order.url, order.alias, order.token_env, dict(order.headers))
        if self.offer is None:
            raise PeerUnreachable(f"nobody answers at {order.url}", "does the agent run?")
        return self.offer

    async def keep(self, offer: Candidate) -> ExternalAgent:
        self._host._call("external_keep", offer.agent.alias)
        self.add(offer.agent.alias)
        return offer.agent
