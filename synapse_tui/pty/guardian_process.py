"""The guardian's program and the process table it works on.

Run as `python -I -S -E guardian_process.py`: a file that imports a few modules of the standard library only,
so that it starts at once and stays small. The parent writes lines to its standard input: `+PID START` for
every session leader that lives, `-PID` for one that has ended. The end of the input means that the parent is
gone: everything that belongs to the sessions still named is then ended.

To an agent belongs what is in its session, what descends from that, and what is younger and carries its id in
the environment (SYNAPSE_AGENT_ID): a daemon has left its session and its parents. What carries another id,
or an empty one, is left alone, with all that descends from it: such as the host of another session.

A process is named by its pid and its start time, so that a pid used again for something else is never
touched.
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


def parse_start(text: str) -> float:
    """A start time as a number by which those of one system can be compared; 0 when it is none."""
    try:
        words = text if text.isdigit() else time.strftime("%Y%m%d%H%M%S", time.strptime(text))
    except ValueError:
        return 0.0
    return float(words)


def agent_in(pid: int) -> str | None:
    """The agent that a process carries in its environment; None for none, and where that cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - pathlib doubles the start time
            words = file.read().split(b"\0")
    except FileNotFoundError:
        return None if os.path.exists("/proc/self/stat") else _agent_by_psutil(pid)  # noqa: PTH110
    except OSError:
        return None
    for word in words:
        if word.startswith(b"SYNAPSE_AGENT_ID="):
            return word.partition(b"=")[2].decode(errors="replace")
    return None


def _agent_by_psutil(pid: int) -> str | None:
    """The same where there is no /proc; macOS does not tell it of programs that it protects."""
    try:
        import psutil  # noqa: PLC0415 - the guardian has none

        return (
            str(value)
            if (value := psutil.Process(pid).environ().get("SYNAPSE_AGENT_ID")) is not None
            else None
        )
    except Exception:
        return None


def agent_of(leader: ProcessKey) -> str:
    """The agent that a session leader is; empty for a mere program of the agent in which its parent runs."""
    row = read_row(leader.pid)
    if row is None or row.key != leader:
        return ""
    found = agent_in(leader.pid)
    return found if found and found != agent_in(row.parent) else ""


def read_agents(table: Iterable[ProcessRow], since: float) -> dict[int, str]:
    """The agents that processes carry, by their pids.

    Args:
        table: The processes.
        since: Those that are older are not looked into.
    """
    every = ((row.key.pid, agent_in(row.key.pid)) for row in table if parse_start(row.key.start) >= since)
    return {pid: name for pid, name in every if name is not None}


class Family:
    """Session leaders with all that belongs to them.

    Args:
        leaders: The session leaders; one whose pid belongs to another process by now is left out.
        agents: The agents that they are, where they are any, and since when.
        known: Descendants seen earlier that may have lost their parents by now.
    """

    def __init__(
        self,
        leaders: Iterable[ProcessKey],
        agents: Mapping[str, str] | None = None,
        known: Iterable[ProcessKey] = (),
    ) -> None:
        self._agents = {name: parse_start(start) for name, start in (agents or {}).items()}
        self._roots = {*leaders, *known}

    def members(
        self, table: Collection[ProcessRow], agents: Mapping[int, str] | None = None
    ) -> set[ProcessKey]:
        """Members of the sessions, their descendants, the sessions of these, and the agents' daemons.

        Args:
            table: The process table.
            agents: The agents that the processes carry, as `read_agents` gives them; None to look.

        Returns:
            Living processes; zombies are left out.
        """
        ours, strangers = self._named(table, agents)
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

    def _named(
        self, table: Collection[ProcessRow], agents: Mapping[int, str] | None
    ) -> tuple[set[int], set[int]]:
        """The processes that carry one of the agents, and those that carry another one or an empty name."""
        ours: set[int] = set()
        strangers: set[int] = set()
        if not self._agents:
            return ours, strangers
        since = min(self._agents.values())
        named = read_agents(table, since) if agents is None else agents
        for row in table:
            name, started = named.get(row.key.pid), parse_start(row.key.start)
            if name is None or started < since:
                continue
            (ours if started >= self._agents.get(name, float("inf")) else strangers).add(row.key.pid)
        return ours, strangers

    def signal(self, number: int) -> set[ProcessKey]:
        """Send a signal to all that lives; gives what that was."""
        living = self.members(read_table())
        self._roots |= living
        send(number, living)
        return living

    def remaining(self, left: set[ProcessKey], number: int) -> set[ProcessKey]:
        """What still lives of `left`; when nothing does, what was started meanwhile gets the signal too.

        A shell whose command was ended goes on with the next one before it is ended itself.

        Args:
            left: Processes that were sent the signal.
            number: The signal.
        """
        return {key for key in left if alive(key)} or self.signal(number)


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


def end_family(
    family: Family,
    *,
    stages: Iterable[tuple[int, float]] = STAGES,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """End everything in some sessions: hang up, ask, kill.

    Args:
        family: What is to end.
        stages: Signals to send and the seconds to wait for the effect of each.
        clock: Monotonic seconds.
        wait: Sleeps for some seconds.
    """
    for number, patience in stages:
        until = clock() + patience
        left = family.signal(number)
        while left and clock() < until:
            wait(STEP)
            left = family.remaining(left, number)
        if not left:
            return


class Watch:
    """What the guardian knows: the session leaders it was told of, and what belongs to them."""

    def __init__(self) -> None:
        self.leaders: dict[int, ProcessKey] = {}
        self._agents: dict[int, str] = {}
        self._seen: dict[int, set[ProcessKey]] = {}
        self._partial = b""

    def feed(self, data: bytes) -> None:
        """Take what the parent wrote; lines that make no sense are passed over."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            word, _, start = line[1:].decode(errors="replace").partition(" ")
            if not word.isdigit():
                continue
            pid = int(word)
            if line[:1] == b"+":
                self.leaders[pid] = ProcessKey(pid, start)
                self._agents[pid] = agent_of(self.leaders[pid])
            elif line[:1] == b"-":
                for known in (self.leaders, self._agents, self._seen):
                    known.pop(pid, None)

    def rescan(self) -> None:
        """Remember what lives now: a process whose environment tells nothing may lose its parents later."""
        table = read_table()
        agents = read_agents(table, min(parse_start(leader.start) for leader in self.leaders.values()))
        for pid in self.leaders:
            self._seen[pid] = self._family([pid]).members(table, agents)

    def end(self) -> None:
        """End everything that is known."""
        end_family(self._family(self.leaders))

    def _family(self, pids: Iterable[int]) -> Family:
        leaders = [self.leaders[pid] for pid in pids]
        agents = {self._agents[leader.pid]: leader.start for leader in leaders if self._agents[leader.pid]}
        known = set().union(*(self._seen.get(leader.pid, set()) for leader in leaders))
        return Family(leaders, agents, known)


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
