"""How many files a process may open: a host as many as it can, its agents what the host itself was given.

A program that uses select(2) fails on descriptors of 1024 and more, so agents are started with the limit that
was given to this process.
"""

from __future__ import annotations

import os
import resource

MOST = 8192
"""More are not asked for: some systems close each possible descriptor, one by one, when a program starts."""
LEAST = 1024
"""Asked for where the system refuses `MOST`."""
VARIABLE = "SYNAPSE_OPEN_FILES"
"""Says what was given. In the environment since the raised limit, too, outlives execve(2)."""


def open_files_limit() -> int:
    """How many files this process may open now."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """Let this process open as many files as it may let itself; calling it again does nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (MOST, LEAST):
        wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            continue
        os.environ.setdefault(VARIABLE, str(soft))
        return


def given_open_files() -> tuple[int, int] | None:
    """The limits for programs that are started, those that this process was given; None for its own."""
    given = os.environ.get(VARIABLE, "")
    if not given.isdigit():
        return None
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(given), hard
