"""Looks now and then whether external agents still show the card that they were added with."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime

from synapse_tui.a2a.external.adding import changed_card
from synapse_tui.a2a.external.record import ExternalAgent
from synapse_tui.a2a.external.store import ExternalStore
from synapse_tui.errors import SynapseError
from synapse_tui.events import EventBus, Notice

log = logging.getLogger(__name__)

EVERY = 600.0
"""Seconds between two looks at one card."""


class CardWatch:
    """Tells of cards that have changed: what is used stays what the person saw when the agent was added.

    Args:
        environ: Gives the environment in which tokens are.
        events: Told of a changed card.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        environ: Callable[[], Mapping[str, str]],
        events: EventBus,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environ = environ
        self._events = events
        self._clock = clock
        self._looked: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()
        self._work: set[asyncio.Task[None]] = set()

    def look(self, agent: ExternalAgent) -> None:
        """Look at an agent's card, unless that was done a while ago."""
        now = self._clock()
        if agent.interface is None or now - self._looked.get(agent.alias, -EVERY) < EVERY:
            return
        self._looked[agent.alias] = now
        self._keep(asyncio.get_running_loop().create_task(self._compare(agent), name=f"card-{agent.alias}"))

    def answered(self, alias: str, store: ExternalStore, when: datetime) -> None:
        """Note in the registry that an agent has answered."""
        work = asyncio.to_thread(store.touch, alias, when.isoformat(timespec="seconds"))
        self._keep(asyncio.get_running_loop().create_task(work, name=f"seen-{alias}"))

    async def stop(self) -> None:
        """End."""
        for work in tuple(self._work):
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _keep(self, work: asyncio.Task[None]) -> None:
        self._work.add(work)
        work.add_done_callback(self._done)

    def _done(self, work: asyncio.Task[None]) -> None:
        self._work.discard(work)
        if not work.cancelled() and (error := work.exception()):
            log.warning("an external agent's record: %s", error)

    async def _compare(self, agent: ExternalAgent) -> None:
        try:
            changed = await changed_card(agent, self._environ())
        except SynapseError as error:
            log.info("a card was not read: %s", error.message)
            return
        if changed and (agent.alias, agent.card_hash) not in self._told:
            self._told.add((agent.alias, agent.card_hash))
            text = (
                f"@{agent.alias} shows another card than when it was added; the old one is used until you "
                f"add it again: synapse external add {agent.url} --alias {agent.alias}"
            )
            self._events.publish(Notice(text, "warning"))
