"""What stands in front of every server: loopback is no border, any web page and any local user can reach it.

The checks, in order: method, Host, Origin, owner of the peer socket, content type, body size, signature. A
request that passes reaches the application with its body buffered, and in `scope["state"]` the `agent`, the
verified sender's id (or "") as `sender_id`, the caller as `principal`, `is_ours` (whether an id is an agent of
this host), `services` and `stopping` (set when the server ends: nothing may be waited for any longer).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .agent import HostedAgent
from .peers import Owner, OwnerOf, owner_of
from .principal import PERSON, signed_by
from .problems import HttpProblem, answer_for
from .services import NO_SERVICES, Services
from .signing import SENDER_HEADER, SIGNATURE_HEADER, SignatureChecker, SignedRequest, Verdict

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 2 * 1024 * 1024
"""Bytes; the longest message text still fits when JSON writes each character as \\uXXXX."""
DRAIN = 16 * 1024 * 1024
"""How much of a body over the limit is read and dropped, so that the caller sees the answer and no reset."""
BODY_TIMEOUT = 30.0
"""Seconds in which a body must have come."""
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE"})
JSON_TYPES = frozenset({"application/json", "application/a2a+json"})


class Gate:
    """An ASGI application that guards another one.

    Args:
        app: What is guarded.
        agent: Whose server this is.
        checker: Checks signatures.
        services: What the servers of the host share.
        owner: Tells who owns a connection.
        max_body: Longest body in bytes.
        body_timeout: Seconds in which it must have come.

    Attributes:
        stopping: Set when the server ends.
    """

    def __init__(
        self,
        app: App,
        agent: HostedAgent,
        *,
        checker: SignatureChecker,
        services: Services = NO_SERVICES,
        owner: OwnerOf = owner_of,
        max_body: int = MAX_BODY,
        body_timeout: float = BODY_TIMEOUT,
    ) -> None:
        self._app = app
        self._agent = agent
        self._checker = checker
        self._services = services
        self._owner = owner
        self._max_body = max_body
        self._body_timeout = body_timeout
        self.stopping = asyncio.Event()
        names = (f"localhost:{agent.port}", f"127.0.0.1:{agent.port}", f"[::1]:{agent.port}")
        self._hosts = frozenset(names)
        self._origins = frozenset(f"http://{name}" for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope (ASGI 3.0)."""
        if scope["type"] != "http":
            await _refuse_websocket(scope, receive, send)
            return
        try:
            body = await self._admit(scope, receive)
        except HttpProblem as problem:
            log.info("refused request: %s", problem.message, extra={"agent_id": self._agent.agent_id})
            await send_problem(problem, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _admit(self, scope: Scope, receive: Receive) -> bytes:
        """Check a request.

        Returns:
            Its body.

        Raises:
            HttpProblem: It is refused.
        """
        headers = _headers(scope)
        self._check_method(scope["method"])
        self._check_host(headers)
        self._check_origin(headers)
        await self._check_owner(scope, headers)
        body = await self._read_body(headers, receive)
        if scope["method"] == "POST" and body:
            _check_content_type(headers)
        state = scope["state"]
        state["agent"] = self._agent
        sender_id = state["sender_id"] = self._verified_sender(scope, headers, body)
        state["principal"] = signed_by(sender_id) if sender_id else PERSON
        state["is_ours"] = self._checker.is_ours
        state["services"] = self._services
        state["stopping"] = self.stopping
        return body

    def _check_method(self, method: str) -> None:
        if method not in METHODS:
            allow = ", ".join(sorted(METHODS))
            raise HttpProblem(
                405, "method_not_allowed", f"{method} is not served", f"use one of {allow}", {"allow": allow}
            )

    def _check_host(self, headers: dict[str, list[str]]) -> None:
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            name = hosts[0][:100] if hosts else ""
            raise HttpProblem(
                403,
                "foreign_host",
                f"'{name}' is no name of this server",
                f"call http://127.0.0.1:{self._agent.port}",
            )

    def _check_origin(self, headers: dict[str, list[str]]) -> None:
        """Refuse web pages: browsers send Origin and Sec-Fetch-Site, programs send neither."""
        origins = headers.get("origin", [])
        if any(origin.lower() not in self._origins for origin in origins):
            raise HttpProblem(
                403, "foreign_origin", "web pages may not call this server", "call it from a program"
            )
        sites = headers.get("sec-fetch-site", [])
        if any(site not in ("none", "same-origin") for site in sites):
            raise HttpProblem(
                403, "foreign_origin", "web pages may not call this server", "call it from a program"
            )

    async def _check_owner(self, scope: Scope, headers: dict[str, list[str]]) -> None:
        """Refuse other users of this machine, unless they bring a signature (which is checked later)."""
        owner = await self._connection_owner(scope)
        scope.setdefault("state", {})["owner"] = owner
        if owner is Owner.OTHER and SIGNATURE_HEADER.lower() not in headers:
            raise HttpProblem(
                403,
                "foreign_user",
                "the caller belongs to another user of this machine",
                "call as the agent's own user",
            )

    async def _connection_owner(self, scope: Scope) -> Owner:
        client, server = scope.get("client"), scope.get("server")
        if client is None or server is None or server[1] is None:
            return Owner.UNKNOWN
        # The server's protocol gives each connection a notebook: the owner of a connection never changes.
        notebook: dict[str, Owner] = scope.get("state", {}).get("connection", {})
        if "owner" not in notebook:
            notebook["owner"] = await self._owner((client[0], client[1]), (server[0], server[1]))
        return notebook["owner"]

    async def _read_body(self, headers: dict[str, list[str]], receive: Receive) -> bytes:
        declared = headers.get("content-length", ["0"])[0]
        too_large = declared.isdigit() and int(declared) > self._max_body
        if too_large and "expect" in headers:
            raise self._too_large()  # the caller waits for our leave to send it
        try:
            async with asyncio.timeout(self._body_timeout):
                return await self._collect(receive, drop=too_large)
        except TimeoutError:
            raise HttpProblem(
                408,
                "body_timeout",
                "the body did not come in time",
                "send the request again",
                {"connection": "close"},
            ) from None

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
            drop = drop or size > self._max_body
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
            f"the body is over {self._max_body} bytes",
            "put the text into a file and name the file in the message",
            {"connection": "close"},
        )

    def _verified_sender(self, scope: Scope, headers: dict[str, list[str]], body: bytes) -> str:
        """The sender that a signature proves; "" when there is none, or it is of an agent unknown here.

        Raises:
            HttpProblem: The signature is no good, or another user's call has none that is.
        """
        verdict, sender = Verdict.STRANGER, ""
        signatures = headers.get(SIGNATURE_HEADER.lower(), [])
        if signatures:
            sender = ",".join(headers.get(SENDER_HEADER.lower(), []))
            request = SignedRequest(scope["method"], self._agent.port, _target(scope), body)
            verdict = self._checker.check(request, sender=sender, signature=",".join(signatures))
        if verdict is Verdict.VERIFIED:
            return sender
        if verdict is not Verdict.STRANGER or scope["state"]["owner"] is Owner.OTHER:
            raise HttpProblem(
                401, f"signature_{verdict}", f"the sender's signature is {verdict}", _SIGNATURE_HINT
            )
        return ""


_SIGNATURE_HINT = (
    "send again with the agent's current SYNAPSE_TOKEN, or without a signature as an unverified sender"
)


def _check_content_type(headers: dict[str, list[str]]) -> None:
    """JSON only: a web form can send text/plain and form types to any server without asking it first."""
    values = headers.get("content-type", [])
    kind, _, parameters = (values[0] if len(values) == 1 else "").lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "")
    encoded = headers.get("content-encoding", ["identity"]) != ["identity"]
    if kind.strip() not in JSON_TYPES or charset not in ("", "charset=utf-8") or encoded:
        raise HttpProblem(
            415,
            "unsupported_media_type",
            "the body must be JSON in UTF-8, uncompressed",
            "send the header Content-Type: application/json",
        )


def _headers(scope: Scope) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())
    return headers


def _target(scope: Scope) -> str:
    """Path and query as they were sent."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    target = path.partition(b"?")[0] + (b"?" + query if query else b"")
    return target.decode("latin-1")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the body that has been read to an application that wants to read it."""
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def send_problem(problem: HttpProblem, send: Send) -> None:
    """Send an error answer by ASGI."""
    answer = answer_for(problem)
    body = answer.body
    headers = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


async def _refuse_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
