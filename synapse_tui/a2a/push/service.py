"""The push service of a host: manages push configurations and webhooks, and sends notifications of tasks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from synapse_tui.a2a.network import LOOPBACK, Network, client_context
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.errors import ConfigError, HistoryError
from synapse_tui.core.events import AgentAdded, AgentRemoved, Event, EventBus, Notice, TaskChanged
from synapse_tui.messages.history import PushJournal
from synapse_tui.messages.records import PushDelivery, PushLeft, PushSubscription
from synapse_tui.system.backoff import Backoff

from .policy import Allowed, TargetPolicy
from .subscriptions import Notifier, Subscriptions, completed, load_encoder
from .worker import RETRY, Attempt, PushWorker, Send

log = logging.getLogger(__name__)

LOAD_AGAIN = 5.0  # seconds before loading the stored subscriptions is retried
LOAD_TIMEOUT = 10.0  # seconds that a caller waits for loading
SWEEP_INTERVAL = 3600.0
LOGGED_FOR = timedelta(days=7)  # how long finished notifications are stored
MAX_EARLY = 10_000


class PushService:
    """Manages push configurations and webhooks, and sends notifications of tasks."""

    def __init__(
        self,
        events: EventBus,
        *,
        policy: TargetPolicy,
        journal: PushJournal,
        agents: Mapping[str, AgentSession],
        network: Network = LOOPBACK,
        send: Send | None = None,
        backoff: Backoff = RETRY,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.policy = policy
        self._events = events
        self._journal = journal
        self._agents = agents
        self._network = network
        self._sender = send
        self._clock = clock
        self._subscriptions = Subscriptions(self._journal.note)
        self._worker = PushWorker(
            self._send, find=self._subscriptions.find, note=self._note, backoff=backoff, clock=clock
        )
        self._notifier = Notifier(self._subscriptions, self._worker.put, clock=clock)
        self._problem = ""
        self._loading = False
        self._after: Callable[[], Awaitable[object]] | None = None
        self._ready = asyncio.Event()
        self._unread = asyncio.Event()
        """Set while reading the subscriptions fails repeatedly."""
        # Changes before the subscriptions were loaded: of all agents (""), and by agent.
        self._early: dict[str, list[TaskChanged]] = {"": []}
        self._attaching: dict[str, asyncio.Task[None]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._unsubscribe = events.subscribe(self._on_event, TaskChanged, AgentAdded, AgentRemoved)

    # -- lifecycle ---

    def load(self, after: Callable[[], Awaitable[object]] | None = None) -> None:
        """Start loading what earlier processes left; called after the first frame.

        The A2A SDK, if it is needed, is imported `after` the HTTP modules.
        """
        if self._loading:
            return
        self._loading, self._after = True, after
        if self._problem:
            self._events.publish(Notice(self._problem, "error"))
        self._begin(self._load(), "push-load")

    def allow(self, entries: Sequence[str]) -> None:
        """Set the hosts and networks of `a2a.push_allow`; invalid entries are reported and ignored."""
        problem = ""
        try:
            self.policy.allowed = Allowed.parse(entries)
        except ConfigError as error:
            log.warning("%s", error)
            self.policy.allowed = Allowed()
            problem = str(error)
        if problem and problem != self._problem and self._loading:
            self._events.publish(Notice(problem, "error"))
        self._problem = problem

    def note_all(self) -> None:
        """Store everything again, after the history was recreated."""
        for subscription in self._subscriptions:
            self._journal.note(subscription.id, subscription)
        for delivery in self._worker:
            self._journal.note_delivery(delivery)

    async def stop(self) -> None:
        """Stop; the next process sends the rest."""
        self._unsubscribe()
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._worker.stop()

    # -- subscriptions ---

    async def subscriptions(self) -> Subscriptions:
        """The push configurations and webhooks, once those of earlier processes are loaded."""
        self.load()
        try:
            async with asyncio.timeout(LOAD_TIMEOUT):
                await self._ready.wait()
        except TimeoutError:
            raise HistoryError("push notifications are not loaded yet", "try again in a moment") from None
        return self._subscriptions

    async def add(self, subscription: PushSubscription, *, sender_id: str = "") -> PushSubscription:
        """Add a webhook, or a push configuration before its task is created; replaces one with its id.

        Raises:
            TargetRefused: Its URL may not be called, or the request comes from an agent.
            InvalidValue: Its token, authentication, id or events are invalid.
            PushLimit: The task or agent has too many.
            HistoryError: It cannot be stored.
        """
        subscription = completed(subscription, sender_id)
        await self.policy.check(subscription.url, local=subscription.local)
        subscriptions = await self.subscriptions()
        await self._load_encoder()
        added = subscriptions.add(replace(subscription, created_at=self._clock()))
        try:
            await self._journal.flush()
        except HistoryError:
            if subscriptions.find(added.id) is not None:
                self.remove(added)
            raise
        return added

    def remove(self, subscription: PushSubscription) -> None:
        """Remove a subscription and its pending notifications."""
        self._subscriptions.remove(subscription.id)
        self._worker.forget(subscription)
        self._notifier.forget(subscription)

    async def log(self, subscription: PushSubscription, limit: int) -> Sequence[PushDelivery]:
        """The newest notifications to a receiver, newest first."""
        return await self._journal.log(subscription.id, limit)

    # -- events ---

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TaskChanged):
            self._notify(event)
        elif isinstance(event, AgentAdded):
            self._early.setdefault(event.agent_id, [])
            attaching = self._begin(self._attach(event.agent_id), f"push-{event.agent_id}")
            self._attaching[event.agent_id] = attaching
        elif isinstance(event, AgentRemoved):
            self._attaching.pop(event.agent_id, None)
            for webhook in self._subscriptions.of_agent(event.agent_id):
                if not webhook.persist:
                    self._subscriptions.end(webhook, self._clock())

    def _notify(self, change: TaskChanged) -> None:
        early = self._early.get("", self._early.get(change.task.target))
        if early is None:
            self._notifier.notify(change.task, change.before)
        else:
            early.append(change)
            del early[:-MAX_EARLY]

    def _notify_early(self, agent_id: str) -> None:
        for change in self._early.pop(agent_id, ()):
            self._notify(change)

    # -- state left by earlier processes ---

    async def attached(self, agent_id: str) -> None:
        """Wait until the webhooks of an agent are known, or cannot be read.

        A delivery before would end without a notification if the host was killed at that moment.
        """
        if (attaching := self._attaching.get(agent_id)) is not None:
            unread = asyncio.ensure_future(self._unread.wait())
            try:
                await asyncio.wait({attaching, unread}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                unread.cancel()

    async def _load(self) -> None:
        try:
            left = await self._read(self._journal.left)
            await self._restore(left)
            for task in left.ended:
                self._notifier.notify(task, None)
        finally:
            self._ready.set()
            self._notify_early("")
        while True:
            await asyncio.sleep(SWEEP_INTERVAL)
            await self.sweep()

    async def _attach(self, agent_id: str) -> None:
        await self._ready.wait()
        agent = self._agents.get(agent_id)
        goes_on = agent is not None and agent.spec.restore
        try:
            await self._restore(await self._read(lambda: self._journal.webhooks(agent_id, goes_on=goes_on)))
        finally:
            self._notify_early(agent_id)

    async def _read(self, read: Callable[[], Awaitable[PushLeft]]) -> PushLeft:
        again = False
        while True:
            try:
                left = await read()
            except HistoryError as error:
                log.warning("subscriptions not read: %s", error.message)
            else:
                self._unread.clear()
                return left
            if again:
                self._unread.set()
            again = True
            await asyncio.sleep(LOAD_AGAIN)

    async def _restore(self, left: PushLeft) -> None:
        if left.subscriptions:
            await self._load_encoder()
        new = {each.id: each for each in left.subscriptions if self._subscriptions.find(each.id) is None}
        for subscription in new.values():
            self._subscriptions.restore(subscription)
        recovered = {task.id: task for task in left.recovered}
        for delivery in left.deliveries:
            if delivery.subscription_id in new:
                task = recovered.get(delivery.task_id) if not delivery.body else None
                written = self._notifier.written(delivery, task) if task is not None else delivery
                self._worker.put(new[delivery.subscription_id], written, noted=True)

    async def _load_encoder(self) -> None:
        """Import what writes notifications, before the first subscription: the A2A SDK takes 20 MB."""
        if self._after is not None:
            await self._after()
        await asyncio.to_thread(load_encoder)

    async def sweep(self) -> None:
        self._subscriptions.sweep(self._clock(), self._worker.busy)
        try:
            await self._journal.prune(self._clock() - LOGGED_FOR)
        except HistoryError as error:
            log.warning("old pushes were not removed: %s", error.message)

    # -- sending ---

    async def _send(self, subscription: PushSubscription, delivery: PushDelivery) -> Attempt:
        if not delivery.attempts:
            with contextlib.suppress(HistoryError):  # otherwise the next process may report another end
                await self._journal.flush()
        if self._sender is None:
            try:
                self._sender = await asyncio.to_thread(self._make_sender)
            except ConfigError as error:
                return Attempt(problem=error.message, again=True)
        with suppress(HistoryError):  # otherwise a killed host has reported what the next one does not know
            await self._journal.flush()
        return await self._sender(subscription, await self._notifier.with_files(subscription, delivery))

    def _make_sender(self) -> Send:
        module = importlib.import_module("synapse_tui.a2a.push.sender")
        sender: Send = module.PushSender(self.policy, certificates=client_context(self._network, local=False))
        return sender

    def _note(self, delivery: PushDelivery) -> None:
        self._journal.note_delivery(delivery)
        self._notifier.settled(delivery)

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task
