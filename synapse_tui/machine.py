"""Which machine this is: a name that stays the same, and that no other machine and no other user has."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import socket
import sys
from contextlib import suppress
from pathlib import Path

from synapse_tui.files import check_safe, private_folder, write_private

_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,80}")
_LABEL = 24
"""Characters of the host name that stand in a machine's name."""


def machine_name(folder: Path) -> str:
    """The name of this machine, for this user: `laptop-3f9a1c`.

    It is made of the host name and of what the system is known by (machine-id(5), gethostuuid(3)), hashed
    with the user, and kept in a file: host names change. A home folder that several machines share has a file
    for each of them.

    Args:
        folder: Where it is kept (`~/.synapse/machines`); one that cannot be written is done without.
    """
    digest = hashlib.sha256(f"synapse-tui:{_system()}:{os.getuid()}".encode()).hexdigest()
    path = folder / digest[:32]
    with suppress(OSError):
        check_safe(path)
        known = path.read_text(encoding="utf-8", errors="replace").strip()
        if _NAME.fullmatch(known):
            return known
    label = re.sub(r"[^A-Za-z0-9-]", "", socket.gethostname().split(".")[0])[:_LABEL].strip("-") or "machine"
    name = f"{label}-{digest[:6]}"
    with suppress(OSError):
        private_folder(folder)
        write_private(path, f"{name}\n".encode())
    return name


def _system() -> str:
    """What the system is known by; its host name where it tells nothing else."""
    if sys.platform == "darwin":
        return _host_uuid() or socket.gethostname()
    for path in _ID_FILES:
        with suppress(OSError):
            if found := path.read_text(encoding="ascii", errors="replace").strip():
                # Containers of one image have the same id; each has a host name of its own as a rule.
                return f"{found}:{socket.gethostname()}" if Path("/.dockerenv").exists() else found
    return socket.gethostname()


def _host_uuid() -> str:
    class Timespec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    found = (ctypes.c_ubyte * 16)()
    try:
        failed = ctypes.CDLL(None).gethostuuid(found, ctypes.byref(Timespec(5, 0)))
    except (OSError, AttributeError):
        return ""
    return "" if failed else bytes(found).hex()
