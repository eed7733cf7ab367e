"""A host without a screen for kits and tests: `python -m tests.conformance.host FOLDER [OPTIONS] AGENT...`.

An AGENT is one of `dummy conformance conformance-0.3 quick quick-0.3`, with `:PORT` if it matters; the quick
ones are for tests. Everything of the host lies in FOLDER: the home folder, the project, and `NAME-N.jsonl`,
what the agent was given. One line of JSON tells where the agents answer; it runs until SIGTERM, or until its
standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapse_tui.agents.profiles.finding import ProfileSet
from synapse_tui.agents.session import AgentSession
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from tests.ports import free_ports
from tests.profiles import shipped

ROOT = Path(__file__).parents[2]
QUICK_TURNS = ("--pace", "0.2")
SCRIPTED = {
    "conformance": (),
    "conformance-0.3": ("--protocol", "0.3"),
    "quick": QUICK_TURNS,
    "quick-0.3": ("--protocol", "0.3", *QUICK_TURNS),
}
QUICK = ("--word-delay", "0")


def profiles() -> ProfileSet:
    """The shipped profiles and the scripted agent's, which looks like the dummy and answers by script."""
    found = shipped()
    first = free_ports(201)
    dummy = dataclasses.replace(found.find("dummy"), ports=(first, first + 200))
    scripted = dataclasses.replace(
        dummy,
        name="conformance",
        display="Conformance",
        description="Acts by the scenarios of the A2A test kits",
        args=("-P", "-m", "tests.conformance.agent"),
        env={**dummy.env, "PYTHONPATH": str(ROOT)},
    )
    return dataclasses.replace(
        found, profiles=MappingProxyType({**found.profiles, "dummy": dummy, "conformance": scripted})
    )


def make_host(folder: Path, settings: dict[str, Any], environ: dict[str, str]) -> Host:
    paths = UserPaths(folder / "home")
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    if settings:
        paths.synapse.mkdir(parents=True, exist_ok=True)
        (paths.synapse / "settings.json").write_text(json.dumps(settings))
    return Host(
        project,
        profiles=profiles(),
        settings=load_settings(project, paths=paths, environ=environ, trusted=lambda *_: False),
        paths=paths,
        environ={"PATH": os.environ["PATH"], "HOME": str(paths.home), "LANG": "C.UTF-8", **environ},
    )


async def open_agent(host: Host, folder: Path, number: int, words: str) -> AgentSession:
    name, _, port = words.partition(":")
    args = (*SCRIPTED.get(name, ()), *QUICK, "--log", str(folder / f"{name}-{number}.jsonl"))
    profile = "conformance" if name in SCRIPTED else name
    spec = AgentSpec(profile, port=int(port or 0), args=args)
    return await host.open(spec, columns=100, lines=30)


async def run(folder: Path, agents: list[str], settings: dict[str, Any], environ: dict[str, str]) -> None:
    host = make_host(folder, settings, environ)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    with contextlib.suppress(PermissionError):  # a file, as /dev/null: nobody can be waited for there
        loop.add_reader(sys.stdin, lambda: None if os.read(0, 1024) else ended.set())
    await host.start()
    host.load_servers()
    try:
        sessions = [await open_agent(host, folder, at, words) for at, words in enumerate(agents)]
        async with asyncio.timeout(60):
            while any(each.report.state is not AgentState.READY for each in sessions):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await host._servers.client()
        print(json.dumps([session.endpoint for session in sessions]), flush=True)
        await ended.wait()
    finally:
        loop.remove_reader(sys.stdin)
        await host.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.host", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("agents", nargs="+", metavar="AGENT[:PORT]")
    parser.add_argument("--settings", default="{}", metavar="JSON", help="content of settings.json")
    parser.add_argument("--env", default="{}", metavar="JSON", help="variables of the host's environment")
    given = parser.parse_args()
    asyncio.run(run(given.folder.absolute(), given.agents, json.loads(given.settings), json.loads(given.env)))


if __name__ == "__main__":
    main()
