"""Who is to be told: found by task, by agent and by id; what changes is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from synapse_tui.errors import PushLimit, PushNotFound
from synapse_tui.messages.records import Subscription

from .model import ended

MAX_OF_TASK = 20
MAX_OF_AGENT = 50
"""Webhooks."""
MAX_IN_ALL = 5_000
KEPT = timedelta(days=1)
"""How long the configuration of a task that has ended can still be read."""

LONGEST = timedelta(days=30)
"""How long a task is waited for; its history is kept no longer."""

Note = Callable[[str, Subscription | None], None]


class SubscriptionBook:
    """Everyone who is to be told.

    Args:
        note: Told the id and the newest state of each that changes; None when it is removed.
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._by_id: dict[str, Subscription] = {}
        self._by_task: dict[str, dict[str, str]] = {}
        """Ids by the caller's own id, by task."""
        self._by_agent: dict[str, dict[str, None]] = {}
        """Ids of webhooks, by agent."""

    def __iter__(self) -> Iterator[Subscription]:
        return iter(tuple(self._by_id.values()))

    def find(self, subscription_id: str) -> Subscription | None:
        """The one of an id."""
        return self._by_id.get(subscription_id)

    def add(self, subscription: Subscription) -> Subscription:
        """Add one; it takes the place of the one with the same id of the caller's at the same task.

        Returns:
            It, under the id of that one.

        Raises:
            PushLimit: There are too many.
        """
        mates = self._mates(subscription)
        old = mates.get(subscription.config_id) if subscription.task_id else None
        limit = MAX_OF_TASK if subscription.task_id else MAX_OF_AGENT
        if old is None and (len(mates) >= limit or len(self._by_id) >= MAX_IN_ALL):
            of = "task" if subscription.task_id else "agent"
            raise PushLimit(f"there are {limit} pushes of that {of} already", "delete one of them")
        if old is not None:  # what waits for it goes on, in the new way
            subscription = replace(subscription, id=old, created_at=self._by_id[old].created_at)
        self.put(subscription)
        self._note(subscription.id, subscription)
        return subscription

    def put(self, subscription: Subscription) -> None:
        """Put one in that is written down already."""
        self._by_id[subscription.id] = subscription
        if subscription.task_id:
            mine = self._by_task.setdefault(subscription.task_id, {})
            mine[subscription.config_id] = subscription.id
        else:
            self._by_agent.setdefault(subscription.agent_id, {})[subscription.id] = None

    def remove(self, subscription_id: str) -> None:
        """Take one out; nothing more is known of it."""
        gone = self._by_id.pop(subscription_id)
        if gone.task_id:
            mine = self._by_task[gone.task_id]
            if mine.get(gone.config_id) == gone.id:
                del mine[gone.config_id]
            if not mine:
                del self._by_task[gone.task_id]
        else:
            self._by_agent[gone.agent_id].pop(gone.id, None)
            if not self._by_agent[gone.agent_id]:
                del self._by_agent[gone.agent_id]
        self._note(gone.id, None)

    def of_task(self, task_id: str) -> Sequence[Subscription]:
        """Configurations of a task, in the order of making."""
        return [self._by_id[each] for each in self._by_task.get(task_id, {}).values()]

    def of_agent(self, agent_id: str) -> Sequence[Subscription]:
        """Webhooks of an agent that are not over, in the order of making."""
        found = (self._by_id[each] for each in self._by_agent.get(agent_id, {}))
        return [each for each in found if each.ended_at is None]

    def config(self, task_id: str, config_id: str) -> Subscription:
        """A configuration of a task; the first one without an id.

        Raises:
            PushNotFound: There is none of that id.
        """
        mine = self._by_task.get(task_id, {})
        found = mine.get(config_id) if config_id else next(iter(mine.values()), None)
        if found is None:
            raise PushNotFound(
                f"task {task_id[:40]} has no push configuration '{config_id[:80]}'",
                "list them to see their ids",
            )
        return self._by_id[found]

    def webhook(self, agent_id: str, webhook_id: str) -> Subscription:
        """A webhook of an agent, by its id or its URL.

        Raises:
            PushNotFound: There is none.
        """
        for found in self.of_agent(agent_id):
            if webhook_id in (found.id, found.url):
                return found
        raise PushNotFound(f"{agent_id} has no such webhook", "GET /webhooks lists them")

    def end(self, subscription: Subscription, at: datetime) -> None:
        """Note that one has nothing more to tell; it can be read for a while."""
        if subscription.id in self._by_id and subscription.ended_at is None:
            self._by_id[subscription.id] = over = ended(subscription, at)
            self._note(over.id, over)

    def sweep(self, now: datetime, busy: Callable[[str], bool]) -> None:
        """Forget those that have been over for a while and for which nothing waits."""
        for each in self:
            old = each.ended_at is not None and each.ended_at <= now - KEPT
            lost = bool(each.task_id) and each.created_at <= now - LONGEST
            if (old or lost) and not busy(each.id):
                self.remove(each.id)

    def _mates(self, subscription: Subscription) -> dict[str, str]:
        """Those that count towards the same limit, as caller's id to id."""
        if subscription.task_id:
            return self._by_task.get(subscription.task_id, {})
        return {each.id: each.id for each in self.of_agent(subscription.agent_id)}
