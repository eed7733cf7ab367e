"""The asynchronous client of a host, on httpx; imported late, in a thread."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from synapse_tui.core.errors import PeerUnreachable
from synapse_tui.core.model import USER

from .calls import ANSWER_TIMEOUT, CONNECT_TIMEOUT, MAX_ANSWER, Call, is_loopback, tidy
from .network import LOOPBACK, Network, client_context
from .signing import TokenVerifier, no_token

T = TypeVar("T")


class AsyncClient:
    """Calls agents on this and other hosts.

    Nothing is sent twice: a call whose outcome is unknown raises an error. Every call uses a new connection:
    on a pooled one, a server that has just closed it looks like one that accepted the message and died.

    Calls to this machine are signed with the sender's token and carry `key`, if any; `timeout` is in seconds.
    """

    def __init__(
        self,
        *,
        token_of: TokenVerifier = no_token,
        timeout: float = ANSWER_TIMEOUT,
        name_of: Callable[[str], str] = str,
        network: Network = LOOPBACK,
        key: str = "",
    ) -> None:
        self._network = network
        self._key = key
        self._name_of = name_of
        self._token_of = token_of
        self._timeout = timeout
        # Loading certificates is slow: HTTPS clients are created on first use.
        self._plain = _make(verify=False)
        self._secure: dict[bool, asyncio.Task[httpx.AsyncClient]] = {}

    async def close(self) -> None:
        await self._plain.aclose()
        for made in await asyncio.gather(*self._secure.values(), return_exceptions=True):
            if isinstance(made, httpx.AsyncClient):
                await made.aclose()

    async def call(self, endpoint: str, call: Call[T], *, sender_id: str = "") -> T:
        """Make a call, signed by `sender_id` or else by the call's default signer.

        Raises:
            PeerUnreachable: No answer arrived.
            PeerRefused: The answer is an error or not of the expected form.
        """
        sender_id = sender_id or call.sender_id
        status, body = await self.forward(endpoint, call, sender_id=sender_id)
        if self._token_of(USER.sender_id) and call.may_sign_again(status, sender_id):
            status, body = await self.forward(endpoint, call, sender_id=USER.sender_id)
        return call.read(self._name_of(endpoint), status, body)

    async def forward(
        self, endpoint: str, call: Call[Any], *, sender_id: str, seconds: float = 0.0
    ) -> tuple[int, bytes]:
        """Make a call on behalf of a sender. Returns status and body, or raises PeerUnreachable."""
        headers = call.headers(endpoint, sender_id, self._token_of, key=self._key)
        client = await self._client_for(endpoint)
        url = endpoint.rstrip("/") + call.target
        limits = httpx.Timeout(seconds or self._timeout, connect=CONNECT_TIMEOUT)
        try:
            async with client.stream(
                call.method, url, content=call.body or None, headers=headers, timeout=limits
            ) as response:
                return response.status_code, await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise PeerUnreachable(
                f"nothing is listening at {self._name_of(endpoint)}", "the agent may have just ended"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = tidy(str(error)) or type(error).__name__
            raise PeerUnreachable(
                f"{self._name_of(endpoint)} did not answer: {why}",
                "it is not known whether the message arrived" if call.method == "POST" else "try again",
            ) from error

    async def _client_for(self, endpoint: str) -> httpx.AsyncClient:
        if not endpoint.startswith("https:"):
            return self._plain
        local = is_loopback(endpoint)
        if local not in self._secure:
            self._secure[local] = asyncio.create_task(asyncio.to_thread(self._make_secure, local))
        return await asyncio.shield(self._secure[local])

    def _make_secure(self, local: bool) -> httpx.AsyncClient:
        return _make(verify=client_context(self._network, local=local))


def _make(*, verify: ssl.SSLContext | bool) -> httpx.AsyncClient:
    limits = httpx.Limits(max_keepalive_connections=0)
    # trust_env: agents on this machine are never called through a proxy.
    transport = httpx.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


async def _read(response: httpx.Response) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            break
    return b"".join(chunks)
