"""The guardian's program, and the process table it works on.

Run as `python -I -S -E guardian_process.py`: it imports only a few modules of the standard library, so that
it starts quickly and stays small. The parent writes lines to its standard input: `=PID MARK` and `+PID START`
for every live session leader, `-PID` for one that has exited. At the end of the input the parent is gone, and
the guardian ends everything that belongs to the remaining sessions. The mark is sent because the leader may
have exited, hung up by its terminal, before the guardian has started and could read it.

A process belongs to an agent if it is in the agent's session, is a descendant of one that is, or is younger
than the agent and has its id in the environment (SYNAPSE_AGENT_ID), like a daemon that left its session and
its parents. A process with another id or an empty one is left alone with its descendants, such as the host of
another session.

Processes are identified by pid and start time, so that a reused pid is never signaled.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

STAGES = ((signal.SIGHUP, 1.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 1.0))
"""Signals, and the seconds to wait for their effect."""

STEP = 0.02  # Seconds between two checks whether the processes are gone

IGNORED = frozenset({signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP})
"""Ignored signals; the parent starts the guardian with these blocked."""

RESCAN = 5.0  # Seconds between two scans for descendants that started their own session


class ProcessKey(NamedTuple):
    """Identifies a process. The start time (clock ticks, or the text of `ps`) guards against reused pids."""

    pid: int
    start: str


class ProcessRow(NamedTuple):
    key: ProcessKey
    parent: int
    group: int
    session: int
    zombie: bool


def read_row(pid: int) -> ProcessRow | None:
    """Return a process by pid (proc(5), /proc/pid/stat)."""
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
    # The name is in parentheses and may contain blanks and parentheses.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    key = ProcessKey(pid, fields[19].decode())
    zombie = (
        fields[0] in b"ZX" and int(fields[17]) <= 1
    )  # until its threads end, it holds its ports and files
    return ProcessRow(key, int(fields[1]), int(fields[2]), int(fields[3]), zombie)


def read_table() -> list[ProcessRow]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        names = []
    pids = [int(name) for name in names if name.isdigit()]
    if not pids:
        return list(_ps_rows())
    return [row for row in map(read_row, pids) if row is not None]


def _ps_rows(pid: int = 0) -> Iterator[ProcessRow]:
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
    row = read_row(pid)
    return row.key.start if row else ""


def alive(key: ProcessKey) -> bool:
    """Whether exactly this process still runs; zombies do not."""
    row = read_row(key.pid)
    return row is not None and row.key == key and not row.zombie


def parse_start(text: str) -> float:
    """Return a start time as a number comparable within one system; 0 if it cannot be parsed."""
    try:
        words = text if text.isdigit() else time.strftime("%Y%m%d%H%M%S", time.strptime(text))
    except ValueError:
        return 0.0
    return float(words)


class ProcessMark(NamedTuple):
    """The agent that started a process, from the process's environment."""

    agent_id: str  # SYNAPSE_AGENT_ID; empty for no agent
    # SYNAPSE_TOKEN; empty if removed, as some agents do for their tools
    token: str = ""
    spool: str = ""  # SYNAPSE_SPOOL

    def matches(self, other: ProcessMark) -> bool:
        """Whether both are the same agent: agents of two homes may have equal ids."""
        pairs = ((self.token, other.token), (self.spool, other.spool))
        return self.agent_id == other.agent_id and all(a == b or not (a and b) for a, b in pairs)

    def encode(self) -> bytes:
        """Return it as part of a line for the guardian."""
        return "\t".join(word.encode("unicode_escape").decode() for word in self).encode()

    @classmethod
    def decode(cls, line: str) -> ProcessMark | None:
        words = [word.encode().decode("unicode_escape") for word in line.split("\t")]
        return cls(*words) if words[0] and len(words) == len(cls._fields) else None


_NAMES = ("SYNAPSE_AGENT_ID", "SYNAPSE_TOKEN", "SYNAPSE_SPOOL")


def mark_of(pid: int) -> ProcessMark | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - pathlib doubles the start time
            words = file.read().split(b"\0")
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):  # noqa: PTH110 - the same
            return None
        environ = _environ_by_psutil(pid)
    except OSError:
        return None
    else:
        pairs = (word.decode(errors="replace").partition("=") for word in words if word[:8] == b"SYNAPSE_")
        environ = {name: value for name, _, value in pairs}
    return ProcessMark(*(environ.get(name, "") for name in _NAMES)) if _NAMES[0] in environ else None


def _environ_by_psutil(pid: int) -> dict[str, str]:
    """Fallback without /proc; macOS hides the environment of protected programs."""
    try:
        import psutil  # noqa: PLC0415 - not available in the guardian

        return dict(psutil.Process(pid).environ())
    except Exception:  # includes psutil's own errors
        return {}


def agent_in(environ: Mapping[str, str]) -> ProcessMark | None:
    """Return the agent that a child of this process with this environment leads, as `agent_of`."""
    mark = ProcessMark(*(os.fsencode(environ.get(name, "")).decode(errors="replace") for name in _NAMES))
    outer = mark_of(os.getpid())
    return None if not mark.agent_id or (outer is not None and mark.matches(outer)) else mark


def agent_of(leader: ProcessKey) -> ProcessMark | None:
    """Return the agent led by this process; None for a program inside the agent of its parent."""
    row = read_row(leader.pid)
    mark = mark_of(leader.pid) if row is not None and row.key == leader else None
    if row is None or mark is None or not mark.agent_id:
        return None
    outer = mark_of(row.parent)
    return None if outer is not None and mark.matches(outer) else mark


def read_marks(table: Iterable[ProcessRow], since: float) -> dict[int, ProcessMark]:
    every = ((row.key.pid, mark_of(row.key.pid)) for row in table if parse_start(row.key.start) >= since)
    return {pid: mark for pid, mark in every if mark is not None}


class Family:
    def __init__(
        self,
        leaders: Iterable[ProcessKey],
        agents: Iterable[tuple[ProcessMark, ProcessKey]] = (),
        known: Iterable[ProcessKey] = (),
    ) -> None:
        self._agents = [(mark, parse_start(key.start)) for mark, key in agents]
        self._roots = {*leaders, *known}

    def members(
        self, table: Collection[ProcessRow], marks: Mapping[int, ProcessMark] | None = None
    ) -> set[ProcessKey]:
        ours, strangers = self._marked(table, marks)
        rows = {row.key.pid: row for row in table if row.key.pid > 1 and row.key.pid not in strangers}
        there = {row.key.pid: row.key for row in table}
        sessions = {key.pid for key in self._roots if there.get(key.pid, key) == key} - strangers
        own = read_row(os.getpid())
        sessions.discard(own.session if own else -1)
        found: set[int] = set()
        new = ours | {key.pid for key in self._roots if key.pid in rows and rows[key.pid].key == key}
        while new:
            found |= new
            sessions |= {pid for pid in new if rows[pid].session == pid}
            new = {
                pid
                for pid, row in rows.items()
                if pid not in found and (row.session in sessions or row.parent in found)
            }
        return {rows[pid].key for pid in found if not rows[pid].zombie}

    def _marked(
        self, table: Collection[ProcessRow], marks: Mapping[int, ProcessMark] | None
    ) -> tuple[set[int], set[int]]:
        ours: set[int] = set()
        strangers: set[int] = set()
        if not self._agents:
            return ours, strangers
        since = min(start for _, start in self._agents)
        found = read_marks(table, since) if marks is None else marks
        for row in table:
            mark, started = found.get(row.key.pid), parse_start(row.key.start)
            if mark is None or started < since:
                continue
            own = any(mark.matches(agent) and started >= start for agent, start in self._agents)
            (ours if own else strangers).add(row.key.pid)
        return ours, strangers

    def signal(self, number: int) -> set[ProcessKey]:
        living = self.members(read_table())
        self._roots |= living
        send(number, living)
        return living

    def remaining(self, left: set[ProcessKey], number: int) -> set[ProcessKey]:
        """Return the live part of `left`; if none is left, signal processes started in the meantime.

        A shell whose command was ended starts the next command before it is ended itself.
        """
        return {key for key in left if alive(key)} or self.signal(number)


def send(number: int, keys: Iterable[ProcessKey]) -> None:
    """Send a signal to each process if it is still the same, waking stopped ones."""
    for key in keys:
        if not alive(key):
            continue
        try:
            os.kill(key.pid, number)
            os.kill(key.pid, signal.SIGCONT)
        except OSError:
            continue


def end_family(
    family: Family,
    *,
    stages: Iterable[tuple[int, float]] = STAGES,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    for number, seconds in stages:
        until = clock() + seconds
        left = family.signal(number)
        while left and clock() < until:
            wait(STEP)
            left = family.remaining(left, number)
        if not left:
            return


class FamilyWatch:
    def __init__(self) -> None:
        self.leaders: dict[int, ProcessKey] = {}
        self._agents: dict[int, ProcessMark | None] = {}
        self._seen: dict[int, set[ProcessKey]] = {}
        self._partial = b""

    def feed(self, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            word, _, rest = line[1:].decode(errors="replace").partition(" ")
            if not word.isdigit():
                continue
            pid = int(word)
            if line[:1] == b"=":
                self._agents[pid] = ProcessMark.decode(rest)
            elif line[:1] == b"+":
                self.leaders[pid] = ProcessKey(pid, rest)
                if pid not in self._agents:
                    self._agents[pid] = agent_of(self.leaders[pid])
            elif line[:1] == b"-":
                for known in (self.leaders, self._agents, self._seen):
                    known.pop(pid, None)

    def rescan(self) -> None:
        """Record the live members, as an unmarked process may lose its parents later."""
        table = read_table()
        marks = read_marks(table, min(parse_start(leader.start) for leader in self.leaders.values()))
        for pid in self.leaders:
            self._seen[pid] = self._family([pid]).members(table, marks)

    def end(self) -> None:
        end_family(self._family(self.leaders))

    def _family(self, pids: Iterable[int]) -> Family:
        leaders = [self.leaders[pid] for pid in pids]
        marked = ((self._agents[leader.pid], leader) for leader in leaders)
        agents = [(mark, leader) for mark, leader in marked if mark is not None]
        known = set().union(*(self._seen.get(leader.pid, set()) for leader in leaders))
        return Family(leaders, agents, known)


def run(descriptor: int) -> None:
    watch = FamilyWatch()
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
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    run(0)


if __name__ == "__main__":
    main()
    sys.exit(0)
