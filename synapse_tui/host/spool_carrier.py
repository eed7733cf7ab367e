"""One agent's spool at work: requests are taken as they appear, carried at the same time, and answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque

from synapse_tui.spool.folder import SpoolFolder, Taken
from synapse_tui.spool.messages import SpoolAnswer
from synapse_tui.spool.watch import SpoolWatch

from .spool_desk import SpoolDesk

log = logging.getLogger(__name__)

MAX_AT_ONCE = 64
"""Requests of one agent that are carried at a time; others wait in the folder."""
MAX_ANSWERS = 1000
"""Answers of one spool that may lie there uncollected; the oldest go first."""
ANSWER_LIFE = 60.0
"""Seconds for which an answer waits for its client, which looks 20 times a second unless it was killed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 60.0
"""Seconds between two attempts to make a folder again that was swept away."""


class SpoolCarrier:
    """Takes what is put into one spool.

    Args:
        agent_id: Whose it is.
        spool: The folder.
        desk: Decides on requests and carries them.
        watch: Tells when something appears; it must call `look` for this folder.
        token: The agent's secret, which signs the answers.
    """

    def __init__(
        self, agent_id: str, spool: SpoolFolder, desk: SpoolDesk, watch: SpoolWatch, *, token: str
    ) -> None:
        self.spool = spool
        self._agent_id = agent_id
        self._desk = desk
        self._watch = watch
        self._token = token
        self._worth_a_look = False
        self._ending = asyncio.Event()
        self._taking: asyncio.Task[None] | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self._unanswered: dict[str, Taken] = {}
        self._answers: deque[tuple[float, str]] = deque()
        """When answers were written, and the names of their files; most were collected a moment later."""
        self._expiring: asyncio.Task[None] | None = None
        self._new = True

    def start(self) -> None:
        """Begin; what lies there already is taken too."""
        if self.spool.locked:
            self._watch.add(self.spool.path)
        self.look()

    def look(self) -> None:
        """Take what is there; returns at once."""
        self._worth_a_look = True
        if self._ending.is_set() or (self._taking is not None and not self._taking.done()):
            return
        self._taking = asyncio.get_running_loop().create_task(self._take(), name=f"spool-{self._agent_id}")

    async def stop(self) -> None:
        """Take nothing any more; who waits for an answer is told that there is none."""
        self._ending.set()
        self._watch.remove(self.spool.path)
        if self._taking is not None:
            await asyncio.gather(self._taking, return_exceptions=True)
        carrying = tuple(self._carrying)
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
        for one in tuple(self._unanswered.values()):
            await self._answer(one, _ENDED)
        if self._expiring is not None:
            self._expiring.cancel()
            await asyncio.gather(self._expiring, return_exceptions=True)

    async def _take(self) -> None:
        if not self.spool.locked:
            await self._restore()
        if self._new:
            self._new = False
            with contextlib.suppress(OSError):  # of the host before
                await self._note(await asyncio.to_thread(self.spool.answers))
        while self._worth_a_look and not self._ending.is_set():
            room = MAX_AT_ONCE - len(self._carrying)
            if room <= 0:
                return  # looked again when one is done
            self._worth_a_look = False
            try:
                taken = await asyncio.to_thread(self.spool.take, room)
            except OSError:
                await self._restore()
                continue
            self._worth_a_look = self._worth_a_look or len(taken) == room
            for one in taken:
                self._begin(one)

    async def _restore(self) -> None:
        """Make the folder anew: an agent may well sweep its working folder."""
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            try:
                await asyncio.to_thread(self.spool.restore)
                self._watch.add(self.spool.path)
            except OSError as error:
                log.warning("the spool cannot be made again: %s", error, extra={"agent_id": self._agent_id})
            else:
                self._worth_a_look = True
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()
            pause = min(pause * 2, LONGEST_PAUSE)

    def _begin(self, one: Taken) -> None:
        self._unanswered[one.name] = one
        task = asyncio.get_running_loop().create_task(self._carry(one), name=f"carry-{one.name[:8]}")
        self._carrying.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._carrying.discard(task)
        if self._worth_a_look:
            self.look()

    async def _carry(self, one: Taken) -> None:
        try:
            answer = await self._desk.carry(one)
        except Exception:
            log.exception("a request from a spool failed", extra={"agent_id": self._agent_id})
            answer = _FAILED
        await self._answer(one, answer)

    async def _answer(self, one: Taken, answer: SpoolAnswer) -> None:
        del self._unanswered[one.name]
        try:
            await self._note(await asyncio.to_thread(self.spool.answer, one, answer, self._token))
        except OSError as error:
            log.warning("a spool takes no answer: %s", error, extra={"agent_id": self._agent_id})

    async def _note(self, names: list[str]) -> None:
        """Remember answers until they are collected, or given up."""
        loop = asyncio.get_running_loop()
        self._answers.extend((loop.time(), name) for name in names)
        await self._discard()
        if self._answers and (self._expiring is None or self._expiring.done()):
            self._expiring = loop.create_task(self._expire(), name=f"spool-answers-{self._agent_id}")

    async def _expire(self) -> None:
        while self._answers:
            oldest, _name = self._answers[0]
            await asyncio.sleep(oldest + ANSWER_LIFE - asyncio.get_running_loop().time())
            await self._discard()

    async def _discard(self) -> None:
        """Remove answers that are too old or too many; those that were collected are gone already."""
        now = asyncio.get_running_loop().time()
        names: list[str] = []
        while self._answers and (
            len(self._answers) > MAX_ANSWERS or self._answers[0][0] + ANSWER_LIFE <= now
        ):
            names.append(self._answers.popleft()[1])
        if names:
            await asyncio.to_thread(self.spool.discard, names)


_UNKNOWN = "it is not known whether the message arrived; look at the agent before sending it again"
_ENDED = SpoolAnswer(message="the agent's host ended before there was an answer", hint=_UNKNOWN)
_FAILED = SpoolAnswer(message="the agent's host could not carry the request", hint=f"see its log; {_UNKNOWN}")
