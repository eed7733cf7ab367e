"""The desk where callers ask to be told of tasks, and where it is heard what happens to them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import uuid4

from synapse_tui.errors import HistoryError
from synapse_tui.events import AgentAdded, AgentRemoved, Event, EventBus, TaskChanged
from synapse_tui.messages.history import PushJournal
from synapse_tui.messages.records import Delivery, PushLeft, Subscription
from synapse_tui.model import Task

from .notifier import Encoding, Teller, check_events
from .policy import Resolver, TargetPolicy
from .subscriptions import (
    PushConfig,
    PushProtocol,
    SubscriptionBook,
    Webhook,
    WebhookRequest,
    check_asker,
    check_fields,
    check_header,
    config_of,
    webhook_of,
)
from .worker import Attempt, Backoff, Outgoing, Send


class Agents(Protocol):
    """What is known of an agent that was opened."""

    def goes_on(self, agent_id: str) -> bool:
        """Whether it goes on where an earlier one of its id was."""

    def tasks(self, agent_id: str) -> Iterable[Task]:
        """The tasks that it brings along, of which those who asked were told."""


class NoAgents:
    """Nothing is known of any."""

    def goes_on(self, agent_id: str) -> bool:  # noqa: ARG002 - an Agents
        """It does not."""
        return False

    def tasks(self, agent_id: str) -> Iterable[Task]:  # noqa: ARG002 - an Agents
        """It has none."""
        return ()


log = logging.getLogger(__name__)

READ_AGAIN = 5.0
"""Seconds after which what earlier processes left is read again, if it could not be."""
PATIENCE = 10.0
"""Seconds that a caller waits for that."""
SWEEP = 3600.0
"""Seconds between two looks for what is kept no more."""
LOGGED_FOR = timedelta(days=7)
"""How long is known what became of a notification."""
MAX_EARLY = 10_000


class PushDesk:
    """Takes push configurations and webhooks, and tells those who asked.

    Args:
        events: Tells what happens to tasks and agents.
        journal: Where all of it is written down.
        policy: Decides which URLs may be called.
        agents: Knows the agents.
        send: Makes attempts.
        backoff: When what failed is tried again.
        clock: The time now, aware.
        make_id: Makes UUIDs.
    """

    def __init__(
        self,
        events: EventBus | None = None,
        *,
        send: Send | None = None,
        journal: PushJournal | None = None,
        policy: TargetPolicy | None = None,
        agents: Agents | None = None,
        backoff: Backoff | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        make_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._journal = journal or PushJournal()
        self._policy = policy or TargetPolicy(Resolver())
        self._agents = agents or NoAgents()
        self._sender = send or _nobody
        self._clock = clock
        self._make_id = make_id
        self._encoding: Encoding | None = None
        self._book = SubscriptionBook(self._journal.note)
        self._outgoing = Outgoing(
            self._send, find=self._book.find, note=self._note, backoff=backoff, clock=clock
        )
        self._teller = Teller(
            self._book, self._outgoing.put, encoding=self._words, clock=clock, make_id=make_id
        )
        self._loading = False
        self._ready = asyncio.Event()
        self._early: dict[str, list[Task]] = {"": []}
        """Snapshots that came before it was known who is to be told of them: of all agents, and by agent."""
        self._work: set[asyncio.Task[None]] = set()
        self._unsubscribe = events.subscribe(self._on_event) if events is not None else lambda: None

    @property
    def policy(self) -> TargetPolicy:
        """Decides which URLs may be called on behalf of somebody else."""
        return self._policy

    # -- life ---

    def load(self, after: Callable[[], Awaitable[object]] | None = None) -> None:
        """Begin to read what earlier processes left to be told; called once the first frame is drawn.

        Args:
            after: Returns when what is imported anyway is imported.
        """
        if not self._loading:
            self._loading = True
            self._begin(self._load(after), "push-load")

    def note_all(self) -> None:
        """Note all that goes on: the history has begun anew."""
        for subscription in self._book:
            self._journal.note(subscription.id, subscription)
        for delivery in self._outgoing:
            self._journal.note_delivery(delivery)

    async def stop(self) -> None:
        """Tell no more; what waits is told by the next process."""
        self._unsubscribe()
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._outgoing.stop()

    # -- configurations of tasks (A2A) ---

    async def create(self, config: PushConfig, *, sender_id: str = "") -> PushConfig:
        """Tell someone of a task from now on; in another way when it has a configuration of that id.

        Args:
            config: Whom to tell. To miss nothing, create it before the task is, under the id that the task
                will have.
            sender_id: The agent whose signature the request carries; empty for none.

        Returns:
            It as `get` gives it, with its id.

        Raises:
            TargetRefused: Its URL may not be called, or an agent asks for it.
            InvalidValue: Its token, authentication or id cannot be sent.
            PushLimit: The task has too many.
            HistoryError: It cannot be written down.
        """
        check_asker(sender_id)
        check_fields(config)
        await self._policy.check(config.url)
        await self._loaded()
        default = config.task_id if config.protocol is PushProtocol.V03 else self._make_id()
        subscription = self._book.add(
            Subscription(
                self._make_id(),
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
        await self._written(subscription)
        return config_of(subscription)

    async def get(self, task_id: str, config_id: str = "") -> PushConfig:
        """A configuration of a task; the first one without an id.

        Raises:
            PushNotFound: There is none of that id.
            HistoryError: It is not known yet.
        """
        await self._loaded()
        return config_of(self._book.config(task_id, config_id))

    async def list(self, task_id: str) -> tuple[PushConfig, ...]:
        """The configurations of a task, in the order of making.

        Raises:
            HistoryError: They are not known yet.
        """
        await self._loaded()
        return tuple(config_of(each) for each in self._book.of_task(task_id))

    async def delete(self, task_id: str, config_id: str) -> None:
        """Tell someone no more, also not of what waits.

        Raises:
            PushNotFound: There is none of that id.
            HistoryError: It is not known yet.
        """
        await self._loaded()
        self._remove(self._book.config(task_id, config_id))

    # -- webhooks of agents (the dialect) ---

    async def add_webhook(self, request: WebhookRequest) -> Webhook:
        """Tell someone of the tasks of an agent from now on.

        Raises:
            TargetRefused: Its URL may not be called.
            InvalidValue: There is no such event, or the secret is too long.
            PushLimit: The agent has too many.
            HistoryError: It cannot be written down.
        """
        events = check_events(request.events)
        check_header(request.secret, "secret")
        await self._policy.check(request.url)
        await self._loaded()
        subscription = self._book.add(
            Subscription(
                self._make_id(),
                request.agent_id,
                PushProtocol.DIALECT.value,
                request.url,
                self._clock(),
                events=events,
                secret=request.secret,
                persist=request.persist,
            )
        )
        await self._written(subscription)
        return webhook_of(subscription)

    async def webhooks(self, agent_id: str) -> tuple[Webhook, ...]:
        """The webhooks of an agent, in the order of making.

        Raises:
            HistoryError: They are not known yet.
        """
        await self._loaded()
        return tuple(webhook_of(each) for each in self._book.of_agent(agent_id))

    async def remove_webhook(self, agent_id: str, webhook: str) -> Webhook:
        """Tell someone no more, also not of what waits.

        Args:
            agent_id: The agent.
            webhook: Id of the webhook, or its whole URL.

        Raises:
            PushNotFound: There is none.
            HistoryError: It is not known yet.
        """
        await self._loaded()
        found = self._book.webhook(agent_id, webhook)
        self._remove(found)
        return webhook_of(found)

    async def deliveries(self, agent_id: str, webhook_id: str, limit: int) -> Sequence[Delivery]:
        """What a webhook was told of late and what became of it, newest first.

        Raises:
            PushNotFound: There is no such webhook.
            HistoryError: It cannot be read.
        """
        await self._loaded()
        return await self._journal.log(self._book.webhook(agent_id, webhook_id).id, limit)

    def _remove(self, subscription: Subscription) -> None:
        self._book.remove(subscription.id)
        self._outgoing.forget(subscription)
        self._teller.forget(subscription)

    async def _written(self, subscription: Subscription) -> None:
        """Make sure that who is told so is told after the end of this process, too."""
        try:
            await self._journal.flush()
        except HistoryError:
            if self._book.find(subscription.id) is not None:
                self._remove(subscription)
            raise

    # -- what happens ---

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TaskChanged):
            self._hear(event.task)
        elif isinstance(event, AgentAdded):
            for task in self._agents.tasks(event.agent_id):
                self._teller.seen(task)
            self._early.setdefault(event.agent_id, [])
            self._begin(self._attach(event.agent_id), f"push-{event.agent_id}")
        elif isinstance(event, AgentRemoved):
            for webhook in self._book.of_agent(event.agent_id):
                if not webhook.persist:
                    self._book.end(webhook, self._clock())

    def _hear(self, task: Task) -> None:
        early = self._early.get("", self._early.get(task.target))
        if early is None:
            self._teller.tell(task)
        else:
            early.append(task)
            del early[:-MAX_EARLY]

    def _tell_early(self, agent_id: str) -> None:
        for task in self._early.pop(agent_id, ()):
            self._hear(task)

    # -- what earlier processes left ---

    async def _load(self, after: Callable[[], Awaitable[object]] | None) -> None:
        if after is not None:
            await after()
        self._encoding = await asyncio.to_thread(_make_encoder)
        while True:
            with contextlib.suppress(HistoryError):
                left = await self._journal.left()
                break
            await asyncio.sleep(READ_AGAIN)
        self._take(left)
        for task in left.ended:
            self._teller.tell(task)
        self._ready.set()
        self._tell_early("")
        while True:
            await asyncio.sleep(SWEEP)
            await self.sweep()

    async def _attach(self, agent_id: str) -> None:
        """Go on with the webhooks of an agent that was opened."""
        await self._ready.wait()
        try:
            self._take(await self._journal.webhooks(agent_id, goes_on=self._agents.goes_on(agent_id)))
        except HistoryError as error:
            log.warning("webhooks not read: %s", error.message, extra={"agent_id": agent_id})
        finally:
            self._tell_early(agent_id)

    def _take(self, left: PushLeft) -> None:
        known = {each.id for each in self._book}
        new = {each.id: each for each in left.subscriptions if each.id not in known}
        for subscription in new.values():
            self._book.put(subscription)
        for delivery in left.deliveries:
            if delivery.subscription_id in new:
                self._outgoing.put(new[delivery.subscription_id], delivery, known=True)

    async def _loaded(self) -> None:
        """Return when it is known who is to be told.

        Raises:
            HistoryError: That could not be read yet.
        """
        self.load()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._ready.wait()
        except TimeoutError:
            raise HistoryError("push notifications are not known yet", "try again in a moment") from None

    async def sweep(self) -> None:
        """Forget what is kept no more."""
        self._book.sweep(self._clock(), self._outgoing.busy)
        try:
            await self._journal.prune(self._clock() - LOGGED_FOR)
        except HistoryError as error:
            log.warning("old pushes were not removed: %s", error.message)

    # -- sending ---

    async def _send(self, subscription: Subscription, delivery: Delivery) -> Attempt:
        return await self._sender(subscription, await self._teller.whole(subscription, delivery))

    def _note(self, delivery: Delivery) -> None:
        self._journal.note_delivery(delivery)
        self._teller.settled(delivery)

    def _words(self) -> Encoding:
        assert self._encoding is not None  # nothing is told before it is loaded
        return self._encoding

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _make_encoder() -> Encoding:
    module = importlib.import_module("synapse_tui.a2a.push.encode")
    encoder: Encoding = module.Encoder()
    return encoder


async def _nobody(_subscription: Subscription, _delivery: Delivery) -> Attempt:
    return Attempt(problem="this program sends nothing")
