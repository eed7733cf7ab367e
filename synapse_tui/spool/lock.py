"""The host's lock on a spool: held as long as the host lives, whatever ends it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .messages import HOST_FILE, VERSION, network_of_this_process

TRIES = 50
"""A client that looks whether the lock is held holds it for an instant itself."""


def lock(folder: Path) -> int:
    """Take the lock of a spool.

    Returns:
        A descriptor; the lock is given back when it is closed.

    Raises:
        OSError: It cannot be taken, or another host has it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / HOST_FILE, flags, 0o600)
    try:
        _take(descriptor)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{network_of_this_process()}\n{VERSION}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _take(descriptor: int) -> None:
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise
        except OSError:
            return  # there are no locks on this file system: nobody takes the spool for abandoned then
        else:
            return


def is_abandoned(folder: Path) -> bool:
    """Whether nobody holds the lock of a spool any more, as far as can be told."""
    try:
        descriptor = os.open(folder / HOST_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
