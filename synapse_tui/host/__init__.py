"""The host: owns agents, servers, registry and routing. It knows no Textual."""

from .host import Host
from .routing import Receipt

__all__ = ["Host", "Receipt"]
