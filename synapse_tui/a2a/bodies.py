"""Reading a request's body: all of it, no more than is allowed, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from .problems import HttpProblem
from .web_guard import Headers

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

MAX_BODY = 2 * 1024 * 1024
"""Bytes; the longest message text still fits when JSON writes each character as \\uXXXX."""
DRAIN = 16 * 1024 * 1024
"""How much of a body over the limit is read and dropped, so that the caller sees the answer and no reset."""
BODY_TIMEOUT = 30.0
"""Seconds in which a body must have come."""
DROP_TIMEOUT = 2.0
"""Seconds for which the body of a refused request is read, for the same reason."""
JSON_TYPES = frozenset({"application/json", "application/a2a+json"})


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies.

    Attributes:
        most: Longest body in bytes.
        timeout: Seconds in which it must have come.
    """

    most: int = MAX_BODY
    timeout: float = BODY_TIMEOUT

    async def read(self, headers: Headers, receive: Receive) -> bytes:
        """Read a body.

        Raises:
            HttpProblem: It is too long, or does not come.
        """
        declared = next(iter(headers.get("content-length", ())), "0")
        too_large = declared.isdigit() and int(declared) > self.most
        if too_large and "expect" in headers:
            raise self._too_large()  # the caller waits for our leave to send it
        try:
            async with asyncio.timeout(self.timeout):
                return await self._collect(receive, drop=too_large)
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
                await self._collect(receive, drop=False)
        except (TimeoutError, HttpProblem):
            return False
        return True

    async def _collect(self, receive: Receive, *, drop: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        more = True
        while more and size <= DRAIN:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HttpProblem(
                    400, "body_incomplete", "the connection ended within the body", "send it again"
                )
            chunk = message.get("body", b"")
            size += len(chunk)
            more = message.get("more_body", False)
            drop = drop or size > self.most
            if drop:
                chunks.clear()
            else:
                chunks.append(chunk)
        if drop:
            raise self._too_large()
        return b"".join(chunks)

    def _too_large(self) -> HttpProblem:
        return HttpProblem(
            413,
            "body_too_large",
            f"the body is over {self.most} bytes",
            "put the text into a file and name the file in the message",
            {"connection": "close"},
        )


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
