"""Which routes a caller may use: the person all, an agent what they themselves allow, a key the protocol's.

What is not named here is for the person and the agents of the host: their outbox, inbox, instructions,
watches, replies, webhooks for everything and external agents.
"""

from __future__ import annotations

import re

from .principal import Principal
from .problems import HttpProblem

CARD_PREFIX = "/.well-known/"
_OF_KEYS = re.compile(
    r"/|/a2a/.*|/v1/.*|/\.well-known/.*|/status|/message|/tasks|/tasks/send|/tasks/send-priority"
    r"|/tasks/(?!create$)[^/]+|/tasks/[^/]+/(?:cancel|subscribe)"
)


def is_card(method: str, path: str) -> bool:
    """Whether only a card is read: it tells strangers how to prove themselves."""
    return method in ("GET", "HEAD") and path.startswith(CARD_PREFIX)


def check_permit(principal: Principal, path: str, *, signed: bool) -> None:
    """Make sure that a caller may use a route.

    Raises:
        HttpProblem: It may not.
    """
    if principal.admin or signed or _OF_KEYS.fullmatch(path):
        return
    raise HttpProblem(
        403,
        "admin_only",
        f"the key '{principal.name}' is not for {path[:100]}",
        "use the key of SYNAPSE_ADMIN_KEY, or ask the owner of the agent",
    )
