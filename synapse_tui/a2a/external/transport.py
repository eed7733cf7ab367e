"""The connection to one external agent: httpx with a guard that knows to whom it may speak, and how much."""

from __future__ import annotations

import asyncio
import random
import re
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from synapse_tui.errors import BudgetSpent, PeerRefused, PeerUnreachable, SynapseError

from .peer import Budget, MessageSize, NotOffered, Pace
from .untrusted import clean_line, is_allowed, is_loopback, origin_of, shown_origin

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 900.0
"""Seconds without a byte: agents that answer only when they have finished may take long."""
WRITE_TIMEOUT = 30.0
MAX_BYTES = 32 * 1024 * 1024
"""Bytes of one answer, also of a stream."""
STREAM_PIECE = 4096
ANSWER_PIECE = 65_536
"""Bytes that are handed on at once; everything else has its turn in between."""
PAUSES = (0.3, 1.0)
"""Seconds before a request is made again that did not arrive."""
LONGEST_PAUSE = 10.0
_TRY_AGAIN = frozenset({429, 503})
"""Statuses by which a server says that it has not taken the request, and will later."""

Sleep = Callable[[float], Awaitable[None]]


class Forbidden(httpx.RequestError):
    """A request or an answer that the guard does not let pass.

    Args:
        error: What a person is told.
        request: The request.
    """

    def __init__(self, error: SynapseError, request: httpx.Request) -> None:
        super().__init__(error.message, request=request)
        self.error = error


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may do.

    Attributes:
        own: A URL of the origin that credentials are for.
        allowed: URLs of further origins.
        headers: Credentials; sent to the own origin only.
        max_bytes: Longest answer.
        budget: What the task may still receive; None for what belongs to no task.
    """

    own: str
    allowed: Collection[str] = ()
    headers: Mapping[str, str] | None = None
    max_bytes: int = MAX_BYTES
    budget: Budget | None = None


class GuardedTransport(httpx.AsyncBaseTransport):
    """Speaks to allowed origins only, follows no redirect, and reads no more than was agreed.

    A request that certainly did not arrive (nobody listens, or the server says that it is busy) is made
    again, byte for byte, so that a message keeps its id; nothing else ever is.

    Args:
        inner: Makes the requests.
        bounds: What is allowed.
        sleep: Waits so many seconds.
    """

    def __init__(
        self, inner: httpx.AsyncBaseTransport, bounds: Bounds, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._inner = inner
        self._bounds = bounds
        self._sleep = sleep

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request.

        Raises:
            Forbidden: It goes where it must not, or the answer is none that is wanted.
        """
        self._check(request)
        for name, value in self._credentials(request).items():
            request.headers[name] = value
        response = await self._insist(request)
        try:
            return self._checked(request, response)
        except BaseException:
            await response.aclose()
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    def _check(self, request: httpx.Request) -> None:
        url = _seen(request.url)
        if not is_allowed(url, self._bounds.own, self._bounds.allowed):
            raise Forbidden(
                PeerRefused(
                    f"{shown_origin(url)} is not where this agent was added",
                    0,
                    f"if that is right, agree to it: --allow-origin {shown_origin(url)}",
                ),
                request,
            )

    def _credentials(self, request: httpx.Request) -> Mapping[str, str]:
        mine = origin_of(_seen(request.url)) == origin_of(self._bounds.own)
        return (self._bounds.headers or {}) if mine else {}

    async def _insist(self, request: httpx.Request) -> httpx.Response:
        for pause in PAUSES:
            try:
                response = await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                await self._sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
                continue
            if response.status_code not in _TRY_AGAIN:
                return response
            wait = _retry_after(response) or pause
            if wait > LONGEST_PAUSE:
                return response
            await response.aclose()
            await self._sleep(wait)
        return await self._inner.handle_async_request(request)

    def _checked(self, request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if response.has_redirect_location:
            where = shown_origin(str(request.url.join(response.headers["location"])))
            raise Forbidden(
                PeerRefused(
                    f"{shown_origin(str(request.url))} redirects to {where}, which is not followed",
                    response.status_code,
                    "if that is right, add the agent by that URL",
                ),
                request,
            )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise Forbidden(
                PeerRefused(f"{shown_origin(str(request.url))} sends compressed answers, unasked", 0), request
            )
        assert isinstance(response.stream, httpx.AsyncByteStream)
        streams = "text/event-stream" in response.headers.get("content-type", "")
        if streams:
            response.headers["content-type"] = "text/event-stream"  # which is UTF-8, whatever else it says
        response.stream = _Bounded(
            response.stream,
            self._bounds.max_bytes,
            request,
            budget=self._bounds.budget or Budget(Pace()),
            streams=streams,
            measured=self._bounds.budget
            is not None,  # cards have a lower limit, and the SDK does not read them
        )
        return response


class _Bounded(httpx.AsyncByteStream):
    """A body that is read no faster than its budget allows, and ends with an error when it is too long."""

    def __init__(
        self,
        inner: httpx.AsyncByteStream,
        limit: int,
        request: httpx.Request,
        *,
        budget: Budget,
        streams: bool,
        measured: bool,
    ) -> None:
        self._inner = inner
        self._left = limit
        self._limit = limit
        self._request = request
        self._size = STREAM_PIECE if streams else ANSWER_PIECE
        self._count = budget.streamed if streams else budget.answered
        self._message = MessageSize(streams=streams)
        self._measured = measured

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            for start in range(0, len(chunk), self._size):
                piece = chunk[start : start + self._size]
                try:
                    await self._count(piece, self._message.add(piece) if self._measured else 0)
                except BudgetSpent as error:
                    raise Forbidden(error, self._request) from error
                yield piece
            if self._left < 0:
                raise Forbidden(
                    PeerRefused(f"the answer has more than {self._limit:,} bytes", 0), self._request
                )

    async def aclose(self) -> None:
        await self._inner.aclose()


def make_client(bounds: Bounds, *, sleep: Sleep = asyncio.sleep) -> httpx.AsyncClient:
    """A client for one agent; it loads certificates where it needs them, so it is made in a thread."""
    url = urlsplit(bounds.own)
    proxy = proxy_for(bounds.own)
    inner = httpx.AsyncHTTPTransport(
        verify=url.scheme == "https" or bool(proxy), trust_env=False, proxy=proxy, retries=0
    )
    timeout = httpx.Timeout(
        connect=CONNECT_TIMEOUT, read=READ_TIMEOUT, write=WRITE_TIMEOUT, pool=CONNECT_TIMEOUT
    )
    return httpx.AsyncClient(
        transport=GuardedTransport(inner, bounds, sleep=sleep),
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "synapse-tui"},
    )


def proxy_for(url: str) -> str | None:
    """The proxy of the environment for a URL; None for none, and for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(parts) or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _seen(url: httpx.URL) -> str:
    """The origin that will be connected to, as httpx itself sees it."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port is not None else "")


def _retry_after(response: httpx.Response) -> float:
    text: str = response.headers.get("retry-after", "")
    return float(text) if text.isdigit() else 0.0


_UNAUTHORIZED = {
    401: "it asks for credentials: add it again with --token-env NAME or --header",
    403: "the credentials do not suffice: look at --token-env and --header",
    404: "is the URL right? 'synapse external info' shows it",
    429: "it is asked too often; try again later",
}
_UNKNOWN = "it is not known whether the message arrived; ask the agent before you send it again"


def problem_of(error: BaseException, url: str, *, sends: bool) -> SynapseError:
    """What went wrong, for a person.

    Args:
        error: What was raised, with what caused it.
        url: Who was called.
        sends: Whether a message was on its way, so that it matters whether it arrived.
    """
    where = shown_origin(url)
    for each in _chain(error):
        if isinstance(each, Forbidden):
            return each.error
        if isinstance(each, SynapseError):
            return each
        if isinstance(each, httpx.HTTPStatusError):
            return _of_status(each, where)
        if isinstance(each, httpx.ConnectTimeout | httpx.ConnectError):
            why = "did not answer in time" if isinstance(each, httpx.ConnectTimeout) else "nobody answers"
            told = _reason(each)
            return PeerUnreachable(f"{where}: {why}" + (f" ({told})" if told else ""), "does the agent run?")
        if isinstance(each, httpx.TimeoutException | TimeoutError):
            return PeerUnreachable(f"{where} did not answer in time", _UNKNOWN if sends else "try again")
        if isinstance(each, httpx.RequestError):
            told = _reason(each) or type(each).__name__
            return PeerUnreachable(f"{where} broke off: {told}", _UNKNOWN if sends else "try again")
    return _of_agent(error, where)


def _reason(error: httpx.RequestError) -> str:
    """What the transport says, which may hold words of whoever was called."""
    return clean_line(_ERRNO.sub("", str(error)), 120)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _of_status(error: httpx.HTTPStatusError, where: str) -> SynapseError:
    status = error.response.status_code
    kind = NotOffered if status in (405, 501) else PeerRefused
    return kind(f"{where} answered with HTTP status {status}", status, _UNAUTHORIZED.get(status, ""))


_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
"""The number before the system's own words, which tells a person nothing."""
_NOT_OFFERED = frozenset({"MethodNotFoundError", "NotImplementedError"})
_STATUS = {"TaskNotFoundError": 404, "TaskNotCancelableError": 409}


def _of_agent(error: BaseException, where: str) -> SynapseError:
    """An error that the agent itself told, in its own words."""
    kind = type(error).__name__
    told = clean_line(getattr(error, "message", "") or str(error), 300) or kind
    refusal = NotOffered if kind in _NOT_OFFERED else PeerRefused
    return refusal(f"{where} refused: {told}", _STATUS.get(kind, 400))
