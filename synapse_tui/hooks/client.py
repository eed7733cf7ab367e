"""The command that agents' hooks run: it asks the agent's host and prints the answer.

It runs as `python -S -E client.py EVENT --dialect NAME` before and after every tool call, so it imports
nothing slow. Outside a hosted agent, or if the host does not answer in time, it prints nothing and exits with
0, so the agent continues as if there were no hook.
"""

import _signal  # type: ignore[import-not-found] # typeshed has only `signal`, which is slow to import
import _socket
import os
import sys
import time

TIMEOUT = 2.0  # total seconds
MOST = 16 * 1024 * 1024
EVENTS = ("start", "pre", "post", "prompt", "asked", "idle", "end")
USAGE = (
    "usage: synapse hook start|pre|post|prompt|asked|idle|end --dialect claude|codex|gemini|opencode|copilot"
)


def run(event: str, dialect: str) -> int:
    parts, size = [], 0
    while size < MOST and (part := os.read(0, 65536)):
        parts.append(part)
        size += len(part)
    event_data = b"".join(parts)
    agent, place = os.environ.get("SYNAPSE_AGENT_ID", ""), os.environ.get("SYNAPSE_HOOKS", "")
    if not agent or not place:
        return 0
    for each in (place, *_moved(place)):
        try:
            answer = ask(each, event, dialect, agent, event_data)
        except OSError:
            continue
        if answer:
            os.write(1, answer)
        break
    return 0


def _moved(place: str) -> "list[str]":
    """Return where the host listens if its folder was deleted and cannot be made again.

    That folder is in /tmp, where anyone can make one: it must be private.
    """
    folder = f"/tmp/synapse-tui-{os.getuid()}"  # noqa: S108
    try:
        status = os.lstat(folder)
    except OSError:
        return []
    if status.st_uid != os.getuid() or status.st_mode & 0o170077 != 0o040000:  # S_IFDIR
        return []
    return [f"{folder}/{os.path.basename(place)}"]  # noqa: PTH119 - pathlib is slow to import


def ask(place: str, event: str, dialect: str, agent: str, event_data: bytes) -> bytes:
    """Query a host: send a header line ending in the payload's length and the payload, read the answer."""
    deadline = time.monotonic() + TIMEOUT
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(TIMEOUT)
        connection.connect(place)
        connection.settimeout(_left(deadline))
        connection.sendall(f"{event} {dialect} {agent} {len(event_data)}\n".encode() + event_data)
        answer = b""
        connection.settimeout(_left(deadline))
        while part := connection.recv(65536):
            answer += part
            connection.settimeout(_left(deadline))
    finally:
        connection.close()
    return answer


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


def _give_up(_number: int, _frame: object) -> None:
    os._exit(0)


def main(words: "list[str]") -> int:
    """Run with the given arguments; the process always ends in time."""
    if len(words) != 3 or words[0] not in EVENTS or words[1] != "--dialect":
        os.write(2, f"{USAGE}\n".encode())
        return 2
    _signal.signal(_signal.SIGALRM, _give_up)
    _signal.setitimer(_signal.ITIMER_REAL, TIMEOUT)
    return run(words[0], words[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
