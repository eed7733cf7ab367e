"""The spools of a host's agents whose sandbox forbids all connections (docs/spool.md)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from synapse_tui.a2a import calls
from synapse_tui.a2a.problems import HttpProblem, answer_for
from synapse_tui.a2a.signing import (
    SENDER_HEADER,
    SIGNATURE_HEADER,
    SignatureCheck,
    SignatureChecker,
    SignedRequest,
    TokenVerifier,
)
from synapse_tui.agents.profiles.profile import Profile
from synapse_tui.core.errors import PeerUnreachable, SynapseError
from synapse_tui.core.model import USER
from synapse_tui.sessions.registry import Registry
from synapse_tui.sessions.spool.files import SpoolAnswer, SpoolRequest
from synapse_tui.sessions.spool.folder import (
    SPOOL,
    AgentPlace,
    SpoolFolder,
    SpoolWatch,
    Taken,
    new_spool,
    remove_abandoned,
    temporary_folder,
)
from synapse_tui.system.backoff import Backoff
from synapse_tui.system.paths import FOLDER, remove_project_folder

if TYPE_CHECKING:
    from synapse_tui.a2a.async_client import AsyncClient


log = logging.getLogger(__name__)


class SpoolGateway:
    """Forwards requests of this host's agents to agents of this machine and to no other service.

    Args:
        registry: Lists the agents of this machine.
        token_of: Returns the token of an agent of this host.
        client: Provides the HTTP client, which signs as the agent.
        endpoints: Returns the endpoints of this host's own agents.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        token_of: TokenVerifier,
        client: Callable[[], Awaitable[AsyncClient]],
        endpoints: Callable[[], Iterable[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._checker = SignatureChecker(token_of, clock=clock)
        self._client = client
        self._endpoints = endpoints
        self._clock = clock

    async def carry(self, taken: Taken) -> SpoolAnswer:
        """Forward a request and return the answer."""
        try:
            return await self._carry(taken)
        except PeerUnreachable as error:
            return SpoolAnswer(message=error.message, hint=error.hint)
        except SynapseError as error:
            log.info("refused a request from a spool: %s", error.message)
            answer = answer_for(error)
            return SpoolAnswer(answer.status, answer.body)

    async def _carry(self, taken: Taken) -> SpoolAnswer:
        request = taken.request
        if request is None:
            raise HttpProblem(
                400, "malformed_request", f"the file in the spool is no request: {taken.problem}", _VERSIONS
            )
        if self._clock() > request.expires:
            raise PeerUnreachable(
                "the request was taken out of the spool too late; nothing was sent", "send it again"
            )
        sender = self._verified_sender(request)
        await self._check_endpoint(request.endpoint)
        client = await self._client()
        status, body = await client.forward(
            request.endpoint,
            calls.request(request.method, request.target, request.body),
            sender_id=sender,
            seconds=request.timeout,
        )
        return SpoolAnswer(status, body)

    def _verified_sender(self, request: SpoolRequest) -> str:
        url = urlsplit(request.endpoint)
        signed = SignedRequest(
            request.method, url.port or 80, url.path.rstrip("/") + request.target, request.body
        )
        sender = request.headers.get(SENDER_HEADER, "")
        signature = request.headers.get(SIGNATURE_HEADER, "")
        verdict = self._checker.check(signed, sender=sender, signature=signature)
        if verdict is not SignatureCheck.VERIFIED:
            raise HttpProblem(
                401,
                f"signature_{verdict}",
                f"the sender's signature is {verdict}: only agents of this host may use its spools",
                "run the command inside the agent, with its own SYNAPSE_AGENT_ID and SYNAPSE_TOKEN",
            )
        return sender

    async def _check_endpoint(self, endpoint: str) -> None:
        """Check that the target is an agent, because spools must not reach other services."""
        if endpoint in self._endpoints():
            return
        live, _ = await asyncio.to_thread(self._registry.scan)
        if endpoint not in (record.endpoint for record in live):
            raise PeerUnreachable(
                f"nothing is listening at {endpoint}: no agent is recorded there", "see 'synapse list'"
            )


_VERSIONS = "the command and the agent's host must be of the same version of synapse-tui"


MAX_AT_ONCE = 64
"""Requests of one agent in progress at a time; others wait in the folder."""
MAX_ANSWERS = 1000
"""Uncollected answers per spool; the oldest are removed first."""
ANSWER_LIFE = 60.0
"""Seconds an answer waits for its client, which polls 20 times a second while it is alive."""
RETRY = Backoff(first=0.1, longest=60.0)
"""For recreating a folder that was removed."""


class SpoolWorker:
    """Processes the requests in one spool.

    Args:
        agent_id: The spool's agent.
        spool: The folder.
        desk: Forwards the requests.
        watch: Must call `look` when something appears in this folder.
        token: The agent's token, which signs the answers.
    """

    def __init__(
        self, agent_id: str, spool: SpoolFolder, desk: SpoolGateway, watch: SpoolWatch, *, token: str
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
        """Times and file names of answers; most of these have been collected."""
        self._expiring: asyncio.Task[None] | None = None
        self._new = True

    def start(self) -> None:
        """Start, including requests that are already there."""
        if self.spool.locked:
            self._watch.add(self.spool.path)
        self.look()

    def look(self) -> None:
        """Process new requests; returns at once."""
        self._worth_a_look = True
        if self._ending.is_set() or (self._taking is not None and not self._taking.done()):
            return
        self._taking = asyncio.get_running_loop().create_task(self._take(), name=f"spool-{self._agent_id}")

    async def stop(self) -> None:
        """Stop processing requests; waiting clients get an error as their answer."""
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
            with contextlib.suppress(OSError):  # answers of an earlier host
                await self._note(await asyncio.to_thread(self.spool.answers))
        while self._worth_a_look and not self._ending.is_set():
            room = MAX_AT_ONCE - len(self._carrying)
            if room <= 0:
                return  # checked again when a request is done
            self._worth_a_look = False
            try:
                taken = await asyncio.to_thread(self.spool.take, room)
            except OSError:
                await self._restore()
                continue
            self._worth_a_look = self._worth_a_look or len(taken) == room
            for one in taken:
                self._unanswered[one.name] = one
                task = asyncio.get_running_loop().create_task(self._carry(one), name=f"carry-{one.name[:8]}")
                self._carrying.add(task)
                task.add_done_callback(self._done)

    async def _restore(self) -> None:
        attempts = 0
        while not self._ending.is_set():
            attempts += 1
            try:
                await asyncio.to_thread(self.spool.restore)
                self._watch.add(self.spool.path)
            except OSError as error:
                log.warning("the spool cannot be made again: %s", error, extra={"agent_id": self._agent_id})
            else:
                self._worth_a_look = True
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY.delay(attempts)):
                    await self._ending.wait()

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


VARIABLE = "SYNAPSE_SPOOL"
"""Names the spool in an agent's environment."""


class Spools:
    """Creates a spool for each agent and processes its requests.

    Args:
        project: Folder of the host's project, a real path.
        home: The user's home folder.
        registry: Lists the agents of this machine.
        tokens: Returns the token of an agent.
        client: Provides the HTTP client.
        endpoints: Returns the endpoints of this host's own agents.
    """

    def __init__(
        self,
        project: Path,
        *,
        home: Path,
        registry: Registry,
        tokens: TokenVerifier,
        client: Callable[[], Awaitable[AsyncClient]],
        endpoints: Callable[[], Iterable[str]],
    ) -> None:
        self._project = project
        self._home = Path(os.path.realpath(home))
        self._desk = SpoolGateway(
            registry,
            # Only agents have a spool, so the person's token is never accepted here.
            token_of=lambda sender: None if sender == USER.sender_id else tokens(sender),
            client=client,
            endpoints=endpoints,
        )
        self._tokens = tokens
        self._made: dict[str, SpoolFolder] = {}
        self._carriers: dict[str, SpoolWorker] = {}
        self._markers: set[Path] = set()
        """`.synapse` folders created for a spool."""
        self._watch: SpoolWatch | None = None
        self._sweeping: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._sweep(temporary_folder(os.environ))
        self._sweep(self._project / FOLDER / SPOOL)

    def make(self, agent_id: str, profile: Profile, folder: Path, environ: Mapping[str, str]) -> Path | None:
        """Create the spool of an agent that is about to start."""
        place = AgentPlace(agent_id, folder, self._project, self._home, profile.sandbox, environ)
        marker = folder / FOLDER
        marked = marker.exists()
        try:
            spool = new_spool(place)
        except OSError as error:
            log.warning("no spool can be made: %s", error, extra={"agent_id": agent_id})
            return None
        if not marked and marker in spool.path.parents:
            self._markers.add(marker)
        self._made[agent_id] = spool
        return spool.path

    def unmake(self, agent_id: str) -> None:
        """Remove the spool of an agent that failed to start."""
        spool = self._made.pop(agent_id, None)
        if spool is not None:
            self._remove(spool)

    def add(self, agent_id: str, environ: Mapping[str, str]) -> None:
        """Start processing an agent's spool."""
        spool = self._made.pop(agent_id, None)
        if spool is None and environ.get(VARIABLE):
            spool = SpoolFolder(Path(environ[VARIABLE]))
        if spool is None:
            return
        if self._watch is None:
            self._watch = SpoolWatch(self._on_change)
        self._carriers[agent_id] = carrier = SpoolWorker(
            agent_id, spool, self._desk, self._watch, token=self._tokens(agent_id) or environ["SYNAPSE_TOKEN"]
        )
        carrier.start()

    async def remove(self, agent_id: str) -> None:
        carrier = self._carriers.pop(agent_id, None)
        if carrier is None:
            return
        await carrier.stop()
        await asyncio.to_thread(self._remove, carrier.spool)

    async def hand_over(self) -> None:
        """Leave the spools to the next host version; requests in progress are answered first."""
        for carrier in self._carriers.values():
            await carrier.stop()
            carrier.spool.leave()
        self._carriers.clear()
        await self._end()

    async def stop(self) -> None:
        await asyncio.gather(*(self.remove(agent_id) for agent_id in tuple(self._carriers)))
        await self._end()

    async def _end(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        await asyncio.gather(*self._sweeping, return_exceptions=True)

    def _on_change(self, folder: Path) -> None:
        for carrier in self._carriers.values():
            if carrier.spool.path == folder:
                carrier.look()

    def _remove(self, spool: SpoolFolder) -> None:
        spool.remove()
        for marker in tuple(self._markers):
            remove_project_folder(marker)

    def _sweep(self, parent: Path) -> None:
        coroutine = asyncio.to_thread(remove_abandoned, parent)
        task = asyncio.get_running_loop().create_task(coroutine, name="sweep-spools")
        self._sweeping.add(task)
        task.add_done_callback(self._sweeping.discard)
