"""File locks between two real agents of one project, offline, against a fake model."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from synapse_tui.agents.session import AgentSession
from synapse_tui.core.locks import Lock, ModificationQuery
from synapse_tui.core.model import AgentState
from synapse_tui.hooks import Dialect
from synapse_tui.hooks.file_safety import Enforcement
from synapse_tui.hooks.install import HookInstaller, place_of
from synapse_tui.host.host import Host
from synapse_tui.system.paths import UserPaths
from synapse_tui.terminal.input import KeyEvent, encode_key
from tests.lab.host_kit import asking, need_agents, open_host
from tests.lab.lab_kit import HOOKED, ModelLog

SLOW = 150.0
SOON = 2.0
"""Seconds in which locks must be gone."""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),
]


class Shop:
    """A host whose agents lock files, and a person at their keyboards."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.model = ModelLog()

    async def open(self, kind: str) -> AgentSession:
        session = await self.host.open(asking(self.host, kind), columns=120, lines=40)
        await self.until(lambda: session.report.state is AgentState.READY, f"{kind} to be ready", session)
        return session

    async def until(self, condition: Callable[[], object], what: str, session: AgentSession) -> None:
        try:
            async with asyncio.timeout(SLOW):
                while not condition():
                    assert session.exit is None or "its end" in what, "\n".join(session.terminal.display)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            screen = "\n".join([str(session.report), *session.terminal.display])
            raise AssertionError(f"waited {SLOW:g} s for {what}\n{screen}") from None

    async def prompt(self, session: AgentSession, text: str) -> None:
        await self.host.send(session.agent_id, text)

    @staticmethod
    def _drawn(session: AgentSession) -> bool:
        # Hooks and signals are earlier than the dialog, which takes no key before it was there for a while.
        if session.report.state is not AgentState.WAITING or not session.reading().dialog:
            return False
        return not session.keyboard.guard.answers_in(session.console.now())

    async def asks(self, session: AgentSession) -> None:
        await self.until(lambda: self._drawn(session), "a dialog", session)

    async def carry_out(self, session: AgentSession, text: str) -> None:
        """Have the agent told something, let it do so where it asks, and wait for the end of its turn."""
        [receipt] = await self.host.send(session.agent_id, text)

        def over() -> bool:
            return session.tasks.get(receipt.task_id).state.final

        await self.until(lambda: over() or self._drawn(session), "a dialog or the end of the turn", session)
        if not over():
            self.press(session, "enter")
        await self.until(over, "the end of the turn", session)
        await self.rests(session)

    async def rests(self, session: AgentSession) -> None:
        await self.until(lambda: session.report.state is AgentState.READY, "it to rest", session)

    def press(self, session: AgentSession, key: str) -> None:
        session.user_input(encode_key(KeyEvent(key), session.terminal.modes))

    async def locks(self) -> list[Lock]:
        return list(await self.host.safety.locks())

    async def holds(self, session: AgentSession, file: str) -> None:
        async with asyncio.timeout(SLOW):
            wanted = [(session.agent_id, file)]
            while [(lock.agent_id, lock.file) for lock in await self.locks()] != wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def free(self, seconds: float = SOON) -> None:
        begun = time.monotonic()
        while locks := await self.locks():
            assert time.monotonic() < begun + seconds, locks
            await asyncio.sleep(0.02)
        print(f"free after {time.monotonic() - begun:.2f} s", flush=True)

    async def story(self, file: str) -> list[tuple[str, str]]:
        changes = await self.host.safety.changes(ModificationQuery(file=file, limit=10))
        return [(change.agent_id, change.change.value) for change in reversed(changes)]

    async def news(self, session: AgentSession, text: str) -> None:
        """Wait until the model was told something, and the agent rests again."""
        told = self.model.dumped
        await self.until(lambda: told(text), f"'{text}' in the model's request", session)
        await self.rests(session)

    def denials(self, mark: str) -> list[str]:
        return [
            str(entry["tool_result"])
            for entry in self.model.entries()
            if "is locked by" in str(entry.get("tool_result") or "") and mark in str(entry["tool_result"])
        ]


@asynccontextmanager
async def shop(*kinds: str) -> AsyncIterator[Shop]:
    need_agents(*kinds)
    paths = UserPaths.of_environment()
    if "gemini" in kinds:
        HookInstaller(paths.synapse / "hooks").install(place_of(Dialect.GEMINI, paths.home, {}))
    async with open_host({"SYNAPSE_FILE_SAFETY_ENABLED": "true"}) as host:
        yield Shop(host)


def write(session: AgentSession, name: str, text: str, before: str = "") -> str:
    """What makes an agent's model write a file; Codex has no tool for it where it does not know the model."""
    if session.agent_type != "codex":
        return f"%%write:{name}:{text}%%"
    change = f"*** Update File: {name}\n@@\n-{before}" if before else f"*** Add File: {name}"
    return f"%%run:apply_patch <<'EOF'\n*** Begin Patch\n{change}\n+{text}\n*** End Patch\nEOF%%"


def written(name: str) -> str:
    file = Path(name)
    return file.read_text().strip() if file.exists() else ""


@pytest.mark.parametrize("kind", HOOKED)
async def test_the_second_is_denied_while_the_first_holds_the_lock(kind: str) -> None:
    other = "codex" if kind == "claude" else "claude"
    name = f"shared-{uuid.uuid4().hex[:8]}.txt"
    async with shop(kind, other) as here:
        first, second = await here.open(other), await here.open(kind)
        await here.prompt(first, write(first, name, "one"))
        await here.asks(first)
        await here.holds(first, name)
        await here.prompt(second, write(second, name, "two"))
        await here.until(lambda: here.denials(first.agent_id), "the denial in the model's request", second)
        await here.rests(second)
        assert not written(name)
        here.press(first, "enter")
        await here.rests(first)
        await here.free()
        assert written(name) == "one"
        await here.prompt(second, "what is new?")
        await here.news(second, f"{name} was created by {first.agent_id}")
        await here.carry_out(second, write(second, name, "two", before="one"))
        # Some agents do not write over a file that they have not read: then the first one's stays.
        stays = written(name) == "one"
        assert stays or written(name) == "two"
        second_part = [] if stays else [(second.agent_id, "MODIFY")]
        assert await here.story(name) == [(first.agent_id, "CREATE"), *second_part]
        await here.prompt(second, write(second, f"{name}-2", "two"))
        await here.asks(second)
        await here.holds(second, f"{name}-2")
        here.press(second, "enter")
        await here.rests(second)
        await here.free()
        assert written(f"{name}-2") == "two"
        assert await here.story(f"{name}-2") == [(second.agent_id, "CREATE")]
        print(f"{kind}: {name} is {written(name)!r} in the end", flush=True)
        for session in (first, second):
            assert here.host.safety.enforcement(session.agent_id) is Enforcement.ON


@pytest.mark.parametrize("kind", HOOKED)
async def test_locks_end_with_a_refused_dialog_an_interrupt_and_a_killed_agent(kind: str) -> None:
    async with shop(kind) as here:
        session = await here.open(kind)
        name = f"own-{uuid.uuid4().hex[:8]}.txt"
        await here.prompt(session, write(session, name, "one"))
        await here.asks(session)
        await here.holds(session, name)
        for key in session.profile.deny:
            session.user_input(key)
        await here.rests(session)
        await here.free()
        assert not written(name)
        await here.prompt(session, write(session, name, "two"))
        await here.asks(session)
        await here.holds(session, name)
        await here.host.interrupt(session.agent_id)
        await here.free()
        await here.rests(session)
        await here.prompt(session, write(session, name, "three"))
        await here.asks(session)
        await here.holds(session, name)
        os.killpg(os.getpgid(session.pid), signal.SIGKILL)
        await here.until(lambda: session.exit is not None, "its end", session)
        await here.free()
        assert not written(name)
