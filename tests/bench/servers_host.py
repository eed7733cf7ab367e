"""A host that opens and closes dummies on command: `python -m tests.bench.servers_host FOLDER`.

Each line of standard input is a command, each is answered by one line of JSON: `open N` tells the endpoints
as soon as the ports are bound, `ready` when all agents are, `close N` closes the agent of that place.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.host.host import Host
from tests.conformance.host import make_host


async def opened(host: Host, folder: Path, count: int) -> list[str]:
    made = []
    for number in range(len(host.agents), len(host.agents) + count):
        args = ("--word-delay", "0", "--log", str(folder / f"dummy-{number}.jsonl"))
        made.append(await host.open(AgentSpec("dummy", args=args), columns=100, lines=30))
    return [session.endpoint for session in made]


async def ready(sessions: list[AgentSession]) -> int:
    while any(each.report.state is not AgentState.READY for each in sessions):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return len(sessions)


async def main(folder: Path) -> None:
    host = make_host(folder, {}, {})
    await host.start()
    host.load_servers()
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            word, _, number = line.strip().partition(" ")
            answer: object = None
            if word == "open":
                answer = await opened(host, folder, int(number))
            elif word == "ready":
                answer = await ready(list(host.agents.values()))
            elif word == "close":
                await host.close(list(host.agents)[int(number)])
            print(json.dumps(answer), flush=True)
    finally:
        await host.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
