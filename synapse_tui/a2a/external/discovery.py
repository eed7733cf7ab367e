"""Finds an external agent by its URL: the card, where it is, and how the agent is called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import httpx

from synapse_tui.errors import CardRefused, PeerRefused, SynapseError

from .cards import parse_card, read_card
from .origins import check_url, origin_of, shown_origin
from .problems import problem_of
from .record import MAX_CARD, Interface
from .transport import Bounds, make_client

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
