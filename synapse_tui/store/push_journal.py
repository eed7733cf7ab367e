"""The part of the history that is about push notifications, as the loop sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from .history import History
from .push import Delivery, PushLeft, PushNotes, Subscription


class PushJournal(Protocol):
    """Where push notifications are written down."""

    def note(self, subscription_id: str, subscription: Subscription | None) -> None:
        """Note the newest state of someone who is told; None when nobody is told any more."""

    def note_delivery(self, delivery: Delivery) -> None:
        """Note the newest state of a notification."""

    async def flush(self) -> None:
        """Return when all that was noted would survive the end of this process.

        Raises:
            HistoryError: It would not.
        """

    async def left(self) -> PushLeft:
        """What earlier processes left to be told; this one's from now on.

        Raises:
            HistoryError: It cannot be read.
        """

    async def webhooks(self, agent_id: str, *, goes_on: bool) -> PushLeft:
        """The webhooks of an agent that was opened; this process's from now on.

        Args:
            agent_id: The agent.
            goes_on: Whether it goes on where an earlier one was: then with all of that one's webhooks.

        Raises:
            HistoryError: They cannot be read.
        """

    async def log(self, subscription_id: str, limit: int) -> Sequence[Delivery]:
        """The newest notifications to someone, newest first, without their bodies.

        Raises:
            HistoryError: They cannot be read.
        """

    async def prune(self, before: datetime) -> None:
        """Remove what ended before a time.

        Raises:
            HistoryError: It cannot be written.
        """


class HistoryPushJournal:
    """Writes push notifications into the history, in the same transactions as the tasks they tell of.

    Args:
        history: The history.
        project: Folder of the project.
    """

    def __init__(self, history: History, project: str) -> None:
        self._history = history
        self._project = project

    def note(self, subscription_id: str, subscription: Subscription | None) -> None:
        """Note the newest state of someone who is told; None when nobody is told any more."""
        if subscription is not None:
            subscription = replace(subscription, project=self._project)
        self._history.note_push(PushNotes({subscription_id: subscription}))

    def note_delivery(self, delivery: Delivery) -> None:
        """Note the newest state of a notification."""
        self._history.note_push(PushNotes(deliveries={delivery.id: delivery}))

    async def flush(self) -> None:
        """Return when all that was noted is on the disk.

        Raises:
            HistoryError: It cannot be written, or not in time.
        """
        await self._history.flush()

    async def left(self) -> PushLeft:
        """What ended processes of this project left to be told; this one's from now on.

        Raises:
            HistoryError: It cannot be read.
        """
        return await self._history.read(lambda database: database.push_left(self._project))

    async def webhooks(self, agent_id: str, *, goes_on: bool) -> PushLeft:
        """The webhooks of an agent that was opened; this process's from now on.

        Args:
            agent_id: The agent.
            goes_on: Whether it goes on where an earlier one was: then with all of that one's webhooks.

        Raises:
            HistoryError: They cannot be read.
        """
        return await self._history.read(
            lambda database: database.webhooks_left(self._project, agent_id, goes_on=goes_on)
        )

    async def log(self, subscription_id: str, limit: int) -> Sequence[Delivery]:
        """The newest notifications to someone, newest first, without their bodies.

        Raises:
            HistoryError: They cannot be read.
        """
        return await self._history.read(lambda database: database.push_log(subscription_id, limit))

    async def prune(self, before: datetime) -> None:
        """Remove what ended before a time.

        Raises:
            HistoryError: It cannot be written.
        """
        await self._history.read(lambda database: database.prune_push(before))


class NoPushJournal:
    """Writes nothing down."""

    def note(self, subscription_id: str, subscription: Subscription | None) -> None:
        """Forget it."""

    def note_delivery(self, delivery: Delivery) -> None:
        """Forget it."""

    async def flush(self) -> None:
        """Return at once."""

    async def left(self) -> PushLeft:
        """Nothing."""
        return PushLeft()

    async def webhooks(self, agent_id: str, *, goes_on: bool) -> PushLeft:  # noqa: ARG002 - a PushJournal
        """Nothing."""
        return PushLeft()

    async def log(self, subscription_id: str, limit: int) -> Sequence[Delivery]:  # noqa: ARG002
        """Nothing."""
        return ()

    async def prune(self, before: datetime) -> None:
        """Nothing to remove."""
