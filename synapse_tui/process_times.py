"""Which process it is: when it started, where its number means anything, and a name that comes only once."""

from __future__ import annotations

import os
import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

from .files import check_safe, private_folder, write_private


def process_start(pid: int) -> float | None:
    """When a process started, in seconds: since boot on Linux (proc(5), field 22), since the epoch elsewhere.

    Returns:
        The time; None when there is no such process (a zombie is none either).
    """
    if os.path.isdir("/proc/self"):  # noqa: PTH112 - pathlib costs more than the question
        return _linux_start(pid)
    import psutil  # noqa: PLC0415 - slow to import, and Linux does without

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
    # The command's name stands in parentheses and may hold any character, parentheses and spaces too.
    fields = line.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in "ZX":
        return None
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def pid_namespace() -> str:
    """In which namespace this process sees others (pid_namespaces(7)); empty where that is not told."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_name(pid: int, started: float | None = None) -> str:
    """A process by its id and when it started, since ids come again; `is_alive` knows it by that.

    Args:
        pid: Its id.
        started: When it started, where that is known, as `process_start` tells it; None to look.
    """
    return f"{pid}:{(process_start(pid) or 0.0) if started is None else started:.2f}"


def is_alive(name: str) -> bool:
    """Whether the process of a name still runs; a bare id is whichever process has it now."""
    pid, _, started = name.partition(":")
    now = process_start(int(pid)) if pid.isdigit() else None
    return now is not None and (not started or abs(now - float(started)) < 1.0)


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
    import hashlib  # noqa: PLC0415 - every command loads this module

    digest = hashlib.sha256(f"synapse-tui:{_system()}:{os.getuid()}".encode()).hexdigest()
    path = folder / digest[:32]
    with suppress(OSError):
        check_safe(path)
        known = path.read_text(encoding="utf-8", errors="replace").strip()
        if _NAME.fullmatch(known):
            return known
    label = re.sub(r"[^A-Za-z0-9-]", "", _host_name().split(".")[0])[:_LABEL].strip("-") or "machine"
    name = f"{label}-{digest[:6]}"
    with suppress(OSError):
        private_folder(folder)
        write_private(path, f"{name}\n".encode())
    return name


def _host_name() -> str:
    import socket  # noqa: PLC0415 - every command loads this module

    return socket.gethostname()


def _system() -> str:
    if sys.platform == "darwin":
        return _host_uuid() or _host_name()
    for path in _ID_FILES:
        with suppress(OSError):
            if found := path.read_text(encoding="ascii", errors="replace").strip():
                # Containers of one image have the same id; each has a host name of its own as a rule.
                return f"{found}:{_host_name()}" if Path("/.dockerenv").exists() else found
    return _host_name()


def _host_uuid() -> str:
    import ctypes  # noqa: PLC0415 - every command loads this module

    class Timespec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    found = (ctypes.c_ubyte * 16)()
    try:
        failed = ctypes.CDLL(None).gethostuuid(found, ctypes.byref(Timespec(5, 0)))
    except (OSError, AttributeError):
        return ""
    return "" if failed else bytes(found).hex()
