"""A person, or an agent, at a prompt: the commands on a home folder of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from synapse_tui.sessions.registry import Registry, RegistryEntry
from tests.command_line import Result, call
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running

SYNAPSE = (sys.executable, "-c", "from synapse_tui.cli import main; main()")
TOOL = (sys.executable, "-m", "synapse_tui.tools.a2a")


class Shell:
    """A person (or an agent) at a prompt.

    Commands run in a thread of this process, which takes a tenth of the time; in processes where `apart`,
    where a test names the program, and where it holds on to a command that runs.
    """

    def __init__(self, home: Path, folder: Path, *, apart: bool = False) -> None:
        self.home, self.folder, self.apart = home, folder, apart
        self.environ = {key: value for key, value in os.environ.items() if not key.startswith("SYNAPSE_")}
        self.environ |= {"HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2]), "NO_COLOR": "1"}
        self.environ["SYNAPSE_AGENT_ID"] = ""  # whoever runs the tests
        self.registry = Registry(home / ".a2a" / "registry")
        self.started: list[asyncio.subprocess.Process] = []

    @classmethod
    def scratch(cls, folder: Path, *, apart: bool = False) -> Shell:
        home, project = folder / "home", folder / "project"
        home.mkdir()
        (project / ".synapse").mkdir(parents=True)
        return cls(home, project.resolve(), apart=apart)

    async def start(
        self, *words: str | bytes, program: tuple[str, ...] = SYNAPSE
    ) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *program,
            *words,
            cwd=self.folder,
            env=self.environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self.started.append(process)
        return process

    async def end(self) -> None:
        for process in self.started:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def run(
        self, *words: str | bytes, stdin: bytes = b"", program: tuple[str, ...] = SYNAPSE
    ) -> Result:
        if program is SYNAPSE and not self.apart:
            return await asyncio.to_thread(self.call, *words, stdin=stdin)
        process = await self.start(*words, program=program)
        out, err = await process.communicate(stdin)
        assert b"Traceback" not in err, err.decode()
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())

    def call(self, *words: str | bytes, stdin: bytes = b"") -> Result:
        command = [os.fsdecode(word) for word in words]
        return call("synapse", *command, environ=self.environ, folder=self.folder, stdin=stdin)

    def enter(self, agent: FakeAgent, token: str = "secret") -> None:
        self.environ |= {
            "SYNAPSE_AGENT_ID": agent.agent_id,
            "SYNAPSE_TOKEN": token,
            "SYNAPSE_ENDPOINT": agent.endpoint,
        }

    def register(self, agent: FakeAgent, **fields: object) -> RegistryEntry:
        record = RegistryEntry(
            agent.agent_id,
            agent.agent_type,
            agent.port,
            agent.endpoint,
            os.getpid(),
            name=agent.name,
            status=agent.state.value,
            working_dir=str(self.folder),
            project=str(self.folder),
        )
        return self.registry.register(replace(record, **fields))  # type: ignore[arg-type]


async def opened(
    stack: AsyncExitStack, shell: Shell, kind: str = "gemini", name: str = "", **fields: object
) -> FakeAgent:
    agent, _ = await stack.enter_async_context(
        running(kind, token_of=lambda who: "secret" if "codex" in who else None)
    )
    agent.name = name
    agent.answer = f"answer of {kind}"
    shell.register(agent, **fields)
    return agent
