"""Whether a program is doing something at this moment, as far as the system tells."""

from __future__ import annotations

import os
from collections.abc import Iterable

from synapse_tui.pty.guardian_process import read_table

MAX_PROCESSES = 32
"""How many processes of an agent are looked at."""


def processes_of(leader: int) -> tuple[int, ...]:
    """The processes in a session: the keys may be read by a child that the agent started itself anew as.

    Reads the whole process table: to be called in a thread.
    """
    members = [row.key.pid for row in read_table() if row.session == leader]
    return tuple(members[:MAX_PROCESSES]) or (leader,)


def all_sleep(pids: Iterable[int]) -> bool:
    """Whether all of these processes wait for something, proc(5); True where that is not told.

    Only the first thread of each is looked at: in programs with an event loop the one that reads the keys.
    """
    return all(_state(pid) != b"R" for pid in pids)


def _state(pid: int) -> bytes:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    # The name stands in parentheses and may itself hold blanks and parentheses.
    return data[data.rfind(b")") + 2 :][:1]
