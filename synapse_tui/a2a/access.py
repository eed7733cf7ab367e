"""Who is let in: the rules, as the settings that hold at this moment give them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccessRules:
    """What the settings say about callers.

    Attributes:
        enabled: Whether keys are demanded (`SYNAPSE_AUTH_ENABLED`).
    """

    enabled: bool = False


class Access:
    """The rules that all servers of a host share.

    Args:
        rules: The first ones.
    """

    def __init__(self, rules: AccessRules) -> None:
        self.rules = rules
