"""Makes one attempt to notify: one request on a new connection to a checked address.

Uses httpcore without httpx: no redirects, proxies or cookies, and connections under our control. `Host` and
certificate check still use the name; only the address is fixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpcore

from synapse_tui import __version__
from synapse_tui.a2a.calls import DELIVERY_HEADER
from synapse_tui.core.errors import TargetRefused
from synapse_tui.messages.records import PushDelivery, PushProtocol, PushSubscription
from synapse_tui.system.backoff import is_transient_status

from .policy import Destination, TargetPolicy, destination_of
from .worker import Attempt

TIMEOUT = 15.0  # seconds for an attempt (A2A section 4.3.3 asks for 10 to 30)
CONNECT_TIMEOUT = 5.0
ONE_ADDRESS_TIMEOUT = 2.0  # seconds per address, if there are several
MAX_ADDRESSES = 4
DRAIN_TIMEOUT = 1.0
MAX_ANSWER = 4096  # bytes of an answer that are read, and discarded

Headers = list[tuple[bytes, bytes]]


class PushSender:
    """Makes attempts of at most `timeout` seconds, to addresses that the policy allows."""

    def __init__(
        self,
        policy: TargetPolicy,
        *,
        certificates: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._policy = policy
        self._certificates = certificates or ssl.create_default_context()
        self._timeout = timeout

    async def __call__(self, subscription: PushSubscription, delivery: PushDelivery) -> Attempt:
        try:
            destination = destination_of(subscription.url)
            headers = headers_of(subscription, delivery, datetime.now(UTC))
            async with asyncio.timeout(self._timeout):
                return await self._post(
                    destination, headers, delivery.body.encode(), local=subscription.local
                )
        except TargetRefused as error:
            return Attempt(problem=f"refused: {error.message}")
        except (TimeoutError, httpcore.TimeoutException):
            return Attempt(problem="it did not answer in time", again=True)
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError) as error:
            return Attempt(problem=problem_of(error), again=True)

    async def _post(self, destination: Destination, headers: Headers, body: bytes, *, local: bool) -> Attempt:
        url = httpcore.URL(
            scheme=destination.scheme.encode(),
            host=destination.host.encode(),
            port=destination.port,
            target=destination.target.encode(),
        )
        async with (
            httpcore.AsyncConnectionPool(
                self._certificates,
                max_keepalive_connections=0,
                network_backend=CheckedBackend(self._policy, local=local),
            ) as pool,
            pool.stream(
                "POST",
                url,
                headers=headers,
                content=body,
                extensions={"timeout": {"connect": CONNECT_TIMEOUT}},
            ) as response,
        ):
            attempt = self._judge(response)
            with contextlib.suppress(OSError, httpcore.NetworkError, httpcore.ProtocolError):
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    await _drain(response)
            return attempt

    def _judge(self, response: httpcore.Response) -> Attempt:
        status = response.status
        if 200 <= status < 300:
            return Attempt(status)
        if 300 <= status < 400:
            return Attempt(status, f"it answered {status}: redirects are not followed")
        asked = next((value for name, value in response.headers if name.lower() == b"retry-after"), b"")
        return Attempt(
            status,
            f"it answered {status}",
            again=is_transient_status(status),
            retry_after=retry_after(asked.decode("latin-1"), datetime.now(UTC)),
        )


async def _drain(response: httpcore.Response) -> None:
    """Read a little of the answer, so that the receiver can send it."""
    size = 0
    async for chunk in response.aiter_stream():
        size += len(chunk)
        if size > MAX_ANSWER:
            return


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that the policy has checked, whatever the name resolves to later."""

    def __init__(self, policy: TargetPolicy, *, local: bool) -> None:
        self._policy = policy
        self._local = local
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        async with asyncio.timeout(timeout):
            addresses = list(await self._policy.addresses(host, port, local=self._local))[:MAX_ADDRESSES]
            for address in addresses[:-1]:
                try:
                    return await self._network.connect_tcp(address, port, ONE_ADDRESS_TIMEOUT)
                except (httpcore.ConnectError, httpcore.ConnectTimeout):
                    continue
            return await self._network.connect_tcp(
                addresses[-1], port, timeout, local_address, socket_options
            )


def headers_of(subscription: PushSubscription, delivery: PushDelivery, now: datetime) -> Headers:
    headers = {
        "Host": _authority(destination_of(subscription.url)),
        "User-Agent": f"synapse-tui/{__version__}",
        "Accept": "*/*",
        # Not application/a2a+json: most receivers accept only the plain type, which all SDKs send.
        "Content-Type": "application/json",
        "Content-Length": str(len(delivery.body.encode())),
        DELIVERY_HEADER: delivery.id,
    }
    if subscription.token:
        # The specification names no header; these are the ones of the Python and Go SDKs.
        headers["X-A2A-Notification-Token"] = headers["A2A-Notification-Token"] = subscription.token
    if subscription.scheme and subscription.credentials:
        headers["Authorization"] = f"{subscription.scheme} {subscription.credentials}"
    if subscription.protocol is PushProtocol.V1:
        headers["A2A-Version"] = PushProtocol.V1.value
    if subscription.protocol is PushProtocol.DIALECT:
        headers["X-Synapse-Event"] = delivery.event
        headers["X-Synapse-Event-Id"] = delivery.id
        headers["X-Synapse-Timestamp"] = delivery.created_at.isoformat()
    if subscription.secret:
        headers["X-Synapse-Signature"] = signature(subscription.secret, delivery.body, now)
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def signature(secret: str, body: str, now: datetime) -> str:
    """Sign a body with its time: `t=<unix seconds>,v1=<hex HMAC-SHA-256 of "t.body">`."""
    time = str(int(now.timestamp()))
    code = hmac.new(secret.encode(), f"{time}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={time},v1={code}"


def retry_after(value: str, now: datetime) -> float:
    """Seconds requested by a `Retry-After` header, a number or an HTTP date; 0 if invalid."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (when - now).total_seconds()) if when.tzinfo else 0.0


def _authority(destination: Destination) -> str:
    host = f"[{destination.host}]" if ":" in destination.host else destination.host
    usual = {"http": 80, "https": 443}[destination.scheme]
    return host if destination.port == usual else f"{host}:{destination.port}"


def problem_of(error: BaseException) -> str:
    """Describe an error in our own words: messages of libraries may quote what was sent."""
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {each.verify_message}"
        if isinstance(each, ssl.SSLError):
            return "TLS failed"
        if isinstance(each, httpcore.ProtocolError):
            return "its answer is not HTTP"
        if isinstance(each, socket.gaierror):
            return "its name has no address"
    numbers = [each.errno for each in chain if isinstance(each, OSError) and each.errno]
    return os.strerror(numbers[-1]) if numbers else "the connection broke"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
