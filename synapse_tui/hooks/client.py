"""The command that agents call at their tools: asks the host of the agent and prints what it answers.

It is run as `python -S -E client.py EVENT --dialect NAME` and imports nothing that costs time: an agent runs
it at every tool. Outside a hosted agent, or when its host does not answer in time, it says nothing and ends
with 0: the agent goes on as without it.
"""

import _signal  # type: ignore[import-not-found] # typeshed has only `signal`, which is slow to import
import _socket
import os
import sys
import time

TIMEOUT = 2.0  # seconds that all of it may take
MOST = 16 * 1024 * 1024
EVENTS = ("start", "pre", "post", "prompt", "asked", "idle", "end")
USAGE = (
    "usage: synapse hook start|pre|post|prompt|asked|idle|end --dialect claude|codex|gemini|opencode|copilot"
)


def run(event: str, dialect: str) -> int:
    event_data = _read(0)
    agent, place = os.environ.get("SYNAPSE_AGENT_ID", ""), os.environ.get("SYNAPSE_HOOKS", "")
    if not agent or not place:
        return 0
    try:
        answer = ask(place, event, dialect, agent, event_data)
    except OSError:
        return 0
    if answer:
        os.write(1, answer)
    return 0


def ask(place: str, event: str, dialect: str, agent: str, event_data: bytes) -> bytes:
    """Ask a host in one exchange: a line that ends in the length of the words, the words; then the answer."""
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


def _read(descriptor: int) -> bytes:
    parts, size = [], 0
    while size < MOST and (part := os.read(descriptor, 65536)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def main(words: "list[str]") -> int:
    """Read the words of the command line and run; the process ends in time whatever happens."""
    if len(words) != 3 or words[0] not in EVENTS or words[1] != "--dialect":
        os.write(2, f"{USAGE}\n".encode())
        return 2
    _signal.signal(_signal.SIGALRM, _give_up)
    _signal.setitimer(_signal.ITIMER_REAL, TIMEOUT)
    return run(words[0], words[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
