"""The agent's cards: the protocol's (1.0, or 1.0 with the fields of 0.3), and the old `agent.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from synapse_tui import __version__
from synapse_tui.a2a.agent import CardForm, HostedAgent, Services
from synapse_tui.a2a.calls import KEY_HEADER
from synapse_tui.a2a.problems import REST_PREFIX
from synapse_tui.core.addresses import identity_of

from .calls import SYNAPSE, ProtocolCall, call_from

CardShape = Literal["1.0", "0.3", "dual"]

_API_KEY = {"description": f"A key of this agent's owner in the header {KEY_HEADER}", "name": KEY_HEADER}
_BEARER = {"description": "The same key as a bearer token", "scheme": "Bearer"}
_V1: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "apiKey": {"apiKeySecurityScheme": {**_API_KEY, "location": "header"}},
        "bearer": {"httpAuthSecurityScheme": _BEARER},
    }
)
_V03: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "apiKey": {"type": "apiKey", "in": "header", **_API_KEY},
        "bearer": {"type": "http", **_BEARER},
    }
)


def keys_demanded(services: Services) -> bool:
    """Whether all callers except the person and the agents need a key."""
    return services.access is not None and services.access.rules.enabled


def card_security(services: Services, shape: CardShape) -> dict[str, Any]:
    """The fields of a card that declare its security schemes, each of which suffices.

    In a dual card a scheme has the fields of both versions side by side, as the SDK writes them. Empty if no
    key is required.
    """
    if not keys_demanded(services):
        return {}
    fields: dict[str, Any] = {"securitySchemes": {name: _scheme(name, shape) for name in _V1}}
    if shape != "0.3":
        fields["securityRequirements"] = [{"schemes": {name: {"list": []}}} for name in _V1]
    if shape != "1.0":
        fields["security"] = [{name: []} for name in _V03]
    return fields


def _scheme(name: str, shape: CardShape) -> dict[str, Any]:
    new = _V1[name] if shape != "0.3" else {}
    old = _V03[name] if shape != "1.0" else {}
    return {**new, **old}


INPUT_MODES = ["text/plain", "application/json", "application/octet-stream", "*/*"]
OUTPUT_MODES = ["text/plain", "application/json", "application/octet-stream"]
JSONRPC, REST = "JSONRPC", "HTTP+JSON"
MAX_AGE = 60  # seconds that a card may be cached; agents can be renamed at any time
MAX_EDITIONS = 20
"""Number of cached cards per agent: one for each form and each name by which it is called."""

Form = CardForm | Literal["old"]  # Configured by the settings, or the card with the dialect's fields
_SHAPES: dict[Form, CardShape] = {"v1": "1.0", "dual": "dual", "old": "dual"}

_EXTENSION = (
    "How the agent is addressed; a message's metadata may hold `priority`, 1 (information) to 5 (interrupt)"
)
_SKILLS = [
    {
        "id": "chat",
        "name": "Send a message",
        "description": "Deliver a message to the agent as soon as it is safe, and return its answer",
        "tags": ["chat"],
        "examples": ["Review the last commit", "What does this project do?"],
    },
    {
        "id": "interrupt",
        "name": "Interrupt",
        "description": "Stop what the agent is doing and deliver the message at once (priority 5)",
        "tags": ["interrupt"],
        "examples": ["Stop: the tests are to be left as they are"],
    },
]


def card_json(call: ProtocolCall, form: Form) -> dict[str, Any]:
    kind, services = call.agent.agent_type, call.services
    card: dict[str, Any] = {
        "name": f"Synapse {kind.title()}",
        "description": f"The command-line agent {kind} in a terminal, reachable over A2A",
        "version": __version__,
        "supportedInterfaces": _interfaces(call.base_url, form),
        "capabilities": {
            "streaming": True,
            "pushNotifications": services.push is not None,
            "extendedAgentCard": keys_demanded(services),
            "extensions": [
                {"uri": SYNAPSE, "description": _EXTENSION, "params": _addressing(call.agent)},
            ],
        },
        "defaultInputModes": INPUT_MODES,
        "defaultOutputModes": OUTPUT_MODES,
        "skills": _SKILLS,
        **card_security(services, _SHAPES[form]),
    }
    if form != "v1":
        card |= {
            "url": call.base_url,
            "protocolVersion": "0.3.0",
            "preferredTransport": JSONRPC,
            "additionalInterfaces": [
                {"url": call.base_url, "transport": JSONRPC},
                {"url": call.base_url + REST_PREFIX, "transport": REST},
            ],
            "supportsAuthenticatedExtendedCard": keys_demanded(services),
            "extensions": {"synapse": _addressing(call.agent)},
        }
    if form == "old":
        card["capabilities"]["multiTurn"] = True
    return card


def extended_json(call: ProtocolCall, form: CardForm) -> dict[str, Any]:
    """The extended card, with what only authenticated callers get: the agent's folder and current state."""
    card, agent = card_json(call, form), call.agent
    card["capabilities"]["extensions"][0]["params"] |= {
        "context_id": agent.context_id,
        "working_dir": str(agent.cwd),
        "status": agent.report.state.value,
    }
    return card


def _interfaces(base_url: str, form: Form) -> list[dict[str, str]]:
    places = [(JSONRPC, base_url), (REST, base_url + REST_PREFIX)]
    versions = ("1.0",) if form == "v1" else ("1.0", "0.3")
    return [
        {"url": url, "protocolBinding": binding, "protocolVersion": version}
        for version in versions
        for binding, url in places
    ]


def _addressing(agent: HostedAgent) -> dict[str, Any]:
    names = [agent.agent_id, f"{agent.agent_type}-{agent.port}", agent.name, agent.agent_type]
    return {
        "agent_id": agent.agent_id,
        "identity": identity_of(str(agent.cwd), agent.agent_type, agent.name),
        "addressable_as": [f"@{name}" for name in names if name],
        "pty_wrapped": True,
        "priority_interrupt": True,
        "at_agent_syntax": True,
    }


class Edition(NamedTuple):
    """The ETag of a card's content, and the time from which it has been served."""

    etag: str
    since: datetime


class Cards:
    """Serves cards, with caching (A2A section 8.6)."""

    def __init__(self) -> None:
        self._editions: WeakKeyDictionary[HostedAgent, dict[tuple[str, str], Edition]] = WeakKeyDictionary()

    def routes(self) -> list[Route]:
        return [
            Route("/.well-known/agent-card.json", self.card, methods=["GET"]),
            Route("/.well-known/agent.json", self.old_card, methods=["GET"]),
        ]

    async def card(self, request: Request) -> Response:
        return self._answer(request, call_from(request).services.card)

    async def old_card(self, request: Request) -> Response:
        return self._answer(request, "old")

    def _answer(self, request: Request, form: Form) -> Response:
        call = call_from(request)
        card = card_json(call, form)
        body = json.dumps(card, ensure_ascii=False, separators=(",", ":")).encode()
        edition = self._edition(call.agent, (form, call.base_url), body)
        headers = {
            "ETag": edition.etag,
            "Last-Modified": format_datetime(edition.since, usegmt=True),
            "Cache-Control": f"max-age={MAX_AGE}",
            "Vary": "Host",
        }
        if _is_known(request, edition):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="application/json")

    def _edition(self, agent: HostedAgent, place: tuple[str, str], body: bytes) -> Edition:
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        known = self._editions.setdefault(agent, {})
        edition = known.get(place)
        if edition is None or edition.etag != etag:
            known.pop(place, None)
            edition = known[place] = Edition(etag, datetime.now(UTC).replace(microsecond=0))
            while len(known) > MAX_EDITIONS:
                del known[next(iter(known))]
        return edition


def _is_known(request: Request, edition: Edition) -> bool:
    """Whether the caller's copy is current; an ETag precedes a time (RFC 9110 section 13.2.2)."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        named = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return bool(named & {"*", edition.etag})
    since = request.headers.get("if-modified-since")
    try:
        return since is not None and parsedate_to_datetime(since) >= edition.since
    except (ValueError, TypeError):
        return False
