"""Reading a request's body: all of it, no more than is allowed, and not for ever.

A large one is never in memory as a whole: files, which alone make bodies large, go to the disk as they come.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from .body_files import BodyFiles, Sieve
from .problems import HttpProblem
from .web_guard import Headers

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MAX_BODY = 32 * 1024 * 1024
"""Bytes of a body."""
MAX_AT_ONCE = 2 * 1024 * 1024
"""Bytes of a body that are in memory; the files of a larger one go to the disk while it comes (`body_files`).

The longest message text still fits when JSON writes each character as \\uXXXX.
"""
BATCH = 512 * 1024
"""Bytes of a larger one that are worked on together, in a thread."""
LARGE_AT_ONCE = 8
"""How many larger ones a host takes at the same time; others wait until one has been written down."""
DRAIN = 16 * 1024 * 1024
"""How much of what is over the limit is read and dropped, so that the caller sees the answer and no reset."""
BODY_TIMEOUT = 30.0
"""Seconds in which a body must have come."""
SLOWEST = 256 * 1024
"""Bytes for which there is another second."""
DROP_TIMEOUT = 2.0
"""Seconds for which the body of a refused request is read, for the same reason."""
JSON_TYPES = frozenset({"application/json", "application/a2a+json"})


class LargeBodies:
    """Room for bodies whose files are being taken: what they need of the disk is bounded.

    Args:
        most: How many there may be.
    """

    def __init__(self, most: int = LARGE_AT_ONCE) -> None:
        self._room = asyncio.Semaphore(most)
        self._turn = asyncio.Lock()

    async def enter(self) -> BodyFiles:
        """Wait for room; it is given back when the files are closed."""
        await self._room.acquire()
        return BodyFiles(self._room.release)

    async def work(self, work: Callable[[bytes], None], data: bytes) -> None:
        """Work on a piece of one of them, in a thread: one at a time, or they would hold up the loop."""
        async with self._turn:
            await asyncio.to_thread(work, data)


@dataclass(frozen=True, slots=True)
class Body:
    """A body that has come.

    Attributes:
        content: All of it, or what is left of its JSON without its files.
        digest: SHA-256 of all of it, in hexadecimal digits, where the content is not all; else empty.
        files: Its files, where they were taken out.
    """

    content: bytes = b""
    digest: str = ""
    files: BodyFiles | None = None


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies.

    Attributes:
        most: Longest body in bytes.
        timeout: Seconds in which it must have come, and a few more for a large one.
        large: Room for large ones.
        at_once: Bytes from which one is large.
    """

    most: int = MAX_BODY
    timeout: float = BODY_TIMEOUT
    large: LargeBodies = field(default_factory=LargeBodies)
    at_once: int = MAX_AT_ONCE

    async def read(self, headers: Headers, receive: Receive) -> Body:
        """Read a body.

        Raises:
            HttpProblem: It is too long, or does not come.
        """
        declared = next(iter(headers.get("content-length", ())), "0")
        too_large = declared.isdigit() and int(declared) > self.most
        if too_large and "expect" in headers:
            raise self._too_large()  # the caller waits for our leave to send it
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await self._read(receive, limit, drop=too_large)
        except TimeoutError:
            raise HttpProblem(
                408,
                "body_timeout",
                "the body did not come in time",
                "send the request again",
                {"connection": "close"},
            ) from None

    async def drop(self, headers: Headers, receive: Receive) -> bool:
        """Read the body of a request that is refused; whether all of it came."""
        if "expect" in headers:
            return False
        try:
            async with asyncio.timeout(DROP_TIMEOUT):
                async with aclosing(self._pieces(receive, drop=False)) as pieces:
                    async for _ in pieces:
                        pass
        except (TimeoutError, HttpProblem):
            return False
        return True

    async def _read(self, receive: Receive, limit: asyncio.Timeout, *, drop: bool) -> Body:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        chunks: list[bytes] = []
        size = waiting = 0
        large: _LargeBody | None = None
        try:
            async with aclosing(self._pieces(receive, drop=drop)) as pieces:
                async for chunk in pieces:
                    chunks.append(chunk)
                    size += len(chunk)
                    waiting += len(chunk)
                    if large is None and size > self.at_once:
                        limit.reschedule(None)  # others are slow, not this caller
                        asked = loop.time()
                        large = _LargeBody(self.large, await self.large.enter(), self.at_once)
                        begun += loop.time() - asked
                    limit.reschedule(begun + self.timeout + size / SLOWEST)
                    if large is not None and waiting >= BATCH:
                        try:
                            await large.add(chunks)
                        except HttpProblem:
                            await _drain(pieces)
                            raise
                        chunks, waiting = [], 0
            if large is None:
                return Body(b"".join(chunks))
            await large.add(chunks)
            return large.whole()
        except BaseException:
            if large is not None:
                large.close()
            raise

    async def _pieces(self, receive: Receive, *, drop: bool) -> AsyncGenerator[bytes, None]:
        """What comes of a body; of one that is too long as much as leaves the caller time to see so."""
        size = 0
        more = True
        while more and size <= self.most + DRAIN:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HttpProblem(
                    400, "body_incomplete", "the connection ended within the body", "send it again"
                )
            chunk = message.get("body", b"")
            size += len(chunk)
            more = message.get("more_body", False)
            drop = drop or size > self.most
            if not drop:
                yield chunk
        if drop:
            raise self._too_large()

    def _too_large(self) -> HttpProblem:
        return HttpProblem(
            413,
            "body_too_large",
            f"the body has over {self.most:,} bytes ({self.most >> 20} MiB)",
            "put the text into a file and name the file in the message",
            {"connection": "close"},
        )


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read and drop what is still to come, so that the caller sees the answer and no reset."""
    with suppress(TimeoutError, HttpProblem):
        async with asyncio.timeout(DROP_TIMEOUT):
            async for _ in pieces:
                pass


class _LargeBody:
    """A body whose files go to the disk while it comes.

    Args:
        room: Lets it work.
        files: Where they go.
        most: Bytes of JSON that may be left.
    """

    def __init__(self, room: LargeBodies, files: BodyFiles, most: int) -> None:
        self._room = room
        self._files = files
        self._sieve = Sieve(files, most)
        self._digest = hashlib.sha256()

    async def add(self, chunks: Sequence[bytes]) -> None:
        """Take the next bytes."""
        await self._room.work(self._add, b"".join(chunks))

    def whole(self) -> Body:
        """All that has come."""
        return Body(self._sieve.end(), self._digest.hexdigest(), self._files)

    def close(self) -> None:
        """It is not needed."""
        self._files.close()

    def _add(self, data: bytes) -> None:
        self._digest.update(data)
        self._sieve.feed(data)


def check_content_type(headers: Headers) -> None:
    """JSON only: a web form can send text/plain and form types to any server without asking it first.

    Raises:
        HttpProblem: It is something else.
    """
    values = headers.get("content-type", ())
    kind, _, parameters = (values[0] if len(values) == 1 else "").lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    encoded = list(headers.get("content-encoding", ["identity"])) != ["identity"]
    if kind.strip() not in JSON_TYPES or charset not in ("", "charset=utf-8") or encoded:
        raise HttpProblem(
            415,
            "unsupported_media_type",
            "the body must be JSON in UTF-8, uncompressed",
            "send the header Content-Type: application/json",
        )


def replay(body: bytes, receive: Receive) -> Receive:
    """Give the body that has been read to an application that wants to read it."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
