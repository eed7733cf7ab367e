"""The command line: `synapse`. Commands are imported when they run, so that each starts fast."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Entry point of `synapse`; ends the process."""
    import sys

    try:
        from .group import synapse
        from .output import run_command
    except KeyboardInterrupt:
        sys.exit(130)
    run_command(synapse, sys.argv[1:], name="synapse")
