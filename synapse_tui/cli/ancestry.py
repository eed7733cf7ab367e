"""Inside which agent a process runs, where its own environment does not tell: its ancestors' does.

Agents clean the environments of their tools, some of everything that looks like a secret.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

IDENTITY = ("SYNAPSE_AGENT_ID", "SYNAPSE_TOKEN", "SYNAPSE_ENDPOINT")
"""What a process of an agent knows of it."""
NAMES = (*IDENTITY, "SYNAPSE_SPOOL")
FARTHEST = 64
"""How many ancestors are asked."""

Environ = Mapping[str, str]
Ancestors = Callable[[], Iterator[Environ]]


def with_identity(environ: Environ, ancestors: Ancestors | None = None) -> dict[str, str]:
    """An environment with what it lacks of the agent's identity, from the nearest ancestor that has it.

    Args:
        environ: The process's own; what it says is believed before its ancestors. An empty agent id says that
            it runs in none.
        ancestors: Gives the environments of its ancestors, the nearest first; None for those of this process.
    """
    found = dict(environ)
    if found.get("SYNAPSE_AGENT_ID") == "":
        return found  # said to be nobody's
    if all(found.get(name) for name in IDENTITY):
        return found
    own = found.get("SYNAPSE_AGENT_ID", "")
    for ancestor in (ancestors or _ancestors)():
        agent_id = ancestor.get("SYNAPSE_AGENT_ID", "")
        if agent_id and ancestor.get("SYNAPSE_TOKEN") and own in ("", agent_id):
            return {name: ancestor[name] for name in NAMES if ancestor.get(name)} | {
                name: value for name, value in found.items() if value or name not in NAMES
            }
    return found


def _ancestors() -> Iterator[Environ]:
    """Environments of the ancestors of this process, as far as the system lets it see them."""
    return proc_ancestors(os.getpid()) if sys.platform == "linux" else _psutil_ancestors()


def proc_ancestors(pid: int, proc: Path = Path("/proc")) -> Iterator[Environ]:
    """Environments of the ancestors of a process, from proc(5).

    Args:
        pid: The process.
        proc: Where proc is mounted.
    """
    for _ in range(FARTHEST):
        try:
            # The second field is the name in brackets, in which anything may stand.
            pid = int((proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        if pid <= 0:
            return
        try:
            data = (proc / str(pid) / "environ").read_bytes()
        except OSError:
            continue  # of another user, such as sudo
        yield dict(_pairs(data))


def _pairs(data: bytes) -> Iterator[tuple[str, str]]:
    for entry in data.split(b"\0"):
        if entry.startswith(b"SYNAPSE_"):
            name, _, value = entry.decode("utf-8", "replace").partition("=")
            yield name, value


def _psutil_ancestors() -> Iterator[Environ]:
    """The same on other systems; macOS does not tell it of programs that it protects."""
    import psutil

    try:
        parents = psutil.Process().parents()[:FARTHEST]
    except psutil.Error:
        return
    for parent in parents:
        try:
            yield parent.environ()
        except (psutil.Error, OSError):
            continue
