"""Finds an external agent by its URL: the card, where it is, and how the agent is called."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from synapse_tui.errors import CardRefused, InvalidValue, PeerRefused, SynapseError

from .registry import MAX_CARD, Binding, Interface
from .transport import Bounds, make_client, problem_of
from .untrusted import check_url, clean_line, is_allowed, origin_of, shown_origin

MAX_DEPTH = 30
MAX_INTERFACES = 20
_BINDINGS: Mapping[str, Binding] = {"JSONRPC": "JSONRPC", "HTTP+JSON": "HTTP+JSON", "HTTPJSON": "HTTP+JSON"}
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\w+)*")


@dataclass(frozen=True, slots=True)
class ReadCard:
    """A card that can be used.

    Attributes:
        card: It, as it came.
        interface: How the agent is called.
        warnings: What a person should know, a sentence each.
    """

    card: Mapping[str, Any]
    interface: Interface
    warnings: tuple[str, ...] = ()


def parse_card(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a card.

    Args:
        data: What the server sent.
        where: The URL, for the error.

    Raises:
        CardRefused: It is none, or too large, or nested too deeply.
    """
    if len(data) > MAX_CARD:
        raise CardRefused(
            f"the card at {where} has more than {MAX_CARD:,} bytes", "ask whoever runs the agent"
        )
    try:
        card = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CardRefused(f"what is at {where} is no JSON", "is it the URL of an A2A agent?") from error
    if not isinstance(card, dict) or not isinstance(card.get("name"), str):
        raise CardRefused(f"what is at {where} is no agent card", "is it the URL of an A2A agent?")
    if _depth(card) > MAX_DEPTH:
        raise CardRefused(f"the card at {where} is nested too deeply", "ask whoever runs the agent")
    return cast("dict[str, Any]", card)


def read_card(card: Mapping[str, Any], card_url: str, *, allowed: Collection[str] = ()) -> ReadCard:
    """Choose how an agent is called.

    Args:
        card: Its card.
        card_url: Where the card was found: interfaces of that origin are trusted.
        allowed: URLs of further origins that the person agreed to.

    Raises:
        CardRefused: It offers no way that this program can and may use.
    """
    offered = _interfaces(card, card_url)
    usable = [each for each in offered if is_allowed(each.url, card_url, allowed)]
    if not usable:
        raise _unusable(card, offered, card_url)
    return ReadCard(card, min(usable, key=_order), tuple(_warnings(card, card_url)))


def _interfaces(card: Mapping[str, Any], card_url: str) -> list[Interface]:
    """All ways to call an agent that this program can use, the agent's preferred one first."""
    listed = _mappings(card.get("supportedInterfaces"))
    if listed:
        found = [
            _interface(e.get("url"), e.get("protocolBinding"), e.get("protocolVersion"), e) for e in listed
        ]
    elif _is_dialect(card):
        found = [_interface(card.get("url") or _root(card_url), "dialect", "", {})]
    else:
        version = card.get("protocolVersion") or "0.3"
        first = _interface(card.get("url"), card.get("preferredTransport") or "JSONRPC", version, {})
        more = _mappings(card.get("additionalInterfaces"))
        found = [first, *(_interface(e.get("url"), e.get("transport"), version, {}) for e in more)]
    return [each for each in found[:MAX_INTERFACES] if each is not None]


def _interface(url: object, binding: object, version: object, more: Mapping[str, Any]) -> Interface | None:
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
    """The version that is spoken: 1.0, or 0.3 with all that came before it; None for later ones."""
    match = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return "1.0" if value in (None, "") else None
    return {0: "0.3", 1: "1.0"}.get(int(match[1]))


def _order(interface: Interface) -> int:
    """1.0 before 0.3; `min` keeps the agent's own order where both are alike."""
    return 0 if interface.version == "1.0" else 1


def _is_dialect(card: Mapping[str, Any]) -> bool:
    extensions = card.get("extensions")
    return isinstance(extensions, Mapping) and "synapse" in extensions and not card.get("protocolVersion")


def _unusable(card: Mapping[str, Any], offered: Sequence[Interface], card_url: str) -> CardRefused:
    name = clean_line(card.get("name"), 60)
    if offered:
        other = shown_origin(offered[0].url)
        return CardRefused(
            f"the card of '{name}' at {shown_origin(card_url)} sends messages to {other}",
            f"if that is right, agree to it: --allow-origin {other}",
        )
    return CardRefused(
        f"'{name}' offers no way to call it that is supported",
        "supported are JSONRPC and HTTP+JSON of A2A 1.0 and 0.3, and the routes of synapse-a2a",
    )


def _warnings(card: Mapping[str, Any], card_url: str) -> list[str]:
    told = []
    if card.get("securityRequirements") or card.get("security"):
        told.append("it asks for credentials: a bearer token (--token-env) or a header (--header)")
    capabilities = card.get("capabilities")
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    required = [e for e in _mappings(extensions) if e.get("required") is True]
    told += [
        f"it requires the extension {clean_line(e.get('uri'), 120)}, which is not supported" for e in required
    ]
    if card_url.startswith("http:") and not is_allowed(card_url, "http://127.0.0.1" + _port(card_url), ()):
        told.append("the connection is not encrypted: use https where there is one")
    return told


def _port(url: str) -> str:
    host = url.split("/", 3)[2]
    digits = re.search(r":(\d+)$", host)
    return f":{digits[1]}" if digits else ""


def _root(card_url: str) -> str:
    return card_url.partition("/.well-known/")[0]


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [inner for each in level for inner in _children(each)]
    return depth


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
PATIENCE = 15.0
"""Seconds in which a card must have come."""
_ELSEWHERE = frozenset({400, 401, 403, 404, 405, 410, 501})
"""Statuses after which the card is looked for at the next place."""


@dataclass(frozen=True, slots=True)
class Found:
    """An agent that was found, before anybody decided to keep it.

    Attributes:
        url: The URL that was asked for.
        card_url: Where the card is.
        card: The card as it came.
        interface: How the agent is called.
        warnings: What a person should know, a sentence each.
        allowed: URLs of further origins that were agreed to.
    """

    url: str
    card_url: str
    card: Mapping[str, Any] = field(repr=False)
    interface: Interface
    warnings: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


async def discover(
    url: str, *, allowed: Sequence[str] = (), headers: Mapping[str, str] = MappingProxyType({})
) -> Found:
    """Find an agent.

    Args:
        url: Its base URL, or that of its card.
        allowed: URLs of further origins that messages may go to.
        headers: Credentials for the URL's origin.

    Raises:
        InvalidValue: That is no URL.
        PeerUnreachable: Nobody answers there.
        PeerRefused: There is no card, or none for us.
        CardRefused: What is there cannot be used.
    """
    base = check_url(url)
    agreed = tuple(check_url(each, what="--allow-origin") for each in allowed)
    bounds = Bounds(base, headers=headers, max_bytes=MAX_CARD + 1)
    client = await asyncio.to_thread(make_client, bounds)
    async with client:
        card_url, card = await _find(client, base)
    read = read_card(card, card_url, allowed=agreed)
    warnings = read.warnings
    if headers and origin_of(read.interface.url) != origin_of(base):
        warnings += (
            f"the credentials stay at {shown_origin(base)}; {shown_origin(read.interface.url)} gets none",
        )
    return Found(base, card_url, read.card, read.interface, warnings, agreed)


async def read_again(card_url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """The card as it is now.

    Raises:
        PeerUnreachable: Nobody answers there.
        PeerRefused: There is no card any more.
        CardRefused: What is there is no card.
    """
    client = await asyncio.to_thread(make_client, Bounds(card_url, headers=headers, max_bytes=MAX_CARD + 1))
    async with client:
        return await _fetch(client, card_url)


def card_urls(base: str) -> list[str]:
    """Where a card may be, the likeliest place first."""
    parts = urlsplit(base)
    if parts.path.endswith(".json"):
        return [base]
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    below = [f"{origin}{path}{card}" for card in CARD_PATHS]
    # An agent below a path may also have its card at the root of its host.
    return below if not path else [*below, *(f"{origin}{card}" for card in CARD_PATHS)]


async def _find(client: httpx.AsyncClient, base: str) -> tuple[str, dict[str, Any]]:
    missing: SynapseError | None = None
    for card_url in card_urls(base):
        try:
            return card_url, await _fetch(client, card_url)
        except PeerRefused as error:
            if error.status not in _ELSEWHERE:
                raise
            worse = missing is None or error.status in (401, 403)
            missing = error if worse else missing
        except CardRefused as error:
            missing = missing or error
    assert missing is not None
    if isinstance(missing, PeerRefused) and missing.status == 404:
        raise CardRefused(
            f"there is no agent card at {shown_origin(base)}",
            "give the URL of the card itself if it is elsewhere",
        )
    raise missing


async def _fetch(client: httpx.AsyncClient, card_url: str) -> dict[str, Any]:
    try:
        async with asyncio.timeout(PATIENCE):
            response = await client.get(card_url, headers={"Accept": "application/json"})
        response.raise_for_status()
    except (httpx.HTTPError, TimeoutError) as error:
        raise problem_of(error, card_url, sends=False) from error
    return parse_card(response.content, card_url)
