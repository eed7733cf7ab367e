"""Tells of changed conversations and writes them down, as often as is needed and no more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from synapse_tui.a2a.external.conversation import Conversation
from synapse_tui.a2a.external.journal import Journal
from synapse_tui.events import EventBus, ExternalTalked

log = logging.getLogger(__name__)

PULSE = 0.1
"""Least seconds between two events about one conversation, and between two writes of it."""


class ConversationWriter:
    """Brings what changes many times a second to the listeners and to the disk.

    Args:
        journal: Where conversations are written.
        events: Told of them.
    """

    def __init__(self, journal: Journal, events: EventBus) -> None:
        self._journal = journal
        self._events = events
        self._pulses: dict[str, asyncio.TimerHandle] = {}
        self._writes: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def changed(self, conversation: Conversation) -> None:
        """Tell of a conversation and write it down, soon."""
        alias = conversation.alias
        if alias not in self._pulses:
            loop = asyncio.get_running_loop()
            self._pulses[alias] = loop.call_later(PULSE, self._pulse, conversation)

    async def forget(self, alias: str) -> None:
        """Take a conversation away from the disk; nothing is written of it any more."""
        pulse = self._pulses.pop(alias, None)
        if pulse is not None:
            pulse.cancel()
        self._again.discard(alias)
        await asyncio.gather(*filter(None, [self._writes.get(alias)]), return_exceptions=True)
        await asyncio.to_thread(self._journal.forget, alias)

    async def stop(self, conversations: Iterable[Conversation]) -> None:
        """Write what is left."""
        for pulse in self._pulses.values():
            pulse.cancel()
        self._pulses.clear()
        self._again.clear()
        await asyncio.gather(*self._writes.values(), return_exceptions=True)
        for conversation in conversations:
            await self._write(conversation)

    def _pulse(self, conversation: Conversation) -> None:
        alias = conversation.alias
        self._pulses.pop(alias, None)
        self._events.publish(ExternalTalked(alias))
        if alias in self._writes:
            self._again.add(alias)
            return
        task = asyncio.get_running_loop().create_task(self._write(conversation), name=f"write-{alias}")
        self._writes[alias] = task
        task.add_done_callback(lambda _: self._written(conversation))

    def _written(self, conversation: Conversation) -> None:
        alias = conversation.alias
        self._writes.pop(alias, None)
        if alias in self._again:
            self._again.discard(alias)
            self.changed(conversation)

    async def _write(self, conversation: Conversation) -> None:
        news = self._journal.news(conversation)
        try:
            await asyncio.to_thread(self._journal.write, conversation.alias, news)
        except OSError as error:
            self._journal.lost(conversation.alias)
            log.warning("a conversation is not written down: %s", error, extra={"alias": conversation.alias})
