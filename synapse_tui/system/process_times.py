"""Process identity (start times, pid namespaces), limits of open files, umask, and the machine's name."""

from __future__ import annotations

import os
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

from .files import check_safe, private_folder, read_regular, write_private


def process_start(pid: int) -> float | None:
    """Return a process's start time in seconds, or None if it does not exist or is a zombie.

    A killed process whose threads have not all ended still holds its ports and files, and is no zombie.

    The time counts from boot on Linux (proc(5), field 22) and from the epoch elsewhere.
    """
    if os.path.isdir("/proc/self"):  # noqa: PTH112 - pathlib is slower
        return _linux_start(pid)
    import psutil  # noqa: PLC0415 - slow to import, not needed on Linux

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return 0.0


def _linux_start(pid: int) -> float | None:
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0.0
    # The command name is in parentheses and may itself contain parentheses and spaces.
    fields = line.rpartition(")")[2].split()
    if len(fields) < 20 or (fields[0] in "ZX" and int(fields[17]) <= 1):  # its threads
        return None
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def pid_namespace() -> str:
    """Return the pid namespace of this process (pid_namespaces(7)); empty if unknown."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_name(pid: int, started: float | None = None) -> str:
    """Format a process as pid and start time, since pids are reused; `is_alive` reads it.

    `started` is the start time as returned by `process_start`; None looks it up.
    """
    return f"{pid}:{(process_start(pid) or 0.0) if started is None else started:.2f}"


def is_alive(name: str) -> bool:
    """Whether the named process is running; a bare pid matches any process that has it."""
    pid, _, started = name.partition(":")
    now = process_start(int(pid)) if pid.isdigit() else None
    return now is not None and (not started or abs(now - float(started)) < 1.0)


MOST = 8192
"""Upper limit, because some systems close every possible descriptor one by one when a program starts."""
LEAST = 1024
"""Fallback if the system refuses `MOST`."""
VARIABLE = "SYNAPSE_OPEN_FILES"
"""Records the original limits. An environment variable, because the raised limit also survives execve(2)."""


def open_files_limit() -> int:
    """Return the current limit of open files."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft


def raise_open_files() -> None:
    """Raise the limit of open files as far as allowed; calling it again does nothing."""
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
    """Return the original soft and hard limits, for child processes; None if they were not raised."""
    given = os.environ.get(VARIABLE, "")
    if not given.isdigit():
        return None
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return int(given), hard


UMASK_VARIABLE = "SYNAPSE_UMASK"


def restrict_umask() -> None:
    """Make what this process creates readable by its user alone; child processes get `given_umask`."""
    given = os.umask(0o077)
    os.environ.setdefault(UMASK_VARIABLE, f"{given:o}")  # kept by the next version, which this one executes


def given_umask() -> int:
    """Return the original umask, for child processes; -1 if it was not changed."""
    try:
        return int(os.environ.get(UMASK_VARIABLE, ""), 8) & 0o777
    except ValueError:
        return -1


_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,80}")
_LABEL = 24
"""Maximum length of the host name within a machine's name."""


def machine_name(folder: Path) -> str:
    """Return the name of this machine for this user, such as `laptop-3f9a1c`.

    It combines the host name with a hash of the user and the system's id (machine-id(5), gethostuuid(3)), and
    is stored in a file because host names change. A home folder shared by several machines has one file for
    each.

    Args:
        folder: Where it is stored (`~/.synapse/machines`); need not be writable.
    """
    import hashlib  # noqa: PLC0415 - keeps command startup fast

    digest = hashlib.sha256(f"synapse-tui:{_system()}:{os.getuid()}".encode()).hexdigest()
    path = folder / digest[:32]
    with suppress(OSError):
        check_safe(path)
        known = read_regular(path).decode(errors="replace").strip()
        if _NAME.fullmatch(known):
            return known
    label = re.sub(r"[^A-Za-z0-9-]", "", _host_name().split(".")[0])[:_LABEL].strip("-") or "machine"
    name = f"{label}-{digest[:6]}"
    with suppress(OSError):
        private_folder(folder)
        write_private(path, f"{name}\n".encode())
    return name


def _host_name() -> str:
    import socket  # noqa: PLC0415 - keeps command startup fast

    return socket.gethostname()


def _system() -> str:
    if sys.platform == "darwin":
        return _host_uuid() or _host_name()
    for path in _ID_FILES:
        with suppress(OSError):
            if found := path.read_text(encoding="ascii", errors="replace").strip():
                # Containers of one image share this id, but usually have distinct host names.
                return f"{found}:{_host_name()}" if Path("/.dockerenv").exists() else found
    return _host_name()


def _host_uuid() -> str:
    import ctypes  # noqa: PLC0415 - keeps command startup fast

    class Timespec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    found = (ctypes.c_ubyte * 16)()
    try:
        failed = ctypes.CDLL(None).gethostuuid(found, ctypes.byref(Timespec(5, 0)))
    except (OSError, AttributeError):
        return ""
    return "" if failed else bytes(found).hex()
