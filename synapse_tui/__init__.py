"""synapse-tui: all coding agents side by side in one terminal, messaging one another over A2A."""

__version__ = "0.1.0"
