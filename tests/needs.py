"""What some tests need that a machine may lack."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from functools import cache

from tests.postgres_kit import why_not
from tests.terminal.headless import HEADLESS
from tests.terminal.recordings import captures
from tests.terminal.tmux_screen import TMUX

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_NEEDS: dict[str, Callable[[], str]] = {
    "lab": lambda: "" if os.environ.get("SYNAPSE_LAB_LOG") else "needs real agents: python -m tests.lab.run",
    "captures": lambda: (
        "" if captures() else "needs recordings of real agents: SYNAPSE_SHARED names the folder of captures/"
    ),
    "tmux": lambda: "" if TMUX else "needs tmux",
    "headless": lambda: (
        "" if HEADLESS else "needs Node.js, and XTERM_HEADLESS, the node_modules with @xterm/headless"
    ),
    "chromium": lambda: "" if CHROMIUM else "needs Chromium",
    "postgres": why_not,
}


@cache
def _lack(need: str) -> str:
    return _NEEDS[need]()


def lack(names: Collection[str]) -> str:
    """Why a test with these marks and fixtures cannot run here; empty if it can."""
    return next(filter(None, (_lack(need) for need in _NEEDS if need in names)), "")
