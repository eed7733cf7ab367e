"""The routes of the cards, with what caches need (A2A section 8.6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from synapse_tui.a2a.agent import HostedAgent

from .calls import call_from
from .cards import Form, card_json
from .extensions import Extension

MAX_AGE = 60
"""Seconds for which a card may be kept without asking again: an agent can be renamed at any time."""
KEPT = 20
"""How many cards of an agent are remembered: one for each form and each name by which it is reached."""


class Edition(NamedTuple):
    """What is known of a card that was told.

    Attributes:
        etag: Names its content.
        since: When that content was first told.
    """

    etag: str
    since: datetime


class Cards:
    """Tells cards, and since when they are as they are.

    Args:
        extensions: What the agents offer.
        clock: The time now, aware.
    """

    def __init__(
        self, extensions: tuple[Extension, ...], clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._extensions = extensions
        self._clock = clock
        self._editions: WeakKeyDictionary[HostedAgent, dict[tuple[str, str], Edition]] = WeakKeyDictionary()

    def routes(self) -> list[Route]:
        """The routes, for GET and HEAD."""
        return [
            Route("/.well-known/agent-card.json", self.card, methods=["GET"]),
            Route("/.well-known/agent.json", self.old_card, methods=["GET"]),
        ]

    async def card(self, request: Request) -> Response:
        """The card in the form that the settings name."""
        return self._answer(request, call_from(request).services.card)

    async def old_card(self, request: Request) -> Response:
        """The card with the fields of the dialect."""
        return self._answer(request, "old")

    def _answer(self, request: Request, form: Form) -> Response:
        call = call_from(request)
        card = card_json(call.agent, call.base_url, call.services, form, self._extensions)
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
            edition = known[place] = Edition(etag, self._clock().replace(microsecond=0))
            while len(known) > KEPT:
                del known[next(iter(known))]
        return edition


def _is_known(request: Request, edition: Edition) -> bool:
    """Whether the caller has this content already; an ETag goes before a time (RFC 9110 section 13.2.2)."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        named = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return bool(named & {"*", edition.etag})
    since = request.headers.get("if-modified-since")
    try:
        return since is not None and parsedate_to_datetime(since) >= edition.since
    except (ValueError, TypeError):
        return False
