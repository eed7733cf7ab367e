"""Connects to an external agent; imported in a thread, since it loads httpx and the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from synapse_tui.errors import CardRefused, ConfigError

from .dialect_peer import DialectPeer
from .discovery import discover, read_again
from .exchange import Exchange
from .limits import Budget
from .peer import Peer
from .record import ExternalAgent
from .sdk_peer import SdkPeer
from .transport import Bounds, make_client

__all__ = ["Exchange", "credentials_of", "discover", "open_peer", "read_again"]


def credentials_of(agent: ExternalAgent, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers by which an agent knows who calls.

    Args:
        agent: The agent.
        environ: Where tokens are.

    Raises:
        ConfigError: The variable of its token is not set.
    """
    return headers_of(agent.headers, agent.token_env, environ)


def headers_of(headers: Mapping[str, str], token_env: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers, with the token of a variable as one of them.

    Raises:
        ConfigError: The variable is not set, or holds what cannot be sent.
    """
    found = dict(headers)
    if token_env:
        token = environ.get(token_env, "").strip()
        if not token:
            raise ConfigError(
                f"the environment variable {token_env} is not set",
                "set it where synapse-tui is started, then try again",
            )
        if not token.isascii() or not token.isprintable():
            raise ConfigError(f"what {token_env} holds cannot be sent in a header", "look at its value")
        found["Authorization"] = f"Bearer {token}"
    return found


async def open_peer(agent: ExternalAgent, environ: Mapping[str, str], budget: Budget) -> Peer:
    """Connect to an agent.

    Args:
        agent: The agent.
        environ: Where tokens are.
        budget: What the agent may send.

    Raises:
        CardRefused: Its card must be read first.
        ConfigError: The variable of its token is not set.
    """
    interface = agent.interface
    if interface is None:
        raise CardRefused(
            f"the card of '{agent.alias}' was not read yet", f"add it anew: synapse external add {agent.url}"
        )
    bounds = Bounds(agent.url, agent.allowed, credentials_of(agent, environ), budget=budget)
    http = await asyncio.to_thread(make_client, bounds)
    if interface.binding == "dialect":
        return DialectPeer(interface, http)
    return await asyncio.to_thread(SdkPeer, agent, interface, http, budget)
