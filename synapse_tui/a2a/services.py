"""What the servers of all agents of a host share; requests find it in `scope["state"]["services"]`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Services:
    """What the servers of a host share."""


NO_SERVICES = Services()
