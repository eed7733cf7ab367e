"""The push service of a host: manages push configurations and webhooks, and sends notifications of tasks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from synapse_tui.a2a.network import LOOPBACK, Network, client_context
from synapse_tui.agents.session import AgentSession
from synapse_tui.errors import ConfigError, HistoryError
from synapse_tui.events import AgentAdded, AgentRemoved, Event, EventBus, Notice, TaskChanged
from synapse_tui.messages.history import PushJournal
from synapse_tui.messages.records import Delivery, PushLeft, Subscription
from synapse_tui.model import Task

from .notifier import Notifier
from .policy import Allowed, TargetPolicy
from .subscriptions import (
    PushConfig,
    PushProtocol,
    Subscriptions,
    Webhook,
    WebhookRequest,
    check_caller,
    check_config,
    check_events,
    check_header,
    config_of,
    webhook_of,
)
from .worker import Attempt, Backoff, PushWorker, Send

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
        journal: PushJournal | None = None,
        agents: Mapping[str, AgentSession],
        network: Network = LOOPBACK,
        send: Send | None = None,
        backoff: Backoff | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.policy = policy
        self._events = events
        self._journal = journal or PushJournal()
        self._agents = agents
        self._network = network
        self._sender = send
        self._clock = clock
        self._subscriptions = Subscriptions(self._journal.note)
        self._worker = PushWorker(
            self._send, find=self._subscriptions.find, note=self._note, backoff=backoff, clock=clock
        )
        self._notifier = Notifier(self._subscriptions, self._worker.put, clock=clock, make_id=_make_id)
        self._problem = ""
        self._loading = False
        self._ready = asyncio.Event()
        # Snapshots that arrived before the subscriptions were loaded: of all agents (""), and by agent.
        self._early: dict[str, list[Task]] = {"": []}
        self._work: set[asyncio.Task[None]] = set()
        self._unsubscribe = events.subscribe(self._on_event, TaskChanged, AgentAdded, AgentRemoved)

    # -- lifecycle ---

    def load(self, after: Callable[[], Awaitable[object]] | None = None) -> None:
        """Start loading what earlier processes left, `after` the HTTP modules are imported.

        Called after the first frame.
        """
        if self._loading:
            return
        self._loading = True
        if self._problem:
            self._events.publish(Notice(self._problem, "error"))
        self._begin(self._load(after), "push-load")

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

    # -- configurations of tasks (A2A) ---

    async def create(self, config: PushConfig, *, sender_id: str = "") -> PushConfig:
        """Add a push configuration or replace the one with its id; call it before creating the task.

        Raises:
            TargetRefused: Its URL may not be called, or the request comes from an agent.
            InvalidValue: Its token, authentication or id is invalid.
            PushLimit: The task has too many configurations.
            HistoryError: It cannot be stored.
        """
        check_caller(sender_id)
        check_config(config)
        await self.policy.check(config.url)
        await self._loaded()
        await self._load_encoder()
        default = config.task_id if config.protocol is PushProtocol.V03 else _make_id()
        subscription = self._subscriptions.add(
            Subscription(
                _make_id(),
                config.agent_id,
                config.protocol.value,
                config.url,
                self._clock(),
                task_id=config.task_id,
                config_id=config.config_id or default,
                token=config.token,
                scheme=config.scheme,
                credentials=config.credentials,
            )
        )
        await self._stored(subscription)
        return config_of(subscription)

    async def get(self, task_id: str, config_id: str = "") -> PushConfig:
        await self._loaded()
        return config_of(self._subscriptions.config(task_id, config_id))

    async def list(self, task_id: str) -> tuple[PushConfig, ...]:
        await self._loaded()
        return tuple(config_of(each) for each in self._subscriptions.of_task(task_id))

    async def delete(self, task_id: str, config_id: str) -> None:
        """Remove a configuration and its pending notifications."""
        await self._loaded()
        self._remove(self._subscriptions.config(task_id, config_id))

    # -- webhooks of agents (the dialect) ---

    async def add_webhook(self, request: WebhookRequest) -> Webhook:
        """Add a webhook; raises the same errors as `create`."""
        events = check_events(request.events)
        check_header(request.secret, "secret")
        await self.policy.check(request.url)
        await self._loaded()
        await self._load_encoder()
        subscription = self._subscriptions.add(
            Subscription(
                _make_id(),
                request.agent_id,
                PushProtocol.DIALECT.value,
                request.url,
                self._clock(),
                events=events,
                secret=request.secret,
                persist=request.persist,
            )
        )
        await self._stored(subscription)
        return webhook_of(subscription)

    async def webhooks(self, agent_id: str) -> tuple[Webhook, ...]:
        await self._loaded()
        return tuple(webhook_of(each) for each in self._subscriptions.of_agent(agent_id))

    async def remove_webhook(self, agent_id: str, webhook: str) -> Webhook:
        """Remove a webhook by its id or full URL, with its pending notifications."""
        await self._loaded()
        found = self._subscriptions.webhook(agent_id, webhook)
        self._remove(found)
        return webhook_of(found)

    async def deliveries(self, agent_id: str, webhook_id: str, limit: int) -> Sequence[Delivery]:
        await self._loaded()
        return await self._journal.log(self._subscriptions.webhook(agent_id, webhook_id).id, limit)

    def _remove(self, subscription: Subscription) -> None:
        self._subscriptions.remove(subscription.id)
        self._worker.forget(subscription)
        self._notifier.forget(subscription)

    async def _stored(self, subscription: Subscription) -> None:
        """Wait until a subscription is stored; remove it if storing fails."""
        try:
            await self._journal.flush()
        except HistoryError:
            if self._subscriptions.find(subscription.id) is not None:
                self._remove(subscription)
            raise

    # -- events ---

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TaskChanged):
            self._notify(event.task)
        elif isinstance(event, AgentAdded):
            agent = self._agents.get(event.agent_id)
            for task in agent.tasks if agent is not None else ():
                self._notifier.look(task)  # an earlier version of this program has sent this notification
            self._early.setdefault(event.agent_id, [])
            self._begin(self._attach(event.agent_id), f"push-{event.agent_id}")
        elif isinstance(event, AgentRemoved):
            for webhook in self._subscriptions.of_agent(event.agent_id):
                if not webhook.persist:
                    self._subscriptions.end(webhook, self._clock())

    def _notify(self, task: Task) -> None:
        early = self._early.get("", self._early.get(task.target))
        if early is None:
            self._notifier.notify(task)
        else:
            early.append(task)
            del early[:-MAX_EARLY]

    def _notify_early(self, agent_id: str) -> None:
        for task in self._early.pop(agent_id, ()):
            self._notify(task)

    # -- state left by earlier processes ---

    async def _load(self, after: Callable[[], Awaitable[object]] | None) -> None:
        if after is not None:
            await after()
        while True:
            with contextlib.suppress(HistoryError):
                left = await self._journal.left()
                break
            await asyncio.sleep(LOAD_AGAIN)
        await self._restore(left)
        for task in left.ended:
            self._notifier.notify(task)
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
            await self._restore(await self._journal.webhooks(agent_id, goes_on=goes_on))
        except HistoryError as error:
            log.warning("webhooks not read: %s", error.message, extra={"agent_id": agent_id})
        finally:
            self._notify_early(agent_id)

    async def _restore(self, left: PushLeft) -> None:
        if left.subscriptions:
            await self._load_encoder()
        known = {each.id for each in self._subscriptions}
        new = {each.id: each for each in left.subscriptions if each.id not in known}
        for subscription in new.values():
            self._subscriptions.restore(subscription)
        recovered = {task.id: task for task in left.recovered}
        for delivery in left.deliveries:
            if delivery.subscription_id in new:
                task = recovered.get(delivery.task_id) if not delivery.body else None
                written = self._notifier.written(delivery, task) if task is not None else delivery
                self._worker.put(new[delivery.subscription_id], written, noted=True)

    async def _loaded(self) -> None:
        self.load()
        try:
            async with asyncio.timeout(LOAD_TIMEOUT):
                await self._ready.wait()
        except TimeoutError:
            raise HistoryError("push notifications are not loaded yet", "try again in a moment") from None

    async def _load_encoder(self) -> None:
        """Import what writes notifications, before the first subscription: the A2A SDK takes 20 MB."""
        module = await asyncio.to_thread(importlib.import_module, "synapse_tui.a2a.push.encode")
        if self._notifier.encoder is None:
            self._notifier.encoder = module.JsonEncoder()

    async def sweep(self) -> None:
        self._subscriptions.sweep(self._clock(), self._worker.busy)
        try:
            await self._journal.prune(self._clock() - LOGGED_FOR)
        except HistoryError as error:
            log.warning("old pushes were not removed: %s", error.message)

    # -- sending ---

    async def _send(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        if self._sender is None:
            try:
                self._sender = await asyncio.to_thread(self._make_sender)
            except ConfigError as error:
                return Attempt(problem=error.message, again=True)
        return await self._sender(subscription, await self._notifier.with_files(subscription, delivery))

    def _make_sender(self) -> Send:
        module = importlib.import_module("synapse_tui.a2a.push.sender")
        sender: Send = module.PushSender(self.policy, certificates=client_context(self._network, local=False))
        return sender

    def _note(self, delivery: Delivery) -> None:
        self._journal.note_delivery(delivery)
        self._notifier.settled(delivery)

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _make_id() -> str:
    return str(uuid4())
