"""Which process it is: when it started, where its number means anything, and a name that comes only once."""

from __future__ import annotations

import os
from pathlib import Path


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
