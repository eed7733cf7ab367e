"""The host: owns agents, servers, registry and routing, and does not depend on Textual."""

from .host import Host
from .routing import Receipt

__all__ = ["Host", "Receipt"]
