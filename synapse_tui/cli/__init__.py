"""The command line `synapse`. Commands are imported when they run, so that each starts fast."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    import os
    import sys

    try:
        from .group import completed_by, synapse
        from .output import run_command

        if "_SYNAPSE_COMPLETE" in os.environ:
            from .completion import answer

            answer(completed_by)
    except KeyboardInterrupt:
        sys.exit(130)
    run_command(synapse, sys.argv[1:], name="synapse")
