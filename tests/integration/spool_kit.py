"""A host's spools with agents on real servers, and clients that may not connect."""

from __future__ import annotations

import dataclasses
import errno
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from synapse_tui.a2a import calls
from synapse_tui.a2a.async_client import AsyncClient
from synapse_tui.a2a.client import Client, PlainConnection
from synapse_tui.core.model import Sender
from synapse_tui.host.host import Tokens
from synapse_tui.host.spool import Spools
from synapse_tui.sessions.spool.client import SpoolClient
from synapse_tui.sessions.spool.files import MAX_REQUEST, AnswerSeal, SpoolAnswer, SpoolRequest, write_whole
from tests.fake_agent import FakeAgent
from tests.integration.server_kit import running
from tests.integration.shell_kit import Shell
from tests.profiles import shipped
from tests.waiting import until

OFFLINE = """
import errno, socket, sys
def forbidden(*_):
    raise PermissionError(errno.EPERM, "Operation not permitted")
socket.socket.connect = socket.socket.connect_ex = forbidden
from synapse_tui.cli import main
main()
"""
"""The command in a process that may not connect to anything, as in the sandbox of Codex."""
SYNAPSE_OFFLINE = (sys.executable, "-c", OFFLINE)


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command line's client, and nobody else in this process, be forbidden to connect."""

    def connect(self: PlainConnection) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(PlainConnection, "connect", connect)


class SpoolRig:
    """One host as far as spools go: a keeper, tokens, agents that are served and registered."""

    def __init__(self, shell: Shell, stack: AsyncExitStack) -> None:
        self.shell = shell
        self.tokens = Tokens()
        self.agents: list[FakeAgent] = []
        self.client = AsyncClient(token_of=self.tokens)
        self.environs: dict[str, dict[str, str]] = {}
        self.profile = shipped().find("codex")
        self._stack = stack
        self.keeper = self.new_keeper()

    def new_keeper(self) -> Spools:
        async def client() -> AsyncClient:
            return self.client

        return Spools(
            self.shell.folder,
            home=self.shell.home,
            registry=self.shell.registry,
            tokens=self.tokens,
            client=client,
            endpoints=lambda: [agent.endpoint for agent in self.agents],
        )

    async def open(self, kind: str) -> FakeAgent:
        agent, _ = await self._stack.enter_async_context(running(kind, token_of=self.tokens))
        self.agents.append(agent)
        self.shell.register(agent)
        spool = self.keeper.make(agent.agent_id, self.profile, self.shell.folder, self.shell.environ)
        assert spool is not None
        environ = {
            "SYNAPSE_AGENT_ID": agent.agent_id,
            "SYNAPSE_TOKEN": self.tokens.issue(agent.agent_id),
            "SYNAPSE_ENDPOINT": agent.endpoint,
            "SYNAPSE_SPOOL": str(spool),
        }
        self.environs[agent.agent_id] = environ
        self.keeper.add(agent.agent_id, environ)
        return agent

    def spool(self, agent: FakeAgent) -> Path:
        return Path(self.environs[agent.agent_id]["SYNAPSE_SPOOL"])

    def left(self, agent: FakeAgent) -> set[str]:
        return {path.name for path in self.spool(agent).iterdir()} - {"host"}

    def light(self, agent: FakeAgent) -> Client:
        environ = self.environs[agent.agent_id]
        return Client(token_of={agent.agent_id: environ["SYNAPSE_TOKEN"]}.get, environ=environ)

    def spool_client(self, agent: FakeAgent) -> SpoolClient:
        return SpoolClient(self.spool(agent), self.tokens.issue(agent.agent_id))

    def request(self, sender: FakeAgent, target: str, token: str = "") -> SpoolRequest:
        call = calls.send("hello", sender=Sender(sender.agent_id, sender.agent_type), priority=3)
        signer = token or self.tokens.issue(sender.agent_id)
        headers = call.headers(target, sender.agent_id, lambda _: signer)
        return SpoolRequest(call.method, target, call.target, call.body, headers, 5.0, 2.0**33)

    async def put(self, agent: FakeAgent, data: bytes, name: str = "a" * 32) -> SpoolAnswer:
        """Put the bytes of a request into an agent's spool, and wait for what comes of it."""
        write_whole(self.spool(agent), f"{name}.request", data)
        # What cannot be read as a whole has no content.
        read = data if len(data) <= MAX_REQUEST else b""
        seal = AnswerSeal.of(self.tokens.issue(agent.agent_id), name, read)
        path = self.spool(agent) / seal.file
        await until(path.exists, path)
        answer = SpoolAnswer.decode(seal.open(path.read_bytes()))
        path.unlink()
        (self.spool(agent) / f"{name}.answer").unlink(missing_ok=True)
        return answer


@asynccontextmanager
async def spool_rig(folder: Path, shell: Shell | None = None) -> AsyncIterator[SpoolRig]:
    async with AsyncExitStack() as stack:
        rig = SpoolRig(shell or Shell.scratch(folder), stack)
        rig.keeper.start()
        try:
            yield rig
        finally:
            await rig.keeper.stop()
            await rig.client.close()
            await rig.shell.end()


def changed(request: SpoolRequest, **changes: object) -> bytes:
    return dataclasses.replace(request, **changes).encode()  # type: ignore[arg-type]
