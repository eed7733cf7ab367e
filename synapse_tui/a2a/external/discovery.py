"""Finds an external agent by its URL: fetches its card and chooses an interface. Imports httpx.

The card decides where messages and credentials go, and its server controls what it says. So only interfaces
of the card's own origin are used, and those that the person agreed to.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from synapse_tui.core.content import is_deeper
from synapse_tui.core.errors import CardRefused, ConfigError, InvalidValue, PeerRefused, SynapseError

from .registry import (
    MAX_CARD,
    AddRequest,
    Binding,
    Candidate,
    ExternalAgent,
    ExternalStore,
    Interface,
    alias_from,
    check_alias,
    check_variable,
    hash_of,
)
from .transport import Bounds, make_client, problem_of
from .untrusted import check_url, clean_line, is_allowed, is_loopback, origin_of, shown_origin

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
TIMEOUT = 15.0  # seconds to fetch a card
MAX_DEPTH = 30
MAX_INTERFACES = 20
_TRY_NEXT = frozenset({400, 401, 403, 404, 405, 410, 501})
"""Statuses after which the next possible URL of the card is tried."""
_BINDINGS: Mapping[str, Binding] = {"JSONRPC": "JSONRPC", "HTTP+JSON": "HTTP+JSON", "HTTPJSON": "HTTP+JSON"}
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\w+)*")

Card = Mapping[str, Any]


async def find_agent(
    request: AddRequest,
    store: ExternalStore,
    *,
    environ: Mapping[str, str],
    types: Sequence[str],
) -> Candidate:
    """Find an agent without storing it; `types` are words that cannot be aliases."""
    url = check_url(request.url)
    allowed = tuple(check_url(each, what="--allow-origin") for each in request.allowed)
    variable = check_variable(request.token_env)
    alias = check_alias(request.alias, taken=types) if request.alias else ""
    if alias and not request.replace:
        await asyncio.to_thread(_check_free, store, alias, url)
    headers = headers_of(request.headers, variable, environ)
    bounds = Bounds(url, headers=headers, max_bytes=MAX_CARD + 1, patient=False)
    client = await asyncio.to_thread(make_client, bounds)
    async with client:
        card_url, card = await _find_card(client, url)
    interface = choose_interface(card, card_url, allowed)
    known = await asyncio.to_thread(store.list)
    if not alias:
        again = next((each.alias for each in known if each.url == url), "")
        alias = again or alias_from(card.get("name"), [*types, *(each.alias for each in known)])
    before = next((each for each in known if each.alias == alias), None)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    agent = ExternalAgent(
        alias,
        url,
        card_url=card_url,
        card=MappingProxyType(card),
        interface=interface,
        allowed=allowed,
        headers=MappingProxyType(dict(request.headers)),
        token_env=variable,
        added_at=before.added_at if before is not None and before.url == url else when,
        last_seen=when,
    )
    warnings = card_warnings(card, card_url)
    if headers and origin_of(interface.url) != origin_of(url):
        warnings.append(
            f"the credentials stay at {shown_origin(url)}; {shown_origin(interface.url)} gets none"
        )
    if before is not None and before.card_hash != agent.card_hash:
        warnings.append("its card differs from before")
    return Candidate(agent, tuple(warnings))


async def has_changed_card(agent: ExternalAgent, environ: Mapping[str, str]) -> bool:
    """Whether an agent's card has changed since it was added; the stored one remains in use."""
    headers = credentials_of(agent, environ)
    bounds = Bounds(agent.card_url, headers=headers, max_bytes=MAX_CARD + 1)
    async with await asyncio.to_thread(make_client, bounds) as client:
        return hash_of(await _fetch(client, agent.card_url)) != agent.card_hash


def credentials_of(agent: ExternalAgent, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers that authenticate us to an agent; the token is read from `environ`."""
    return headers_of(agent.headers, agent.token_env, environ)


def headers_of(headers: Mapping[str, str], token_env: str, environ: Mapping[str, str]) -> dict[str, str]:
    found = dict(headers)
    if token_env:
        token = environ.get(token_env, "").strip()
        if not token:
            raise ConfigError(
                f"the environment variable {token_env} is not set",
                "set it where synapse-tui is started, then try again",
            )
        if not token.isascii() or not token.isprintable():
            raise ConfigError(f"the value of {token_env} cannot be sent in a header", "check its value")
        found["Authorization"] = f"Bearer {token}"
    return found


def _check_free(store: ExternalStore, alias: str, url: str) -> None:
    known = store.find(alias)
    if known is not None and known.url != url:
        raise InvalidValue(
            f"'{alias}' is {shown_origin(known.url)} already",
            f"choose another alias, or remove it first: synapse external remove {alias}",
        )


# -- fetching ---


async def _find_card(client: httpx.AsyncClient, url: str) -> tuple[str, dict[str, Any]]:
    problem: SynapseError | None = None
    for card_url in _card_urls(url):
        try:
            return card_url, await _fetch(client, card_url)
        except PeerRefused as error:
            if error.status not in _TRY_NEXT:
                raise
            if problem is None or error.status in (401, 403):
                problem = error
        except CardRefused as error:
            problem = problem or error
    assert problem is not None
    if isinstance(problem, PeerRefused) and problem.status == 404:
        raise CardRefused(
            f"no agent card found at {shown_origin(url)}",
            "give the URL of the card itself if it is elsewhere",
        )
    raise problem


def _card_urls(url: str) -> list[str]:
    parts = urlsplit(url)
    if parts.path.endswith(".json"):
        return [url]
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    # An agent below a path may have its card at the root of its host.
    return [f"{origin}{prefix}{card}" for prefix in dict.fromkeys((path, "")) for card in CARD_PATHS]


async def _fetch(client: httpx.AsyncClient, card_url: str) -> dict[str, Any]:
    try:
        async with asyncio.timeout(TIMEOUT):
            response = await client.get(card_url, headers={"Accept": "application/json"})
        response.raise_for_status()
    except (httpx.HTTPError, TimeoutError) as error:
        raise problem_of(error, card_url, sends=False) from error
    return parse_card(response.content, card_url)


def parse_card(data: bytes, where: str) -> dict[str, Any]:
    if len(data) > MAX_CARD:
        raise CardRefused(
            f"the card at {where} has more than {MAX_CARD:,} bytes", "ask whoever runs the agent"
        )
    try:
        card = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CardRefused(f"{where} did not return JSON", "is it the URL of an A2A agent?") from error
    if not isinstance(card, dict) or not isinstance(card.get("name"), str):
        raise CardRefused(f"{where} did not return an agent card", "is it the URL of an A2A agent?")
    if is_deeper(card, MAX_DEPTH):
        raise CardRefused(f"the card at {where} is nested too deeply", "ask whoever runs the agent")
    return cast("dict[str, Any]", card)


# -- reading ---


def choose_interface(card: Card, card_url: str, allowed: Collection[str] = ()) -> Interface:
    """Choose the interface to call an agent by: 1.0 before 0.3, then the card's order.

    Only interfaces of the card's own origin are trusted, and of the origins of `allowed` URLs.
    """
    offered = _interfaces(card, card_url)
    usable = [each for each in offered if is_allowed(each.url, card_url, allowed)]
    if usable:
        return min(usable, key=lambda each: each.version != "1.0")
    name = clean_line(card.get("name"), 60)
    if offered:
        other = shown_origin(offered[0].url)
        raise CardRefused(
            f"the card of '{name}' at {shown_origin(card_url)} sends messages to {other}",
            f"if that is right, agree to it: synapse external add URL --allow-origin {other}",
        )
    raise CardRefused(
        f"'{name}' offers no supported interface",
        "supported are JSONRPC and HTTP+JSON of A2A 1.0 and 0.3, and the routes of synapse-a2a",
    )


def card_warnings(card: Card, card_url: str) -> list[str]:
    found = []
    if card.get("securityRequirements") or card.get("security"):
        found.append("it asks for credentials: name a variable with a bearer token, or give a header")
    capabilities = card.get("capabilities")
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    found += [
        f"it requires the extension {clean_line(mapping.get('uri'), 120)}, which is not supported"
        for mapping in _mappings(extensions)
        if mapping.get("required") is True
    ]
    if card_url.startswith("http:") and not is_loopback(urlsplit(card_url)):
        found.append("the connection is not encrypted: use https where there is one")
    return found


def _interfaces(card: Card, card_url: str) -> list[Interface]:
    listed = _mappings(card.get("supportedInterfaces"))
    if listed:
        found = [
            _interface(each.get("url"), each.get("protocolBinding"), each.get("protocolVersion"), each)
            for each in listed
        ]
    elif _is_dialect(card):
        root = card_url.partition("/.well-known/")[0]
        found = [_interface(card.get("url") or root, "dialect", "", {})]
    else:
        version = card.get("protocolVersion") or "0.3"
        first = _interface(card.get("url"), card.get("preferredTransport") or "JSONRPC", version, {})
        more = _mappings(card.get("additionalInterfaces"))
        found = [first, *(_interface(each.get("url"), each.get("transport"), version, {}) for each in more)]
    return [each for each in found[:MAX_INTERFACES] if each is not None]


def _interface(url: object, binding: object, version: object, more: Card) -> Interface | None:
    word = binding.upper() if isinstance(binding, str) else ""
    kind: Binding | None = "dialect" if binding == "dialect" else _BINDINGS.get(word)
    number = _version(version) if kind != "dialect" else ""
    if not isinstance(url, str) or kind is None or number is None or "://" not in url:
        return None
    try:
        return Interface(check_url(url), kind, number, clean_line(more.get("tenant"), 100))
    except InvalidValue:
        return None


def _version(value: object) -> str | None:
    """The version to speak: 1.0, or 0.3 for all earlier ones; None for later ones."""
    match = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return "1.0" if value in (None, "") else None
    return {0: "0.3", 1: "1.0"}.get(int(match[1]))


def _is_dialect(card: Card) -> bool:
    extensions = card.get("extensions")
    return isinstance(extensions, Mapping) and "synapse" in extensions and not card.get("protocolVersion")


def _mappings(value: object) -> list[Card]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
