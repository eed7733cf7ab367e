"""The connection to one external agent: httpx with checks of destinations, credentials and sizes."""

from __future__ import annotations

import asyncio
import codecs
import re
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from functools import partial
from itertools import count
from urllib.parse import urlsplit

import httpx

from synapse_tui.core.errors import BudgetSpent, PeerRefused, PeerUnreachable, SynapseError
from synapse_tui.system.backoff import Backoff
from synapse_tui.system.dataclass import dataclass

from .peer import Budget, NotOffered, ReadLimit
from .untrusted import clean_line, is_allowed, is_loopback, origin_of, shown_origin

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 900.0  # seconds without data: agents that answer only at the end may take long
WRITE_TIMEOUT = 30.0
MAX_BYTES = 32 * 1024 * 1024  # maximum bytes of an answer, also of a stream
MAX_MESSAGE = 4 * 1024 * 1024  # maximum bytes of an answer or an event of a stream: each is parsed as a whole
MAX_NODES = 20_000  # maximum JSON values of an answer or event
STREAM_PIECE = 4096
ANSWER_PIECE = 65_536  # bytes processed before other tasks of the loop get their turn
# of a request that did not arrive
RETRY = Backoff(first=0.5, longest=1.5, growth=3.0, attempts=3, longest_asked=10.0)
_BUSY = frozenset({429, 503})  # the server has not processed the request but may later
_LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # where httpx ends the lines of a stream
_SEPARATORS = ",:{["


class Forbidden(httpx.RequestError):
    """A request or answer rejected by the guard; `error` is shown to the person."""

    def __init__(self, error: SynapseError, request: httpx.Request) -> None:
        super().__init__(error.message, request=request)
        self.error = error


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may do.

    Attributes:
        own: A URL of the origin that receives the credentials in `headers`.
        allowed: URLs of other permitted origins.
        budget: What the task may still receive; None for requests without a task.
        patient: Whether a refused connection is tried again; no message is lost if a person only looks.
    """

    own: str
    allowed: Collection[str] = ()
    headers: Mapping[str, str] | None = None
    max_bytes: int = MAX_BYTES
    budget: Budget | None = None
    patient: bool = True


class GuardedTransport(httpx.AsyncBaseTransport):
    """Connects to permitted origins only, follows no redirects and limits the size of answers.

    A request that certainly did not arrive (connection refused, or the server is busy) is retried byte for
    byte, so that a message keeps its id; no other request is.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, bounds: Bounds) -> None:
        self._inner = inner
        self._bounds = bounds

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = _connected_to(request.url)
        if not is_allowed(url, self._bounds.own, self._bounds.allowed):
            origin = shown_origin(url)
            raise _forbidden(
                request,
                f"{origin} is not where this agent was added",
                hint=f"if that is right, agree to it: synapse external add URL --allow-origin {origin}",
            )
        if origin_of(url) == origin_of(self._bounds.own):
            request.headers.update(self._bounds.headers or {})
        response = await self._send(request)
        try:
            return self._checked(request, response)
        except BaseException:
            await response.aclose()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        for attempts in count(1):
            try:
                response = await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                delay = RETRY.delay(attempts)
                if delay is None or not self._bounds.patient:
                    raise
            else:
                if response.status_code not in _BUSY:
                    return response
                value = response.headers.get("retry-after", "")
                asked = float(value) if value.isdigit() else 0.0
                delay = RETRY.delay(attempts, asked=asked)
                if delay is None or asked > RETRY.longest_asked:
                    return response
                await response.aclose()
            await asyncio.sleep(delay)
        raise AssertionError  # count() has no end

    def _checked(self, request: httpx.Request, response: httpx.Response) -> httpx.Response:
        own = shown_origin(str(request.url))
        if response.has_redirect_location:
            where = shown_origin(str(request.url.join(response.headers["location"])))
            raise _forbidden(
                request,
                f"{own} redirects to {where}, which is not followed",
                response.status_code,
                "if that is right, add the agent by that URL",
            )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _forbidden(request, f"{own} sends compressed answers although none were requested")
        streams = "text/event-stream" in response.headers.get("content-type", "")
        if streams:
            response.headers["content-type"] = "text/event-stream"  # UTF-8, whatever charset is declared
        response.stream = _BoundedBody(response.stream, request, self._bounds, streams=streams)
        return response


class _BoundedBody(httpx.AsyncByteStream):
    """A response body that is read no faster than its budget allows, and fails if it is too large."""

    def __init__(
        self,
        inner: httpx.AsyncByteStream | httpx.SyncByteStream,
        request: httpx.Request,
        bounds: Bounds,
        *,
        streams: bool,
    ) -> None:
        assert isinstance(inner, httpx.AsyncByteStream)
        budget = bounds.budget or Budget(ReadLimit())
        self._inner = inner
        self._request = request
        self._limit = bounds.max_bytes
        self._piece = STREAM_PIECE if streams else ANSWER_PIECE
        self._read = partial(budget.read, streams=streams)
        self._count = budget.streamed if streams else budget.answered
        # Cards have a lower limit and are not parsed by the SDK.
        self._size = MessageSize(streams=streams) if bounds.budget is not None else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._inner:
            left -= len(chunk)
            await self._spend(self._read())
            for start in range(0, len(chunk), self._piece):
                piece = chunk[start : start + self._piece]
                await self._spend(self._counted(piece))
                yield piece
            if left < 0:
                raise _forbidden(self._request, f"the answer has more than {self._limit:,} bytes")

    async def _counted(self, piece: bytes) -> None:
        await self._count(piece, self._size.add(piece) if self._size is not None else 0)

    async def _spend(self, counting: Awaitable[None]) -> None:
        try:
            await counting
        except BudgetSpent as error:
            raise Forbidden(error, self._request) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


class MessageSize:
    """Measures the JSON being read: each event of a stream, or an answer.

    Measured before parsing, since parsing cannot be interrupted. Commas inside strings do not count as
    values.
    """

    def __init__(self, *, streams: bool) -> None:
        self._streams = streams
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._bytes = self._nodes = 0
        self._cut_line_end = self._empty_line = self._in_string = False
        self._escape = ""

    def add(self, data: bytes) -> int:
        """Count more bytes. Returns the number of JSON values in them."""
        if b"\0" in data:
            raise _too_large("an answer that is not in UTF-8")  # other encodings cannot be counted
        self._bytes += len(data)
        text = self._decoder.decode(data)
        if self._cut_line_end and text.startswith("\n"):
            text = text[1:]
            self._cut_line_end = False
        if text:
            self._cut_line_end = text.endswith("\r")
        lines = _LINE_END.split(text) if self._streams else [text]
        nodes = 0
        for number, line in enumerate(lines):
            if number:
                if self._empty_line:
                    self._bytes = self._nodes = 0
                self._empty_line, self._in_string, self._escape = True, False, ""
            if line:
                self._empty_line = False
                found = self._count(line)
                nodes += found
                self._nodes += found
                self._check()
        self._check()
        return nodes

    def _count(self, text: str) -> int:
        text = (self._escape + text).replace("\\\\", "")
        self._escape = "\\" if text.endswith("\\") else ""
        pieces = text.replace('\\"', "").split('"')
        outside = "".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        return sum(map(outside.count, _SEPARATORS))

    def _check(self) -> None:
        what = "event" if self._streams else "answer"
        if self._bytes > MAX_MESSAGE:
            raise _too_large(f"one {what} of more than {MAX_MESSAGE:,} bytes")
        if self._nodes > MAX_NODES:
            raise _too_large(f"one {what} of more than {MAX_NODES:,} values")


def _too_large(what: str) -> BudgetSpent:
    return BudgetSpent(
        f"the agent sent {what} and was disconnected",
        "what it sent before is kept; ask for less, or for a file as a link",
    )


def make_client(bounds: Bounds) -> httpx.AsyncClient:
    """Create a client for one agent. It may load certificates, so call it in a thread."""
    proxy = proxy_for(bounds.own)
    inner = httpx.AsyncHTTPTransport(
        verify=urlsplit(bounds.own).scheme == "https" or bool(proxy), trust_env=False, proxy=proxy, retries=0
    )
    return httpx.AsyncClient(
        transport=GuardedTransport(inner, bounds),
        timeout=httpx.Timeout(
            connect=CONNECT_TIMEOUT, read=READ_TIMEOUT, write=WRITE_TIMEOUT, pool=CONNECT_TIMEOUT
        ),
        trust_env=False,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity", "User-Agent": "synapse-tui"},
    )


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL; None for loopback."""
    parts = urlsplit(url)
    if is_loopback(parts) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _connected_to(url: httpx.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}" + (f":{url.port}" if url.port is not None else "")


def _forbidden(request: httpx.Request, message: str, status: int = 0, hint: str = "") -> Forbidden:
    return Forbidden(PeerRefused(message, status, hint), request)


_STATUS_HINTS = {
    401: "it asks for credentials: add it again with a bearer token or a header",
    403: "the credentials do not suffice: look at its bearer token and its header",
    404: "is the URL right? 'synapse external info' shows it",
    429: "it is called too often; try again later",
}
_UNKNOWN = "it is not known whether the message arrived; ask the agent before you send it again"
_NOISE = re.compile(r"^\[Errno -?\d+\] |^All connection attempts failed$")
"""What says nothing to a person: the system's numbers, and httpcore's words for several addresses."""
_NOT_OFFERED = frozenset({"MethodNotFoundError", "NotImplementedError"})
_STATUS = {"TaskNotFoundError": 404, "TaskNotCancelableError": 409}


def problem_of(error: BaseException, url: str, *, sends: bool) -> SynapseError:
    """Convert an error of httpx or the SDK to one for a person.

    `sends` is True for messages: then it matters whether the request arrived.
    """
    where = shown_origin(url)
    hint = _UNKNOWN if sends else "try again"
    for each in _chain(error):
        match each:
            case Forbidden():
                return each.error
            case SynapseError():
                return each
            case httpx.HTTPStatusError():
                status = each.response.status_code
                kind = NotOffered if status in (405, 501) else PeerRefused
                message = f"{where} answered with HTTP status {status}"
                return kind(message, status, _STATUS_HINTS.get(status, ""))
            case httpx.ConnectTimeout():
                return PeerUnreachable(f"{where} did not answer in time", "is the agent running?")
            case httpx.ConnectError():
                reason = f" ({why})" if (why := _reason(each)) else ""
                return PeerUnreachable(f"{where}: cannot connect{reason}", "is the agent running?")
            case httpx.TimeoutException() | TimeoutError():
                return PeerUnreachable(f"{where} did not answer in time", hint)
            case httpx.RequestError():
                reason = _reason(each) or type(each).__name__
                return PeerUnreachable(f"{where}: the connection broke: {reason}", hint)
    return _refusal(error, where)


def _reason(error: httpx.RequestError) -> str:
    return clean_line(_NOISE.sub("", str(error)), 120)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _refusal(error: BaseException, where: str) -> SynapseError:
    kind = type(error).__name__
    message = clean_line(getattr(error, "message", "") or str(error), 300) or kind
    refusal = NotOffered if kind in _NOT_OFFERED else PeerRefused
    return refusal(f"{where} refused: {message}", _STATUS.get(kind, 400))
