"""A host with one dummy and no screen, for those who kill it: `python -m tests.bench.crash_host FOLDER PORT`.

Everything of it lies in FOLDER: the home folder, the project, and `dummy.jsonl`, the dummy's own log of what
it was given. A message that still waits from before goes on by itself. Further words: with `forgetful`,
nothing is written down, and the cost of writing is measured against that; with `sender`, there is a second
dummy, and what its commands would have in their environment is written to `sender.json`.
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
from synapse_tui.host import Host
from synapse_tui.model import AgentSpec
from synapse_tui.paths import UserPaths, shipped_profiles
from synapse_tui.settings import load_settings


async def main(folder: Path, port: int, *, forgetful: bool = False, sender: bool = False) -> None:
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
    if forgetful:
        keeper: Any = host.history
        keeper.journal = keeper.load = keeper.restore = lambda *_, **__: None
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await host.start()
    host.load_servers()
    args = ("--log", str(folder / "dummy.jsonl"), "--reply", "taken", "--word-delay", "0")
    await host.open(AgentSpec("dummy", port=port, args=args, restore=True), columns=100, lines=30)
    if sender:
        second = await host.open(AgentSpec("dummy"), columns=100, lines=30)
        known = {name: value for name, value in second.environ.items() if name.startswith("SYNAPSE_")}
        (folder / "sender.json").write_text(json.dumps(known))
    print("open", flush=True)
    await ended.wait()
    await host.stop()


if __name__ == "__main__":
    asyncio.run(
        main(
            Path(sys.argv[1]),
            int(sys.argv[2]),
            forgetful="forgetful" in sys.argv,
            sender="sender" in sys.argv,
        )
    )
