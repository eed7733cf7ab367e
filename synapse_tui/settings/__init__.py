"""Settings: one schema, layered from files and the environment (design, decision 12)."""

from .layers import Settings, load_settings
from .schema import SCHEMA, Setting

__all__ = ["SCHEMA", "Setting", "Settings", "load_settings"]
