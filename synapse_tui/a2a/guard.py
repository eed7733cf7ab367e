"""The guard in front of every server. Loopback is reachable from any web page and any local user.

The checks, in order: method, Host, Origin, key or owner of the peer socket, body size, content type,
signature, rate, route. An admitted request reaches the application with its body buffered and with these keys
in `scope["state"]`: `agent`, `sender_id` (the verified sender, or ""), `principal`, `is_ours` (whether an id
or a name is that of an agent of this host), `files` (of a large body, else None), `services` and `stopping`
(set on shutdown; long polls must end).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from synapse_tui.core.addresses import reads_like

from .access import CHALLENGE, DEFAULT_RULES, NOBODY, Access, Principal, RequestOrigin, signed_by
from .agent import NO_SERVICES, HostedAgent, Services
from .bodies import BODY_TIMEOUT, MAX_BODY, Body, BodyReader, Headers, check_content_type, replay
from .calls import DELIVERY_HEADER, KEY_HEADER
from .network import LOOPBACK, Network
from .problems import CARD_PREFIX, HttpProblem, refusal
from .signing import SENDER_HEADER, SIGNATURE_HEADER, SignatureCheck, SignatureChecker, SignedRequest
from .socket_owner import Owner, OwnerOf, agent_at, owner_of

log = logging.getLogger(__name__)

_FOR_OTHERS = (
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "via",
    "cf-connecting-ip",
    DELIVERY_HEADER.lower(),
)
"""Headers of requests made for someone else: by a proxy or tunnel, or by a host that sends a notification."""


class WebGuard:
    """Checks Host and Origin."""

    def __init__(self, port: int, network: Network = LOOPBACK) -> None:
        self._port = port
        self._endpoint = network.endpoint(port)
        self._own = frozenset({f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"})
        further = (name if _has_port(name) else f"{name}:{port}" for name in network.allowed_hosts)
        self._hosts = self._own | frozenset(network.allowed_hosts) | frozenset(further)
        self._pages = frozenset(network.allowed_origins)
        self._origins = frozenset(f"{network.scheme}://{name}" for name in self._own) | self._pages

    def check(self, headers: Headers, server: tuple[str, int | None] | None) -> bool:
        """Check Host and Origin. Returns whether the caller used a loopback name, and for itself."""
        host = self._check_host(headers, server)
        self._check_origin(headers)
        return host in self._own and not any(name in headers for name in _FOR_OTHERS)

    def _check_host(self, headers: Headers, server: tuple[str, int | None] | None) -> str:
        """Refuse foreign names, which may resolve to this machine (DNS rebinding); addresses are safe."""
        hosts = headers.get("host", ())
        host = hosts[0].lower() if len(hosts) == 1 else ""
        if not host or (host not in self._hosts and host != _authority(server)):
            raise HttpProblem(
                403,
                "foreign_host",
                f"'{(hosts[0] if hosts else '')[:100]}' is no name of this server",
                f"call {self._endpoint}, or add the name to a2a.allowed_hosts",
            )
        return host

    def _check_origin(self, headers: Headers) -> None:
        origins = [origin.lower() for origin in headers.get("origin", ())]
        sites = [] if origins and self._pages.issuperset(origins) else headers.get("sec-fetch-site", ())
        foreign = any(site not in ("none", "same-origin") for site in sites)
        if foreign or not self._origins.issuperset(origins):
            raise HttpProblem(
                403, "foreign_origin", "web pages may not call this server", "call it from a program"
            )


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdecimal() and not name.endswith("]")


def _authority(server: tuple[str, int | None] | None) -> str:
    if server is None:
        return ""
    address = server[0].partition("%")[0]
    return f"[{address}]:{server[1]}" if ":" in address else f"{address}:{server[1]}"


_OF_KEYS = re.compile(
    r"/|/a2a/.*|/v1/.*|/\.well-known/.*|/status|/message|/tasks|/tasks/send|/tasks/send-priority"
    r"|/tasks/(?!create$)[^/]+|/tasks/[^/]+/(?:cancel|subscribe)"
)


def is_card(method: str, path: str) -> bool:
    """Whether the request reads a card, which is public: it says how to authenticate."""
    return method in ("GET", "HEAD") and path.startswith(CARD_PREFIX)


def check_permit(principal: Principal, path: str, *, signed: bool) -> None:
    """Raise HttpProblem if a caller may not use a route."""
    if principal.admin or signed or _OF_KEYS.fullmatch(path):
        return
    raise HttpProblem(
        403,
        "admin_only",
        f"the key '{principal.name}' is not for {path[:100]}",
        "use the key of SYNAPSE_ADMIN_KEY, or ask the owner of the agent",
    )


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

METHODS = frozenset({"GET", "HEAD", "POST", "DELETE"})


class Guard:
    """ASGI middleware that applies all checks; `stopping` is set on shutdown."""

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
        self._access = services.access or Access(DEFAULT_RULES)
        self._owner = owner
        self._bodies = BodyReader(max_body, body_timeout, services.large)
        self._guard = WebGuard(agent.port, services.network)
        self.stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        request = _Request(scope, receive)
        try:
            await self._admit(request)
        except HttpProblem as problem:
            if self._access.may_log():
                log.info("refused request: %s", problem.message, extra={"agent_id": self._agent.agent_id})
            request.close()
            await self._refuse(request, problem, send)
            return
        except BaseException:
            request.close()
            raise
        try:
            await self._app(scope, replay(request.body.content, receive), send)
        finally:
            request.close()

    async def _admit(self, request: _Request) -> None:
        scope = request.scope
        _check_room(scope)
        _check_method(scope["method"])
        _check_framing(request)
        near = self._guard.check(request.headers, scope.get("server"))
        await self._access.refresh()
        caller = RequestOrigin(
            near=near and _from_here(scope),
            owner=await self._connection_owner(scope),
            key=_key_of(request.headers),
            address=(scope.get("client") or ("",))[0],
        )
        principal = self._judge(request, caller)
        calling = await self._calling_agent(
            request, caller
        )  # before the body is read, while the caller still runs
        await request.read_body(self._bodies)
        if scope["method"] == "POST" and request.body.content:
            check_content_type(request.headers, request.body.content)
        sender_id = self._verified_sender(request, principal) or calling
        if sender_id:
            principal = signed_by(sender_id, near=caller.near and caller.owner is not Owner.OTHER)
        assert isinstance(principal, Principal)
        self._access.count(principal, caller, signed=bool(sender_id))
        check_permit(principal, scope["path"], signed=bool(sender_id))
        state = scope["state"]
        state["agent"] = self._agent
        state["sender_id"] = sender_id
        state["files"] = request.body.files
        state["principal"] = principal
        state["is_ours"] = self._is_ours
        state["services"] = self._services
        state["stopping"] = self.stopping

    def _judge(self, request: _Request, caller: RequestOrigin) -> Principal | HttpProblem:
        try:
            return self._access.judge(caller)
        except HttpProblem as problem:
            rules = self._access.rules
            if caller.key is None and rules.enabled and not rules.fault and request.reads_card:
                return NOBODY
            if SIGNATURE_HEADER.lower() not in request.headers:
                raise
            return problem

    async def _connection_owner(self, scope: Scope) -> Owner:
        client, server = scope.get("client"), scope.get("server")
        if client is None or server is None or server[1] is None:
            return Owner.UNKNOWN
        # Cached per connection: its owner never changes.
        cache: dict[str, Owner] = scope.get("state", {}).get("connection", {})
        if "owner" not in cache:
            cache["owner"] = await self._owner((client[0], client[1]), (server[0], server[1]))
        return cache["owner"]

    async def _calling_agent(self, request: _Request, caller: RequestOrigin) -> str:
        """The agent of this host whose process makes a call without a key or a signature.

        Otherwise the call would count as the person's. Only calls that change something are checked.
        """
        scope = request.scope
        if scope["method"] in ("GET", "HEAD") or not (caller.near and caller.owner is Owner.OURS):
            return ""
        if self._proves_itself(request, caller):
            return ""
        client, server = scope.get("client"), scope.get("server")
        cache: dict[str, str | None] = scope["state"].get("connection", {})
        if client is None or server is None:
            return ""
        if "agent" not in cache:
            cache["agent"] = await agent_at(
                (client[0], client[1]),
                (server[0], server[1]),
                self._services.processes(),
                self._checker.token_of,
            )
        found = cache["agent"]
        if found is None:
            raise HttpProblem(
                403,
                "caller_unknown",
                "the calling process has ended or cannot be found, so it is not known whose it is",
                "keep it until the answer has come; or sign with SYNAPSE_TOKEN, or show a key",
            )
        return found

    def _proves_itself(self, request: _Request, caller: RequestOrigin) -> bool:
        """Whether a key or a signature identifies the caller; one that is unknown here proves nothing."""
        if caller.key is not None and self._access.rules.enabled:
            return True
        sender = ",".join(request.headers.get(SENDER_HEADER.lower(), []))
        return SIGNATURE_HEADER.lower() in request.headers and self._checker.is_ours(sender)

    def _is_ours(self, sender: str) -> bool:
        return self._checker.is_ours(sender) or reads_like(sender, self._services.addresses())

    def _verified_sender(self, request: _Request, principal: Principal | HttpProblem) -> str:
        """The sender proved by the signature; "" if unsigned, or signed by an agent of another host."""
        signatures = request.headers.get(SIGNATURE_HEADER.lower(), [])
        if not signatures:
            return ""
        sender = ",".join(request.headers.get(SENDER_HEADER.lower(), []))
        method, target, body = request.scope["method"], _target(request.scope), request.body
        signed = SignedRequest(method, self._agent.port, target, body.content, body.digest)
        verdict = self._checker.check(signed, sender=sender, signature=",".join(signatures))
        if verdict is SignatureCheck.VERIFIED:
            return sender
        if verdict is not SignatureCheck.STRANGER:
            raise HttpProblem(
                401, f"signature_{verdict}", f"the sender's signature is {verdict}", _SIGNATURE_HINT
            )
        if isinstance(principal, HttpProblem):
            raise _unproved(principal)
        return ""

    async def _refuse(self, request: _Request, problem: HttpProblem, send: Send) -> None:
        if request.unread and not await self._bodies.drop(request.headers, request.receive):
            problem.headers["connection"] = "close"
        answer = refusal(request.scope["path"], problem)
        headers = {
            "content-type": "application/json",
            "content-length": str(len(answer.body)),
            **answer.headers,
        }
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
        await send({"type": "http.response.body", "body": answer.body})


class _Request:
    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())
        self.headers = headers
        self.body = Body()
        self.unread = True
        scope.setdefault("state", {})

    @property
    def reads_card(self) -> bool:
        return is_card(self.scope["method"], self.scope["path"])

    async def read_body(self, bodies: BodyReader) -> None:
        self.unread = False
        self.body = await bodies.read(self.headers, self.receive)
        if self.body.files is not None:  # what the application reads is the JSON without the files
            left = str(len(self.body.content)).encode()
            others = [pair for pair in self.scope["headers"] if pair[0].lower() != b"content-length"]
            self.scope["headers"] = [*others, (b"content-length", left)]

    def close(self) -> None:
        if self.body.files is not None:
            self.body.files.close()


_SIGNATURE_HINT = (
    "send again with the agent's current SYNAPSE_TOKEN, or without a signature as an unverified sender"
)


def _unproved(refused: HttpProblem) -> HttpProblem:
    return HttpProblem(
        401,
        f"signature_{SignatureCheck.STRANGER}",
        f"no agent of this host has made the signature, and {refused.message}",
        refused.hint,
        refused.headers,
    )


def _check_room(scope: Scope) -> None:
    if scope["state"].get("connection", {}).get("crowded"):
        raise HttpProblem(
            503,
            "too_many_connections",
            "too many connections are open",
            "try again in a moment, over fewer connections",
            {"retry-after": "1", "connection": "close"},
        )


def _check_method(method: str) -> None:
    if method not in METHODS:
        allow = ", ".join(sorted(METHODS))
        raise HttpProblem(
            405, "method_not_allowed", f"{method} is not served", f"use one of {allow}", {"allow": allow}
        )


def _check_framing(request: _Request) -> None:
    """Refuse a request whose end a proxy may see elsewhere: a second one may follow (RFC 9112, 6.1)."""
    chunked = "transfer-encoding" in request.headers
    if chunked and ("content-length" in request.headers or request.scope["http_version"] != "1.1"):
        request.unread = False
        raise HttpProblem(
            400,
            "two_lengths",
            "the request says twice, or in a way that its version does not know, where it ends",
            "send Content-Length, or in HTTP/1.1 Transfer-Encoding: chunked",
            {"connection": "close"},
        )


def _from_here(scope: Scope) -> bool:
    client = scope.get("client")
    if client is None:
        return True
    try:
        return ipaddress.ip_address(client[0].partition("%")[0]).is_loopback
    except ValueError:
        return False


def _key_of(headers: Headers) -> str | None:
    bearers = [value.partition(" ") for value in headers.get("authorization", ())]
    shown = {key.strip() for scheme, _, key in bearers if scheme.lower() == "bearer"}
    shown |= set(headers.get(KEY_HEADER.lower(), ()))
    if len(shown) > 1:
        raise HttpProblem(
            401,
            "two_keys",
            "the request shows two different keys",
            "send one of them",
            {"www-authenticate": CHALLENGE},
        )
    return next(iter(shown), None)


def _target(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    target = path.partition(b"?")[0] + (b"?" + query if query else b"")
    return target.decode("latin-1")


FREE_TURNS = 3
"""Turns of the loop between two requests: a key press needs several to reach the screen."""


class RequestPacer:
    """ASGI middleware that spreads requests over the turns of the event loop.

    The loop also serves keyboard and screen. Handling all concurrent requests in one turn, some milliseconds
    each, would delay a key press by a second with two hundred callers. Requests are served in order of
    arrival and none is refused; idle turns cost nothing.
    """

    def __init__(self, app: App, free_turns: int = FREE_TURNS) -> None:
        self._app = app
        self._free_turns = free_turns
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turning = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if self._turning:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._turning = True
            loop.call_soon(self._turn, self._free_turns)
        await self._app(scope, receive, send)

    def _turn(self, free: int) -> None:
        loop = asyncio.get_running_loop()
        if free:
            loop.call_soon(self._turn, free - 1)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                loop.call_soon(self._turn, self._free_turns)
                return
        self._turning = False
