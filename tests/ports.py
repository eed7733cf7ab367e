"""Ports for programs under test that may be closed and opened again."""

from __future__ import annotations

import contextlib
import random
import socket

LOWEST, HIGHEST = 12_000, 32_000
"""Below those that systems give to whoever asks for any port, such as every client."""

_chance = random.SystemRandom()  # whatever is seeded: several processes choose at once


def free_ports(count: int = 1) -> int:
    """The first of so many successive ports, which no program uses now nor is likely to be given later."""
    while True:
        first = _chance.randrange(LOWEST, HIGHEST - count)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
