"""A host with one dummy and no screen, for those who kill it: `python -m tests.bench.crash_host FOLDER PORT`.

Everything of it lies in FOLDER: the home folder, the project, and `dummy.jsonl`, the dummy's own log of what
it was given. A message that still waits from before goes on by itself. Further words: with `forgetful`,
nothing is written down, and the cost of writing is measured against that; with `sender`, there is a second
dummy on the next port, with the log `sender.jsonl`, and what its commands would have in their environment is
written to `sender.json`; with `echo`, the first dummy's answers repeat what it was asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from synapse_tui.agents.profiles.finding import load_profiles
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentSpec
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths, shipped_profiles


async def main(folder: Path, port: int, *options: str) -> None:
    paths = UserPaths(folder / "home")
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    host = Host(
        project,
        profiles=load_profiles(shipped_profiles()),
        settings=load_settings(project, paths=paths, environ={}, trusted=lambda *_: False),
        paths=paths,
        environ={"PATH": os.environ["PATH"], "HOME": str(paths.home), "LANG": "C.UTF-8"},
    )
    if "forgetful" in options:
        keeper: Any = host.history
        keeper.journal = keeper.load = keeper.restore = lambda *_, **__: None
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)

    async def open_dummy(port: int, log: str, reply: str = "taken") -> AgentSession:
        args = ("--log", str(folder / log), "--reply", reply, "--word-delay", "0")
        return await host.open(AgentSpec("dummy", port=port, args=args, restore=True), columns=100, lines=30)

    await host.start()
    host.load_servers()
    opened = [await open_dummy(port, "dummy.jsonl", "answer to {text}" if "echo" in options else "taken")]
    if "sender" in options:
        second = await open_dummy(port + 1, "sender.jsonl")
        known = {name: value for name, value in second.environ.items() if name.startswith("SYNAPSE_")}
        opened.append(second)
        (folder / "sender.json").write_text(json.dumps(known))
    for agent in opened:
        await host.published(agent.agent_id)  # whoever reads `open` addresses them
    print("open", flush=True)
    await ended.wait()
    await host.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
