"""What a card says of the keys that its agent demands (A2A 1.0.1 section 4.5, A2A 0.3 section 5.5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from .agent import Services
from .calls import KEY_HEADER

CardShape = Literal["1.0", "0.3", "dual"]
"""Whose fields a card has: those of one version of the protocol, or both."""

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
    """Whether everyone but the person and the agents must show a key."""
    return services.access is not None and services.access.rules.enabled


def card_security(services: Services, shape: CardShape) -> dict[str, Any]:
    """The fields of a card that name its security schemes; each of them suffices.

    Args:
        services: Tells whether keys are demanded.
        shape: Which fields; a dual card's schemes have those of both versions side by side, as the SDK writes
            them.

    Returns:
        Fields to be added to the card as JSON; none where no key is demanded of everyone.
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
