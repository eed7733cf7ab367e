"""The client of a host: asynchronous, on httpx; imported late, in a thread."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping

import httpx

from synapse_tui.errors import PeerRefused, PeerUnreachable
from synapse_tui.model import USER, Reply, Sender

from . import dialect
from .dialect import Call, PeerTask
from .network import LOOPBACK, Network, client_context
from .signing import TokenVerifier, nobody

__all__ = ["A2AClient", "PeerTask"]


class A2AClient:
    """Calls agents, of this host or others.

    Nothing is ever sent twice: a call whose fate is unknown is reported as an error.
    Every call has a connection of its own: on one that was kept, a server that has just closed it cannot be
    told from one that took the message and died.

    Args:
        token_of: Gives the tokens of this host's agents; calls to this machine are signed with the sender's.
        timeout: Seconds that an answer may take.
        name_of: Gives the words by which errors name the server of an endpoint.
        network: Whose certificates are trusted over https.
        key: Shown to servers on this machine that demand one; empty for none.
    """

    def __init__(
        self,
        *,
        token_of: TokenVerifier = nobody,
        timeout: float = dialect.ANSWER_TIMEOUT,
        name_of: Callable[[str], str] = str,
        network: Network = LOOPBACK,
        key: str = "",
    ) -> None:
        self._network = network
        self._key = key
        self._name_of = name_of
        self._token_of = token_of
        self._timeout = httpx.Timeout(timeout, connect=dialect.CONNECT_TIMEOUT)
        # Certificates take long to load: the client for https is made only when one is called.
        self._plain = self._make(verify=False)
        self._secure: dict[bool, asyncio.Task[httpx.AsyncClient]] = {}

    def _make(self, *, verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
        limits = httpx.Limits(max_keepalive_connections=0)
        transport = httpx.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)
        # trust_env: a proxy of the environment has no business between agents of this machine.
        return httpx.AsyncClient(
            transport=transport, timeout=self._timeout, trust_env=False, follow_redirects=False
        )

    async def close(self) -> None:
        """End all connections."""
        await self._plain.aclose()
        for made in await asyncio.gather(*self._secure.values(), return_exceptions=True):
            if isinstance(made, httpx.AsyncClient):
                await made.aclose()

    async def send(
        self,
        endpoint: str,
        text: str,
        *,
        sender: Sender | None = None,
        priority: int = 3,
        response_expected: bool = False,
        metadata: Mapping[str, object] | None = None,
    ) -> PeerTask:
        """Send a message.

        Args:
            endpoint: URL of the receiver's server.
            text: The message.
            sender: Who sends it.
            priority: 1 to 5.
            response_expected: Whether the sender waits for the answer.
            metadata: Whatever else goes with it.

        Returns:
            The task that the agent made of it.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The message was not taken.
        """
        call = dialect.send_call(
            text,
            sender=sender,
            priority=priority,
            response_expected=response_expected,
            metadata=metadata or {},
        )
        return dialect.read_task(endpoint, await self._call(endpoint, call, sender))

    async def answer(self, endpoint: str, outgoing_id: str, reply: Reply, *, sender: Sender) -> PeerTask:
        """End the outgoing task of an agent that asked.

        Args:
            endpoint: URL of its server.
            outgoing_id: Its task.
            reply: The answer.
            sender: The agent that was asked.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task, or it takes no such answer.
        """
        call = dialect.answer_call(outgoing_id, reply, sender=sender)
        return dialect.read_task(endpoint, await self._call(endpoint, call, sender))

    async def task(self, endpoint: str, task_id: str) -> PeerTask:
        """Read a task.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task.
        """
        return dialect.read_task(endpoint, await self._call(endpoint, dialect.task_call(task_id)))

    async def cancel(self, endpoint: str, task_id: str, *, sender: Sender | None = None) -> PeerTask:
        """Cancel a task.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: There is no such task, or it has ended.
        """
        return dialect.read_task(
            endpoint, await self._call(endpoint, dialect.task_call(task_id, "cancel"), sender)
        )

    async def status(self, endpoint: str) -> Mapping[str, object]:
        """Read an agent's state: `{"status", "context"}`.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The answer is no status.
        """
        return await self._object(endpoint, "/status")

    async def card(self, endpoint: str) -> Mapping[str, object]:
        """Read an agent's card.

        Raises:
            PeerUnreachable: Nobody answers there.
            PeerRefused: The answer is no card.
        """
        return await self._object(endpoint, "/.well-known/agent-card.json")

    async def _object(self, endpoint: str, path: str) -> Mapping[str, object]:
        value = await self._call(endpoint, Call("GET", path))
        if not isinstance(value, dict):
            raise PeerRefused(f"{endpoint}{path} is no JSON object", 502, "is it an agent's endpoint?")
        return value

    async def _client_for(self, endpoint: str) -> httpx.AsyncClient:
        if not endpoint.startswith("https:"):
            return self._plain
        near = dialect.is_near(endpoint)
        if near not in self._secure:
            self._secure[near] = asyncio.create_task(asyncio.to_thread(self._make_secure, near))
        return await asyncio.shield(self._secure[near])

    def _make_secure(self, near: bool) -> httpx.AsyncClient:
        return self._make(verify=client_context(self._network, near=near))

    async def forward(
        self, endpoint: str, call: Call, *, sender_id: str, patience: float
    ) -> tuple[int, bytes]:
        """Carry somebody's request, signed anew in the sender's name.

        Args:
            endpoint: URL of the receiver's server.
            call: The request.
            sender_id: Whose it is.
            patience: Seconds that the answer may take.

        Returns:
            Status and body of the answer, whatever they are.

        Raises:
            PeerUnreachable: Nobody answers there.
        """
        limits = httpx.Timeout(patience, connect=dialect.CONNECT_TIMEOUT)
        return await self._exchange(endpoint, call, sender_id, limits)

    async def _call(self, endpoint: str, call: Call, sender: Sender | None = None) -> object:
        sender_id = sender.sender_id if sender else ""
        status, body = await self._exchange(endpoint, call, sender_id, self._timeout)
        if self._token_of(USER.sender_id) and dialect.may_sign_again(call, status, sender_id):
            status, body = await self._exchange(endpoint, call, USER.sender_id, self._timeout)
        return dialect.read_answer(self._name_of(endpoint), status, body)

    async def _exchange(
        self, endpoint: str, call: Call, sender_id: str, limits: httpx.Timeout
    ) -> tuple[int, bytes]:
        headers = call.headers(endpoint, sender_id, self._token_of, key=self._key)
        client = await self._client_for(endpoint)
        url = endpoint.rstrip("/") + call.target
        try:
            async with client.stream(
                call.method, url, content=call.body or None, headers=headers, timeout=limits
            ) as response:
                return response.status_code, await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise PeerUnreachable(
                f"nobody answers at {self._name_of(endpoint)}", "the agent may have just ended"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = dialect.tidy(str(error)) or type(error).__name__
            raise PeerUnreachable(
                f"{self._name_of(endpoint)} did not answer: {why}",
                "it is not known whether the message arrived" if call.method == "POST" else "try again",
            ) from error


async def _read(response: httpx.Response) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > dialect.MAX_ANSWER:
            break
    return b"".join(chunks)
