"""A host with file safety on, and an agent whose hooks call it: proof of life, states, consent."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from synapse_tui.agents.session import AgentSession
from synapse_tui.agents.state import HOOKED
from synapse_tui.core.events import Event, HooksChanged, Notice
from synapse_tui.core.model import AgentSpec, AgentState
from synapse_tui.hooks import Dialect, client
from synapse_tui.hooks import file_safety as service
from synapse_tui.hooks.client import ask
from synapse_tui.hooks.file_safety import Enforcement
from synapse_tui.hooks.install import Consent
from synapse_tui.hooks.lock_database import LockDatabase
from synapse_tui.host.host import Host
from synapse_tui.settings import load_settings
from synapse_tui.system.paths import UserPaths
from tests.integration.host_kit import profiles_with_free_ports
from tests.waiting import until


class Office:
    """A host, one scripted agent whose hooks the test calls, and what was told."""

    def __init__(self, folder: Path, run: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.paths = UserPaths(folder / "home")
        on = {"SYNAPSE_FILE_SAFETY_ENABLED": "true"}
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.paths.home),
            "XDG_RUNTIME_DIR": str(run),
            **on,
        }
        profiles = profiles_with_free_ports()
        # Its hooks are installed, not given at the start: the scripted agent takes no options of theirs.
        dummy = dataclasses.replace(profiles.profiles["dummy"], hooks=Dialect.GEMINI)
        self.host = Host(
            self.project,
            profiles=dataclasses.replace(profiles, profiles={**profiles.profiles, "dummy": dummy}),
            settings=load_settings(self.project, paths=self.paths, environ=on, trusted=lambda *_: False),
            paths=self.paths,
            environ=self.variables,
        )
        self.heard: list[Event] = []
        self.host.events.subscribe(self.heard.append)

    async def open(self) -> AgentSession:
        session = await self.host.open(AgentSpec("dummy"), columns=80, lines=24)
        await until(lambda: session.report.state is AgentState.READY)
        return session

    async def switch(self, *, on: bool) -> None:
        self.variables["SYNAPSE_FILE_SAFETY_ENABLED"] = str(on).lower()
        await self.host.following.read_again()
        await until(lambda: self.host.safety.enabled is on)
        await asyncio.gather(*self.host.safety._working)

    async def hook(self, session: AgentSession, word: str, **fields: Any) -> bytes:
        place = str(self.host.safety.socket)
        told = json.dumps({"cwd": str(self.project), **fields}).encode()
        return await asyncio.to_thread(ask, place, word, "gemini", session.agent_id, told)


@pytest.fixture
async def office(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    run = tmp_path_factory.mktemp("r")
    run.chmod(0o700)
    office = Office(tmp_path, run)
    await office.host.start()
    await office.host.safety.locks()  # a hook has two seconds, and the database is slow to load
    yield office
    await office.host.stop()


async def test_locks_are_not_enforced_until_a_hook_was_heard(office: Office) -> None:
    session = await office.open()
    safety = office.host.safety
    assert safety.enforcement(session.agent_id) is Enforcement.UNPROVED
    assert safety.unproved(session.agent_id)
    await office.hook(session, "start", hook_event_name="SessionStart")
    assert safety.enforcement(session.agent_id) is Enforcement.ON
    assert office.heard.count(HooksChanged(session.agent_id)) == 1


@pytest.mark.parametrize("parts", ["synapse-tui", "."])
async def test_hooks_are_answered_when_the_runtime_folder_was_deleted(office: Office, parts: str) -> None:
    session = await office.open()
    before = office.host.safety.socket
    assert before is not None
    runtime = Path(office.variables["XDG_RUNTIME_DIR"])
    shutil.rmtree(runtime / parts)
    await until(lambda: office.host.safety.socket is not None and office.host.safety.socket.exists())
    hook = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-E", client.__file__, "start", "--dialect", "gemini"),
        env=session.environ,
        stdin=asyncio.subprocess.PIPE,
    )
    await hook.communicate(b"{}")
    assert office.host.safety.enforcement(session.agent_id) is Enforcement.ON
    assert (office.host.safety.socket == before) is (parts == "synapse-tui")


async def test_hooks_reach_the_agents_state_and_not_its_readiness(office: Office) -> None:
    session = await office.open()
    tool = {"tool_name": "write_file", "tool_input": {"file_path": "a"}}
    await office.hook(session, "asked", **tool)
    assert (session.report.state, session.report.rule) == (AgentState.WAITING, HOOKED)
    await office.hook(session, "post", **tool)
    await office.hook(session, "prompt", prompt="x")
    assert (session.report.state, session.report.rule) == (AgentState.PROCESSING, HOOKED)
    await office.hook(session, "idle")
    await until(lambda: session.report.state is AgentState.READY)


async def test_locks_of_a_tool_outlive_a_state_that_only_a_hook_has_told(office: Office) -> None:
    session = await office.open()
    await office.hook(session, "prompt", prompt="x")
    await office.hook(session, "pre", tool_name="write_file", tool_input={"file_path": "a.py"})
    await until(lambda: session.report.state is AgentState.READY)  # nothing on the screen says that it works
    await asyncio.gather(*office.host.safety._working)
    [lock] = await office.host.safety.locks()
    assert (lock.file, lock.agent_id) == ("a.py", session.agent_id)


async def test_a_write_whose_hook_waited_too_long_is_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await office.open()
    monkeypatch.setattr(service, "ANSWER_WITHIN", 0.05)
    busy = threading.Event()
    waiting = asyncio.create_task(office.host.safety.store.ask(lambda _store: busy.wait(30)))
    tool = {"tool_name": "write_file", "tool_input": {"file_path": "a.py"}}
    assert await office.hook(session, "pre", **tool) == b""
    busy.set()
    await waiting
    [told] = [event for event in office.heard if isinstance(event, Notice)]
    assert told.text.startswith(f"{session.agent_id} may write a.py without a lock")


async def test_a_lock_ends_though_the_hook_that_ends_it_waited_too_long(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await office.open()
    tool = {"tool_name": "write_file", "tool_input": {"file_path": "a.py"}}
    await office.hook(session, "pre", **tool)
    [_lock] = await office.host.safety.locks()
    monkeypatch.setattr(service, "ANSWER_WITHIN", 0.05)
    busy = threading.Event()
    waiting = asyncio.create_task(office.host.safety.store.ask(lambda _store: busy.wait(30)))
    await office.hook(session, "post", **tool)
    busy.set()
    await waiting
    await asyncio.gather(*office.host.safety._working)
    assert not await office.host.safety.locks()


async def test_the_person_is_asked_for_hooks_once(office: Office) -> None:
    session = await office.open()
    assert await office.host.safety.asks_for_hooks(session.agent_id)
    assert not await office.host.safety.asks_for_hooks(session.agent_id)
    place = await office.host.safety.answer_for_hooks(session.agent_id, Consent.YES)
    assert place == office.paths.home / ".gemini/extensions/synapse"
    assert (place / "gemini-extension.json").is_file()
    assert not await office.host.safety.asks_for_hooks("synapse-gone-1")
    assert await office.host.safety.answer_for_hooks("synapse-gone-1", Consent.YES) is None


@pytest.mark.parametrize("setting", ["allow", "deny"])
async def test_where_no_lock_can_be_taken_the_agent_and_the_person_know_why(
    office: Office, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    office.paths.settings.parent.mkdir(parents=True, exist_ok=True)
    office.paths.settings.write_text(json.dumps({"file_safety.without_locks": setting}))
    await office.host.following.read_again()
    session = await office.open()
    await office.hook(session, "prompt", prompt="x")
    take, problem = LockDatabase.acquire_locks, "the disk is on fire"

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(5, problem)

    for name in ("acquire_locks", "modifications"):
        monkeypatch.setattr(LockDatabase, name, fail)
    tool = {"tool_name": "write_file", "tool_input": {"file_path": "a.py"}}
    answers = [await office.hook(session, word, **tool) for word in ("pre", "post", "pre", "post")]
    if setting == "allow":
        assert answers[0] == answers[2] == answers[3] == b"", "its model hears of it where it can, once"
        assert b"Files are not locked" in answers[1]
    else:
        assert json.loads(answers[0])["decision"] == json.loads(answers[2])["decision"] == "deny"
        assert b"Files cannot be locked" in answers[0]
    assert all(problem.encode() in answer for answer in answers if answer)
    told = [event.text for event in office.heard if isinstance(event, Notice)]
    assert len(told) == 1
    assert told[0].startswith("files are not locked: ")
    assert problem in told[0]
    monkeypatch.undo()
    assert LockDatabase.acquire_locks is take
    assert await office.hook(session, "pre", **tool) == b""
    assert [lock.file for lock in await office.host.safety.locks()] == ["a.py"]
