"""Finds an agent as it would be kept: for the command line and for a host."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from synapse_tui.errors import InvalidValue

from .desk import AddOrder, Offer
from .registry import ExternalAgent, ExternalStore, alias_from, check_alias, check_variable, hash_of
from .untrusted import check_url, shown_origin

if TYPE_CHECKING:
    from types import ModuleType


async def connecting() -> ModuleType:
    """The module that connects, imported in a thread: it takes long."""
    return await asyncio.to_thread(importlib.import_module, "synapse_tui.a2a.external.peers")


async def find_agent(
    order: AddOrder,
    store: ExternalStore,
    *,
    environ: Mapping[str, str],
    types: Sequence[str],
    now: Callable[[], datetime],
) -> Offer:
    """Find an agent as it would be kept.

    Args:
        order: Which one.
        store: The registry.
        environ: Where tokens are.
        types: Types of hosted agents: no alias may be one.
        now: The time, aware.

    Raises:
        ConfigError: The URL, the alias or the token is of no use.
        PeerError: It cannot be reached, or its card not be used.
    """
    url = check_url(order.url)
    variable = check_variable(order.token_env)
    alias = check_alias(order.alias, taken=types) if order.alias else ""
    if alias and not order.replace:
        await asyncio.to_thread(_check_free, store, alias, url)
    module = await connecting()
    headers = module.headers_of(order.headers, variable, environ)
    found = await module.discover(url, allowed=order.allowed, headers=headers)
    known = await asyncio.to_thread(store.list)
    when = now().isoformat(timespec="seconds")
    again = next((each for each in known if each.url == found.url and not alias), None)
    taken = [*types, *(each.alias for each in known)]
    chosen = alias or (again.alias if again else alias_from(found.card.get("name"), taken))
    before = next((each for each in known if each.alias == chosen and each.url == found.url), None)
    agent = ExternalAgent(
        chosen,
        found.url,
        card_url=found.card_url,
        card=MappingProxyType(dict(found.card)),
        interface=found.interface,
        allowed=found.allowed,
        headers=MappingProxyType(dict(order.headers)),
        token_env=variable,
        added_at=before.added_at if before is not None else when,
        last_seen=when,
    )
    return Offer(agent, (*found.warnings, *_news(agent, known)))


async def changed_card(agent: ExternalAgent, environ: Mapping[str, str]) -> bool:
    """Whether an agent shows another card than when it was added; what is used stays what was added then.

    Raises:
        PeerError: Its card cannot be read.
        ConfigError: The variable of its token is not set.
    """
    module = await connecting()
    card = await module.read_again(agent.card_url, module.credentials_of(agent, environ))
    return hash_of(card) != agent.card_hash


def _check_free(store: ExternalStore, alias: str, url: str) -> None:
    known = store.find(alias)
    if known is not None and known.url != url:
        raise InvalidValue(
            f"'{alias}' is {shown_origin(known.url)} already",
            f"choose another --alias, or remove it first: synapse external remove {alias}",
        )


def _news(agent: ExternalAgent, known: Sequence[ExternalAgent]) -> list[str]:
    """What a person should know of an agent that is added anew."""
    before = next((each for each in known if each.alias == agent.alias), None)
    if before is None or before.card_hash == agent.card_hash:
        return []
    return ["its card is another one than before"]
