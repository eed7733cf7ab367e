"""The guardian's program and the process table it works on.

Run as `python -I -S -E guardian_process.py`: a file that imports a few modules of the standard library only,
so that it starts at once and stays small. The parent writes lines to its standard input: `+PID START` for
every session leader that lives, `-PID` for one that has ended. The end of the input means that the parent is
gone: everything in the sessions still named is then ended.

A process is named by its pid and its start time, so that a pid used again for something else is never
touched.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

STAGES = ((signal.SIGHUP, 1.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 1.0))
"""What is sent, and the seconds to wait for its effect."""

STEP = 0.02
"""Seconds between two looks whether they are gone."""

IGNORED = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP})
"""Signals that the guardian does not heed; the parent starts it with these blocked."""

RESCAN = 5.0
"""Seconds between two looks for descendants that went into a session of their own."""


class ProcessKey(NamedTuple):
    """A process; its start time (clock ticks, or the text of `ps`) tells it from a later one."""

    pid: int
    start: str


class ProcessRow(NamedTuple):
    """One line of the process table."""

    key: ProcessKey
    parent: int
    group: int
    session: int
    zombie: bool


def read_row(pid: int) -> ProcessRow | None:
    """One process of the table; None when there is none of that pid (proc(5), /proc/pid/stat)."""
    if not os.path.exists("/proc/self/stat"):  # noqa: PTH110 - pathlib doubles the start time of the guardian
        return next((row for row in _ps_rows(pid) if row.key.pid == pid), None)
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    # The name stands in parentheses and may itself hold blanks and parentheses.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    key = ProcessKey(pid, fields[19].decode())
    return ProcessRow(key, int(fields[1]), int(fields[2]), int(fields[3]), fields[0] in b"ZX")


def read_table() -> list[ProcessRow]:
    """Every process of the machine that can be seen."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        names = []
    pids = [int(name) for name in names if name.isdigit()]
    if not pids:
        return list(_ps_rows())
    return [row for row in map(read_row, pids) if row is not None]


def _ps_rows(pid: int = 0) -> Iterator[ProcessRow]:
    """The table as `ps` tells it, where there is no /proc (macOS, BSD)."""
    import subprocess  # noqa: PLC0415 - only needed without /proc

    which = ["-p", str(pid)] if pid else ["-ax"]
    command = ["/bin/ps", *which, "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    try:
        plain = {"LC_ALL": "C", "TZ": "UTC"}
        answer = subprocess.run(command, capture_output=True, check=False, timeout=5, env=plain)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return
    for line in answer.stdout.decode(errors="replace").splitlines():
        fields = line.split(None, 4)
        if len(fields) == 5:
            number = int(fields[0])
            zombie = fields[3].startswith("Z")
            yield ProcessRow(
                ProcessKey(number, fields[4].strip()),
                int(fields[1]),
                int(fields[2]),
                _session(number),
                zombie,
            )


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def start_time(pid: int) -> str:
    """When a process started; empty when it is gone."""
    row = read_row(pid)
    return row.key.start if row else ""


def alive(key: ProcessKey) -> bool:
    """Whether that very process still runs; a zombie does not."""
    row = read_row(key.pid)
    return row is not None and row.key == key and not row.zombie


def members(leaders: Iterable[ProcessKey], table: Iterable[ProcessRow]) -> set[ProcessKey]:
    """All that belongs to some sessions: members, all their descendants, and the sessions that these opened.

    Args:
        leaders: Session leaders; one whose pid now belongs to another process is left out with its session.
        table: The process table.

    Returns:
        Living processes; zombies are left out.
    """
    rows = {row.key.pid: row for row in table}
    keys = list(leaders)
    sessions = {key.pid for key in keys if key.pid not in rows or rows[key.pid].key == key}
    sessions.discard(rows[os.getpid()].session if os.getpid() in rows else -1)
    found: set[int] = set()
    while True:
        new = {
            pid
            for pid, row in rows.items()
            if pid not in found and (row.session in sessions or row.parent in found) and pid > 1
        }
        if not new:
            return {rows[pid].key for pid in found if not rows[pid].zombie}
        found |= new
        sessions |= {pid for pid in new if rows[pid].session == pid}


def send(number: int, keys: Iterable[ProcessKey]) -> None:
    """Send a signal to each process that is still the same; stopped ones are woken to see it."""
    for key in keys:
        if not alive(key):
            continue
        try:
            os.kill(key.pid, number)
            os.kill(key.pid, signal.SIGCONT)
        except OSError:
            continue


def signal_all(roots: set[ProcessKey], number: int) -> set[ProcessKey]:
    """Send a signal to everything that belongs to some processes.

    Args:
        roots: Session leaders and whatever else is known to belong to them; what is found is added.
        number: The signal.

    Returns:
        The processes that lived.
    """
    roots |= members(roots, read_table())
    living = {key for key in roots if alive(key)}
    send(number, living)
    return living


def remaining(roots: set[ProcessKey], left: set[ProcessKey], number: int) -> set[ProcessKey]:
    """What still lives of `left`; when nothing does, what was started meanwhile gets the signal too.

    A shell whose command was ended goes on with the next one before it is ended itself.

    Args:
        roots: As for `signal_all`.
        left: Processes that were sent the signal.
        number: The signal.
    """
    return {key for key in left if alive(key)} or signal_all(roots, number)


def end_sessions(
    leaders: Iterable[ProcessKey],
    known: Iterable[ProcessKey] = (),
    *,
    stages: Iterable[tuple[int, float]] = STAGES,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """End everything in some sessions: hang up, ask, kill.

    Args:
        leaders: The session leaders.
        known: Descendants seen earlier that may have lost their parents by now.
        stages: Signals to send and the seconds to wait for the effect of each.
        clock: Monotonic seconds.
        wait: Sleeps for some seconds.
    """
    roots = {*leaders, *known}
    for number, patience in stages:
        until = clock() + patience
        left = signal_all(roots, number)
        while left and clock() < until:
            wait(STEP)
            left = remaining(roots, left, number)
        if not left:
            return


class Watch:
    """What the guardian knows: the session leaders it was told of, and what descends from them."""

    def __init__(self) -> None:
        self.leaders: dict[int, ProcessKey] = {}
        self._seen: dict[int, set[ProcessKey]] = {}
        self._partial = b""

    def feed(self, data: bytes) -> None:
        """Take what the parent wrote; lines that make no sense are passed over."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            pid, _, start = line[1:].decode(errors="replace").partition(" ")
            if not pid.isdigit():
                continue
            if line[:1] == b"+":
                self.leaders[int(pid)] = ProcessKey(int(pid), start)
            elif line[:1] == b"-":
                self.leaders.pop(int(pid), None)
                self._seen.pop(int(pid), None)

    def rescan(self) -> None:
        """Remember the descendants that live now."""
        table = read_table()
        for pid, leader in self.leaders.items():
            still = {key for key in self._seen.get(pid, ()) if alive(key)}
            self._seen[pid] = still | members([leader], table)

    def end(self) -> None:
        """End everything that is known."""
        end_sessions(self.leaders.values(), set().union(*self._seen.values()))


def run(descriptor: int) -> None:
    """Listen to the parent until it is gone, then end what it left behind.

    Args:
        descriptor: Read end of the parent's pipe.
    """
    watch = Watch()
    while True:
        ready, _, _ = select.select([descriptor], [], [], RESCAN if watch.leaders else None)
        if not ready:
            watch.rescan()
            continue
        data = os.read(descriptor, 65536)
        if not data:
            break
        watch.feed(data)
    watch.end()


def main() -> None:
    """Be the guardian."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    run(0)


if __name__ == "__main__":
    main()
    sys.exit(0)
