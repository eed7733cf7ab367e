"""Reads request bodies, with limits on size and time.

Large bodies are never held in memory whole: their files, the only large part, are written to disk as they
arrive.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import os
import tempfile
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import aclosing, suppress
from dataclasses import field
from typing import IO, Any

from synapse_tui.agents.delivery.incoming import MAX_FILES
from synapse_tui.core.errors import MessageError
from synapse_tui.system.dataclass import dataclass

from .problems import HttpProblem

KEYS = frozenset({b"raw", b"bytes"})
LONG = 8 * 1024
"""Shortest string that is extracted, in bytes; MAX_FILES shorter ones still leave room for the text."""
PIECE = 64 * 1024
"""Bytes processed without releasing the GIL."""
_LONGEST_KEY = max(map(len, KEYS))
_BETWEEN = b'" \t\r\n:'
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HINT = "encode the bytes as base64 (RFC 4648)"


class BodyFiles:
    """The files of one body, by the placeholders that replace them in the JSON."""

    def __init__(self, closed: Callable[[], None] = lambda: None) -> None:
        self._files: dict[bytes, IO[bytes]] = {}
        self._asked: set[bytes] = set()
        self._closed = closed
        self._open = True

    def create(self) -> tuple[bytes, IO[bytes]]:
        """Create an unnamed temporary file. Returns its placeholder and the file."""
        if len(self._files) >= MAX_FILES:
            raise HttpProblem(
                413,
                "too_many_files",
                f"the body has more than {MAX_FILES} files",
                "pack them, or send several messages",
                {"connection": "close"},
            )
        word = b"file " + os.urandom(16).hex().encode()
        file = self._files[word] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with all of them
        return word, file

    def find(self, content: bytes) -> IO[bytes] | None:
        """The file that a placeholder refers to; None if the content is not a placeholder."""
        if content in self._files:
            self._asked.add(content)
        return self._files.get(content)

    def check(self) -> None:
        """Raise MessageError if a file belongs to no part of the message."""
        if len(self._asked) < len(self._files):
            raise MessageError(
                "the body has long base64 that is no file of a message part",
                "give files as 'raw' or 'file.bytes' of the message's parts",
            )

    def close(self) -> None:
        """Remove the files. Idempotent."""
        for file in self._files.values():
            file.close()
        if self._open:
            self._open = False
            self._closed()


class FileExtractor:
    """Extracts the files from a body, leaving at most `most` bytes of JSON."""

    def __init__(self, files: BodyFiles, most: int) -> None:
        self._files = files
        self._most = most
        self._left = bytearray()
        self._in_string = self._escaped = False
        self._string = bytearray()
        self._key = b""
        self._between = bytearray()
        self._taken: _Base64 | None = None

    def feed(self, data: bytes) -> None:
        """Process the next bytes of the body."""
        view = memoryview(data)
        for start in range(0, len(data), PIECE):
            self._feed(bytes(view[start : start + PIECE]))
            if len(self._left) > self._most:
                raise HttpProblem(
                    413,
                    "body_too_large",
                    f"the body has over {self._most:,} bytes ({self._most >> 20} MiB) besides its files",
                    "put the text into a file and name the file in the message",
                    {"connection": "close"},
                )

    def end(self) -> bytes:
        return bytes(self._left)

    def _feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._taken is not None:
                at = self._file(data, at, self._taken)
            elif self._in_string:
                at = self._text(data, at)
            else:
                at = self._outside(data, at)

    def _outside(self, data: bytes, at: int) -> int:
        quote = data.find(b'"', at)
        end = len(data) if quote < 0 else quote + 1
        self._between += data[at:end][-LONG:]
        self._left += data[at:end]
        if quote >= 0:
            # A string is a value only directly after a key and a colon.
            follows = self._between.count(b":") == 1 and not self._between.strip(_BETWEEN)
            self._key = bytes(self._string) if follows else b""
            self._in_string = True
            self._string.clear()
            self._between.clear()
        return end

    def _text(self, data: bytes, at: int) -> int:
        start = at
        while at < len(data):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            quote, escape = data.find(b'"', at), data.find(b"\\", at)
            if quote >= 0 and (escape < 0 or quote < escape):
                at = quote + 1
                self._in_string = False
                break
            if escape < 0:
                at = len(data)
                break
            self._escaped = True
            at = escape + 1
        self._left += data[start:at]
        if self._key in KEYS:
            self._string += data[start : at - (not self._in_string)]
            if len(self._string) >= LONG:
                self._take()
        elif len(self._string) <= _LONGEST_KEY:
            self._string += data[start : at - (not self._in_string)][: _LONGEST_KEY + 1]
        return at

    def _take(self) -> None:
        over = not self._in_string
        del self._left[len(self._left) - len(self._string) - over :]
        word, file = self._files.create()
        self._left += base64.b64encode(word)
        self._taken = _Base64(file)
        self._taken.add(bytes(self._string))
        self._string.clear()
        self._escaped = False
        if over:
            self._end_file(self._taken)

    def _file(self, data: bytes, at: int, taken: _Base64) -> int:
        quote = data.find(b'"', at)
        taken.add(data[at : quote if quote >= 0 else len(data)])
        if quote < 0:
            return len(data)
        self._end_file(taken)
        return quote + 1

    def _end_file(self, taken: _Base64) -> None:
        taken.end()
        self._taken, self._in_string = None, False
        self._left += b'"'


class _Base64:
    """Decodes base64 into a file piece by piece; standard or URL-safe alphabet, padding optional."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rest = b""
        self._over = False

    def add(self, data: bytes) -> None:
        # JSON may escape the slash, and a piece may end after the backslash.
        self._rest += data
        cut = self._rest.endswith(b"\\")
        text = self._rest.replace(b"\\/", b"/")
        whole = (len(text) - cut) // 4 * 4
        self._decode(text[:whole])
        self._rest = text[whole:]

    def end(self) -> None:
        self._decode(self._rest + b"=" * (-len(self._rest) % 4))
        self._rest = b""
        self._file.flush()

    def _decode(self, text: bytes) -> None:
        if not text:
            return
        try:
            if self._over:
                raise ValueError("there is more behind its end")
            self._file.write(binascii.a2b_base64(text.translate(_URL_SAFE), strict_mode=True))
        except ValueError as error:
            raise HttpProblem(
                400, "invalid_base64", f"a file in the body is no base64: {error}", _HINT
            ) from None
        self._over = text.endswith(b"=")


Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = Mapping[str, Sequence[str]]
"""Values by lower-case name."""

MAX_BODY = 32 * 1024 * 1024
MAX_AT_ONCE = 2 * 1024 * 1024
r"""Bytes of a body held in memory; the files of larger ones are written to disk as they arrive.

The longest message text still fits when JSON writes each character as \uXXXX.
"""
BATCH = 512 * 1024
"""Bytes of a larger body that are processed together, in a thread."""
LARGE_AT_ONCE = 8
DRAIN = 16 * 1024 * 1024
"""Bytes over the limit that are read and dropped, so that the caller sees the answer and not a reset."""
BODY_TIMEOUT = 30.0
"""Seconds to receive a body."""
SLOWEST = 256 * 1024
"""Bytes that extend the timeout by a second."""
DROP_TIMEOUT = 2.0
"""Seconds to read and drop the body of a refused request, for the same reason."""
JSON_TYPES = frozenset({"application/json", "application/a2a+json"})


class LargeBodies:
    """Limits concurrent large bodies, and so the disk space that they use."""

    def __init__(self, most: int = LARGE_AT_ONCE) -> None:
        self._room = asyncio.Semaphore(most)
        self._turn = asyncio.Lock()

    async def enter(self) -> BodyFiles:
        """Wait for a free slot; closing the files releases it."""
        await self._room.acquire()
        return BodyFiles(self._room.release)

    async def work(self, work: Callable[[bytes], None], data: bytes) -> None:
        """Process a piece of a body in a thread, one at a time: concurrent threads would slow the loop."""
        async with self._turn:
            await asyncio.to_thread(work, data)


@dataclass(frozen=True, slots=True)
class Body:
    """A complete body.

    Attributes:
        content: The whole body, or its JSON without the files.
        digest: Hex SHA-256 of the whole body, if `content` is not the whole; else empty.
    """

    content: bytes = b""
    digest: str = ""
    files: BodyFiles | None = None


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies of at most `most` bytes; those of more than `at_once` are large.

    `timeout` is in seconds and extended for large bodies.
    """

    most: int = MAX_BODY
    timeout: float = BODY_TIMEOUT
    large: LargeBodies = field(default_factory=LargeBodies)
    at_once: int = MAX_AT_ONCE

    async def read(self, headers: Headers, receive: Receive) -> Body:
        """Read a body; raises HttpProblem if it is too large or does not arrive in time."""
        declared = next(iter(headers.get("content-length", ())), "0")
        too_large = declared.isdigit() and int(declared) > self.most
        if too_large and "expect" in headers:
            raise self._too_large()  # the caller waits for 100 Continue before sending it
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
        """Read and drop the body of a refused request. Returns whether it arrived completely."""
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
                        limit.reschedule(None)  # the delay is caused by other bodies, not by this caller
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
        """Yield the chunks of a body; of one that is too large, enough for the caller to see the answer."""
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
    with suppress(TimeoutError, HttpProblem):
        async with asyncio.timeout(DROP_TIMEOUT):
            async for _ in pieces:
                pass


class _LargeBody:
    """A body whose files are written to disk as they arrive."""

    def __init__(self, room: LargeBodies, files: BodyFiles, most: int) -> None:
        self._room = room
        self._files = files
        self._sieve = FileExtractor(files, most)
        self._digest = hashlib.sha256()

    async def add(self, chunks: Sequence[bytes]) -> None:
        await self._room.work(self._add, b"".join(chunks))

    def whole(self) -> Body:
        return Body(self._sieve.end(), self._digest.hexdigest(), self._files)

    def close(self) -> None:
        self._files.close()

    def _add(self, data: bytes) -> None:
        self._digest.update(data)
        self._sieve.feed(data)


def check_content_type(headers: Headers, body: bytes) -> None:
    """Require JSON in UTF-8 (RFC 8259, section 8.1), which Python's reader does not.

    A web form can send text/plain and form types to any server without a preflight.
    """
    values = headers.get("content-type", ())
    kind, _, parameters = (values[0] if len(values) == 1 else "").lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    encoded = list(headers.get("content-encoding", ["identity"])) != ["identity"]
    encoded = encoded or not json.detect_encoding(body).startswith("utf-8")
    if kind.strip() not in JSON_TYPES or charset not in ("", "charset=utf-8") or encoded:
        raise HttpProblem(
            415,
            "unsupported_media_type",
            "the body must be JSON in UTF-8, uncompressed",
            "send UTF-8 with the header Content-Type: application/json",
        )


def replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
